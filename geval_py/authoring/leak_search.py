"""Search for shared items, documents and runs of words, by hashes.

The hash of words w0 … wm is the sum of code(wi) B^i modulo 2^64, where code is random and B odd, so that it is the
difference of two running sums, times an inverse: a run of any length costs the same (Karp and Rabin, "Efficient
randomized pattern-matching algorithms", 1987). Two different runs have the same hash with a chance of about 2^-60.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from geval_py.authoring import leak_items
from geval_py.authoring.leak_items import (
    AROUND,
    AROUND_OR_BESIDE,
    LEAST_NGRAM,
    LEAST_SENTENCE,
    UNKNOWN,
    Block,
    Numbers,
    Source,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15 | 3
_INVERSE = pow(_BASE, -1, 1 << 64)
_GAP = np.uint64(0xD1B54A32D192ED03)  # the code of a gap, whatever its answer
MOST_BITMAP_BITS = 24
SAMPLED = 4  # one run in so many is compared: windows that overlap share several


def mixed(values: Hashes) -> Hashes:
    """Mix the bits of numbers, one to one: Vigna's splitmix64, https://prng.di.unimi.it/splitmix64.c."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _powers(base: int, count: int) -> Hashes:
    """Return the powers of a number modulo 2^64, from the 0th."""
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)


class Runs:
    """The hashes of the runs of words in a block."""

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
        """Return the hashes of runs from ``starts`` to ``ends``, the ends not included."""
        return mixed((self._sums[ends] - self._sums[starts]) * self._inverses[starts])

    def items(self) -> Hashes:
        """Return the hash of each whole item, whatever its answer."""
        starts, ends = self.block.starts[:-1], self.block.starts[1:]
        sums = self._sums[ends] - self._sums[starts]
        with_gap = self.block.gaps >= 0
        gaps = self.block.gaps[with_gap]
        sums[with_gap] += (_GAP - self._codes[gaps]) * self._powers[gaps]
        return mixed(sums * self._inverses[starts])

    def ngrams(self, n: int) -> tuple[Hashes, Numbers]:
        """Return the hashes and the starts of all runs of n known words inside an item."""
        starts = np.arange(max(0, len(self._codes) - n + 1))
        inside = self.item_of[starts] == self.item_of[starts + n - 1] if len(starts) else np.zeros(0, dtype=bool)
        starts = starts[inside & (self._unknown[starts] == self._unknown[starts + n])]
        return self.of(starts, starts + n), starts

    def sentences(self, least: int) -> tuple[Hashes, Numbers]:
        """Return the hashes and the starts of whole sentences of at least ``least`` words.

        The words before the first sentence end of an item, and after the last, may be cut and are left out.
        """
        ends = np.flatnonzero(self.block.words & 1) + 1
        starts, ends = ends[:-1], ends[1:]
        inside = self.item_of[starts - 1] == self.item_of[ends - 1] if len(starts) else np.zeros(0, dtype=bool)
        whole = inside & (ends - starts >= least) & (self._unknown[starts] == self._unknown[ends])
        return self.of(starts[whole], ends[whole]), starts[whole]

    def around(self, places: Numbers, shapes: Sequence[tuple[int, int]]) -> tuple[Hashes, Numbers]:
        """Return the hashes of so many words on the left and the right of places, and the places with enough words.

        Each shape gives hashes of its own.
        """
        found = [self._around(places, *shape) for shape in shapes]
        return np.concatenate([hashes for hashes, _ in found]), np.concatenate([inner for _, inner in found])

    def _around(self, places: Numbers, before: int, behind: int) -> tuple[Hashes, Numbers]:
        inner = places[(places >= before) & (places + behind < len(self._codes))]
        left, right = inner - before, inner + behind
        inside = self.item_of[left] == self.item_of[right]
        inside &= self._unknown[left] == self._unknown[inner]
        inside &= self._unknown[inner + 1] == self._unknown[right + 1]
        inner, left, right = inner[inside], left[inside], right[inside]
        both = self.of(left, inner) * np.uint64(_BASE) + self.of(inner + 1, right + 1)
        return mixed(both), inner


