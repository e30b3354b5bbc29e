"""Extensions: what the organiser allows a team alone, a later deadline or more submissions a day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from geval_py.board.database.schema import Submitters, exceptions, submitters
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.operations.teams import submitter_id
from geval_py.board.people.accounts import teams_of
from geval_py.board.people.store import accounts_of
from geval_py.board.people.teams import submitter_names
from geval_py.board.ranking.order import bounds
from geval_py.board.settings import AFTER, moment_text
from geval_py.errors import UsageError
from geval_py.text import counted, visible

MAX_MORE = 1000  # submissions a day
TICK = timedelta(seconds=1)


class Extension(NamedTuple):
    """What a team may do in a phase ("" without phases), and why."""

    team: str
    phase: str
    until: datetime | None
    more: int
    reason: str

    def __str__(self) -> str:
        what = [f"until {moment_text(self.until)}"] if self.until else []
        what += [f"{counted(self.more, 'more submission')} a day"] if self.more else []
        where = f" in {self.phase}" if self.phase else ""
        return visible(f"{self.team}{where}: {' and '.join(what) or 'as the others'} ({self.reason})")


def extend(
    connection: Connection,
    board: Board,
    team: str,
    *,
    phase: str = "",
    until: datetime | None = None,
    more: int = 0,
    reason: str,
    now: datetime,
    confirmed: bool = False,
) -> Extension:
    """Extend a phase for a team, in place of what it was allowed before; without ``until`` and ``more``, end that.

    A team with accounts may have sent nothing yet. The default is the present phase or, after the last deadline, the
    last one. A submission that arrived meanwhile counts at once. Raises UsageError for an unknown team or phase, for
    a deadline that is not between that of the phase and the next one, and unless ``confirmed`` if the team could see
    the phase's private scores meanwhile.
    """
    settings = board.settings
    names = [one for one in settings.phase_names if one != AFTER]
    current = settings.phase_of(now)
    phase = phase or (names[-1] if current == AFTER else current)
    if phase not in names:
        raise UsageError(f"the board has no phase `{visible(phase)}`\n  it has {visible(', '.join(names))}")
    if not 0 <= more <= MAX_MORE:
        raise UsageError(f"a team may have 0 to {MAX_MORE} more submissions a day, not {more}")
    if not reason.strip():
        raise UsageError("an extension needs a reason, which `geval board status` shows")
    if until:
        if not settings.phases:
            raise UsageError("the board has no deadline that could be later")
        own, following = bounds(settings, phase)[1], settings.phase_names[names.index(phase) + 1]
        if not own < until < bounds(settings, following)[1]:
            end = "" if following == AFTER else f" and before that of {visible(following)}"
            raise UsageError(f"the deadline must be later than {moment_text(own)}{end}")
        in_phase = settings.in_phase(phase)
        shown = [test.name for test in in_phase.tests if in_phase.is_decided(test, phase, max(now, own + TICK))]
        if shown and not confirmed:
            raise UsageError(
                f"the private scores of {visible(', '.join(shown))} are shown from {moment_text(own)} on"
                ", so the team may use them\n  to extend its deadline anyway, confirm (--yes)"
            )
    with accounts_of(board).reading() as people:
        teams = [*submitter_names(connection), *teams_of(people)]
    names = [name for name in teams if casefolded(name) == casefolded(team)]
    if not names:
        raise UsageError(f"there is no team `{visible(team)}`")
    key = {"submitter_id": submitter_id(connection, names[0]), "phase": phase}
    connection.execute(delete(exceptions).where(*(exceptions.c[name] == value for name, value in key.items())))
    if until or more:
        values = key | {"until": until, "more": more, "reason": reason}
        connection.execute(insert(exceptions).values(values))
    return Extension(names[0], phase, until, more, reason)


def extensions(connection: Connection) -> list[Extension]:
    """Return all extensions, by team."""
    e = exceptions.c
    query = select(Submitters.name, e.phase, e.until, e.more, e.reason).join_from(exceptions, submitters)
    return [Extension(*row) for row in connection.execute(query.order_by(Submitters.key, e.phase))]
