"""Models of plain counts, which lectures begin with: add-one and maximum likelihood.

    maximum likelihood   p(w | h) = c(h w) / c(h)
    add-one (Laplace)    p(w | h) = (c(h w) + 1) / (c(h) + V)

where V is how many words can be predicted: those of the text, </s> and <unk>. Both are written as models with
back-off that say exactly that. With add-one every n-gram of a lower order has 1 / V, and a context h the back-off
V / (c(h) + V); n-grams from <s> are as long as their context can be. With maximum likelihood a context that was seen
has the back-off 0, and one that was not leaves the word to the next shorter one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from geval_py.modelling.counting import Flags, Longs, NgramCounts, count_ngrams
from geval_py.modelling.model import Doubles, NgramModel, Ngrams
from geval_py.modelling.texts import START, Corpus

ADD_ONE, MAXIMUM_LIKELIHOOD = "add-one", "maximum-likelihood"
KINDS = (ADD_ONE, MAXIMUM_LIKELIHOOD)


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
            whole = level.from_start if length < order else np.ones(len(level), np.bool_)
            shares = _add_one(level, totals[length - 1], whole, size)
            backoffs = np.where(level.from_start | (length == order - 1), size / (behind + size), 1.0)
        else:
            shares = level.counts / totals[length - 1][level.contexts]
            backoffs = np.where(behind > 0, 0.0, 1.0)
        if length == 1:
            shares[START] = 1.0
        ngrams.append(_ngrams(level, shares, backoffs))
    return NgramModel(words=corpus.words, levels=tuple(ngrams), name=corpus.name)


def _add_one(level: NgramCounts, totals: Longs, whole: Flags, size: int) -> Doubles:
    """Give the probabilities of n-grams: by their counts those that are ``whole``, not the end of a longer one."""
    return np.where(whole, (level.counts + 1) / (totals[level.contexts] + size), 1 / size)


def _ngrams(level: NgramCounts, shares: Doubles, backoffs: Doubles) -> Ngrams:
    with np.errstate(divide="ignore"):
        return Ngrams(
            contexts=level.contexts,
            words=level.words,
            log_probabilities=np.log10(shares),
            log_backoffs=np.log10(backoffs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCounts:
    """How often each token, and each pair of neighbours, stands in a running text without any marks of sentences.

    >>> counts = RunningCounts.of("a b a b a".split())
    >>> counts.bigram_log2(["a", "b"]) == math.log2(3 / 5) + math.log2(2 / 3)
    True
    """

    unigrams: Counter[str]
    bigrams: Counter[tuple[str, str]]
    tokens: int

    @classmethod
    def of(cls, tokens: Sequence[str]) -> RunningCounts:
        """Count the tokens of a text (at least one), and the pairs, also over the ends of sentences."""
        return cls(unigrams=Counter(tokens), bigrams=Counter(pairwise(tokens)), tokens=len(tokens))

    def unigram_log2(self, sentence: Sequence[str]) -> float:
        """Give log2 of a sentence's probability, each token by its share of the text; -inf for an unknown one."""
        return math.fsum(_log2(self.unigrams[token], self.tokens) for token in sentence)

    def bigram_log2(self, sentence: Sequence[str]) -> float:
        """Give the same with each token but the first by its share of what stands behind the one before it."""
        pairs = (_log2(self.bigrams[pair], self.unigrams[pair[0]]) for pair in pairwise(sentence))
        return math.fsum((self.unigram_log2(sentence[:1]), *pairs))

    def perplexity(self, log2: float) -> float:
        """Give the perplexity of the text, of a log2 that is summed over its sentences."""
        return float(2 ** (-log2 / self.tokens))


def _log2(count: int, of: int) -> float:
    return math.log2(count / of) if count else -math.inf
