"""Resamples of the lines, and the sums of line losses on them.

A resample is a weight a line: how often the line was drawn (bootstrap), or whether two systems change places on it
(approximate randomisation). A sum over the lines is linear in the weights, so the sums of all systems on a block of
resamples are one product of matrices; a resample is drawn once, and shared by all systems.

    weights   resamples x lines
    losses    lines x systems
    members   lines x classes, 1 where a line is of the class; one class of all lines where a metric has none
    totals    resamples x systems x classes
    counts    resamples x classes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geval_py.scoring.metrics.base import LineLosses
from geval_py.scoring.parallel import Progress

Array = NDArray[np.float64]

MOST_LOSS = 1e280  # more counts as infinite, since a sum of such may overflow; and so does what is no number
BLOCK_BYTES = 1 << 22  # of the weights of one block, which are held a few times over; a resample at least


def bootstrap_weights(lines: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Draw ``samples`` times as many lines as there are, with replacement: how often each was drawn, in blocks."""
    rng = np.random.default_rng(seed)
    for rows in _block_sizes(lines, samples, progress):
        drawn = rng.integers(0, lines, (rows, lines))
        drawn += lines * np.arange(rows)[:, np.newaxis]
        yield np.bincount(drawn.ravel(), minlength=rows * lines).reshape(rows, lines).astype(np.float64)


def swap_weights(lines: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Toss a coin for each line, ``samples`` times: 1 where the systems change places, else 0, in blocks."""
    rng = np.random.default_rng(seed)
    for rows in _block_sizes(lines, samples, progress):
        coins = np.frombuffer(rng.bytes(rows * -(-lines // 8)), dtype=np.uint8).reshape(rows, -1)
        yield np.unpackbits(coins, axis=1, count=lines).astype(np.float64)


def _block_sizes(lines: int, samples: int, progress: Progress | None) -> Iterator[int]:
    most = max(1, BLOCK_BYTES // (8 * lines))
    for start in range(0, samples, most):
        if progress is not None:
            progress(start, samples)
        yield min(most, samples - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums of line losses and numbers of lines, of each class, on each resample; of all lines: one resample."""

    losses: Array
    counts: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class LossTable:
    """The line losses of systems on the same lines (at least one), in [0, inf], and the classes of the lines."""

    losses: Array
    members: Array

    @classmethod
    def of_array(cls, losses: Array) -> LossTable:
        """Make the table of losses, lines x systems, without classes."""
        return cls(losses=losses, members=np.ones((len(losses), 1)))

    @classmethod
    def of_columns(cls, columns: Sequence[LineLosses]) -> LossTable:
        """Make the table of as many systems as columns, all of the same lines."""
        losses = np.array([np.array(column.values) for column in columns]).T
        classes = np.frombuffer(bytes(columns[0].classes), dtype=np.uint8)
        if not len(classes):
            return cls.of_array(losses)
        members = classes[:, np.newaxis] == np.unique(classes)
        return cls(losses=losses, members=members.astype(np.float64))

    @property
    def infinite(self) -> NDArray[np.bool_]:
        """Where a loss is infinite: lines x systems."""
        return ~(self.losses <= MOST_LOSS)

    def finite(self) -> LossTable:
        """Keep the lines on which every system's loss is finite; possibly none."""
        keep = ~self.infinite.any(axis=1)
        members = self.members[keep]
        return LossTable(losses=self.losses[keep], members=members[:, members.any(axis=0)])

    def observed(self) -> Totals:
        """Sum over the lines as they are: one resample, every weight 1."""
        return self.totals([np.ones((1, len(self.losses)))])

    def totals(self, blocks: Iterable[Array]) -> Totals:
        """Sum over the lines with the weights of each resample.

        The sums of systems with the same loss on every line are equal to the last bit, whatever the order in which
        the product adds. A sum with an infinite loss is inf, never NaN.
        """
        systems, classes = self.losses.shape[1], self.members.shape[1]
        finite = np.where(self.infinite, 0.0, self.losses)
        infinite = self.infinite.astype(np.float64)
        columns = np.hstack([self._by_class(finite), self._by_class(infinite), self.members])
        sums = np.concatenate([weights @ columns for weights in blocks])
        losses, infinities = sums[:, :-classes].reshape(-1, 2, systems, classes).swapaxes(0, 1)
        losses[infinities > 0] = np.inf
        first_of: dict[bytes, int] = {}
        twins = [first_of.setdefault(column.tobytes(), n) for n, column in enumerate(self.losses.T)]
        return Totals(losses=losses[:, twins], counts=sums[:, -classes:])

    def _by_class(self, values: Array) -> Array:
        """Spread each system's column over columns of its classes: lines x (systems x classes)."""
        spread = values[:, :, np.newaxis] * self.members[:, np.newaxis, :]
        return spread.reshape(len(values), -1)
