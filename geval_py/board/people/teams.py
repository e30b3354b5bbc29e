"""Teams of a board, which are in two stores: their submissions in the board, their members in the accounts.

A change begins with the accounts. Each of its steps can be repeated: a change that was interrupted is finished by
repeating it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, select, update

from geval_py.board.database.schema import Submissions, Submitters, submissions, submitters
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.operations import audit
from geval_py.board.people import accounts
from geval_py.board.people.accounts import RefusedError
from geval_py.board.people.schema import ORGANISER
from geval_py.board.people.store import AccountStore
from geval_py.board.ranking.disclosure import changing
from geval_py.errors import UsageError
from geval_py.text import visible


def submitter_names(connection: Connection) -> list[str]:
    """Return the names of the submitters of a board."""
    return list(connection.scalars(select(Submitters.name)))


def rename(board: Board, store: AccountStore, name: str, new: str, now: datetime, *, who: str = ORGANISER) -> None:
    """Rename a team, and write into the audit log ``who`` did it.

    Raises RefusedError for an unknown team, for a name that is taken or looks like another one's, and while a worker
    has an upload of the team, which it would store under the old name; RejectedError for a name that is not allowed.
    """
    old_key, new_key = casefolded(name), casefolded(new)
    is_old = Submitters.key == old_key
    leased = (
        select(Submissions.id).join_from(submissions, submitters).where(is_old, Submissions.leased_until.is_not(None))
    )
    with board.reading() as connection:
        names = submitter_names(connection)
        if connection.execute(leased).first():
            raise RefusedError("an upload of the team is being checked; try again in a minute")
    with store.writing() as people:
        stores = [{casefolded(team) for team in teams} for teams in (names, accounts.teams_of(people))]
        if not any(old_key in keys for keys in stores):
            raise RefusedError(f"there is no team `{visible(name)}`")
        # Only a rename that was interrupted leaves the new name to the accounts alone, and the old one to the board.
        is_interrupted = new_key in stores[1] and old_key not in stores[1] and new_key not in stores[0]
        accounts.team_named(people, new, names, new=new_key != old_key and not is_interrupted)
        accounts.rename_team(people, name, new, now)
        accounts.log(people, who, "renamed", name, new, now=now)
    with changing(board, now) as connection:
        connection.execute(update(submitters).where(is_old).values(key=new_key, name=new))


def disqualify(board: Board, store: AccountStore, teams: Sequence[str], reason: str, now: datetime) -> list[str]:
    """Close the accounts of teams, and withdraw all their submissions; return the names. All teams, or none.

    Raises UsageError without a reason, RefusedError for an unknown team.
    """
    if not reason.strip():
        raise UsageError("a disqualification needs a reason, which `geval board status` shows")
    with board.reading() as connection:
        names = submitter_names(connection)
    with store.writing() as people:
        known = {casefolded(name): name for name in (*accounts.teams_of(people), *names)}
        for team in teams:
            if casefolded(team) not in known:
                raise RefusedError(f"there is no team `{visible(team)}`")
            for member in accounts.members_of(people, team):
                accounts.close(people, member, now)
                accounts.log(people, ORGANISER, "closed", member.label, now=now)
    with changing(board, now) as connection:
        for key in map(casefolded, teams):
            ids = select(Submitters.id).where(Submitters.key == key)
            is_theirs = Submissions.submitter_id.in_(ids), Submissions.withdrawn.is_(None)
            values = {"withdrawn": now, "withdrawal": f"disqualified: {reason}"}
            connection.execute(update(submissions).where(*is_theirs).values(values))
            audit.log(connection, ORGANISER, "disqualified", known[key], reason, now=now)
    return [known[casefolded(team)] for team in teams]
