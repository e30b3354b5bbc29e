"""Charts of a site: how the best score moved, scores against parameters, and the interval bars of leaderboards.

Python computes pixels from disclosed figures; templates/charts.html draws them as SVG.

What they share with the charts of reports, which Python draws whole, is in :mod:`geval_py.reports.scales`. Here a
page has up to 10,000 interval bars, each of which moves with its row when a script sorts or filters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, groupby

from geval_py.board.site import rendering
from geval_py.board.site.view import OutputView, SubmissionView
from geval_py.board.submission import Standings
from geval_py.reports.scales import Scale, scale_of, tick_text

MOST_RECORDS = 200
MOST_PARAMETERS = 24
MOST_BASELINES = 5
MOST_CATEGORIES = 10
MOST_DOTS = 1500  # of a chart
FARTHEST = 1.4  # a baseline is drawn if it is within this factor of the scores
ROW_HEIGHT = 26
HALF_A_DAY = 43200.0  # seconds
DAYS = (1, 2, 7, 14, 30, 61, 91, 182, 365, 730, 1826)  # between two ticks
BAR_WIDTH = 220
FENCE = 3.0  # times the range of the middle half


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosedOutput:
    """An output with a disclosed score."""

    submission: SubmissionView
    output: OutputView
    value: float
    low: float | None
    high: float | None

    @property
    def params(self) -> dict[str, str]:
        """The parameters of the submission, overridden by the output's own."""
        return {**self.submission.params, **self.output.params}

    @property
    def name(self) -> str:
        """The name of a baseline in a chart."""
        return self.submission.description or self.submission.submitter

    @property
    def is_drawn(self) -> bool:
        """Whether a chart of a test's history has a dot for it."""
        return math.isfinite(self.value) and not self.submission.baseline

    @property
    def point(self) -> tuple[float, float]:
        """Its moment, in seconds since 1970, and its score."""
        return self.submission.arrived.timestamp(), self.value


def disclosed_outputs(submissions: Sequence[SubmissionView], standings: Standings) -> list[DisclosedOutput]:
    """Return the outputs of a test whose scores are shown, the earliest first, without withdrawn ones.

    The ``submissions`` come with the latest first.
    """
    return [
        DisclosedOutput(submission=submission, output=output, value=shown.value, low=shown.low, high=shown.high)
        for submission in reversed(submissions)
        if submission.is_ranked
        for output in submission.outputs
        if output.test == standings.test
        if (shown := output.figures.get(standings.metric)) and shown.value is not None
    ]


def is_better(one: float, other: float, direction: str) -> bool:
    """Whether a score is better than another."""
    return one < other if direction == "lower" else one > other


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A pixel on an axis and its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The size of a chart, and the edges of its drawing area, in pixels."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    def x(self, values: Iterable[float], margin: float = 0.04) -> Scale | None:
        """Return the horizontal scale for some values; None if none is finite."""
        return scale_of(values, self.left, self.right, margin=margin)

    def y(self, values: Iterable[float]) -> Scale | None:
        """Return the vertical scale for some values; None if none is finite."""
        return scale_of(values, self.bottom, self.top)


WIDE = Frame(width=860, height=340, left=52, right=848, top=28, bottom=298)
NARROW = Frame(width=340, height=260, left=52, right=328, top=28, bottom=218)
CARD = Frame(width=400, height=250, left=52, right=388, top=28, bottom=208)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing: dots and steps as SVG paths, ticks of both axes, rules; in ``rows``, a row per category."""

    name: str
    frame: Frame
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]
    dots: str
    steps: str = ""
    records: str = ""
    rules: tuple[Tick, ...] = ()
    x_name: str = ""
    y_name: str = ""
    rows: bool = False


# The best score over time


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The best score over time, in a wide and a narrow chart.

    ``records`` are the outputs that were better than all before them; of those of one moment, only the best.
    """

    records: tuple[DisclosedOutput, ...]
    charts: tuple[Chart, ...]
    baselines: tuple[DisclosedOutput, ...]
    infinite: int
    scored: int


def progress_of(outputs: Sequence[DisclosedOutput], standings: Standings) -> Progress:
    """Return how the best score of a test moved."""
    own = [one for one in outputs if not one.submission.baseline]
    records = list(_records(own, standings.direction))
    baselines = list(_baselines(outputs, standings.direction))
    charts = (_progress_chart(own, records, baselines, standings.metric, frame) for frame in (WIDE, NARROW))
    return Progress(
        records=tuple(records[-MOST_RECORDS:]),
        charts=tuple(chart for chart in charts if chart),
        baselines=tuple(baselines),
        infinite=sum(not math.isfinite(one.value) for one in own),
        scored=len(own),
    )


