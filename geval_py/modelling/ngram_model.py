"""An n-gram model with back-off, as in an ARPA file, in arrays for fast look-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geval_py.modelling.corpus import MARKS, Doubles, Ids, Longs
from geval_py.tables.table import Column, Table
from geval_py.text import visible
from geval_py.version import __version__

Texts = NDArray[np.object_]
UNKNOWN_CONVENTION = (
    "a word that the model does not have is <unk>, with the probability that the model gives to it: perplexities "
    "including OOVs compare only between models with the same vocabulary and the same convention for <unk>"
)


@dataclass(frozen=True, kw_only=True)
class Ngrams:
    """The n-grams of one order, sorted by context (a row of the order below), then by last word.

    ``log_probabilities`` and ``log_backoffs`` are log10; the back-offs are 0 for the highest order.
    """

    contexts: Ids
    words: Ids
    log_probabilities: Doubles
    log_backoffs: Doubles

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, kw_only=True)
class NgramModel:
    """A model: the words by id (<unk>, <s> and </s> first), and the n-grams by order, from 1.

    The rows of order 1 are the ids. ``name`` is the file that the model was made from, for messages. ``missing`` are
    the marks that an ARPA file lacks; a missing <unk> has KenLM's log10 probability of -100.
    """

    words: list[bytes]
    levels: tuple[Ngrams, ...]
    name: str = ""
    missing: frozenset[bytes] = frozenset()

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.levels)

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """The id of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def texts(self) -> Texts:
        """The words as texts; bytes that are not UTF-8 are surrogates, which encode to the same bytes."""
        texts = np.empty(len(self.words), np.object_)
        texts[:] = [word.decode(errors="surrogateescape") for word in self.words]
        return texts

    def words_of(self, length: int, rows: Ids) -> list[Ids]:
        """Return the words of n-grams, given as rows of their order: an array for each position."""
        columns: list[Ids] = []
        for level in self.levels[length - 1 :: -1]:
            columns.append(level.words[rows])
            rows = level.contexts[rows]
        return columns[::-1]

    def text_of(self, length: int, row: int) -> str:
        """Return an n-gram as a text, for messages."""
        columns = self.words_of(length, np.array([row], np.int32))
        return visible(b" ".join(self.words[int(column[0])] for column in columns).decode(errors="replace"))

    @cached_property
    def _keys(self) -> list[Longs]:
        """The context and the last word of each n-gram as one number, sorted, for each order."""
        return [level.contexts.astype(np.int64) * len(self.words) + level.words for level in self.levels]

    def find(self, length: int, contexts: Ids, words: Ids) -> Ids:
        """Return the rows of n-grams of a length (2 or more) by context and last word; -1 if there is none."""
        keys = self._keys[length - 1]
        wanted = contexts.astype(np.int64) * len(self.words) + words
        places = np.searchsorted(keys, wanted)
        inside = np.minimum(places, max(len(keys) - 1, 0))
        found = (keys[inside] == wanted) & (contexts >= 0) if len(keys) else np.zeros(len(wanted), np.bool_)
        return np.where(found, inside, -1).astype(np.int32)

    def followers(self, length: int, contexts: Ids) -> tuple[Longs, Longs]:
        """Return the first row of the n-grams of a length with each context, and the row behind the last."""
        keys, wanted = self._keys[length - 1], contexts.astype(np.int64) * len(self.words)
        return np.searchsorted(keys, wanted), np.searchsorted(keys, wanted + len(self.words))

    def rows_of(self, tokens: Ids, depths: Ids) -> list[Ids]:
        """Return, for each length, the row of the n-gram that ends at each token of a sentence; -1 if none does."""
        rows = [tokens]
        for length in range(2, self.order + 1):
            below, found = rows[-1], np.full(len(tokens), -1, np.int32)
            places = np.flatnonzero(depths >= length - 1)
            places = places[below[places - 1] >= 0]
            found[places] = self.find(length, below[places - 1], tokens[places])
            rows.append(found)
        return rows


def model_table(model: NgramModel) -> Table:
    """Return a table of the sizes of a model."""
    rows: list[Sequence[object]] = [("order", model.order)]
    rows += [(f"{order}-grams", count) for order, count in enumerate(_counts(model), 1)]
    rows.append(("words", len(model.words) - len(MARKS)))
    if model.missing:
        rows.append(("missing", " ".join(sorted(mark.decode() for mark in model.missing))))
    return Table([Column(name="what"), Column(name="value")], rows)


def model_document(model: NgramModel) -> dict[str, Any]:
    """Return the sizes of a model as a JSON document, with all words of the vocabulary."""
    return {
        "version": __version__,
        "order": model.order,
        "ngrams": _counts(model),
        "missing": sorted(mark.decode() for mark in model.missing),
        "vocabulary": model.texts[len(MARKS) :].tolist(),
    }


def _counts(model: NgramModel) -> list[int]:
    """Count the n-grams of each order, as the ARPA file does."""
    counts = [len(level) for level in model.levels]
    counts[0] -= len(model.missing)
    return counts
