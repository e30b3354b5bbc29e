"""N-gram models estimated from a corpus: Kneser-Ney, add-one, maximum likelihood; and the counts behind them.

In this order: interpolated modified Kneser-Ney models, estimated as by KenLM's lmplz; models of plain counts; the
counts of n-grams, from which both are made; counts of tokens and pairs in a text without marks of sentences.

The discounts of Kneser-Ney are those of Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language
Modeling", TR-10-98, 1998, equation 26:
y = n1 / (n1 + 2 n2), D_j = j - (j + 1) y n_(j+1) / n_j for j = 1, 2, 3, where n_j is the number of n-grams with the
adjusted count j.

lmplz has a bug (kpu/kenlm issues 405 and 427): in each order but the highest, the last n-gram in suffix order is
counted in n_j by its count instead of its adjusted count. We do the same, unless exact discounts are wanted.

N-grams are counted order by order, each order from the one before. An n-gram is a row: its context (without the last
word) is a row of the order below, and so is its suffix (without the first word). Rows are sorted by context, then by
last word, so that the n-grams of a context are neighbours. The places of the corpus are sorted by word once; for each
order they are sorted by context and by rank in that order, packed into one int64: ``np.sort`` of int64 takes a tenth
of the time of ``np.argsort``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.backoff import BackoffModel, Ngrams
from geval_py.modelling.corpus import MARKS, START, UNKNOWN, Corpus, Doubles, Flags, Ids, Longs, sorted_with_ranks
from geval_py.tables.table import Column, Table

FALLBACK = (0.5, 1.0, 1.5)
MOST_ORDER = 100
ADD_ONE, MAXIMUM_LIKELIHOOD = "add-one", "maximum-likelihood"
KINDS = (ADD_ONE, MAXIMUM_LIKELIHOOD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discounts:
    """D1, D2 and D3+ of one order; ``fell_back`` if they are the fall-back, because its counts allow no others."""

    amounts: tuple[float, float, float]
    fell_back: bool = False

    def of(self, counts: Longs) -> Doubles:
        """Return the discount of each adjusted count."""
        table = np.array((0.0, *self.amounts))
        return table[np.minimum(counts, 3)]


def counts_of_counts(adjusted: Longs) -> Longs:
    """Count the n-grams with each adjusted count up to 4."""
    return np.bincount(np.minimum(adjusted, 5), minlength=6)[:5]


def imitate_bug(counts: Longs, adjusted: int, raw: int) -> None:
    """Count the last n-gram in suffix order by its count instead of its adjusted count, as lmplz does."""
    for count, change in ((adjusted, -1), (raw, 1)):
        if count < len(counts):
            counts[count] += change


def find_discounts(
    counts: Longs, order: int, *, fallback: tuple[float, float, float] | None, path: str = ""
) -> Discounts:
    """Compute the discounts of one order from its counts of counts.

    If the counts of counts allow none, return the ``fallback``; without one, raise ModelError, which names ``path``.
    Numbers have single precision as in lmplz, which decides whether a D of 0 is in range.
    """
    missing = next((j for j in (1, 2, 3) if counts[j] == 0), None)
    if missing is not None:
        fault = f"no {order}-gram has the adjusted count {missing}"
    else:
        amounts = _amounts(counts)
        wrong = next((j for j, amount in enumerate(amounts, 1) if not 0 <= amount <= j), None)
        if wrong is None:
            return Discounts(amounts=amounts)
        fault = f"the discount of {order}-grams with the adjusted count {wrong} is {amounts[wrong - 1]:.4g}"
    if fallback is None:
        raise ModelError(
            path=path,
            message=f"Kneser-Ney has no discounts for this text: {fault}\n  is it small or made up? sentences that "
            "are there many times over are best left out; or take the fall-back discounts: --discount-fallback",
        )
    one, two, three = (float(np.float32(amount)) for amount in fallback)
    return Discounts(amounts=(one, two, three), fell_back=True)


def _amounts(counts: Longs) -> tuple[float, float, float]:
    of = np.float32
    y = of(int(counts[1]) / (int(counts[1]) + 2.0 * int(counts[2])))
    one, two, three = (of(j) - of(j + 1) * y * of(counts[j + 1]) / of(counts[j]) for j in (1, 2, 3))
    return float(one), float(two), float(three)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimation:
    """The options of estimating a model, as lmplz has them.

    ``prune`` are thresholds by order, the last for all higher orders: n-grams with at most so many occurrences are
    removed. ``vocabulary`` are the words that are kept. ``fallback`` are the discounts of an order whose counts allow
    none. Without ``interpolate_unigrams``, <unk> gets the whole mass of the unigrams' discounts. ``vocabulary_size``
    is V, if it is more than the number of words. ``exact_discounts`` avoids lmplz's bug (see the module).
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
        """Return the count up to which n-grams of a length are removed."""
        return self.prune[min(length, len(self.prune)) - 1] if self.prune else 0


