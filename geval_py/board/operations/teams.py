"""Teams, which are the submitters: how one is found by its name, and the settings that hold for it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from geval_py.board.database.schema import Submitters, exceptions, submitters
from geval_py.board.intake.identity import casefolded
from geval_py.board.settings import BoardSettings


def find_submitter(connection: Connection, name: str) -> Row[Any] | None:
    """Find the submitter with a name, whatever its letter case."""
    return connection.execute(select(submitters).where(Submitters.key == casefolded(name))).first()


def submitter_id(connection: Connection, name: str) -> int:
    """Return the id of the submitter with a name, who is added if there is none."""
    new = insert(submitters).values(key=casefolded(name), name=name).returning(Submitters.id)
    return team_id(connection, name) or int(connection.scalar(new))


def team_id(connection: Connection, name: str) -> int | None:
    """Return the id of the submitter with the name of an account's team; None if there is none yet."""
    return connection.scalar(select(Submitters.id).where(Submitters.key == casefolded(name))) if name else None


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
