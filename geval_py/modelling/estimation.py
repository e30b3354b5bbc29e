"""N-gram models estimated from a text: Kneser-Ney as by KenLM's lmplz, add-one, maximum likelihood.

The discounts of interpolated modified Kneser-Ney are those of Chen and Goodman, "An Empirical Study of Smoothing
Techniques for Language Modeling", TR-10-98, 1998, equation 26:
y = n1 / (n1 + 2 n2), D_j = j - (j + 1) y n_(j+1) / n_j for j = 1, 2, 3, where n_j is the number of n-grams with the
adjusted count j.

lmplz has a bug (kpu/kenlm issues 405 and 427): in each order but the highest, the last n-gram in suffix order is
counted in n_j by its count instead of its adjusted count. We do the same, unless exact discounts are wanted.

An n-gram is a row of its order; its context (without the last word) and its suffix (without the first word) are rows
of the order below. So each order is counted from the one before: the n-gram that ends before a token is a context,
which with the token is the key of the longer n-gram, and the n-gram that ends with the token is the suffix.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.backoff import BackoffModel, Ngrams, key_of
from geval_py.modelling.corpus import END, MARKS, START, UNKNOWN, Corpus, Doubles, Flags, Ids, Longs
from geval_py.text import visible

FALLBACK = (0.5, 1.0, 1.5)
MAX_ORDER = 100
ADD_ONE, MAXIMUM_LIKELIHOOD = "add-one", "maximum-likelihood"
KINDS = (ADD_ONE, MAXIMUM_LIKELIHOOD)
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of memory
TOKEN_BYTES, ORDER_BYTES = 60, 12  # of memory for a token of the text, and for each order; measured


@dataclass(frozen=True)
class Estimation:
    """The options of estimating a model, as lmplz has them.

    ``prune`` are thresholds by order, the last for all higher orders: n-grams with at most so many occurrences are
    removed. ``vocabulary`` are the words that are kept. ``fallback`` are the discounts of an order whose counts allow
    none, the last one for all higher counts. Without ``interpolate_unigrams``, <unk> gets the whole mass of the
    unigrams' discounts. ``vocabulary_size`` is V, if it is more than the number of words. ``exact_discounts`` avoids
    lmplz's bug (see the module).
    """

    order: int = 5
    prune: tuple[int, ...] = ()
    vocabulary: Collection[bytes] | None = None
    fallback: tuple[float, ...] | None = None
    interpolate_unigrams: bool = True
    vocabulary_size: int = 0
    exact_discounts: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.order <= MAX_ORDER:
            raise UsageError(f"the order is a whole number from 1 to {MAX_ORDER}, not {self.order}")
        if len(self.prune) > self.order:
            raise UsageError(f"{len(self.prune)} thresholds to prune by, for {self.order} orders")
        if list(self.prune) != sorted(self.prune):
            raise UsageError(
                f"the thresholds to prune by fall: {' '.join(map(str, self.prune))}\n"
                "  an n-gram cannot be kept where the shorter one in it goes"
            )
        discounts = self.fallback or ()
        if len(discounts) > len(FALLBACK):
            raise UsageError(f"--discount-fallback takes up to 3 discounts; {len(discounts)} were given")
        for count, discount in enumerate(discounts, 1):
            if discount > count:
                raise UsageError(
                    f"the discount {discount:g} of n-grams with the count {count} is more than {count}\n"
                    "  --discount-fallback takes up to 3 numbers, each at most 1, 2 and 3; the last one is repeated"
                )


class Discounts(NamedTuple):
    """D1, D2 and D3+ of one order; ``fell_back`` if they are the fall-back, because its counts allow no others."""

    amounts: tuple[float, ...]
    fell_back: bool = False


@dataclass(frozen=True)
class Level:
    """The n-grams of one order, sorted by context and last word.

    ``contexts`` and ``suffixes`` are rows of the order below, ``counts`` numbers of occurrences. ``from_start`` says
    which n-grams begin with <s>.
    """

    contexts: Ids
    words: Ids
    suffixes: Ids
    counts: Ids
    from_start: Flags

    def __len__(self) -> int:
        return len(self.words)


class Estimated(NamedTuple):
    """An estimated model, and by order its number of n-grams before pruning and its discounts."""

    model: BackoffModel
    counts: tuple[int, ...]
    discounts: tuple[Discounts, ...]


def estimate(corpus: Corpus, how: Estimation) -> Estimated:
    """Estimate a Kneser-Ney model.

    For a context h, a word w behind it and the adjusted count a(h w), where h' is h without its first word:

        p(w | h) = (a(h w) - D(a(h w))) / S(h) + gamma(h) p(w | h')
        gamma(h) = sum of D(a(h w)) / S(h)

    S(h) is the sum of a(h w) over all w. D takes the whole of a pruned n-gram's count. The back-off of h is gamma(h).
    Raises ModelError if the text allows no discounts, and UsageError if it needs more memory than there is.
    """
    words, levels, thresholds = corpus.words, count_levels(corpus, how.order), how.prune or (0,)
    sizes = tuple(map(len, levels))
    in_vocabulary = np.ones(len(words), np.bool_)
    if how.vocabulary is not None:
        allowed = {*how.vocabulary, *MARKS}
        in_vocabulary = np.fromiter((word in allowed for word in words), np.bool_, len(words))
    kept = np.ones(1, np.bool_)  # of the order below, as its probabilities
    probabilities = np.ones(1)
    last = len(words) - 1  # the row of the last n-gram in suffix order, which compares last words first; -1: none
    ngrams, flags, discounts = list[Ngrams](), list[Flags](), list[Discounts]()
    for length in range(1, how.order + 1):
        level, *levels = levels
        contexts, counts = level.contexts, level.counts

        adjusted: Ids | Longs = counts
        if levels:
            adjusted = np.bincount(levels[0].suffixes, minlength=len(level))  # different words in front
            adjusted[level.from_start] = counts[level.from_start]

        if length > 1:
            rows = np.flatnonzero(level.suffixes == last)
            last = int(rows[-1]) if len(rows) and not level.from_start[rows[-1]] else -1
        number = np.bincount(np.minimum(adjusted, 5), minlength=6)
        if last >= 0 and not how.exact_discounts:  # lmplz's bug
            number[min(adjusted[last], 5)] -= 1
            number[min(counts[last], 5)] += 1
        discounts.append(_find_discounts(number[:5].tolist(), length, how, corpus.name))

        kept = kept[contexts] & in_vocabulary[level.words] & (counts > thresholds[min(length, len(thresholds)) - 1])
        if length == 1:
            kept[: len(MARKS)] = True
        flags.append(kept)

        taken = np.where(kept, np.array((0.0, *discounts[-1].amounts))[np.minimum(adjusted, 3)], adjusted)
        sums = np.bincount(contexts, weights=adjusted, minlength=len(probabilities))
        left = np.bincount(contexts, weights=taken, minlength=len(probabilities))
        left[sums == 0] = sums[sums == 0] = 1.0  # nothing is behind the context, or nothing that counts

        own, gamma = (adjusted - taken) / sums[contexts], left / sums
        if length == 1:
            share = gamma[0]
            if how.interpolate_unigrams:
                share /= max(int(np.count_nonzero(kept)) - 2 + corpus.marks, how.vocabulary_size)
                own += share
            own[UNKNOWN] = share
            _set_marks(own, corpus)
            probabilities = own
        else:
            ngrams[-1] = replace(ngrams[-1], log_backoffs=_log10(gamma))
            probabilities = own + gamma[contexts] * probabilities[level.suffixes]
        ngrams.append(Ngrams(contexts, level.words, _log10(probabilities), np.zeros(len(level))))
    model = _pruned(corpus, ngrams, flags)
    return Estimated(model, sizes, tuple(discounts))


def _pruned(corpus: Corpus, ngrams: Sequence[Ngrams], kept: Sequence[Flags]) -> BackoffModel:
    """Return a model of the n-grams that are kept, whose rows and words are numbered anew."""
    texts = [corpus.words[number] for number in np.flatnonzero(kept[0]).tolist()]
    if not all(map(np.all, kept)):
        words, rows = np.cumsum(kept[0], dtype=np.int32) - 1, np.zeros(1, np.int32)
        levels = []
        for level, flags in zip(ngrams, kept, strict=True):
            columns = rows[level.contexts[flags]], words[level.words[flags]]
            levels.append(Ngrams(*columns, level.log_probabilities[flags], level.log_backoffs[flags]))
            rows = np.cumsum(flags, dtype=np.int32) - 1
        ngrams = levels
    return BackoffModel(words=texts, levels=tuple(ngrams), name=corpus.name, missing=corpus.missing)


def _find_discounts(number: Sequence[int], length: int, how: Estimation, path: str) -> Discounts:
    """Compute the discounts of one order from the ``number`` of n-grams with each adjusted count from 0 to 4.

    Numbers have single precision as in lmplz, which decides whether a D of 0 is in range. Raises ModelError if there
    are no discounts, and no fall-back.
    """
    missing = next((j for j in (1, 2, 3) if number[j] == 0), None)
    if missing is not None:
        fault = f"no {length}-gram has the adjusted count {missing}"
    else:
        single = np.float32
        y = single(number[1] / (number[1] + 2.0 * number[2]))
        amounts = tuple(
            float(single(j) - single(j + 1) * y * single(number[j + 1]) / single(number[j])) for j in (1, 2, 3)
        )
        wrong = next((j for j, amount in enumerate(amounts, 1) if not 0 <= amount <= j), None)
        if wrong is None:
            return Discounts(amounts=amounts)
        fault = f"the discount of {length}-grams with the adjusted count {wrong} is {amounts[wrong - 1]:.4g}"
    if not how.fallback:
        raise ModelError(
            path=path,
            message=f"Kneser-Ney has no discounts for this text: {fault}\n  is it small or made up? sentences that "
            "are there many times over are best left out\n"
            "  or take the fall-back discounts: --discount-fallback, in Python discount_fallback=True",
        )
    amounts = tuple(float(np.float32(how.fallback[min(j, len(how.fallback) - 1)])) for j in range(3))
    return Discounts(amounts=amounts, fell_back=True)


def _set_marks(probabilities: Doubles, corpus: Corpus) -> None:
    """Set the probability of <s>, which is never predicted; without marks, that of </s> too."""
    probabilities[START] = float(corpus.marks)
    if not corpus.marks:
        probabilities[END] = 0.0


def _log10(values: Doubles) -> Doubles:
    """Return log10 of values up to 1, or a little above by rounding; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.log10(values), 0.0)


