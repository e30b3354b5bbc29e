"""The bootstrap: how much a score would vary on other lines of the same kind.

Lines are drawn with replacement, as many as there are, and the score is computed anew; the percentile interval cuts
the values' ends (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 13).
"""

from __future__ import annotations

import numpy as np

from geval_py.explaining.statistics.interval import Interval
from geval_py.explaining.statistics.resampling import Array, Totals, bootstrap_weights
from geval_py.explaining.statistics.ruled import Table, table_of
from geval_py.reading.sampling import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling
from geval_py.scoring.metrics.base import LineStatistics, Metric
from geval_py.scoring.parallel import Progress


def interval(
    metric: Metric,
    statistics: LineStatistics,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    progress: Progress | None = None,
) -> Interval:
    """Give the 95 % interval of a metric's score; arguments and errors as those of :func:`bootstrap_scores`."""
    values = bootstrap_scores(metric, statistics, samples=samples, seed=seed, progress=progress)
    return Interval.of(values.tolist(), samples=samples, seed=seed)


def bootstrap_scores(
    metric: Metric,
    statistics: LineStatistics,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    progress: Progress | None = None,
) -> Array:
    """Give a metric's score on each of ``samples`` resamples of the lines (at least one line).

    A resample with an infinite line scores what the metric gives for it; one without a line of some class, the mean
    over the other classes. The same seed gives the same values; 0 is a seed.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    table = table_of(metric, [statistics])
    column: Array = scores_on(metric, resample_totals(table, samples=samples, seed=seed, progress=progress))[:, 0]
    return column


def resample_totals(table: Table, *, samples: int, seed: int, progress: Progress | None = None) -> Totals:
    """Sum the statistics of all systems on the same resamples; raises UsageError as :func:`bootstrap_scores`."""
    check_sampling(samples, seed)
    return table.totals(bootstrap_weights(table.lines, samples, seed, progress))


def scores_on(metric: Metric, totals: Totals) -> Array:
    """Give a metric's score of each system on each resample: resamples x systems, the mean over its classes."""
    counts = totals.counts[:, np.newaxis, :]
    # A perplexity beyond the range of a double is inf; what a class without lines has is left out.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        values = metric.measure.formula(list(totals.sums), np.maximum(counts, 1))
    mean: Array = np.where(counts > 0, values, 0.0).sum(axis=2) / (counts > 0).sum(axis=2)
    return mean
