"""What a metric is: statistics first, score second.

A *column* turns lines into statistics, a few numbers a line, once; a *metric* is arithmetic on the sums of these
numbers. Metrics over the same column share it, and so does everything that explains a score. The metrics of word gaps
have one number a line, its loss (:class:`HashedColumn`).

Some scores are not functions of sums: rank correlation and mutual information need all lines at once. Instead of a
formula of sums, such a corpus-level metric has a ``corpus_score``: given the tables of some systems, it scores any
choice of their lines. A resample of the lines is such a choice, and so is a pair of systems that swap some lines (a
permutation test).
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from geval_py.errors import UsageError
from geval_py.reading.lines import Bytes
from geval_py.reading.schemes import DEFAULT_BITS, MAX_BITS, MIN_BITS
from geval_py.scoring.kernel import backends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Direction: TypeAlias = Literal["higher", "lower"]
Number = TypeVar("Number", float, "NDArray[np.float64]")  # for one score, or for many resamples at once

# Computes a value from the sum of each column of statistics and the number of lines (at least 1). All are floats or,
# for many resamples at once, arrays. Finite sums never give NaN.
Formula: TypeAlias = Callable[[Sequence[Any], Any], Any]

Array: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Places: TypeAlias = "NDArray[np.integer[Any]]"  # of lines, features or items
Flags: TypeAlias = "NDArray[np.bool_]"
Row: TypeAlias = tuple[float, ...]  # the statistics of a line

# Takes the tables of systems, which have as many lines each, and returns a function that scores some of their lines.
# Its argument is the places of the lines, from 0, in all tables one after the other: the second system's lines follow
# the first system's. A place may occur several times. An undefined score is NaN.
LineScore: TypeAlias = "Callable[[Places], float]"
CorpusScore: TypeAlias = "Callable[[Sequence[LineStatistics]], LineScore]"


class StatisticsColumn(Protocol):
    """A way to turn lines into statistics. Columns are hashable; equal ones give equal statistics."""

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        """Score blocks of as many output as expected lines; raises MalformedLineError without a path."""


NOISE = 1e-12  # a smaller relative difference is rounding: a loss is right to about 1e-13
LOSSES = ("loss",)  # the columns of a metric that is made from losses alone


class LineStatistics:
    """A table with a row a line, in line order; scores are made from the sums of its columns.

    ``columns`` hold finite numbers and inf, which makes the line infinite: losses are in [0, inf], in nats, or for
    Accuracy from 0 (a hit) to 1 (a miss). ``details`` has what a metric needs of each line beside the columns: its
    class, a number or a text, if the metric averages over classes, or for another corpus-level metric, for example,
    its labels. ``out_of_vocabulary`` counts the expected words that the vocabulary of a metric on exact words lacks.
    For metrics on hashed words, ``bound`` is the greatest loss that any line could have had, 0 for others.
    ``far_above_one`` counts the lines whose numbers should be probabilities or their logarithms, and are neither.
    """

    def __init__(
        self,
        columns: tuple[array[float], ...] = (),
        details: list[Any] | None = None,
        out_of_vocabulary: int = 0,
        bound: float = 0.0,
        far_above_one: int = 0,
    ) -> None:
        self.columns, self.out_of_vocabulary = columns, out_of_vocabulary
        self.bound, self.far_above_one = bound, far_above_one
        self.details = details or []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LineStatistics) and vars(self) == vars(other)

    def extend(self, following: LineStatistics) -> None:
        """Append the statistics of the lines that follow."""
        if not self.columns:
            self.columns = tuple(array("d") for _ in following.columns)
        for column, rows in zip(self.columns, following.columns, strict=True):
            column.extend(rows)
        self.details.extend(following.details)
        self.out_of_vocabulary += following.out_of_vocabulary
        self.bound = max(self.bound, following.bound)
        self.far_above_one += following.far_above_one

    def only(self, places: Sequence[int]) -> LineStatistics:
        """Return the table of some lines, by their places from 0."""
        details = list(map(self.details.__getitem__, places)) if self.details else []
        columns = tuple(array("d", map(column.__getitem__, places)) for column in self.columns)
        return LineStatistics(columns, details, bound=self.bound)

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


def joined_columns(systems: Sequence[LineStatistics]) -> Array:
    """Return the columns of systems, whose lines follow one another, as the rows of an array."""
    import numpy as np

    return np.concatenate([np.array([np.array(column) for column in one.columns]) for one in systems], axis=1)


def codes_of(items: Iterable[Hashable]) -> Places:
    """Return a number for each item; equal items have equal numbers."""
    import numpy as np

    codes: dict[Hashable, int] = {}
    return np.array([codes.setdefault(item, len(codes)) for item in items], np.intp)


class Measure(NamedTuple):
    """How a value is computed from sums of line statistics, and what it means.

    ``columns`` are the names of the statistics. ``unit`` is for people; ``best`` and ``worst`` are the ends of the
    range. A measure of losses alone never gets better as the mean loss rises. A measure with a ``corpus_score`` is no
    function of sums; its formula returns that score.
    """

    formula: Formula
    columns: tuple[str, ...] = LOSSES
    unit: str = "share"
    best: float = 1.0
    worst: float = 0.0
    corpus_score: CorpusScore | None = None

    @property
    def direction(self) -> Direction:
        """Which values are better: "higher" or "lower"."""
        return "higher" if self.best > self.worst else "lower"

    @property
    def of_losses(self) -> bool:
        """Whether it is made from losses alone, so that lines and systems can be compared by their losses."""
        return self.columns == LOSSES and self.corpus_score is None

    @property
    def sign(self) -> int:
        """1 if lower is better, else -1: a value times its sign is better if it is lower."""
        return 1 if self.direction == "lower" else -1

    @property
    def in_nats(self) -> bool:
        """Whether its losses are negative logarithms of probabilities, not misses."""
        return self.columns == LOSSES and self.unit != "share"


class Metric(NamedTuple):
    """A metric: the statistics that it needs from each line, and how it computes the score from them.

    ``needs`` names packages of the extra ``text`` that compute the column. ``needs_input``: it compares lines of the
    input too. ``is_of_words``: output lines are distributions over words, which most rules of the checker are about.
    ``has_entries``: output lines are such distributions, but the score is another one than a loss of words.
    ``has_free_input``: GEval lets the number of columns of its input vary.
    ``has_classes``: output lines are classes of the training set. ``is_tokenised``: the tokenizer splits its lines
    first, where GEval's isPreprocessable says so. ``answers``: an expected line is one answer, or any of its columns
    is a right answer, or all of them are expected, or it is itself a distribution, of the ``shares`` of many answers,
    which may not reach the best score. ``labels``: an output line is a label, or several, of few that are known.
    ``has_curve``: its statistics have a curve of calibration. ``perfect`` makes the right output line of an expected
    one, where it is another. ``matching`` holds the names before Accuracy or MultiLabel-F that say how answers are
    compared. ``parse`` reads an output line with its number and raises MalformedLineError. ``signature`` makes the
    signature of the library that computes the metric, and ``details``, from sums, what else belongs to a score.
    """

    name: str
    column: StatisticsColumn
    measure: Measure
    summary: str
    bits: int | None = None
    needs: tuple[str, ...] = ()
    needs_vocabulary: bool = False
    needs_input: bool = False
    has_free_input: bool = False
    is_of_words: bool = False
    has_entries: bool = False
    has_classes: bool = False
    is_tokenised: bool = False
    answers: Literal["one", "any", "all", "shares"] = "one"
    labels: Literal["none", "one", "several"] = "none"
    has_curve: bool = False
    matching: tuple[str, ...] = ()
    perfect: Callable[[str], str] | None = None
    parse: Callable[[str, int], object] | None = None
    signature: Callable[[LineStatistics], str] | None = None
    details: Callable[..., dict[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"<Metric {self.name}: {self.measure.unit}, {self.measure.direction} is better>"

    @property
    def uninformed_value(self) -> float | None:
        """The score of an output that gives every bucket of words the same; None for a metric without buckets."""
        return None if self.bits is None else round(self.measure.formula((self.bits * math.log(2),), 1), 12)

    @property
    def needs_candidates(self) -> bool:
        """Whether it compares the answer with other words, and so is not made from the answers' probabilities."""
        return "loss" not in self.measure.columns or (self.measure.unit == "share" and not self.needs_input)

    def losses(self, statistics: LineStatistics) -> array[float]:
        """Return the losses of lines; raises UsageError if it is made from other statistics."""
        if not self.measure.of_losses:
            raise UsageError(f"{self.name} is not made from losses, but from {', '.join(self.measure.columns)}")
        return statistics.columns[0] if statistics.columns else array("d")

    def value(self, statistics: LineStatistics) -> float:
        """Compute the score of a table."""
        if self.measure.corpus_score is not None:
            import numpy as np

            return self.measure.corpus_score([statistics])(np.arange(statistics.lines))
        score: float = self.measure.formula(list(map(total, statistics.columns)), statistics.lines)
        return score

    def of_line(self, *statistics: float) -> float:
        """Compute the score of a single line, for a metric that is made from sums."""
        score: float = self.measure.formula(statistics, 1)
        return score

    def line_scores(self, statistics: LineStatistics) -> Iterator[float]:
        """Compute the score of each line alone; NaN where a single line has none."""
        if self.measure.corpus_score is None:
            return map(self.of_line, *statistics.columns)
        import numpy as np

        score = self.measure.corpus_score([statistics])
        return (float(score(np.array([n]))) for n in range(statistics.lines))


