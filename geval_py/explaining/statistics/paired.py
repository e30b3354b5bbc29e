"""Paired tests: whether the difference of two systems on the same lines is more than chance.

What is tested is the difference of the mean line losses, since every metric rises or falls with the mean loss; of a
metric that averages over classes, the difference of the metric itself. Both tests are two-sided.

- *Paired bootstrap test.* The differences on resamples of the lines (Koehn, "Statistical significance tests for
  machine translation evaluation", 2004), shifted so that the null hypothesis holds for them: how often is such a
  difference as far from 0 as the one observed (Noreen, "Computer-Intensive Methods for Testing Hypotheses", 1989;
  Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 16; Riezler and Maxwell, "On some pitfalls
  in automatic evaluation and significance testing for MT", 2005)? To compare absolute differences shifted by their
  mean, as is often done, rejects a true null hypothesis twice as often as it should.
- *Approximate randomisation.* If the systems are no different, each line's two losses might as well change places
  (Noreen 1989; Riezler and Maxwell 2005): how often is the difference then as far from 0?

A p-value counts the observed difference as one of the samples, (extreme + 1) / (samples + 1), so it is never 0.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from geval_py.explaining.statistics.bootstrap import scores_on
from geval_py.explaining.statistics.interval import Interval
from geval_py.explaining.statistics.resampling import Array, LossTable, Totals, swap_weights
from geval_py.reading.sampling import check_sampling
from geval_py.scoring.metrics.base import NOISE, Metric
from geval_py.scoring.parallel import Progress


def tested_values(metric: Metric, totals: Totals) -> Array:
    """Give what is tested, resamples x systems: the mean loss or, where there are classes, the metric."""
    if totals.counts.shape[1] > 1:
        return scores_on(metric, totals)
    return totals.losses[:, :, 0] / totals.counts


def bootstrap_p_values(metric: Metric, table: LossTable, resampled: Totals, baseline: int) -> Array:
    """Test each system against the baseline by the bootstrap; gives a p-value a system, 1 for the baseline.

    ``table`` holds finite losses only, ``resampled`` its sums on resamples of the lines. A single line tells
    nothing about the spread: p is 1.
    """
    observed = tested_values(metric, table.observed())
    values = tested_values(metric, resampled)
    if len(table.losses) == 1:
        return np.ones(values.shape[1])
    difference = observed - observed[:, [baseline]]
    centred = (values - values[:, [baseline]]) - difference
    noise = NOISE * (np.abs(observed) + np.abs(observed[:, [baseline]]))
    return _p_value(centred, difference, noise)


def randomisation_p_values(
    metric: Metric, table: LossTable, *, samples: int, seed: int, progress: Progress | None = None
) -> Array:
    """Test all pairs of systems by approximate randomisation; gives systems x systems, 1 on the diagonal.

    ``table`` holds finite losses only. The systems of every pair change places on the same lines.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    check_sampling(samples, seed)
    observed = table.observed()
    swapped = table.totals(swap_weights(len(table.losses), samples, seed, progress))
    p_values = np.ones((table.losses.shape[1],) * 2)
    for one, other in combinations(range(len(p_values)), 2):
        p_values[one, other] = p_values[other, one] = _pair_p_value(metric, observed, swapped, (one, other))
    return p_values


def _pair_p_value(metric: Metric, observed: Totals, swapped: Totals, pair: tuple[int, int]) -> float:
    """Test one pair; ``swapped`` are the sums over those lines on which the systems change places."""
    before = observed.losses[:, pair, :]
    moved = swapped.losses[:, pair, :]
    after = Totals(losses=before - moved + moved[:, ::-1, :], counts=observed.counts)
    values, value = tested_values(metric, after), tested_values(metric, Totals(losses=before, counts=observed.counts))
    noise = NOISE * np.abs(value).sum(axis=1)
    return float(_p_value(values[:, 0] - values[:, 1], value[:, 0] - value[:, 1], noise).item())


def difference_intervals(scores: Array, baseline: int, *, seed: int) -> list[Interval | None]:
    """Give the interval of each system's score minus the baseline's; ``scores`` are resamples x systems.

    None where some difference is none: both scores are infinite.
    """
    with np.errstate(invalid="ignore"):
        differences = scores - scores[:, [baseline]]
    return [
        None if np.isnan(column).any() else Interval.of(column.tolist(), samples=len(scores), seed=seed)
        for column in differences.T
    ]


def line_shares(table: LossTable, baseline: int) -> list[tuple[float, float, float]]:
    """Give of each system the shares of lines with a lower, a higher and the same loss as the baseline's.

    Losses that differ by rounding, by 1e-12, are the same, and so are two infinite ones; what is no number is
    infinite.
    """
    losses = _comparable(table)
    against = losses[:, [baseline]]
    tied = np.isclose(losses, against, rtol=NOISE, atol=NOISE)
    won, lost = ~tied & (losses < against), ~tied & (losses > against)
    shares = np.stack([won, lost, tied]).mean(axis=1).T
    return [(float(one), float(two), float(three)) for one, two, three in shares]


def equal_systems(table: LossTable) -> list[tuple[int, ...]]:
    """Give the sets of systems that have the same loss on every line, each of two systems at least."""
    systems: dict[bytes, list[int]] = {}
    for n, column in enumerate(_comparable(table).T):
        systems.setdefault(column.tobytes(), []).append(n)
    return [tuple(same) for same in systems.values() if len(same) > 1]


def _comparable(table: LossTable) -> Array:
    """Give the losses with one way to write those that count as infinite, and 0."""
    return np.where(table.infinite, np.inf, table.losses) + 0.0


def _p_value(differences: Array, observed: Array, noise: Array) -> Array:
    """Give the share of differences as far from 0 as the observed one, up to rounding, itself counted in."""
    extreme = np.abs(differences) >= np.abs(observed) - noise
    share: Array = (extreme.sum(axis=0) + 1) / (len(differences) + 1)
    return share
