"""What anyone may see: submissions with their disclosed figures, and leaderboards made of them.

What is not in these values cannot leak into a page or a table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, Text, cast, select

from geval_py.board.database.schema import (
    COUNTED,
    RECEIVED,
    SCORED,
    Disclosures,
    Files,
    Outputs,
    Submissions,
    Submitters,
    disclosures,
    files,
    outputs,
    pick,
    submissions,
    submitters,
)
from geval_py.board.operations.teams import settings_by_team
from geval_py.board.settings import BoardSettings, Digits, metric_of, names_of
from geval_py.board.submission import attributes
from geval_py.text import words


class Figures(NamedTuple):
    """A disclosed score and the ends of its 95 % interval, rounded; None where nothing may be shown."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class OutputView:
    """An output of a submission; ``figures`` by metric, the ranking one first.

    ``evaluation_id`` is that of the disclosed evaluation by the ranking metric.
    """

    id: int
    test: str
    variant: str
    params: Mapping[str, str]
    figures: Mapping[str, Figures]
    evaluation_id: int | None = None

    @property
    def shown(self) -> Figures:
        """The figures by the ranking metric."""
        return next(iter(self.figures.values()), Figures())


@dataclass(frozen=True, kw_only=True)
class SubmissionView:
    """What anyone may know of a submission; its source is for the organiser alone.

    It has outputs only if it may stand in a leaderboard.
    """

    code: str
    submitter: str
    arrived: datetime
    phase: str = ""
    state: str = SCORED
    reason: str = ""
    baseline: bool = False
    description: str = ""
    author: str = ""
    affiliation: str = ""
    revision: str = ""
    tags: Sequence[str] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    links: Sequence[tuple[str, str]] = ()
    problems_json: str = "[]"  # decoded by its own page alone, since those of all take long
    remark: str = ""
    withdrawn: datetime | None = None
    corrected: datetime | None = None
    scorer: str = ""
    files: Sequence[Row[Any]] = ()  # name, bytes, sha256
    outputs: tuple[OutputView, ...] = ()

    @property
    def is_ranked(self) -> bool:
        """Whether it may stand in a leaderboard."""
        return self.state == SCORED and not self.withdrawn

    @property
    def status(self) -> str:
        """Its state in one word."""
        return "withdrawn" if self.withdrawn else self.state

    def outputs_for(self, test: str) -> list[OutputView]:
        """Return the outputs for a test."""
        return [output for output in self.outputs if output.test == test]

    def best(self, test: str, settings: BoardSettings) -> OutputView | None:
        """Return the output for a test with the best public score; None if no score is public."""
        choose = min if metric_of(settings.metric).measure.direction == "lower" else max
        scored = [output for output in self.outputs_for(test) if output.shown.value is not None]
        return choose(scored, key=lambda output: output.shown.value or 0.0, default=None)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An output of a submission, and its place in a leaderboard.

    ``place`` is None for a baseline, and while scores are hidden; ``shared``: other entries have the same place.
    ``first`` and ``last`` bound the places of entries that do not differ from it significantly, ``groups`` are the
    numbers of its groups (compact letters). ``held``: a ladder shows an earlier score in place of the latest one.
    """

    submission: SubmissionView
    output: OutputView
    place: int | None = None
    shared: bool = False
    first: int | None = None
    last: int | None = None
    groups: tuple[int, ...] = ()
    held: bool = False

    @property
    def place_text(self) -> str:
        """The place, ``3=`` if others share it; ``baseline`` for a baseline."""
        if self.submission.baseline:
            return "baseline"
        return "" if self.place is None else f"{self.place}{'=' if self.shared else ''}"

    @property
    def code(self) -> str:
        """The code of the submission."""
        return self.submission.code

    @property
    def submitter(self) -> str:
        """The name of the submitter."""
        return self.submission.submitter

    @property
    def score(self) -> float | None:
        """The shown score by the ranking metric; None for a hidden one, and for one that is not a number."""
        return self.output.shown.value

    @property
    def params(self) -> Mapping[str, str]:
        """The parameters of the submission and of the output."""
        return {**self.submission.params, **self.output.params}


@dataclass(frozen=True, kw_only=True)
class Standings:
    """The leaderboard of one test in one phase.

    ``digits`` is the number of significant digits of scores; with 0, scores and places are hidden. ``end_digits`` is
    that of the ends of intervals. If the answers are hidden, ``floor`` is the score of knowing nothing, and worse
    ones are shown as infinite; None for other metrics. ``notes`` are sentences without full stops. ``part`` is the
    part of the test that is scored, "" for the whole.
    """

    test: str
    phase: str
    metric: str
    others: tuple[str, ...]
    unit: str
    direction: str
    digits: int
    end_digits: int
    by: str
    entries: tuple[Entry, ...]
    floor: float | None = None
    notes: tuple[str, ...] = ()
    part: str = ""

    @property
    def shown_digits(self) -> Digits:
        """The digits of scores and of the ends of intervals."""
        return Digits(self.digits, self.end_digits)


# Reading, from one state of the database

# What a withdrawn submission says of itself
NOTHING: dict[str, Any] = dict.fromkeys(words("reason description author affiliation"), "")
NOTHING |= {"tags": (), "links": (), "params": {}}


def submission_views(
    connection: Connection, settings: BoardSettings, *which: ColumnElement[bool]
) -> Iterator[SubmissionView]:
    """Yield submissions, the latest first: the columns that are fields of a view, and nothing else.

    ``which`` are conditions on submissions.
    """
    query = select(*pick(Files, "submission_id name bytes sha256")).join_from(files, submissions).where(*which)
    in_order = connection.execute(query.order_by(Files.submission_id, Files.name))
    files_by_id = {number: list(rows) for number, rows in groupby(in_order, key=lambda file: file.submission_id)}
    outputs_by_id = _outputs(connection, settings, *which)
    columns: list[ColumnElement[Any]] = [
        Submissions[one.name] for one in fields(SubmissionView) if one.name in Submissions
    ]
    teams = settings_by_team(connection, settings)
    columns += Submissions.id, Submissions.submitter_id, cast(Submissions.problems, Text).label("problems_json")
    query = select(Submitters.name.label("submitter"), *columns).join_from(submissions, submitters)
    query = query.where(*which, *RECEIVED).order_by(Submissions.arrived.desc(), Submissions.id.desc())
    for row in connection.execute(query):
        values = row._asdict()
        number, submitter_id = values.pop("id"), values.pop("submitter_id")
        if values["withdrawn"]:
            values |= NOTHING
        yield SubmissionView(
            **values,
            phase=teams[submitter_id].phase_of(values["arrived"]),
            files=files_by_id.get(number, ()),
            outputs=tuple(outputs_by_id[number]),
        )


def _outputs(
    connection: Connection, settings: BoardSettings, *which: ColumnElement[bool]
) -> dict[int, list[OutputView]]:
    """Read the outputs by submission, with their disclosed figures alone; ``which`` are conditions on submissions."""
    names = dict(zip(settings.metrics, names_of(settings.metrics), strict=True))
    columns = (
        *pick(Outputs, "id submission_id test variant params"),
        *pick(Disclosures, "metric evaluation_id value low high"),
    )
    query = (
        select(*columns)
        .join_from(outputs, submissions)
        .join(disclosures, Disclosures.output_id == Outputs.id, isouter=True)
        .where(*which, *COUNTED)
    )
    rows = connection.execute(query.order_by(*pick(Outputs, "submission_id test variant id")))
    views: dict[int, list[OutputView]] = defaultdict(list)
    for number, of_output in groupby(rows, key=lambda row: row.id):
        by_metric = {row.metric: row for row in of_output}
        first, ranking = next(iter(by_metric.values())), by_metric.get(settings.metric)
        output = OutputView(
            id=number,
            **attributes(first, "test variant params"),
            figures={
                name: Figures(row.value, row.low, row.high)
                for metric, name in names.items()
                if ranking and (row := by_metric.get(metric))
            },
            evaluation_id=None if ranking is None else ranking.evaluation_id,
        )
        views[first.submission_id].append(output)
    return views