class Index:
    """A sorted set of hashes, with a bitmap that makes most searches for absent ones unnecessary."""

    def __init__(self, hashes: Hashes) -> None:
        self.values, self.inverse = np.unique(hashes, return_inverse=True)
        bits = min(len(self.values).bit_length() + 4, MOST_BITMAP_BITS)  # at most one in sixteen is set
        self._shift = np.uint64(64 - bits)
        self._bitmap = np.zeros(1 << bits, dtype=bool)
        self._bitmap[self.values >> self._shift] = True

    def find(self, hashes: Hashes) -> tuple[Numbers, Numbers]:
        """Return the places in ``hashes`` whose hash is in the index, and their places in the index."""
        maybe = np.flatnonzero(self._bitmap[hashes >> self._shift])
        if not len(maybe):
            return maybe, maybe
        places = np.minimum(np.searchsorted(self.values, hashes[maybe]), len(self.values) - 1)
        found = self.values[places] == hashes[maybe]
        return maybe[found], places[found]


class PartItems:
    """The hash and the document of each item of a part; of the training set also a sample of its runs."""

    def __init__(self, path: str, *, samples: bool = False) -> None:
        self.path = path
        self._samples = samples
        self._hashes: list[Hashes] = []
        self._groups: list[Numbers] = []
        self._runs: list[Hashes] = []
        self._lengths: list[Numbers] = []
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
            places = (starts[taken] - runs.block.starts[items]).astype(np.uint64)
            self._runs.append(np.stack((hashes[taken], groups, (items + self._items).astype(np.uint64), places)))
            self._lengths.append(np.diff(runs.block.starts))
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
        """Return the items whose end is the beginning of another item of the same document.

        All sampled runs in the words that they would share agree. A phrase that a text repeats does not suffice, nor
        does an item that is there twice.
        """
        if not self._runs:
            return np.zeros(0, dtype=np.int64)
        hashes, groups, items, places = np.concatenate(self._runs, axis=1)
        lengths = np.concatenate(self._lengths)
        all_places = (items << np.uint64(20)) + places  # ascending: items and their runs stand in order
        order = np.lexsort((items, groups, hashes))
        hashes, groups, items, places = hashes[order], groups[order], items[order], places[order].astype(np.int64)
        same = (hashes[1:] == hashes[:-1]) & (groups[1:] == groups[:-1]) & (items[1:] != items[:-1])
        one, other = items[:-1][same].astype(np.int64), items[1:][same].astype(np.int64)
        shift = places[:-1][same] - places[1:][same]
        swap = shift < 0  # the one that begins first is the first
        one, other = np.where(swap, other, one), np.where(swap, one, other)
        pairs, counts = np.unique(np.stack((one, other, np.abs(shift))), axis=1, return_counts=True)
        one, other, shift = pairs
        ends = np.minimum(lengths[one], lengths[other] + shift) - LEAST_NGRAM
        starts = np.searchsorted(all_places, ((one << 20) + shift).astype(np.uint64))
        within = np.searchsorted(all_places, ((one << 20) + ends).astype(np.uint64), side="right") - starts
        whole = (counts >= within) & (shift > 0)
        return np.unique(np.concatenate((one[whole], other[whole])))


def repeated(parts: Sequence[PartItems]) -> list[tuple[list[tuple[int, int, int]], list[tuple[int, int]]]]:
    """Return, for each part, its items that an earlier part has, and its items that it has already.

    The first are triples: item, earlier part, item there; the others are pairs: item, earlier item. Items count from
    0.
    """
    values, counts = np.unique(np.concatenate([part.hashes for part in parts]), return_counts=True)
    repeated_hashes = values[counts > 1]
    first: dict[int, tuple[int, int]] = {}
    result = []
    for number, part in enumerate(parts):
        elsewhere, within = [], []
        hashes = part.hashes
        for item in np.flatnonzero(np.isin(hashes, repeated_hashes)).tolist():
            of_part, of_item = first.setdefault(int(hashes[item]), (number, item))
            if of_part != number:
                elsewhere.append((item, of_part, of_item))
            elif of_item != item:
                within.append((item, of_item))
        result.append((elsewhere, within))
    return result


