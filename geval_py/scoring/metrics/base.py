"""What a metric is: statistics first, score second.

A *column* turns lines into their statistics, a few numbers a line, once; a *metric* is arithmetic on the sums of
those numbers. Metrics over the same column share it, and so does everything that explains a score. The metrics of
word gaps are the case of one number a line, its loss.

Some scores are no function of sums: ranks, and mutual information, are of all lines at once. Such a metric has, in
place of arithmetic on sums, a *ruler*: laid on the tables of some systems, it measures any choice of their lines. A
resample of the lines is such a choice, and so are two systems that have changed places on some lines.
"""

from __future__ import annotations

import math
from array import array

from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Literal, Protocol, TypeVar

    import numpy as np
    from numpy.typing import NDArray

    from geval_py.reading.lines import Bytes

    Direction = Literal["higher", "lower"]
    Number = TypeVar("Number", float, NDArray[np.float64])  # of one score, or of those on many resamples at once

    class Column(Protocol):
        """A way to turn lines into statistics. Columns are hashable; equal ones give equal statistics."""

        def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
            """Score blocks of as many output as expected lines; raises MalformedLineError without a path."""

    class Formula(Protocol):
        """From the sum of each column of statistics, and the number of lines (at least 1), to a value.

        All are floats or, on many resamples at once, arrays, taken element by element: the same operators, and
        :func:`exp`. Finite sums never give NaN. A metric whose library needs numpy anyway may use it for floats too.
        """

        def __call__(self, totals: Sequence[Number], lines: Number) -> Number: ...

    class Ruler(Protocol):
        """From the tables of systems, of as many lines each, to what scores some of their lines.

        The lines are given by their places, from 0, in all tables one after the other: those of the second system
        begin behind those of the first. One may be there several times. A score that is not defined is NaN.
        """

        def __call__(self, systems: Sequence[LineStatistics]) -> Callable[[NDArray[np.intp]], float]: ...


NOISE = 1e-12  # what differs by less, relatively, differs by rounding: a loss is right to about 1e-13
LOSSES = ("loss",)  # the columns of a metric that is made from losses alone


class LineStatistics:
    """A table with a row a line, in line order; the sums of its columns are what scores are made from.

    ``columns`` hold finite numbers and inf, which makes the line an infinite one: losses are in [0, inf], in nats, or
    for Accuracy 0 (a hit) and 1 (a miss). ``classes`` gives each line's class, a number or a text, where a metric
    averages over classes, and is empty elsewhere. ``details`` gives what else of each line a ruler looks at, such as
    its labels, and is empty where it looks at the columns alone. ``out_of_vocabulary`` counts the expected words that
    a metric on exact words has no vocabulary entry for. ``bound`` is the greatest loss that any line could have had,
    for metrics on hashed words, and 0 elsewhere.
    """

    __slots__ = ("bound", "classes", "columns", "details", "out_of_vocabulary")

    def __init__(
        self,
        columns: tuple[array[float], ...] = (),
        classes: list[float | str] | None = None,
        out_of_vocabulary: int = 0,
        details: list[Any] | None = None,
        bound: float = 0.0,
    ) -> None:
        self.columns = columns
        self.classes: list[float | str] = [] if classes is None else classes
        self.details: list[Any] = [] if details is None else details
        self.out_of_vocabulary = out_of_vocabulary
        self.bound = bound

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LineStatistics):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in LineStatistics.__slots__)

    def extend(self, following: LineStatistics) -> None:
        """Append the statistics of the lines that follow."""
        if not self.columns:
            self.columns = tuple(array("d") for _ in following.columns)
        for column, rows in zip(self.columns, following.columns, strict=True):
            column.extend(rows)
        self.classes.extend(following.classes)
        self.details.extend(following.details)
        self.out_of_vocabulary += following.out_of_vocabulary
        self.bound = max(self.bound, following.bound)

    def only(self, places: Sequence[int]) -> LineStatistics:
        """Give those of some lines, by their places from 0."""
        return LineStatistics(
            columns=tuple(array("d", map(column.__getitem__, places)) for column in self.columns),
            classes=list(map(self.classes.__getitem__, places)) if self.classes else None,
            details=list(map(self.details.__getitem__, places)) if self.details else None,
            bound=self.bound,
        )

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
        rows: dict[float | str, list[tuple[float, ...]]] = {}
        for one, row in zip(self.classes, zip(*self.columns, strict=True), strict=True):
            rows.setdefault(one, []).append(row)
        return [list(zip(*part, strict=True)) for part in rows.values()]


class Setting(Value):
    """What a column may be made with: a metric's number of bits, and the vocabulary, prepared as the lines are."""

    bits: int | None
    vocabulary: frozenset[str]


