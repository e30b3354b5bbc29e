"""What a site may show, read from one state of the database: what is not in these values cannot leak into a page."""

from __future__ import annotations

import heapq
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, select

from geval_py.board.database.schema import (
    SCORED,
    announcements,
    disclosures,
    evaluations,
    files,
    outputs,
    submissions,
    submitters,
)
from geval_py.board.ranking import disclosure, leaderboard, likeness, order, place_ranges
from geval_py.board.references import expected_of, input_of
from geval_py.board.settings import AFTER, NO_DIGITS, Digits, Settings, Test, measure_of, names_of, read_text
from geval_py.board.submission import Entry, Standings, unpack
from geval_py.reading import challenge, lines
from geval_py.tables.numbers import significant

if TYPE_CHECKING:
    from geval_py.board.database.store import Board

MOST_LINES = 20
MOST_OUTPUTS = 2000  # of which lines are shown, over the whole site
MOST_LISTED_TESTS = 4
CONTEXT = 60  # characters on each side of a gap
DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A disclosed score and the ends of its 95 % interval, rounded; None where nothing may be shown."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """An output of a submission; ``figures`` by metric, ``evaluation_id`` of the disclosed evaluation."""

    id: int
    test: str
    variant: str
    params: Mapping[str, str]
    figures: Mapping[str, Figures]
    evaluation_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What the organiser tells everybody, in Markdown."""

    number: int
    moment: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    """A file of a submission, as it came."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionView:
    """What anyone may know of a submission; its source is for the organiser alone."""

    code: str
    submitter: str
    arrived: datetime
    state: str = SCORED
    reason: str = ""
    baseline: bool = False
    description: str = ""
    author: str = ""
    affiliation: str = ""
    revision: str = ""
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    problems: tuple[Mapping[str, Any], ...] = ()
    remark: str = ""
    withdrawn: datetime | None = None
    scorer: str = ""
    files: tuple[FileView, ...] = ()
    outputs: tuple[OutputView, ...] = ()

    @property
    def is_ranked(self) -> bool:
        """Whether it may stand in a leaderboard."""
        return self.state == SCORED and self.withdrawn is None

    @property
    def status(self) -> str:
        """Its state in one word."""
        return "withdrawn" if self.withdrawn else self.state


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """A line of a test set whose answers are public: its number, from 1, its score, rounded, and its text."""

    line: int
    score: float
    expected: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)  # without slots: it caches properties
class SiteView:
    """A site before it is written: ``standings`` by test and phase, ``submissions`` with the latest first.

    ``announcements`` have the latest first too. ``phase`` is the present phase, ``digits`` the significant digits
    shown, by test and phase. ``metrics`` have the names that the standings use. ``likenesses`` are for the
    organiser, None in a published site.
    """

    settings: Settings
    metrics: tuple[str, ...]
    phase: str
    digits: Mapping[tuple[str, str], Digits]
    standings: Mapping[tuple[str, str], Standings]
    submissions: tuple[SubmissionView, ...]
    announcements: tuple[Announcement, ...] = ()
    readme: str = ""
    lines_of: Callable[[Test, OutputView], Sequence[LineView]] = lambda *_: ()
    advice: Callable[[Standings, Entry], Sequence[str]] = lambda *_: ()
    likenesses: tuple[likeness.Likeness, ...] | None = None

    def digits_at(self, test: str, arrived: datetime) -> Digits:
        """Return the digits of an output for a test, by the phase in which it arrived."""
        return self.digits.get((test, self.settings.phase_of(arrived)), NO_DIGITS)

    @property
    def front(self) -> str:
        """The phase on index.html: the present one, but the last one until something arrives after its deadline."""
        phases = self.settings.phases
        if self.phase == AFTER and phases and not self._has_entries(AFTER):
            last = phases[-1].name
            return last if self._has_entries(last) else self.phase
        return self.phase

    def _has_entries(self, phase: str) -> bool:
        return any(table.entries for (_, of), table in self.standings.items() if of == phase)

    def front_of(self, test: str) -> str | None:
        """Return the phase of a test's first page: that of index.html, or the last one that ranks it, or None."""
        names = (self.front, *reversed(self.settings.phase_names))
        return next((phase for phase in names if (test, phase) in self.standings), None)

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests that were ranked until now."""
        return tuple(test for test in self.settings.tests if self.front_of(test.name) is not None)

    @cached_property
    def by_submitter(self) -> dict[str, list[SubmissionView]]:
        """The submissions of each submitter, the latest first."""
        found: dict[str, list[SubmissionView]] = {}
        for one in self.submissions:
            found.setdefault(one.submitter, []).append(one)
        return found

    @cached_property
    def listed_tests(self) -> tuple[Test, ...]:
        """The tests whose scores stand in lists of submissions: the first ones with a score that is shown."""
        ranked = (one for one in self.submissions if one.is_ranked)
        scored = {output.test for one in ranked for output in one.outputs if output.figures}
        return tuple(test for test in self.tests if test.name in scored)[:MOST_LISTED_TESTS]

    @property
    def updated(self) -> datetime | None:
        """The moment of the last arrival, withdrawal or announcement; None for an empty board."""
        moments = [moment for one in self.submissions for moment in (one.arrived, one.withdrawn) if moment]
        return max([*moments, *(one.moment for one in self.announcements)], default=None)


# The worst lines of an output, only for test sets whose answers are public


class LineTables:
    """A function from an output to its worst lines; reads the texts of a test set once."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection, self._settings = connection, settings
        self._texts: dict[str, list[tuple[str, str, str]]] = {}
        self._left = MOST_OUTPUTS

    @cached_property
    def _is_made_of_losses(self) -> bool:
        return measure_of(self._settings.metric).of_losses

    def __call__(self, test: Test, output: OutputView) -> Sequence[LineView]:
        """Return the lines with the greatest losses, the worst first.

        Empty if the answers of the test are hidden, if its scores follow a ladder, and for a metric that is not
        computed from losses.
        """
        if not test.visible or test.ladder or not self._is_made_of_losses or not self._left:
            return ()
        losses = self._losses(output)
        worst = heapq.nsmallest(MOST_LINES, range(len(losses)), key=lambda line: (-losses[line], line))
        if not worst:
            return ()
        self._left -= 1
        texts = self._texts_of(test.name)
        return [self._line(line, losses[line], texts[line]) for line in worst if line < len(texts)]

    def _line(self, line: int, loss: float, texts: tuple[str, str, str]) -> LineView:
        score = significant(measure_of(self._settings.metric).formula((loss,), 1), DIGITS) or 0.0
        before, expected, after = texts
        return LineView(line=line + 1, score=score, expected=expected, before=before, after=after)

    def _losses(self, output: OutputView) -> list[float]:
        columns = select(evaluations.c.lines, evaluations.c.losses)
        of = self._connection.execute(columns.where(evaluations.c.id == output.evaluation_id)).first()
        return [] if of is None or of.losses is None else list(unpack(of.losses, of.lines)[0])

    def _texts_of(self, test: str) -> list[tuple[str, str, str]]:
        if test not in self._texts:
            settings = self._settings
            expected = list(lines.read_lines(expected_of(settings.challenge, settings.answers, test)))
            place = input_of(settings.challenge, test)
            inputs = list(islice(lines.read_lines(place), len(expected))) if place else []
            inputs += [""] * (len(expected) - len(inputs))
            self._texts[test] = [_in_context(*pair) for pair in zip(inputs, expected, strict=True)]
        return self._texts[test]