def shared_groups(parts: Sequence[PartItems]) -> list[tuple[Numbers, dict[int, int]]]:
    """Return, for each part, the first item of each document of an earlier part, and that part by document."""
    home: dict[int, int] = {}
    result = []
    for number, part in enumerate(parts):
        groups, items = np.unique(part.groups, return_index=True)
        elsewhere = {group: home[group] for group in groups.tolist() if home.setdefault(group, number) != number}
        shared = np.isin(groups, list(elsewhere))
        result.append((np.sort(items[shared]), elsewhere))
    return result


class SoughtRuns:
    """Runs of words of a hidden part, with their places, that are searched for in other texts.

    With ``by_document``, runs in more than MOST_DOCUMENTS training documents are phrases, and count as not found.
    """

    def __init__(self, hashes: Hashes, places: Numbers, *, by_document: bool = False) -> None:
        self.index, self.places = Index(hashes), places
        self._lines = np.zeros(len(self.index.values), dtype=np.int64)
        self._sources = np.zeros(len(self.index.values), dtype=np.int64)
        self._by_document = by_document
        self._pairs: list[Numbers] = []  # of a run and a document

    def search(self, runs: Runs, hashes: Hashes, starts: Numbers, source: int = 0) -> None:
        """Search among the runs of a block, given as hashes and starts; ``source`` is the number of its text."""
        found, here = self.index.find(hashes)
        items = runs.item_of[starts[found]]
        new = self._lines[here] == 0
        self._lines[here[new][::-1]] = runs.block.lines[items[new][::-1]]  # the first of a block wins
        self._sources[here[new]] = source
        if self._by_document and len(here):
            self._pairs.append(np.unique(np.stack((here, runs.block.groups[items])), axis=1))

    def sources(self) -> Numbers:
        """Return, for each run in order of places, the number of the text in which it was found."""
        return self._sources[self.index.inverse]

    def lines(self) -> Numbers:
        """Return, for each run in order of places, the first line that has it; 0 if none has."""
        lines = self._lines.copy()
        if self._pairs:
            pairs = np.unique(np.concatenate(self._pairs, axis=1), axis=1)
            documents = np.bincount(pairs[0], minlength=len(lines))
            lines[documents > leak_items.MOST_DOCUMENTS] = 0
        return lines[self.index.inverse]


class HiddenPart:
    """A hidden part, with its runs that are searched for in the training set."""

    def __init__(self, source: Source, block: Block) -> None:
        self.source, self.block = source, block
        self.runs = Runs(block)
        self.n = ngram_length(block)
        gaps = block.gaps[block.gaps >= 0]
        self.gaps = SoughtRuns(*self.runs.around(gaps, AROUND))
        self.gaps_in_sets = SoughtRuns(*self.runs.around(gaps, AROUND_OR_BESIDE))
        self.gaps_in_public = SoughtRuns(*self.runs.around(gaps, AROUND))
        self.copies = SoughtCopies(self.runs)
        self.ngrams = SoughtRuns(*self.runs.ngrams(self.n), by_document=True)
        self.short_ngrams = SoughtRuns(*self.runs.ngrams(LEAST_NGRAM))
        self.sentences = SoughtRuns(*self.runs.sentences(LEAST_SENTENCE))

    def items_of(self, places: Numbers) -> Numbers:
        """Return the items in which places are."""
        return self.runs.item_of[places]

    def near_duplicates(self) -> Numbers:
        """Return the items with more than NEAR_DUPLICATE of their runs of LEAST_NGRAM words in the training set."""
        items = self.items_of(self.short_ngrams.places)
        of_item = np.bincount(items, minlength=self.block.items)
        found = np.bincount(items[self.short_ngrams.lines() > 0], minlength=self.block.items)
        return np.flatnonzero(found > leak_items.NEAR_DUPLICATE * of_item)


def ngram_length(block: Block) -> int:
    """Return the length of runs that are no phrases: a low percentile of the items' lengths, within bounds."""
    lengths = np.diff(block.starts)
    if not len(lengths):
        return LEAST_NGRAM
    return int(np.clip(np.percentile(lengths, leak_items.LENGTH_PERCENTILE), LEAST_NGRAM, leak_items.MOST_NGRAM))


