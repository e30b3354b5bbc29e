"""The audit log of a board: what organisers and submitters did with submissions and settings."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, insert

from geval_py.board.database.schema import audit


def log(connection: Connection, who: str, action: str, subject: str = "", detail: str = "", *, now: datetime) -> None:
    """Write a line of the audit log, in the transaction of the change."""
    values = {"who": who, "action": action, "subject": subject, "detail": detail}
    connection.execute(insert(audit).values(moment=now, **values))
