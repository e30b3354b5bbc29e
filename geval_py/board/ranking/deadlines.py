"""The settings that hold for a team: those of board.yaml with the exceptions that the organiser made for it."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, select

from geval_py.board.database.schema import exceptions
from geval_py.board.settings import BoardSettings


def settings_by_team(connection: Connection, settings: BoardSettings) -> dict[int, BoardSettings]:
    """Return the settings of each team with an exception, by the id of its submitter; others have the board's."""
    teams: dict[int, BoardSettings] = {}
    for row in connection.execute(select(exceptions)):
        own, quota = teams.get(row.submitter_id, settings), settings.in_phase(row.phase).submissions_a_day
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
    return settings_by_team(connection, settings).get(submitter_id or 0, settings)
