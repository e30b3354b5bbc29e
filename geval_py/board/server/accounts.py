"""Who may use a board's server: accounts, made by invitation; their secrets; how often they may try.

There are no passwords. The secret of an invitation, a session, a token or a sign-in has 256 random bits. Only its
sha256 is stored, so whoever reads the database can use none.
"""

from __future__ import annotations

import os
import re
import secrets as random
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select, update

from geval_py.board.database.schema import (
    ORGANISER,
    READER,
    ROLES,
    SUBMITTER,
    Jobs,
    Submitters,
    accounts,
    audit,
    exceptions,
    identities,
    jobs,
    rates,
    secrets,
    submissions,
    submitters,
)
from geval_py.board.database.store import SHARED_FILE, Board
from geval_py.board.intake.identity import casefolded, check_name, skeletons
from geval_py.board.operations.teams import find_similar, submitter_id
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.submission import ReasonError
from geval_py.errors import UsageError
from geval_py.tables.table import Table, plain_table
from geval_py.text import named, visible, words

SECRET_BYTES = 32
INVITATION, SESSION, TOKEN, SIGN_IN = words("invitation session token sign-in")  # the kinds of secrets
DAYS = {INVITATION: 14, SESSION: 30, TOKEN: 180, SIGN_IN: 1 / 96}  # for which they are valid
PROLONGED_AFTER = timedelta(minutes=10)  # of use, a session lasts longer
SUBMIT, READ = SCOPES = ("submit", "read")  # of tokens; to submit includes to read
COPIED = words("name email scope role owner mailed made joined disabled")  # to boards that share
MAX_EMAIL = 254  # characters, RFC 5321
CLOSED = "this account was closed by the organiser"
SECRETS_AN_HOUR = 20  # tokens and invitations that an account makes
A, S, R = accounts.c, secrets.c, rates.c
MAX_KEPT_HOURS = 48  # of the table of rates


class RefusedError(ReasonError):
    """Somebody may not do what they ask for."""


