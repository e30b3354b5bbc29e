"""Hashes of runs of words, all at once; and which of some hashes are among others.

The hash of words w0 … wm is the sum of code(wi) B^i modulo 2^64, where code is random and B odd, so that it is the
difference of two running sums, times an inverse: a run of any length costs the same (Karp and Rabin, "Efficient
randomized pattern-matching algorithms", 1987). Two different runs have the same hash with a chance of about 2^-60.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from geval_py.authoring.leak_items import (
    LEAST_NGRAM,
    LEAST_SENTENCE,
    LENGTH_PERCENTILE,
    MOST_DOCUMENTS,
    MOST_NGRAM,
    NEAR_DUPLICATE,
    NEIGHBOURS,
    UNKNOWN,
    Block,
    Source,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geval_py.authoring.leak_items import Numbers

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


# Items that are there twice, documents in two parts, and training windows that overlap.


SAMPLED = 4  # one run in so many is compared: windows that overlap share several


class PartItems:
    """What is compared of all items of a part: the hash of each, its document, and for train a sample of its runs."""

    def __init__(self, path: str, *, samples: bool = False) -> None:
        self.path = path
        self._samples = samples
        self._hashes: list[Hashes] = []
        self._groups: list[Numbers] = []
        self._runs: list[NDArray[np.uint64]] = []
        self._items = 0

    def add(self, runs: Runs) -> None:
        """Add a block of items."""
        self._hashes.append(runs.items())
        self._groups.append(runs.block.groups)
        if self._samples:
            hashes, starts = runs.ngrams(LEAST_NGRAM)
            taken = hashes % np.uint64(SAMPLED) == 0
            items = runs.item_of[starts[taken]]
            groups = runs.block.groups[items].astype(np.uint64)
            self._runs.append(np.stack((hashes[taken], groups, (items + self._items).astype(np.uint64))))
        self._items += runs.block.items

    @property
    def hashes(self) -> Hashes:
        """The hash of each item."""
        return np.concatenate(self._hashes) if self._hashes else np.zeros(0, dtype=np.uint64)

    @property
    def groups(self) -> Numbers:
        """The document of each item."""
        return np.concatenate(self._groups) if self._groups else np.zeros(0, dtype=np.int64)

    def overlapping(self) -> Numbers:
        """Give the items that share a run with another of the same document, among those that are compared."""
        if not self._runs:
            return np.zeros(0, dtype=np.int64)
        hashes, groups, items = np.concatenate(self._runs, axis=1)
        order = np.lexsort((items, groups, hashes))
        hashes, groups, items = hashes[order], groups[order], items[order]
        same = (hashes[1:] == hashes[:-1]) & (groups[1:] == groups[:-1]) & (items[1:] != items[:-1])
        found = np.concatenate((items[1:][same], items[:-1][same]))
        return np.unique(found).astype(np.int64)


def repeated(parts: Sequence[PartItems]) -> list[tuple[list[tuple[int, int, int]], list[tuple[int, int]]]]:
    """Give for each part the items that an earlier part has, and those that the part itself has before.

    The first are triples: item, part, item there; the others pairs: item, item before. Items count from 0.
    """
    first: dict[int, tuple[int, int]] = {}
    result = []
    for number, part in enumerate(parts):
        elsewhere, within = [], []
        hashes = part.hashes
        doubtful = _not_unique(parts, hashes)
        for item in np.flatnonzero(doubtful).tolist():
            of_part, of_item = first.setdefault(int(hashes[item]), (number, item))
            if of_part != number:
                elsewhere.append((item, of_part, of_item))
            elif of_item != item:
                within.append((item, of_item))
        result.append((elsewhere, within))
    return result


def _not_unique(parts: Sequence[PartItems], hashes: Hashes) -> NDArray[np.bool_]:
    """Tell of each hash whether the parts have it more than once."""
    values, counts = np.unique(np.concatenate([part.hashes for part in parts]), return_counts=True)
    return np.isin(hashes, values[counts > 1])


def shared_groups(parts: Sequence[PartItems]) -> list[tuple[Numbers, dict[int, int]]]:
    """Give for each part the first item of each document that an earlier part has, and that part by the document."""
    home: dict[int, int] = {}
    result = []
    for number, part in enumerate(parts):
        groups, items = np.unique(part.groups, return_index=True)
        elsewhere = {group: home[group] for group in groups.tolist() if home.setdefault(group, number) != number}
        shared = np.isin(groups, list(elsewhere))
        result.append((np.sort(items[shared]), elsewhere))
    return result


# What of the hidden parts stands in the training set, or in other inputs of the same part.


class Sought:
    """Runs of words of a hidden part, each at its place, that are looked for in the training set.

    ``lines`` are the first training lines that have each of the different runs, 0 where none has. With
    ``by_document``, those in more than MOST_DOCUMENTS training documents are phrases, and not found.
    """

    def __init__(self, hashes: Hashes, places: Numbers, *, by_document: bool = False) -> None:
        self.index, self.places = Index(hashes), places
        self._lines = np.zeros(len(self.index.values), dtype=np.int64)
        self._by_document = by_document
        self._pairs: list[Numbers] = []  # of a run and a document

    def look_in(self, runs: Runs, hashes: Hashes, starts: Numbers) -> None:
        """Look among the hashes of runs of a training block, which begin at some places."""
        found, here = self.index.find(hashes)
        items = runs.item_of[starts[found]]
        new = self._lines[here] == 0
        self._lines[here[new][::-1]] = runs.block.lines[items[new][::-1]]  # the first of a block wins
        if self._by_document and len(here):
            self._pairs.append(np.unique(np.stack((here, runs.block.groups[items])), axis=1))

    def lines(self) -> Numbers:
        """Give for each run, in order of places, the training line where it stands first; 0 where it is not found."""
        lines = self._lines.copy()
        if self._pairs:
            pairs = np.unique(np.concatenate(self._pairs, axis=1), axis=1)
            documents = np.bincount(pairs[0], minlength=len(lines))
            lines[documents > MOST_DOCUMENTS] = 0
        return lines[self.index.inverse]


class Probe:
    """A hidden part, and what is looked for of it."""

    def __init__(self, source: Source, block: Block) -> None:
        self.source, self.block = source, block
        self.runs = Runs(block)
        self.n = ngram_length(block)
        self.gaps = Sought(*self.runs.around(block.gaps[block.gaps >= 0], NEIGHBOURS))
        self.ngrams = Sought(*self.runs.ngrams(self.n), by_document=True)
        self.short_ngrams = Sought(*self.runs.ngrams(LEAST_NGRAM))
        self.sentences = Sought(*self.runs.sentences(LEAST_SENTENCE))

    def items_of(self, places: Numbers) -> Numbers:
        """Give the items in which places are."""
        return self.runs.item_of[places]

    def near_duplicates(self) -> Numbers:
        """Give the items of which more than NEAR_DUPLICATE of the runs of LEAST_NGRAM words stand in train."""
        items = self.items_of(self.short_ngrams.places)
        of_item = np.bincount(items, minlength=self.block.items)
        found = np.bincount(items[self.short_ngrams.lines() > 0], minlength=self.block.items)
        return np.flatnonzero(found > NEAR_DUPLICATE * of_item)


def ngram_length(block: Block) -> int:
    """Give how many words a run needs to be no phrase: a low percentile of the items' lengths, within bounds."""
    lengths = np.diff(block.starts)
    if not len(lengths):
        return LEAST_NGRAM
    return int(np.clip(np.percentile(lengths, LENGTH_PERCENTILE), LEAST_NGRAM, MOST_NGRAM))


