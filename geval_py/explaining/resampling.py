"""Resamples of the lines, and the sums of line statistics on them.

A resample is a weight a line: how often the line was drawn (bootstrap), or whether two systems change places on it
(approximate randomisation). Where documents are told, they are drawn, or change places, whole: a weight a document,
and sums over its lines in place of these. A sum over the lines is linear in the weights, so the sums of all systems
on a block of resamples are one product of matrices; a resample is drawn once, and shared by all systems.

    weights      resamples x lines
    statistics   columns x lines x systems
    members      lines x classes, 1 where a line is of the class; one class of all lines where a metric has none
    sums         columns x resamples x systems x classes
    counts       resamples x classes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.scoring.blocks import Progress
from geval_py.scoring.metrics.base import LineStatistics

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents


Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
MOST = 1e280  # more counts as infinite, since a sum of such may overflow; and so does what is no number
BLOCK_BYTES = 1 << 22  # of the weights of one block, which are held a few times over; a resample at least


def bootstrap_weights(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Draw ``samples`` times as many units as there are, with replacement: how often each was drawn, in blocks."""
    rng = np.random.default_rng(seed)
    for rows in _block_sizes(units, samples, progress):
        drawn = rng.integers(0, units, (rows, units))
        drawn += units * np.arange(rows)[:, np.newaxis]
        yield np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def swap_weights(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Toss a coin for each unit, ``samples`` times: 1 where the systems change places, else 0, in blocks."""
    for coins in swap_coins(units, samples, seed, progress):
        yield np.unpackbits(coins, axis=1, count=units).astype(np.float64)


def swap_coins(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Bytes]:
    """Toss the same coins, eight units to a byte, the first one the highest bit; in blocks, samples x bytes."""
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
    """Sums of line statistics and numbers of lines, of each class, on each resample; of all lines: one resample."""

    sums: Array
    counts: Array


Exchange: TypeAlias = Callable[[tuple[int, int]], Totals]  # of the places of two systems, to their totals


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsTable:
    """The statistics of systems on the same lines (at least one), finite or inf, and the classes of the lines.

    ``documents`` are those of the lines, where these are drawn by document.
    """

    statistics: Array
    members: Array
    documents: Documents | None = None

    @classmethod
    def of_losses(cls, losses: Array) -> StatisticsTable:
        """Make the table of losses, lines x systems, without classes."""
        return cls(statistics=losses[np.newaxis], members=np.ones((len(losses), 1)))

    @classmethod
    def of_systems(cls, systems: Sequence[LineStatistics], documents: Documents | None = None) -> StatisticsTable:
        """Make the table of as many systems, all of the same lines."""
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
        """The number of what is drawn: lines, or documents."""
        return self.lines if self.documents is None else self.documents.count

    @property
    def infinite(self) -> Flags:
        """Where a system has an infinite statistic: lines x systems."""
        infinite: Flags = np.logical_or.reduce(self._infinite_cells, axis=0)
        return infinite

    @property
    def _infinite_cells(self) -> Flags:
        return ~(np.abs(self.statistics) <= MOST)

    def finite(self) -> StatisticsTable:
        """Keep the lines on which every system's statistics are finite; possibly none."""
        keep = ~self.infinite.any(axis=1)
        members = self.members[keep]
        return StatisticsTable(
            statistics=self.statistics[:, keep],
            members=members[:, members.any(axis=0)],
            documents=self.documents and self.documents.only(np.flatnonzero(keep)),
        )

    def comparable(self) -> Array:
        """Give the statistics with one way to write those that count as infinite, and 0."""
        return np.where(self._infinite_cells, np.inf, self.statistics) + 0.0

    @property
    def keys(self) -> list[bytes]:
        """Give a key of each system: equal ones have the same statistics on every line."""
        statistics = self.comparable()
        return [statistics[:, :, n].tobytes() for n in range(self.systems)]

    def observed(self) -> Totals:
        """Sum over the lines as they are: one resample, every weight 1."""
        return self.totals([np.ones((1, self.units))])

    def exchanges(self, samples: int, seed: int, progress: Progress | None = None) -> Exchange:
        """Give what sums over the lines of two systems that have changed places on some, in each sample.

        The systems of every pair change places on the same lines, or documents.
        """
        observed = self.observed()
        swapped = self.totals(swap_weights(self.units, samples, seed, progress))

        def exchanged(pair: tuple[int, int]) -> Totals:
            moved = swapped.sums[:, :, pair]
            return Totals(sums=observed.sums[:, :, pair] - moved + moved[:, :, ::-1], counts=observed.counts)

        return exchanged

    def totals(self, blocks: Iterable[Array]) -> Totals:
        """Sum over the lines with the weights of each resample, of lines or of documents.

        The sums of systems with the same statistics on every line are equal to the last bit, whatever the order in
        which the product adds. A sum with an infinite statistic is inf, never NaN.
        """
        columns, _, systems = self.statistics.shape
        classes = self.members.shape[1]
        infinite = self._infinite_cells
        finite = np.where(infinite, 0.0, self.statistics)
        spread = map(self._by_class, (*finite, *infinite.astype(np.float64)))
        table = np.hstack([*spread, self.members])
        table = table if self.documents is None else _by_document(table, self.documents)
        sums = np.concatenate([weights @ table for weights in blocks])
        totals = sums[:, :-classes].reshape(-1, 2, columns, systems, classes)
        finite_sums, infinities = totals.transpose(1, 2, 0, 3, 4)
        finite_sums[infinities > 0] = np.inf
        first_of: dict[bytes, int] = {}
        twins = [first_of.setdefault(self.statistics[:, :, n].tobytes(), n) for n in range(systems)]
        return Totals(sums=finite_sums[:, :, twins], counts=sums[:, -classes:])

    def _by_class(self, values: Array) -> Array:
        """Spread a column, a value a line and system, over its classes: lines x (systems x classes)."""
        spread = values[:, :, np.newaxis] * self.members[:, np.newaxis, :]
        return spread.reshape(len(values), -1)


def _by_document(table: Array, documents: Documents) -> Array:
    """Sum each column over the lines of each document."""
    columns = (np.bincount(documents.of_line, column, documents.count) for column in table.T)
    return np.stack(list(columns), axis=1)


def _members(statistics: LineStatistics) -> Array:
    """Tell of which class each line is."""
    if not statistics.classes:
        return np.ones((statistics.lines, 1))
    numbers = {one: n for n, one in enumerate(sorted(set(statistics.classes), key=str))}
    return np.eye(len(numbers))[[numbers[one] for one in statistics.classes]]
