"""Resamples of the lines: the sums of line statistics on them, and the confidence intervals of scores.

A resample is a weight for each line: how often the line was drawn (bootstrap), or whether two systems change places
on it (approximate randomisation). Documents are drawn, or change places, whole: then there is a weight for each
document, and the table holds sums over its lines. A sum over the lines is linear in the weights, so the sums of all
systems on a block of resamples are one product of matrices; a resample is drawn once, and shared by all systems.

    weights      resamples x lines
    statistics   columns x lines x systems
    members      lines x classes, 1 if a line is of the class; a metric without classes has one class of all lines
    sums         columns x resamples x systems x classes
    counts       resamples x classes

In this order: weights; the two kinds of table, of metrics that are made from sums and of all others; intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.explaining.significance import GEVAL_TAIL, Array, Flags, Integers, Interval, expanded_tail
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling

if TYPE_CHECKING:
    from geval_py.explaining.spread import Documents
    from geval_py.scoring.blocks import Progress
    from geval_py.scoring.metrics.base import LineStatistics, Metric
    from geval_py.scoring.scores import MetricScore

    Bytes: TypeAlias = NDArray[np.uint8]
    Exchange: TypeAlias = Callable[[tuple[int, int]], "Totals"]  # of two systems that change places, to their totals

    LineTable: TypeAlias = "StatisticsTable | RuledTable"


MOST = 1e280  # a greater statistic, or NaN, counts as infinite: a sum of such might overflow
MANY = 20_000  # lines, beyond which means are so nearly normal that nothing is drawn
BLOCK_BYTES = 1 << 22  # of the weights of one block, which are held a few times over; at least one resample


def bootstrap_weights(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Draw all units with replacement, ``samples`` times; yield how often each was drawn, in blocks."""
    rng = np.random.default_rng(seed)
    for rows in _block_sizes(units, samples, progress):
        drawn = rng.integers(0, units, (rows, units))
        drawn += units * np.arange(rows)[:, np.newaxis]
        yield np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def swap_weights(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Toss a coin for each unit, ``samples`` times: yield 1 for a change of places, else 0, in blocks."""
    for coins in swap_coins(units, samples, seed, progress):
        yield np.unpackbits(coins, axis=1, count=units).astype(np.float64)


def swap_coins(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Bytes]:
    """Toss the same coins, eight units a byte, the first in the highest bit; yield blocks, samples x bytes."""
    rng = np.random.default_rng(seed)
    for rows in _block_sizes(units, samples, progress):
        yield np.frombuffer(rng.bytes(rows * -(-units // 8)), dtype=np.uint8).reshape(rows, -1)


def _block_sizes(units: int, samples: int, progress: Progress | None) -> Iterator[int]:
    most = max(1, BLOCK_BYTES // (8 * units))
    for start in range(0, samples, most):
        if progress is not None:
            progress(start, samples)
        yield min(most, samples - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums of line statistics and numbers of lines, by class and resample; sums of all lines are one resample."""

    sums: Array
    counts: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsTable:
    """The statistics of systems on the same lines (at least one), finite or inf, and the classes of the lines.

    ``documents`` group the lines, if whole documents are drawn.
    """

    statistics: Array
    members: Array
    documents: Documents | None = None

    @classmethod
    def of_losses(cls, losses: Array) -> StatisticsTable:
        """Make a table of losses, lines x systems, without classes."""
        return cls(statistics=losses[np.newaxis], members=np.ones((len(losses), 1)))

    @classmethod
    def of_systems(cls, systems: Sequence[LineStatistics], documents: Documents | None = None) -> StatisticsTable:
        """Make a table of systems on the same lines."""
        statistics = np.array([[np.array(column) for column in system.columns] for system in systems])
        return cls(statistics=statistics.transpose(1, 2, 0), members=_members(systems[0]), documents=documents)

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.members)

    @property
    def systems(self) -> int:
        """The number of systems."""
        return int(self.statistics.shape[2])

    @property
    def units(self) -> int:
        """The number of units that are drawn: lines, or documents."""
        return self.lines if self.documents is None else self.documents.count

    @property
    def infinite(self) -> Flags:
        """Whether a system has an infinite statistic on a line: lines x systems."""
        infinite: Flags = np.logical_or.reduce(self._infinite_cells, axis=0)
        return infinite

    @property
    def _infinite_cells(self) -> Flags:
        return ~(np.abs(self.statistics) <= MOST)

    def finite(self) -> StatisticsTable:
        """Keep the lines (possibly none) with finite statistics for all systems."""
        keep: Flags = ~np.logical_or.reduce(self.infinite, axis=1)
        return self.only(keep)

    def of_system(self, system: int) -> StatisticsTable:
        """Keep one system, on all lines."""
        return replace(self, statistics=self.statistics[:, :, [system]])

    def of_systems_on(self, systems: Sequence[int], keep: Flags) -> StatisticsTable:
        """Keep some systems, on some lines."""
        return replace(self, statistics=self.statistics[:, :, systems]).only(keep)

    def only(self, keep: Flags) -> StatisticsTable:
        """Keep some lines (possibly none)."""
        members = self.members[keep]
        return StatisticsTable(
            statistics=self.statistics[:, keep],
            members=members[:, members.any(axis=0)],
            documents=self.documents and self.documents.only(np.flatnonzero(keep)),
        )

    def comparable(self) -> Array:
        """Return the statistics with all that count as infinite written as inf, and -0 as 0."""
        return np.where(self._infinite_cells, np.inf, self.statistics) + 0.0

    @property
    def keys(self) -> list[bytes]:
        """A key for each system; equal keys mean the same statistics on every line."""
        statistics = self.comparable()
        return [statistics[:, :, n].tobytes() for n in range(self.systems)]

    def observed(self) -> Totals:
        """Sum over the lines as they are: one resample, every weight 1."""
        return self.totals([np.ones((1, self.units))])

    def exchanges(self, samples: int, seed: int, progress: Progress | None = None) -> Exchange:
        """Return a function that sums the statistics of two systems after they changed places, in each sample.

        The systems of every pair change places on the same lines, or documents.
        """
        observed = self.observed()
        swapped = self.totals(swap_weights(self.units, samples, seed, progress))

        def exchanged(pair: tuple[int, int]) -> Totals:
            moved = swapped.sums[:, :, pair]
            return Totals(sums=observed.sums[:, :, pair] - moved + moved[:, :, ::-1], counts=observed.counts)

        return exchanged

    def totals(self, blocks: Iterable[Array]) -> Totals:
        """Sum over the lines with the weights, of lines or of documents, of each resample.

        Systems with the same statistics on every line get sums that are equal to the last bit, whatever the order in
        which the product adds. A sum with an infinite statistic is inf, never NaN.
        """
        columns, _, systems = self.statistics.shape
        classes = self.members.shape[1]
        infinite = self._infinite_cells
        finite = np.where(infinite, 0.0, self.statistics)
        spread = map(self._by_class, (*finite, *infinite.astype(np.float64)))
        table = np.hstack([*spread, self.members])
        if self.documents is not None:
            of_line, documents = self.documents.of_line, self.documents.count
            table = np.stack([np.bincount(of_line, column, documents) for column in table.T], axis=1)
        sums = np.concatenate([weights @ table for weights in blocks])
        totals = sums[:, :-classes].reshape(-1, 2, columns, systems, classes)
        finite_sums, infinities = totals.transpose(1, 2, 0, 3, 4)
        finite_sums[infinities > 0] = np.inf
        first_of: dict[bytes, int] = {}
        twins = [first_of.setdefault(self.statistics[:, :, n].tobytes(), n) for n in range(systems)]
        return Totals(sums=finite_sums[:, :, twins], counts=sums[:, -classes:])

    def _by_class(self, values: Array) -> Array:
        """Spread a column, lines x systems, over the classes: lines x (systems x classes)."""
        spread = values[:, :, np.newaxis] * self.members[:, np.newaxis, :]
        return spread.reshape(len(values), -1)


