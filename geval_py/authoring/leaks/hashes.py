"""Hashes of runs of words, all at once; and which of some hashes are among others.

The hash of words w0 … wm is the sum of code(wi) B^i modulo 2^64, where code is random and B odd, so that it is the
difference of two running sums, times an inverse: a run of any length costs the same (Karp and Rabin, "Efficient
randomized pattern-matching algorithms", 1987). Two different runs have the same hash with a chance of about 2^-60.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geval_py.authoring.leaks.items import UNKNOWN, Block

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geval_py.authoring.leaks.items import Numbers

    Hashes = NDArray[np.uint64]
    Flags = NDArray[np.bool_]

_BASE = 0x9E3779B97F4A7C15 | 3
_INVERSE = pow(_BASE, -1, 1 << 64)
_GAP = np.uint64(0xD1B54A32D192ED03)  # the code of a gap, whatever its answer
BITMAP_BITS = 24


def mixed(values: Hashes) -> Hashes:
    """Mix the bits of numbers, one to one: Vigna's splitmix64, https://prng.di.unimi.it/splitmix64.c."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _powers(base: int, count: int) -> Hashes:
    """Give the powers of a number modulo 2^64, from the 0th."""
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)


class Runs:
    """The hashes of runs of words of a block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        numbers = (block.words >> 1).astype(np.uint64)
        codes = mixed((numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
        self._powers, self._inverses = _powers(_BASE, len(codes) + 1), _powers(_INVERSE, len(codes) + 1)
        self._codes = codes
        self._sums = np.zeros(len(codes) + 1, dtype=np.uint64)
        np.cumsum(codes * self._powers[:-1], out=self._sums[1:])
        self.item_of = block.item_of
        self._unknown = np.zeros(len(codes) + 1, dtype=np.int64)
        np.cumsum(block.words >> 1 == UNKNOWN, out=self._unknown[1:])

    def of(self, starts: Numbers, ends: Numbers) -> Hashes:
        """Give the hashes of runs from some places to others, the ends not included."""
        return mixed((self._sums[ends] - self._sums[starts]) * self._inverses[starts])

    def items(self) -> Hashes:
        """Give the hash of each whole item; the answer does not matter."""
        starts, ends = self.block.starts[:-1], self.block.starts[1:]
        sums = self._sums[ends] - self._sums[starts]
        with_gap = self.block.gaps >= 0
        gaps = self.block.gaps[with_gap]
        sums[with_gap] += (_GAP - self._codes[gaps]) * self._powers[gaps]
        return mixed(sums * self._inverses[starts])

    def ngrams(self, n: int) -> tuple[Hashes, Numbers]:
        """Give the hashes of all runs of n words inside an item, without unknown words, and where they begin."""
        starts = np.arange(max(0, len(self._codes) - n + 1))
        inside = self.item_of[starts] == self.item_of[starts + n - 1] if len(starts) else np.zeros(0, dtype=bool)
        starts = starts[inside & (self._unknown[starts] == self._unknown[starts + n])]
        return self.of(starts, starts + n), starts

    def sentences(self, least: int) -> tuple[Hashes, Numbers]:
        """Give the hashes of whole sentences of some words or more, and where they begin.

        What stands before an item's first sentence end, and behind its last, is not known to be whole.
        """
        ends = np.flatnonzero(self.block.words & 1) + 1
        starts, ends = ends[:-1], ends[1:]
        inside = self.item_of[starts - 1] == self.item_of[ends - 1] if len(starts) else np.zeros(0, dtype=bool)
        whole = inside & (ends - starts >= least) & (self._unknown[starts] == self._unknown[ends])
        return self.of(starts[whole], ends[whole]), starts[whole]

    def around(self, places: Numbers, neighbours: int) -> tuple[Hashes, Numbers]:
        """Give hashes of the words on both sides of some places, and those of the places that have as many."""
        inner = places[(places >= neighbours) & (places + neighbours < len(self._codes))]
        left, right = inner - neighbours, inner + neighbours
        inside = self.item_of[left] == self.item_of[right]
        inside &= self._unknown[left] == self._unknown[inner]
        inside &= self._unknown[inner + 1] == self._unknown[right + 1]
        inner, left, right = inner[inside], left[inside], right[inside]
        both = self.of(left, inner) * np.uint64(_BASE) + self.of(inner + 1, right + 1)
        return mixed(both), inner


class Index:
    """Some hashes, in order, and a bitmap that spares most of the searches for others."""

    def __init__(self, hashes: Hashes) -> None:
        self.values, self.inverse = np.unique(hashes, return_inverse=True)
        self._bitmap = np.zeros(1 << BITMAP_BITS, dtype=bool)
        self._bitmap[_high_bits(self.values)] = True

    def find(self, hashes: Hashes) -> tuple[Numbers, Numbers]:
        """Give which of some hashes are here, by their places among them, and their places here."""
        maybe = np.flatnonzero(self._bitmap[_high_bits(hashes)])
        if not len(maybe):
            return maybe, maybe
        places = np.minimum(np.searchsorted(self.values, hashes[maybe]), len(self.values) - 1)
        found = self.values[places] == hashes[maybe]
        return maybe[found], places[found]


def _high_bits(hashes: Hashes) -> Numbers:
    return (hashes >> np.uint64(64 - BITMAP_BITS)).astype(np.int64)
