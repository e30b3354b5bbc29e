"""An n-gram model with back-off: what an ARPA file holds, in arrays in which n-grams are looked up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from geval_py.modelling.texts import Ids
from geval_py.text import visible

Doubles = NDArray[np.float64]
Texts = NDArray[np.object_]


@dataclass(frozen=True, kw_only=True)
class Ngrams:
    """The n-grams of one order, sorted by context, a row of the order below, then by last word.

    ``log_probabilities`` and ``log_backoffs`` are log10; the latter are 0 for the highest order.
    """

    contexts: Ids
    words: Ids
    log_probabilities: Doubles
    log_backoffs: Doubles

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, kw_only=True)
class NgramModel:
    """A model: the word of each id (<unk>, <s> and </s> first), and its n-grams from order 1 up.

    The rows of order 1 are the ids. ``name`` is what the model was made of, for messages. ``missing`` are the marks
    that an ARPA file lacks: a missing <unk> has KenLM's log10 probability of -100.
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
        """The words as texts; bytes that are not UTF-8 are surrogates, which encode to what they were."""
        texts = np.empty(len(self.words), np.object_)
        texts[:] = [word.decode(errors="surrogateescape") for word in self.words]
        return texts

    def words_of(self, length: int, rows: Ids) -> list[Ids]:
        """Give the columns of words of n-grams, given as rows of their order."""
        columns: list[Ids] = []
        for level in self.levels[length - 1 :: -1]:
            columns.append(level.words[rows])
            rows = level.contexts[rows]
        return columns[::-1]

    def text_of(self, length: int, row: int) -> str:
        """Give an n-gram as a text, for messages."""
        columns = self.words_of(length, np.array([row], np.int32))
        return visible(b" ".join(self.words[int(column[0])] for column in columns).decode(errors="replace"))

    @cached_property
    def _keys(self) -> list[NDArray[np.int64]]:
        """Context and last word of each n-gram as one number, by order; in ascending order."""
        return [level.contexts.astype(np.int64) * len(self.words) + level.words for level in self.levels]

    def find(self, length: int, contexts: Ids, words: Ids) -> Ids:
        """Give the rows of n-grams of a length (2 or more) with these contexts and last words; -1 for none."""
        keys = self._keys[length - 1]
        wanted = contexts.astype(np.int64) * len(self.words) + words
        places = np.searchsorted(keys, wanted)
        inside = np.minimum(places, max(len(keys) - 1, 0))
        found = (keys[inside] == wanted) & (contexts >= 0) if len(keys) else np.zeros(len(wanted), np.bool_)
        return np.where(found, inside, -1).astype(np.int32)

    def followers(self, length: int, contexts: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the first row of n-grams of a length with each context, and the one behind the last."""
        keys, wanted = self._keys[length - 1], contexts.astype(np.int64) * len(self.words)
        return np.searchsorted(keys, wanted), np.searchsorted(keys, wanted + len(self.words))

    def rows_of(self, tokens: Ids, depths: Ids) -> list[Ids]:
        """Give, for each length, the row of the n-gram that ends at each token, in its sentence; -1 for none."""
        rows = [tokens]
        for length in range(2, self.order + 1):
            below, found = rows[-1], np.full(len(tokens), -1, np.int32)
            places = np.flatnonzero(depths >= length - 1)
            places = places[below[places - 1] >= 0]
            found[places] = self.find(length, below[places - 1], tokens[places])
            rows.append(found)
        return rows
