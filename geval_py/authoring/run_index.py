"""Items as numbered words, and an index of their runs of words, which other texts are searched for.

The hash of words w0 … wm is the sum of code(wi) B^i modulo 2^64, where code is random and B odd, so that it is the
difference of two running sums, times an inverse: a run of any length costs the same (Karp and Rabin, "Efficient
randomized pattern-matching algorithms", 1987). Two different runs have the same hash with a chance of about 2^-60.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]
Runs: TypeAlias = tuple[Hashes, Numbers]  # hashes of runs, and where these begin among the words

NEIGHBOURS = 3  # words on each side of a gap, by which it is found elsewhere
AROUND = ((NEIGHBOURS, NEIGHBOURS),)  # the words on the left and on the right
AROUND_OR_BESIDE = (*AROUND, (8, 0), (0, 8))  # where windows of other gaps have the same gaps
RUN = 8  # words; the least n of GPT-3 (Brown et al. 2020, appendix C)
SAMPLED = 4  # one run in so many shows whether windows overlap
MAX_KEPT_WORDS = 1 << 18
UNKNOWN = 0  # the word of a gap whose answer is not known
MAX_BITMAP_BITS = 24
_BASE = 0x9E3779B97F4A7C15 | 3
_INVERSE = pow(_BASE, -1, 1 << 64)
_GAP = np.uint64(0xD1B54A32D192ED03)  # the code of a gap, whatever its answer
_OUTER_PUNCTUATION = re.compile(r"^[\W_]+|[\W_]+$")
_LETTERS = str.maketrans("łŁøØđĐıħŧ", "lLoOdDiht")  # letters with strokes, which have no decomposition


def skeleton(text: str) -> str:
    """Return a text without case, diacritics and invisible characters (soft hyphens too), in Unicode's form NFKC.

    >>> skeleton("Zo\u00adë") == skeleton("ZOE\u0308") == skeleton("ｚｏｅ")
    True
    """
    if not text.isascii():
        letters = unicodedata.normalize("NFKD", text).translate(_LETTERS)
        text = "".join(letter for letter in letters if unicodedata.category(letter) not in ("Mn", "Cf"))
    return text.casefold()


class Vocabulary(dict[str, int]):
    """Numbers words by their skeletons without outer punctuation, from 1. It keeps some words, and all skeletons."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        if len(self) >= MAX_KEPT_WORDS:
            self.clear()
        plain = _OUTER_PUNCTUATION.sub("", skeleton(word)) or word
        self[word] = number = self._numbers.setdefault(plain, len(self._numbers) + 1)
        return number

    def numbers(self, words: Iterable[str]) -> Numbers:
        """Return the numbers of words, or of whole cells or lines."""
        return np.fromiter(map(self.__getitem__, words), np.int64)


def mix_bits(values: Hashes) -> Hashes:
    """Mix the bits of numbers, one to one: Vigna's splitmix64, https://prng.di.unimi.it/splitmix64.c."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _codes(words: Numbers) -> Hashes:
    return mix_bits((words.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


class Items:
    """Items as numbered words, one item after another, and the hashes of their runs of words.

    Item n has the words from ``starts[n]`` to ``starts[n + 1]``, and a gap at ``gaps[n]``, -1 for none; ``groups``
    has a hash of its document. ``first_line`` is the number of the first item's line.
    """

    def __init__(
        self, words: Numbers, starts: Numbers, gaps: Numbers, groups: Numbers, *, first_line: int = 1
    ) -> None:
        self.words, self.starts, self.gaps, self.groups, self.first_line = words, starts, gaps, groups, first_line
        lengths = np.diff(starts)
        self.item_of = np.repeat(np.arange(len(self), dtype=np.int32), lengths)
        longest = int(lengths.max(initial=0))
        self._powers, self._inverses = (
            np.multiply.accumulate(np.array([1, *[base] * longest], dtype=np.uint64)) for base in (_BASE, _INVERSE)
        )
        self._sums = np.zeros(len(words) + 1, dtype=np.uint64)  # the exponents count from the item's start
        np.cumsum(_codes(words) * self._powers[self._place_in_item(np.arange(len(words)))], out=self._sums[1:])
        self._unknown = np.zeros(len(words) + 1, dtype=np.int32)
        np.cumsum(words == UNKNOWN, out=self._unknown[1:])

    @classmethod
    def of_text(cls, words: Numbers) -> Items:
        """Make one item without a gap of numbered words."""
        return cls(words, np.array([0, len(words)]), np.array([-1]), np.array([0]))

    def _place_in_item(self, places: Numbers) -> Numbers:
        """Return the places of words in their items; one behind the last word counts as its item's."""
        return places - self.starts[self.item_of[np.minimum(places, len(self.words) - 1)]]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def _hashes(self, starts: Numbers, ends: Numbers) -> Hashes:
        """Return the hashes of the runs from ``starts`` to ``ends``, the ends not included."""
        return mix_bits((self._sums[ends] - self._sums[starts]) * self._inverses[self._place_in_item(starts)])

    def hashes_of_items(self) -> Hashes:
        """Return the hash of each item, whatever its answer."""
        sums = np.diff(self._sums[self.starts])
        with_gap = self.gaps >= 0
        gaps = self.gaps[with_gap]
        sums[with_gap] += (_GAP - _codes(self.words[gaps])) * self._powers[self._place_in_item(gaps)]
        return mix_bits(sums)

    def runs(self, n: int = RUN) -> Runs:
        """Return the runs of n known words inside an item."""
        starts = np.arange(max(0, len(self.words) - n + 1))
        inside = self.item_of[starts] == self.item_of[starts + n - 1]
        starts = starts[inside & (self._unknown[starts] == self._unknown[starts + n])]
        return self._hashes(starts, starts + n), starts

    def around(self, shapes: Sequence[tuple[int, int]] = AROUND, places: Numbers | None = None) -> Runs:
        """Return the words around places: so many on the left and on the right, for each of the shapes.

        By default the places are those of all known words. Places with fewer words in their item are left out.
        """
        places = np.flatnonzero(self.words != UNKNOWN) if places is None else places
        hashes, kept = [], []
        for before, behind in shapes:
            inner = places[(places >= before) & (places + behind < len(self.words))]
            left, right = inner - before, inner + behind
            inside = self.item_of[left] == self.item_of[right]
            inside &= self._unknown[left] == self._unknown[inner]
            inside &= self._unknown[inner + 1] == self._unknown[right + 1]
            inner, left, right = inner[inside], left[inside], right[inside]
            hashes.append(mix_bits(self._hashes(left, inner) * np.uint64(_BASE) + self._hashes(inner + 1, right + 1)))
            kept.append(inner)
        return np.concatenate(hashes), np.concatenate(kept)

    def around_gaps(self, shapes: Sequence[tuple[int, int]] = AROUND) -> Runs:
        """Return the words around the gaps."""
        return self.around(shapes, self.gaps[self.gaps >= 0])

    def one_run_in_four(self) -> tuple[Hashes, Numbers]:
        """Return some runs, each as a hash that differs between documents, and their items."""
        hashes, starts = self.runs()
        sampled = hashes % np.uint64(SAMPLED) == 0
        items = self.item_of[starts[sampled]]
        documents = self.groups[items].astype(np.uint64)
        return mix_bits(hashes[sampled] + documents * np.uint64(_BASE)), items

    def without_answers(self) -> Items:
        """Return the same items with gaps that are not known."""
        words = self.words.copy()
        words[self.gaps[self.gaps >= 0]] = UNKNOWN
        return Items(words, self.starts, self.gaps, self.groups, first_line=self.first_line)


