"""Kneser-Ney models of texts that do not fit into memory, estimated by sorted runs on disk.

The model is the same as :func:`geval_py.modelling.estimation.estimate` makes, to the last digit. Tokens, n-grams and
their numbers stand in columns, each a temporary file without a name, which the system removes however the process
ends. All but the vocabulary is read in blocks of a limited size:

1. The n-grams of each order are counted in a chunk of the tokens at a time. That gives a sorted run, an n-gram being
   its context (a row of the order below) and its last word. The runs are merged into the rows of the order.
2. Adjusted counts, discounts, and probabilities are computed row by row. Rows are sorted by context, so that the
   numbers of contexts are read in order, too. Numbers of suffixes are needed in no order: they are picked from as
   much of a column as fits, and again from the next part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geval_py.modelling import arpa, backoff, estimation
from geval_py.modelling.corpus import (
    START,
    Corpus,
    Flags,
    Ids,
    depths_of,
    sorted_with_ranks,
)

if TYPE_CHECKING:
    from geval_py.reading.rewriting import Writable

Array = NDArray[Any]


class Sizes(NamedTuple):
    """How much is in memory at a time: tokens of a chunk, rows of a block, and rows that are picked from."""

    tokens: int
    rows: int
    picked: int

    @classmethod
    def of_memory(cls, memory: int) -> Sizes:
        """Return the sizes for so many bytes, at least LEAST_MEMORY: half of that is for the rest of the process.

        A token takes up to 112 bytes while it is sorted, and a row that is picked from up to 24.
        """
        left = memory - LEAST_MEMORY // 2
        return cls(tokens=left // 112, rows=min(left // 256, MOST_ROWS), picked=left // 32)


MOST_ROWS = 1 << 20  # more at a time are not faster
WRITTEN_ROWS = 1 << 16
LEAST_MEMORY = 1 << 28


class Column:
    """Numbers of one type in a temporary file: appended, and read by row."""

    def __init__(self, folder: str | None, kind: type[np.generic]) -> None:
        self._kind = np.dtype(kind)
        self._file = TemporaryFile(dir=folder)
        self._length = 0

    def __del__(self) -> None:
        if "_file" in vars(self):  # it could be made
            self._file.close()

    def __len__(self) -> int:
        return self._length

    def append(self, values: Array) -> None:
        """Append numbers."""
        self.put(self._length, values)

    def put(self, start: int, values: Array) -> None:
        """Write numbers from a row on; rows in front of it may be written later."""
        self._file.seek(start * self._kind.itemsize)
        self._file.write(np.ascontiguousarray(values, self._kind).data)
        self._length = max(self._length, start + len(values))

    def read(self, start: int, stop: int) -> Any:
        """Return the rows from ``start`` to before ``stop``."""
        values = np.empty(max(min(stop, self._length) - start, 0), self._kind)
        self._file.seek(start * self._kind.itemsize)
        self._file.readinto(values.data)
        return values

    def blocks(self, size: int) -> Iterator[Array]:
        """Yield all rows, so many at a time; if there is none, an empty block."""
        for start in range(0, max(len(self), 1), size):
            yield self.read(start, start + size)

    def pick(self, rows: Array, size: int) -> Array:
        """Return the numbers of some rows in any order, looked up in parts of a size."""
        picked = np.empty(len(rows), self._kind)
        for start in range(0, len(self), size):
            part = self.read(start, start + size)
            inside = np.flatnonzero((rows >= start) & (rows < start + len(part)))
            picked[inside] = part[rows[inside] - start]
        return picked


@dataclass(frozen=True, kw_only=True)
class StoredCounts:
    """The n-grams of one order, as in :class:`geval_py.modelling.estimation.NgramCounts`, in columns."""

    contexts: Column
    words: Column
    suffixes: Column
    counts: Column
    from_start: Column
    last: int | None = None

    def __len__(self) -> int:
        return len(self.words)


class StoredLevel(NamedTuple):
    """The n-grams of a model of one order; ``kept`` says whether each is written."""

    contexts: Column
    words: Column
    probabilities: Column
    log_backoffs: Column
    kept: Column


class StoredModel(NamedTuple):
    """A model in columns, with the number of n-grams of each order before and after pruning, and the discounts."""

    words: list[bytes]
    levels: list[StoredLevel]
    counts: tuple[int, ...]
    kept: tuple[int, ...]
    discounts: tuple[estimation.Discounts, ...]


class StoredTokens:
    """The tokens of a text in chunks of whole sentences; ``beginning`` are the first ones."""

    def __init__(self, parts: Iterable[Ids], folder: str | None, size: int) -> None:
        self.column = Column(folder, np.int32)
        self.bounds = [0]
        self.beginning: Ids = np.zeros(0, np.int32)
        for part in parts:
            if not len(self.column):
                self.beginning = part
            elif len(self.column) + len(part) - self.bounds[-1] > size:
                self.bounds.append(len(self.column))
            self.column.append(part)
        self.bounds.append(len(self.column))

    def __iter__(self) -> Iterator[tuple[int, Ids]]:
        """Yield the chunks with the place of their first token."""
        for start, stop in zip(self.bounds, self.bounds[1:], strict=False):
            yield start, self.column.read(start, stop)


class Estimator:
    """Estimates a model of stored tokens; raises ModelError as :func:`geval_py.modelling.estimation.estimate`."""

    def __init__(
        self, corpus: Corpus, tokens: StoredTokens, how: estimation.Estimation, folder: str | None, sizes: Sizes
    ) -> None:
        self._corpus, self._tokens, self._how = corpus, tokens, how
        self._folder, self._sizes = folder, sizes

    def _column(self, kind: type[np.generic]) -> Column:
        return Column(self._folder, kind)

    def _new_level(self) -> StoredCounts:
        contexts, words, suffixes = (self._column(np.int32) for _ in range(3))
        counts, from_start = self._column(np.int64), self._column(np.bool_)
        return StoredCounts(contexts=contexts, words=words, suffixes=suffixes, counts=counts, from_start=from_start)

    def estimate(self) -> StoredModel:
        """Count, and compute all numbers."""
        levels = self._count()
        adjusted, discounts = [], []
        for length, level in enumerate(levels, 1):
            column = level.counts if length == len(levels) else self._adjusted(level, levels[length])
            adjusted.append(column)
            discounts.append(self._discounts(level, column, length))
        kept = self._kept(levels)
        return StoredModel(
            words=self._corpus.words,
            levels=self._weighted(levels, adjusted, discounts, kept),
            counts=tuple(map(len, levels)),
            kept=tuple(
                sum(int(np.count_nonzero(block)) for block in flags.blocks(self._sizes.rows)) for flags in kept
            ),
            discounts=tuple(discounts),
        )

    # Counting

    def _count(self) -> list[StoredCounts]:
        """Count the n-grams of all orders, each from the one below."""
        number, order = len(self._corpus.words), self._how.order
        counts = sum(np.bincount(tokens, minlength=number) for _, tokens in self._tokens)
        rows, by_word = self._tokens.column, self._column(np.int32)
        last = _LastNgram(number - 1)
        for start, tokens in self._tokens:
            by_word.append(sorted_with_ranks(tokens)[0])
            last.look(start, tokens, rows.read(start, start + len(tokens)))
        words = estimation.counted_words(np.asarray(counts), None if order == 1 else last.next_row())
        level = replace(self._new_level(), last=words.last)
        for name in ("contexts", "words", "suffixes", "counts", "from_start"):
            getattr(level, name).append(getattr(words, name))
        levels = [level]
        for length in range(2, order + 1):
            level_of, rows = self._count_longer(length, rows, by_word)
            for start, tokens in self._tokens:
                last.look(start, tokens, rows.read(start, start + len(tokens)))
            levels.append(replace(level_of, last=None if length == order else last.next_row()))
        return levels

    def _count_longer(self, length: int, rows: Column, by_word: Column) -> tuple[StoredCounts, Column]:
        """Count the n-grams of a length; return them, and the row of the n-gram that ends at each token."""
        runs = [self._column(kind) for kind in (np.int64, np.int32, np.int64, np.bool_)]
        bounds, own_rows = [0], self._column(np.int32)
        for start, tokens in self._tokens:
            below, depths = rows.read(start, start + len(tokens)), depths_of(tokens)
            places = by_word.read(start, start + len(tokens))
            places = places[depths[places] >= length - 1]
            ranks, contexts = sorted_with_ranks(below[places - 1])
            places = places[ranks]
            del ranks
            keys = backoff.key_of(contexts, tokens[places])
            del contexts
            new = _is_new(keys)
            own = np.full(len(tokens), -1, np.int32)
            own[places] = np.cumsum(new, dtype=np.int32) - 1
            own_rows.append(own)
            firsts = np.flatnonzero(new)
            first_places = places[firsts]
            counts = np.diff(np.append(firsts, len(keys)))
            columns = (keys[firsts], below[first_places], counts, depths[first_places] == length - 1)
            for column, values in zip(runs, columns, strict=True):
                column.append(values)
            bounds.append(len(runs[0]))
        level, merged = self._merge(runs, bounds)
        rows = self._column(np.int32)
        for (start, tokens), first, stop in zip(self._tokens, bounds, bounds[1:], strict=False):
            own = own_rows.read(start, start + len(tokens))
            of_run = np.append(merged.read(first, stop), np.int32(0))  # the last one for -1: no n-gram ends there
            rows.append(of_run[own])
        return level, rows

    def _merge(self, runs: Sequence[Column], bounds: Sequence[int]) -> tuple[StoredCounts, Column]:
        """Merge sorted runs, which follow each other; return the n-grams, and the row of each row of a run."""
        level, merged = self._new_level(), self._column(np.int32)
        starts, stops = list(bounds[:-1]), bounds[1:]
        share = max(1, self._sizes.rows // max(1, len(starts)))
        while any(start < stop for start, stop in zip(starts, stops, strict=True)):
            keys = [runs[0].read(start, min(start + share, stop)) for start, stop in zip(starts, stops, strict=True)]
            open_ends = [
                block[-1] for block, start, stop in zip(keys, starts, stops, strict=True) if start + len(block) < stop
            ]
            if open_ends:  # what is not greater than the least of them has been read
                keys = [block[: np.searchsorted(block, min(open_ends), side="right")] for block in keys]
            ends = [start + len(block) for start, block in zip(starts, keys, strict=True)]
            suffixes, counts, from_start = (
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
            level.from_start.append(from_start[order[firsts]])
            for start, part in zip(starts, np.split(rows, np.cumsum(list(map(len, keys)))[:-1]), strict=True):
                merged.put(start, part)
            starts = ends
        return level, merged

    # Discounts

    def _adjusted(self, level: StoredCounts, above: StoredCounts) -> Column:
        """Return the adjusted counts of an order, from the n-grams of the next one."""
        adjusted = self._column(np.int64)
        for start in range(0, len(level), self._sizes.picked):
            stop = min(start + self._sizes.picked, len(level))
            before = np.zeros(stop - start, np.int64)
            for suffixes in above.suffixes.blocks(self._sizes.rows):
                inside = suffixes[(suffixes >= start) & (suffixes < stop)] - start
                before += np.bincount(inside, minlength=stop - start)
            from_start = level.from_start.read(start, stop)
            adjusted.append(np.where(from_start, level.counts.read(start, stop), before))
        return adjusted

    def _discounts(self, level: StoredCounts, adjusted: Column, length: int) -> estimation.Discounts:
        counts = np.sum([estimation.counts_of_counts(block) for block in adjusted.blocks(self._sizes.rows)], axis=0)
        if level.last is not None and not self._how.exact_discounts:
            own, raw = (int(column.read(level.last, level.last + 1)[0]) for column in (adjusted, level.counts))
            estimation.imitate_bug(counts, own, raw)
        return estimation.find_discounts(counts, length, fallback=self._how.fallback, path=self._corpus.name)

    # Probabilities

    def _kept(self, levels: Sequence[StoredCounts]) -> list[Column]:
        """Return whether each n-gram is kept, by order."""
        in_vocabulary = estimation.words_in_vocabulary(self._corpus.words, self._how)
        known, kept = [self._column(np.bool_)], [self._column(np.bool_)]
        known[0].append(in_vocabulary)
        kept[0].append(estimation.kept_words(in_vocabulary, levels[0].counts.read(0, len(levels[0])), self._how))
        for length, level in enumerate(levels[1:], 2):
            known.append(self._column(np.bool_))
            kept.append(self._column(np.bool_))
            for start in range(0, len(level), self._sizes.rows):
                stop = min(start + self._sizes.rows, len(level))
                contexts = level.contexts.read(start, stop)
                of_contexts = known[-2].read(int(contexts[0]), int(contexts[-1]) + 1)
                flags = of_contexts[contexts - contexts[0]] & in_vocabulary[level.words.read(start, stop)]
                known[-1].append(flags)
                kept[-1].append(flags & (level.counts.read(start, stop) > self._how.threshold(length)))
        return kept

    def _weighted(
        self,
        levels: Sequence[StoredCounts],
        adjusted: Sequence[Column],
        discounts: Sequence[estimation.Discounts],
        kept: Sequence[Column],
    ) -> list[StoredLevel]:
        """Compute the probabilities of all n-grams, and the back-offs of their contexts."""
        weighted: list[StoredLevel] = []
        for length, level in enumerate(levels, 1):
            probabilities, log_backoffs = self._column(np.float64), self._column(np.float64)
            done = 0  # contexts
            for start, stop, contexts in self._context_blocks(level):
                last = int(contexts[-1]) + 1
                counts, flags = adjusted[length - 1].read(start, stop), kept[length - 1].read(start, stop)
                own, gamma = estimation.discounted(contexts - done, counts, discounts[length - 1], flags, last - done)
                if length == 1:
                    size = int(np.count_nonzero(flags)) - 1
                    probabilities.append(estimation.word_probabilities(own, float(gamma[0]), size, self._how))
                else:
                    weighted[-1].log_backoffs.append(estimation.log10(gamma))
                    below = weighted[-1].probabilities.pick(level.suffixes.read(start, stop), self._sizes.picked)
                    probabilities.append(own + gamma[contexts - done] * below)
                done = last
            if length > 1:
                weighted[-1].log_backoffs.append(np.zeros(len(levels[length - 2]) - done))
            weighted.append(StoredLevel(level.contexts, level.words, probabilities, log_backoffs, kept[length - 1]))
        return weighted

    def _context_blocks(self, level: StoredCounts) -> Iterator[tuple[int, int, Ids]]:
        """Yield blocks of rows that hold all n-grams of their contexts: start, stop, contexts."""
        start, size = 0, self._sizes.rows
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


def _is_new(keys: Array) -> Flags:
    """Whether each of some sorted keys differs from the one before."""
    new = np.ones(len(keys), np.bool_)
    new[1:] = keys[1:] != keys[:-1]
    return new


class _LastNgram:
    """The last n-gram of each order in suffix order, as in :mod:`geval_py.modelling.estimation`, of chunks of tokens.

    All chunks are looked at with the rows of an order; then :meth:`next_row` returns the row of its last n-gram.
    """

    def __init__(self, word: int) -> None:
        self._first = word  # the n-gram's first word; START if there is none
        self._length = 0
        self._places: Array = np.zeros(0, np.int64)  # where the n-gram ends
        self._seen: list[tuple[Array, Array, Array]] = []

    def look(self, start: int, tokens: Ids, rows: Ids) -> None:
        """Look for the n-gram in a chunk."""
        if self._length == 0:
            places = np.flatnonzero(tokens == self._first)
        else:
            places = self._places[(self._places >= start) & (self._places < start + len(tokens))] - start
        self._seen.append((places + start, tokens[places - self._length], rows[places]))

    def next_row(self) -> int | None:
        """Return the row of the order's last n-gram, and turn to the next order; None if it begins with <s>."""
        places, words, rows = (np.concatenate(parts) for parts in zip(*self._seen, strict=True))
        self._seen = []
        self._length += 1
        first = words.max() if len(words) else START
        self._places = places[words == first] if first != START else places[:0]
        return int(rows[words == first][0]) if len(self._places) else None


