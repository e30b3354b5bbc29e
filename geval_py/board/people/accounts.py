"""The accounts of a board: who may sign in, made by invitation, with their teams and roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from secrets import token_hex
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, func, insert, select, update

from geval_py.board.intake.identity import casefolded, check_name, skeletons
from geval_py.board.people.schema import (
    ID_LENGTH,
    ORGANISER,
    READER,
    ROLES,
    SUBMITTER,
    account_log,
    accounts,
    identities,
    memberships,
    secrets,
)
from geval_py.board.people.secrets import INVITATION, SESSION, end_links_by, end_secrets, issue
from geval_py.board.people.store import People
from geval_py.board.submission import ReasonError
from geval_py.errors import UsageError
from geval_py.tables.table import Table, plain_table
from geval_py.text import visible, words

MAX_EMAIL = 254  # characters, RFC 5321
CLOSED = "this account was closed by the organiser"
A = accounts.c


class RefusedError(ReasonError):
    """Somebody may not do what they ask for."""


class TooOftenError(RefusedError):
    """Something was tried too often in this hour."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account of a ``person`` on a board; ``team`` is the name of the team for which they submit, "" for none.

    ``maker`` is who invited them, "" for the command line; people who made their own account are its ``maker``.
    """

    id: str
    person: str
    name: str
    email: str
    student_id: str
    role: str
    team: str
    owner: bool
    mailed: bool
    made_by: str
    maker: str
    made: datetime
    joined: datetime | None
    closed: datetime | None

    @property
    def may_submit(self) -> bool:
        """Whether they have a team to submit for."""
        return self.role != READER and bool(self.team)

    @property
    def suffix(self) -> str:
        """The team, which tells namesakes apart, unless it has the name of the person."""
        if not self.team and self.role == SUBMITTER:
            return "no team"
        return "" if casefolded(self.team or self.name) == casefolded(self.name) else self.team

    @property
    def label(self) -> str:
        """The name with the team: no two accounts of a board have the same."""
        return f"{self.name} ({self.suffix})" if self.suffix else self.name

    @property
    def state(self) -> str:
        """Whether it is closed, or invited and never used; "" otherwise."""
        return "closed" if self.closed else "" if self.joined else "invited"

    def __str__(self) -> str:
        """Return who this is, for the organiser."""
        about = filter(None, (self.role, self.team and f"team `{self.team}`", self.email))
        maker = "themself" if self.made_by == self.id else f"`{self.maker}`" if self.maker else "the organiser"
        never = "" if self.joined else ", never used"
        text = f"`{self.name}` has an account: {', '.join(about)}, made by {maker} on {self.made:%Y-%m-%d}{never}"
        return visible(text + (f", closed on {self.closed:%Y-%m-%d}" if self.closed else ""))


class Invitation(NamedTuple):
    """The secret of a link, and whose it is; ``detail``, for the audit log, is "" for an account that is new."""

    secret: str
    account: Account
    detail: str = ""

    @property
    def note(self) -> str:
        """What the organiser should know of an account that is not new."""
        return f"{self.account}\n  its sessions and earlier links have ended" if self.detail else ""


def all_accounts(people: People, *conditions: ColumnElement[bool], closed: bool = False) -> list[Account]:
    """Return the accounts of the board that fulfil some conditions, by name; ``closed`` ones, too."""
    makers = accounts.alias("makers")
    columns = [A[field.name] for field in fields(Account) if field.name in A]
    query = select(*columns, func.coalesce(makers.c.name, "").label("maker"))
    query = query.outerjoin(makers, makers.c.id == A.made_by).order_by(A.key, A.id)
    if not closed:
        query = query.where(A.closed.is_(None))
    rows = people.execute(query.where(A.board == people.board, *conditions)).mappings()
    return [Account(**dict(row)) for row in rows]


def account(people: People, *conditions: ColumnElement[bool]) -> Account | None:
    """Return the open account of the board that fulfils some conditions, or None."""
    return next(iter(all_accounts(people, *conditions)), None)


def account_named(people: People, name: str, *, closed: bool = False) -> Account:
    """Return the account with a label, an e-mail address or a name that the organiser gave; raises RefusedError."""
    everybody = all_accounts(people, closed=closed)
    matches = [one for one in everybody if name and name in (one.label, one.email)]
    namesakes = [one for one in everybody if name and casefolded(one.name) == casefolded(name)]
    matches = matches or [one for one in namesakes if _is_by_organiser(people, one)]
    if len(matches) != 1:
        others = "".join(f", but `{visible(one.label)}`" for one in matches or namesakes)
        raise RefusedError(f"there is no account `{visible(name)}`{others}")
    return matches[0]


def members_of(people: People, team: str) -> list[Account]:
    """Return the open accounts of a team, by name."""
    return all_accounts(people, A.team_key == casefolded(team)) if team else []


def close(people: People, member: Account, now: datetime) -> list[Account]:
    """Close an account, and those that it invited and nobody has used; return the others that it invited.

    Their sessions, tokens, links and sign-ins by other sites end at once, their submissions stay.
    """
    unused = (A.made_by == member.id) & A.joined.is_(None)
    closing = all_accounts(people, (A.id == member.id) | unused)
    people.execute(update(accounts).where(A.id.in_([one.id for one in closing])).values(closed=now))
    for one in closing:
        _end_access(people, one)
    _keep_owned(people, member.team)
    return all_accounts(people, A.made_by == member.id, A.id != member.id)


def reopen(people: People, name: str) -> str:
    """Open an account that was closed, and those that were closed with it; return its label. Raises RefusedError."""
    closed = account_named(people, name, closed=True)
    together = (A.made_by == closed.id) & (A.closed == closed.closed)
    people.execute(update(accounts).where((A.id == closed.id) | together).values(closed=None))
    return closed.label


def _end_access(people: People, member: Account) -> None:
    """End all by which somebody signs in to an account, and the links that they made."""
    end_secrets(people, member.person)
    end_links_by(people, member.id)
    is_theirs = identities.c.person == member.person, identities.c.board == people.board
    people.execute(delete(identities).where(*is_theirs))


# Teams


def move(people: People, member: Account, team: str, now: datetime, others: Iterable[str] = ()) -> None:
    """Move an account to a team, or with "" out of its team; ``others`` are the teams that the board has.

    Without a team, its sessions, tokens and links end at once. The submissions stay with the team. Raises
    RefusedError for a name that looks like another one's, RejectedError for a name that is not allowed.
    """
    if team:
        team = known_team(people, team, others) or team
        _check_free(people, member.name, team, but=member.id)
        end_links_by(people, member.id)
    else:
        _end_access(people, member)
    _set_team(people, member.id, team, now)
    people.execute(update(accounts).where(A.id == member.id).values(owner=False))
    _keep_owned(people, member.team)
    _keep_owned(people, team)


def hand_over(people: People, new: Account, old: Account) -> None:
    """Let an account own its team, and the ``old`` owner no longer, whose links end."""
    people.execute(update(accounts).where(A.id.in_((new.id, old.id))).values(owner=A.id == new.id))
    end_links_by(people, old.id)


def _keep_owned(people: People, team: str) -> None:
    """Let the oldest account of a team own it, if nobody does."""
    members = members_of(people, team)
    if members and not any(member.owner for member in members):
        oldest = min(members, key=lambda member: (member.made, member.id))
        people.execute(update(accounts).where(A.id == oldest.id).values(owner=True))


def rename_team(people: People, team: str, new: str) -> None:
    """Move the accounts of a team, closed ones too, to the team with the ``new`` name; raises RefusedError."""
    for member in all_accounts(people, A.team_key == casefolded(team), closed=True):
        if casefolded(new) != casefolded(team):
            _check_free(people, member.name, new, but=member.id)
        people.execute(update(accounts).where(A.id == member.id).values(_in_team(new)))
    was_theirs = memberships.c.board == people.board, memberships.c.team_key == casefolded(team)
    people.execute(update(memberships).where(*was_theirs).values(_in_team(new)))


def teams_of(people: People) -> list[str]:
    """Return the names of the teams that have accounts, closed ones too."""
    return sorted({member.team for member in all_accounts(people, A.team != "", closed=True)})


def known_team(people: People, team: str, others: Iterable[str] = ()) -> str:
    """Return the name of a team of the board as it is written there; "" if there is none.

    Raises RefusedError for a name that looks like that of another team, RejectedError for one that is not allowed.
    """
    check_name(team)
    teams = [*others, *teams_of(people)]
    same = [other for other in teams if casefolded(other) == casefolded(team)]
    alike = [other for other in teams if not skeletons(other).isdisjoint(skeletons(team))]
    if alike and not same:
        like = f"looks like the team `{visible(alike[0])}`; give the same name, or one that differs more"
        raise RefusedError(f"the team `{visible(team)}` {like}")
    return same[0] if same else ""


def refuse_taken_team(people: People, team: str, others: Iterable[str] = (), *, but: str = "") -> None:
    """Raise RefusedError if there is a team with a name or one that looks like it, ``but`` for one; RejectedError."""
    check_name(team)
    for other in (*others, *teams_of(people)):
        if (not but or casefolded(other) != casefolded(but)) and not skeletons(other).isdisjoint(skeletons(team)):
            raise RefusedError(f"there is a team `{visible(other)}` already; choose another name")


def members_at(people: People, moment: datetime) -> list[tuple[Account, str]]:
    """Return who was invited until a moment, closed ones too, with the team that each was in then, "" for none."""
    c = memberships.c
    was_then = c.board == people.board, c.since <= moment, c.until.is_(None) | (c.until > moment)
    teams = {row.account: row.team for row in people.execute(select(memberships).where(*was_then))}
    return [(one, teams.get(one.id, "")) for one in all_accounts(people, A.made <= moment, closed=True)]


def _set_team(people: People, account_id: str, team: str, now: datetime) -> None:
    """Put an account into a team, "" for none, and keep in which it was before."""
    people.execute(update(accounts).where(A.id == account_id).values(_in_team(team)))
    is_current = memberships.c.account == account_id, memberships.c.until.is_(None)
    people.execute(update(memberships).where(*is_current).values(until=now))
    if team:
        values = {"account": account_id, "board": people.board, "since": now, **_in_team(team)}
        people.execute(insert(memberships).values(values))


def _in_team(team: str) -> dict[str, str]:
    return {"team": team, "team_key": casefolded(team) if team else ""}


# Invitations


def invite(
    people: People,
    name: str,
    *,
    now: datetime,
    email: str = "",
    role: str = "",
    team: str = "",
    student_id: str = "",
    by: Account | None = None,
    others: Iterable[str] = (),
    days: int | None = None,
) -> Invitation:
    """Make a link, by the organiser, that signs in to the account of a person, which is made if there is none.

    A person is identified by the e-mail address, else by the name and the team. An open account must have the given
    role and team; a closed one gets what is different, and is open again. A new account is a submitter's by default,
    and its team has the same name. All sessions and earlier links of an account end. ``others`` are the teams that
    the board has. Raises RefusedError, also for a name that looks like another one's; RejectedError for a name that
    is not allowed, UsageError for an unknown role or impossible address.
    """
    if role and role not in ROLES:
        raise UsageError(message=f"there is no role `{visible(role)}`: the roles are {', '.join(ROLES)}")
    check_email(email)
    check_name(name)
    made_by = by.id if by else ""
    person = _person(people, name, email, team)
    differing = [] if person is None else _differences(people, person, name, email, role, team)
    if person is not None and person.closed and not differing:
        raise RefusedError(f"{person}\n  open it again with geval board open")
    if person is not None and differing and not person.closed:
        ways = "give another person another name, or close the account and invite again"
        raise RefusedError(f"{person}\n  different from yours: {', '.join(differing)}; {ways}")
    if person is not None and not person.closed:
        if student_id:
            people.execute(update(accounts).where(A.id == person.id).values(student_id=student_id))
        return Invitation(new_link(people, person, now, days=days, made_by=made_by), person, "again")
    role = role or (person.role if person else SUBMITTER)
    joined_team = ""
    if team or role == SUBMITTER:
        joined_team = known_team(people, team or name, others)
        members = [] if team else all_accounts(people, A.team_key == casefolded(name), closed=True)
        if members and [one.id for one in members] != [person.id if person else ""]:
            names = ", ".join(f"`{visible(one.label)}`" for one in members)
            raise RefusedError(f"there is a team `{visible(name)}` already, with {names}; give another team")
        joined_team = joined_team or team or name
    values = {"email": email or (person.email if person else ""), "role": role, "owner": True, "made_by": made_by}
    values["student_id"] = student_id or (person.student_id if person else "")
    new = new_account(people, name, joined_team, now, again=person, **values)
    detail = ", ".join(["again", *differing]) if person else ""
    return Invitation(new_link(people, new, now, days=days, made_by=made_by), new, detail)


def _person(people: People, name: str, email: str, team: str) -> Account | None:
    """Return the account, perhaps closed, of a person whom the organiser names."""
    is_named = A.key == casefolded(name)
    namesakes = [one for one in all_accounts(people, is_named, closed=True) if _is_by_organiser(people, one)]
    conditions = [func.lower(A.email) == email.lower()] if email else []
    conditions.append(is_named & (A.team_key == casefolded(team or name)))
    conditions += [A.id == one.id for one in namesakes]
    matches = (one for condition in conditions for one in all_accounts(people, condition, closed=True))
    return next(matches, None)


def _differences(people: People, person: Account, name: str, email: str, role: str, team: str) -> list[str]:
    differences = [
        ("name", casefolded(name) != casefolded(person.name)),
        ("e-mail address", email.lower() not in ("", person.email.lower())),
        ("role", role not in ("", person.role)),
        ("team", team and (not person.team or casefolded(team) != casefolded(person.team))),
        ("maker", not _is_by_organiser(people, person)),
    ]
    return [what for what, differs in differences if differs]


def _is_by_organiser(people: People, person: Account) -> bool:
    """Return whether an organiser, here or on the command line, made an account, and so chose its name."""
    maker = all_accounts(people, A.id == person.made_by, A.role == ORGANISER, closed=True)
    return not person.made_by or (person.made_by != person.id and bool(maker))


def invite_member(people: People, owner: Account, name: str, now: datetime) -> Invitation:
    """Make a link by the owner of a team for a new member; raises RefusedError, RejectedError."""
    if not (owner.owner and owner.may_submit):
        raise RefusedError("only the owner of a team can invite people into it")
    check_name(name)
    is_member = A.team_key == casefolded(owner.team)
    members = {member.id for member in all_accounts(people, is_member)}
    for member in all_accounts(people, is_member, A.key == casefolded(name), closed=True):
        if member.made_by not in members or member.joined or member.closed:
            raise RefusedError(f"your team has a member `{visible(name)}` already; ask the organiser")
        return Invitation(new_link(people, member, now, made_by=owner.id), member, "again")
    new = new_account(people, name, owner.team, now, made_by=owner.id)
    return Invitation(new_link(people, new, now, made_by=owner.id), new)


def new_account(
    people: People, name: str, team: str, now: datetime, *, again: Account | None = None, **values: Any
) -> Account:
    """Make an account, or open one ``again`` with other values; raises RefusedError for a name that is taken."""
    account_id = again.id if again else token_hex(ID_LENGTH // 2)
    _check_free(people, name, team, but=account_id)
    values = {"role": SUBMITTER, "key": casefolded(name), "name": name} | values
    if again:
        people.execute(update(accounts).where(A.id == account_id).values(**values, closed=None))
    else:
        values |= {"id": account_id, "board": people.board, "person": token_hex(ID_LENGTH // 2), "made": now}
        people.execute(insert(accounts).values(values | _in_team(team)))
    _set_team(people, account_id, team, now)
    (made,) = all_accounts(people, A.id == account_id)
    return made


def _check_free(people: People, name: str, team: str, *, but: str) -> None:
    """Raise RefusedError if a name looks like that of another account which is shown with the same team."""
    marks = skeletons(name)
    if not marks.isdisjoint(skeletons(ORGANISER)):
        raise RefusedError(f"an account cannot have the name `{visible(name)}`: the audit log uses it")
    suffix = "" if casefolded(team or name) == casefolded(name) else casefolded(team)
    label = f"{name} ({team})" if suffix else name
    for other in all_accounts(people, A.id != but, closed=True):
        if label.casefold() == other.label.casefold() and casefolded(name) != casefolded(other.name):
            raise RefusedError(f"`{visible(label)}` is the name of an account already; give another one")
        is_beside = suffix == (casefolded(other.suffix) if other.suffix else "")
        is_member = team and other.team and casefolded(team) == casefolded(other.team)
        if (is_beside or is_member) and not marks.isdisjoint(skeletons(other.name)):
            is_same = casefolded(other.name) == casefolded(name)
            like = "is that of an account already" if is_same else f"looks like the account `{visible(other.label)}`"
            raise RefusedError(f"the name `{visible(name)}` {like}; give one that differs more")


def new_link(people: People, member: Account, now: datetime, *, made_by: str = "", days: int | None = None) -> str:
    """Return the secret of a link that signs in to an account, whose sessions and earlier links end."""
    end_secrets(people, member.person, INVITATION, SESSION)
    return issue(people, INVITATION, member.person, now, days=days, made_by=made_by)


def link_for_boards(people: People, members: Sequence[Account], now: datetime) -> str:
    """Return the secret of one link that signs in to the accounts of a person on all boards of a server."""
    person, ids = members[0].person, {member.person for member in members}
    for table in (accounts, secrets, identities):
        people.execute(update(table).where(table.c.person.in_(ids)).values(person=person))
    return new_link(People(people.connection, ""), members[0], now)


def links_table(invitations: Iterable[Invitation], address: str, others: Sequence[Mapping[str, str]] = ()) -> Table:
    """Return the links of invitations with the people, and the ``others`` of their values, for a program of mail."""
    people = ((one.account, f"{address}/invitation/{one.secret}") for one in invitations)
    rows = [(one.name, one.email, one.team, one.role, link) for one, link in people]
    names = [*others[0]] if others else []
    more = [tuple(other.values()) for other in others] or [()] * len(rows)
    whole = [(*row, *values) for row, values in zip(rows, more, strict=True)]
    return plain_table([*words("name email team role link"), *names], whole)


def check_email(email: str) -> None:
    """Raise UsageError unless this is "" or may be the address of a mailbox."""
    is_address = len(email) <= MAX_EMAIL and re.fullmatch(r"[!-~]+@[!-~]+", email) and not set('<>",;\\') & set(email)
    if email and not is_address:
        raise UsageError(message=f"`{visible(email)}` is not an e-mail address")


def log(people: People, who: str, action: str, subject: str = "", detail: str = "", *, now: datetime) -> None:
    """Write a line of the audit log of the accounts."""
    values = {"who": who, "action": action, "subject": subject, "detail": detail, "board": people.board}
    people.execute(insert(account_log).values(moment=now, **values))
