"""What a report tells of any metric, from its line statistics: of translations, classes, labels, numbers, tags.

The score of some lines is that of their statistics, as that of all is; the score of a line is that of the line alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining.anatomy.examples import BEST, WORST
from geval_py.explaining.anatomy.parts import Grouping, Kind, grouping_of
from geval_py.explaining.comparison import Comparison, compare
from geval_py.explaining.features.ranking import Frequencies
from geval_py.explaining.features.worst import Wanted, worst_features
from geval_py.explaining.report import MOST_COLUMNS, input_columns
from geval_py.explaining.statistics.bootstrap import interval
from geval_py.reading.features import FeatureKinds
from geval_py.scoring.evaluation import Evaluation, checked_evaluation

if TYPE_CHECKING:
    from geval_py.explaining.anatomy.outcomes import Floats
    from geval_py.explaining.statistics.interval import Interval
    from geval_py.scoring.parallel import Progress
    from geval_py.scoring.score import Score

MOST_BINS = 20
MOST_FEATURES = 10
LEAST_LINES = 10  # that have a feature, and that have it not
SAMPLES = 300  # of the lines of a part, for its interval
EXPECTED = "expected"
_STEPS = tuple(factor * 10.0**power for power in range(-6, 12) for factor in (1.0, 2.0, 5.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBin:
    """Scores of lines from ``low`` up to below ``high``, the greatest score too in the last: how many lines."""

    low: float
    high: float
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPart:
    """Some lines: what they have in common, how many they are, their score and its 95 % interval.

    Both are NaN where the score of these lines is not defined; the interval is None for a single line.
    """

    label: str
    lines: int
    score: float
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredParts:
    """The parts by what is expected, or by a column of the input: its name, and by what of it they are told apart."""

    column: str
    kind: Kind
    parts: tuple[ScoredPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadFeature:
    """A feature that goes with bad lines: how many lines have it, the mean of their scores, and its q.

    ``explained`` is the share of the variance of the lines' ranks that it and those before it explain.
    """

    feature: str
    lines: int
    mean: float
    q: float
    explained: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TextExample:
    """A line: its number in the file, its score, its texts; ``input`` is "" where there is none."""

    number: int
    score: float
    input: str
    expected: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What is told of an output by a metric of any task.

    ``line_scores`` are in order, NaN for a line that has none alone; ``bins``, ``features`` and ``examples`` are
    empty where that is each one. ``by_expected`` is None where answers do not part the lines. ``comparison`` is with
    other outputs; None where there are none.
    """

    evaluation: Evaluation
    interval: Interval
    line_scores: Floats
    bins: tuple[ScoreBin, ...]
    by_expected: ScoredParts | None
    by_column: tuple[ScoredParts, ...]
    features: tuple[BadFeature, ...]
    examples: tuple[TextExample, ...]
    comparison: Comparison | None

    @property
    def known(self) -> Floats:
        """The scores of lines that are finite numbers."""
        return self.line_scores[np.isfinite(self.line_scores)]


def overview(
    evaluation: Evaluation, others: Sequence[Evaluation] = (), *, progress: Progress | None = None
) -> Overview:
    """Compute what a report tells of any metric; ``progress`` is called while outputs are compared.

    Raises UsageError where the texts were not kept; the errors of :func:`compare` and of
    :meth:`Evaluation.read_items`.
    """
    score = checked_evaluation(evaluation).scores[0]
    scores = np.array(evaluation.line_scores(), np.float64)
    return Overview(
        evaluation=evaluation,
        interval=evaluation.interval(),
        line_scores=scores,
        bins=tuple(score_bins(scores[np.isfinite(scores)])),
        by_expected=_by_expected(evaluation),
        by_column=_by_columns(evaluation),
        features=tuple(_features(evaluation, scores)),
        examples=tuple(_examples(evaluation, score, scores)),
        comparison=compare([evaluation, *others], progress=progress) if others else None,
    )


