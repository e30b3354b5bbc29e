"""Baselines: the answers of simple models, trained on a challenge's train, and the protocol of such models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from geval_py.errors import UsageError
from geval_py.modelling import backoff, corpus, gap_models
from geval_py.modelling.arpa import read_arpa
from geval_py.reading import outputs
from geval_py.reading.items import Item
from geval_py.scoring import writing
from geval_py.text import suggestion, visible

TOP = 300
DEFAULT = "ngram-both"


def line_of(words: Sequence[str], probabilities: Sequence[float], rest: float) -> str:
    """Write a line of an output with six significant digits for each number.

    >>> line_of(["the", "a"], [0.5, 0.25], 0.25)
    'the:0.5 a:0.25 :0.25'
    """
    pairs: list[object] = [None] * (2 * len(words))
    pairs[::2], pairs[1::2] = words, probabilities
    return ("%s:%.6g " * len(words)) % tuple(pairs) + f":{max(rest, 0.0):.6g}"


@dataclass
class ShareModel:
    """Answers each item alike: the most frequent words, by their share of the text (``unigram``) or ``uniform``.

    The rest is the share of the words that occur once (Good and Turing); with equal shares, that of one more word.
    The kind ``rest`` knows no word.
    """

    top: int
    kind: str
    line: str = ":1"

    def fit(self, items: Iterable[Item]) -> None:
        """Count the words."""
        if self.kind == "rest":
            return
        shares, rest = unigram_shares(corpus.texts_of(items))
        if self.kind == "uniform":
            rest = 1 / (len(shares) + 1)
            shares = dict.fromkeys(shares, rest)
        listed = dict(list(shares.items())[: self.top or None])
        unlisted = rest + sum(list(shares.values())[len(listed) :])
        self.line = line_of([word.decode() for word in listed], list(listed.values()), unlisted)

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Answer each item by the same line."""
        return (self.line for _ in items)


def unigram_shares(texts: Iterable[corpus.Sentence]) -> tuple[dict[bytes, float], float]:
    """Return the words' shares of a text, the greatest first, and the rest, by which they are discounted."""
    counts = Counter(word for text in texts for word in text)
    total, once = counts.total(), sum(1 for count in counts.values() if count == 1)
    rest = max(1, once) / max(1, total)
    return {word: count / total * (1 - rest) for word, count in counts.most_common()}, rest


class FrequentWordScorer:
    """An n-gram model in an ARPA file, which scores the ``top`` most frequent words of train (0: all).

    A word's probability in a gap is that of the word behind the left context and of the right context behind it.
    """

    def __init__(self, path: str, top: int) -> None:
        self._model, self._top = read_arpa(path), top
        self._words: list[bytes] = []
        self._rest = 1.0

    def fit(self, items: Iterable[Item]) -> None:
        """Choose the most frequent words of the items' texts; the share of all others is the rest."""
        shares, _ = unigram_shares(corpus.texts_of(items))
        listed = dict(list(shares.items())[: self._top or None])
        self._words, self._rest = list(listed), 1.0 - sum(listed.values())

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Answer each item."""
        reach = self._model.order - 1
        for gap in map(corpus.gap_of, items):
            left, right = gap.left[-reach:] if reach else [], gap.right[:reach]
            text = b"".join(b" ".join([*left, word, *right]) + b"\n" for word in self._words)
            logs, _, lengths = self._model.scores(text, bos=False, eos=False)
            in_words = logs.reshape(len(self._words), int(lengths[0]))[:, len(left) :].sum(axis=1)
            shares = 10.0 ** (in_words - in_words.max())
            shares *= (1.0 - self._rest) / shares.sum()
            by_share = np.argsort(-shares, kind="stable").tolist()
            words = [self._words[place].decode(errors="replace") for place in by_share]
            yield line_of(words, shares[by_share].tolist(), self._rest)


class WordModel(Protocol):
    """A model that guesses words in gaps, such as a baseline.

    ``fit`` learns from items with answers. ``predict`` answers each item, in order, by a line of an output or by
    words with their probabilities, in any form that ``format_line`` accepts.
    """

    def fit(self, items: Iterable[Item], /) -> object: ...

    def predict(self, items: Iterable[Item], /) -> Iterable[str | writing.Probabilities]: ...


def baseline(name: str, *, top: int = TOP) -> WordModel:
    """Make a baseline by its name; raises UsageError for an unknown name."""
    if name.startswith("kenlm:"):
        return FrequentWordScorer(name.removeprefix("kenlm:"), top)
    if name not in BASELINES:
        advice = suggestion(name, BASELINES)
        there = f"the baselines are {', '.join(BASELINES)} and kenlm:FILE"
        raise UsageError(message=f"there is no baseline `{visible(name)}`\n  {advice}{there}")
    return BASELINES[name].make(top)


class NgramGapModel:
    """N-gram models of the left context, or of both (:mod:`geval_py.modelling.gap_models`)."""

    def __init__(self, top: int, *, sides: int) -> None:
        self._top, self.sides = top, sides
        self._model: gap_models.GapModel | None = None
        self._texts: backoff.Texts = np.empty(0, np.object_)

    def fit(self, items: Iterable[Item]) -> None:
        """Train the models on the texts of the items, in which windows are joined."""
        learnt = gap_models.learn(corpus.texts_of(items), self.sides)
        self._model, self._texts = gap_models.GapModel(learnt, self._top), learnt.sides[0].texts

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Answer each item; raises UsageError if the model was not trained."""
        if self._model is None:
            raise UsageError(message="the model has learnt nothing yet: call fit first")
        return (
            line_of(self._texts[words].tolist(), probabilities.tolist(), 1.0 - float(probabilities.sum()))
            for words, probabilities in self._model.answers(map(corpus.gap_of, items))
        )


class Baseline(NamedTuple):
    """A baseline: its summary in the help, and what makes its model from the number of words on a line."""

    summary: str
    make: Callable[[int], WordModel]


_MAKERS = (
    Baseline("`:1` in each line, which is no guess", partial(ShareModel, kind="rest")),
    Baseline("all words of train, with equal probabilities", partial(ShareModel, kind="uniform")),
    Baseline("the words of train, with their relative frequencies", partial(ShareModel, kind="unigram")),
    Baseline("words predicted from the left context by 4-grams", partial(NgramGapModel, sides=1)),
    Baseline("words predicted from both contexts by 4-grams (the default)", partial(NgramGapModel, sides=2)),
)
BASELINES = dict(zip(outputs.BASELINES, _MAKERS, strict=True))
