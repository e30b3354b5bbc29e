"""Charts of a site: how the best score moved, scores against parameters, and the interval bars of leaderboards.

The bars are drawn by templates/charts.html: a page has up to 10,000, each of which moves with its row when a script
sorts or filters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from geval_py.board.ranking.views import Entry, Standings, SubmissionView
from geval_py.board.site import rendering
from geval_py.reports.charts import WIDTH, Chart, ChartRow, Scale, Tick, dots, scale_of, scatter

MAX_RECORDS = 200
MAX_PARAMETERS = 24
MAX_BASELINES = 5
MAX_CATEGORIES = 10
FARTHEST = 1.4  # a baseline is drawn if it is within this factor of the scores
WIDE = 860  # pixels
DAYS = (1, 2, 7, 14, 30, 61, 91, 182, 365, 730, 1826)  # between two ticks
BAR_WIDTH = 220
FENCE = 3.0  # times the range of the middle half


def scored_outputs(submissions: Sequence[SubmissionView], test: str) -> list[Entry]:
    """Return the outputs for a test whose scores are public, without places, the earliest first.

    The ``submissions`` come with the latest first.
    """
    return [
        Entry(submission=submission, output=output)
        for submission in reversed(submissions)
        for output in submission.outputs_for(test)
        if output.shown.value is not None
    ]


# The best score over time


class Progress(NamedTuple):
    """The best score over time, in a wide and a narrow chart.

    ``records`` are the outputs that were better than all before them; of those of one moment, only the best.
    ``baselines`` are those of the leaderboard near the scores. ``infinite`` is how many are not drawn.
    """

    records: list[Entry]
    charts: list[Chart]
    baselines: list[Entry]
    infinite: int


def progress_of(submissions: Sequence[SubmissionView], standings: Standings) -> Progress:
    """Return how the best score of a test moved; there are charts for scores at two moments or more."""
    best = min if standings.direction == "lower" else max
    score = attrgetter("score")
    outputs = [one for one in scored_outputs(submissions, standings.test) if not one.submission.baseline]
    finite = [output for output in outputs if math.isfinite(score(output))]
    records: list[Entry] = []
    for _, of_moment in groupby(finite, key=attrgetter("submission.arrived")):
        first = best(of_moment, key=score)
        if not records or best(records[-1], first, key=score) is first:
            records.append(first)
    points, steps = ([(one.submission.arrived.timestamp(), score(one)) for one in some] for some in (finite, records))
    low, high = (choose((value for _, value in points), default=math.nan) for choose in (min, max))
    baselines = [one for one in standings.entries if one.submission.baseline and one.score is not None]
    near = [one for one in baselines if low / FARTHEST <= score(one) <= high * FARTHEST][:MAX_BASELINES]
    has_history = len({when for when, _ in points}) > 1
    charts = [
        scatter(
            points,
            x_title="time of arrival",
            y_title=standings.metric,
            width=width,
            x_ticks=partial(_time_ticks, most),
            best=steps,
            rules=[(score(one), one.submission.description or one.submitter) for one in near],
        )
        for width, most in ((WIDE, 6), (WIDTH, 3))
        if has_history
    ]
    return Progress(
        records=records[-MAX_RECORDS:],
        charts=charts,
        baselines=near,
        infinite=len(outputs) - len(finite),
    )


def _time_ticks(most: int, scale: Scale) -> Iterator[Tick]:
    """Mark days at midnight UTC; if all is within one day, name that day in the middle."""
    first, last = (datetime.fromtimestamp(value, UTC) for value in (scale.low, scale.high))
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    days = [midnight + timedelta(days=later) for later in range((last - midnight).days + 1)]
    if not days:
        yield (scale.low + scale.high) / 2, rendering.day(first)
    step = next((step for step in DAYS if len(days) / step <= most), len(days))
    for day in days[::step]:
        yield day.timestamp(), rendering.day(day)


# Scores by the values of parameters


def parameter_charts(submissions: Sequence[SubmissionView], standings: Standings) -> list[tuple[str, Chart]]:
    """Draw the scores by each parameter that has several values, the most used parameters first.

    Numbers lie along an axis, and words in a row each.
    """
    scores: dict[str, dict[str, list[float]]] = {}  # by name and value
    for output in scored_outputs(submissions, standings.test):
        if output.score is not None and math.isfinite(output.score):
            for name, value in output.params.items():
                scores.setdefault(name, {}).setdefault(value, []).append(output.score)
    uses = {name: sum(map(len, by_value.values())) for name, by_value in scores.items() if len(by_value) > 1}
    charts = []
    for name in sorted(uses, key=lambda name: (-uses[name], name))[:MAX_PARAMETERS]:
        numbers = [(_number(value), score) for value, several in scores[name].items() for score in several]
        if all(math.isfinite(number) for number, _ in numbers):
            charts.append((name, scatter(numbers, x_title=name, y_title=standings.metric)))
            continue
        common = sorted(scores[name].items(), key=lambda item: -len(item[1]))[:MAX_CATEGORIES]
        rows = [ChartRow(label=value, value=math.nan, points=tuple(several)) for value, several in common]
        charts.append((name, dots(rows, title=standings.metric, logarithmic=None)))
    return charts


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


# The interval bars of a leaderboard


def bar_scale(standings: Standings) -> Scale | None:
    """Return the scale of all bars of a leaderboard; scores beyond Tukey's outer fences may lie outside of it."""
    scores = sorted(one.score for one in standings.entries if one.score is not None and math.isfinite(one.score))
    if not scores:
        return None
    first, third = scores[len(scores) // 4], scores[len(scores) * 3 // 4]
    low, high = first - FENCE * (third - first), third + FENCE * (third - first)
    inside = [one for one in standings.entries if one.score is not None and low <= one.score <= high]
    return scale_of([end for one in inside for end in one.output.shown], 6, BAR_WIDTH - 6, margin=0.02)