def look_for(probes: list[Probe], train: Runs) -> None:
    """Look for what is sought of all hidden parts in a training block."""
    lengths = {probe.n for probe in probes} | {LEAST_NGRAM}
    ngrams = {n: train.ngrams(n) for n in lengths}
    words = np.flatnonzero(train.block.words >> 1 != UNKNOWN)
    gaps = train.around(words, NEIGHBOURS)
    sentences = train.sentences(LEAST_SENTENCE)
    for probe in probes:
        probe.gaps.look_in(train, *gaps)
        probe.ngrams.look_in(train, *ngrams[probe.n])
        probe.short_ngrams.look_in(train, *ngrams[LEAST_NGRAM])
        probe.sentences.look_in(train, *sentences)


def readable_elsewhere(block: Block) -> tuple[Numbers, Numbers]:
    """Give the items whose gap can be found in another input of the block, and those other items.

    Only what an input shows is looked at: the words on both sides of a gap, with a word between them.
    """
    words = block.words.copy()
    gaps = block.gaps[block.gaps >= 0]
    words[gaps] = UNKNOWN
    runs = Runs(replace(block, words=words))
    hashes, places = runs.around(gaps, NEIGHBOURS)
    index = Index(hashes)
    shown, starts = runs.around(np.flatnonzero(words != UNKNOWN), NEIGHBOURS)
    found, here = index.find(shown)
    others = runs.item_of[starts[found]]
    least, most = np.full(len(index.values), block.items), np.full(len(index.values), -1)
    np.minimum.at(least, here, others)
    np.maximum.at(most, here, others)
    items = runs.item_of[places]
    other = np.where(least[index.inverse] == items, most[index.inverse], least[index.inverse])
    readable: Flags = (most[index.inverse] >= 0) & (other != items)
    return items[readable], other[readable]