def three_discounts(discounts: Sequence[float]) -> tuple[float, float, float]:
    """Complete the fall-back discounts: the last one given is for all higher counts."""
    if len(discounts) > len(FALLBACK):
        raise UsageError(message=f"--discount-fallback takes up to 3 discounts; {len(discounts)} were given")
    if not discounts:
        return FALLBACK
    one, two, three = (*discounts, *[discounts[-1]] * (len(FALLBACK) - len(discounts)))
    for count, discount in enumerate((one, two, three), 1):
        if discount > count:
            raise UsageError(
                message=f"the discount {discount:g} of n-grams with the count {count} is more than {count}\n"
                "  --discount-fallback takes up to 3 numbers, each at most 1, 2 and 3; the last one is repeated"
            )
    return one, two, three


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """A model, with the number of n-grams of each order before pruning, and the discounts."""

    model: BackoffModel
    counts: tuple[int, ...]
    discounts: tuple[Discounts, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The number of n-grams of each order after pruning."""
        return tuple(map(len, self.model.levels))


class Training(Protocol):
    """The numbers of a training: n-grams of each order before and after pruning, and the discounts."""

    @property
    def counts(self) -> tuple[int, ...]: ...
    @property
    def kept(self) -> tuple[int, ...]: ...
    @property
    def discounts(self) -> tuple[Discounts, ...]: ...


def estimate(corpus: Corpus, how: Estimation) -> Estimated:
    """Estimate a model of a corpus; raises ModelError if the text allows no discounts."""
    levels = count_ngrams(corpus, how.order)
    adjusted = adjusted_counts(levels)
    discounts = []
    for length, (level, own) in enumerate(zip(levels, adjusted, strict=True), 1):
        counts = counts_of_counts(own)
        if level.last is not None and not how.exact_discounts:
            imitate_bug(counts, own[level.last], level.counts[level.last])
        discounts.append(find_discounts(counts, length, fallback=how.fallback, path=corpus.name))
    kept = _kept(corpus, levels, how)
    ngrams = _weighted(levels, adjusted, discounts, kept, how)
    words = corpus.words
    if not kept[0].all():
        words = [words[number] for number in np.flatnonzero(kept[0]).tolist()]
    model = BackoffModel(words=words, levels=_compressed(ngrams, kept), name=corpus.name)
    return Estimated(model=model, counts=tuple(map(len, levels)), discounts=tuple(discounts))


def _kept(corpus: Corpus, levels: Sequence[NgramCounts], how: Estimation) -> list[Flags]:
    """Return whether each n-gram is kept, by order; <unk>, <s> and </s> always are."""
    in_vocabulary = words_in_vocabulary(corpus.words, how)
    known, kept = [in_vocabulary], [kept_words(in_vocabulary, levels[0].counts, how)]
    for length, level in enumerate(levels[1:], 2):
        known.append(known[-1][level.contexts] & in_vocabulary[level.words])
        kept.append(known[-1] & (level.counts > how.threshold(length)))
    return kept


def words_in_vocabulary(words: Sequence[bytes], how: Estimation) -> Flags:
    """Return whether each word is in the vocabulary, if there is one."""
    if how.vocabulary is None:
        return np.ones(len(words), np.bool_)
    allowed = {*how.vocabulary, *MARKS}
    return np.fromiter((word in allowed for word in words), np.bool_, len(words))


def kept_words(in_vocabulary: Flags, counts: Longs, how: Estimation) -> Flags:
    """Return whether each word is kept; <unk>, <s> and </s> always are."""
    kept = in_vocabulary & (counts > how.threshold(1))
    kept[: len(MARKS)] = True
    return kept


def _weighted(
    levels: Sequence[NgramCounts],
    adjusted: Sequence[Longs],
    discounts: Sequence[Discounts],
    kept: Sequence[Flags],
    how: Estimation,
) -> list[Ngrams]:
    """Return the probabilities and back-offs of all n-grams, kept or not."""
    ngrams: list[Ngrams] = []
    gamma, below = np.zeros(0), np.zeros(0)
    for length, level in enumerate(levels, 1):
        counts = adjusted[length - 1]
        contexts = 1 if length == 1 else len(below)
        own, gamma = discounted(level.contexts, counts, discounts[length - 1], kept[length - 1], contexts)
        if length == 1:
            below = word_probabilities(own, float(gamma[0]), int(np.count_nonzero(kept[0])) - 1, how)
        else:
            ngrams[-1] = replace(ngrams[-1], log_backoffs=log10(gamma))
            below = own + gamma[level.contexts] * below[level.suffixes]
        ngrams.append(
            Ngrams(
                contexts=level.contexts,
                words=level.words,
                log_probabilities=log10(below),
                log_backoffs=np.zeros(len(below)),
            )
        )
    return ngrams


def discounted(
    contexts: Ids, adjusted: Longs, discounts: Discounts, kept: Flags, number: int
) -> tuple[Doubles, Doubles]:
    """Return the discounted share of each n-gram in its context, and the mass left in each context (1 if unused).

    ``number`` is that of the contexts.
    """
    taken = np.where(kept, discounts.of(adjusted), adjusted)
    sums = np.bincount(contexts, weights=adjusted, minlength=number)
    left = np.bincount(contexts, weights=taken, minlength=number)
    is_context = sums > 0
    sums[~is_context] = left[~is_context] = 1.0
    return (adjusted - taken) / sums[contexts], left / sums


def word_probabilities(own: Doubles, left: float, size: int, how: Estimation) -> Doubles:
    """Return the probabilities of the words, of which ``size`` can be predicted; <s> has 1."""
    if how.interpolate_unigrams:
        share = left / max(size, how.vocabulary_size)
        probabilities = own + share
        probabilities[UNKNOWN] = share
    else:
        probabilities = own.copy()
        probabilities[UNKNOWN] = left
    probabilities[START] = 1.0
    return probabilities


def log10(values: Doubles) -> Doubles:
    """Return log10 of values up to 1, or a little above by rounding; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.log10(values), 0.0)


