"""Interpolated modified Kneser-Ney, estimated as KenLM's lmplz does.

Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling", TR-10-98, 1998; Heafield,
Pouzyrevsky, Clark and Koehn, "Scalable Modified Kneser-Ney Language Model Estimation", ACL 2013, section 3. For a
context h, with the adjusted count a, the discount D and sums over the words seen behind h:

    gamma(h)   = (sum of D(a(h w)) over kept h w + sum of a(h w) over pruned h w) / sum of a(h w)
    p(w | h)   = (a(h w) - D(a(h w))) / sum of a(h w) + gamma(h) p(w | h without its first word)
    p(w)       = (a(w) - D(a(w))) / sum of a + gamma() / V

gamma(h) is h's back-off. Pruning changes neither a nor D: what is pruned moves to gamma.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from geval_py.errors import UsageError
from geval_py.modelling.counting import Flags, Longs, NgramCounts, adjusted_counts, count_ngrams
from geval_py.modelling.discounts import Discounts, find_discounts
from geval_py.modelling.model import Doubles, NgramModel, Ngrams
from geval_py.modelling.texts import MARKS, START, UNKNOWN, Corpus, Ids

MOST_ORDER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimation:
    """How a model is estimated; as lmplz's options.

    ``prune`` are thresholds, by order, the last for all higher ones: an n-gram that occurs as often, or less, goes.
    ``vocabulary`` are the words that are kept. ``fallback`` are the discounts of an order whose counts give none.
    Without ``interpolate_unigrams`` <unk> gets all that the unigrams' discounts leave. ``vocabulary_size`` is V, if
    it is more than the words. ``exact_discounts`` leaves lmplz's mistake out (:mod:`geval_py.modelling.discounts`).
    """

    order: int = 5
    prune: tuple[int, ...] = ()
    vocabulary: Collection[bytes] | None = None
    fallback: tuple[float, float, float] | None = None
    interpolate_unigrams: bool = True
    vocabulary_size: int = 0
    exact_discounts: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.order <= MOST_ORDER:
            raise UsageError(message=f"the order is a whole number from 1 to {MOST_ORDER}, not {self.order}")
        if len(self.prune) > self.order:
            raise UsageError(message=f"{len(self.prune)} thresholds to prune by, for {self.order} orders")
        if list(self.prune) != sorted(self.prune):
            raise UsageError(
                message=f"the thresholds to prune by fall: {' '.join(map(str, self.prune))}\n"
                "  an n-gram cannot be kept where the shorter one in it goes"
            )

    def threshold(self, length: int) -> int:
        """Give the count up to which n-grams of a length go."""
        return self.prune[min(length, len(self.prune)) - 1] if self.prune else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """A model, and what was met on the way: the n-grams of each order before pruning, and the discounts."""

    model: NgramModel
    counts: tuple[int, ...]
    discounts: tuple[Discounts, ...]


def estimate(corpus: Corpus, how: Estimation) -> Estimated:
    """Estimate a model of a corpus; raises ModelError for a text that gives no discounts."""
    levels = count_ngrams(corpus, how.order)
    adjusted = adjusted_counts(levels)
    discounts = tuple(
        find_discounts(level, counts, length, fallback=how.fallback, exact=how.exact_discounts, path=corpus.name)
        for length, (level, counts) in enumerate(zip(levels, adjusted, strict=True), 1)
    )
    kept = _kept(corpus, levels, how)
    ngrams = _weighted(levels, adjusted, discounts, kept, how)
    model = NgramModel(words=_kept_words(corpus.words, kept[0]), levels=_compressed(ngrams, kept), name=corpus.name)
    return Estimated(model=model, counts=tuple(map(len, levels)), discounts=discounts)


def _kept(corpus: Corpus, levels: Sequence[NgramCounts], how: Estimation) -> list[Flags]:
    """Tell which n-grams of each order are kept; <unk>, <s> and </s> always are."""
    in_vocabulary = np.ones(len(corpus.words), np.bool_)
    if how.vocabulary is not None:
        allowed = {*how.vocabulary, *MARKS}
        in_vocabulary = np.fromiter((word in allowed for word in corpus.words), np.bool_, len(corpus.words))
    known: list[Flags] = []
    kept: list[Flags] = []
    for length, level in enumerate(levels, 1):
        known.append(in_vocabulary if length == 1 else known[-1][level.contexts] & in_vocabulary[level.words])
        kept.append(known[-1] & (level.counts > how.threshold(length)))
        if length == 1:
            kept[0][: len(MARKS)] = True
    return kept


def _weighted(
    levels: Sequence[NgramCounts],
    adjusted: Sequence[Longs],
    discounts: Sequence[Discounts],
    kept: Sequence[Flags],
    how: Estimation,
) -> list[Ngrams]:
    """Give the probabilities and back-offs of all n-grams, also of those that are not kept."""
    ngrams: list[Ngrams] = []
    gamma, below = np.zeros(0), np.zeros(0)
    for length, level in enumerate(levels, 1):
        counts = adjusted[length - 1]
        contexts = 1 if length == 1 else len(below)
        own, gamma = _discounted(level, counts, discounts[length - 1], kept[length - 1], contexts)
        if length == 1:
            below = _unigrams(own, float(gamma[0]), int(np.count_nonzero(kept[0])) - 1, how)
        else:
            ngrams[-1] = _with_backoffs(ngrams[-1], gamma)
            below = own + gamma[level.contexts] * below[level.suffixes]
        ngrams.append(
            Ngrams(
                contexts=level.contexts,
                words=level.words,
                log_probabilities=_log10(below),
                log_backoffs=np.zeros(len(below)),
            )
        )
    return ngrams


def _discounted(
    level: NgramCounts, adjusted: Longs, discounts: Discounts, kept: Flags, contexts: int
) -> tuple[Doubles, Doubles]:
    """Give the discounted share of each n-gram in its context, and what each context has left; 1 where it is none."""
    taken = np.where(kept, discounts.of(adjusted), adjusted)
    sums = np.bincount(level.contexts, weights=adjusted, minlength=contexts)
    left = np.bincount(level.contexts, weights=taken, minlength=contexts)
    is_context = sums > 0
    sums[~is_context] = left[~is_context] = 1.0
    return (adjusted - taken) / sums[level.contexts], left / sums


def _unigrams(own: Doubles, left: float, size: int, how: Estimation) -> Doubles:
    """Give the probabilities of the words, of which ``size`` can be predicted; that of <s> is 1."""
    if how.interpolate_unigrams:
        share = left / max(size, how.vocabulary_size)
        probabilities = own + share
        probabilities[UNKNOWN] = share
    else:
        probabilities = own.copy()
        probabilities[UNKNOWN] = left
    probabilities[START] = 1.0
    return probabilities


def _with_backoffs(ngrams: Ngrams, gamma: Doubles) -> Ngrams:
    return Ngrams(
        contexts=ngrams.contexts,
        words=ngrams.words,
        log_probabilities=ngrams.log_probabilities,
        log_backoffs=_log10(gamma),
    )


def _log10(values: Doubles) -> Doubles:
    """Take the logarithm of values up to 1, which rounding may have passed; that of 0 is -inf."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.log10(values), 0.0)


def _kept_words(words: list[bytes], kept: Flags) -> list[bytes]:
    return words if kept.all() else [words[number] for number in np.flatnonzero(kept).tolist()]


def _compressed(ngrams: Sequence[Ngrams], kept: Sequence[Flags]) -> tuple[Ngrams, ...]:
    """Leave out what is not kept, and number the rows anew; without a copy, which is large, where all are kept."""
    if all(flags.all() for flags in kept):
        return tuple(ngrams)
    new_words: Ids = np.cumsum(kept[0], dtype=np.int32) - 1
    new_rows, compressed = np.zeros(1, np.int32), []
    for length, (level, flags) in enumerate(zip(ngrams, kept, strict=True), 1):
        compressed.append(
            Ngrams(
                contexts=level.contexts[flags] if length == 1 else new_rows[level.contexts[flags]],
                words=new_words[level.words[flags]],
                log_probabilities=level.log_probabilities[flags],
                log_backoffs=level.log_backoffs[flags],
            )
        )
        new_rows = np.cumsum(flags, dtype=np.int32) - 1
    return tuple(compressed)
