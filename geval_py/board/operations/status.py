"""``geval board status``: the stored submissions with their states and charges, and the outdated scores."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select

from geval_py.board.answers import references_of
from geval_py.board.database.schema import SCORED, STATES, evaluations, outputs, submissions, submitters
from geval_py.board.database.store import Board, facts_about
from geval_py.board.operations.outdated import outdated, tests_in, to_be_sent_again, without_output
from geval_py.board.operations.pipeline import ASIDE
from geval_py.board.operations.receipts import day_of, written
from geval_py.board.settings import Settings
from geval_py.tables.table import Column, Table
from geval_py.text import shorten

MOST_OF_A_REASON = 200  # characters
WITHDRAWN = "withdrawn: "  # begins the reason of a submission that the organiser has hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A submission, for the organiser; it counts for the quota of ``day``, if ``charged``."""

    code: str
    submitter: str
    name: str
    arrived: datetime
    phase: str
    state: str
    reason: str
    charged: bool
    charge: str
    day: str

    @property
    def is_withdrawn(self) -> bool:
        """Whether the organiser has hidden it."""
        return self.reason.startswith(WITHDRAWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of a board; ``outdated`` counts the outdated scores by reason.

    ``without_output`` has, by test, the codes of scored submissions without an output for it, withdrawn ones left
    out. ``to_be_sent_again`` has the codes of submissions that could not be received under earlier settings.
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
    to_be_sent_again: list[str]
    zone: str
    lines: tuple[Line, ...]

    @property
    def ranked(self) -> int:
        """The number of submissions that are scored and not withdrawn."""
        return sum(1 for line in self.lines if line.state == SCORED and not line.is_withdrawn)

    def table(self) -> Table:
        """Return a table of all submissions, in order of arrival."""
        columns = ("code", "submitter", "arrived", "state", "quota", "why", "problem")
        rows = (
            (
                line.code,
                line.submitter,
                written(line.arrived),
                line.state,
                line.day if line.charged else "-",
                line.charge,
                line.reason,
            )
            for line in self.lines
        )
        return Table([Column(name=name) for name in columns], rows)

    def document(self) -> dict[str, Any]:
        """Return it as a JSON document."""
        names = [name for name in Status.__slots__ if name != "lines"]
        lines = [
            {name: getattr(line, name) for name in Line.__slots__} | {"arrived": written(line.arrived)}
            for line in self.lines
        ]
        return {name: getattr(self, name) for name in names} | {"submissions": lines}


def status_of(board: Board, now: datetime) -> Status:
    """Read the state of a board; raises StoreError, and the DataErrors of the challenge's files."""
    references = references_of(board.settings)
    with board.reading() as connection:
        lines = tuple(_lines(connection, board.settings))
        states = Counter(line.state for line in lines)
        old = outdated(connection, references)
        to_be_scored = {(one.test, one.code) for one in old}
        without: dict[str, list[str]] = {}
        for test in tests_in(references):
            codes = [code for code in without_output(connection, test) if (test, code) not in to_be_scored]
            without |= {test: codes} if codes else {}
        return Status(
            title=board.settings.title,
            phase=board.settings.phase_of(now),
            submitters=_count(connection, submitters),
            states={state: states[state] for state in STATES},
            withdrawn=sum(1 for line in lines if line.is_withdrawn),
            outputs=_count(connection, outputs),
            evaluations=_count(connection, evaluations),
            outdated=dict(Counter(one.reason for one in old)),
            without_output=without,
            to_be_sent_again=to_be_sent_again(connection, board.settings),
            zone=str(board.settings.zone),
            lines=lines,
        )


def _count(connection: Connection, table: Any) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _reason(row: Row[Any], aside: str) -> str:
    if row.withdrawn:
        return WITHDRAWN + str(row.withdrawal)
    return shorten(f"{row.reason}: {aside}" if aside and row.reason else row.reason, MOST_OF_A_REASON)


def _lines(connection: Connection, settings: Settings) -> list[Line]:
    rows = connection.execute(
        select(submissions, submitters.c.name.label("submitter"))
        .join_from(submissions, submitters)
        .order_by(submissions.c.arrived, submissions.c.id)
    )
    asides = facts_about(connection, ASIDE)
    return [
        Line(
            code=row.code,
            submitter=row.submitter,
            name=row.name,
            arrived=row.arrived,
            phase=settings.phase_of(row.arrived),
            state=row.state,
            reason=_reason(row, asides.get(str(row.id), "")),
            charged=row.charged,
            charge=row.charge,
            day=day_of(row.arrived, settings.zone).name,
        )
        for row in rows
    ]