def total(numbers: Sequence[float]) -> float:
    """Return the sum of numbers, rounded once, whatever their order; inf or -inf beyond the range of a double.

    NaN if a number is NaN, or for inf and -inf together.
    """
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return float(sum(numbers))


def exp(exponent: Number) -> Number:
    """Raise e to a float, or to each element of an array; inf beyond the range of a double."""
    if isinstance(exponent, float):
        try:
            return math.exp(exponent)
        except OverflowError:
            return math.inf
    import numpy as np

    # NumPy's own function has other last digits on processors with AVX-512.
    return np.array(list(map(exp, exponent.ravel().tolist()))).reshape(exponent.shape)


def mean(totals: Sequence[Number], lines: Number) -> Number:
    """Mean of the first statistic, such as the loss in nats."""
    return totals[0] / lines


def likelihood(totals: Sequence[Number], lines: Number) -> Number:
    """Geometric mean of the probabilities."""
    return exp(-totals[0] / lines)


def perplexity(totals: Sequence[Number], lines: Number) -> Number:
    """Inverse of the likelihood: how many equally likely words the model hesitates between."""
    return exp(totals[0] / lines)


def cross_entropy(totals: Sequence[Number], lines: Number) -> Number:
    """Mean loss in bits."""
    return totals[0] / lines / math.log(2)


