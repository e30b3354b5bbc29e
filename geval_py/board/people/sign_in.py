"""Signing in: by a link, by a session or token, or by an account of another site.

Another site's account is its issuer and the id there, never an address. An address that the site has verified opens
an account that was invited by it and that nobody has used; of any other account it asks for a sign-in first.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Row, func, insert, select, update

from geval_py.board.people.accounts import A, Account, RefusedError, account, all_accounts, new_account, team_named
from geval_py.board.people.schema import accounts, identities
from geval_py.board.people.secrets import (
    DAYS,
    INVITATION,
    SCOPES,
    SUBMIT,
    TOKEN,
    S,
    end_everywhere,
    end_secrets,
    find,
    issue,
)
from geval_py.board.people.store import People
from geval_py.errors import UsageError
from geval_py.text import visible

MAX_DAYS = 3650  # for which a token is valid
CLOSED = "this account was closed; ask the organiser"


class Identity(NamedTuple):
    """Who somebody is by another site: ``subject`` is their id there, ``email`` "" unless the site verified it."""

    issuer: str
    subject: str
    email: str
    name: str


def accept(people: People, secret: str, now: datetime) -> list[Account]:
    """Use a link, and return the accounts to which it signs in; raises RefusedError."""
    links = find(people, INVITATION, secret, now)
    if not links:
        raise RefusedError("this link was used or has expired; ask the organiser for another one")
    end_everywhere(people, secret)
    return _join(people, links[0].person, now, A.board.in_([link.board for link in links]))


def _join(people: People, person: str, now: datetime, *conditions: ColumnElement[bool]) -> list[Account]:
    """Return the accounts of a person who signs in; their links end. Raises RefusedError if all were closed."""
    members = all_accounts(people, A.person == person, *conditions)
    if not members:
        raise RefusedError(CLOSED)
    for member in members:
        end_secrets(People(people.connection, member.board), S.person == person, S.kind == INVITATION)
        people.execute(update(accounts).where(A.id == member.id, A.joined.is_(None)).values(joined=now))
    return members


# Other sites


def person_of(people: People, who: Identity) -> str | None:
    """Return the person who signs in to the board by an account of another site; None if nobody does."""
    c = identities.c
    is_this = c.issuer == who.issuer, c.subject == who.subject, c.board == people.board
    return people.execute(select(c.person).where(*is_this)).scalar()


def identified(people: People, who: Identity, now: datetime) -> list[Account]:
    """Return the account of somebody whom another site knows, [] if they have none on the board.

    Raises RefusedError if it was closed, and if the address is that of an account that was used.
    """
    person = person_of(people, who)
    is_theirs = func.lower(A.email) == who.email.lower()
    for invited in all_accounts(people, is_theirs, closed=True) if who.email and person is None else ():
        if invited.joined and not invited.closed:
            raise RefusedError(
                f"{visible(who.email)} is the address of an account: "
                "sign in to it with a link, and connect the other site on your page"
            )
        connect(people, who, invited, now)
        person = invited.person
    return [] if person is None else _join(people, person, now)


def connect(people: People, who: Identity, member: Account, now: datetime) -> None:
    """Let somebody sign in by another site to an account from now on; raises RefusedError if that has an account."""
    if person_of(people, who):
        raise RefusedError("this account of another site has an account here already")
    values = {"issuer": who.issuer, "subject": who.subject, "board": people.board, "person": member.person}
    people.execute(insert(identities).values(**values, made=now))


def enrol(people: People, who: Identity, name: str, now: datetime, others: Iterable[str] = ()) -> Account:
    """Make an account for somebody whom another site knows; they submit for a new team of this name.

    ``others`` are the teams that the board has. Raises RejectedError for a name that is not allowed, RefusedError for
    one that is taken, and if they have an account already.
    """
    team_named(people, name, others, new=True)
    made = new_account(people, name, name, now, email=who.email, owner=True, joined=now, made_by=who.issuer)
    connect(people, who, made, now)
    return made


def identities_of(people: People, member: Account) -> list[Row[tuple[object, ...]]]:
    """Return the accounts of other sites by which somebody signs in."""
    is_theirs = identities.c.person == member.person, identities.c.board == people.board
    return list(people.execute(select(identities).where(*is_theirs).order_by(identities.c.id)))


# Tokens for programs


def make_token(
    people: People,
    member: Account,
    *,
    now: datetime,
    name: str = "",
    scope: str = SUBMIT,
    days: int = DAYS[TOKEN],
) -> str:
    """Make a token of an account, and return it; it is not shown again. Raises UsageError."""
    if scope not in SCOPES:
        raise UsageError(f"there is no scope `{visible(scope)}`: the scopes are {', '.join(SCOPES)}")
    if not 1 <= days <= MAX_DAYS:
        raise UsageError(f"a token is valid for 1 to {MAX_DAYS} days, not {days}")
    return issue(people, TOKEN, member.person, now, data={"name": name[:100], "scope": scope}, days=days)


def token_account(people: People, secret: str, scope: str, now: datetime) -> Account | None:
    """Return the account of a token that has a scope; None if it is none. A token to submit has all scopes."""
    for row in find(people, TOKEN, secret, now):
        if row.data["scope"] in (SUBMIT, scope):
            return account(people, A.person == row.person)
    return None