class RunIndex:
    """Runs of words of some items, and where other texts have them.

    ``values`` are their hashes in order, with a bitmap that spares most searches for absent ones.
    """

    def __init__(self, blocks: Sequence[Items], runs_of: Callable[[Items], Runs]) -> None:
        self._size = sum(map(len, blocks))
        runs = []  # their hashes, items, and places among the words of these
        for items in blocks:
            hashes, places = runs_of(items)
            owners = items.item_of[places]
            words = (places - items.starts[owners]).astype(np.int32)
            runs.append((hashes, owners + np.int32(items.first_line - 1), words))
        hashes, self._items, self._words = map(np.concatenate, zip(*runs, strict=True))
        self.values, first, inverse, counts = np.unique(
            hashes, return_index=True, return_inverse=True, return_counts=True
        )
        self._values_of_runs = inverse.astype(np.int32)
        self._owner = np.where(counts == 1, self._items[first], -1)  # the item, if only one has the run
        bits = min(len(self.values).bit_length() + 4, MAX_BITMAP_BITS)  # at most one in sixteen is set
        self._shift = np.uint64(64 - bits)
        self._bitmap = np.zeros(1 << bits, dtype=bool)
        self._bitmap[self.values >> self._shift] = True
        self._lines, self._sources = np.zeros((2, len(self.values)), dtype=np.int32)

    def find(self, hashes: Hashes) -> tuple[Numbers, Numbers]:
        """Return the places in ``hashes`` of those that are in the index, and their places in ``values``."""
        maybe = np.flatnonzero(self._bitmap[hashes >> self._shift])
        places = np.minimum(np.searchsorted(self.values, hashes[maybe]), len(self.values) - 1)
        same = self.values[places] == hashes[maybe]
        return maybe[same], places[same]

    def search(self, items: Items, runs: Runs, source: int = 0, *, in_same: bool = False) -> None:
        """Search among runs of other items, or ``in_same``; ``source`` is the number of their text."""
        places, values = self.find(runs[0])
        others = items.item_of[runs[1][places]]
        if in_same:
            differ = self._owner[values] != others + items.first_line - 1
            values, others = values[differ], others[differ]
        new = self._lines[values] == 0
        self._lines[values[new][::-1]] = items.first_line + others[new][::-1]  # the first of the items wins
        self._sources[values[new]] = source

    def first_matches(self) -> dict[int, tuple[int, int, int]]:
        """Return, by item, the place in words of the first run that was found, its line and its source."""
        lines, sources = self._lines[self._values_of_runs], self._sources[self._values_of_runs]
        runs = np.flatnonzero(lines)
        items, first = np.unique(self._items[runs], return_index=True)
        return {
            item: (int(self._words[run]), int(lines[run]), int(sources[run]))
            for item, run in zip(items.tolist(), runs[first].tolist(), strict=True)
        }

    def shares(self) -> NDArray[np.float64]:
        """Return the share of each item's runs that was found."""
        found = self._lines[self._values_of_runs] > 0
        counts = np.bincount(self._items, minlength=self._size)
        return np.bincount(self._items[found], minlength=self._size) / np.maximum(counts, 1)