# Models of plain counts


def plain_model(corpus: Corpus, order: int, kind: str) -> BackoffModel:
    """Make a model of plain counts, one of :data:`KINDS`; raises UsageError for another."""
    if kind not in KINDS:
        raise UsageError(f"counts are {' or '.join(KINDS)}, not {visible(kind)}")
    levels = count_levels(corpus, order)
    size, ngrams = len(corpus.words) - 2 + corpus.marks, []
    totals: Longs = np.array([levels[0].counts.sum()])
    for length, level in enumerate(levels, 1):
        behind: Longs = np.zeros(len(level), np.int64)  # how often something follows
        if length < order:
            above = levels[length]
            behind = np.bincount(above.contexts, weights=above.counts, minlength=len(level))
        if kind == ADD_ONE:
            whole = level.from_start | (length == order)  # others are only the ends of longer n-grams
            shares = np.where(whole, (level.counts + 1) / (totals[level.contexts] + size), 1 / size)
            backoffs = np.where(level.from_start | (length == order - 1), size / (behind + size), 1.0)
        else:
            shares = level.counts / totals[level.contexts]
            backoffs = np.where(behind > 0, 0.0, 1.0)
        if length == 1:
            _set_marks(shares, corpus)
        ngrams.append(Ngrams(level.contexts, level.words, _log10(shares), _log10(backoffs)))
        totals = behind
    return BackoffModel(words=corpus.words, levels=tuple(ngrams), name=corpus.name, missing=corpus.missing)


