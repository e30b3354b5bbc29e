"""Metrics of labels and of rankings: several labels a line, perhaps with probabilities, or items by relevance.

The probabilistic F-score needs GEval's calibration, 1 for probabilities that come true as often as they say. Around
each probability, a line is fitted locally to what came true (Cleveland, "Robust locally weighted regression and
smoothing scatterplots", 1979; with Gaussian weights here, and no robustness). The calibration is 1 minus twice the
mean distance of that curve from the diagonal, at least 0. The mean is an integral, by Simpson's rule on the double
exponential (tanh-sinh) substitution of Takahasi and Mori ("Double exponential formulas for numerical integration",
1974), at the same 25 points as in GEval. No library has this curve and these points, on which the score depends.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from math import inf, log, log1p, log2

from geval_py.scoring.metrics.assignment import Judged, equal_pairs, matched_scores, probable_row
from geval_py.scoring.metrics.base import Array, LineScore, LineStatistics, Places, Row, joined_columns
from geval_py.scoring.metrics.classes import harmonic, ratio
from geval_py.scoring.metrics.columns import malformed, probable_labels
from geval_py.text import split_words

THRESHOLD = 0.5  # from this probability on, a label is given
SHARPNESS = 8.0  # of the weights: their standard deviation is 1/8
MIN_BAND = 0.001  # probabilities in a narrower band make no curve
MARGIN = 0.0001  # left out of the integral at both ends
FARTHEST = 3.0  # the outermost points before substitution; beyond, weights are 0 in doubles
STEP = 0.25


def calibration(results: Array, probabilities: Array) -> float:
    """Compute the calibration, in [0, 1], of probabilities and their results (0 to 1 each); 1 without any."""
    import numpy as np

    if not len(results):
        return 1.0
    low, high = float(probabilities.min()), float(probabilities.max())
    if high - low < MIN_BAND:
        return 1 - abs(float(probabilities.mean() - results.mean()))
    low, high = low + MARGIN, high - MARGIN
    # The points and weights of the integral: four thirds of the fine rule less a third of the coarse.
    steps = np.arange(-FARTHEST, FARTHEST + STEP, STEP)
    angles = math.pi / 2 * np.sinh(steps)
    fine = STEP * math.pi / 2 * np.cosh(steps) / np.cosh(angles) ** 2
    weights = (4 * fine - np.where(np.arange(len(steps)) % 2 == 0, 2 * fine, 0)) / 3
    half = (high - low) / 2
    points, weights = (low + high) / 2 + half * np.tanh(angles), half * weights
    distances = np.abs(np.clip(fitted(probabilities, results, points), 0, 1) - points)
    return 1 - min(1.0, 2 * float((weights * distances).sum()) / (high - low))


def fitted(inputs: Array, outputs: Array, points: Array) -> Array:
    """Compute at each point the value of the line fitted there, by least squares of weighted inputs and outputs.

    The columns are made orthogonal by the modified Gram-Schmidt process, as GEval's library does (statistics for
    Haskell, Statistics.Matrix.Algorithms). It loses the slope where one input outweighs all others 1e13 times. A
    better conditioned solution would change such scores, which now agree with GEval's to 1e-9 where probabilities are
    near each other. Far from all of them, the value is rounding noise in both programs, and they differ.
    """
    import numpy as np

    deviations = SHARPNESS * (points[:, np.newaxis] - inputs)
    weights = SHARPNESS * np.exp(-(deviations**2) / 2) / math.sqrt(2 * math.pi)
    targets, slanted = outputs * weights, inputs * weights
    height = np.sqrt((weights**2).sum(axis=1))
    level = weights / height[:, np.newaxis]
    common = (level * slanted).sum(axis=1)
    slanted = slanted - common[:, np.newaxis] * level
    steepness = np.sqrt((slanted**2).sum(axis=1))
    slopes = (slanted / steepness[:, np.newaxis] * targets).sum(axis=1) / steepness
    values: Array = ((level * targets).sum(axis=1) - common * slopes) / height + slopes * points
    return values


def label_counts(text: str, expected: str) -> Row:
    """Count the right, the expected and the given labels."""
    labels, answers = Counter(given_labels(text)), Counter(split_words(expected))
    return (labels & answers).total(), answers.total(), labels.total()


def given_labels(text: str) -> list[str]:
    """Return the labels of an output line that are given: those with a probability of 0.5 or more, or without one."""
    return [label for label, probability in probable_labels(text) if probability >= THRESHOLD]


def label_loss(text: str, expected: str) -> float:
    """Compute the loss of a line's labels, in nats, in [0, inf]."""
    labels, answers = probable_labels(text), split_words(expected)
    first: dict[str, float] = {}
    for label, probability in labels:
        first.setdefault(label, probability)
    wrong = (probability for label, probability in labels if label not in answers)
    losses = [-log(p) if p else inf for p in (first.get(label, 0.0) for label in answers)]
    losses += [-log1p(-p) if p < 1 else inf for p in wrong]
    return max(0.0, math.fsum(losses))