def score_bins(scores: Floats) -> list[ScoreBin]:
    """Count finite scores in bins of equal and round width, at most twenty and one; empty ones are left out.

    >>> [(one.low, one.high, one.lines) for one in score_bins(np.array([0.0, 0.0, 0.5, 1.0]))]
    [(0.0, 0.05, 2), (0.5, 0.55, 1), (0.95, 1.0, 1)]
    """
    if not len(scores):
        return []
    low, high = float(scores.min()), float(scores.max())
    range_of_bin = high / MOST_BINS - low / MOST_BINS  # the difference of two numbers of 1e308 is infinite
    least = max(range_of_bin, max(abs(low), abs(high)) * 1e-12)  # else rounding makes bins of no width
    width = next((step for step in _STEPS if step >= least), least)
    first = math.floor(low / width)
    last = max(first, math.ceil(high / width) - 1)
    places = np.clip(np.floor(scores / width + 1e-9).astype(np.int64), first, last) - first
    return [
        ScoreBin(low=round((first + place) * width, 12), high=round((first + place + 1) * width, 12), lines=lines)
        for place, lines in enumerate(np.bincount(places).tolist())
        if lines
    ]


def _by_expected(evaluation: Evaluation) -> ScoredParts | None:
    """Part the lines by their answers; of several columns the first counts."""
    grouping = grouping_of(EXPECTED, [item.expected.partition("\t")[0] for item in evaluation.read_items()])
    return None if grouping is None else _scored(evaluation.scores[0], grouping)


def _by_columns(evaluation: Evaluation) -> tuple[ScoredParts, ...]:
    groupings = (grouping_of(name, texts) for name, texts in input_columns(evaluation))
    found = [grouping for grouping in groupings if grouping is not None][:MOST_COLUMNS]
    return tuple(_scored(evaluation.scores[0], grouping) for grouping in found)


def _scored(score: Score, grouping: Grouping) -> ScoredParts:
    places = ((label, np.flatnonzero(grouping.codes == code)) for code, label in enumerate(grouping.labels))
    parts = tuple(_part(score, label, lines.tolist()) for label, lines in places if len(lines))
    return ScoredParts(column=grouping.column, kind=grouping.kind, parts=parts)


def _part(score: Score, label: str, places: list[int]) -> ScoredPart:
    statistics = score.statistics.only(places)
    value = score.metric.value(statistics)
    span = None if len(places) < 2 else interval(score.metric, statistics, samples=SAMPLES)
    return ScoredPart(label=label, lines=len(places), score=value, interval=span)


def _features(evaluation: Evaluation, scores: Floats) -> list[BadFeature]:
    """Give at most ten features, words and their shapes, that together explain the bad lines, the best first."""
    if not np.isfinite(scores).any():
        return []
    found = worst_features(
        evaluation.read_items(),
        np.where(np.isfinite(scores), scores, np.nan).tolist(),
        worst_is_greatest=evaluation.scores[0].greatest_first(worst=True),
        header=evaluation.split.in_header,
        kinds=FeatureKinds(word_shapes=True),
        frequencies=Frequencies(least=LEAST_LINES),
        wanted=Wanted(distinct=True),
    )
    figures = (column.tolist() for column in (found.counts, found.means, found.q_values, found.more["explained"]))
    rows = zip(found.names, *figures, strict=True)
    return [
        BadFeature(feature=name, lines=lines, mean=mean, q=q, explained=explained)
        for name, lines, mean, q, explained in rows
    ][:MOST_FEATURES]


def _examples(evaluation: Evaluation, score: Score, scores: Floats) -> list[TextExample]:
    """Give the 300 worst lines and the 100 best, the worst first; lines without a score are left out."""
    known = np.flatnonzero(~np.isnan(scores))
    sign = -1.0 if score.greatest_first(worst=True) else 1.0
    order = known[np.argsort(sign * scores[known], kind="stable")]
    chosen = order if len(order) <= WORST + BEST else np.concatenate([order[:WORST], order[len(order) - BEST :]])
    keep = np.zeros(len(scores), np.bool_)
    keep[chosen] = True
    items = dict(zip(np.flatnonzero(keep).tolist(), compress(evaluation.read_items(), keep), strict=True))
    numbers = evaluation.line_numbers or range(1, len(scores) + 1)
    return [
        TextExample(
            number=numbers[place],
            score=float(scores[place]),
            input=items[place].input,
            expected=items[place].expected,
            output=items[place].output,
        )
        for place in chosen.tolist()
    ]
