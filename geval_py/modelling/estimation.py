"""N-gram models estimated from a text: Kneser-Ney as by KenLM's lmplz, add-one, maximum likelihood.

The discounts of interpolated modified Kneser-Ney are those of Chen and Goodman, "An Empirical Study of Smoothing
Techniques for Language Modeling", TR-10-98, 1998, equation 26:
y = n1 / (n1 + 2 n2), D_j = j - (j + 1) y n_(j+1) / n_j for j = 1, 2, 3, where n_j is the number of n-grams with the
adjusted count j.

lmplz has a bug (kpu/kenlm issues 405 and 427): in each order but the highest, the last n-gram in suffix order is
counted in n_j by its count instead of its adjusted count. We do the same, unless exact discounts are wanted.

Texts need not fit into memory. Tokens, n-grams and their numbers are columns (:mod:`geval_py.modelling.columns`), and
all but the vocabulary is read in blocks of a limited size:

1. N-grams are counted order by order, each order from the one before. An n-gram is a row: its context (without the
   last word) is a row of the order below, and so is its suffix (without the first word). A chunk of the tokens gives
   a sorted run of n-grams, by context and then by last word. The runs are merged into the rows of the order.
2. Adjusted counts, discounts, and probabilities are computed row by row. Rows are sorted by context, so that the
   numbers of contexts are read in order, too. Numbers of suffixes are needed in no order: they are picked from as
   much of a column as fits, and again from the next part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geval_py.errors import ModelError, UsageError
from geval_py.modelling.backoff import ArpaRows, BackoffModel, Ngrams, key_of
from geval_py.modelling.columns import Array, NumberColumn, Sizes
from geval_py.modelling.corpus import (
    END,
    MARKS,
    START,
    UNKNOWN,
    Corpus,
    Doubles,
    Flags,
    Ids,
    Longs,
    sorted_with_ranks,
)
from geval_py.text import visible

FALLBACK = (0.5, 1.0, 1.5)
MAX_ORDER = 100
ADD_ONE, MAXIMUM_LIKELIHOOD = "add-one", "maximum-likelihood"
KINDS = (ADD_ONE, MAXIMUM_LIKELIHOOD)


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
            raise UsageError(message=f"the order is a whole number from 1 to {MAX_ORDER}, not {self.order}")
        if len(self.prune) > self.order:
            raise UsageError(message=f"{len(self.prune)} thresholds to prune by, for {self.order} orders")
        if list(self.prune) != sorted(self.prune):
            raise UsageError(
                message=f"the thresholds to prune by fall: {' '.join(map(str, self.prune))}\n"
                "  an n-gram cannot be kept where the shorter one in it goes"
            )
        discounts = self.fallback or ()
        if len(discounts) > len(FALLBACK):
            raise UsageError(message=f"--discount-fallback takes up to 3 discounts; {len(discounts)} were given")
        for count, discount in enumerate(discounts, 1):
            if discount > count:
                raise UsageError(
                    message=f"the discount {discount:g} of n-grams with the count {count} is more than {count}\n"
                    "  --discount-fallback takes up to 3 numbers, each at most 1, 2 and 3; the last one is repeated"
                )

    def threshold(self, length: int) -> int:
        """Return the count up to which n-grams of a length are removed."""
        return self.prune[min(length, len(self.prune)) - 1] if self.prune else 0


class Discounts(NamedTuple):
    """D1, D2 and D3+ of one order; ``fell_back`` if they are the fall-back, because its counts allow no others."""

    amounts: tuple[float, ...]
    fell_back: bool = False


class Level:
    """The n-grams of one order: context and suffix (rows of the order below), last word, number of occurrences.

    Rows are sorted by context and last word, hence by their words from first to last; so those that begin with <s>
    follow each other: ``from_start``. An estimated model also has probabilities, log10 of the back-offs, and which
    n-grams are ``kept``.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.contexts, self.words, self.suffixes = (sizes.column(np.int32) for _ in range(3))
        self.probabilities, self.log_backoffs = (sizes.column(np.float64) for _ in range(2))
        self.counts, self.kept = sizes.column(np.int64), sizes.column(np.bool_)
        self.from_start = range(START, START + 1)

    def __len__(self) -> int:
        return len(self.words)


