"""The spread of the mean loss by documents, whose lines are alike.

With N lines in G documents g, their losses L and the mean loss m, the variance of m is estimated by

    v = G / (G - 1) * sum over g of (sum over the lines of g of (L - m))^2 / N^2,

and (mean - m) / sqrt(v) has about Student's distribution with G - 1 degrees of freedom (Liang and Zeger,
"Longitudinal data analysis using generalized linear models", 1986; Cameron and Miller, "A practitioner's guide to
cluster-robust inference", 2015). With a line a document it is the usual variance of a mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.explaining.resampling import (
    Array,
    Exchange,
    Flags,
    StatisticsTable,
    Totals,
    bootstrap_weights,
    swap_weights,
)
from geval_py.explaining.significance import GEVAL_TAIL, LEVEL, Interval, expanded_tail, t_quantile
from geval_py.reading.options import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling
from geval_py.scoring.blocks import Progress
from geval_py.scoring.metrics.base import LineStatistics, Metric

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents, Integers
    from geval_py.scoring.scores import MetricScore


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


# Tables of systems whose metric is no function of sums: its ruler measures each choice of lines.


Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class RuledTable:
    """Systems on the same lines, and what scores some of the lines of all of them, one system after the other."""

    score: Callable[[Places], float]
    lines: int
    systems: int
    keys: list[bytes] = field(repr=False)
    documents: Documents | None = None

    @property
    def units(self) -> int:
        """The number of what is drawn: lines, or documents."""
        return self.lines if self.documents is None else self.documents.count

    @property
    def infinite(self) -> Flags:
        """Nowhere: lines x systems."""
        return np.zeros((self.lines, self.systems), np.bool_)

    def finite(self) -> RuledTable:
        """Keep all lines."""
        return self

    def comparable(self) -> Array:
        """Give the score of each line alone, NaN where there is none: 1 x lines x systems."""
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
        """Give what scores two systems that have changed places on some lines, in each sample."""

        def exchanged(pair: tuple[int, int]) -> Totals:
            one, other = (np.arange(self.lines) + self.lines * system for system in pair)
            blocks = swap_weights(self.units, samples, seed, progress)
            swaps = (self._of_lines(swap) > 0 for block in blocks for swap in block)
            mixed = ((np.where(swap, other, one), np.where(swap, one, other)) for swap in swaps)
            return self._totals([list(map(self.score, both)) for both in mixed])

        return exchanged

    def _of_lines(self, weights: Array) -> Array:
        """Give each line the weight of its document."""
        return weights if self.documents is None else weights[self.documents.of_line]

    def _totals(self, scores: list[list[float]]) -> Totals:
        sums = np.array(scores)[np.newaxis, :, :, np.newaxis]
        return Totals(sums=sums, counts=np.full((len(scores), 1), float(self.lines)))


Table: TypeAlias = StatisticsTable | RuledTable


def table_of(metric: Metric, systems: Sequence[LineStatistics], documents: Documents | None = None) -> Table:
    """Make the table that a metric is computed on, of as many systems, all of the same lines or documents."""
    ruler = metric.measure.ruler
    if ruler is None:
        return StatisticsTable.of_systems(systems, documents)
    return RuledTable(ruler(systems), systems[0].lines, len(systems), list(map(_key, systems)), documents)


def _key(statistics: LineStatistics) -> bytes:
    return b"".join(column.tobytes() for column in statistics.columns) + repr(statistics.details).encode()


# The bootstrap: how much a score would vary on other lines of the same kind.


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


def score_interval(
    score: MetricScore,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    documents: Documents | None = None,
    as_geval: bool = False,
    progress: Progress | None = None,
) -> Interval:
    """Return the 95 % interval of a score as :func:`interval`; ``documents`` are those of all lines of the file."""
    return interval(
        score.metric,
        score.statistics,
        samples=samples,
        seed=seed,
        documents=None if documents is None else documents.of_score(score).several(),
        as_geval=as_geval,
        progress=progress,
    )


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
