"""What a metric is: statistics first, score second.

A *column* turns lines into their losses, once; a *metric* is arithmetic on that column. Metrics over the same
column share it, and so does everything that explains a score.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from geval_py.reading.lines import Bytes

NOISE = 1e-12  # what differs by less, relatively, differs by rounding: a loss is right to about 1e-13

Direction = Literal["higher", "lower"]
Kind = Literal["hashed", "exact", "binary", "misses"]


@dataclass(slots=True, kw_only=True)
class LineLosses:
    """The column of line losses, in line order.

    ``values`` are in [0, inf]: nats, or for Accuracy 0 (a hit) and 1 (a miss). ``classes`` gives each line's
    class where a metric averages over classes, and is empty elsewhere. ``out_of_vocabulary`` counts the expected
    words that a metric on exact words has no vocabulary entry for.
    """

    values: array[float] = field(default_factory=lambda: array("d"))
    classes: bytearray = field(default_factory=bytearray)
    out_of_vocabulary: int = 0

    def extend(self, following: LineLosses) -> None:
        """Append the losses of the lines that follow."""
        self.values.extend(following.values)
        self.classes.extend(following.classes)
        self.out_of_vocabulary += following.out_of_vocabulary


class Column(Protocol):
    """A way to turn lines into losses. Columns are hashable; equal ones give equal losses."""

    def losses(self, outputs: Bytes, expected: bytes, first_line: int) -> LineLosses:
        """Score blocks of as many output as expected lines; raises MalformedLineError without a path."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How a sum of losses over a number of lines (at least 1) is shown, and what its values mean.

    ``unit`` is for people; ``best`` and ``worst`` are the ends of the range.
    """

    unit: str
    direction: Direction
    best: float
    worst: float
    of_total: Callable[[float, int], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """A score of a whole output: which column of losses it is made from, and how that is shown."""

    name: str
    kind: Kind
    measure: Measure
    summary: str
    bits: int | None = None

    @property
    def unit(self) -> str:
        """What its values are counted in: nats, bits, words, a probability or a share."""
        return self.measure.unit

    @property
    def direction(self) -> Direction:
        """Which values are better: "higher" or "lower"."""
        return self.measure.direction

    def value(self, losses: LineLosses) -> float:
        """Give the score of a column: of its lines or, where it has classes, the mean over its classes."""
        if not losses.classes:
            return self.measure.of_total(total(losses.values), len(losses.values))
        by_class = [
            [loss for loss, of in zip(losses.values, losses.classes, strict=True) if of == one]
            for one in sorted(set(losses.classes))
        ]
        scores = [self.measure.of_total(total(part), len(part)) for part in by_class]
        return math.fsum(scores) / len(scores)

    def of_line(self, loss: float) -> float:
        """Give the score of a single line."""
        return self.measure.of_total(loss, 1)


def total(losses: Iterable[float]) -> float:
    """Sum exactly, so that the order in which parts come cannot matter; inf beyond the range of a double."""
    try:
        return math.fsum(losses)
    except OverflowError:
        return math.inf


def log_loss(total: float, lines: int) -> float:
    """Mean loss in nats."""
    return total / lines


def likelihood(total: float, lines: int) -> float:
    """Geometric mean of the probabilities."""
    return math.exp(-total / lines)


def perplexity(total: float, lines: int) -> float:
    """Inverse of the likelihood: how many equally likely words the model hesitates between."""
    try:
        return math.exp(total / lines)
    except OverflowError:
        return math.inf


def cross_entropy(total: float, lines: int) -> float:
    """Mean loss in bits."""
    return total / lines / math.log(2)


def accuracy(total: float, lines: int) -> float:
    """Share of hits, where a loss of 1 is a miss."""
    return (lines - total) / lines


LOG_LOSS = Measure("nats", "lower", 0.0, math.inf, log_loss)
LIKELIHOOD = Measure("probability", "higher", 1.0, 0.0, likelihood)
PERPLEXITY = Measure("words", "lower", 1.0, math.inf, perplexity)
CROSS_ENTROPY = Measure("bits", "lower", 0.0, math.inf, cross_entropy)
ACCURACY = Measure("share", "higher", 1.0, 0.0, accuracy)
