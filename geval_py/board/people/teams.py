"""Teams of a board, which are in two stores: their submissions in the board, their members in the accounts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, Row, delete, select, update

from geval_py.board.database.schema import Submissions, Submitters, exceptions, submissions, submitters
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.operations import audit
from geval_py.board.people.accounts import (
    RefusedError,
    close,
    known_team,
    log,
    members_of,
    refuse_taken_team,
    rename_team,
    teams_of,
)
from geval_py.board.people.schema import ORGANISER
from geval_py.board.people.store import AccountStore
from geval_py.board.ranking.disclosure import changing
from geval_py.errors import UsageError
from geval_py.text import visible


def submitter_names(connection: Connection) -> list[str]:
    """Return the names of the submitters of a board."""
    return list(connection.execute(select(Submitters.name)).scalars())


def change_team(connection: Connection, store: AccountStore, name: str, new: str, *, merge: bool = False) -> None:
    """Rename a team, or ``merge`` it into the team with the ``new`` name.

    A merged team's submissions, uploads, members and extensions are the other's then; for a phase in which both have
    an extension, the other's holds. Raises RefusedError for an unknown team, for a name that is taken or looks like
    another one's, and while a worker has an upload of the team; RejectedError for a name that is not allowed.
    """
    key = casefolded(name)
    rows = {row.key: row for row in connection.execute(select(submitters))}
    with store.reading() as people:
        teams = {casefolded(team): team for team in teams_of(people)}
        others = [row.name for row in rows.values() if row.key != key]
        target = known_team(people, new, others) if merge else ""
        if (key not in rows and key not in teams) or (merge and not target):
            unknown = f", or no team `{visible(new)}`" if merge else ""
            raise RefusedError(f"there is no team `{visible(name)}`{unknown}")
        if not merge:
            refuse_taken_team(people, new, others, but=name)
    old, other = rows.get(key), rows.get(casefolded(new)) if merge else None
    ids = [row.id for row in (old, other) if row is not None]
    leased = select(Submissions.id).where(Submissions.submitter_id.in_(ids), Submissions.leased_until.is_not(None))
    if connection.execute(leased).first() is not None:
        raise RefusedError("an upload of the team is being checked; try again in a minute")
    if old is not None and other is not None and old.id != other.id:
        _merge_rows(connection, old, other)
    elif old is not None:
        values = {"key": casefolded(new), "name": target or new}
        connection.execute(update(submitters).where(Submitters.id == old.id).values(values))
    with store.writing() as people:
        rename_team(people, name, target or new)


def _merge_rows(connection: Connection, old: Row[tuple[object, ...]], other: Row[tuple[object, ...]]) -> None:
    """Move all that a board has of a team to another one."""
    phase, submitter_id = exceptions.c.phase, exceptions.c.submitter_id
    kept = select(phase).where(submitter_id == other.id)
    connection.execute(delete(exceptions).where(submitter_id == old.id, phase.in_(kept)))
    for table in (exceptions, submissions):
        is_old = table.c.submitter_id == old.id
        connection.execute(update(table).where(is_old).values(submitter_id=other.id))
    connection.execute(delete(submitters).where(Submitters.id == old.id))


def disqualify(board: Board, store: AccountStore, teams: Sequence[str], reason: str, now: datetime) -> list[str]:
    """Withdraw all submissions of teams, and close their accounts; return the names. All teams, or none.

    Raises UsageError without a reason, RefusedError for an unknown team.
    """
    if not reason.strip():
        raise UsageError(message="a disqualification needs a reason, which `geval board status` shows")
    with changing(board, now) as connection:
        rows = {row.key: row for row in connection.execute(select(submitters))}
        with store.reading() as people:
            known = {casefolded(team): team for team in teams_of(people)} | {
                key: row.name for key, row in rows.items()
            }
        unknown = [team for team in teams if casefolded(team) not in known]
        if unknown:
            raise RefusedError(f"there is no team `{visible(unknown[0])}`")
        ids = [rows[key].id for key in map(casefolded, teams) if key in rows]
        is_theirs = Submissions.submitter_id.in_(ids), Submissions.withdrawn.is_(None)
        values = {"withdrawn": now, "withdrawal": f"disqualified: {reason}"}
        connection.execute(update(submissions).where(*is_theirs).values(values))
        names = [known[casefolded(team)] for team in teams]
        for name in names:
            audit.log(connection, ORGANISER, "disqualified", name, reason, now=now)
        with store.writing() as people:
            for member in (one for name in names for one in members_of(people, name)):
                close(people, member, now)
                log(people, ORGANISER, "closed", member.label, now=now)
    return names
