"""The bootstrap: how much a score would vary on other lines of the same kind.

Lines are drawn with replacement, as many as there are, and the score is computed anew; the percentile interval cuts
the values' ends (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 13).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from geval_py.explaining.statistics.interval import Interval
from geval_py.explaining.statistics.resampling import Array, LossTable, Totals, bootstrap_weights
from geval_py.reading.sampling import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling
from geval_py.scoring.metrics.base import LineLosses, Metric, likelihood, perplexity
from geval_py.scoring.parallel import Progress

# Of those measures that do not take arrays as they are.
_ARRAY_TWINS: dict[Callable[[float, int], float], Callable[..., Any]] = {
    likelihood: lambda total, lines: np.exp(-total / lines),
    perplexity: lambda total, lines: np.exp(total / lines),
}


def interval(
    metric: Metric,
    losses: LineLosses,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    progress: Progress | None = None,
) -> Interval:
    """Give the 95 % interval of a metric's score; arguments and errors as those of :func:`bootstrap_scores`."""
    values = bootstrap_scores(metric, losses, samples=samples, seed=seed, progress=progress)
    return Interval.of(values.tolist(), samples=samples, seed=seed)


def bootstrap_scores(
    metric: Metric,
    losses: LineLosses,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    progress: Progress | None = None,
) -> Array:
    """Give a metric's score on each of ``samples`` resamples of the lines (at least one line).

    A resample with an infinite loss scores what the metric gives for it, never NaN; one without a line of some
    class, the mean over the other classes. The same seed gives the same values; 0 is a seed.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    table = LossTable.of_columns([losses])
    column: Array = scores_on(metric, resample_totals(table, samples=samples, seed=seed, progress=progress))[:, 0]
    return column


def resample_totals(table: LossTable, *, samples: int, seed: int, progress: Progress | None = None) -> Totals:
    """Sum the losses of all systems on the same resamples; raises UsageError as :func:`bootstrap_scores`."""
    check_sampling(samples, seed)
    return table.totals(bootstrap_weights(len(table.losses), samples, seed, progress))


def scores_on(metric: Metric, totals: Totals) -> Array:
    """Give a metric's score of each system on each resample: resamples x systems, the mean over its classes."""
    counts = totals.counts[:, np.newaxis, :]
    of_total = _ARRAY_TWINS.get(metric.measure.of_total, metric.measure.of_total)
    with np.errstate(over="ignore"):  # a perplexity beyond the range of a double is inf
        values = of_total(totals.losses, np.maximum(counts, 1))
    mean: Array = np.where(counts > 0, values, 0.0).sum(axis=2) / (counts > 0).sum(axis=2)
    return mean
