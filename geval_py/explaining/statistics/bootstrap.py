"""The bootstrap: how much a score would vary on other lines of the same kind.

Lines are drawn with replacement, as many as there are, and the score is computed anew; the percentile interval cuts
the values' ends (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 13), less of them
where there are few lines (:func:`geval_py.explaining.statistics.interval.expanded_tail`).

Lines of one document are alike, and draw each other along. Where documents are told, an interval is computed from
their spread (:mod:`geval_py.explaining.statistics.clusters`); of a metric that is not made from losses, has classes,
or has an infinite line, whole documents are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining.statistics.clusters import cluster_interval
from geval_py.explaining.statistics.interval import GEVAL_TAIL, Interval, expanded_tail
from geval_py.explaining.statistics.resampling import Array, Totals, bootstrap_weights
from geval_py.explaining.statistics.ruled import RuledTable, Table, table_of
from geval_py.reading.sampling import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling
from geval_py.scoring.metrics.base import LineStatistics, Metric
from geval_py.scoring.parallel import Progress

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents


def interval(
    metric: Metric,
    statistics: LineStatistics,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    documents: Documents | None = None,
    as_geval: bool = False,
    progress: Progress | None = None,
) -> Interval:
    """Give the 95 % interval of a metric's score; arguments and errors as those of :func:`bootstrap_scores`.

    The percentiles are those of GEval, whatever the number of lines, where that is asked for.
    """
    check_sampling(samples, seed)
    table = table_of(metric, [statistics], documents)
    (by_document,) = document_intervals(metric, table)
    if by_document is not None:
        return by_document
    totals = resample_totals(table, samples=samples, seed=seed, progress=progress)
    tail = GEVAL_TAIL if as_geval else None
    return percentile_interval(scores_on(metric, totals)[:, 0], table, seed=seed, tail=tail)


def document_intervals(metric: Metric, table: Table) -> list[Interval | None]:
    """Give the interval of each system by the spread of its documents; None where there are none, or it has none."""
    documents = table.documents
    if (
        documents is None
        or not metric.measure.of_losses
        or isinstance(table, RuledTable)
        or table.members.shape[1] > 1
    ):
        return [None] * table.systems
    every = zip(table.statistics[0].T, table.infinite.T, strict=True)
    return [None if infinite.any() else cluster_interval(metric, losses, documents) for losses, infinite in every]


def percentile_interval(values: Array, table: Table, *, seed: int, tail: float | None = None) -> Interval:
    """Cut the values of resamples of a table's lines, or documents; by default as the number of these asks for."""
    return Interval.of(
        values.tolist(),
        samples=len(values),
        seed=seed,
        tail=expanded_tail(table.units) if tail is None else tail,
        documents=None if table.documents is None else table.documents.count,
    )


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
    return table.totals(bootstrap_weights(table.units, samples, seed, progress))


def scores_on(metric: Metric, totals: Totals) -> Array:
    """Give a metric's score of each system on each resample: resamples x systems, the mean over its classes."""
    counts = totals.counts[:, np.newaxis, :]
    # A perplexity beyond the range of a double is inf; what a class without lines has is left out.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        values = metric.measure.formula(list(totals.sums), np.maximum(counts, 1))
    mean: Array = np.where(counts > 0, values, 0.0).sum(axis=2) / (counts > 0).sum(axis=2)
    return mean
