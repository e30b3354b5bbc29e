"""``geval board status``: the stored submissions with their states and charges, and the outdated scores.

In this order: the status of a board; the submissions that must be sent again or lack an output; and the outdated
scores, which are of an earlier challenge, answers, metrics, seed or geval-py, and which ``geval board rescore``
replaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, false, func, or_, select, true

from geval_py.board.database import schema
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import looks
from geval_py.board.intake.receiving import test_by_folder
from geval_py.board.operations import pipeline, receipts
from geval_py.board.ranking.disclosure import arrived_in
from geval_py.board.references import References, references_of
from geval_py.board.settings import Settings
from geval_py.board.submission import STATES
from geval_py.tables.layout import Cut
from geval_py.tables.table import Column, Table
from geval_py.text import shorten
from geval_py.version import __version__

NEW_METRIC = "it was not scored by this metric"
NEW_TEST = "it came before this test was scored"
OTHER_REFERENCE = "the challenge, its answers or the seed changed"
TRIED_AGAIN = "it failed, and is tried again"
CHECKED_AGAIN = "it was rejected, and the challenge, its answers or geval-py changed"
MOST_OF_A_REASON = 200  # characters
WITHDRAWN = "withdrawn: "  # begins the reason of a submission that the organiser has hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A submission, for the organiser; it counts for the quota of ``day`` as ``cost`` submissions, if ``charged``.

    ``final`` is when its submitter named it as one that decides.
    """

    code: str
    submitter: str
    name: str
    arrived: datetime
    arrived_by: str
    phase: str
    state: str
    reason: str
    charged: bool
    cost: int
    charge: str
    day: str
    final: datetime | None = None

    @property
    def is_withdrawn(self) -> bool:
        """Whether the organiser has hidden it."""
        return self.reason.startswith(WITHDRAWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of a board; ``outdated`` counts the outdated scores by reason.

    ``without_output`` has, by test, the codes of scored submissions without an output for it, withdrawn ones left
    out. ``to_be_sent_again`` has the codes of submissions that could not be received under earlier settings.
    ``alike`` has the names, two or more each, of different submitters that look alike. ``finals`` is the most
    submissions that a submitter may name to decide.
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
    alike: list[list[str]]
    zone: str
    finals: int
    lines: tuple[Line, ...]

    @property
    def ranked(self) -> int:
        """The number of submissions that are scored and not withdrawn."""
        return sum(1 for line in self.lines if line.state == schema.SCORED and not line.is_withdrawn)

    def table(self) -> Table:
        """Return a table of all submissions, in order of arrival."""
        columns = ["code", "submitter", "arrived", "by", "state", "quota", "cost", "why", "problem"]
        columns[5:5] = ["final"] if self.finals else []
        columns[4:4] = ["phase"] if self.phase else []
        rows = (
            (
                line.code,
                line.submitter,
                receipts.written(line.arrived),
                line.arrived_by,
                *([line.phase] if self.phase else []),
                line.state,
                *(["final" if line.final else "-"] if self.finals else []),
                line.day if line.charged else "-",
                str(line.cost),
                line.charge,
                line.reason,
            )
            for line in self.lines
        )
        cuts: dict[str, Cut] = {"code": "never", "submitter": "middle", "arrived": "never", "state": "never"}
        droppable = ("state", "problem", "arrived", "final", "phase", "why", "by", "cost", "quota")
        return Table([Column(name=name, cut=cuts.get(name, "end")) for name in columns], rows, droppable=droppable)

    def document(self) -> dict[str, Any]:
        """Return it as a JSON document."""
        names = [name for name in Status.__slots__ if name != "lines"]
        lines = [
            {name: getattr(line, name) for name in Line.__slots__}
            | {"arrived": receipts.written(line.arrived), "final": line.final and receipts.written(line.final)}
            for line in self.lines
        ]
        return {name: getattr(self, name) for name in names} | {"submissions": lines}


def status_of(board: Board, now: datetime) -> Status:
    """Read the state of a board; raises StoreError, and the DataErrors of the challenge's files."""
    references = references_of(board.settings)
    with board.reading() as connection:
        lines = tuple(_lines(connection, board.settings))
        states = Counter(line.state for line in lines)
        old = outdated(connection, board.settings, references, pipeline.tried_with(board.settings, references))
        to_be_scored = {(one.test, one.code) for one in old}
        without: dict[str, list[str]] = {}
        for test in tests_in(references):
            codes = without_output(connection, board.settings, test)
            codes = [code for code in codes if (test, code) not in to_be_scored]
            without |= {test: codes} if codes else {}
        return Status(
            title=board.settings.title,
            phase=board.settings.phase_of(now),
            submitters=_count(connection, schema.submitters),
            states={state: states[state] for state in STATES},
            withdrawn=sum(1 for line in lines if line.is_withdrawn),
            outputs=_count(connection, schema.outputs),
            evaluations=_count(connection, schema.evaluations),
            outdated=dict(Counter(one.reason for one in old)),
            without_output=without,
            to_be_sent_again=to_be_sent_again(connection, board.settings),
            alike=_alike(connection),
            zone=str(board.settings.zone),
            finals=board.settings.finals,
            lines=lines,
        )


def _alike(connection: Connection) -> list[list[str]]:
    """Find names that look alike, of submitters that an older version took for different ones."""
    names: dict[tuple[str, str], str] = {}
    found: dict[str, list[str]] = {}
    for name in connection.execute(select(schema.submitters.c.name).order_by(schema.submitters.c.id)).scalars():
        own = looks(name)
        first = next((names[look] for look in sorted(own) if look in names), name)
        found.setdefault(first, []).append(name)
        for look in own:
            names.setdefault(look, first)
    return [of for of in found.values() if len(of) > 1]


def _count(connection: Connection, table: Any) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _reason(row: Row[Any]) -> str:
    if row.withdrawn:
        return WITHDRAWN + str(row.withdrawal)
    return shorten(f"{row.reason}: {row.aside}" if row.aside and row.reason else row.reason, MOST_OF_A_REASON)


def _lines(connection: Connection, settings: Settings) -> list[Line]:
    rows = connection.execute(
        select(schema.submissions, schema.submitters.c.name.label("submitter"))
        .join_from(schema.submissions, schema.submitters)
        .order_by(schema.submissions.c.arrived, schema.submissions.c.id)
    )
    return [
        Line(
            code=row.code,
            submitter=row.submitter,
            name=row.name,
            arrived=row.arrived,
            arrived_by=row.arrived_by,
            phase=settings.phase_of(row.arrived),
            state=row.state,
            reason=_reason(row),
            charged=row.charged,
            cost=row.cost,
            charge=row.charge,
            day=receipts.day_of(row.arrived, settings.zone).name,
            final=row.final,
        )
        for row in rows
    ]


def to_be_sent_again(connection: Connection, settings: Settings) -> list[str]:
    """List the codes of submissions that could not be received under earlier settings, and were not sent again.

    A submission counts as sent again if a later one has the same submitter and name.
    """
    has_files = select(schema.files.c.id).where(schema.files.c.submission_id == schema.submissions.c.id).exists()
    later = schema.submissions.alias()
    is_same = (later.c.submitter_id == schema.submissions.c.submitter_id) & (
        later.c.name == schema.submissions.c.name
    )
    was_sent_again = select(later.c.id).where(is_same, later.c.id > schema.submissions.c.id).exists()
    rows = connection.execute(
        select(schema.submissions.c.code)
        .where(
            schema.submissions.c.state == schema.REJECTED,
            schema.submissions.c.checked_with != pipeline.settings_digest(settings),
            ~has_files,
            ~was_sent_again,
            schema.submissions.c.withdrawn.is_(None),
        )
        .order_by(schema.submissions.c.arrived, schema.submissions.c.id)
    )
    return list(rows.scalars())


def without_output(connection: Connection, settings: Settings, test: str) -> list[str]:
    """List the codes of scored submissions without an output for a test that their phase ranks.

    Withdrawn ones are left out.
    """
    ranking = [name for name, of in settings.by_phase.items() if of.test(test) is not None]
    of_test = (schema.outputs.c.submission_id == schema.submissions.c.id) & (schema.outputs.c.test == test)
    rows = connection.execute(
        select(schema.submissions.c.code)
        .where(
            schema.submissions.c.state == schema.SCORED,
            schema.submissions.c.withdrawn.is_(None),
            or_(false(), *(and_(true(), *arrived_in(settings, name)) for name in ranking)),
            ~select(schema.outputs.c.id).where(of_test).exists(),
        )
        .order_by(schema.submissions.c.arrived, schema.submissions.c.id)
    )
    return list(rows.scalars())


# Outdated scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """A score to be replaced, and the reason; ``evaluation_id`` is the current evaluation, None if there is none.

    ``output_id`` is None for a test that is newer than its submission. ``test`` and ``metric`` are "" if the
    submission has no scores, and is to be checked again.
    """

    submission_id: int
    code: str
    reason: str
    test: str = ""
    metric: str = ""
    output_id: int | None = None
    evaluation_id: int | None = None


def outdated(connection: Connection, settings: Settings, references: References, tried: str = "") -> list[Outdated]:
    """List the outdated scores by submission; those that failed with what is ``tried`` are left out."""
    found = [
        *_scores(connection, references),
        *_new_tests(connection, settings, references, tried),
        *_without_scores(connection, settings, references, tried),
    ]
    return sorted(found, key=lambda one: (one.submission_id, one.output_id or 0))


def tests_in(references: References) -> list[str]:
    """Return the scored tests, in the order of board.yaml."""
    return list(dict.fromkeys(test for test, _ in references))


def _scores(connection: Connection, references: References) -> Iterator[Outdated]:
    rows = connection.execute(
        select(
            schema.submissions.c.id,
            schema.submissions.c.code,
            schema.outputs.c.id.label("output_id"),
            schema.outputs.c.test,
            schema.scores.c.metric,
            schema.scores.c.evaluation_id,
            schema.evaluations.c.reference,
            schema.evaluations.c.version,
        )
        .join_from(schema.submissions, schema.outputs)
        .outerjoin(schema.scores, schema.scores.c.output_id == schema.outputs.c.id)
        .outerjoin(schema.evaluations, schema.evaluations.c.id == schema.scores.c.evaluation_id)
        .where(schema.submissions.c.state == schema.SCORED)
    )
    by_output: dict[int, list[Any]] = {}
    for row in rows:
        by_output.setdefault(row.output_id, []).append(row)
    for of_output in by_output.values():
        yield from _of_output(of_output, references)


def _of_output(rows: Sequence[Row[Any]], references: References) -> Iterator[Outdated]:
    """Yield the outdated scores of one output, whose scores are the rows."""
    first = rows[0]
    by_metric = {row.metric: row for row in rows}
    for (test, metric), reference in references.items():
        if test != first.test:
            continue
        row = by_metric.get(metric)
        if row is None:
            reason = NEW_METRIC
        elif row.reference != reference:
            reason = OTHER_REFERENCE
        else:
            reason = "" if row.version == __version__ else f"geval-py {row.version} became {__version__}"
        if reason:
            yield Outdated(
                submission_id=first.id,
                code=first.code,
                reason=reason,
                test=test,
                metric=metric,
                output_id=first.output_id,
                evaluation_id=None if row is None else row.evaluation_id,
            )


def _new_tests(connection: Connection, settings: Settings, references: References, tried: str) -> Iterator[Outdated]:
    """Yield, of scored submissions, the files for tests that board.yaml named later, or ranks in their phase since.

    A file that was checked with the current references, and could not be scored, is left out.
    """
    tests = {name: [test.name for test in of.tests] for name, of in settings.by_phase.items()}
    settled = (pipeline.references_digest(settings, references), tried)
    rows = connection.execute(
        select(schema.submissions.c.id, schema.submissions.c.code, schema.submissions.c.arrived, schema.files.c.name)
        .join_from(schema.submissions, schema.files)
        .outerjoin(schema.outputs, schema.outputs.c.file_id == schema.files.c.id)
        .where(schema.submissions.c.state == schema.SCORED, schema.outputs.c.id.is_(None))
        .where(schema.submissions.c.checked_with.not_in(settled))
    )
    for number, code, arrived, name in rows:
        of = test_by_folder(name, tests[settings.phase_of(arrived)])
        for test, metric in references:
            if test == of:
                yield Outdated(submission_id=number, code=code, reason=NEW_TEST, test=test, metric=metric)


def _without_scores(
    connection: Connection, settings: Settings, references: References, tried: str
) -> Iterator[Outdated]:
    """Yield the submissions with files that failed, but not with what is ``tried``, or were rejected earlier."""
    now = pipeline.references_digest(settings, references)
    has_files = select(schema.files.c.id).where(schema.files.c.submission_id == schema.submissions.c.id).exists()
    s = schema.submissions.c
    states = s.state.in_((schema.FAILED, schema.REJECTED))
    for row in connection.execute(select(s.id, s.code, s.state, s.checked_with).where(states, has_files)):
        if row.state == schema.FAILED and row.checked_with != tried:
            yield Outdated(submission_id=row.id, code=row.code, reason=TRIED_AGAIN)
        elif row.state == schema.REJECTED and row.checked_with != now:
            yield Outdated(submission_id=row.id, code=row.code, reason=CHECKED_AGAIN)
