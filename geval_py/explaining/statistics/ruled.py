"""Tables of systems whose metric is no function of sums: its ruler measures each choice of lines.

To the rest such a table is one of a single column, the score itself, of which the "sum" over some lines is the score
of these. It costs more: each resample of the lines is measured for each system anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geval_py.explaining.statistics.resampling import (
    Array,
    Exchange,
    Flags,
    StatisticsTable,
    Totals,
    swap_weights,
)
from geval_py.scoring.metrics.base import LineStatistics, Metric
from geval_py.scoring.parallel import Progress

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents

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