def search_training_block(parts: Collection[HiddenPart], train: Runs) -> None:
    """Search a training block for the runs of all hidden parts."""
    lengths = {part.n for part in parts} | {LEAST_NGRAM}
    ngrams = {n: train.ngrams(n) for n in lengths}
    words = np.flatnonzero(train.block.words >> 1 != UNKNOWN)
    gaps = train.around(words, AROUND)
    sentences = train.sentences(LEAST_SENTENCE)
    for part in parts:
        part.gaps.search(train, *gaps)
        part.ngrams.search(train, *ngrams[part.n])
        part.short_ngrams.search(train, *ngrams[LEAST_NGRAM])
        part.sentences.search(train, *sentences)
        part.copies.search(train)


def search_set(part: HiddenPart, other: HiddenPart, source: int, *, copies: bool) -> None:
    """Search another hidden part, of that number, for the gaps of a hidden part, and for its ``copies``."""
    words = np.flatnonzero(other.block.words >> 1 != UNKNOWN)
    part.gaps_in_sets.search(other.runs, *other.runs.around(words, AROUND_OR_BESIDE), source)
    if copies:
        part.copies.search(other.runs, source)


class SoughtCopies:
    """The items of a hidden part whose text is in one item elsewhere, also if one word in five was replaced.

    An item is a copy if the other has SHARED_SHINGLES of its runs of SHINGLE words, spread over at least half of it:
    a phrase that two texts share stands in one place.
    """

    def __init__(self, runs: Runs) -> None:
        hashes, starts = runs.ngrams(leak_items.SHINGLE)
        self._index = Index(hashes)
        self._places = starts[np.unique(hashes, return_index=True)[1]]
        self._runs = runs
        self.found: dict[int, tuple[int, int]] = {}  # the source and the line, by item

    def search(self, other: Runs, source: int = 0) -> None:
        """Search the items of a block."""
        hashes, starts = other.ngrams(leak_items.SHINGLE)
        found, here = self._index.find(hashes)
        rare = np.bincount(here)[here] <= leak_items.MOST_DOCUMENTS if len(here) else np.zeros(0, dtype=bool)
        found, here = found[rare], here[rare]
        if not len(found):
            return
        places, others = self._places[here], other.item_of[starts[found]]
        items = self._runs.item_of[places]
        order = np.lexsort((places, others, items))
        items, others, places = items[order], others[order], places[order]
        new_place = np.ones(len(items), dtype=bool)
        new_place[1:] = (items[1:] != items[:-1]) | (others[1:] != others[:-1]) | (places[1:] != places[:-1])
        items, others, places = items[new_place], others[new_place], places[new_place]
        new = np.ones(len(items), dtype=bool)
        new[1:] = (items[1:] != items[:-1]) | (others[1:] != others[:-1])
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(items)) - 1
        lengths = np.diff(self._runs.block.starts)[items[first]]
        many = last - first + 1 >= np.maximum(
            leak_items.LEAST_SHINGLES, leak_items.SHARED_SHINGLES * (lengths - leak_items.SHINGLE + 1)
        )
        spread = 2 * (places[last] - places[first] + leak_items.SHINGLE) >= lengths
        for pair in first[many & spread].tolist():
            self.found.setdefault(int(items[pair]), (source, int(other.block.lines[others[pair]])))


def readable_elsewhere(block: Block) -> tuple[Numbers, Numbers]:
    """Return the items whose gap can be found in another input of the block, and those other items.

    A gap is found by the words on both sides of it, with a word between them; answers are not used.
    """
    words = block.words.copy()
    gaps = block.gaps[block.gaps >= 0]
    words[gaps] = UNKNOWN
    runs = Runs(replace(block, words=words))
    hashes, places = runs.around(gaps, AROUND_OR_BESIDE)
    index = Index(hashes)
    shown, starts = runs.around(np.flatnonzero(words != UNKNOWN), AROUND_OR_BESIDE)
    found, here = index.find(shown)
    others = runs.item_of[starts[found]]
    least, most = np.full(len(index.values), block.items), np.full(len(index.values), -1)
    np.minimum.at(least, here, others)
    np.maximum.at(most, here, others)
    items = runs.item_of[places]
    other = np.where(least[index.inverse] == items, most[index.inverse], least[index.inverse])
    readable = (most[index.inverse] >= 0) & (other != items)
    items, first = np.unique(items[readable], return_index=True)
    return items, other[readable][first]
