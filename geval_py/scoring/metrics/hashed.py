"""Metrics on hashed words: LikelihoodHashed and its kin, any number of buckets from 2^1 to 2^24."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sized
from itertools import zip_longest

from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.wordprobs import DEFAULT_BITS, check_bits, check_line_number
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import LineStatistics, Measure, Metric
from geval_py.text import shown
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from geval_py.scoring.metrics.base import Number, Setting


LINES_AT_ONCE = 64  # few, since whoever makes lines as they are asked for waits for as many before an error
_END = object()
_NO_MORE = {"outputs": "{} outputs, but more expected words", "expected": "{} expected words, but more outputs"}
_NAME = r"([A-Za-z]+Hashed)([0-9]+)"


class HashedColumn(Value):
    """The loss of the expected word's bucket, in nats."""

    bits: int

    @classmethod
    def of(cls, setting: Setting) -> HashedColumn:
        """Make the column of as many buckets as a metric's bits give."""
        return cls(bits=setting.bits or DEFAULT_BITS)

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        losses, bound = backends.bounded_losses(outputs, expected, self.bits, first_line)
        return LineStatistics(columns=(losses,), bound=bound)


def hashed_log_losses(
    outputs: Iterable[str], expected: Iterable[str], bits: int = DEFAULT_BITS, first_line: int = 1
) -> array[float]:
    """Give the loss of each output line, in nats, in [0, inf]: -ln of the mass of the expected word's bucket.

    ``outputs`` are lines as in out.tsv, ``expected`` as many words; ``bits`` (1 to 24) is the binary logarithm of
    the number of buckets; ``first_line`` is the number of the first line in its file, which seeds the hash: pass
    it when scoring a part of a file.

    Lines are read and scored a few at a time, so that there may be more of them than fit into memory.

    Raises MalformedLineError at the first line that is not in the format, and UsageError for bits out of range, what
    is no text, a line end inside a line, and another number of words than lines.

    >>> hashed_log_losses(["the:1"], ["the"])
    array('d', [0.0])
    """
    check_bits(bits)
    check_line_number(first_line, "first_line")
    if isinstance(outputs, Sized) and isinstance(expected, Sized) and len(outputs) != len(expected):
        raise UsageError(message=f"{len(outputs)} outputs, but {len(expected)} expected words")
    losses = array("d")
    for lines, words in _blocks(outputs, expected):
        losses.extend(backends.hashed_losses(lines, words, bits, first_line + len(losses)))
    return losses


def _blocks(outputs: Iterable[str], expected: Iterable[str]) -> Iterator[tuple[bytes, bytes]]:
    """Join lines and words, a few at a time; raises UsageError for what cannot be joined, after the lines before."""
    lines: list[bytes] = []
    words: list[bytes] = []
    for index, (output, word) in enumerate(zip_longest(outputs, expected, fillvalue=_END)):
        try:
            pair = _line("outputs", index, output), _line("expected", index, word)
        except UsageError:
            yield b"".join(lines), b"".join(words)
            raise
        lines.append(pair[0])
        words.append(pair[1])
        if len(lines) == LINES_AT_ONCE:
            yield b"".join(lines), b"".join(words)
            lines, words = [], []
    yield b"".join(lines), b"".join(words)


def _line(what: str, index: int, text: object) -> bytes:
    """Encode a line with its end; raises UsageError for what is none."""
    if text is _END:
        raise UsageError(message=_NO_MORE[what].format(index))
    if not isinstance(text, str):
        raise UsageError(message=f"{what}[{index}] is {shown(text)}, which is no text")
    if "\n" in text:
        raise UsageError(message=f"{what}[{index}] contains a line end; give one line an item")
    return _encode(text) + b"\n"


def _encode(line: str) -> bytes:
    """Encode as the bytes that a lone surrogate stands for: they are replaced when they are read, as in a file."""
    try:
        return line.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return line.encode("utf-8", "surrogatepass")


def split_bits(name: str) -> tuple[str, int]:
    """Split a metric's name into the name without bits, and the bits (10 where none are given).

    >>> split_bits("LikelihoodHashed8")
    ('LikelihoodHashed', 8)
    """
    match = re.fullmatch(_NAME, name)
    if match is None:
        return name, DEFAULT_BITS
    return match[1], int(match[2].lstrip("0")[:9] or "0")  # nine digits are far too many bits already


# Columns that tell more of a line than its loss: its whole profile, its loss under another seed of the hash.


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
        """Return the column of a name, a value a line."""
        import numpy as np

        from geval_py.scoring.kernel.profile import COLUMNS

        return np.frombuffer(self.columns[COLUMNS.index(name)])

    @property
    def histogram(self) -> NDArray[np.float64]:
        """A row for each bin, from small masses to great: words, their mass, hits, and the count of each draw."""
        from geval_py.scoring.kernel.profile import BINS

        return self._histogram.reshape(BINS, -1)

    @property
    def draws(self) -> int:
        """How often each line's word was drawn."""
        from geval_py.scoring.kernel.profile import BINS, COUNTS

        return len(self._histogram) // BINS - len(COUNTS)


class ProfileColumn(Value):
    """What each line's distribution says; see :func:`geval_py.scoring.kernel.profile.line_profiles`."""

    bits: int
    draws: int

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        return ProfileStatistics(*backends.line_profiles(outputs, expected, self.bits, first_line, self.draws))


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
    from geval_py.scoring.kernel.profile import COLUMNS

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