class TooOftenError(RefusedError):
    """Something was tried too often in this hour."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """Somebody who may sign in; ``team`` is the name of the submitter for whom they submit, "" for none.

    A name is the organiser's if its ``scope`` is 0, else it is of a single team. ``maker`` is who invited them, ""
    for the command line and for people who made their own account.
    """

    id: int
    name: str
    email: str
    scope: int
    role: str
    submitter_id: int | None
    team: str
    owner: bool
    mailed: bool
    maker: str
    made: datetime
    joined: datetime | None
    disabled: datetime | None

    @property
    def may_submit(self) -> bool:
        """Whether they have a team to submit for."""
        return self.role != READER and self.submitter_id is not None

    @property
    def label(self) -> str:
        """The name, with what tells it from the same name of another team."""
        return f"{self.name} ({self.email or self.team or 'no team'})" if self.scope else self.name

    @property
    def state(self) -> str:
        """Whether it is closed, or invited and never used; "" otherwise."""
        return "closed" if self.disabled else "" if self.joined else "invited"

    def __str__(self) -> str:
        """Return who this is, for the organiser."""
        about = filter(None, (self.role, self.team and f"team `{self.team}`", self.email))
        maker = f"`{self.maker}`" if self.maker else "themself" if self.scope else "the organiser"
        never = "" if self.joined else ", never used"
        text = f"`{self.name}` has an account: {', '.join(about)}, made by {maker} on {self.made:%Y-%m-%d}{never}"
        return visible(text + (f", closed on {self.disabled:%Y-%m-%d}" if self.disabled else ""))


class Invitation(NamedTuple):
    """The secret of a link, and whose it is; ``detail``, for the audit log, is "" for an account that is new."""

    secret: str
    account: Account
    detail: str = ""

    @property
    def note(self) -> str:
        """What the organiser should know of an account that is not new."""
        return f"{self.account}\n  its sessions and earlier links have ended" if self.detail else ""


@dataclass(frozen=True, kw_only=True)
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
    expires = now + timedelta(days=DAYS[kind] if days is None else days)
    values = {"digest": digest_of(secret), "kind": kind, "account_id": account_id, "made": now}
    connection.execute(insert(secrets).values(**values, expires=expires, data=data or {}))
    return secret


def find(connection: Connection, kind: str, secret: str, now: datetime) -> Row[Any] | None:
    """Return the row of a secret of a kind; None if it is unknown, used, or too old."""
    is_this = S.digest == digest_of(secret), S.kind == kind
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


def account_named(connection: Connection, name: str, *, closed: bool = False) -> Account:
    """Return the account with a name that the organiser gave, an e-mail address or a label; raises RefusedError."""
    everybody = all_accounts(connection, closed=closed)
    matches = [one for one in everybody if name in (one.label, one.email)]
    same = [] if matches else [one for one in everybody if casefolded(one.name) == casefolded(name)]
    matches = matches or [one for one in same if not one.scope]
    if len(matches) != 1:
        others = "".join(f", but `{visible(one.label)}`" for one in matches or same)
        raise RefusedError(f"there is no account `{visible(name)}`{others}")
    return matches[0]


def all_accounts(connection: Connection, *conditions: ColumnElement[bool], closed: bool = False) -> list[Account]:
    """Return the accounts that fulfil some conditions, by name; ``closed`` ones, too."""
    makers = accounts.alias("makers")
    columns = [A[one.name] for one in fields(Account) if one.name in A]
    names = {"team": Submitters.name, "maker": makers.c.name}
    query = select(*columns, *(func.coalesce(column, "").label(name) for name, column in names.items()))
    query = query.outerjoin(submitters, Submitters.id == A.submitter_id)
    query = query.outerjoin(makers, makers.c.id == A.made_by).order_by(A.key, A.id)
    if not closed:
        query = query.where(A.disabled.is_(None))
    return [Account(**dict(row)) for row in connection.execute(query.where(*conditions)).mappings()]


def members_of(connection: Connection, team_id: int | None) -> list[Account]:
    """Return the accounts of a team, by name."""
    return all_accounts(connection, A.submitter_id == (team_id or 0))


def close(connection: Connection, account_id: int, now: datetime) -> list[Account]:
    """Close an account, and those that it invited and nobody has used; return the others that it invited.

    Their sessions, tokens and links end at once, their submissions stay.
    """
    unused = (A.made_by == account_id) & A.joined.is_(None)
    own = update(accounts).where((A.id == account_id) | unused, A.disabled.is_(None))
    connection.execute(own.values(disabled=now))
    closed = select(A.id).where(A.disabled.is_not(None))
    connection.execute(delete(secrets).where(S.account_id.in_(closed)))
    _keep_owned(connection, connection.scalar(select(A.submitter_id).where(A.id == account_id)))
    return all_accounts(connection, A.made_by == account_id)


def reopen(connection: Connection, name: str) -> str:
    """Open an account that was closed, and those that were closed with it; return its label. Raises RefusedError."""
    own = account_named(connection, name, closed=True)
    together = (A.made_by == own.id) & (A.disabled == own.disabled)
    connection.execute(update(accounts).where((A.id == own.id) | together).values(disabled=None))
    return own.label


# Teams


def move(connection: Connection, one: Account, team: str) -> None:
    """Move an account to a team, which is made if there is none, or with "" out of its team.

    Without a team, its sessions, tokens and links end at once. The submissions stay with the team. Raises
    RefusedError for a name that looks like another one's, RejectedError for a name that is not allowed.
    """
    team_id = _team_id(connection, team, team) if team else None
    scope = team_id or one.scope if one.scope else 0
    if team_id is None:
        connection.execute(delete(secrets).where(S.account_id == one.id))
    else:
        _check_free(connection, one.name, scope, team_id, one.id)
    own = update(accounts).where(A.id == one.id)
    connection.execute(own.values(submitter_id=team_id, scope=scope, owner=False))
    _keep_owned(connection, one.submitter_id)
    _keep_owned(connection, team_id)


def _keep_owned(connection: Connection, team_id: int | None) -> None:
    """Let the oldest account of a team own it, if nobody does."""
    members = members_of(connection, team_id)
    if members and not any(member.owner for member in members):
        hand_over(connection, min(member.id for member in members))


def hand_over(connection: Connection, new: int, old: int = 0) -> None:
    """Let an account own its team, and the ``old`` owner no longer."""
    connection.execute(update(accounts).where(A.id.in_((new, old))).values(owner=A.id == new))


def change_team(boards: Iterable[Board], name: str, new: str, now: datetime, *, merge: bool) -> None:
    """Rename a team on all boards with the same accounts, or ``merge`` it into the team with the ``new`` name.

    A merged team's submissions, uploads, members and extensions are the other's then; for a phase in which both have
    an extension, the other's holds. Raises RefusedError for an unknown team, for a name that is taken or looks like
    another one's, and while a worker has an upload of the team; RejectedError for a name that is not allowed.
    """
    check_name(new)
    with ExitStack() as stack:
        pairs = []
        for board in {board.place: board for board in boards}.values():
            connection = stack.enter_context(board.writing())
            old = connection.execute(select(submitters).where(Submitters.key == casefolded(name))).first()
            other = find_similar(connection, new, but=old.id if old else 0)
            if other and not merge:
                refuse_taken_team(connection, other.name)
            if other and other.key != casefolded(new):
                _refuse_similar(new, other.name)
            pairs.append((board, connection, old, other))
        if not any(old for _, _, old, _ in pairs) or (merge and not any(other for *_, other in pairs)):
            raise RefusedError(
                f"there is no team `{visible(name)}`" + (f", or no team `{visible(new)}`" if merge else "")
            )
        for board, connection, old, other in pairs:
            if old is None:
                continue
            teams = [one.id for one in (old, other) if one]
            leased = select(Jobs.id).where(Jobs.submitter_id.in_(teams), Jobs.leased_until.is_not(None))
            if connection.execute(leased).first() is not None:
                raise RefusedError("an upload of the team is being checked; try again in a minute")
            if other is None:
                connection.execute(update(submitters).where(Submitters.id == old.id).values(_named(new)))
            else:
                # On a board that shares accounts, a copied scope is an id of the shared database.
                own_scope = (A.submitter_id == old.id) | (A.scope == old.id)
                for one in all_accounts(connection, own_scope, closed=True) if board is pairs[0][0] else ():
                    scope = other.id if one.scope == old.id else one.scope
                    _check_free(connection, one.name, scope, other.id, one.id)
                    connection.execute(update(accounts).where(A.id == one.id).values(scope=scope))
                own = exceptions.c.submitter_id
                kept = select(exceptions.c.phase).where(own == other.id)
                connection.execute(delete(exceptions).where(own == old.id, exceptions.c.phase.in_(kept)))
                for table in (accounts, exceptions, jobs, submissions):
                    is_old = table.c.submitter_id == old.id
                    connection.execute(update(table).where(is_old).values(submitter_id=other.id))
                connection.execute(delete(submitters).where(Submitters.id == old.id))
            if board.settings.tests:
                refresh(connection, board.settings, now)


# Boards that share accounts


def check_shares(board: Board, shared: Board) -> None:
    """Raise UsageError if somebody signs in to a board that shares the accounts of others."""
    with board.reading() as connection:
        if board.place != shared.place and connection.execute(select(S.id)).first() is not None:
            raise UsageError(
                message=f"{named(board.folder)} has accounts of its own, but shares those of {named(shared.folder)}\n"
                f"  to share its accounts, name its database in {named(os.path.join(shared.folder, SHARED_FILE))}"
            )


def copied(board: Board, shared: Board, account_id: int) -> Account | None:
    """Return an account as it is on a board that shares accounts with others; None if it is closed.

    The board's own row, which its jobs refer to, is made or brought up to date first.
    """
    columns = [A[name] for name in COPIED]
    query = select(*columns, Submitters.key, Submitters.name.label("team")).where(A.id == account_id)
    query = query.outerjoin_from(accounts, submitters)
    with shared.reading() as connection:
        *own, team = connection.execute(query).one()
    with board.reading() as connection:
        row = connection.execute(query).first()
        if row is not None and list(row)[:-1] == own:
            return account(connection, account_id)
    with board.writing() as connection:
        values = dict(zip(columns, own, strict=False)) | {A.key: str(account_id)}
        values[A.submitter_id] = _team_id(connection, team, team) if team else None
        if not connection.execute(update(accounts).where(A.id == account_id).values(values)).rowcount:
            connection.execute(insert(accounts).values(values | {A.id: account_id}))
        return account(connection, account_id)


# Invitations


def invite(
    connection: Connection,
    name: str,
    *,
    now: datetime,
    email: str = "",
    role: str = "",
    team: str = "",
    by: Account | None = None,
    change: bool = False,
    days: int | None = None,
) -> Invitation:
    """Make a link, by the organiser, that signs in to the account of a person, which is made if there is none.

    A person is identified by the e-mail address, else by the name that the organiser gave. Their account must have
    the given role and team, or is to ``change``. A new account is a submitter's by default, and its team has the same
    name. All sessions and earlier links of an account end. Raises RefusedError, also for a name that looks like
    another one's; RejectedError for a name that is not allowed, UsageError for an unknown role or impossible address.
    """
    if role and role not in ROLES:
        raise UsageError(message=f"there is no role `{visible(role)}`: the roles are {', '.join(ROLES)}")
    check_email(email)
    check_name(name)
    own = _person(connection, name, email, team)
    if own is None:
        role = role or SUBMITTER
        team_id = _team_id(connection, team, name) if team or role == SUBMITTER else None
        made_by = by.id if by else None
        new = _new_account(connection, name, team_id, now, email=email, role=role, owner=True, made_by=made_by)
        return Invitation(_link(connection, new, now, days), new)
    if own.disabled:
        raise RefusedError(f"{own}\n  open it again with geval board open")
    differences = [
        ("name", casefolded(name) != casefolded(own.name)),
        ("e-mail address", email.lower() not in ("", own.email.lower())),
        ("role", role not in ("", own.role)),
        ("team", team and (not own.team or casefolded(team) != casefolded(own.team))),
        ("maker", own.scope),
    ]
    differing = [what for what, differs in differences if differs]
    if differing and not change:
        ways = "give another person another name, or choose to change the account (--update)"
        raise RefusedError(f"{own}\n  different from yours: {', '.join(differing)}; {ways}")
    if differing:
        if {"e-mail address", "maker"}.intersection(differing):  # it may become another person's
            connection.execute(delete(secrets).where(S.account_id == own.id))
            connection.execute(delete(identities).where(identities.c.account_id == own.id))
        values = _named(name) | {"email": email or own.email, "role": role or own.role, "scope": 0}
        if "team" in differing or (values["role"] == SUBMITTER and not own.team):
            values |= {"submitter_id": _team_id(connection, team, name), "owner": True}
        _check_free(connection, name, 0, values.get("submitter_id", own.submitter_id), own.id)
        connection.execute(update(accounts).where(A.id == own.id).values(values))
        own = _unmistakable(connection, own.id)
    return Invitation(_link(connection, own, now, days), own, ", ".join(["again", *differing]))


def new_link(connection: Connection, account_id: int, now: datetime) -> Invitation:
    """Make a new link for an account; its sessions and earlier links end. Raises RefusedError if it is closed."""
    own = _open_account(connection, account_id)
    return Invitation(_link(connection, own, now), own, "again")


def links_table(invitations: Iterable[Invitation], address: str) -> Table:
    """Return the links of invitations with the people, for a program that sends mail."""
    people = ((one.account, f"{address}/invitation/{one.secret}") for one in invitations)
    rows = [(one.name, one.email, one.team, one.role, link) for one, link in people]
    return plain_table(words("name email team role link"), rows)


def invite_member(connection: Connection, owner: Account, name: str, now: datetime) -> Invitation:
    """Make a link by the owner of a team; the name is the team's alone. Raises RefusedError, RejectedError."""
    if not (owner.owner and owner.submitter_id):
        raise RefusedError("only the owner of a team can invite people into it")
    check_name(name)
    for one in all_accounts(connection, A.submitter_id == owner.submitter_id, A.key == casefolded(name), closed=True):
        if not one.scope or one.joined or one.disabled:
            raise RefusedError(f"your team has a member `{visible(name)}` already; ask the organiser")
        return Invitation(_link(connection, one, now), one, "again")
    new = _new_account(connection, name, owner.submitter_id, now, scope=owner.submitter_id, made_by=owner.id)
    return Invitation(_link(connection, new, now), new)


