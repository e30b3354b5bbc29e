"""Resamples of the lines, and the sums of line statistics on them.

A resample is a weight a line: how often the line was drawn (bootstrap), or whether two systems change places on it
(approximate randomisation). Documents are drawn, or change places, whole: then there is a weight a document, and the
table holds sums over the lines of each. A sum over the lines is linear in the weights, so the sums of all systems on
a block of resamples are one product of matrices; a resample is drawn once, and shared by all systems.

    weights      resamples x lines
    statistics   columns x lines x systems
    members      lines x classes, 1 if a line is of the class; a metric without classes has one class of all lines
    sums         columns x resamples x systems x classes
    counts       resamples x classes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from geval_py.explaining.documents import Documents
    from geval_py.explaining.significance import Array, Flags
    from geval_py.scoring.blocks import Progress
    from geval_py.scoring.metrics.base import LineStatistics

    Bytes: TypeAlias = NDArray[np.uint8]
    Exchange: TypeAlias = Callable[[tuple[int, int]], "Totals"]  # of two systems that change places, to their totals


MOST = 1e280  # a greater statistic, or NaN, counts as infinite: a sum of such might overflow
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
        keep = ~self.infinite.any(axis=1)
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