def write_arpa(model: StoredModel, file: Writable, rows: int = WRITTEN_ROWS) -> None:
    """Write a model as :func:`geval_py.modelling.arpa.write_arpa` does, so many rows at a time."""
    words = backoff.BackoffModel(words=model.words, levels=())
    file.write(arpa.arpa_head(model.kept))
    for length, level in enumerate(model.levels, 1):
        file.write(arpa.section_head(length))
        for start in range(0, len(level.words), rows):
            stop = min(start + rows, len(level.words))
            flags = level.kept.read(start, stop)
            columns = [column[flags] for column in _words_of(model.levels[:length], start, stop)]
            backoffs = level.log_backoffs.read(start, stop)[flags] if length < len(model.levels) else None
            logs = estimation.log10(level.probabilities.read(start, stop)[flags])
            file.write(arpa.arpa_rows(words, columns, logs, backoffs))
    file.write(arpa.ARPA_END)


def _words_of(levels: Sequence[StoredLevel], start: int, stop: int) -> list[Ids]:
    """Return the words of the n-grams in some rows of the last level: an array for each position."""
    columns: list[Ids] = []
    rows = np.arange(start, stop)
    for level in levels[::-1]:
        first, last = int(rows[0]), int(rows[-1]) + 1
        columns.append(level.words.read(first, last)[rows - first])
        rows = level.contexts.read(first, last)[rows - first]
    return columns[::-1]
