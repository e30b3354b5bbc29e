"""Metrics on hashed words: LikelihoodHashed and its kin, any number of buckets from 2^1 to 2^24."""

from __future__ import annotations

import re
from array import array

from geval_py.errors import UsageError
from geval_py.reading.distribution import DEFAULT_BITS, check_bits, check_line_number
from geval_py.scoring import kernel
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from geval_py.reading.lines import Bytes
    from geval_py.scoring.metrics.base import Setting

_NAME = r"([A-Za-z]+Hashed)([0-9]+)"


class HashedColumn(Value):
    """The loss of the expected word's bucket, in nats."""

    bits: int

    @classmethod
    def of(cls, setting: Setting) -> HashedColumn:
        """Make the column of as many buckets as a metric's bits give."""
        return cls(bits=setting.bits or DEFAULT_BITS)

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        return LineStatistics(columns=(kernel.hashed_losses(outputs, expected, self.bits, first_line),))


def hashed_log_losses(
    outputs: Iterable[str], expected: Iterable[str], bits: int = DEFAULT_BITS, first_line: int = 1
) -> array[float]:
    """Give the loss of each output line, in nats, in [0, inf]: -ln of the mass of the expected word's bucket.

    ``outputs`` are lines as in out.tsv, ``expected`` as many words; ``bits`` (1 to 24) is the binary logarithm of
    the number of buckets; ``first_line`` is the number of the first line in its file, which seeds the hash: pass
    it when scoring a part of a file.

    Raises MalformedLineError at the first line that is not in the format, and UsageError for bits out of range,
    a line end inside a line, and another number of words than lines.

    >>> hashed_log_losses(["the:1"], ["the"])
    array('d', [0.0])
    """
    check_bits(bits)
    check_line_number(first_line, "first_line")
    lines, words = _join(outputs, "outputs"), _join(expected, "expected")
    counts = lines.count(b"\n"), words.count(b"\n")
    if counts[0] != counts[1]:
        raise UsageError(message=f"{counts[0]} outputs, but {counts[1]} expected words")
    return kernel.hashed_losses(lines, words, bits, first_line)


def _join(lines: Iterable[str], what: str) -> bytes:
    """Join lines into a block; raises UsageError for one that holds a line end."""
    parts = []
    for index, line in enumerate(lines):
        if "\n" in line:
            raise UsageError(message=f"{what}[{index}] contains a line end; give one line an item")
        parts.append(_encode(line) + b"\n")
    return b"".join(parts)


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
