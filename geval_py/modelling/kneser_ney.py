"""The discounts of modified Kneser-Ney, as lmplz computes them.

Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling", TR-10-98, 1998, equation 26:
y = n1 / (n1 + 2 n2), D_j = j - (j + 1) y n_(j+1) / n_j for j = 1, 2, 3, where n_j is how many n-grams have the
adjusted count j.

lmplz makes a mistake (kpu/kenlm issues 405 and 427): of each order but the highest, the last n-gram in suffix order
enters n_j by its count instead of its adjusted count. It is imitated, unless exact discounts are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.corpus import MARKS, START, UNKNOWN, Corpus, Ids
from geval_py.modelling.counting import Flags, Longs, NgramCounts, adjusted_counts, count_ngrams
from geval_py.modelling.ngram_model import Doubles, NgramModel, Ngrams
from geval_py.tables.table import Column, Table

FALLBACK = (0.5, 1.0, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discounts:
    """D1, D2 and D3+ of one order; ``fell_back`` where its counts give none, and the fall-back was taken."""

    amounts: tuple[float, float, float]
    fell_back: bool = False

    def of(self, counts: Longs) -> NDArray[np.float64]:
        """Give what is taken off each adjusted count."""
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

    Where the counts of counts give none, they are the ``fallback`` or, without one, a ModelError, which names the
    text at ``path``. Numbers are of single precision, as lmplz's are: it decides whether a D of 0 is in range.
    """
    counts = np.bincount(np.minimum(adjusted, 5), minlength=6)[:5]
    if level.last is not None and not exact:
        _move_last(counts, int(adjusted[level.last]), int(level.counts[level.last]))
    fault = f"no {order}-gram has the adjusted count {_missing(counts)}" if _missing(counts) else ""
    if not fault:
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
    return Discounts(amounts=_single(fallback), fell_back=True)


def _move_last(counts: Longs, adjusted: int, count: int) -> None:
    """Count the last n-gram in suffix order by its count."""
    if adjusted < len(counts):
        counts[adjusted] -= 1
    if count < len(counts):
        counts[count] += 1


def _missing(counts: Longs) -> int | None:
    return next((j for j in (1, 2, 3) if counts[j] == 0), None)


def _amounts(counts: Longs) -> tuple[float, float, float]:
    of = np.float32
    y = of(int(counts[1]) / (int(counts[1]) + 2.0 * int(counts[2])))
    one, two, three = (of(j) - of(j + 1) * y * of(counts[j + 1]) / of(counts[j]) for j in (1, 2, 3))
    return float(one), float(two), float(three)


def _single(amounts: tuple[float, float, float]) -> tuple[float, float, float]:
    one, two, three = (float(np.float32(amount)) for amount in amounts)
    return one, two, three


# Interpolated modified Kneser-Ney, estimated as KenLM's lmplz does.


MOST_ORDER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimation:
    """How a model is estimated; as lmplz's options.

    ``prune`` are thresholds, by order, the last for all higher ones: an n-gram that occurs as often, or less, goes.
    ``vocabulary`` are the words that are kept. ``fallback`` are the discounts of an order whose counts give none.
    Without ``interpolate_unigrams`` <unk> gets all that the unigrams' discounts leave. ``vocabulary_size`` is V, if
    it is more than the words. ``exact_discounts`` leaves lmplz's mistake out (:mod:`geval_py.modelling.kneser_ney`).
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


# Models and perplexities as tables and as JSON documents.


def training_table(estimated: Estimated) -> Table:
    """Make a table with a row an order: n-grams, how many were kept, the discounts."""
    columns = [Column(name=name) for name in ("order", "n-grams", "kept", "D1", "D2", "D3+")]
    rows = [
        (order, count, len(level), *(f"{amount:.6g}" for amount in discounts.amounts))
        for order, (count, level, discounts) in enumerate(
            zip(estimated.counts, estimated.model.levels, estimated.discounts, strict=True), 1
        )
    ]
    return Table(columns, rows)
