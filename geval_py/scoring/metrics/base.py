"""What a metric is: statistics first, score second.

A *column* turns lines into their statistics, a few numbers a line, once; a *metric* is arithmetic on the sums of
those numbers. Metrics over the same column share it, and so does everything that explains a score. The metrics of
word gaps are the case of one number a line, its loss.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar

from geval_py.reading.lines import Bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOISE = 1e-12  # what differs by less, relatively, differs by rounding: a loss is right to about 1e-13

LOSSES = ("loss",)  # the columns of a metric that is made from losses alone

Direction = Literal["higher", "lower"]
Number = TypeVar("Number", float, "NDArray[np.float64]")  # of one score, or of those on many resamples at once


@dataclass(slots=True, kw_only=True)
class LineStatistics:
    """A table with a row a line, in line order; the sums of its columns are what scores are made from.

    ``columns`` hold finite numbers and inf, which makes the line an infinite one: losses are in [0, inf], in nats, or
    for Accuracy 0 (a hit) and 1 (a miss). ``classes`` gives each line's class, a number or a text, where a metric
    averages over classes, and is empty elsewhere. ``out_of_vocabulary`` counts the expected words that a metric on
    exact words has no vocabulary entry for.
    """

    columns: tuple[array[float], ...] = ()
    classes: list[float | str] = field(default_factory=list)
    out_of_vocabulary: int = 0

    def extend(self, following: LineStatistics) -> None:
        """Append the statistics of the lines that follow."""
        if not self.columns:
            self.columns = tuple(array("d") for _ in following.columns)
        for column, rows in zip(self.columns, following.columns, strict=True):
            column.extend(rows)
        self.classes.extend(following.classes)
        self.out_of_vocabulary += following.out_of_vocabulary

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.columns[0]) if self.columns else 0

    @property
    def infinite(self) -> int:
        """The number of lines that have an infinite statistic."""
        if not any(math.inf in column for column in self.columns):
            return 0
        return sum(math.inf in row for row in zip(*self.columns, strict=True))

    def by_class(self) -> list[Sequence[Sequence[float]]]:
        """Give the columns of each class's lines, or of all lines where there are no classes."""
        if not self.classes:
            return [self.columns]
        rows: dict[float | str, list[tuple[float, ...]]] = defaultdict(list)
        for one, row in zip(self.classes, zip(*self.columns, strict=True), strict=True):
            rows[one].append(row)
        return [list(zip(*part, strict=True)) for part in rows.values()]


class Column(Protocol):
    """A way to turn lines into statistics. Columns are hashable; equal ones give equal statistics."""

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        """Score blocks of as many output as expected lines; raises MalformedLineError without a path."""


class Setting(NamedTuple):
    """What a column may be made with: a metric's number of bits, and the vocabulary, prepared as the lines are."""

    bits: int | None
    vocabulary: frozenset[str]


class Formula(Protocol):
    """From the sum of each column of statistics, and the number of lines (at least 1), to a value.

    All are floats or, on many resamples at once, arrays, taken element by element: the same operators, and
    :func:`exp`. Finite sums never give NaN. A metric whose library needs numpy anyway may use it for floats too.
    """

    def __call__(self, totals: Sequence[Number], lines: Number) -> Number: ...


@dataclass(frozen=True, slots=True)
class Measure:
    """How sums of line statistics are shown, and what the values mean.

    ``unit`` is for people; ``best`` and ``worst`` are the ends of the range; ``columns`` are the names of the
    statistics. One made from losses alone gets worse, never better, as the mean loss rises.
    """

    unit: str
    direction: Direction
    best: float
    worst: float
    formula: Formula
    columns: tuple[str, ...] = LOSSES

    @property
    def of_losses(self) -> bool:
        """Whether it is made from losses alone: lines, and systems, are then compared by their losses."""
        return self.columns == LOSSES


@dataclass(frozen=True, slots=True)
class Metric:
    """A score of a whole output: which column of statistics it is made from, and how that is shown."""

    name: str
    make_column: Callable[[Setting], Column]
    measure: Measure
    summary: str
    bits: int | None = None
    needs_vocabulary: bool = False

    def value(self, statistics: LineStatistics) -> float:
        """Give the score of a table: of its lines or, where it has classes, the mean over its classes."""
        scores = [self.measure.formula(list(map(total, part)), len(part[0])) for part in statistics.by_class()]
        return math.fsum(scores) / len(scores)

    def of_line(self, *statistics: float) -> float:
        """Give the score of a single line."""
        return self.measure.formula(statistics, 1)


def total(numbers: Iterable[float]) -> float:
    """Sum exactly, so that the order in which parts come cannot matter; inf beyond the range of a double."""
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf


def exp(exponent: Number) -> Number:
    """Raise e to a float, or to each of an array; inf beyond the range of a double."""
    if isinstance(exponent, float):
        try:
            return math.exp(exponent)
        except OverflowError:
            return math.inf
    import numpy as np

    return np.exp(exponent)


def log_loss(totals: Sequence[Number], lines: Number) -> Number:
    """Mean loss in nats."""
    (loss,) = totals
    return loss / lines


def likelihood(totals: Sequence[Number], lines: Number) -> Number:
    """Geometric mean of the probabilities."""
    (loss,) = totals
    return exp(-loss / lines)


def perplexity(totals: Sequence[Number], lines: Number) -> Number:
    """Inverse of the likelihood: how many equally likely words the model hesitates between."""
    (loss,) = totals
    return exp(loss / lines)


def cross_entropy(totals: Sequence[Number], lines: Number) -> Number:
    """Mean loss in bits."""
    (loss,) = totals
    return loss / lines / math.log(2)


def accuracy(totals: Sequence[Number], lines: Number) -> Number:
    """Share of hits, where a loss of 1 is a miss."""
    (misses,) = totals
    return (lines - misses) / lines


LOG_LOSS = Measure("nats", "lower", 0.0, math.inf, log_loss)
LIKELIHOOD = Measure("probability", "higher", 1.0, 0.0, likelihood)
PERPLEXITY = Measure("words", "lower", 1.0, math.inf, perplexity)
CROSS_ENTROPY = Measure("bits", "lower", 0.0, math.inf, cross_entropy)
ACCURACY = Measure("share", "higher", 1.0, 0.0, accuracy)
