r"""The readable truth about what lines guess: the masses they list, and which of them the expected word's bucket has.

With them, what a loss would be under other parameters is arithmetic (:mod:`geval_py.explaining.tuning`): nothing is
read or hashed again. Both functions have a native twin of the same name, arguments and errors.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from geval_py.reading.buckets import word_buckets
from geval_py.reading.distribution import entry_masses, vector_masses
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.wordprobs import parse_entries, parse_vector, wrong_vector_length


class Guesses(NamedTuple):
    """What a block of lines guesses, entry by entry, in order, without the entries of the rest.

    ``counts`` is the number of entries of each line (of a vector: its buckets); ``masses`` are those of all entries,
    one line after the other, normalised, in [0, 1]; ``hits`` is 1 for each that lies in the bucket of its line's
    expected word, else 0; ``rests`` is the rest mass of each line. A word that stands twice has two entries.
    """

    counts: array[int]
    masses: array[float]
    hits: bytes
    rests: array[float]


def read_guesses(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> Guesses:
    """Give what a block of output lines guesses, against as many expected words.

    The arguments are those of :func:`geval_py.scoring.kernel.reference.hashed_losses`, and so are the errors.
    """
    counts, masses, rests = array("q"), array("d"), array("d")
    hits = bytearray()
    pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
    for line, (text, word) in enumerate(pairs, first_line):
        of_line, hits_of_line, rest = _guesses_of(text, word, bits, line)
        counts.append(len(of_line))
        masses.extend(of_line)
        rests.append(rest)
        hits.extend(hits_of_line)
    return Guesses(counts, masses, bytes(hits), rests)


def _guesses_of(text: str, expected: str, bits: int, line: int) -> tuple[list[float], list[bool], float]:
    if ":" not in text:
        values = parse_vector(text, line)
        if len(values) != 1 << bits:
            raise wrong_vector_length(text, line, len(values), bits)
        (bucket,) = word_buckets([expected], bits, line)
        return vector_masses(values), [n == bucket for n in range(len(values))], 0.0
    words, values = parse_entries(text, line)
    masses, rest = entry_masses(words, values)
    bucket, *buckets = word_buckets([expected, *filter(None, words)], bits, line)
    return masses, [found == bucket for found in buckets], rest


def bucket_shares(words: bytes, shares: array[float], expected: bytes, bits: int, first_line: int) -> array[float]:
    """Give, for each expected word, the sum of the shares of those words that its line's bucket has.

    ``words`` are UTF-8 lines, each ended by LF, none empty, with as many ``shares``; the other arguments are those
    of :func:`geval_py.scoring.kernel.reference.hashed_losses`. Raises ValueError where words and shares differ in
    number.
    """
    known = decode_lines(words)
    if len(known) != len(shares):
        raise ValueError(f"{len(known)} words, but {len(shares)} shares")
    sums = array("d")
    for line, word in enumerate(decode_lines(expected), first_line):
        bucket, *buckets = word_buckets([word, *known], bits, line)
        sums.append(sum(share for found, share in zip(buckets, shares, strict=True) if found == bucket))
    return sums
