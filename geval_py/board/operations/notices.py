"""What a board tells: announcements for everybody, and notices, which wait here until a worker has delivered them.

A notice is written in the transaction that changes what it tells of, once for each of its receivers: a webhook of
board.yaml, or the address of an account. It never has a score: what is shown of it, and when, is the pages' affair.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from geval_py.board.database.schema import Submissions, accounts, announcements, notices
from geval_py.board.database.store import Board, mark_changed
from geval_py.board.settings import BoardSettings, moment_text
from geval_py.errors import UsageError

MAX_ANNOUNCEMENT_LENGTH = 2000  # characters
ANNOUNCED, SETTLED, WITHDRAWN, INVITED = "announced", "settled", "withdrawn", "invited"  # events
WAITING, SENT, GIVEN_UP = "waiting", "sent", "given up"  # states


def announce(board: Board, text: str, now: datetime) -> int:
    """Put a text in Markdown on the first page and into the feed; return its number. Raises UsageError."""
    text = text.strip()
    if not text or len(text) > MAX_ANNOUNCEMENT_LENGTH:
        raise UsageError(message=f"an announcement must have 1 to {MAX_ANNOUNCEMENT_LENGTH:,} characters")
    with board.writing() as connection:
        new = insert(announcements).values(moment=now, text=text).returning(announcements.c.id)
        made = connection.execute(new).scalar_one()
        tell(connection, board.settings, {"event": ANNOUNCED, "text": text}, now)
        mark_changed(connection)
    return int(made)


def take_back(board: Board, number: int) -> None:
    """Remove an announcement; raises UsageError if there is none with this number."""
    with board.writing() as connection:
        if not connection.execute(delete(announcements).where(announcements.c.id == number)).rowcount:
            raise UsageError(message=f"there is no announcement {number}")
        mark_changed(connection)


def tell_of_upload(
    connection: Connection, settings: BoardSettings, upload: Any, state: str, submission_id: int | None, now: datetime
) -> None:
    """Write down that an upload is settled, for the webhooks and for whoever sent it; nothing of a trial."""
    if upload.dry:
        return
    query = select(Submissions.code, Submissions.state).where(Submissions.id == submission_id)
    own = connection.execute(query).first()
    event = {"event": SETTLED, "submitter": upload.team, "state": own.state if own else state}
    event["code"] = own.code if own else ""
    query = select(accounts.c.email).where(accounts.c.id == upload.account_id, accounts.c.mailed)
    email = connection.execute(query.where(accounts.c.disabled.is_(None))).scalar() or ""
    tell(connection, settings, event, now, email, upload=upload.number, file=upload.name)


def tell(
    connection: Connection,
    settings: BoardSettings,
    event: Mapping[str, str],
    now: datetime,
    email: str = "",
    **more: str,
) -> None:
    """Write an event down for each webhook and, with ``more``, for an address."""
    told = {**event, "board": settings.title, "moment": moment_text(now)}
    receivers = [(one.name, "", told) for one in settings.server.webhooks]
    if email and settings.server.mail is not None:
        receivers.append(("", email, told | more))
    for webhook, address, content in receivers:
        _write_down(connection, webhook, address, content, now)


def mail_invitation(connection: Connection, account_id: int, email: str, address: str, now: datetime) -> None:
    """Let a worker make a link for an account, and mail it: a notice has no secret. ``address`` is the board's."""
    _write_down(connection, "", email, {"event": INVITED, "account": account_id, "address": address}, now)


def _write_down(connection: Connection, webhook: str, email: str, event: Mapping[str, Any], now: datetime) -> None:
    values = {"webhook": webhook, "email": email, "event": event, "made": now, "due": now}
    connection.execute(insert(notices).values(**values, number=secrets.token_hex(8), state=WAITING, tries=0))