class Measure(Value):
    """How sums of line statistics are shown, and what the values mean.

    ``unit`` is for people; ``best`` and ``worst`` are the ends of the range; ``columns`` are the names of the
    statistics. One made from losses alone gets worse, never better, as the mean loss rises. One with a ``ruler`` is
    no function of sums, and its formula is that of a score which the ruler gave.
    """

    unit: str
    direction: Direction
    best: float
    worst: float
    formula: Formula
    columns: tuple[str, ...] = LOSSES
    ruler: Ruler | None = None

    @property
    def of_sums(self) -> bool:
        """Whether it is a function of the sums of line statistics."""
        return self.ruler is None

    @property
    def of_losses(self) -> bool:
        """Whether it is made from losses alone: lines, and systems, are then compared by their losses."""
        return self.columns == LOSSES

    @property
    def in_nats(self) -> bool:
        """Whether these losses are negative logarithms of probabilities, not misses."""
        return self.of_losses and self.unit != "share"


class Metric(Value):
    """A score of a whole output: which column of statistics it is made from, and how that is shown.

    One that ``needs_input`` looks at the lines of the input too. ``is_of_words`` tells whether its output lines are
    distributions over words, which most rules of the checker are about; ``has_classes``, whether they are classes of
    the training set; ``is_tokenised``, whether a tokenizer that is named splits its lines first, where GEval's
    isPreprocessable says so. An expected line is one of the ``answers``, or any of its columns is, or all of them are
    right. ``parse`` reads an output line, of some number; it raises MalformedLineError for one not in the format.
    ``signature`` gives, from the statistics, what the library that computes the metric signs its scores with.
    """

    name: str
    make_column: Callable[[Setting], Column]
    measure: Measure
    summary: str
    bits: int | None = None
    needs_vocabulary: bool = False
    needs_input: bool = False
    is_of_words: bool = True
    has_classes: bool = False
    is_tokenised: bool = False
    answers: Literal["one", "any", "all"] = "one"
    parse: Callable[[str, int], object] | None = None
    signature: Callable[[LineStatistics], str] | None = None

    @property
    def unit(self) -> str:
        """What its values are counted in: nats, bits, words, a probability or a share."""
        return self.measure.unit

    @property
    def direction(self) -> Direction:
        """Which values are better: "higher" or "lower"."""
        return self.measure.direction

    def value(self, statistics: LineStatistics) -> float:
        """Give the score of a table: of its lines or, where it has classes, the mean over its classes."""
        if self.measure.ruler is not None:
            import numpy as np

            return self.measure.ruler([statistics])(np.arange(statistics.lines))
        scores = [self.measure.formula(list(map(total, part)), len(part[0])) for part in statistics.by_class()]
        return math.fsum(scores) / len(scores)

    def of_line(self, *statistics: float) -> float:
        """Give the score of a single line, of a metric that is made from sums."""
        return self.measure.formula(statistics, 1)

    def line_scores(self, statistics: LineStatistics) -> Iterator[float]:
        """Give the score of each line alone; NaN where a single line has none."""
        if self.measure.ruler is not None:
            import numpy as np

            score = self.measure.ruler([statistics])
            return (score(np.array([n])) for n in range(statistics.lines))
        return map(self.of_line, *statistics.columns)


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


LOG_LOSS = Measure(unit="nats", direction="lower", best=0.0, worst=math.inf, formula=log_loss)
LIKELIHOOD = Measure(unit="probability", direction="higher", best=1.0, worst=0.0, formula=likelihood)
PERPLEXITY = Measure(unit="words", direction="lower", best=1.0, worst=math.inf, formula=perplexity)
CROSS_ENTROPY = Measure(unit="bits", direction="lower", best=0.0, worst=math.inf, formula=cross_entropy)
ACCURACY = Measure(unit="share", direction="higher", best=1.0, worst=0.0, formula=accuracy)


def whole(totals: Sequence[Number], lines: Number) -> Number:
    """Give a score back that a ruler gave."""
    del lines
    (score,) = totals
    return score


class Elementwise(Value):
    """A formula made of one for floats: on many resamples at once, it is called for each of them."""

    score: Callable[[Sequence[float], float], float]

    def __call__(self, totals: Sequence[Number], lines: Number) -> Number:
        if isinstance(lines, int | float):
            return self.score(totals, lines)
        import numpy as np

        def of_one(lines: float, *totals: float) -> float:
            return self.score(totals, lines)

        values: NDArray[np.float64] = np.vectorize(of_one, otypes=[np.float64])(lines, *totals)
        return values
