"""Losses of hashed words without files, and columns that say more of a line than its loss.

The metrics on hashed words are LikelihoodHashed and its kin, with any number of buckets from 2^1 to 2^24. The columns
are a line's whole profile, and its loss under another seed of the hash.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import islice, zip_longest

from geval_py.errors import UsageError
from geval_py.reading.lines import Bytes
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.reading.wordprobs import check_bits, check_line_number
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.profile import BINS, COLUMNS
from geval_py.scoring.metrics.base import Doubles, LineStatistics, Metric
from geval_py.tables.numbers import counted
from geval_py.text import shown

LINES_AT_ONCE = 64  # few, since an error is raised only once as many lines were made
_END = object()
_NO_MORE = {"outputs": ("output", "expected words"), "expected": ("expected word", "outputs")}


def hashed_log_losses(
    outputs: Iterable[str], expected: Iterable[str], bits: int = DEFAULT_BITS, first_line: int = 1
) -> array[float]:
    """Compute the loss of each output line, in nats, in [0, inf]: -ln of the mass of the expected word's bucket.

    ``outputs`` are lines as in out.tsv, ``expected`` as many words; ``bits`` (1 to 24) is the binary logarithm of
    the number of buckets; ``first_line`` is the number of the first line in its file, which seeds the hash: pass
    it when scoring a part of a file.

    Lines are read and scored a few at a time, so that there may be more of them than fit into memory.

    Raises MalformedLineError at the first line that is not in the format, and UsageError for bits out of range, a
    line that is not a string or contains a line end, and another number of words than lines.

    >>> hashed_log_losses(["the:1"], ["the"])
    array('d', [0.0])
    """
    check_bits(bits)
    check_line_number(first_line, "first_line")
    if isinstance(outputs, Sized) and isinstance(expected, Sized) and len(outputs) != len(expected):
        raise UsageError(message=f"{counted(len(outputs), 'output')}, but {counted(len(expected), 'expected word')}")
    losses = array("d")
    pairs = enumerate(zip_longest(outputs, expected, fillvalue=_END))
    while some := list(islice(pairs, LINES_AT_ONCE)):
        lines = b"".join(encoded_text("outputs", index, output) for index, (output, _) in some)
        words = b"".join(encoded_text("expected", index, word) for index, (_, word) in some)
        losses.extend(backends.bounded_losses(lines, words, bits, first_line + len(losses))[0])
    return losses


def encoded_text(what: str, index: int, text: object) -> bytes:
    """Encode a line with its end; raises UsageError.

    Lone surrogates become the bytes that they stand for, which are replaced when read, as in a file.
    """
    if text is _END:
        noun, others = _NO_MORE[what]
        raise UsageError(message=f"{counted(index, noun)}, but more {others}")
    if not isinstance(text, str):
        raise UsageError(message=f"{what}[{index}] is {shown(text)}, which is no text")
    if "\n" in text:
        raise UsageError(message=f"{what}[{index}] contains a line end; give one line an item")
    try:
        return text.encode("utf-8", "surrogateescape") + b"\n"
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass") + b"\n"


class ProfileStatistics(LineStatistics):
    """The columns of :func:`geval_py.scoring.kernel.profile.line_profiles`, and its histogram of all listed words.

    The ``histogram`` has a row for each bin, from small masses to great: words, their mass, hits, and the count of
    each draw.
    """

    def __init__(self, columns: tuple[array[float], ...], histogram: array[float] | Doubles) -> None:
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

    def column(self, name: str) -> Doubles:
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