class Estimated(NamedTuple):
    """A model in columns: its words, the n-grams by order, the discounts, and the name of the text.

    ``counts`` and ``kept`` are the numbers of n-grams of each order before and after pruning.
    """

    words: list[bytes]
    levels: list[Level]
    counts: tuple[int, ...]
    kept: tuple[int, ...]
    discounts: tuple[Discounts, ...]
    name: str
    sizes: Sizes
    missing: frozenset[bytes] = frozenset()  # of the marks

    def model(self) -> BackoffModel:
        """Return the model in arrays, of the n-grams that are kept."""
        ngrams: list[Ngrams] = []
        new_words, new_rows = np.zeros(0, np.int32), np.zeros(1, np.int32)
        for level in self.levels:
            kept = level.kept.read()
            renumbered: Ids = np.cumsum(kept, dtype=np.int32) - 1
            if not ngrams:
                new_words = renumbered
            ngrams.append(
                Ngrams(
                    contexts=new_rows[level.contexts.read()[kept]],
                    words=new_words[level.words.read()[kept]],
                    log_probabilities=_log10(level.probabilities.read()[kept]),
                    log_backoffs=level.log_backoffs.read()[kept],
                )
            )
            new_rows = renumbered
        words = [self.words[number] for number in np.flatnonzero(self.levels[0].kept.read()).tolist()]
        return BackoffModel(words=words, levels=tuple(ngrams), name=self.name, missing=self.missing)

    def arpa_rows(self, length: int) -> Iterator[ArpaRows]:
        """Yield the n-grams of a length that are kept, in blocks, as an ARPA file has them."""
        level, size = self.levels[length - 1], min(self.sizes.rows, 1 << 16)
        for start in range(0, len(level), size):
            kept = level.kept.read(start, start + size)
            rows, columns = np.arange(start, start + len(kept)), []
            for below in self.levels[length - 1 :: -1]:
                first, stop = int(rows[0]), int(rows[-1]) + 1
                columns.append(below.words.read(first, stop)[rows - first][kept])
                rows = below.contexts.read(first, stop)[rows - first]
            backoffs = level.log_backoffs.read(start, start + size)[kept] if length < len(self.levels) else None
            yield columns[::-1], _log10(level.probabilities.read(start, start + size)[kept]), backoffs


def estimate(corpus: Corpus, how: Estimation) -> Estimated:
    """Estimate a Kneser-Ney model; raises ModelError if the text allows no discounts."""
    sizes, words = corpus.sizes, corpus.words
    levels = count_levels(corpus, how.order)
    in_vocabulary = np.ones(len(words), np.bool_)
    if how.vocabulary is not None:
        allowed = {*how.vocabulary, *MARKS}
        in_vocabulary = np.fromiter((word in allowed for word in words), np.bool_, len(words))
    flags = in_vocabulary & (levels[0].counts.read() > how.threshold(1))
    flags[: len(MARKS)] = True
    levels[0].kept.append(flags)
    for length, level in enumerate(levels[1:], 2):  # none is more frequent than its context
        for start in range(0, len(level), sizes.rows):
            contexts, counts = (column.read(start, start + sizes.rows) for column in (level.contexts, level.counts))
            first = int(contexts[0])
            flags = levels[length - 2].kept.read(first, int(contexts[-1]) + 1)[contexts - first]
            flags &= in_vocabulary[level.words.read(start, start + sizes.rows)]
            level.kept.append(flags & (counts > how.threshold(length)))
    discounts = []
    last: int | None = None  # the row of the last n-gram in suffix order, which compares last words first
    for length, level in enumerate(levels, 1):
        adjusted = level.counts if length == len(levels) else _adjusted_counts(level, levels[length], sizes)
        number = np.zeros(6, np.int64)  # of n-grams with each adjusted count up to 4, and with more
        for block in adjusted.blocks(sizes.rows):
            number += np.bincount(np.minimum(block, 5), minlength=6)
        last = len(words) - 1 if length == 1 else _last_in_suffix_order(level, last, sizes)
        if last is not None and not how.exact_discounts:  # lmplz's bug
            for column, change in ((adjusted, -1), (level.counts, 1)):
                number[min(int(column.read(last, last + 1)[0]), 5)] += change
        discounts.append(_find_discounts(number[:5].tolist(), length, how, corpus.name))
        _weigh(levels[:length], adjusted, discounts[-1], how, corpus)
    return Estimated(
        words=words,
        levels=levels,
        counts=tuple(map(len, levels)),
        kept=tuple(sum(int(np.count_nonzero(block)) for block in x.kept.blocks(sizes.rows)) for x in levels),
        discounts=tuple(discounts),
        name=corpus.name,
        sizes=sizes,
        missing=corpus.missing,
    )


