"""Confidence intervals: by the spread of documents, or by the bootstrap, on other lines of the same kind.

A metric is computed on a table of line statistics, one column a system. Most metrics are functions of sums, so a
:class:`StatisticsTable` sums the resamples of all systems at once. A metric with a *ruler* is no function of sums: a
:class:`RuledTable` scores the lines of each resample anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.explaining.documents import Documents, cluster_variance
from geval_py.explaining.resampling import Exchange, StatisticsTable, Totals, bootstrap_weights, swap_weights
from geval_py.explaining.significance import GEVAL_TAIL, Array, Flags, Interval, expanded_tail, t_quantile
from geval_py.reading.options import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling

if TYPE_CHECKING:
    from geval_py.scoring.blocks import Progress
    from geval_py.scoring.metrics.base import LineStatistics, Metric
    from geval_py.scoring.scores import MetricScore

    LineTable: TypeAlias = StatisticsTable | "RuledTable"


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
    """Compute the 95 % interval of a metric's score (at least one line).

    With ``as_geval``, the percentiles are GEval's, whatever the number of lines. The same seed gives the same
    interval; 0 is a seed.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    check_sampling(samples, seed)
    table = table_of(metric, [statistics], documents)
    (by_document,) = document_intervals(metric, table)
    if by_document is not None:
        return by_document
    totals = resample_totals(table, samples=samples, seed=seed, progress=progress)
    tail = GEVAL_TAIL if as_geval else None
    return percentile_interval(scores_on(metric, totals)[:, 0], table, seed=seed, tail=tail)


def score_interval(
    score: MetricScore,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    documents: Documents | None = None,
    as_geval: bool = False,
    progress: Progress | None = None,
) -> Interval:
    """Compute the 95 % interval of a score as :func:`interval`; ``documents`` are of all lines of the file."""
    return interval(
        score.metric,
        score.statistics,
        samples=samples,
        seed=seed,
        documents=None if documents is None else documents.of_score(score).several(),
        as_geval=as_geval,
        progress=progress,
    )


def document_intervals(metric: Metric, table: LineTable) -> list[Interval | None]:
    """Compute each system's interval from the spread of its documents.

    None without documents, for infinite losses, and for a metric that is not made from one mean loss.
    """
    documents = table.documents
    if (
        documents is None
        or not metric.measure.of_losses
        or isinstance(table, RuledTable)
        or table.members.shape[1] > 1
    ):
        return [None] * table.systems
    every = zip(table.statistics[0].T, table.infinite.T, strict=True)
    return [None if infinite.any() else _cluster_interval(metric, losses, documents) for losses, infinite in every]


def _cluster_interval(metric: Metric, losses: Array, documents: Documents) -> Interval:
    """Compute the interval of a metric of the mean loss; all losses are finite, of two documents or more."""
    lines, mean = len(losses), float(losses.mean())
    half = t_quantile(documents.count - 1) * math.sqrt(cluster_variance(losses, documents.of_line))
    best, worst = sorted((metric.measure.best, metric.measure.worst))
    ends = (metric.measure.formula([max(0.0, end) * lines], lines) for end in (mean - half, mean + half))
    low, high = sorted(min(max(end, best), worst) for end in ends)
    return Interval.between(low, high, documents=documents.count)


def percentile_interval(values: Array, table: LineTable, *, seed: int, tail: float | None = None) -> Interval:
    """Cut the scores on resamples of a table; the default ``tail`` depends on the number of lines or documents."""
    return Interval.of(
        values.tolist(),
        samples=len(values),
        seed=seed,
        tail=expanded_tail(table.units) if tail is None else tail,
        documents=None if table.documents is None else table.documents.count,
    )


def table_of(metric: Metric, systems: Sequence[LineStatistics], documents: Documents | None = None) -> LineTable:
    """Make the table of line statistics for a metric: systems on the same lines, possibly in documents."""
    ruler = metric.measure.ruler
    if ruler is None:
        return StatisticsTable.of_systems(systems, documents)
    keys = [b"".join(column.tobytes() for column in of.columns) + repr(of.details).encode() for of in systems]
    return RuledTable(ruler(systems), systems[0].lines, len(systems), keys, documents)


def resample_totals(table: LineTable, *, samples: int, seed: int, progress: Progress | None = None) -> Totals:
    """Sum the statistics of all systems on the same resamples; raises UsageError as :func:`interval`."""
    check_sampling(samples, seed)
    return table.totals(bootstrap_weights(table.units, samples, seed, progress))


def scores_on(metric: Metric, totals: Totals) -> Array:
    """Compute each system's score on each resample: resamples x systems.

    A metric with classes takes the mean over the classes that the resample has. A resample with an infinite line
    scores what the metric makes of it.
    """
    counts = totals.counts[:, np.newaxis, :]
    # A perplexity beyond the range of a double is inf; classes without lines are left out.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        values = metric.measure.formula(list(totals.sums), np.maximum(counts, 1))
    mean: Array = np.where(counts > 0, values, 0.0).sum(axis=2) / (counts > 0).sum(axis=2)
    return mean


@dataclass(frozen=True, slots=True)
class RuledTable:
    """Systems on the same lines, for a metric that is no function of sums.

    ``score`` computes the metric on some places of the lines of all systems, one system after the other.
    """

    score: Callable[[NDArray[np.intp]], float]
    lines: int
    systems: int
    keys: list[bytes] = field(repr=False)
    documents: Documents | None = None

    @property
    def units(self) -> int:
        """The number of units that are drawn: lines, or documents."""
        return self.lines if self.documents is None else self.documents.count

    @property
    def infinite(self) -> Flags:
        """No statistic is infinite: lines x systems."""
        return np.zeros((self.lines, self.systems), np.bool_)

    def finite(self) -> RuledTable:
        """Keep all lines."""
        return self

    def comparable(self) -> Array:
        """Score each line alone, NaN for no score: 1 x lines x systems."""
        scores = np.array([self.score(np.array([place])) for place in range(self.lines * self.systems)])
        return scores.reshape(1, self.systems, self.lines).transpose(0, 2, 1)

    def observed(self) -> Totals:
        """Score the lines as they are."""
        return self.totals([np.ones((1, self.units))])

    def totals(self, blocks: Iterable[Array]) -> Totals:
        """Score the lines of each resample, each as often as its weight says."""
        starts = self.lines * np.arange(self.systems)
        of_lines = (self._of_lines(weights) for block in blocks for weights in block)
        drawn = (np.repeat(np.arange(self.lines), weights.astype(np.intp)) for weights in of_lines)
        return self._totals([[self.score(places + start) for start in starts] for places in drawn])

    def exchanges(self, samples: int, seed: int, progress: Progress | None = None) -> Exchange:
        """Return a function that scores two systems after they changed places on some lines, in each sample."""

        def exchanged(pair: tuple[int, int]) -> Totals:
            one, other = (np.arange(self.lines) + self.lines * system for system in pair)
            blocks = swap_weights(self.units, samples, seed, progress)
            swaps = (self._of_lines(swap) > 0 for block in blocks for swap in block)
            mixed = ((np.where(swap, other, one), np.where(swap, one, other)) for swap in swaps)
            return self._totals([list(map(self.score, both)) for both in mixed])

        return exchanged

    def _of_lines(self, weights: Array) -> Array:
        return weights if self.documents is None else weights[self.documents.of_line]

    def _totals(self, scores: list[list[float]]) -> Totals:
        sums = np.array(scores)[np.newaxis, :, :, np.newaxis]
        return Totals(sums=sums, counts=np.full((len(scores), 1), float(self.lines)))
