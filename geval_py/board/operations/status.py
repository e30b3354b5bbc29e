"""``geval board status``: what is stored, what is out of date, what failed and why, and what was charged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from geval_py.board.answers import references_of
from geval_py.board.database.schema import SCORED, STATES, evaluations, outputs, submissions, submitters
from geval_py.board.database.store import facts_about
from geval_py.board.operations.outdated import outdated, tests_in, to_be_sent_again, without_output
from geval_py.board.operations.quota import day_of, written
from geval_py.board.operations.submissions import ASIDE
from geval_py.tables.table import Column, Table
from geval_py.text import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

    from geval_py.board.database.store import Board
    from geval_py.board.operations.outdated import Outdated
    from geval_py.board.settings import Settings


MOST_OF_A_REASON = 200  # characters
WITHDRAWN = "withdrawn: "  # what the reason of what the organiser has hidden begins with


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A submission, as the organiser is told of it; ``day`` is that for which it was charged, if ``charged``."""

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
        """Tell whether the organiser has hidden it."""
        return self.reason.startswith(WITHDRAWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What there is in a board; ``outdated`` counts scores by the reason why they are out of date.

    ``without_output`` has, by test, the codes of scored submissions that have none for it, but for those that are
    withdrawn; ``to_be_sent_again`` those of submissions that were rejected before they were received, while
    board.yaml said something else.
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
        """Give how many submissions are scored and not withdrawn."""
        return sum(1 for line in self.lines if line.state == SCORED and not line.is_withdrawn)

    def table(self) -> Table:
        """Give all submissions, in order of arrival."""
        columns = ("code", "submitter", "arrived", "state", "quota", "why")
        rows = (
            (line.code, line.submitter, written(line.arrived), line.state, *_charge(line), line.reason)
            for line in self.lines
        )
        return Table([*map(_column, columns), _column("problem")], rows)

    def document(self) -> dict[str, Any]:
        """Give it as a JSON document."""
        names = [name for name in Status.__slots__ if name != "lines"]
        lines = [
            {name: getattr(line, name) for name in Line.__slots__} | {"arrived": written(line.arrived)}
            for line in self.lines
        ]
        return {name: getattr(self, name) for name in names} | {"submissions": lines}


def _column(name: str) -> Column:
    return Column(name=name)


def _charge(line: Line) -> tuple[str, str]:
    return (line.day if line.charged else "-"), line.charge


def status_of(board: Board, now: datetime) -> Status:
    """Look at what is stored; raises StoreError, and the DataErrors of the challenge's files."""
    references = references_of(board.settings)
    with board.reading() as connection:
        lines = tuple(_lines(connection, board.settings))
        states = Counter(line.state for line in lines)
        old = outdated(connection, references)
        return Status(
            title=board.settings.title,
            phase=board.settings.phase_of(now),
            submitters=_count(connection, submitters),
            states={state: states[state] for state in STATES},
            withdrawn=sum(1 for line in lines if line.is_withdrawn),
            outputs=_count(connection, outputs),
            evaluations=_count(connection, evaluations),
            outdated=dict(Counter(one.reason for one in old)),
            without_output=_without_output(connection, tests_in(references), old),
            to_be_sent_again=to_be_sent_again(connection, board.settings),
            zone=str(board.settings.zone),
            lines=lines,
        )


def _without_output(connection: Connection, tests: Sequence[str], old: Sequence[Outdated]) -> dict[str, list[str]]:
    """Give the codes of scored submissions that have no file for a test, by test."""
    to_be_scored = {(one.test, one.code) for one in old}
    found = {test: without_output(connection, test) for test in tests}
    return {
        test: left
        for test, codes in found.items()
        if (left := [code for code in codes if (test, code) not in to_be_scored])
    }


def _count(connection: Connection, table: Any) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _reason(row: Row[Any], aside: str) -> str:
    """Say why, with what is for the organiser alone."""
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