def _records(outputs: Iterable[DisclosedOutput], direction: str) -> Iterator[DisclosedOutput]:
    record: DisclosedOutput | None = None
    finite = (one for one in outputs if math.isfinite(one.value))
    for _, of_moment in groupby(finite, key=lambda one: one.submission.arrived):
        best = _best(of_moment, direction)
        if record is None or is_better(best.value, record.value, direction):
            record = best
            yield record


def _best(outputs: Iterable[DisclosedOutput], direction: str) -> DisclosedOutput:
    """Return the best of some outputs, of equal ones the first."""
    return (min if direction == "lower" else max)(outputs, key=lambda one: one.value)


def _baselines(outputs: Iterable[DisclosedOutput], direction: str) -> list[DisclosedOutput]:
    """Return the best output of each baseline."""
    named: dict[str, list[DisclosedOutput]] = {}
    for one in outputs:
        if one.submission.baseline and math.isfinite(one.value):
            named.setdefault(one.name, []).append(one)
    return [_best(own, direction) for own in named.values()][:MOST_BASELINES]


def _progress_chart(
    outputs: Sequence[DisclosedOutput],
    records: Sequence[DisclosedOutput],
    baselines: Sequence[DisclosedOutput],
    y_name: str,
    frame: Frame,
) -> Chart | None:
    """Draw scores over time, the best so far as steps, and near baselines as rules; None without a finite score."""
    points = [one.point for one in outputs if math.isfinite(one.value)]
    shown = [value for _, value in points]
    values = [one.value for one in baselines]
    near = [value for value in values if shown and min(shown) / FARTHEST <= value <= max(shown) * FARTHEST]
    x, y = frame.x(_moments(points), margin=0.02), frame.y([*shown, *near])
    if x is None or y is None:
        return None
    best = [(x.at(when), y.at(value)) for when, value in (one.point for one in records)]
    steps = f"M{best[0][0]} {best[0][1]}" + "".join(f"H{at}V{height}" for at, height in best[1:])
    return Chart(
        name="best so far",
        frame=frame,
        x=tuple(_time_ticks(x, {when for when, _ in points}, 6 if frame.width > 500 else 3)),
        y=_ticks(y),
        dots=_dots((x.at(when), y.at(value)) for when, value in points),
        steps=f"{steps}H{frame.right}",
        records=_dots(best),
        rules=tuple(Tick(at=y.at(one.value), text=one.name) for one in baselines if y.low <= one.value <= y.high),
        x_name="time of arrival",
        y_name=y_name,
    )


def _moments(points: Sequence[tuple[float, float]]) -> Iterator[float]:
    """Yield the moments of points; if there is only one, those of an axis of a day around it."""
    moments = {when for when, _ in points}
    around = (-HALF_A_DAY, HALF_A_DAY) if len(moments) == 1 else (0.0,)
    return (when + more for when in moments for more in around)


def _time_ticks(scale: Scale, moments: set[float], most: int) -> Iterator[Tick]:
    """Mark the only moment, or days at midnight UTC; if all is within one day, name that day in the middle."""
    if len(moments) == 1:
        (when,) = moments
        yield Tick(at=scale.at(when), text=rendering.moment(datetime.fromtimestamp(when, UTC)))
        return
    first, last = (datetime.fromtimestamp(value, UTC) for value in (scale.low, scale.high))
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    number = (last - midnight).days + 1
    if number < 1:
        yield Tick(at=(scale.start + scale.end) / 2, text=rendering.day(first))
        return
    step = next((step for step in DAYS if number / step <= most), number)
    write = rendering.day if first.year != last.year else rendering.short_day
    for mark in (midnight + timedelta(days=later) for later in range(0, number, step)):
        yield Tick(at=scale.at(mark.timestamp()), text=write(mark))


def _ticks(scale: Scale, most: int = 5) -> tuple[Tick, ...]:
    return tuple(Tick(at=scale.at(value), text=tick_text(value)) for value in scale.ticks(most))