# Counting n-grams


def count_levels(corpus: Corpus, order: int) -> list[Level]:
    """Count the n-grams of orders 1 to ``order``; of order 1 all words are rows, <unk> and <s> with count 0.

    Raises UsageError if this needs more memory than there is.
    """
    tokens, size = corpus.tokens, len(corpus.words)
    needed = len(tokens) * (TOKEN_BYTES + ORDER_BYTES * order)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else needed
    for path in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # there is none, or it is "max"
            memory = min(memory, int(Path(path).read_text()))
    if needed > memory:
        amounts = f"{needed / 1e9:.1f} GB of memory for {len(tokens):,} tokens, and there are {memory / 1e9:.1f} GB"
        advice = f"KenLM's lmplz trains on disk: lmplz -o {order} <text.txt >text.arpa"
        raise UsageError(f"training needs about {amounts}\n  {advice}")
    counts = np.bincount(tokens, minlength=size).astype(np.int32)
    counts[START] = 0
    ids, nothing = np.arange(size, dtype=np.int32), np.zeros(size, np.int32)
    levels = [Level(contexts=nothing, words=ids, suffixes=nothing, counts=counts, from_start=ids == START)]
    starts = np.flatnonzero(tokens == START)
    depths = np.arange(len(tokens), dtype=np.int32)
    depths -= np.repeat(starts, np.diff(np.append(starts, len(tokens)))).astype(np.int32)
    rows = tokens.copy()  # of the n-gram that ends at each token
    for length in range(2, order + 1):
        ends = np.flatnonzero(depths >= length - corpus.marks)
        of_places = key_of(rows[ends - 1], tokens[ends])
        keys, inverse, occurrences = np.unique(of_places, return_inverse=True, return_counts=True)
        contexts, suffixes = (keys >> 32).astype(np.int32), np.empty(len(keys), np.int32)
        suffixes[inverse] = rows[ends]
        rows[ends] = inverse
        from_start = levels[-1].from_start[contexts]
        levels.append(Level(contexts, keys.astype(np.int32), suffixes, occurrences.astype(np.int32), from_start))
    return levels
