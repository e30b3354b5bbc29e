"""The probabilistic F-score of labels: how true their probabilities are, and how much of what was expected they hold.

It is the weighted harmonic mean, as an F-score is, of a calibration in place of the precision (see
:mod:`geval_py.scoring.metrics.loess`), and a recall in which each label counts by its probability. GEval's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from geval_py.scoring.metrics.labels import probable_labels
from geval_py.scoring.metrics.loess import calibration
from geval_py.scoring.metrics.ratios import harmonic, ratio
from geval_py.text import split_words

if TYPE_CHECKING:
    from geval_py.scoring.metrics.base import LineStatistics


def probable_counts(text: str, expected: str, line: int) -> tuple[tuple[float, ...], tuple[tuple[float, float], ...]]:
    """Give the probability of what is right, how many labels are expected, and of each label whether it is, and p.

    Of a label that is given more often than it is expected, an assignment of labels tells which one is right; of
    those as good, scipy's is GEval's too where that has been seen.
    """
    del line
    given, wanted = probable_labels(text), split_words(expected)
    places = _assigned([label for label, _ in given], wanted)
    judged = tuple((float(place in places), probability) for place, (_, probability) in enumerate(given))
    return (sum(probability for is_right, probability in judged if is_right), len(wanted)), judged


def _assigned(given: Sequence[str], wanted: Sequence[str]) -> frozenset[int]:
    """Tell which of the labels given are right."""
    if not given or not wanted:
        return frozenset()
    costs = [[answer != label for label in given] for answer in wanted]
    pairs = zip(*linear_sum_assignment(costs), strict=True)
    return frozenset(int(place) for answer, place in pairs if wanted[answer] == given[place])


def probabilistic_f(beta: float, systems: Sequence[LineStatistics]) -> Callable[[NDArray[np.intp]], float]:
    """Give what computes the probabilistic F-score of some lines."""
    mass, wanted = (np.concatenate([np.array(of.columns[n]) for of in systems]) for n in range(2))
    judged = [np.array(pairs).reshape(-1, 2) for of in systems for pairs in of.details]

    def score(lines: NDArray[np.intp]) -> float:
        results, probabilities = np.concatenate([judged[line] for line in lines]).T
        recall = ratio(float(mass[lines].sum()), float(wanted[lines].sum()))
        return harmonic(beta, calibration(results, probabilities), recall)

    return score