def accuracy(totals: Sequence[Number], lines: Number) -> Number:
    """Share of hits, where a loss of 1 is a miss."""
    return (lines - totals[0]) / lines


LOG_LOSS = Measure(mean, unit="nats", best=0.0, worst=math.inf)
LIKELIHOOD = Measure(likelihood, unit="probability")
PERPLEXITY = Measure(perplexity, unit="words", best=1.0, worst=math.inf)
CROSS_ENTROPY = Measure(cross_entropy, unit="bits", best=0.0, worst=math.inf)
ACCURACY = Measure(accuracy)


def first_total(totals: Sequence[Number], lines: Number) -> Number:
    """Return the only total: the corpus-level score."""
    del lines
    return totals[0]


class HashedColumn(NamedTuple):
    """The loss of the expected word's bucket, in nats: the column of LogLossHashed and its kin.

    With ``profile``, the columns are all those of :func:`geval_py.scoring.kernel.profile.line_profiles`.
    """

    bits: int
    profile: bool = False

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        if self.profile:
            return LineStatistics(backends.line_profiles(outputs, expected, self.bits, first_line))
        losses, bound, far_above_one = backends.bounded_losses(outputs, expected, self.bits, first_line)
        return LineStatistics((losses,), bound=bound, far_above_one=far_above_one)


def profiled(metric: Metric) -> Metric:
    """Return a hashed metric of the same values, whose statistics are the profiles of lines."""
    from geval_py.scoring.kernel.profile import COLUMNS

    column = HashedColumn(metric.bits or DEFAULT_BITS, profile=True)
    return metric._replace(column=column, measure=metric.measure._replace(columns=COLUMNS))


def profile_of(statistics: LineStatistics) -> Mapping[str, Array]:
    """Return the columns of a profile by name; see :func:`geval_py.scoring.kernel.profile.line_profiles`."""
    import numpy as np

    from geval_py.scoring.kernel.profile import COLUMNS

    return dict(zip(COLUMNS, map(np.frombuffer, statistics.columns), strict=True))


class Family(NamedTuple):
    """Metrics whose names are the ``stem`` and a number, such as F1 and F2.

    ``make`` makes the metric of a number and a name. ``numbers`` are whole ones of a range, or any from a least one
    on. The metric of the ``usual`` number is in the table; its name is the stem alone if the number
    ``may_be_left_out``.
    """

    stem: str
    make: Callable[[Any, str], Metric]
    numbers: range | float = 0.0
    usual: float = 1
    may_be_left_out: bool = False

    @property
    def usual_name(self) -> str:
        """The name of the metric in the table."""
        return self.stem if self.may_be_left_out else f"{self.stem}{self.usual:g}"


_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?\Z")


def split_name(name: str, families: Mapping[str, Family]) -> tuple[Family, Any] | None:
    """Return the family of a metric's name, and its number, whole where the family's are; None for another name."""
    if name in families and families[name].may_be_left_out:
        return families[name], families[name].usual
    match = _NUMBER.search(name)
    family = families.get(name[: match.start()]) if match else None
    if match is None or family is None:
        return None
    if isinstance(family.numbers, range):
        return (family, int(match[0])) if match[0].isdecimal() and int(match[0]) in family.numbers else None
    return (family, float(match[0])) if family.numbers < 0 or not match[0].startswith("-") else None


def find_in_family(name: str, families: Mapping[str, Family]) -> Metric | None:
    """Return the metric of a family by its name; None for another name."""
    family, number = split_name(name, families) or (None, None)
    return family and family.make(number, name)


BITS = range(MIN_BITS, MAX_BITS + 1)


def _hashed_family(stem: str, measure: Measure, summary: str) -> Family:
    def make(bits: int, name: str) -> Metric:
        name = stem if bits == DEFAULT_BITS else f"{stem}{bits}"
        return Metric(name, HashedColumn(bits), measure, summary, bits, is_of_words=True)

    return Family(stem, make, BITS, DEFAULT_BITS, may_be_left_out=True)


HASHED_FAMILIES = {
    stem: _hashed_family(stem, measure, summary)
    for stem, measure, summary in (
        ("LikelihoodHashed", LIKELIHOOD, "geometric mean of the probabilities"),
        ("LogLossHashed", LOG_LOSS, "mean loss of a word"),
        ("PerplexityHashed", PERPLEXITY, "inverse of the likelihood"),
        ("CrossEntropyHashed", CROSS_ENTROPY, "mean loss of a word"),
    )
}