def _person(connection: Connection, name: str, email: str, team: str) -> Account | None:
    """Return the account, perhaps closed, of a person whom the organiser names."""
    key = casefolded(name)
    by = [func.lower(A.email) == email.lower()] if email else []
    by.append((A.key == key) & (A.scope == 0))
    submitter = find_similar(connection, team) if team else None
    if submitter is not None:
        by.append((A.key == key) & (A.submitter_id == submitter.id))
    return next((one for condition in by for one in all_accounts(connection, condition, closed=True)), None)


def _team_id(connection: Connection, team: str, name: str) -> int:
    """Return the id of a team for a person with a name; without the name of a team, it is theirs alone."""
    submitter = find_similar(connection, team or name)
    if submitter is not None and submitter.key != casefolded(team or name):
        _refuse_similar(team or name, submitter.name)
    if submitter is not None and not team:
        members = all_accounts(connection, A.submitter_id == submitter.id, closed=True)
        if members:
            names = ", ".join(f"`{visible(one.label)}`" for one in members)
            raise RefusedError(f"there is a team `{visible(name)}` already, with {names}; give another team")
    check_name(team or name)
    return submitter_id(connection, team or name)


def _refuse_similar(team: str, other: str) -> NoReturn:
    like = f"looks like the team `{visible(other)}`; give the same name, or one that differs more"
    raise RefusedError(f"the team `{visible(team)}` {like}")