def _members(statistics: LineStatistics) -> Array:
    if not statistics.classes:
        return np.ones((statistics.lines, 1))
    numbers = {one: n for n, one in enumerate(sorted(set(statistics.classes), key=str))}
    return np.eye(len(numbers))[[numbers[one] for one in statistics.classes]]


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


def table_of(metric: Metric, systems: Sequence[LineStatistics], documents: Documents | None = None) -> LineTable:
    """Make the table of line statistics for a metric: systems on the same lines, possibly in documents."""
    ruler = metric.measure.corpus_score
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


# Confidence intervals, on other lines of the same kind: by the spread of documents, or by the bootstrap


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
    (computed,) = computed_intervals(metric, table)
    if computed is not None and not (as_geval and documents is None):
        return computed
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


def computed_intervals(metric: Metric, table: LineTable) -> list[Interval | None]:
    """Compute each system's interval from the spread of its lines, or documents.

    None for infinite statistics, a single line or document, and a metric whose lines have no figures. Without
    documents, only intervals of mean losses are computed, unless there are many lines: those of other metrics are
    percentiles of resamples.
    """
    if isinstance(table, RuledTable) or table.units == 1:
        return [None] * table.systems
    if spread_units(table) is None and not is_of_mean_loss(metric, table):
        return [None] * table.systems
    return [_computed_interval(metric, table.of_system(n)) for n in range(table.systems)]