def _adjusted_counts(level: Level, above: Level, sizes: Sizes) -> NumberColumn:
    """Return the number of different words in front of each n-gram; the count for those that begin with <s>."""
    adjusted = sizes.column(np.int64)
    for start in range(0, len(level), sizes.picked):
        stop = min(start + sizes.picked, len(level))
        before = np.zeros(stop - start, np.int64)
        for suffixes in above.suffixes.blocks(sizes.rows):
            inside = suffixes[(suffixes >= start) & (suffixes < stop)] - start
            before += np.bincount(inside, minlength=stop - start)
        begin, end = (max(row - start, 0) for row in (level.from_start.start, level.from_start.stop))
        before[begin:end] = level.counts.read(start, stop)[begin:end]
        adjusted.append(before)
    return adjusted


def _last_in_suffix_order(level: Level, suffix: int | None, sizes: Sizes) -> int | None:
    """Return the last row with a suffix, whose first word is the greatest; None if that is <s>, or without a row."""
    row = None
    for start in range(0, len(level), sizes.rows):
        rows = np.flatnonzero(level.suffixes.read(start, start + sizes.rows) == suffix)
        row = start + int(rows[-1]) if len(rows) else row
    return None if row is None or row in level.from_start else row


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


def _weigh(
    levels: Sequence[Level], adjusted: NumberColumn, discounts: Discounts, how: Estimation, corpus: Corpus
) -> None:
    """Compute the probabilities of the highest of some orders, and the back-offs of their contexts."""
    level, sizes = levels[-1], corpus.sizes
    table = np.array((0.0, *discounts.amounts))
    done = 0  # contexts
    for start, stop, contexts in _context_blocks(level, sizes):
        number = int(contexts[-1]) + 1 - done
        counts, kept = adjusted.read(start, stop), level.kept.read(start, stop)
        taken = np.where(kept, table[np.minimum(counts, 3)], counts)
        sums = np.bincount(contexts - done, weights=counts, minlength=number)
        left = np.bincount(contexts - done, weights=taken, minlength=number)
        unused = sums == 0
        sums[unused] = left[unused] = 1.0
        own, gamma = (counts - taken) / sums[contexts - done], left / sums
        if len(levels) == 1:
            share = float(gamma[0])
            if how.interpolate_unigrams:
                share /= max(int(np.count_nonzero(kept)) - 2 + corpus.marks, how.vocabulary_size)
                own += share
            own[UNKNOWN] = share
            _set_marks(own, corpus)
            level.probabilities.append(own)
        else:
            levels[-2].log_backoffs.append(_log10(gamma))
            below = levels[-2].probabilities.pick(level.suffixes.read(start, stop), sizes.picked)
            level.probabilities.append(own + gamma[contexts - done] * below)
        done += number
    if len(levels) > 1:
        levels[-2].log_backoffs.append(np.zeros(len(levels[-2]) - done))
    if len(levels) == how.order:
        level.log_backoffs.append(np.zeros(len(level)))


