"""N-gram models of the word in a gap, by its left context or by both contexts.

    score(w) = P(w | left) P(w | right) / P(w)

normalised over all words, where the first two are modified Kneser-Ney models of the text and of the reversed text,
and P(w) is w's share of the text. For <unk>, which stands for all words that are not in the training set, P is the
share of the words that occur once. With the left model alone, score(w) = P(w | left).

The score of a word that is in no n-gram with the item's context is the same for every item, up to a factor. So the
candidates are the followers of the left neighbour, the predecessors of the right one, and the best words by that
score: the result is exact, and the time does not depend on the size of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from geval_py.errors import UsageError
from geval_py.modelling import backoff, corpus, estimation
from geval_py.reading.items import Item

ORDER = 4
_Learnt = TypeVar("_Learnt")


class NgramGapModel:
    """N-gram models of so many words: of the left context or, with two ``sides``, of both. It lists ``top`` words."""

    sides: tuple[backoff.BackoffModel, ...] = ()

    def __init__(self, top: int, *, sides: int, order: int = ORDER) -> None:
        self._top, self._sides, self._order = top, sides, order

    def fit(self, items: Iterable[Item]) -> None:
        """Train the models on the texts of the items, in which windows are joined."""
        text = corpus.corpus_of([("", 1, corpus.texts_of(items))], skip_symbols=True)
        swapped = np.arange(len(text.words), dtype=np.int32)
        swapped[[corpus.START, corpus.END]] = corpus.END, corpus.START
        backward = text._replace(tokens=swapped[text.tokens[::-1]])
        how = estimation.Estimation(order=self._order, fallback=estimation.FALLBACK, interpolate_unigrams=False)
        self.sides = tuple(estimation.estimate(side, how).model for side in (text, backward)[: self._sides])
        self.counts = counts = np.bincount(text.tokens, minlength=len(text.words))
        counts[[corpus.START, corpus.END]] = 0
        weights = np.ones(len(counts))
        if self._sides > 1:
            shares = np.maximum(counts, 1.0)
            shares[corpus.UNKNOWN] = max(1, (counts == 1).sum())
            weights = counts.sum() / shares
        weights[[corpus.START, corpus.END]] = 0.0
        self._weights = weights
        self._base = weights * math.prod(side.levels[0].probabilities for side in self.sides)
        self._base_sum = self._base.sum()
        order = np.argsort(-self._base, kind="stable")
        self._first = order[(order != corpus.UNKNOWN) & (self._base[order] > 0)][: self._top or None]
        self._taken = np.zeros(len(counts), np.bool_)
        self._places = np.zeros_like(counts)

    def words(self, left: str, right: str, _candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the likeliest words, these first; raises UsageError if the model was not trained."""
        sides = trained(self.sides or None)
        contexts = corpus.words_in(left), corpus.words_in(right)[: self._order - 1][::-1]
        seen = [side.followers(context) for side, context in zip(sides, contexts, strict=False)]
        new = []
        for of_side in seen:
            new.append(of_side.words[~self._taken[of_side.words]])
            self._taken[of_side.words] = True
        named = np.concatenate(new)
        candidates = np.concatenate([named, self._first[~self._taken[self._first]]])
        self._taken[named] = False
        self._places[candidates] = np.arange(len(candidates))
        scores = self._weights[candidates]
        for side, of_side in zip(sides, seen, strict=True):
            shares = side.levels[0].probabilities[candidates] * of_side.scale
            shares[self._places[of_side.words]] = of_side.probabilities
            scores = scores * shares
        others = max(self._base_sum - self._base[named].sum(), self._base[corpus.UNKNOWN])
        total = others * math.prod(of_side.scale for of_side in seen) + scores[: len(named)].sum()
        if total <= 0:
            return {}
        probabilities = scores / total
        chosen = backoff.most_probable(candidates, probabilities, self._top or len(candidates))
        chosen = chosen[probabilities[chosen] > 0]
        words = sides[0].texts[candidates[chosen]]
        return dict(zip(words.tolist(), probabilities[chosen].tolist(), strict=True))


def trained(learnt: _Learnt | None) -> _Learnt:
    """Return what a model has learnt; raises UsageError if that is None."""
    if learnt is None:
        raise UsageError("the model has learnt nothing yet: call fit first")
    return learnt
