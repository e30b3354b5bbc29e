"""Who may use a board's server: accounts, made by invitation; their secrets; how often they may try.

There are no passwords. The secret of an invitation, a session, a token or a sign-in has 256 random bits. Only its
sha256 is stored, so whoever reads the database can use none.
"""

from __future__ import annotations

import re
import secrets as random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select, update

from geval_py.board.database.schema import (
    READER,
    ROLES,
    SUBMITTER,
    accounts,
    audit,
    identities,
    rates,
    secrets,
    submitters,
)
from geval_py.board.database.store import Board, escape_unstorable
from geval_py.board.intake.identity import casefolded, check_name
from geval_py.board.operations.pipeline import find_submitter, submitter_id
from geval_py.errors import DataError, UsageError
from geval_py.text import visible

SECRET_BYTES = 32
INVITATION, SESSION, TOKEN, SIGN_IN = "invitation", "session", "token", "sign-in"  # the kinds of secrets
INVITATION_DAYS, SESSION_DAYS, TOKEN_DAYS = 14, 30, 180
LIFETIMES = {
    INVITATION: timedelta(days=INVITATION_DAYS),
    SESSION: timedelta(days=SESSION_DAYS),
    TOKEN: timedelta(days=TOKEN_DAYS),
    SIGN_IN: timedelta(minutes=15),  # that somebody may be away, at another site
}
PROLONGED_AFTER = timedelta(minutes=10)  # of use, a session lasts longer
SUBMIT, READ, FEED = SCOPES = ("submit", "read", "feed")  # of tokens; to submit includes to read
MAX_EMAIL = 254  # characters, RFC 5321
CLOSED = "this account was closed by the organiser"
A, S = accounts.c, secrets.c
MAX_KEPT_HOURS = 48  # of the table of rates


class RefusedError(DataError):
    """Somebody may not do what they ask for; ``reason`` is one sentence for them."""

    reason: str

    def __str__(self) -> str:
        return self.reason