def probable_counts(text: str, expected: str) -> tuple[Row, Judged]:
    """Return the probability of the right labels and the number expected; and of each label, whether right, and p.

    Where a label is given more often than expected, scipy's assignment says which one is right. Among equally good
    assignments it agreed with GEval's in all cases seen.
    """
    answers = split_words(expected)
    labels, probabilities = zip(*probable_labels(text), strict=True) if text.strip() else ((), ())
    return probable_row(matched_scores(equal_pairs(answers, labels)), probabilities, len(answers))


def probabilistic_f(beta: float, systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that computes the probabilistic F-score of some lines: of calibration and recall."""
    import numpy as np

    mass, expected = joined_columns(systems)
    judged = [np.array(pairs).reshape(-1, 2) for system in systems for pairs in system.details]

    def score(lines: Places) -> float:
        results, probabilities = np.concatenate([judged[line] for line in lines]).T
        recall = ratio(float(mass[lines].sum()), float(expected[lines].sum()))
        return harmonic(beta, calibration(results, probabilities), recall)

    return score


def calibration_curve(statistics: LineStatistics) -> list[tuple[float, float]]:
    """Return GEval's graph of a probabilistic F-score: what came true, by each hundredth of the given probabilities.

    There is no point below the least probability, or above the greatest one, where the curve is not determined.
    """
    import numpy as np

    results, probabilities = np.array([pair for pairs in statistics.details for pair in pairs]).reshape(-1, 2).T
    if not len(results):
        return []
    points = 0.01 * np.arange(1, 100)
    points = points[(points > probabilities.min()) & (points < probabilities.max())]
    heights = np.clip(fitted(probabilities, results, points), 0, 1)
    return list(zip(points.tolist(), heights.tolist(), strict=True))


def items_of(text: str) -> list[str]:
    """Split a line at its TABs into distinct items, by falling relevance; none in an empty line."""
    return list(dict.fromkeys(text.split("\t"))) if text else []


def relevant_items(text: str, line: int) -> list[str]:
    """Split an expected line at its TABs into relevant items, at least one; raises MalformedLineError."""
    if not text:
        raise malformed("no item expected", text, line, "an average precision takes an item that is expected")
    return text.split("\t")


def average_precision(text: str, relevant: Sequence[str]) -> float:
    """Compute the average precision of a line's items."""
    right, total = 0, 0.0
    for rank, item in enumerate(items_of(text), 1):
        if item in relevant:
            right += 1
            total += right / rank
    return total / len(relevant)


def discounted_gain(first: int, text: str, expected: str) -> float:
    """Compute the normalised discounted gain of a line's first items."""
    relevant = frozenset(items_of(expected))
    gained = math.fsum(1 / log2(rank + 1) for rank, item in enumerate(items_of(text)[:first], 1) if item in relevant)
    best = math.fsum(1 / log2(rank + 1) for rank in range(1, min(first, len(relevant)) + 1))
    return gained / best if relevant else 1.0
