"""The accounts of a board: who may sign in, made by invitation, with their teams and roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, insert, select, update

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
from geval_py.board.people.secrets import INVITATION, SESSION, S, end_secrets, issue
from geval_py.board.people.store import People
from geval_py.errors import ReasonError, UsageError
from geval_py.tables.table import Table, plain_table
from geval_py.text import visible, words

MAX_EMAIL = 254  # characters, RFC 5321
A = accounts.c


class RefusedError(ReasonError):
    """Somebody may not do what they ask for."""


class TooOftenError(RefusedError):
    """Something was tried too often in this hour."""


class Account(NamedTuple):
    """An account of a ``person`` on a board; ``team`` is the name of the team for which they submit, "" for none.

    ``made_by`` is the id of the account that invited them, "" for an organiser, or the issuer of another site with
    which they made the account themselves.
    """

    id: str
    person: str
    name: str
    team: str
    made: datetime
    email: str = ""
    student_id: str = ""
    role: str = SUBMITTER
    owner: bool = False
    mailed: bool = True
    made_by: str = ""
    joined: datetime | None = None
    closed: datetime | None = None
    board: str = ""

    @property
    def may_submit(self) -> bool:
        """Whether they have a team to submit for."""
        return self.role != READER and bool(self.team)

    @property
    def label(self) -> str:
        """The name, with the team unless they are the same: the labels of a board do not look alike."""
        return label_of(self.name, self.team)

    @property
    def state(self) -> str:
        """Whether it is closed, or invited and never used; "" otherwise."""
        return "closed" if self.closed else "" if self.joined else "invited"

    def __str__(self) -> str:
        """Return who this is, for the organiser."""
        about = filter(None, (self.role, self.team and f"team `{self.team}`", self.email))
        maker = "a participant" if self.made_by else "an organiser"
        text = f"`{self.name}` has an account: {', '.join(about)}, made by {maker} on {self.made:%Y-%m-%d}"
        state = f", closed on {self.closed:%Y-%m-%d}" if self.closed else "" if self.joined else ", never used"
        return visible(text + state)


ACCOUNTS = select(*A[Account._fields])


class Invitation(NamedTuple):
    """The secret of a link, and whose it is; ``detail``, for the audit log, is "" for an account that is new.

    ``columns`` are what else a class list says about the person.
    """

    secret: str
    account: Account
    detail: str = ""
    columns: Mapping[str, str] = {}

    @property
    def note(self) -> str:
        """What the organiser should know of an account that is not new."""
        is_renewed = self.detail and self.secret
        return f"{self.account}\n  its sessions and earlier links have ended" if is_renewed else ""


def label_of(name: str, team: str) -> str:
    """Return the label of an account with a name in a team, "" for none."""
    return name if casefolded(team or name) == casefolded(name) else f"{name} ({team})"


def all_accounts(people: People, *conditions: ColumnElement[bool], closed: bool = False) -> list[Account]:
    """Return the accounts of the board, or of all boards, with some conditions, by name; ``closed`` ones, too."""
    query = ACCOUNTS.where(people.has(A.board), *conditions).order_by(A.key, A.id)
    return list(map(Account._make, people.execute(query if closed else query.where(A.closed.is_(None)))))


def account(people: People, *conditions: ColumnElement[bool]) -> Account | None:
    """Return the open account of the board that fulfils some conditions, or None."""
    return next(iter(all_accounts(people, *conditions)), None)


def members_of(people: People, team: str) -> list[Account]:
    """Return the open accounts of a team, by name."""
    return all_accounts(people, A.team_key == casefolded(team)) if team else []


def accounts_named(people: People, name: str, *labels: str, closed: bool = False) -> list[Account]:
    """Return whom the organiser may mean: accounts with a label or an e-mail address, else with a name.

    The ``name`` may be the label. Names count only if an organiser gave them: an owner of a team takes any name.
    """
    marks = {label.casefold() for label in labels or (name,)} - {""}
    everybody = all_accounts(people, closed=closed)
    matches = [one for one in everybody if marks & {one.label.casefold(), one.email.casefold()}]
    return matches or all_accounts(people, A.key == casefolded(name), A.made_by == "", closed=closed)


def account_named(people: People, name: str, *, closed: bool = False) -> Account:
    """Return the account that the organiser names; raises RefusedError, which lists similar ones."""
    matches = accounts_named(people, name, closed=closed)
    if len(matches) != 1:
        namesakes = all_accounts(people, A.key == casefolded(name), closed=closed)
        labels = "".join(f", but `{visible(one.label)}`" for one in namesakes)
        raise RefusedError(f"there is no account `{visible(name)}`{labels}")
    return matches[0]


def new_account(people: People, name: str, team: str, now: datetime, **values: Any) -> Account:
    """Make an account; raises RefusedError for a label that is taken."""
    account_id, person = (token_hex(ID_LENGTH // 2) for _ in range(2))
    made = Account(account_id, person, name, team, now, board=people.board, **values)
    _save(people, made, now)
    return made


def _save(people: People, member: Account, now: datetime) -> None:
    """Store an account that is new or changed, with its membership from now on; raises RefusedError.

    The address and the label of an account are those of no other one, closed or not.
    """
    if ORGANISER in {written.casefold() for _, written in skeletons(member.name)}:
        raise RefusedError(f"an account cannot have the name `{visible(member.name)}`: the audit log uses it")
    shown = skeletons(member.label)
    others = select(A.email, A.name, A.team).where(people.has(A.board), A.id != member.id)
    for other in people.execute(others):
        label = label_of(other.name, other.team)
        if member.email and member.email.lower() == other.email.lower():
            raise RefusedError(f"{visible(member.email)} is the address of `{visible(label)}`")
        if not shown.isdisjoint(skeletons(label)):
            like = f"is or looks like the account `{visible(label)}`; give a name that differs more"
            raise RefusedError(f"`{visible(member.label)}` {like}")
    values = member._asdict() | {"key": casefolded(member.name), **_in_team(member.team)}
    if not people.execute(update(accounts).where(A.id == member.id).values(values)).rowcount:
        people.execute(insert(accounts).values(values))
    c = memberships.c
    people.execute(update(memberships).where(c.account == member.id, c.until.is_(None)).values(until=now))
    if member.team and not member.closed:
        values = {"account": member.id, "board": people.board, "since": now, **_in_team(member.team)}
        people.execute(insert(memberships).values(values))


def close(people: People, member: Account, now: datetime) -> None:
    """Close an account: it leaves its team, and its sessions, tokens and links end at once, with those that it made.

    The submissions stay, and so does the account of another site, which else could make a new account.
    """
    _save(people, member._replace(closed=now), now)
    end_secrets(people, S.person == member.person)
    end_secrets(people, S.made_by == member.id)
    _keep_owned(people, member.team)


def disconnect(people: People, member: Account, *conditions: ColumnElement[bool]) -> None:
    """End signing in to an account by other sites, or by those that fulfil some conditions."""
    c = identities.c
    people.execute(delete(identities).where(c.person == member.person, c.board == people.board, *conditions))


def reopen(people: People, member: Account, now: datetime, **changes: Any) -> Account:
    """Open an account that was closed, and return it; ``changes`` are a new name, e-mail address or role, or "".

    No other site signs in to it before it is connected again. Raises RefusedError, UsageError, RejectedError.
    """
    if not member.closed:
        raise RefusedError(f"{member}\n  to change it, close it first")
    member = member._replace(closed=None, **{key: value for key, value in changes.items() if value})
    _check_values(member.name, member.email, member.role)
    _save(people, member, now)
    disconnect(people, member)
    return member


# Teams


def move(people: People, member: Account, team: str, now: datetime, others: Iterable[str] = ()) -> None:
    """Move an account to a team; ``others`` are the teams that the board has. The submissions stay with the old team.

    Raises RefusedError for a name that looks like another one's, RejectedError for a name that is not allowed.
    """
    team = team_named(people, team, others)
    _save(people, member._replace(team=team, owner=False), now)
    end_secrets(people, S.made_by == member.id)
    _keep_owned(people, member.team)
    _keep_owned(people, team)


def hand_over(people: People, new: Account, old: Account) -> None:
    """Let an account own its team, and the ``old`` owner no longer, whose links end."""
    people.execute(update(accounts).where(A.id.in_((new.id, old.id))).values(owner=A.id == new.id))
    end_secrets(people, S.made_by == old.id)


def _keep_owned(people: People, team: str) -> None:
    """Let the oldest account of a team that may submit own it, if none of them does."""
    members = [member for member in members_of(people, team) if member.may_submit]
    if members and not any(member.owner for member in members):
        oldest = min(members, key=lambda member: (member.made, member.id))
        people.execute(update(accounts).where(A.id == oldest.id).values(owner=True))


def rename_team(people: People, team: str, new: str, now: datetime) -> None:
    """Move all accounts of a team, with closed ones and the past, to a team of another name; raises RefusedError."""
    is_old = A.team_key == casefolded(team)
    for member in all_accounts(people, is_old, closed=True):
        _save(people, member._replace(team=new), now)
    c = memberships.c
    was_old = c.board == people.board, c.team_key == casefolded(team)
    people.execute(update(memberships).where(*was_old).values(_in_team(new)))


def teams_of(people: People) -> list[str]:
    """Return the names of the teams that have accounts, closed ones too."""
    query = select(A.team).where(A.board == people.board, A.team != "")
    return list(people.execute(query.distinct().order_by(A.team)).scalars())


def team_named(people: People, team: str, others: Iterable[str] = (), *, new: bool = False) -> str:
    """Return the name of a team as the board writes it, which is the given one if there is none yet.

    Raises RefusedError for a name that looks like that of another team or, of a ``new`` team, is taken; RejectedError
    for one that is not allowed.
    """
    check_name(team)
    teams = {casefolded(name): name for name in (*others, *teams_of(people))}
    same = teams.get(casefolded(team), "")
    alike = next((name for name in teams.values() if not skeletons(name).isdisjoint(skeletons(team))), "")
    if alike and (new or not same):
        raise RefusedError(f"there is a team `{visible(alike)}` already; choose another name")
    return same or team


def members_at(people: People, moment: datetime) -> list[tuple[Account, str]]:
    """Return who was invited until a moment, closed ones too, with the team that each was in then, "" for none."""
    c = memberships.c
    was_then = c.board == people.board, c.since <= moment, c.until.is_(None) | (c.until > moment)
    teams = {row.account: row.team for row in people.execute(select(memberships).where(*was_then))}
    return [(one, teams.get(one.id, "")) for one in all_accounts(people, A.made <= moment, closed=True)]


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
    by: str = "",
    others: Iterable[str] = (),
    renew: bool = True,
) -> Invitation:
    """Make a link, by the organiser, that signs in to the account of a person, which is made if there is none.

    A person is identified by the e-mail address, else by the name and the team; a namesake with another address is
    another person. The account must be open, and have the given name, address, role and team. A new account is a
    submitter's by default, and its team has the same name. All sessions and earlier links of an account end, unless
    it is not to ``renew`` them: then the secret is "". ``by`` is the id of an organiser's account, and ``others`` are
    the teams that the board has. Raises RefusedError, also for a name that looks like another one's; RejectedError
    for a name that is not allowed, UsageError for an unknown role or impossible address.
    """
    role_or_default = role or SUBMITTER
    _check_values(name, email, role_or_default)
    given = {"name": name, "email": email, "role": role, "team": team}
    named = accounts_named(people, name, email, label_of(name, team), closed=True)
    matches = [one for one in named if not (email and one.email) or one.email.casefold() == email.casefold()]
    for person in matches[:1]:
        if person.closed:
            raise RefusedError(f"{person}\n  open it again with geval board open")
        pairs = [(value, getattr(person, key)) for key, value in given.items() if value]
        is_same = all(value and casefolded(value) == casefolded(wanted) for wanted, value in pairs)
        if not is_same or person.made_by or len(matches) > 1:
            raise RefusedError(
                f"{person}\n  it differs from what you give: "
                "give another person another name; to move this one, use geval board team --add; to change the "
                "rest, geval board close and open"
            )
        if student_id:
            people.execute(update(accounts).where(A.id == person.id).values(student_id=student_id))
        return Invitation(new_link(people, now, person, made_by=by) if renew else "", person, "again")
    if role_or_default == SUBMITTER and not team:
        team = team_named(people, name, new=True)
    if team:
        team = team_named(people, team, others)
    new = new_account(people, name, team, now, email=email, student_id=student_id, role=role_or_default, owner=True)
    return Invitation(new_link(people, now, new, made_by=by), new)


def invite_member(people: People, owner: Account, name: str, now: datetime) -> Invitation:
    """Make a link by the owner of a team for a new member; raises RefusedError, RejectedError."""
    if not (owner.owner and owner.may_submit):
        raise RefusedError("only the owner of a team can invite people into it")
    check_name(name)
    is_in_team = A.team_key == casefolded(owner.team)
    for member in all_accounts(people, is_in_team, A.key == casefolded(name), closed=True):
        if not member.made_by or member.state != "invited":
            raise RefusedError(f"your team has a member `{visible(name)}` already; ask the organiser")
        return Invitation(new_link(people, now, member, made_by=owner.id), member, "again")
    new = new_account(people, name, owner.team, now, made_by=owner.id)
    return Invitation(new_link(people, now, new, made_by=owner.id), new)


def new_link(people: People, now: datetime, *members: Account, made_by: str = "") -> str:
    """Return the secret of a link that signs in to the accounts of a person; their sessions and earlier links end."""
    person = members[0].person
    end_secrets(people, S.person == person, S.kind.in_((INVITATION, SESSION)))
    return issue(people, INVITATION, person, now, boards=[member.board for member in members], made_by=made_by)


def link_for_boards(people: People, members: Sequence[Account], now: datetime) -> str:
    """Return the secret of one link that signs in to the accounts of a person on all boards of a server."""
    person, ids = members[0].person, {member.person for member in members}
    for table in (accounts, secrets, identities):
        people.execute(update(table).where(table.c.person.in_(ids)).values(person=person))
    return new_link(People(people.connection, ""), now, *members)


def links_table(invitations: Sequence[Invitation], address: str) -> Table:
    """Return the links of invitations with the people and the other columns of a class list, for mail programs."""
    names, rows = words("name email team role student_id"), []
    for secret, who, _, columns in invitations:
        values = (getattr(who, name) for name in names)
        rows.append((*values, f"{address}/invitation/{secret}", *columns.values()))
    return plain_table([*names, "link", *(invitations[0].columns if invitations else ())], rows)


def _check_values(name: str, email: str, role: str) -> None:
    check_name(name)
    check_email(email)
    if role not in ROLES:
        raise UsageError(f"there is no role `{visible(role)}`: the roles are {', '.join(ROLES)}")


def check_email(email: str) -> None:
    """Raise UsageError unless this is "" or may be the address of a mailbox."""
    is_address = (
        len(email) <= MAX_EMAIL and re.fullmatch(r"[!-?A-~]+@[!-?A-~]+", email) and not set('<>",;\\') & set(email)
    )
    if email and not is_address:
        raise UsageError(f"`{visible(email)}` is not an e-mail address")


def log(people: People, who: str, action: str, subject: str = "", detail: str = "", *, now: datetime) -> None:
    """Write a line of the audit log of the accounts."""
    line = insert(account_log).values(board=people.board, moment=now, who=who, action=action)
    people.execute(line.values(subject=subject, detail=detail))
