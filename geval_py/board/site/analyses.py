"""What the scores of a test do over time, and with the parameters of outputs: from disclosed figures only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from geval_py.board.site.site_charts import NARROW, WIDE, Arrival, Chart, parameter_chart, progress_chart
from geval_py.board.site.view import OutputView, SiteView, SubmissionView
from geval_py.board.submission import Entry, Standings

MOST_RECORDS = 200
MOST_PARAMETERS = 24
MOST_COMPARED = 200  # which keeps the page below 500 kB


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """An output with a disclosed score."""

    submission: SubmissionView
    output: OutputView
    value: float
    low: float | None
    high: float | None

    @property
    def params(self) -> dict[str, str]:
        """The parameters of the submission, and those of the output over them."""
        return {**self.submission.params, **self.output.params}

    @property
    def arrival(self) -> Arrival:
        """Its moment and score."""
        return Arrival(when=self.submission.arrived, value=self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The best so far: each output that was better than all before it, and charts, wide and narrow."""

    records: tuple[Scored, ...]
    charts: tuple[Chart, ...]
    baselines: tuple[tuple[str, float], ...]
    infinite: int
    scored: int


def scored_outputs(view: SiteView, standings: Standings) -> list[Scored]:
    """Give the outputs of a test whose scores are shown, the earliest first; those withdrawn are not among them."""
    return [
        Scored(submission=submission, output=output, value=figures.value, low=figures.low, high=figures.high)
        for submission in reversed(view.submissions)
        if submission.is_ranked
        for output in submission.outputs
        if output.test == standings.test
        if (figures := output.figures.get(standings.metric)) and figures.value is not None
    ]


def progress_of(scored: Sequence[Scored], standings: Standings) -> Progress:
    """Tell how the best score of a test moved."""
    own = [one for one in scored if not one.submission.baseline]
    records = list(_records(own, standings.direction))
    rules = [(_label(one), one.value) for one in _best_by_submitter(scored, standings.direction)]
    arrivals, best = [one.arrival for one in own], [one.arrival for one in records]
    charts = [progress_chart(arrivals, best, rules, standings.metric, frame) for frame in (WIDE, NARROW)]
    return Progress(
        records=tuple(records[-MOST_RECORDS:]),
        charts=tuple(chart for chart in charts if chart),
        baselines=tuple(rules),
        infinite=sum(not math.isfinite(one.value) for one in own),
        scored=len(own),
    )


def _label(one: Scored) -> str:
    return one.submission.description or one.submission.submitter


def better(one: float, other: float, direction: str) -> bool:
    """Tell whether a score is better than another."""
    return one < other if direction == "lower" else one > other


def _records(scored: Sequence[Scored], direction: str) -> Iterator[Scored]:
    best: float | None = None
    for one in scored:
        if math.isfinite(one.value) and (best is None or better(one.value, best, direction)):
            best = one.value
            yield one


def _best_by_submitter(scored: Sequence[Scored], direction: str) -> list[Scored]:
    """Give the best baseline of each name, at most five."""
    found: dict[str, Scored] = {}
    for one in scored:
        if one.submission.baseline and math.isfinite(one.value):
            old = found.get(_label(one))
            if old is None or better(one.value, old.value, direction):
                found[_label(one)] = one
    return list(found.values())[:5]


def parameter_charts(scored: Sequence[Scored], standings: Standings) -> list[Chart]:
    """Draw the scores by each parameter that has several values, the most used parameters first."""
    points: dict[str, list[tuple[str, float]]] = {}
    for one in scored:
        for name, value in one.params.items():
            points.setdefault(name, []).append((value, one.value))
    used = sorted(points, key=lambda name: (-len(points[name]), name))[:MOST_PARAMETERS]
    charts = (parameter_chart(name, points[name], standings.metric) for name in used)
    return [chart for chart in charts if chart]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A row to compare with another: an output, its entry if it has one, and the phase of that."""

    scored: Scored
    entry: Entry | None = None
    phase: str = ""


def to_compare(scored: Sequence[Scored], tables: Sequence[Standings]) -> list[Compared]:
    """Give the entries of a test's leaderboards in their order, then the best of each other submission, latest first.

    ``tables`` are those of the phases, that of the front page first.
    """
    by_output = {one.output.id: one for one in scored}
    rows: dict[str, Compared] = {}
    for table in tables:
        for entry in table.entries:
            if entry.output_id in by_output:
                row = Compared(scored=by_output[entry.output_id], entry=entry, phase=table.phase)
                rows.setdefault(entry.code, row)
    others: dict[str, Scored] = {}
    for one in reversed(scored):
        code = one.submission.code
        old = others.get(code)
        if code not in rows and (old is None or better(one.value, old.value, tables[0].direction)):
            others[code] = one
    return [*rows.values(), *(Compared(scored=one) for one in others.values())]
