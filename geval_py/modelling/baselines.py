"""Baselines: simple models of word gaps, trained on a challenge's train, and the protocol of all models of gaps."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from geval_py.modelling import corpus, gap_models
from geval_py.modelling.arpa import read_arpa
from geval_py.modelling.ngram_model import NgramModel
from geval_py.reading.items import Item
from geval_py.reading.wordprobs import is_listable

TOP = 300
DEFAULT = "ngram-both"
MARKS = frozenset(mark.decode() for mark in corpus.MARKS)
MIN_REST = 1e-4  # of a line of a language model


class WordModel(Protocol):
    """A model that guesses words in gaps.

    ``fit`` learns from items with answers. ``words`` returns words with their probabilities for the gap between two
    texts; ``candidates`` are words that it may try as well.
    """

    def fit(self, items: Iterable[Item], /) -> object: ...

    def words(self, left: str, right: str, candidates: Sequence[str], /) -> Mapping[str, float]: ...


def likeliest(shares: Mapping[str, float], count: int) -> dict[str, float]:
    """Return the likeliest words with their probabilities, the likeliest first."""
    return dict(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))[:count])


def leaving_a_rest(shares: Mapping[str, float]) -> dict[str, float]:
    """Return probabilities that sum to 1 - MIN_REST at most."""
    listed = math.fsum(shares.values())
    scale = min(1.0, (1 - MIN_REST) / listed) if listed > 0 else 1.0
    return {word: share * scale for word, share in shares.items()}


class ShareModel:
    """The most frequent words in each gap, by their share of the text (``unigram``) or with equal probabilities.

    The rest is the share of the words that occur once (Good and Turing); with equal shares, that of one more word.
    The kind ``rest`` knows no word.
    """

    def __init__(self, top: int, kind: str) -> None:
        self._top, self._kind = top, kind
        self._shares: dict[str, float] | None = {} if kind == "rest" else None

    def fit(self, items: Iterable[Item]) -> None:
        """Count the words."""
        if self._kind != "rest":
            shares = unigram_shares(items)
            if self._kind == "uniform":
                shares = dict.fromkeys(shares, 1 / (len(shares) + 1))
            self._shares = {word.decode(): share for word, share in list(shares.items())[: self._top or None]}

    def words(self, _left: str, _right: str, _candidates: Sequence[str] = ()) -> Mapping[str, float]:
        """Return the same words for each gap."""
        return gap_models.trained(self._shares)


class DocumentModel:
    """The words of a gap's document, by their share of all its inputs; those of the gap's own input count half.

    The rest has as much weight as one more of each word (Witten and Bell, 1991, https://doi.org/10.1109/18.87000).
    """

    def __init__(self, top: int) -> None:
        self._top, self._counts = top, dict[tuple[str, str], Counter[bytes]]()

    def fit(self, items: Iterable[Item]) -> None:
        """Count the words of each document in the inputs of the items to predict."""
        documents = defaultdict[str, Counter[bytes]](Counter)
        for item in items:
            left, right, document = corpus.gap_of(item)
            documents[document].update(corpus.words_in(f"{left} {right}"))
            self._counts[left, right] = documents[document]

    def words(self, left: str, right: str, _candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the likeliest words of the document."""
        window = Counter(corpus.words_in(f"{left} {right}"))
        counts = self._counts.get((left, right), window)
        weights = {word.decode(errors="replace"): count - window[word] / 2 for word, count in counts.items()}
        total = sum(weights.values()) + len(weights)
        return likeliest({word: weight / total for word, weight in weights.items()}, self._top or len(weights))


def unigram_shares(items: Iterable[Item]) -> dict[bytes, float]:
    """Return the words' shares of the items' texts, the greatest first, less that of the words that occur once."""
    lines = corpus.lines_of(corpus.texts_of(items))
    counts = Counter(word for line in lines for word in corpus.split_as_lmplz(line))
    total, once = counts.total(), sum(count == 1 for count in counts.values())
    rest = max(1, once) / max(1, total)
    return {word: count / total * (1 - rest) for word, count in counts.most_common()}


class FrequentWordScorer:
    """An n-gram model in an ARPA file, which scores the ``top`` most frequent words of train (0: all).

    A word's probability in a gap is that of the word behind the left context and of the right context behind it.
    """

    def __init__(self, path: str, top: int) -> None:
        self._model, self._top = read_arpa(path), top
        self._shares: dict[bytes, float] | None = None

    def fit(self, items: Iterable[Item]) -> None:
        """Choose the most frequent words of the items' texts; the share of all others is the rest."""
        self._shares = dict(list(unigram_shares(items).items())[: self._top or None])

    def words(self, left: str, right: str, _candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the words of train, the likeliest first."""
        frequent, reach = gap_models.trained(self._shares), self._model.order - 1
        before, after = corpus.words_in(left)[-reach:] if reach else [], corpus.words_in(right)[:reach]
        text = b"".join(b" ".join([*before, word, *after]) + b"\n" for word in frequent)
        logs, _, _ = self._model.scores(text, bos=False, eos=False)
        in_words = logs.reshape(len(frequent), -1)[:, len(before) :].sum(axis=1)
        shares = 10.0 ** (in_words - in_words.max())
        shares *= math.fsum(frequent.values()) / shares.sum()
        pairs = zip(frequent, shares.tolist(), strict=True)
        return {word.decode(errors="replace"): share for word, share in sorted(pairs, key=lambda pair: -pair[1])}


class NextWordModel:
    """An n-gram model in an ARPA file, by the left context; a word follows, so the text does not end."""

    def __init__(self, path: str, count: int) -> None:
        self._model, self._count = NgramModel.load(path), count

    def fit(self, items: Iterable[Item]) -> None:
        """Learn nothing: the model is trained."""

    def words(self, left: str, _right: str, _candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the likeliest next words."""
        shares = self._model.next_words(left, self._count + len(MARKS))
        goes_on = max(MIN_REST, 1 - shares.get("</s>", 0.0))
        words = [word for word in shares if word not in MARKS and is_listable(word)]
        return leaving_a_rest({word: shares[word] / goes_on for word in words[: self._count]})
