"""Count the n-grams of a corpus, and make models of plain counts: add-one and maximum likelihood.

N-grams are counted order by order, each order from the one before. An n-gram is a row: its context (without the last
word) is a row of the order below, and so is its suffix (without the first word). Rows are sorted by context, then by
last word, so that the n-grams of a context are neighbours.

The places of the corpus are sorted by word once; for each order they are sorted by context and by rank in that order,
packed into one int64: ``np.sort`` of int64 takes a tenth of the time of ``np.argsort``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from geval_py.modelling.corpus import START, Corpus, Doubles, Flags, Ids, Longs
from geval_py.modelling.ngram_model import NgramModel, Ngrams

ADD_ONE, MAXIMUM_LIKELIHOOD = "add-one", "maximum-likelihood"
KINDS = (ADD_ONE, MAXIMUM_LIKELIHOOD)


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramCounts:
    """The n-grams of one order: context and suffix (rows of the order below), last word, number of occurrences.

    ``from_start`` marks those that begin with <s>. ``last`` is the row of the last n-gram in suffix order; None if it
    begins with <s>, and for the highest order.
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
    places = _sorted_with_ranks(tokens)[0].astype(np.int32)  # by word
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


def _sorted_with_ranks(values: Ids) -> tuple[Longs, Ids]:
    """Sort numbers, stably; return the former index of each, and the sorted numbers."""
    bits = max(1, len(values)).bit_length()
    packed = values.astype(np.int64) << bits
    packed |= np.arange(len(values))
    packed.sort()
    ranks = packed & ((1 << bits) - 1)
    packed >>= bits
    return ranks, packed.astype(np.int32)


class _LastNgram:
    """The last n-gram of each order in suffix order, which compares last words first.

    Of order 1 it is the word with the greatest id; of each next order the n-gram that ends so and has the greatest
    first word, until one begins with <s>.
    """

    def __init__(self, tokens: Ids) -> None:
        self._tokens = tokens
        self._places = np.flatnonzero(tokens == tokens.max())

    def lengthen(self, length: int) -> None:
        """Continue with the n-grams of the next length."""
        if len(self._places):
            before = self._tokens[self._places - length + 1]
            greatest = before.max()
            self._places = self._places[before == greatest] if greatest != START else self._places[:0]

    def row(self, rows: Ids) -> int | None:
        """Return the row of the n-gram; None if it begins with <s>."""
        return int(rows[self._places[0]]) if len(self._places) else None


def adjusted_counts(levels: list[NgramCounts]) -> list[Longs]:
    """Return the adjusted counts: the number of different words in front of each n-gram.

    The counts of the highest order, and of n-grams that begin with <s>, are not adjusted.
    """
    adjusted = [
        np.where(level.from_start, level.counts, np.bincount(above.suffixes, minlength=len(level)))
        for level, above in pairwise(levels)
    ]
    adjusted.append(levels[-1].counts)
    return adjusted


def plain_model(corpus: Corpus, order: int, kind: str) -> NgramModel:
    """Make a model of plain counts, one of :data:`KINDS`."""
    levels = count_ngrams(corpus, order)
    totals = [np.array([corpus.length + corpus.sentences])]
    totals += [
        np.bincount(level.contexts, weights=level.counts, minlength=len(below)).astype(np.int64)
        for below, level in pairwise(levels)
    ]
    size = len(corpus.words) - 1
    ngrams = []
    for length, level in enumerate(levels, 1):
        behind = totals[length] if length < order else np.zeros(len(level), np.int64)
        if kind == ADD_ONE:
            whole = level.from_start | (length == order)  # others are only the ends of longer n-grams
            shares = (level.counts + 1) / (totals[length - 1][level.contexts] + size)
            shares = np.where(whole, shares, 1 / size)
            backoffs = np.where(level.from_start | (length == order - 1), size / (behind + size), 1.0)
        else:
            shares = level.counts / totals[length - 1][level.contexts]
            backoffs = np.where(behind > 0, 0.0, 1.0)
        if length == 1:
            shares[START] = 1.0
        ngrams.append(ngrams_of(level, shares, backoffs))
    return NgramModel(words=corpus.words, levels=tuple(ngrams), name=corpus.name)


def ngrams_of(level: NgramCounts, shares: Doubles, backoffs: Doubles) -> Ngrams:
    """Make the n-grams of a model from probabilities and back-off factors."""
    with np.errstate(divide="ignore"):
        return Ngrams(
            contexts=level.contexts,
            words=level.words,
            log_probabilities=np.log10(shares),
            log_backoffs=np.log10(backoffs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCounts:
    """The numbers of occurrences of tokens and of pairs of neighbours in a text without marks of sentences.

    >>> counts = RunningCounts.of("a b a b a".split())
    >>> counts.bigram_log2(["a", "b"]) == math.log2(3 / 5) + math.log2(2 / 3)
    True
    """

    unigrams: Counter[str]
    bigrams: Counter[tuple[str, str]]
    tokens: int

    @classmethod
    def of(cls, tokens: Sequence[str]) -> RunningCounts:
        """Count the tokens of a text (at least one), and the pairs, also across ends of sentences."""
        return cls(unigrams=Counter(tokens), bigrams=Counter(pairwise(tokens)), tokens=len(tokens))

    def unigram_log2(self, sentence: Sequence[str]) -> float:
        """Return log2 of a sentence's probability, each token by its share of the text; -inf if one is unknown."""
        return math.fsum(_log2(self.unigrams[token], self.tokens) for token in sentence)

    def bigram_log2(self, sentence: Sequence[str]) -> float:
        """Return log2 of a sentence's probability, each token but the first by its share behind its predecessor."""
        pairs = (_log2(self.bigrams[pair], self.unigrams[pair[0]]) for pair in pairwise(sentence))
        return math.fsum((self.unigram_log2(sentence[:1]), *pairs))

    def perplexity(self, log2: float) -> float:
        """Return the perplexity of the text from the sum of log2 over its sentences."""
        return float(2 ** (-log2 / self.tokens))


def _log2(count: int, of: int) -> float:
    return math.log2(count / of) if count else -math.inf
