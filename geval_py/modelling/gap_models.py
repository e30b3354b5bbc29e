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
import os
from collections.abc import Sequence
from hashlib import file_digest, sha256
from typing import NamedTuple, TypeAlias

import numpy as np

from geval_py.modelling import backoff, corpus, estimation
from geval_py.reading import files

ORDER = 4
ESTIMATION = estimation.Estimation(order=ORDER, fallback=estimation.FALLBACK, interpolate_unigrams=False)
Answer: TypeAlias = tuple[corpus.Longs, corpus.Doubles]  # the ids of words, the most probable first, and the shares


class GapCounts(NamedTuple):
    """The number of occurrences of each word in the training texts, and a model for each side that is used."""

    counts: corpus.Longs
    sides: tuple[backoff.BackoffModel, ...]  # the left one or both


def learn(texts: Sequence[corpus.Sentence], sides: int) -> GapCounts:
    """Train the models of one side or of both on texts (at least one)."""
    marked = [[word for word in text if word not in corpus.MARKS] for text in texts]
    forward = corpus.Corpus.of(marked)
    swapped = np.arange(len(forward.words), dtype=np.int32)
    swapped[[corpus.START, corpus.END]] = corpus.END, corpus.START
    tokens = forward.tokens
    backward = corpus.Corpus(forward.words, swapped[tokens[::-1]])
    models = tuple(estimation.estimate(side, ESTIMATION).model for side in (forward, backward)[:sides])
    counts = np.bincount(tokens, minlength=len(forward.words))
    counts[[corpus.START, corpus.END]] = 0
    return GapCounts(counts, models)


class GapModel:
    """Predicts the words in gaps; ``top`` words are listed (0: all)."""

    def __init__(self, learnt: GapCounts, top: int) -> None:
        counts = learnt.counts
        self._sides = learnt.sides
        weights = np.ones(len(counts))
        if len(self._sides) > 1:
            shares = np.maximum(counts, 1.0)
            shares[corpus.UNKNOWN] = max(1, int(np.count_nonzero(counts == 1)))
            weights = counts.sum() / shares
        weights[[corpus.START, corpus.END]] = 0.0
        self._weights = weights
        self._base = weights * math.prod(side.levels[0].probabilities for side in self._sides)
        self._base_sum = float(self._base.sum())
        order = np.argsort(-self._base, kind="stable")
        self._top = top or len(counts)
        self._first = order[(order != corpus.UNKNOWN) & (self._base[order] > 0)][: self._top]
        self._taken = np.zeros(len(counts), np.bool_)
        self._places = np.zeros(len(counts), np.int64)

    def answer(self, gap: corpus.GapContext) -> Answer:
        """Return the answer to a gap."""
        contexts = gap.left, gap.right[: ORDER - 1][::-1]
        seen = [side.followers(context) for side, context in zip(self._sides, contexts, strict=False)]
        new = []
        for of_side in seen:
            new.append(of_side.words[~self._taken[of_side.words]])
            self._taken[of_side.words] = True
        named = np.concatenate(new)
        candidates = np.concatenate([named, self._first[~self._taken[self._first]]])
        self._taken[named] = False
        self._places[candidates] = np.arange(len(candidates))
        scores = self._weights[candidates]
        for side, of_side in zip(self._sides, seen, strict=True):
            shares = side.levels[0].probabilities[candidates] * of_side.scale
            shares[self._places[of_side.words]] = of_side.probabilities
            scores = scores * shares
        others = max(self._base_sum - float(self._base[named].sum()), float(self._base[corpus.UNKNOWN]))
        total = others * math.prod(of_side.scale for of_side in seen) + float(scores[: len(named)].sum())
        if total <= 0:
            return candidates[:0], scores[:0]
        probabilities = scores / total
        chosen = backoff.most_probable(candidates, probabilities, self._top)
        chosen = chosen[probabilities[chosen] > 0]
        return candidates[chosen], probabilities[chosen]


def digest_of(path: str | os.PathLike[str]) -> str:
    """Return a digest of a file as it is stored, or of the files in a folder."""
    if os.path.isdir(path):
        inside = [digest_of(os.path.join(path, name)) for name in sorted(os.listdir(path))]
        return sha256("".join(inside).encode()).hexdigest()
    with files.naming(os.fspath(path)), open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()
