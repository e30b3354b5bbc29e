"""How a board's database came to be what it is: a file a version, run by Alembic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    from sqlalchemy import Connection


def upgrade(connection: Connection, version: str = "head") -> None:
    """Bring a database to a version, by default the last, in the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, version)
