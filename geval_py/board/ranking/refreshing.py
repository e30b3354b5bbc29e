"""What follows from what is stored is made anew in the transaction that changes it: disclosures and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.board.ranking.comparing import complete
from geval_py.board.ranking.disclosing import disclose

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from geval_py.board.settings import Settings


def refresh(connection: Connection, settings: Settings, now: datetime) -> None:
    """Make the disclosures, and the comparisons of what stands in a ranking and was not compared yet."""
    disclose(connection, settings, now)
    complete(connection, settings, now)
