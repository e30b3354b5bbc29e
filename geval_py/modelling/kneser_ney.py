"""Interpolated modified Kneser-Ney models, estimated as by KenLM's lmplz.

The discounts are those of Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling",
TR-10-98, 1998, equation 26:
y = n1 / (n1 + 2 n2), D_j = j - (j + 1) y n_(j+1) / n_j for j = 1, 2, 3, where n_j is the number of n-grams with the
adjusted count j.

lmplz has a bug (kpu/kenlm issues 405 and 427): in each order but the highest, the last n-gram in suffix order is
counted in n_j by its count instead of its adjusted count. We do the same, unless exact discounts are wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.corpus import MARKS, START, UNKNOWN, Corpus, Doubles, Flags, Ids, Longs
from geval_py.modelling.counting import NgramCounts, adjusted_counts, count_ngrams
from geval_py.modelling.ngram_model import NgramModel, Ngrams
from geval_py.tables.table import Column, Table

FALLBACK = (0.5, 1.0, 1.5)
MOST_ORDER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Discounts:
    """D1, D2 and D3+ of one order; ``fell_back`` if they are the fall-back, because its counts allow no others."""

    amounts: tuple[float, float, float]
    fell_back: bool = False

    def of(self, counts: Longs) -> Doubles:
        """Return the discount of each adjusted count."""
        table = np.array((0.0, *self.amounts))
        return table[np.minimum(counts, 3)]


def find_discounts(
    level: NgramCounts,
    adjusted: Longs,
    order: int,
    *,
    fallback: tuple[float, float, float] | None,
    exact: bool,
    path: str = "",
) -> Discounts:
    """Compute the discounts of one order.

    If the counts of counts allow none, return the ``fallback``; without one, raise ModelError, which names ``path``.
    Numbers have single precision as in lmplz, which decides whether a D of 0 is in range.
    """
    counts = np.bincount(np.minimum(adjusted, 5), minlength=6)[:5]
    if level.last is not None and not exact:
        for count, change in ((adjusted[level.last], -1), (level.counts[level.last], 1)):  # the bug of lmplz
            if count < len(counts):
                counts[count] += change
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """A model, with the number of n-grams of each order before pruning, and the discounts."""

    model: NgramModel
    counts: tuple[int, ...]
    discounts: tuple[Discounts, ...]


def estimate(corpus: Corpus, how: Estimation) -> Estimated:
    """Estimate a model of a corpus; raises ModelError if the text allows no discounts."""
    levels = count_ngrams(corpus, how.order)
    adjusted = adjusted_counts(levels)
    discounts = tuple(
        find_discounts(level, counts, length, fallback=how.fallback, exact=how.exact_discounts, path=corpus.name)
        for length, (level, counts) in enumerate(zip(levels, adjusted, strict=True), 1)
    )
    kept = _kept(corpus, levels, how)
    ngrams = _weighted(levels, adjusted, discounts, kept, how)
    words = corpus.words
    if not kept[0].all():
        words = [words[number] for number in np.flatnonzero(kept[0]).tolist()]
    model = NgramModel(words=words, levels=_compressed(ngrams, kept), name=corpus.name)
    return Estimated(model=model, counts=tuple(map(len, levels)), discounts=discounts)


def _kept(corpus: Corpus, levels: Sequence[NgramCounts], how: Estimation) -> list[Flags]:
    """Return whether each n-gram is kept, by order; <unk>, <s> and </s> always are."""
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
    """Return the probabilities and back-offs of all n-grams, kept or not."""
    ngrams: list[Ngrams] = []
    gamma, below = np.zeros(0), np.zeros(0)
    for length, level in enumerate(levels, 1):
        counts = adjusted[length - 1]
        contexts = 1 if length == 1 else len(below)
        own, gamma = _discounted(level, counts, discounts[length - 1], kept[length - 1], contexts)
        if length == 1:
            below = _unigrams(own, float(gamma[0]), int(np.count_nonzero(kept[0])) - 1, how)
        else:
            ngrams[-1] = replace(ngrams[-1], log_backoffs=_log10(gamma))
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
    """Return the discounted share of each n-gram in its context, and the mass left in each context (1 if unused)."""
    taken = np.where(kept, discounts.of(adjusted), adjusted)
    sums = np.bincount(level.contexts, weights=adjusted, minlength=contexts)
    left = np.bincount(level.contexts, weights=taken, minlength=contexts)
    is_context = sums > 0
    sums[~is_context] = left[~is_context] = 1.0
    return (adjusted - taken) / sums[level.contexts], left / sums


def _unigrams(own: Doubles, left: float, size: int, how: Estimation) -> Doubles:
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


def _log10(values: Doubles) -> Doubles:
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


def training_table(estimated: Estimated) -> Table:
    """Return a table with a row for each order: n-grams, kept n-grams, discounts."""
    columns = [Column(name=name) for name in ("order", "n-grams", "kept", "D1", "D2", "D3+")]
    rows = [
        (order, count, len(level), *(f"{amount:.6g}" for amount in discounts.amounts))
        for order, (count, level, discounts) in enumerate(
            zip(estimated.counts, estimated.model.levels, estimated.discounts, strict=True), 1
        )
    ]
    return Table(columns, rows)