def _check_free(connection: Connection, name: str, scope: int, team_id: int | None, own: int | None) -> None:
    """Raise RefusedError unless a name differs from those of its scope and team, except the ``own`` account's."""
    marks = skeletons(name)
    if not marks.isdisjoint(skeletons(ORGANISER)):
        raise RefusedError(f"an account cannot have the name `{visible(name)}`: the audit log uses it")
    for one in all_accounts(connection, (A.scope == scope) | (A.submitter_id == team_id), closed=True):
        if one.id != own and not marks.isdisjoint(skeletons(one.name)):
            is_same = casefolded(one.name) == casefolded(name)
            like = "is that of an account already" if is_same else f"looks like the account `{visible(one.label)}`"
            raise RefusedError(f"the name `{visible(name)}` {like}; give one that differs more")


def _new_account(
    connection: Connection, name: str, team_id: int | None, now: datetime, *, scope: int = 0, **values: Any
) -> Account:
    _check_free(connection, name, scope, team_id, None)
    values = {"role": SUBMITTER, "made": now, "scope": scope, "submitter_id": team_id} | _named(name) | values
    new = connection.execute(insert(accounts).values(values).returning(A.id)).scalar_one()
    return _unmistakable(connection, new)


def _unmistakable(connection: Connection, account_id: int) -> Account:
    """Return an account; raises RefusedError if its label is that of another one: `Jan (2)`, or `Jan` of team `2`."""
    own = _open_account(connection, account_id)
    for one in all_accounts(connection, A.id != account_id, closed=True):
        if casefolded(one.label) == casefolded(own.label):
            raise RefusedError(f"`{visible(own.label)}` is the name of an account already; give another one")
    return own


