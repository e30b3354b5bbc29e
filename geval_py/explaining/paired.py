"""Paired tests: whether the difference of two systems on the same lines is more than chance.

What is tested is the difference of the metric; of one that rises or falls with the mean line loss, that of the mean
line losses. Both tests are two-sided.

- *Paired bootstrap test.* The differences on resamples of the lines (Koehn, "Statistical significance tests for
  machine translation evaluation", 2004), shifted so that the null hypothesis holds for them: how often is such a
  difference as far from 0 as the one observed (Noreen, "Computer-Intensive Methods for Testing Hypotheses", 1989;
  Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 16; Riezler and Maxwell, "On some pitfalls
  in automatic evaluation and significance testing for MT", 2005)? To compare absolute differences shifted by their
  mean, as is often done, rejects a true null hypothesis twice as often as it should.
- *Approximate randomisation.* If the systems are no different, each line's two statistics might as well change places
  (Noreen 1989; Riezler and Maxwell 2005): how often is the difference then as far from 0?

Where documents are told, these are drawn, or change places, whole: their lines are alike, and tests by line reject a
true null hypothesis too often. There may be few of them: so the differences on resamples are spread as the intervals
are (:func:`geval_py.explaining.significance.expansion`).

A p-value counts the observed difference as one of the samples, (extreme + 1) / (samples + 1), so it is never 0.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from geval_py.explaining.bootstrap import Table, percentile_interval, scores_on
from geval_py.explaining.resampling import Array, Totals
from geval_py.explaining.significance import Interval, expansion
from geval_py.reading.options import check_sampling
from geval_py.scoring.blocks import Progress
from geval_py.scoring.metrics.base import NOISE, Metric


def tested_values(metric: Metric, totals: Totals) -> Array:
    """Give what is tested, resamples x systems: the metric, or the mean loss where that says as much."""
    if metric.measure.of_losses and totals.counts.shape[1] == 1:
        return totals.sums[0, :, :, 0] / totals.counts
    return scores_on(metric, totals)


def bootstrap_p_values(metric: Metric, table: Table, resampled: Totals, baseline: int) -> Array:
    """Test each system against the baseline by the bootstrap; gives a p-value a system, 1 for the baseline.

    ``table`` holds finite statistics only, ``resampled`` its sums on resamples. A single line, or document, tells
    nothing about the spread: p is 1.
    """
    observed = tested_values(metric, table.observed())
    values = tested_values(metric, resampled)
    if table.units == 1:
        return np.ones(values.shape[1])
    difference = observed - observed[:, [baseline]]
    centred = (values - values[:, [baseline]]) - difference
    if table.documents is not None:
        centred *= expansion(table.units)
    noise = NOISE * (np.abs(observed) + np.abs(observed[:, [baseline]]))
    return _p_value(centred, difference, noise)


def randomisation_p_values(
    metric: Metric, table: Table, *, samples: int, seed: int, progress: Progress | None = None
) -> Array:
    """Test all pairs of systems by approximate randomisation; gives systems x systems, 1 on the diagonal.

    ``table`` holds finite statistics only. The systems of every pair change places on the same lines, or documents.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    check_sampling(samples, seed)
    observed = tested_values(metric, table.observed())
    exchanged = table.exchanges(samples, seed, progress)
    p_values = np.ones((table.systems,) * 2)
    for pair in combinations(range(len(p_values)), 2):
        p_value = _pair_p_value(observed[:, pair], tested_values(metric, exchanged(pair)))
        p_values[pair] = p_values[pair[::-1]] = p_value
    return p_values


def _pair_p_value(value: Array, values: Array) -> float:
    """Test one pair, from what is tested of both as they are, and when they have changed places on some lines."""
    noise = NOISE * np.abs(value).sum(axis=1)
    return float(_p_value(values[:, 0] - values[:, 1], value[:, 0] - value[:, 1], noise).item())


def difference_intervals(scores: Array, table: Table, baseline: int, *, seed: int) -> list[Interval | None]:
    """Give the interval of each system's score minus the baseline's; ``scores`` are resamples x systems of a table.

    None where some difference is none: both scores are infinite.
    """
    with np.errstate(invalid="ignore"):
        differences = scores - scores[:, [baseline]]
    return [
        None if np.isnan(column).any() else percentile_interval(column, table, seed=seed) for column in differences.T
    ]


def line_shares(metric: Metric, table: Table, baseline: int) -> list[tuple[float, float, float]]:
    """Give of each system the shares of lines that are better than the baseline's, worse, and the same.

    Better is a lower loss or, where a metric is made from other statistics, a better score of the line. What differs
    by rounding, by 1e-12, is the same, and so are two infinite lines; what is no number is infinite. A metric that a
    single line has no score of, such as a correlation, ties on all.
    """
    badness = _badness(metric, table)
    against = badness[:, [baseline]]
    tied = np.isclose(badness, against, rtol=NOISE, atol=NOISE, equal_nan=True)
    won, lost = ~tied & (badness < against), ~tied & (badness > against)
    shares = np.stack([won, lost, tied]).mean(axis=1).T
    return [(float(one), float(two), float(three)) for one, two, three in shares]


def _badness(metric: Metric, table: Table) -> Array:
    """Give each line's loss or, where there is none, its score or the negative of that; the lower the better."""
    statistics = table.comparable()
    if metric.measure.of_losses:
        losses: Array = statistics[0]
        return losses
    with np.errstate(over="ignore", invalid="ignore"):
        scores = metric.measure.formula(list(statistics), np.ones(statistics.shape[1:]))
    return np.where(table.infinite, np.inf, scores if metric.measure.direction == "lower" else -scores)


def equal_systems(table: Table) -> list[tuple[int, ...]]:
    """Give the sets of systems that have the same statistics on every line, each of two systems at least."""
    systems: dict[bytes, list[int]] = {}
    for n, key in enumerate(table.keys):
        systems.setdefault(key, []).append(n)
    return [tuple(same) for same in systems.values() if len(same) > 1]


def _p_value(differences: Array, observed: Array, noise: Array) -> Array:
    """Give the share of differences as far from 0 as the observed one, up to rounding, itself counted in.

    One that is not defined, of a score that is none, counts as one that is as far.
    """
    extreme = ~(np.abs(differences) < np.abs(observed) - noise)
    share: Array = (extreme.sum(axis=0) + 1) / (len(differences) + 1)
    return share