def spread_units(table: LineTable) -> Integers | None:
    """Return the number of the document of each line, or the line's own if there are many; None if there are few.

    Few lines are resampled, which sees how skewed their figures are; with many, both are the same.
    """
    if table.documents is not None:
        return table.documents.of_line if table.documents.count > 1 else None
    return np.arange(table.lines) if table.lines > MANY else None


def _computed_interval(metric: Metric, table: StatisticsTable) -> Interval | None:
    """Compute the interval of one system; a metric of the mean loss is computed from the ends of that one's."""
    from geval_py.explaining.spread import interval_of_mean

    values = figures_of_lines(metric, table)
    if values is None or not np.isfinite(values).all():
        return None
    ends = interval_of_mean(values, None if table.documents is None else table.documents.of_line)
    best, worst = sorted((metric.measure.best, metric.measure.worst))
    if is_of_mean_loss(metric, table):
        lines = len(values)
        low, high = (metric.measure.formula([max(0.0, end) * lines], lines) for end in ends)
    else:
        bias = float(scores_on(metric, table.observed())[0, 0] - values.mean())
        low, high = (end + bias for end in ends)
    low, high = sorted(min(max(end, best), worst) for end in (low, high))
    documents = None if table.documents is None else table.documents.count
    return Interval.between(low, high, documents=documents)


def is_of_mean_loss(metric: Metric, table: StatisticsTable) -> bool:
    """Whether a score is made from one mean loss, so that systems are told apart by their mean losses."""
    return metric.measure.of_losses and table.members.shape[1] == 1


def line_values(metric: Metric, statistics: LineStatistics) -> Array | None:
    """Return a figure for each line whose mean stands for the score; see :func:`figures_of_lines`."""
    if metric.measure.corpus_score is not None:
        return None
    return figures_of_lines(metric, StatisticsTable.of_systems([statistics]))


def figures_of_lines(metric: Metric, table: StatisticsTable, *, of_score: bool = False) -> Array | None:
    """Return a figure for each line of the one system of a table, whose mean stands for the score; inf if infinite.

    The figures are the losses or, for a metric that is not made from one mean loss and always if ``of_score``, the
    jackknife's pseudo-values: N times the score, minus N - 1 times the score without the line. None where these are
    undefined.
    """
    if is_of_mean_loss(metric, table) and not of_score:
        return np.where(table.infinite[:, 0], np.inf, table.statistics[0, :, 0])
    keep = ~table.infinite[:, 0]
    figures = np.full(table.lines, np.inf)
    if keep.sum() < 2:
        return figures
    figures[keep] = _pseudo_values(metric, table.only(keep))
    return None if np.isnan(figures).any() else figures


def _pseudo_values(metric: Metric, table: StatisticsTable) -> Array:
    """Compute the pseudo-values of the lines of one system; all its statistics are finite."""
    observed, lines = table.observed(), table.lines
    score = scores_on(metric, observed)[0, 0]
    without = np.empty(lines)
    rows = max(1, BLOCK_BYTES // (8 * len(table.statistics) * table.members.shape[1]))
    for start in range(0, lines, rows):
        members = table.members[start : start + rows]
        of_lines = table.statistics[:, start : start + rows, :, np.newaxis] * members[:, np.newaxis, :]
        totals = Totals(sums=observed.sums - of_lines, counts=observed.counts - members)
        without[start : start + rows] = scores_on(metric, totals)[:, 0]
    with np.errstate(invalid="ignore"):
        values: Array = lines * score - (lines - 1) * without
    return values


def percentile_interval(values: Array, table: LineTable, *, seed: int, tail: float | None = None) -> Interval:
    """Cut the scores on resamples of a table; the default ``tail`` depends on the number of lines or documents."""
    return Interval.of(
        values.tolist(),
        samples=len(values),
        seed=seed,
        tail=expanded_tail(table.units) if tail is None else tail,
        documents=None if table.documents is None else table.documents.count,
    )