def _in_context(line: str, expected: str) -> tuple[str, str, str]:
    """Return the text before the gap, the word, and the text after it, from the last two columns of the input."""
    _, before, after = ["", "", *line.split("\t")][-3:]
    head = before if len(before) <= CONTEXT else f"…{before[-CONTEXT:]}"
    tail = after if len(after) <= CONTEXT else f"{after[:CONTEXT]}…"
    return head, expected, tail


# Reading, from one state of the database and from the challenge's public files


@contextmanager
def loaded(board: Board, *, now: datetime, organiser: bool = False) -> Iterator[SiteView]:
    """Read what a site shows now; the lines of outputs only within the block. Raises StoreError, DataError."""
    with disclosure.disclosed(board, now) as connection:
        yield _view(connection, board.settings, now, organiser=organiser)


def _view(connection: Connection, settings: Settings, now: datetime, *, organiser: bool) -> SiteView:
    phase = settings.phase_of(now)
    found = tuple(_submissions(connection, settings))
    names = settings.phase_names
    until = {name: settings.in_phase(name) for name in names[: names.index(phase) + 1]}
    readme = os.path.join(settings.challenge, challenge.README_FILE)
    standings = {
        (test.name, name): leaderboard.standings_on(connection, settings, test.name, phase=name, now=now)
        for name, of in until.items()
        for test in of.tests
    }
    return SiteView(
        settings=settings,
        metrics=names_of(settings.metrics),
        phase=phase,
        digits={(test.name, name): of.digits_of(test, now) for name, of in until.items() for test in of.tests},
        standings=standings,
        submissions=found,
        announcements=announcements_of(connection),
        readme=read_text(readme) if os.path.isfile(readme) else "",
        lines_of=LineTables(connection, settings),
        advice=_advice,
        likenesses=tuple(likeness.likenesses(connection, settings)) if organiser else None,
    )


