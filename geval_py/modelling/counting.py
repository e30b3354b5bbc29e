"""The n-grams of a corpus, counted order by order, each order from the one before.

An n-gram is a row: its context is a row of the order below, and so is its suffix (what is left without its first
word). Rows are sorted by context, then by last word, so that a context's n-grams are neighbours.

The places of the corpus are taken in order of their word, once; for each order they are sorted by context and place
in that order, packed into one int64: ``np.sort`` of int64 takes a tenth of what ``np.argsort`` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from geval_py.modelling.texts import START, Corpus, Ids

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramCounts:
    """The n-grams of one order: context and suffix (rows of the order below), last word, and how often each occurs.

    ``from_start`` tells which begin with <s>. ``last`` is the row of the last n-gram in suffix order, where the words
    before it do not begin with <s>; None where they do, and for the highest order.
    """

    contexts: Ids
    words: Ids
    suffixes: Ids
    counts: Longs
    from_start: Flags
    last: int | None

    def __len__(self) -> int:
        return len(self.words)


def count_ngrams(corpus: Corpus, order: int) -> list[NgramCounts]:
    """Count the n-grams of orders 1 to ``order``; of order 1 all words are rows, <unk> and <s> with count 0."""
    tokens, depths = corpus.tokens, corpus.depths
    rows = tokens
    last = _LastNgram(tokens)
    levels = [_unigrams(corpus, None if order == 1 else last.row(rows))]
    places = _by_word(tokens)
    for length in range(2, order + 1):
        places = places[depths[places] >= length - 1]
        ranks, contexts = _sorted_with_ranks(rows[places - 1])
        sorted_places = places[ranks]
        words = tokens[sorted_places]
        new = np.ones(len(words), np.bool_)
        new[1:] = (contexts[1:] != contexts[:-1]) | (words[1:] != words[:-1])
        firsts = np.flatnonzero(new)
        first_places = sorted_places[firsts]
        suffixes = rows[first_places]
        rows = np.zeros_like(tokens)
        rows[sorted_places] = np.cumsum(new, dtype=np.int32) - 1
        last.lengthen(length)
        levels.append(
            NgramCounts(
                contexts=contexts[firsts],
                words=words[firsts],
                suffixes=suffixes,
                counts=np.diff(np.append(firsts, len(words))),
                from_start=depths[first_places] == length - 1,
                last=None if length == order else last.row(rows),
            )
        )
    return levels


def _unigrams(corpus: Corpus, last: int | None) -> NgramCounts:
    number = len(corpus.words)
    counts = np.bincount(corpus.tokens, minlength=number)
    counts[START] = 0
    nothing = np.zeros(number, np.int32)
    words = np.arange(number, dtype=np.int32)
    return NgramCounts(
        contexts=nothing, words=words, suffixes=nothing, counts=counts, from_start=words == START, last=last
    )


def _by_word(tokens: Ids) -> Ids:
    """Give the places of a corpus in order of their words."""
    return _sorted_with_ranks(tokens)[0].astype(np.int32)


def _sorted_with_ranks(values: Ids) -> tuple[Longs, Ids]:
    """Sort numbers; gives where each stood, and the numbers. Equal ones keep their order."""
    bits = max(1, len(values)).bit_length()
    packed = values.astype(np.int64) << bits
    packed |= np.arange(len(values))
    packed.sort()
    ranks = packed & ((1 << bits) - 1)
    packed >>= bits
    return ranks, packed.astype(np.int32)


class _LastNgram:
    """Follows the last n-gram in suffix order, which compares last words first, through the orders.

    It is the word with the greatest id; then, of the n-grams that end so, the one with the greatest first word; and
    so on, until one begins with <s>.
    """

    def __init__(self, tokens: Ids) -> None:
        self._tokens = tokens
        self._places = np.flatnonzero(tokens == tokens.max())

    def lengthen(self, length: int) -> None:
        """Go on to the n-grams of the next length."""
        if len(self._places):
            before = self._tokens[self._places - length + 1]
            greatest = before.max()
            self._places = self._places[before == greatest] if greatest != START else self._places[:0]

    def row(self, rows: Ids) -> int | None:
        """Give its row; None once it would begin with <s>."""
        return int(rows[self._places[0]]) if len(self._places) else None


def adjusted_counts(levels: list[NgramCounts]) -> list[Longs]:
    """Adjust the counts: how many different words stand before an n-gram.

    Those of the highest order, and of what begins with <s>, are the counts themselves.
    """
    adjusted = [
        np.where(level.from_start, level.counts, np.bincount(above.suffixes, minlength=len(level)))
        for level, above in pairwise(levels)
    ]
    adjusted.append(levels[-1].counts)
    return adjusted
