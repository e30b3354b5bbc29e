"""What a board tells: announcements for everybody, and notices, which wait here until a worker has mailed them.

A notice is written in the transaction that changes what it tells of. Notices contain no scores, because the pages
decide which scores are shown.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert

from geval_py.board.database.schema import announcements, notices
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.people.accounts import A, all_accounts
from geval_py.board.people.store import accounts_of
from geval_py.board.settings import BoardSettings
from geval_py.errors import UsageError

MAX_ANNOUNCEMENT_LENGTH = 2000  # characters
WAITING, SENT, GIVEN_UP = "waiting", "sent", "given up"  # states


def announce(connection: Connection, board: Board, text: str, now: datetime, *, mail: bool = False) -> int:
    """Put a text in Markdown on the first page and into the feed, and ``mail`` it to all members; return its number.

    Raises UsageError.
    """
    text = text.strip()
    if not text or len(text) > MAX_ANNOUNCEMENT_LENGTH:
        raise UsageError(f"an announcement must have 1 to {MAX_ANNOUNCEMENT_LENGTH:,} characters")
    if mail:
        if not board.settings.server.mail:
            raise UsageError("the board sends no mail\n  set `mail` of `server` in board.yaml")
        with accounts_of(board).reading() as people:
            members = all_accounts(people)
        for member in members:
            notify(connection, member.id, {"announcement": text}, now)
    new = insert(announcements).values(moment=now, text=text).returning(announcements.c.id)
    return int(connection.scalar(new))


def take_back(connection: Connection, number: int) -> None:
    """Remove an announcement; raises UsageError if there is none with this number."""
    if not connection.execute(delete(announcements).where(announcements.c.id == number)).rowcount:
        raise UsageError(f"there is no announcement {number}")


def tell_of_upload(connection: Connection, settings: BoardSettings, upload: Any, now: datetime) -> None:
    """Write down for the sender of an upload that it is settled; nothing of a trial."""
    if upload.trial or settings.server.mail is None:
        return
    notify(connection, upload.account, {"state": upload.state, "upload": upload.code, "file": upload.sent_name}, now)


def tell_of_correction(
    connection: Connection, board: Board, teams: Iterable[str], reason: str, now: datetime
) -> None:
    """Write down for the members of teams that a rescoring changed their score or place, and the reason."""
    if not board.settings.server.mail:
        return
    keys = [casefolded(team) for team in teams]
    with accounts_of(board).reading() as people:
        members = all_accounts(people, A.team_key.in_(keys))
    for member in members:
        notify(connection, member.id, {"corrected": member.team, "reason": reason}, now)


def notify(connection: Connection, account: str, event: Mapping[str, Any], now: datetime) -> None:
    """Write down what a worker is to mail to an account.

    Of an invitation it is ``by`` whom, and the ``address`` of the board: the worker makes the link, which is secret.
    """
    values = {"account": account, "event": event, "made": now, "due": now}
    connection.execute(insert(notices).values(**values, number=secrets.token_hex(8), state=WAITING, tries=0))