def announcements_of(connection: Connection) -> tuple[Announcement, ...]:
    """Read the announcements, the latest first."""
    rows = connection.execute(select(announcements).order_by(announcements.c.id.desc()))
    return tuple(Announcement(number=row.id, moment=row.moment, text=row.text) for row in rows)


def _advice(standings: Standings, entry: Entry) -> tuple[str, ...]:
    """Advise on changing places; only the entries that are compared with each other."""
    return place_ranges.what_it_takes(standings, entry) if (entry.place or 0) <= order.MOST_COMPARED else ()


def _submissions(connection: Connection, settings: Settings) -> Iterator[SubmissionView]:
    """Yield all submissions, the latest first."""
    own_files, own_outputs = _files(connection), _outputs(connection, settings)
    query = select(submissions, submitters.c.name.label("submitter")).join(
        submitters, submitters.c.id == submissions.c.submitter_id
    )
    for row in connection.execute(query.order_by(submissions.c.arrived.desc(), submissions.c.id.desc())):
        yield _submission(row, tuple(own_files.get(row.id, ())), tuple(own_outputs.get(row.id, ())))


def _submission(row: Row[Any], files: tuple[FileView, ...], outputs: tuple[OutputView, ...]) -> SubmissionView:
    told = {one.name: getattr(row, one.name) for one in fields(SubmissionView) if one.name in submissions.c}
    told["tags"] = tuple(map(str, row.tags))
    told["params"] = _texts(row.params)
    told["links"] = tuple((str(title), str(url)) for title, url in row.links)
    told["problems"] = tuple(row.problems)
    return SubmissionView(**told, submitter=row.submitter, files=files, outputs=outputs)


def _texts(params: Mapping[str, object]) -> dict[str, str]:
    return {str(name): str(value) for name, value in params.items()}


def _files(connection: Connection) -> dict[int, list[FileView]]:
    found: dict[int, list[FileView]] = defaultdict(list)
    query = select(files.c.submission_id, files.c.name, files.c.bytes, files.c.sha256)
    for row in connection.execute(query.order_by(files.c.submission_id, files.c.name)):
        found[row.submission_id].append(FileView(name=row.name, bytes=row.bytes, sha256=row.sha256))
    return found


def shown_outputs(connection: Connection, settings: Settings, code: str) -> list[OutputView]:
    """Read the outputs of a submission, with what anyone may see of their scores; none unless it may be ranked."""
    is_ranked = submissions.c.state == SCORED, submissions.c.withdrawn.is_(None)
    own = select(submissions.c.id).where(submissions.c.code == code, *is_ranked)
    found = _outputs(connection, settings, outputs.c.submission_id.in_(own))
    return [output for of in found.values() for output in of]


def _outputs(connection: Connection, settings: Settings, *which: ColumnElement[bool]) -> dict[int, list[OutputView]]:
    """Read the outputs by submission, with their disclosed figures alone; ``which`` are conditions for outputs."""
    figures, evaluations = _figures(connection, settings, *which)
    found: dict[int, list[OutputView]] = defaultdict(list)
    query = select(outputs).where(*which).order_by(outputs.c.submission_id, outputs.c.test, outputs.c.variant)
    for row in connection.execute(query):
        output = OutputView(
            id=row.id,
            test=row.test,
            variant=row.variant,
            params=_texts(row.params),
            figures=figures.get(row.id, {}),
            evaluation_id=evaluations.get(row.id),
        )
        found[row.submission_id].append(output)
    return found


def _figures(
    connection: Connection, settings: Settings, *which: ColumnElement[bool]
) -> tuple[dict[int, dict[str, Figures]], dict[int, int]]:
    """Read the disclosed figures, by output and name of the metric, and the evaluation that ranks each output."""
    names = dict(zip(settings.metrics, names_of(settings.metrics), strict=True))
    figures: dict[int, dict[str, Figures]] = defaultdict(dict)
    evaluations: dict[int, int] = {}
    of = disclosures.c
    query = select(of.output_id, of.metric, of.evaluation_id, of.value, of.low, of.high)
    if which:
        query = query.join(outputs, outputs.c.id == of.output_id).where(*which)
    rows = {(row.output_id, row.metric): row for row in connection.execute(query)}
    for (output, metric), row in sorted(rows.items(), key=lambda item: item[0][0]):
        if metric == settings.metric:
            evaluations[output] = row.evaluation_id
        if metric in names:
            figures[output][metric] = Figures(value=row.value, low=row.low, high=row.high)
    return {
        output: {names[metric]: by[metric] for metric in settings.metrics if metric in by}
        for output, by in figures.items()
    }, evaluations
