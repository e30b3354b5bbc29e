"""Columns of hashed words that say more of a line than its loss: its profile, and its loss under other seeds."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from geval_py.reading.lines import Bytes
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.profile import BINS, COLUMNS
from geval_py.scoring.metrics.base import Array, LineStatistics, Metric


class ProfileStatistics(LineStatistics):
    """The columns of :func:`geval_py.scoring.kernel.profile.line_profiles`, and its histogram of all listed words.

    The ``histogram`` has a row for each bin, from small masses to great: words, their mass, hits, and the count of
    each draw.
    """

    def __init__(self, columns: tuple[array[float], ...], histogram: array[float] | Array) -> None:
        import numpy as np

        super().__init__(columns)
        self.histogram = np.array(histogram).reshape(BINS, -1)

    def extend(self, following: LineStatistics) -> None:
        LineStatistics.extend(self, following)
        if isinstance(following, ProfileStatistics):
            self.histogram += following.histogram

    def only(self, places: Sequence[int]) -> ProfileStatistics:
        """Return the columns of some lines, and the histogram of all."""
        return ProfileStatistics(LineStatistics.only(self, places).columns, self.histogram)

    def column(self, name: str) -> Array:
        """Return the column of a name, a value a line."""
        import numpy as np

        return np.frombuffer(self.columns[COLUMNS.index(name)])


@dataclass(frozen=True, slots=True)
class ProfileColumn:
    """The profile of each line's distribution; see :func:`geval_py.scoring.kernel.profile.line_profiles`."""

    bits: int
    draws: int

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> ProfileStatistics:
        return ProfileStatistics(*backends.line_profiles(outputs, expected, self.bits, first_line, self.draws))


@dataclass(frozen=True, slots=True)
class ReseededColumn:
    """The losses that a line would have 1, 2, … ``seeds`` lines down the file: line numbers seed the hash."""

    bits: int
    seeds: int

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        lines = range(first_line, first_line + self.seeds + 1)  # the first one, so that errors have the right numbers
        losses = [backends.bounded_losses(outputs, expected, self.bits, line)[0] for line in lines]
        return LineStatistics(tuple(losses[1:]))


def profiled(metric: Metric, draws: int = 0) -> Metric:
    """Return a hashed metric of the same values, whose statistics are ProfileStatistics."""
    column = ProfileColumn(metric.bits or DEFAULT_BITS, draws)
    return metric._replace(column=column, measure=metric.measure._replace(columns=COLUMNS))


def reseeded(metric: Metric, seeds: int) -> Metric:
    """Return a hashed metric of the first other seed, with the losses under so many other seeds as its statistics."""
    names = tuple(f"seed_{seed}" for seed in range(1, seeds + 1))
    column = ReseededColumn(metric.bits or DEFAULT_BITS, seeds)
    return metric._replace(column=column, measure=metric.measure._replace(columns=names))
