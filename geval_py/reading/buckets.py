r"""Which bucket a word goes to, so that nobody can cheat or be ruined by an unknown word.

The bucket of a word on a line is MurmurHash3_x86_32(word, seed = line number mod 2^32) mod 2^bits; the rest is spread
evenly over all buckets. A vector is the buckets.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from mmh3 import hash as murmur3

from geval_py.reading.distribution import Distribution


def word_buckets(words: Sequence[str], bits: int, line: int) -> list[int]:
    """Give each word's bucket, in [0, 2^bits), on the line of that number, from 1.

    The words are ones that UTF-8 can write: mmh3 5.3.1 ends the whole process on a lone surrogate.
    """
    mask, seed = (1 << bits) - 1, line & 0xFFFFFFFF
    return [murmur3(word, seed) & mask for word in words]


def bucket_masses(distribution: Distribution, bits: int, line: int) -> array[float]:
    """Give the mass of each of the 2^bits buckets."""
    size = 1 << bits
    masses = array("d", [0.0]) * size
    words = list(distribution.masses)
    for bucket, mass in zip(word_buckets(words, bits, line), distribution.masses.values(), strict=True):
        masses[bucket] += mass
    share = distribution.rest / size
    return array("d", [mass + share for mass in masses])