def _named(name: str) -> dict[str, Any]:
    return {"key": casefolded(name), "name": name}


def _link(connection: Connection, one: Account, now: datetime, days: int | None = None) -> str:
    """Return the secret of a link that signs in to an account, whose sessions and earlier links end."""
    connection.execute(delete(secrets).where(S.account_id == one.id, S.kind.in_((INVITATION, SESSION))))
    return issue(connection, INVITATION, now, account_id=one.id, days=days)


def refuse_taken_team(connection: Connection, name: str) -> None:
    """Raise RefusedError if a team has a name."""
    if find_similar(connection, name) is not None:
        raise RefusedError(f"there is a team `{visible(name)}` already; choose another name")


def check_email(email: str) -> None:
    """Raise UsageError unless this is "" or may be the address of a mailbox."""
    is_address = len(email) <= MAX_EMAIL and re.fullmatch(r"[!-~]+@[!-~]+", email) and not set('<>",;\\') & set(email)
    if email and not is_address:
        raise UsageError(message=f"`{visible(email)}` is not an e-mail address")


def accept(connection: Connection, secret: str, now: datetime) -> Account:
    """Use an invitation: return its account; raises RefusedError."""
    row = find(connection, INVITATION, secret, now)
    if row is None:
        raise RefusedError("this link was used or has expired; ask the organiser for another one")
    return _join(connection, row.account_id, now)