class TooOftenError(RefusedError):
    """Something was tried too often in this hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody who may sign in; ``team`` is the name of the submitter for whom they submit, "" for none."""

    id: int
    name: str
    email: str
    role: str
    submitter_id: int | None
    team: str
    owner: bool
    mailed: bool

    @property
    def may_submit(self) -> bool:
        """Whether they have a team to submit for."""
        return self.role != READER and self.submitter_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who somebody is by another site: ``subject`` is their id there, ``email`` "" unless the site verified it."""

    issuer: str
    subject: str
    email: str
    name: str


# Secrets


def issue(
    connection: Connection,
    kind: str,
    now: datetime,
    *,
    account_id: int | None = None,
    data: Mapping[str, Any] | None = None,
    days: int | None = None,
) -> str:
    """Make a secret of a kind, and return it; it is not shown again. Expired ones are forgotten."""
    secret = random.token_urlsafe(SECRET_BYTES)
    connection.execute(delete(secrets).where(S.expires < now))
    expires = now + (LIFETIMES[kind] if days is None else timedelta(days=days))
    values = {"digest": digest_of(secret), "kind": kind, "account_id": account_id, "made": now}
    values |= {"expires": expires, "data": escape_unstorable(dict(data or {}))}
    connection.execute(insert(secrets).values(values))
    return secret


def find(connection: Connection, kind: str, secret: str, now: datetime) -> Row[Any] | None:
    """Return the row of a secret of a kind; None if it is unknown, used, or too old."""
    is_this = S.digest == digest_of(secret), S.kind == kind, S.used.is_(None)
    row = connection.execute(select(secrets).where(*is_this)).first()
    return row if row is not None and now <= row.expires else None


def end(connection: Connection, kind: str, secret: str) -> None:
    """Forget a secret of a kind."""
    connection.execute(delete(secrets).where(S.digest == digest_of(secret), S.kind == kind))


def digest_of(secret: str) -> str:
    """Compute what is stored of a secret."""
    return sha256(secret.encode()).hexdigest()


# Accounts


def account(connection: Connection, account_id: int | None) -> Account | None:
    """Return an account; None if it is disabled, or not there."""
    return next(iter(all_accounts(connection, A.id == account_id)), None)


def account_named(connection: Connection, name: str) -> Account:
    """Return the account with a name; raises RefusedError."""
    for match in all_accounts(connection, A.key == casefolded(name)):
        return match
    raise RefusedError(reason=f"there is no account `{visible(name)}`")


def all_accounts(connection: Connection, *conditions: ColumnElement[bool]) -> list[Account]:
    """Return the accounts that are not closed and fulfil some conditions, by name."""
    team = func.coalesce(submitters.c.name, "").label("team")
    query = select(A.id, A.name, A.email, A.role, A.submitter_id, A.owner, A.mailed, team)
    query = query.outerjoin(submitters, submitters.c.id == A.submitter_id).order_by(A.key)
    rows = connection.execute(query.where(A.disabled.is_(None), *conditions)).mappings()
    return [Account(**dict(row)) for row in rows]


def close(connection: Connection, account_id: int, now: datetime) -> None:
    """Close an account: its sessions and tokens end at once, its submissions stay."""
    connection.execute(update(accounts).where(A.id == account_id).values(disabled=now))
    connection.execute(delete(secrets).where(S.account_id == account_id, S.kind != INVITATION))


# Invitations


def invite(
    connection: Connection,
    name: str,
    *,
    now: datetime,
    email: str = "",
    role: str = SUBMITTER,
    team: str | None = None,
    owner: bool = True,
    days: int | None = None,
) -> str:
    """Make an invitation, and return its secret; for the name of an account, it signs in to that account.

    A submitter's ``team`` is by default their own name; other roles have none. Raises RejectedError for a name that
    is not allowed, UsageError for an unknown role or an impossible address.
    """
    if role not in ROLES:
        raise UsageError(message=f"there is no role `{visible(role)}`: the roles are {', '.join(ROLES)}")
    check_email(email)
    check_name(name)
    team = name if team is None and role == SUBMITTER else team or ""
    if team:
        check_name(team)
    data: dict[str, Any] = {"name": name, "email": email, "role": role, "team": team, "owner": owner}
    account_id = None
    for own in all_accounts(connection, A.key == casefolded(name)):
        account_id, data = own.id, data | {"name": own.name, "role": own.role, "team": own.team}
    return issue(connection, INVITATION, now, account_id=account_id, data=data, days=days)


def refuse_taken(connection: Connection, name: str, needed: str = "") -> None:
    """Raise RefusedError if an account has a name: only the organiser makes links for accounts that exist."""
    if connection.execute(select(A.id).where(A.key == casefolded(name))).first() is not None:
        raise RefusedError(reason=f"there is an account `{visible(name)}` already; ask the organiser{needed}")


def check_email(email: str) -> None:
    """Raise UsageError unless this is "" or may be the address of a mailbox."""
    is_address = len(email) <= MAX_EMAIL and re.fullmatch(r"[!-~]+@[!-~]+", email) and not set('<>",;\\') & set(email)
    if email and not is_address:
        raise UsageError(message=f"`{visible(email)}` is not an e-mail address")


def accept(connection: Connection, secret: str, now: datetime) -> Account:
    """Use an invitation: return its account, which is made if it is new; raises RefusedError."""
    row = find(connection, INVITATION, secret, now)
    if row is None:
        raise RefusedError(reason="this link was used or has expired; ask the organiser for another one")
    return _accept(connection, row, now)


def _accept(connection: Connection, row: Row[Any], now: datetime) -> Account:
    connection.execute(update(secrets).where(S.id == row.id).values(used=now))
    if row.account_id is None:
        return _new_account(connection, **row.data, now=now)
    return _open_account(connection, row.account_id)


def _open_account(connection: Connection, account_id: int) -> Account:
    """Return an account; raises RefusedError if it was closed."""
    match = account(connection, account_id)
    if match is None:
        raise RefusedError(reason=CLOSED)
    return match


def _new_account(
    connection: Connection, name: str, email: str, role: str, team: str, *, owner: bool, now: datetime
) -> Account:
    """Make an account; its name may be taken by one that is disabled, or was made since it was invited."""
    refuse_taken(connection, name, " for a new link")
    values = {"key": casefolded(name), "name": name, "email": email, "role": role, "owner": owner}
    values |= {"submitter_id": submitter_id(connection, team) if team else None, "made": now}
    connection.execute(insert(accounts).values(values))
    return account_named(connection, name)


# Signing in by another site


def identified(connection: Connection, who: Identity, signed_in: int | None, now: datetime) -> Account | None:
    """Return the account of somebody whom another site knows; None if they have none.

    It is, in this order, the one that they signed in to before, the one with the id ``signed_in``, the only one with
    their address, or the one of the latest invitation to it. Raises RefusedError if it was closed.
    """
    condition = (identities.c.issuer == who.issuer, identities.c.subject == who.subject)
    account_id = connection.execute(select(identities.c.account_id).where(*condition)).scalar()
    if account_id is not None:
        return _open_account(connection, account_id)
    match = account(connection, signed_in) if signed_in is not None else None
    if match is None and who.email:
        email = who.email.lower()
        ids = connection.execute(select(A.id).where(func.lower(A.email) == email)).scalars().all()
        if len(ids) == 1:
            match = _open_account(connection, ids[0])
        else:
            is_open = S.kind == INVITATION, S.used.is_(None), S.expires >= now
            invited = select(secrets).where(*is_open, S.account_id.is_(None)).order_by(S.made.desc())
            theirs = (row for row in connection.execute(invited).all() if row.data["email"].lower() == email)
            row = next(theirs, None)
            match = None if row is None else _accept(connection, row, now)
    if match is not None:
        _remember(connection, who, match, now)
    return match


def enrol(connection: Connection, who: Identity, name: str, now: datetime) -> Account:
    """Make an account for somebody whom another site knows; they submit for a new team of this name.

    Raises RejectedError for a name that is not allowed, RefusedError for one that is taken.
    """
    check_name(name)
    if find_submitter(connection, name) is not None:
        raise RefusedError(reason=f"there is a team `{visible(name)}` already; choose another name")
    new = _new_account(connection, name, who.email, SUBMITTER, name, owner=True, now=now)
    _remember(connection, who, new, now)
    return new


def _remember(connection: Connection, who: Identity, owner: Account, now: datetime) -> None:
    values = {"issuer": who.issuer, "subject": who.subject, "account_id": owner.id}
    connection.execute(insert(identities).values(**values, made=now))


# Sessions, and tokens for programs


def session_account(board: Board, secret: str, now: datetime) -> Account | None:
    """Return the account of a session, None if it is none; a session that is used lasts longer."""
    with board.reading() as connection:
        row = find(connection, SESSION, secret, now)
        used_by = None if row is None else account(connection, row.account_id)
    expires = now + LIFETIMES[SESSION]
    if row is not None and used_by is not None and row.expires < expires - PROLONGED_AFTER:
        with board.writing() as connection:
            connection.execute(update(secrets).where(S.id == row.id).values(expires=expires))
    return used_by


def make_token(
    connection: Connection,
    account_id: int,
    *,
    now: datetime,
    name: str = "",
    scope: str = SUBMIT,
    days: int | None = None,
) -> str:
    """Make a token of an account, and return it; it is not shown again. Raises UsageError for an unknown scope."""
    if scope not in SCOPES:
        raise UsageError(message=f"there is no scope `{visible(scope)}`: the scopes are {', '.join(SCOPES)}")
    return issue(connection, TOKEN, now, account_id=account_id, data={"name": name[:100], "scope": scope}, days=days)


def token_account(connection: Connection, secret: str, now: datetime) -> tuple[Account | None, str]:
    """Return the account of a token and its scope; None and "" if it is none."""
    row = find(connection, TOKEN, secret, now)
    return (None, "") if row is None else (account(connection, row.account_id), row.data["scope"])


# Rates and the audit log


def count_try(connection: Connection, name: str, most: int, now: datetime) -> None:
    """Count one more try of something in this hour; raises TooOftenError beyond ``most``.

    The hours begin with the clock's, so that a count needs one row.
    """
    hour = check_tries(connection, name, most, now)
    connection.execute(delete(rates).where(rates.c.hour < hour - timedelta(hours=MAX_KEPT_HOURS)))
    this = update(rates).where(rates.c.name == name, rates.c.hour == hour)
    if not connection.execute(this.values(tries=rates.c.tries + 1)).rowcount:
        connection.execute(insert(rates).values(name=name, hour=hour, tries=1))


def check_tries(connection: Connection, name: str, most: int, now: datetime) -> datetime:
    """Return the hour; raises TooOftenError if something was tried ``most`` times in it, or more.

    It only reads, so that what is refused takes no lock from those who write.
    """
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    tries = connection.execute(select(rates.c.tries).where(rates.c.name == name, rates.c.hour == hour)).scalar()
    if tries is not None and tries >= most:
        end_of_hour = f"{hour + timedelta(hours=1):%H:%M} UTC"
        raise TooOftenError(reason=f"more than {most} times in one hour; try again after {end_of_hour}")
    return hour


def log(connection: Connection, who: str, action: str, subject: str = "", detail: str = "", *, now: datetime) -> None:
    """Write a line of the audit log."""
    texts = escape_unstorable({"who": who, "action": action, "subject": subject, "detail": detail})
    connection.execute(insert(audit).values(moment=now, **texts))
