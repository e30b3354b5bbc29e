"""The secrets of links, sessions and tokens.

There are no passwords. A secret has 256 random bits. Only its sha256 is stored, so whoever reads the database can use
none.
"""

from __future__ import annotations

import secrets as random
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, insert, select, update

from geval_py.board.people.schema import secrets
from geval_py.board.people.store import AccountStore, People
from geval_py.text import words

SECRET_BYTES = 32
INVITATION, SESSION, TOKEN = words("invitation session token")
DAYS = {INVITATION: 14, SESSION: 30, TOKEN: 180}  # for which they are valid
PROLONGED_AFTER = timedelta(minutes=10)  # of use, a session lasts longer
SUBMIT, READ = SCOPES = ("submit", "read")  # of tokens; to submit includes to read
S = secrets.c


def issue(
    people: People,
    kind: str,
    person: str,
    now: datetime,
    *,
    boards: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
    days: int = 0,
    made_by: str = "",
) -> str:
    """Make a secret of a person on the board, or on several ``boards``, and return it. Expired ones are forgotten.

    It is valid for some ``days``, by default as DAYS says.
    """
    secret = random.token_urlsafe(SECRET_BYTES)
    people.execute(delete(secrets).where(S.expires < now))
    expires = now + timedelta(days=days or DAYS[kind])
    values = {"digest": digest_of(secret), "kind": kind, "person": person, "made": now, "expires": expires}
    values |= {"data": data or {}, "made_by": made_by}
    people.execute(insert(secrets).values([{**values, "board": board} for board in boards or [people.board]]))
    return secret


def secrets_of(people: People, kind: str, now: datetime, *conditions: ColumnElement[bool]) -> list[Row[Any]]:
    """Return the secrets that are valid on the board and fulfil some conditions, the latest first."""
    is_valid = S.kind == kind, people.has(S.board), S.expires >= now
    return list(people.execute(select(secrets).where(*is_valid, *conditions).order_by(S.id.desc())))


def find(people: People, kind: str, secret: str, now: datetime) -> list[Row[Any]]:
    """Return the rows of a secret, one for each board on which it is valid; [] if it is unknown, used, or too old."""
    return secrets_of(people, kind, now, S.digest == digest_of(secret))


def end_secrets(people: People, *conditions: ColumnElement[bool]) -> bool:
    """End the secrets on the board that fulfil some conditions, and return whether there were any."""
    return bool(people.execute(delete(secrets).where(people.has(S.board), *conditions)).rowcount)


def end_everywhere(people: People, secret: str) -> None:
    """End a secret on all boards, by somebody who has it."""
    people.execute(delete(secrets).where(S.digest == digest_of(secret)))


def digest_of(secret: str) -> str:
    """Compute what is stored of a secret."""
    return sha256(secret.encode()).hexdigest()


def session_person(store: AccountStore, secret: str, now: datetime) -> str:
    """Return the person of a session, "" if it is none; a session that is used lasts longer."""
    with store.reading() as people:
        rows = find(people, SESSION, secret, now)
    expires = now + timedelta(days=DAYS[SESSION])
    for row in rows:
        if row.expires < expires - PROLONGED_AFTER:
            with store.writing() as people:
                people.execute(update(secrets).where(S.id == row.id).values(expires=expires))
        return str(row.person)
    return ""
