"""Columns that tell more of a line than its loss: its whole profile, its loss under another seed of the hash.

They take the place of a hashed metric's own column, so that its flags, and all that reads files, hold for them too.
"""

from __future__ import annotations

from array import array

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.scoring import kernel
from geval_py.scoring.kernel.profile import BINS, COLUMNS, COUNTS
from geval_py.scoring.metrics.base import LineStatistics, Measure, Metric
from geval_py.scoring.metrics.hashed import HashedColumn
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from geval_py.scoring.metrics.base import Number, Setting


class ProfileStatistics(LineStatistics):
    """The columns of :func:`geval_py.scoring.kernel.profile.line_profiles`, and its histogram of all listed words."""

    __slots__ = ("_histogram",)

    def __init__(self, columns: tuple[array[float], ...], histogram: array[float]) -> None:
        import numpy as np

        super().__init__(columns)
        self._histogram = np.array(histogram)

    def extend(self, following: LineStatistics) -> None:
        super().extend(following)
        if isinstance(following, ProfileStatistics):
            self._histogram += following._histogram

    def column(self, name: str) -> NDArray[np.float64]:
        """Give the column of a name, a value a line."""
        import numpy as np

        return np.frombuffer(self.columns[COLUMNS.index(name)])

    @property
    def histogram(self) -> NDArray[np.float64]:
        """The bins from small masses to great; of each its number of words, their mass, the hits, and each draw's."""
        return self._histogram.reshape(BINS, -1)

    @property
    def draws(self) -> int:
        """How often each line's word was drawn."""
        return len(self._histogram) // BINS - len(COUNTS)


class ProfileColumn(Value):
    """What each line's distribution says; see :func:`geval_py.scoring.kernel.profile.line_profiles`."""

    bits: int
    draws: int

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        return ProfileStatistics(*kernel.line_profiles(outputs, expected, self.bits, first_line, self.draws))


class ReseededColumn(Value):
    """The loss that a line would have if it stood so many lines ``further``: seeds of the hash are line numbers."""

    bits: int
    further: int

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        try:
            return HashedColumn(bits=self.bits).statistics(outputs, expected, first_line + self.further)
        except MalformedLineError as error:
            error.line -= self.further
            raise


class UnknownColumn(Value):
    """1 for an expected word that the vocabulary does not have, 0 for one that it has."""

    vocabulary: frozenset[str]

    @classmethod
    def of(cls, setting: Setting) -> UnknownColumn:
        """Make the column of a vocabulary."""
        return cls(vocabulary=setting.vocabulary)

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        del outputs, first_line
        return LineStatistics((array("d", (word not in self.vocabulary for word in decode_lines(expected))),))


def is_hashed(metric: Metric) -> bool:
    """Tell whether a metric is one on hashed words, which has a profile."""
    return metric.bits is not None


def profiled(metric: Metric, draws: int = 0) -> Metric:
    """Give a hashed metric of the same values, whose statistics are ProfileStatistics."""
    formula = metric.measure.formula

    def of_losses(totals: Sequence[Number], lines: Number) -> Number:
        return formula(totals[:1], lines)

    def make(setting: Setting) -> ProfileColumn:
        return ProfileColumn(bits=HashedColumn.of(setting).bits, draws=draws)

    measure: Measure = metric.measure.replace(formula=of_losses, columns=COLUMNS)
    return metric.replace(make_column=make, measure=measure)


def reseeded(metric: Metric, further: int) -> Metric:
    """Give a hashed metric as it is on lines that stand so many lines further."""

    def make(setting: Setting) -> ReseededColumn:
        return ReseededColumn(bits=HashedColumn.of(setting).bits, further=further)

    return metric.replace(make_column=make)


def unknown_words(metric: Metric) -> Metric:
    """Give a metric whose one statistic tells which expected words the vocabulary does not have."""
    return metric.replace(make_column=UnknownColumn.of, needs_vocabulary=True)
