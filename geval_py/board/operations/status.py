"""``geval board status``: the stored submissions with their states and charges, and what is to be done about them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from geval_py.board.database import schema
from geval_py.board.database.schema import RECEIVED, SCORED, Outputs, Submissions
from geval_py.board.database.store import Board
from geval_py.board.operations.receipts import SUBMISSIONS, WITHDRAWN, day_of
from geval_py.board.operations.rescoring import outdated
from geval_py.board.operations.teams import settings_by_team
from geval_py.board.references import references_of
from geval_py.board.settings import moment_text
from geval_py.board.submission import STATES, attributes
from geval_py.text import shorten

MAX_REASON = 200  # characters


@dataclass(frozen=True, kw_only=True)
class Status:
    """The state of a board; ``outdated`` counts the outdated scores by reason.

    ``submissions`` are JSON documents, in order of arrival: each counts for the quota of its ``day`` as ``cost``
    submissions, and ``final`` is when its submitter named it as one that decides. ``without_output`` has, by test,
    the codes of scored submissions without an output for it. ``reopened`` has, by phase, when its private scores were
    first shown, if the deadline was moved beyond it afterwards.
    """

    title: str
    phase: str
    submitters: int
    states: Mapping[str, int]
    outputs: int
    outdated: Mapping[str, int]
    without_output: Mapping[str, list[str]]
    zone: str
    reopened: Mapping[str, str]
    submissions: tuple[Mapping[str, Any], ...]


def status_of(board: Board, now: datetime) -> Status:
    """Read the state of a board; raises StoreError, and the DataErrors of the challenge's files."""
    settings, references = board.settings, references_of(board.settings)
    with board.reading() as connection:
        teams = settings_by_team(connection, settings)
        rows = connection.execute(SUBMISSIONS.where(*RECEIVED).order_by(Submissions.arrived, Submissions.id)).all()
        outputs = [tuple(row) for row in connection.execute(select(Outputs.submission_id, Outputs.test))]
        old = outdated(connection, settings, references)
        decided = connection.scalar(select(schema.board.c.decided)) or {}
    scored = {*outputs, *((score.submission_id, score.test) for score in old)}
    without: dict[str, list[str]] = defaultdict(list)
    submissions = []
    for row in rows:
        team = teams[row.submitter_id]
        reason = f"{row.reason}: {row.aside}" if row.aside and row.reason else row.reason
        document = {
            **attributes(row, "code submitter name arrived_by cost charge"),
            "arrived": moment_text(row.arrived),
            "phase": team.phase_of(row.arrived),
            "state": WITHDRAWN if row.withdrawn else row.state,
            "reason": row.withdrawal or shorten(reason, MAX_REASON),
            "day": day_of(row.arrived, settings.zone).name,
            "final": row.final and moment_text(row.final),
        }
        submissions.append(document)
        for test in team.at(row.arrived).tests if document["state"] == SCORED else ():
            if (row.id, test.name) not in scored:
                without[test.name].append(row.code)
    states = Counter(document["state"] for document in submissions)
    untils = {phase.name: moment_text(phase.until) for phase in settings.phases}
    return Status(
        title=settings.title,
        phase=settings.phase_of(now),
        submitters=len({row.submitter_id for row in rows}),
        states={state: states[state] for state in (*STATES, WITHDRAWN)},
        outputs=len(outputs),
        outdated=dict(Counter(score.reason for score in old)),
        without_output=dict(without),
        zone=str(settings.zone),
        reopened={phase: since for phase, since in decided.items() if untils.get(phase, since) > since},
        submissions=tuple(submissions),
    )
