"""Baselines that look at no context: the rest alone, all words alike, each by its share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from geval_py.modelling.texts import Sentence
from geval_py.modelling.windows import texts_of
from geval_py.reading.items import Item


def line_of(words: Sequence[str], probabilities: Sequence[float], rest: float) -> str:
    """Write a line with six significant digits a number; what is not listed gets the rest.

    >>> line_of(["the", "a"], [0.5, 0.25], 0.25)
    'the:0.5 a:0.25 :0.25'
    """
    pairs: list[object] = [None] * (2 * len(words))
    pairs[::2], pairs[1::2] = words, probabilities
    return ("%s:%.6g " * len(words)) % tuple(pairs) + f":{max(rest, 0.0):.6g}"


class RestModel:
    """Knows nothing: ``:1`` for each item."""

    def __init__(self, top: int) -> None:
        del top  # it lists no word

    def fit(self, items: Iterable[Item]) -> None:
        """Learn nothing."""

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Give all mass to the rest."""
        return (":1" for _ in items)


class ShareModel:
    """The same for each item: the most frequent words, by their share of the text, or all alike.

    By their share, the rest of them are the words that occur once (Good and Turing).
    """

    def __init__(self, top: int, *, uniform: bool) -> None:
        self._top, self._uniform = top, uniform
        self._line = ":1"

    def fit(self, items: Iterable[Item]) -> None:
        """Count the words."""
        shares, rest = _uniform(texts_of(items)) if self._uniform else unigram_shares(texts_of(items))
        listed = dict(list(shares.items())[: self._top or None])
        unlisted = rest + sum(list(shares.values())[len(listed) :])
        self._line = line_of([word.decode() for word in listed], list(listed.values()), unlisted)

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Give the line."""
        return (self._line for _ in items)


def unigram_shares(texts: Iterable[Sentence]) -> tuple[dict[bytes, float], float]:
    """Give the words' shares of a text, the greatest first, without the share of words that occur once; and that."""
    counts = Counter(word for text in texts for word in text)
    total, once = counts.total(), sum(1 for count in counts.values() if count == 1)
    rest = max(1, once) / max(1, total)
    return {word: count / total * (1 - rest) for word, count in counts.most_common()}, rest


def _uniform(texts: Iterable[Sentence]) -> tuple[dict[bytes, float], float]:
    """Give each word the same share, and one more to what train does not have."""
    shares, _ = unigram_shares(texts)
    share = 1 / (len(shares) + 1)
    return dict.fromkeys(shares, share), share
