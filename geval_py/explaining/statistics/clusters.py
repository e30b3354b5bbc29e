"""The spread of the mean loss by documents, whose lines are alike.

With N lines in G documents g, their losses L and the mean loss m, the variance of m is estimated by

    v = G / (G - 1) * sum over g of (sum over the lines of g of (L - m))^2 / N^2,

and (mean - m) / sqrt(v) has about Student's distribution with G - 1 degrees of freedom (Liang and Zeger,
"Longitudinal data analysis using generalized linear models", 1986; Cameron and Miller, "A practitioner's guide to
cluster-robust inference", 2015). With a line a document it is the usual variance of a mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining.statistics.distributions import t_quantile
from geval_py.explaining.statistics.groups import LEVEL
from geval_py.explaining.statistics.interval import Interval

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents, Integers
    from geval_py.explaining.statistics.resampling import Array
    from geval_py.scoring.metrics.base import Metric

PERMUTATIONS = 39  # with which p is below 0.05 where the true one alone is so extreme


def cluster_interval(metric: Metric, losses: Array, documents: Documents) -> Interval:
    """Give the interval of a metric that is made from the mean of losses, all finite, of two documents or more."""
    lines, mean = len(losses), float(losses.mean())
    half = t_quantile(documents.count - 1) * math.sqrt(cluster_variance(losses, documents.of_line))
    best, worst = sorted((metric.measure.best, metric.measure.worst))
    ends = (metric.measure.formula([max(0.0, end) * lines], lines) for end in (mean - half, mean + half))
    low, high = sorted(min(max(end, best), worst) for end in ends)
    return Interval.between(low, high, documents=documents.count)


def cluster_variance(losses: Array, of_line: Integers) -> float:
    """Estimate the variance of the mean loss; ``of_line`` numbers the documents, two at least, from 0."""
    sums = np.bincount(of_line, losses - losses.mean())
    return float(len(sums) / (len(sums) - 1) * (sums**2).sum() / len(losses) ** 2)


def design_effect(losses: Array, of_line: Integers) -> float:
    """Give the variance by documents over the variance by lines: 1 where the documents say nothing.

    It is 1 too where all losses are the same.
    """
    by_line = float(losses.var(ddof=1)) / len(losses)
    return cluster_variance(losses, of_line) / by_line if by_line > 0 else 1.0


def permutation_p(losses: Array, of_line: Integers, *, seed: int) -> float:
    """Tell how often the losses vary as much by documents where the lines are dealt out to them at random.

    The p-value counts the true documents as one of the permutations. They end once it cannot be below 0.05.
    """
    rng = np.random.default_rng(seed)
    centred = losses - losses.mean()
    dealt = of_line.copy()

    def spread(numbers: Integers) -> float:
        sums = np.bincount(numbers, centred)
        return float(sums @ sums)

    observed = spread(of_line)
    extreme = 1
    for _ in range(PERMUTATIONS):
        rng.shuffle(dealt)
        extreme += spread(dealt) >= observed
        if extreme >= LEVEL * (PERMUTATIONS + 1):
            break
    return extreme / (PERMUTATIONS + 1)