def _set_marks(probabilities: Doubles, corpus: Corpus) -> None:
    """Set the probability of <s>, which is never predicted; without marks, that of </s> too."""
    probabilities[START] = float(corpus.marks)
    if not corpus.marks:
        probabilities[END] = 0.0


def _context_blocks(level: Level, sizes: Sizes) -> Iterator[tuple[int, int, Ids]]:
    """Yield blocks of rows that hold all n-grams of their contexts: start, stop, contexts."""
    start, size = 0, sizes.rows
    while start < len(level):
        contexts = level.contexts.read(start, start + size)
        stop = start + len(contexts)
        if stop < len(level):
            whole = int(np.searchsorted(contexts, contexts[-1]))
            if not whole:
                size *= 2
                continue
            stop, contexts = start + whole, contexts[:whole]
        yield start, stop, contexts
        start = stop


def _log10(values: Doubles) -> Doubles:
    """Return log10 of values up to 1, or a little above by rounding; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.log10(values), 0.0)


# Models of plain counts


def plain_model(corpus: Corpus, order: int, kind: str) -> BackoffModel:
    """Make a model of plain counts, one of :data:`KINDS`; raises UsageError for another."""
    if kind not in KINDS:
        raise UsageError(message=f"counts are {' or '.join(KINDS)}, not {visible(kind)}")
    levels = count_levels(corpus, order)
    size, ngrams = len(corpus.words) - 2 + corpus.marks, []
    totals: Longs = np.array([levels[0].counts.read().sum()])
    for length, level in enumerate(levels, 1):
        contexts, counts = level.contexts.read(), level.counts.read()
        from_start = np.isin(np.arange(len(level)), level.from_start)
        behind = np.zeros(len(level), np.int64)  # how often something follows
        if length < order:
            above = levels[length]
            behind = np.bincount(above.contexts.read(), weights=above.counts.read(), minlength=len(level))
        if kind == ADD_ONE:
            whole = from_start | (length == order)  # others are only the ends of longer n-grams
            shares = np.where(whole, (counts + 1) / (totals[contexts] + size), 1 / size)
            backoffs = np.where(from_start | (length == order - 1), size / (behind + size), 1.0)
        else:
            shares = counts / totals[contexts]
            backoffs = np.where(behind > 0, 0.0, 1.0)
        if length == 1:
            _set_marks(shares, corpus)
        ngrams.append(Ngrams(contexts, level.words.read(), _log10(shares), _log10(backoffs)))
        totals = behind
    return BackoffModel(words=corpus.words, levels=tuple(ngrams), name=corpus.name, missing=corpus.missing)


# Counting n-grams


def count_levels(corpus: Corpus, order: int) -> list[Level]:
    """Count the n-grams of orders 1 to ``order``; of order 1 all words are rows, <unk> and <s> with count 0."""
    sizes, words = corpus.sizes, len(corpus.words)
    counts, by_word = np.zeros(words, np.int64), sizes.column(np.int32)
    for _, tokens in corpus.chunks():
        counts += np.bincount(tokens, minlength=words)
        by_word.append(sorted_with_ranks(tokens)[0])
    counts[START] = 0
    ids, nothing = np.arange(words, dtype=np.int32), np.zeros(words, np.int32)
    level = Level(sizes)
    level.contexts.append(nothing)
    level.words.append(ids)
    level.suffixes.append(nothing)
    level.counts.append(counts)
    levels, rows = [level], corpus.tokens
    for length in range(2, order + 1):
        level, rows = _count_longer(corpus, rows, by_word, length)
        starts = (
            int(np.count_nonzero(block < levels[-1].from_start.stop)) for block in level.contexts.blocks(sizes.rows)
        )
        level.from_start = range(sum(starts))
        levels.append(level)
    return levels


def _count_longer(
    corpus: Corpus, rows: NumberColumn, by_word: NumberColumn, length: int
) -> tuple[Level, NumberColumn]:
    """Count the n-grams of a length; return them, and the row of the n-gram that ends at each token.

    ``rows`` are those of the n-grams of the length below. ``by_word`` has the places of each chunk, sorted by word.
    Sorting these by context and by rank in that order, packed into one int64, sorts by context and by word:
    ``np.sort`` of int64 takes a tenth of the time of ``np.argsort``.
    """
    sizes = corpus.sizes
    runs = [sizes.column(kind) for kind in (np.int64, np.int32, np.int64)]
    bounds, own_rows = [0], sizes.column(np.int32)
    for start, tokens in corpus.chunks():
        below, starts = rows.read(start, start + len(tokens)), np.flatnonzero(tokens == START)
        depths = np.arange(len(tokens)) - np.repeat(starts, np.diff(np.append(starts, len(tokens))))
        places = by_word.read(start, start + len(tokens))
        places = places[depths[places] >= length - corpus.marks]
        ranks, contexts = sorted_with_ranks(below[places - 1])
        places = places[ranks]
        del ranks
        keys = key_of(contexts, tokens[places])
        del contexts
        new = _is_new(keys)
        own = np.full(len(tokens), -1, np.int32)
        own[places] = np.cumsum(new, dtype=np.int32) - 1
        own_rows.append(own)
        firsts = np.flatnonzero(new)
        columns = (keys[firsts], below[places[firsts]], np.diff(np.append(firsts, len(keys))))
        for column, values in zip(runs, columns, strict=True):
            column.append(values)
        bounds.append(len(runs[0]))
    level, merged = _merge(runs, bounds, sizes)
    of_tokens = sizes.column(np.int32)
    for (start, tokens), first, stop in zip(corpus.chunks(), bounds, bounds[1:], strict=False):
        of_run = np.append(merged.read(first, stop), np.int32(0))  # the last one for -1: no n-gram ends there
        of_tokens.append(of_run[own_rows.read(start, start + len(tokens))])
    return level, of_tokens


def _merge(runs: Sequence[NumberColumn], bounds: Sequence[int], sizes: Sizes) -> tuple[Level, NumberColumn]:
    """Merge sorted runs, which follow each other; return the n-grams, and the row of each row of a run."""
    level, merged = Level(sizes), sizes.column(np.int32)
    starts, stops = list(bounds[:-1]), bounds[1:]
    share = max(1, sizes.rows // max(1, len(starts)))
    while any(start < stop for start, stop in zip(starts, stops, strict=True)):
        keys = [runs[0].read(start, min(start + share, stop)) for start, stop in zip(starts, stops, strict=True)]
        open_ends = [
            block[-1] for block, start, stop in zip(keys, starts, stops, strict=True) if start + len(block) < stop
        ]
        if open_ends:  # what is not greater than the least of them has been read
            keys = [block[: np.searchsorted(block, min(open_ends), side="right")] for block in keys]
        ends = [start + len(block) for start, block in zip(starts, keys, strict=True)]
        suffixes, counts = (
            np.concatenate([column.read(start, end) for start, end in zip(starts, ends, strict=True)])
            for column in runs[1:]
        )
        joined = np.concatenate(keys)
        order = np.argsort(joined, kind="stable")
        joined = joined[order]
        new = _is_new(joined)
        rows = np.empty(len(joined), np.int32)
        rows[order] = np.cumsum(new, dtype=np.int32) + (len(level) - 1)
        firsts = np.flatnonzero(new)
        level.contexts.append(joined[firsts] >> 32)
        level.words.append(joined[firsts] & 0xFFFFFFFF)
        level.suffixes.append(suffixes[order[firsts]])
        level.counts.append(np.add.reduceat(counts[order], firsts))
        for start, part in zip(starts, np.split(rows, np.cumsum(list(map(len, keys)))[:-1]), strict=True):
            merged.append(part, start)
        starts = ends
    return level, merged


def _is_new(keys: Array) -> Flags:
    """Return whether each of some sorted keys differs from the one before."""
    new = np.ones(len(keys), np.bool_)
    new[1:] = keys[1:] != keys[:-1]
    return new
