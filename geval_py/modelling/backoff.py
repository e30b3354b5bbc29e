"""N-gram models with back-off: the model in arrays for fast look-up, and what it predicts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, repeat
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import ModelError
from geval_py.modelling.corpus import (
    END,
    MARKS,
    START,
    UNKNOWN,
    Doubles,
    Ids,
    Longs,
    Sentence,
    TokenScores,
    lines_of,
    with_marks,
)
from geval_py.scoring.kernel.backends import choose_backend

with suppress(ImportError):  # it was not built
    from geval_py.scoring.kernel import _native

Texts = NDArray[np.object_]


class _Fields:
    """Values that are pickled without what they compute once: the kernel's tables and indexes cannot be pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: vars(self)[field.name] for field in fields(cast(Any, self))}


@dataclass(frozen=True)
class Ngrams(_Fields):
    """The n-grams of one order, sorted by context (a row of the order below), then by last word.

    ``log_probabilities`` and ``log_backoffs`` are log10; the back-offs are 0 for the highest order.
    """

    contexts: Ids
    words: Ids
    log_probabilities: Doubles
    log_backoffs: Doubles

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> Any:
        """The index of the kernel."""
        return _native.key_index(self.keys, self.log_probabilities, self.log_backoffs)

    @cached_property
    def keys(self) -> Longs:
        """The context and the last word of each n-gram as one number, sorted."""
        return key_of(self.contexts, self.words)

    @cached_property
    def probabilities(self) -> Doubles:
        """The probability of each n-gram."""
        return 10.0**self.log_probabilities

    def find(self, contexts: Ids, words: Ids) -> Ids:
        """Return the rows of n-grams by context and last word; -1 if there is none, or the context is -1."""
        wanted, keys = key_of(contexts, words), self.keys
        if choose_backend() == "native":
            return np.frombuffer(_native.find_keys(self.index, wanted), np.int32)
        if not len(keys):
            return np.full(len(wanted), -1, np.int32)
        rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[rows] == wanted, rows, -1).astype(np.int32)


def key_of(contexts: Ids, words: Ids) -> Longs:
    """Pack contexts and words into numbers; negative ones for contexts that are not there."""
    return contexts.astype(np.int64) << 32 | words