def _dots(points: Iterable[tuple[float, float]]) -> str:
    """Write dots as strokes without length, which a round line cap makes dots; equal pixels are drawn once.

    If there are too many, dots are rounded to larger pixels.
    """
    exact = list(points)
    for pixels in count(1):
        seen = dict.fromkeys((round(x / pixels) * pixels, round(y / pixels) * pixels) for x, y in exact)
        if len(seen) <= MOST_DOTS:
            break
    return "".join(f"M{x} {y}h0" for x, y in seen)


# Scores by the values of parameters


def parameter_charts(outputs: Sequence[DisclosedOutput], standings: Standings) -> list[Chart]:
    """Draw the scores by each parameter that has several values, the most used parameters first."""
    points: dict[str, list[tuple[str, float]]] = {}
    for one in outputs:
        if math.isfinite(one.value):
            for name, value in one.params.items():
                points.setdefault(name, []).append((value, one.value))
    used = sorted(points, key=lambda name: (-len(points[name]), name))[:MOST_PARAMETERS]
    charts = (_parameter_chart(name, points[name], standings.metric) for name in used)
    return [chart for chart in charts if chart]


def _parameter_chart(name: str, points: Sequence[tuple[str, float]], metric: str) -> Chart | None:
    """Draw numbers along an axis, and words in a row each; None if all values are equal."""
    if len({value for value, _ in points}) < 2:
        return None
    try:
        numbers = [float(value) for value, _ in points]
    except ValueError:
        return _rows_chart(name, points, metric)
    if not all(map(math.isfinite, numbers)):
        return _rows_chart(name, points, metric)
    x, y = CARD.x(numbers), CARD.y(score for _, score in points)
    if x is None or y is None:
        return None
    dots = _dots((x.at(number), y.at(score)) for number, (_, score) in zip(numbers, points, strict=True))
    return Chart(name=name, frame=CARD, x=_ticks(x, 4), y=_ticks(y, 4), dots=dots, x_name=name, y_name=metric)


def _rows_chart(name: str, points: Sequence[tuple[str, float]], metric: str) -> Chart | None:
    common = [value for value, _ in Counter(value for value, _ in points).most_common(MOST_CATEGORIES)]
    top, bottom = 12, 12 + ROW_HEIGHT * len(common)
    frame = Frame(width=CARD.width, height=bottom + 42, left=120, right=CARD.right, top=top, bottom=bottom)
    at = {value: top + ROW_HEIGHT * (number + 0.5) for number, value in enumerate(common)}
    x = frame.x(score for value, score in points if value in at)
    if x is None:
        return None
    return Chart(
        name=name,
        frame=frame,
        x=_ticks(x, 4),
        y=tuple(Tick(at=at[value], text=value) for value in common),
        dots=_dots((x.at(score), at[value]) for value, score in points if value in at),
        x_name=metric,
        rows=True,
    )


# The interval bars of a leaderboard


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The interval bar of a row: pixels of its ends and of the score; ``beyond`` is an arrow off the scale."""

    start: float
    end: float
    middle: float
    beyond: str = ""


def bar_scale(standings: Standings) -> Scale | None:
    """Return the scale of all bars of a leaderboard; scores beyond Tukey's outer fences may lie outside of it."""
    entries = [one for one in standings.entries if one.score is not None and math.isfinite(one.score)]
    scores = sorted(one.score for one in entries if one.score is not None)
    if not scores:
        return None
    first, third = scores[len(scores) // 4], scores[len(scores) * 3 // 4]
    low, high = first - FENCE * (third - first), third + FENCE * (third - first)
    near = [one for one in entries if one.score is not None and low <= one.score <= high]
    ends = [end for one in near for end in (one.score, one.low, one.high) if end is not None]
    return scale_of(ends, 6, BAR_WIDTH - 6, margin=0.02)


def bar_ticks(scale: Scale | None) -> tuple[Tick, ...]:
    """Return the ticks above the bars of a leaderboard."""
    return _ticks(scale, 3) if scale else ()


def bar_of(scale: Scale | None, value: float | None, low: float | None, high: float | None) -> Bar | None:
    """Return the bar of a score and its interval; None if either is not finite."""
    if scale is None or value is None:
        return None
    ends = (value if low is None else low, value, value if high is None else high)
    if not all(map(math.isfinite, ends)):
        return None
    if scale.low <= value <= scale.high:
        start, middle, end = map(scale.at, ends)
        return Bar(start=start, end=end, middle=middle)
    at, back = (scale.start, 5) if value < scale.low else (scale.end, -5)
    return Bar(start=at, end=at, middle=at, beyond=f"M{at + back} 3L{at} 8L{at + back} 13")
