"""Charts of a site: how the best score moved, scores against parameters, and the interval bars of leaderboards.

The bars are drawn by templates/charts.html: a page has up to 10,000, each of which moves with its row when a script
sorts or filters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from geval_py.board.ranking.views import Entry, Standings, SubmissionView
from geval_py.board.site import rendering
from geval_py.reports.charts import WIDTH, Chart, ChartRow, Scale, Tick, dots, scale_of, scatter

MAX_RECORDS = 200
MAX_PARAMETERS = 24
MAX_BASELINES = 5
MAX_CATEGORIES = 10
FARTHEST = 1.4  # a baseline is drawn if it is within this factor of the scores
WIDE = 860  # pixels
HALF_A_DAY = 43200.0  # seconds
DAYS = (1, 2, 7, 14, 30, 61, 91, 182, 365, 730, 1826)  # between two ticks
BAR_WIDTH = 220
FENCE = 3.0  # times the range of the middle half


def disclosed_outputs(submissions: Sequence[SubmissionView], test: str) -> list[Entry]:
    """Return the outputs for a test whose scores are shown, without places, the earliest first, no withdrawn ones.

    The ``submissions`` come with the latest first.
    """
    return [
        Entry(submission=submission, output=output)
        for submission in reversed(submissions)
        for output in submission.outputs_for(test)
        if output.shown.value is not None
    ]


def is_drawn(entry: Entry) -> bool:
    """Return whether a chart of a test's history has a dot for an output with a score."""
    return entry.score is not None and math.isfinite(entry.score) and not entry.submission.baseline


# The best score over time


class Progress(NamedTuple):
    """The best score over time, in a wide and a narrow chart.

    ``records`` are the outputs that were better than all before them; of those of one moment, only the best.
    ``baselines`` are pairs of a name and an output.
    """

    records: tuple[Entry, ...]
    charts: tuple[Chart, ...]
    baselines: tuple[tuple[str, Entry], ...]
    has_rules: bool
    infinite: int
    scored: int


def progress_of(outputs: Sequence[Entry], standings: Standings) -> Progress:
    """Return how the best score of a test moved; without a finite score there is no chart."""
    best = min if standings.direction == "lower" else max
    score = attrgetter("score")
    finite = list(filter(is_drawn, outputs))
    records: list[Entry] = []
    for _, of_moment in groupby(finite, key=attrgetter("submission.arrived")):
        first = best(of_moment, key=score)
        if not records or best(records[-1], first, key=score) is first:
            records.append(first)
    named: dict[str, list[Entry]] = {}
    for one in outputs:
        if one.submission.baseline and math.isfinite(score(one)):
            named.setdefault(one.submission.description or one.submitter, []).append(one)
    baselines = [(name, best(several, key=score)) for name, several in named.items()][:MAX_BASELINES]
    points, steps = ([(one.submission.arrived.timestamp(), score(one)) for one in some] for some in (finite, records))
    moments, scored = {when for when, _ in points}, sum(not one.submission.baseline for one in outputs)
    low, high = (choose((value for _, value in points), default=math.nan) for choose in (min, max))
    rules = [(score(one), name) for name, one in baselines if low / FARTHEST <= score(one) <= high * FARTHEST]
    charts = [
        scatter(
            points,
            x_title="time of arrival",
            y_title=standings.metric,
            width=width,
            # A single moment lies in the middle of a day.
            x_ends=[when + more for when in moments for more in (-HALF_A_DAY, HALF_A_DAY)]
            if len(moments) == 1
            else (),
            x_ticks=partial(_time_ticks, moments, most),
            best=steps,
            rules=rules,
        )
        for width, most in ((WIDE, 6), (WIDTH, 3))
        if points
    ]
    return Progress(
        records=tuple(records[-MAX_RECORDS:]),
        charts=tuple(charts),
        baselines=tuple(baselines),
        has_rules=bool(rules),
        infinite=scored - len(finite),
        scored=scored,
    )


def _time_ticks(moments: set[float], most: int, scale: Scale) -> Iterator[Tick]:
    """Mark the only moment, or days at midnight UTC; if all is within one day, name that day in the middle."""
    if len(moments) == 1:
        (when,) = moments
        yield when, rendering.moment(datetime.fromtimestamp(when, UTC))
        return
    first, last = (datetime.fromtimestamp(value, UTC) for value in (scale.low, scale.high))
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    number = (last - midnight).days + 1
    if number < 1:
        yield (scale.low + scale.high) / 2, rendering.day(first)
        return
    step = next((step for step in DAYS if number / step <= most), number)
    for mark in (midnight + timedelta(days=later) for later in range(0, number, step)):
        day = rendering.day(mark)
        yield mark.timestamp(), day if first.year != last.year else day.rpartition(" ")[0]


# Scores by the values of parameters


def parameter_charts(outputs: Sequence[Entry], standings: Standings) -> list[tuple[str, Chart]]:
    """Draw the scores by each parameter that has several values, the most used parameters first.

    Numbers lie along an axis, and words in a row each.
    """
    points: dict[str, list[tuple[str, float]]] = {}
    for one in outputs:
        if one.score is not None and math.isfinite(one.score):
            for name, value in one.params.items():
                points.setdefault(name, []).append((value, one.score))
    charts = []
    for name in sorted(points, key=lambda name: (-len(points[name]), name))[:MAX_PARAMETERS]:
        values = Counter(value for value, _ in points[name])
        if len(values) < 2:
            continue
        try:
            numbers = [(float(value), score) for value, score in points[name]]
        except ValueError:
            numbers = [(math.nan, 0.0)]
        if all(math.isfinite(number) for number, _ in numbers):
            charts.append((name, scatter(numbers, x_title=name, y_title=standings.metric)))
            continue
        rows = [
            ChartRow(
                label=value, value=math.nan, points=tuple(score for other, score in points[name] if other == value)
            )
            for value, _ in values.most_common(MAX_CATEGORIES)
        ]
        charts.append((name, dots(rows, title=standings.metric, logarithmic=None)))
    return charts


# The interval bars of a leaderboard


def bar_scale(standings: Standings) -> Scale | None:
    """Return the scale of all bars of a leaderboard; scores beyond Tukey's outer fences may lie outside of it."""
    ranked = [(one.score, one) for one in standings.entries if one.score is not None and math.isfinite(one.score)]
    scores = sorted(score for score, _ in ranked)
    if not scores:
        return None
    first, third = scores[len(scores) // 4], scores[len(scores) * 3 // 4]
    low, high = first - FENCE * (third - first), third + FENCE * (third - first)
    ends = [end for score, one in ranked if low <= score <= high for end in one.output.shown]
    return scale_of(ends, 6, BAR_WIDTH - 6, margin=0.02)


def bar_of(scale: Scale | None, value: float | None, low: float | None, high: float | None) -> dict[str, Any] | None:
    """Return the bar of a score and its interval; None if either is not finite.

    It has the pixels of its ends, ``start`` and ``end``, and of the score, ``middle``; ``beyond`` is an arrow off the
    scale.
    """
    if scale is None or value is None:
        return None
    ends = (value if low is None else low, value, value if high is None else high)
    if not all(map(math.isfinite, ends)):
        return None
    if scale.low <= value <= scale.high:
        start, middle, end = map(scale.at, ends)
        return {"start": start, "end": end, "middle": middle, "beyond": ""}
    at, back = (scale.start, 5) if value < scale.low else (scale.end, -5)
    return {"start": at, "end": at, "middle": at, "beyond": f"M{at + back} 3L{at} 8L{at + back} 13"}