@dataclass(frozen=True)
class BackoffModel(_Fields):
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

    @property
    def kept(self) -> tuple[int, ...]:
        """The number of n-grams of each order."""
        return tuple(map(len, self.levels))

    def words_of(self, length: int, rows: Ids) -> list[Ids]:
        """Return the words of n-grams, given as rows of their order: an array for each position."""
        columns: list[Ids] = []
        for level in self.levels[length - 1 :: -1]:
            columns.append(level.words[rows])
            rows = level.contexts[rows]
        return columns[::-1]

    def scores(self, text: bytes, *, bos: bool = True, eos: bool = True) -> TokenScores:
        """Score a block of whole lines: log10 probabilities, lengths of n-grams (0: unknown words), tokens by line.

        With ``bos``, <s> is in front of each line; with ``eos``, </s> is predicted at its end. Raises ModelError if
        the model lacks such a mark.
        """
        if self.missing:
            self._check_marks(bos=bos, eos=eos)
        if choose_backend() == "native":
            packed = _native.score_ngrams(*self._prepared, text, bos, eos)
            return np.frombuffer(packed[0]), np.frombuffer(packed[1], np.int32), np.frombuffer(packed[2], np.int64)
        sentences = [*map(bytes.split, lines_of(text))]
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        words = chain.from_iterable(sentences)
        ids = np.fromiter(map(self.ids.get, words, repeat(UNKNOWN)), np.int32, int(lengths.sum()))
        tokens, ends = with_marks(ids, lengths), np.cumsum(lengths + 2)
        depths = (np.arange(len(tokens)) - np.repeat(ends - lengths - 2, lengths + 2)).astype(np.int32)
        predicted = depths > 0
        if not eos:
            predicted &= depths <= np.repeat(lengths, lengths + 2)
        if not bos:
            behind = depths > 0
            tokens, depths, predicted = tokens[behind], depths[behind] - 1, predicted[behind]
        logs, orders = self.token_scores(tokens, depths)
        orders[tokens == UNKNOWN] = 0
        return logs[predicted], orders[predicted], lengths + eos

    @cached_property
    def _prepared(self) -> tuple[Any, tuple[Any, ...]]:
        """The words and the n-grams, as the kernel takes them."""
        table = _native.word_table(b"".join(word + b"\n" for word in self.words), b"")
        return table, tuple(level.index for level in self.levels)

    def _check_marks(self, *, bos: bool, eos: bool) -> None:
        needed = {mark for mark, used in ((MARKS[START], bos), (MARKS[END], eos)) if used}
        missing = sorted(self.missing & needed)
        if missing:
            raise ModelError(
                path=self.name,
                message=f"the model has no {b' and '.join(missing).decode()}\n"
                "  it was made without the marks of sentences: score without them, too "
                "(--no-sentence-marks, in Python bos=False, eos=False)",
            )

    def token_scores(self, tokens: Ids, depths: Ids) -> tuple[Doubles, Ids]:
        """Return the log10 probability of each token, and the length of the n-gram that predicts it.

        Tokens at depth 0 are predicted without a context. The length of an unknown word is 1.
        """
        rows = [tokens]  # for each length, the row of the n-gram that ends at each token; -1 if none does
        logs = self.levels[0].log_probabilities[tokens]
        lengths = np.ones(len(tokens), np.int32)
        for length, level in enumerate(self.levels[1:], 2):
            below, longer = rows[-1], np.full(len(tokens), -1, np.int32)
            places = np.flatnonzero(depths >= length - 1)
            places = places[below[places - 1] >= 0]
            longer[places] = level.find(below[places - 1], tokens[places])
            places = places[longer[places] >= 0]
            logs[places], lengths[places] = level.log_probabilities[longer[places]], length
            rows.append(longer)
        for length in range(1, self.order):
            behind = np.flatnonzero((depths >= length) & (lengths <= length))
            contexts = rows[length - 1][behind - 1]
            behind, contexts = behind[contexts >= 0], contexts[contexts >= 0]
            logs[behind] += self.levels[length - 1].log_backoffs[contexts]
        return logs, lengths

    def followers(self, context: Sentence) -> Followers:
        """Return what is seen behind a context, in which the last word is the nearest."""
        ids = [self.ids.get(word, UNKNOWN) for word in context[-self.order + 1 :]] if self.order > 1 else []
        words, probabilities, scale = np.zeros(0, np.int32), np.zeros(0), 1.0
        for first in range(len(ids)):  # the longest context first: of each word its longest n-gram counts
            row = ids[first]
            for level, word in zip(self.levels[1:], ids[first + 1 :], strict=False):
                row = int(level.find(np.array([row], np.int32), np.array([word], np.int32))[0])
            if row < 0:
                continue
            length = len(ids) - first
            level = self.levels[length]
            rows = np.array([row, row + 1], np.int32)  # of another type, all contexts would be converted
            start, stop = np.searchsorted(level.contexts, rows).tolist()
            listed = level.find(np.full(len(words), row, np.int32), words)
            new = np.ones(stop - start, np.bool_)
            new[listed[listed >= 0] - start] = False
            words = np.concatenate([words, level.words[start:stop][new]])
            probabilities = np.concatenate([probabilities, level.probabilities[start:stop][new] * scale])
            scale *= 10.0 ** float(self.levels[length - 1].log_backoffs[row])
        return Followers(words.astype(np.int64), probabilities, scale)

    @cached_property
    def _by_share(self) -> Longs:
        """The words that can be predicted, the most probable without a context first."""
        words = np.argsort(-self.levels[0].probabilities, kind="stable")
        others: Longs = words[words != START]
        return others

    def next_words(self, context: Sentence, size: int) -> tuple[Longs, Doubles]:
        """Return the most probable words behind a context, which may begin with <s>, and their probabilities.

        The order of the words that are not seen behind the context is always the same: few of them need be touched.
        """
        self._check_marks(bos=MARKS[START] in context, eos=False)
        seen = self.followers(context)
        kept = seen.words != START
        named = seen.words[kept]
        taken = np.zeros(len(self.words), np.bool_)
        taken[named] = True
        others = self._by_share[: size + len(named)]
        others = others[~taken[others]][:size]
        words = np.concatenate([named, others])
        shares = self.levels[0].probabilities[others] * seen.scale
        probabilities = np.concatenate([seen.probabilities[kept], shares])
        chosen = most_probable(words, probabilities, size)
        return words[chosen], probabilities[chosen]


class Followers(NamedTuple):
    """The words that follow a context, their probabilities, and the factor of the shares of all other words."""

    words: Longs
    probabilities: Doubles
    scale: float


def most_probable(words: Longs, probabilities: Doubles, size: int) -> Longs:
    """Return the places of the most probable words, these first; of equal ones, those with the least id."""
    size = min(size, len(words))
    least = np.partition(probabilities, len(words) - size)[len(words) - size] if size else np.inf
    chosen = np.flatnonzero(probabilities >= least)
    return chosen[np.lexsort((words[chosen], -probabilities[chosen]))][:size]