def _join(connection: Connection, account_id: int, now: datetime) -> Account:
    """Return an account to which somebody signs in; its links end. Raises RefusedError if it was closed."""
    connection.execute(delete(secrets).where(S.account_id == account_id, S.kind == INVITATION))
    connection.execute(update(accounts).where(A.id == account_id, A.joined.is_(None)).values(joined=now))
    return _open_account(connection, account_id)


def _open_account(connection: Connection, account_id: int) -> Account:
    """Return an account; raises RefusedError if it was closed."""
    match = account(connection, account_id)
    if match is None:
        raise RefusedError(CLOSED)
    return match


# Signing in by another site


def identified(connection: Connection, who: Identity, signed_in: int | None, now: datetime) -> Account | None:
    """Return the account of somebody whom another site knows; None if they have none.

    It is, in this order, the one that they signed in to before, the one with the id ``signed_in``, or the one with
    their address. Raises RefusedError if it was closed.
    """
    condition = (identities.c.issuer == who.issuer, identities.c.subject == who.subject)
    account_id = connection.execute(select(identities.c.account_id).where(*condition)).scalar()
    if account_id is not None:
        return _join(connection, account_id, now)
    match = account(connection, signed_in) if signed_in is not None else None
    if match is None and who.email:
        own = select(A.id).where(func.lower(A.email) == who.email.lower())
        account_id = connection.execute(own).scalar()
        match = None if account_id is None else _join(connection, account_id, now)
    if match is not None:
        _remember(connection, who, match, now)
    return match


def enrol(connection: Connection, who: Identity, name: str, now: datetime) -> Account:
    """Make an account for somebody whom another site knows; they submit for a new team of this name.

    The name is the team's alone: the organiser may give it to somebody else. Raises RejectedError for a name that is
    not allowed, RefusedError for one that is taken.
    """
    check_name(name)
    refuse_taken_team(connection, name)
    team_id = submitter_id(connection, name)
    values = {"email": who.email, "owner": True, "joined": now}
    new = _new_account(connection, name, team_id, now, scope=team_id, **values)
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
    expires = now + timedelta(days=DAYS[SESSION])
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
    connection.execute(delete(rates).where(R.hour < hour - timedelta(hours=MAX_KEPT_HOURS)))
    this = update(rates).where(R.name == name, R.hour == hour)
    if not connection.execute(this.values(tries=R.tries + 1)).rowcount:
        connection.execute(insert(rates).values(name=name, hour=hour, tries=1))


def check_tries(connection: Connection, name: str, most: int, now: datetime) -> datetime:
    """Return the hour; raises TooOftenError if something was tried ``most`` times in it, or more.

    It only reads, so that what is refused takes no lock from those who write.
    """
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    tries = connection.execute(select(R.tries).where(R.name == name, R.hour == hour)).scalar()
    if tries is not None and tries >= most:
        end_of_hour = f"{hour + timedelta(hours=1):%H:%M} UTC"
        raise TooOftenError(f"more than {most} times in one hour; try again after {end_of_hour}")
    return hour


def log(connection: Connection, who: str, action: str, subject: str = "", detail: str = "", *, now: datetime) -> None:
    """Write a line of the audit log."""
    values = {"who": who, "action": action, "subject": subject, "detail": detail}
    connection.execute(insert(audit).values(moment=now, **values))