def _compressed(ngrams: Sequence[Ngrams], kept: Sequence[Flags]) -> tuple[Ngrams, ...]:
    """Keep the wanted n-grams and renumber the rows; if all are kept, nothing is copied."""
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


def training_table(estimated: Training) -> Table:
    """Return a table with a row for each order: n-grams, kept n-grams, discounts."""
    columns = [Column(name=name) for name in ("order", "n-grams", "kept", "D1", "D2", "D3+")]
    rows = [
        (order, count, kept, *(f"{amount:.6g}" for amount in discounts.amounts))
        for order, (count, kept, discounts) in enumerate(
            zip(estimated.counts, estimated.kept, estimated.discounts, strict=True), 1
        )
    ]
    return Table(columns, rows)


# Models of plain counts


def plain_model(corpus: Corpus, order: int, kind: str) -> BackoffModel:
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
    return BackoffModel(words=corpus.words, levels=tuple(ngrams), name=corpus.name)


def ngrams_of(level: NgramCounts, shares: Doubles, backoffs: Doubles) -> Ngrams:
    """Make the n-grams of a model from probabilities and back-off factors."""
    with np.errstate(divide="ignore"):
        return Ngrams(
            contexts=level.contexts,
            words=level.words,
            log_probabilities=np.log10(shares),
            log_backoffs=np.log10(backoffs),
        )


# Counting n-grams


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
    counts = np.bincount(tokens, minlength=len(corpus.words))
    levels = [counted_words(counts, None if order == 1 else last.row(rows))]
    places = sorted_with_ranks(tokens)[0].astype(np.int32)  # by word
    for length in range(2, order + 1):
        places = places[depths[places] >= length - 1]
        ranks, contexts = sorted_with_ranks(rows[places - 1])
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


def counted_words(counts: Longs, last: int | None) -> NgramCounts:
    """Return the n-grams of order 1 from the number of occurrences of each word; <s> gets 0."""
    counts[START] = 0
    nothing = np.zeros(len(counts), np.int32)
    words = np.arange(len(counts), dtype=np.int32)
    return NgramCounts(
        contexts=nothing, words=words, suffixes=nothing, counts=counts, from_start=words == START, last=last
    )


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
