"""``geval board status``: the stored submissions with their states and charges, and what is to be done about them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from geval_py.board.database import schema
from geval_py.board.database.schema import RECEIVED, Outputs, Submissions
from geval_py.board.database.store import Board
from geval_py.board.operations.receipts import SUBMISSIONS, day_of
from geval_py.board.operations.rescoring import outdated
from geval_py.board.operations.teams import settings_by_team
from geval_py.board.references import references_of
from geval_py.board.settings import moment_text
from geval_py.board.submission import STATES
from geval_py.text import shorten, words

MAX_REASON = 200  # characters
WITHDRAWN = "withdrawn: "  # begins the reason of a submission that the organiser has hidden


@dataclass(frozen=True, kw_only=True)
class Line:
    """A submission, for the organiser; it counts for the quota of ``day`` as ``cost`` submissions.

    ``final`` is when its submitter named it as one that decides.
    """

    code: str
    submitter: str
    name: str
    arrived: str
    arrived_by: str
    phase: str
    state: str
    reason: str
    charged: bool
    cost: int
    charge: str
    day: str
    final: str | None

    @property
    def is_withdrawn(self) -> bool:
        """Whether the organiser has hidden it."""
        return self.reason.startswith(WITHDRAWN)


@dataclass(frozen=True, kw_only=True)
class Status:
    """The state of a board; ``outdated`` counts the outdated scores by reason.

    ``without_output`` has, by test, the codes of scored submissions without an output for it, withdrawn ones left
    out. ``finals`` is the most submissions that a submitter may name to decide. ``reopened`` has, by phase, when its
    private scores were first shown, if the deadline was moved beyond it afterwards.
    """

    title: str
    phase: str
    submitters: int
    states: dict[str, int]
    withdrawn: int
    outputs: int
    evaluations: int
    outdated: dict[str, int]
    without_output: dict[str, list[str]]
    zone: str
    finals: int
    reopened: dict[str, str]
    submissions: tuple[Line, ...]

    @property
    def ranked(self) -> int:
        """The number of submissions that are scored and not withdrawn."""
        return sum(1 for line in self.submissions if line.state == schema.SCORED and not line.is_withdrawn)


def status_of(board: Board, now: datetime) -> Status:
    """Read the state of a board; raises StoreError, and the DataErrors of the challenge's files."""
    settings, references = board.settings, references_of(board.settings)
    tables = (schema.outputs, schema.evaluations)
    with board.reading() as connection:
        teams = settings_by_team(connection, settings)
        rows = connection.execute(SUBMISSIONS.where(*RECEIVED).order_by(Submissions.arrived, Submissions.id)).all()
        output_rows = connection.execute(select(Outputs.submission_id, Outputs.test))
        with_output = {(row.submission_id, row.test) for row in output_rows}
        old = outdated(connection, settings, references)
        decided = connection.execute(select(schema.board.c.decided)).scalar() or {}
        count = func.count()
        counts = {one.name: connection.execute(select(count).select_from(one)).scalar_one() for one in tables}
    to_be_scored = {(one.code, one.test) for one in old}
    without: dict[str, list[str]] = {test: [] for test, _ in references}
    lines: list[Line] = []
    names = words("code submitter name arrived_by state cost charge")
    for row in rows:
        if row.state == schema.SCORED and row.withdrawn is None:
            for test in teams[row.submitter_id].at(row.arrived).tests:
                if (row.id, test.name) not in with_output and (row.code, test.name) not in to_be_scored:
                    without[test.name].append(row.code)
        reason = shorten(f"{row.reason}: {row.aside}" if row.aside and row.reason else row.reason, MAX_REASON)
        lines.append(
            Line(
                **{name: getattr(row, name) for name in names},
                arrived=moment_text(row.arrived),
                phase=teams[row.submitter_id].phase_of(row.arrived),
                charged=row.cost > 0,
                reason=f"{WITHDRAWN}{row.withdrawal}" if row.withdrawn else reason,
                day=day_of(row.arrived, settings.zone).name,
                final=row.final and moment_text(row.final),
            )
        )
    states = Counter(line.state for line in lines)
    untils = {phase.name: moment_text(phase.until) for phase in settings.phases}
    return Status(
        title=settings.title,
        phase=settings.phase_of(now),
        **counts,
        submitters=len({row.submitter_id for row in rows}),
        states={state: states[state] for state in STATES},
        withdrawn=sum(1 for line in lines if line.is_withdrawn),
        outdated=dict(Counter(one.reason for one in old)),
        without_output={test: codes for test, codes in without.items() if codes},
        zone=str(settings.zone),
        finals=settings.finals,
        reopened={phase: since for phase, since in decided.items() if untils.get(phase, since) > since},
        submissions=tuple(lines),
    )
