"""Teams, which are the submitters: how one is found by its name, and what the organiser allows one alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, insert, select

from geval_py.board.database.schema import Submitters, exceptions, submitters
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.ranking.order import bounds
from geval_py.board.settings import AFTER, BoardSettings, moment_text
from geval_py.errors import UsageError
from geval_py.tables.numbers import counted
from geval_py.text import visible

MAX_MORE = 1000  # submissions a day
TICK = timedelta(seconds=1)


def find_submitter(connection: Connection, name: str) -> Row[Any] | None:
    """Find the submitter with a name, whatever its letter case."""
    return connection.execute(select(submitters).where(Submitters.key == casefolded(name))).first()


def submitter_id(connection: Connection, name: str) -> int:
    """Return the id of the submitter with a name, who is added if there is none."""
    submitter = find_submitter(connection, name)
    new = insert(submitters).values(key=casefolded(name), name=name).returning(Submitters.id)
    return int(connection.execute(new).scalar_one() if submitter is None else submitter.id)


def team_id(connection: Connection, name: str) -> int | None:
    """Return the id of the submitter with the name of an account's team; None if there is none yet."""
    if not name:
        return None
    return connection.execute(select(Submitters.id).where(Submitters.key == casefolded(name))).scalar()


# Exceptions from the settings of the board


def settings_by_team(connection: Connection, settings: BoardSettings) -> defaultdict[int | None, BoardSettings]:
    """Return the settings of each team by the id of its submitter; without an exception they are the board's."""
    teams: defaultdict[int | None, BoardSettings] = defaultdict(lambda: settings)
    for row in connection.execute(select(exceptions)):
        own, quota = teams[row.submitter_id], settings.in_phase(row.phase).submissions_a_day
        quota += row.more if quota else 0
        phases = tuple(
            replace(phase, until=max(phase.until, row.until or phase.until), submissions_a_day=quota)
            if phase.name == row.phase
            else phase
            for phase in own.phases
        )
        if not row.phase:
            own = replace(own, submissions_a_day=quota)
        teams[row.submitter_id] = replace(own, phases=phases)
    return teams


def team_settings(connection: Connection, settings: BoardSettings, submitter_id: int | None) -> BoardSettings:
    """Return the settings of a team, by the id of its submitter."""
    return settings_by_team(connection, settings)[submitter_id]


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
    board: Board,
    team: str,
    *,
    phase: str = "",
    until: datetime | None = None,
    more: int = 0,
    reason: str,
    now: datetime,
    confirmed: bool = False,
    teams: Iterable[str] = (),
) -> Extension:
    """Extend a phase for a team, in place of what it was allowed before; without ``until`` and ``more``, end that.

    A team of ``teams`` may have sent nothing yet. The default is the present phase or, after the last deadline, the
    last one. A submission that arrived meanwhile
    counts at once. Raises UsageError for an unknown team or phase, for a deadline that is not between that of the
    phase and the next one, and unless ``confirmed`` if the team could see the phase's private scores meanwhile.
    """
    from geval_py.board.ranking.disclosure import refresh  # which reads the settings of teams

    settings = board.settings
    names = [one for one in settings.phase_names if one != AFTER]
    current = settings.phase_of(now)
    phase = phase or (names[-1] if current == AFTER else current)
    if phase not in names:
        raise UsageError(message=f"the board has no phase `{visible(phase)}`\n  it has {visible(', '.join(names))}")
    if not 0 <= more <= MAX_MORE:
        raise UsageError(message=f"a team may have 0 to {MAX_MORE} more submissions a day, not {more}")
    if not reason.strip():
        raise UsageError(message="an extension needs a reason, which `geval board status` shows")
    if until is not None:
        if not settings.phases:
            raise UsageError(message="the board has no deadline that could be later")
        own, later = bounds(settings, phase)[1], settings.phase_names[names.index(phase) + 1 :]
        latest = bounds(settings, later[0])[1] if later else own
        if not own < until < latest:
            end = f" and before that of {visible(later[0])}" if later and later[0] != AFTER else ""
            raise UsageError(message=f"the deadline must be later than {moment_text(own)}{end}")
        in_phase = settings.in_phase(phase)
        shown = [test.name for test in in_phase.tests if in_phase.is_decided(test, phase, max(now, own + TICK))]
        if shown and not confirmed:
            are_shown = "have been shown since" if own < now else "will be shown from"
            public = f"the private scores of {visible(', '.join(shown))} {are_shown} {moment_text(own)}"
            raise UsageError(
                message=f"{public}, so the team may use them\n  to extend its deadline anyway, confirm (--yes)"
            )
    with board.writing() as connection:
        row = find_submitter(connection, team)
        names = [row.name] if row else [one for one in teams if casefolded(one) == casefolded(team)]
        if not names:
            raise UsageError(message=f"there is no team `{visible(team)}`")
        key = {"submitter_id": submitter_id(connection, names[0]), "phase": phase}
        connection.execute(delete(exceptions).where(*(exceptions.c[name] == value for name, value in key.items())))
        if until or more:
            values = key | {"until": until, "more": more, "reason": reason}
            connection.execute(insert(exceptions).values(values))
        refresh(connection, settings, now)
        return Extension(names[0], phase, until, more, reason)


def extensions(connection: Connection) -> list[Extension]:
    """Return all extensions, by team."""
    e = exceptions.c
    query = select(Submitters.name, e.phase, e.until, e.more, e.reason).join_from(exceptions, submitters)
    return [Extension(*row) for row in connection.execute(query.order_by(Submitters.key, e.phase))]
