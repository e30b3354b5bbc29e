"""What of the hidden parts stands in the training set, or in other inputs of the same part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from geval_py.authoring.leaks.hashes import Index, Runs
from geval_py.authoring.leaks.items import UNKNOWN, Block, Source
from geval_py.authoring.leaks.rules import (
    LEAST_NGRAM,
    LEAST_SENTENCE,
    LENGTH_PERCENTILE,
    MOST_DOCUMENTS,
    MOST_NGRAM,
    NEAR_DUPLICATE,
    NEIGHBOURS,
)

if TYPE_CHECKING:
    from geval_py.authoring.leaks.hashes import Flags, Hashes
    from geval_py.authoring.leaks.items import Numbers


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
