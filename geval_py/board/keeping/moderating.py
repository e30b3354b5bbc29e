"""``geval board withdraw`` and ``note``: what the organiser says of a submission, which stays stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from geval_py.board.keeping.quota import written
from geval_py.board.keeping.receipts import Receipt, id_of, receipt_of
from geval_py.board.ranking.refreshing import refresh
from geval_py.board.storing.blobs import storable
from geval_py.board.storing.schema import submissions
from geval_py.errors import UsageError
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.board.storing.store import Board


def withdraw(board: Board, code: str, reason: str, now: datetime) -> Receipt:
    """Hide a submission from all rankings and pages, and keep it; what it was charged stays.

    Raises UnknownCodeError, and UsageError for one that is withdrawn already, or without a reason.
    """
    if not reason.strip():
        raise UsageError(message="a submission is withdrawn with a reason, which `geval board status` shows")
    with board.writing() as connection:
        number = id_of(connection, code)
        moment = connection.execute(select(submissions.c.withdrawn).where(submissions.c.id == number)).scalar()
        if moment is not None:
            raise UsageError(message=f"`{visible(code)}` was withdrawn already, at {written(moment)}")
        values = {"withdrawn": now.astimezone(UTC), "withdrawal": storable(reason)}
        connection.execute(update(submissions).where(submissions.c.id == number).values(values))
        refresh(connection, board.settings, now)
        return receipt_of(connection, number, f"withdrawn: {visible(reason)}")


def note(board: Board, code: str, remark: str) -> Receipt:
    """Put a public remark on a submission, in place of an earlier one; "" takes it away. Raises UnknownCodeError."""
    remark = remark.strip()
    with board.writing() as connection:
        number = id_of(connection, code)
        values = {"remark": storable(remark)}
        connection.execute(update(submissions).where(submissions.c.id == number).values(values))
        return receipt_of(connection, number, f"remark: {visible(remark)}" if remark else "without a remark")
