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

import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import file_digest, sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geval_py import errors, version
from geval_py.modelling import corpus, estimation, ngram_model
from geval_py.reading import rewriting, sources

ORDER = 4
AT_A_TIME = 1024  # items whose contexts are looked up together
ESTIMATION = estimation.Estimation(order=ORDER, fallback=estimation.FALLBACK, interpolate_unigrams=False)
_FIELDS = ("contexts", "words", "log_probabilities", "log_backoffs")


class GapCounts(NamedTuple):
    """The number of occurrences of each word in the training texts, and a model for each side that is used."""

    counts: corpus.Longs
    sides: tuple[ngram_model.NgramModel, ...]  # the left one or both


def learn(texts: Sequence[corpus.Sentence], sides: int) -> GapCounts:
    """Train the models of one side or of both on texts (at least one)."""
    marked = [[word for word in text if word not in corpus.MARKS] for text in texts]
    forward = corpus.Corpus.of(marked)
    swapped = np.arange(len(forward.words), dtype=np.int32)
    swapped[[corpus.START, corpus.END]] = corpus.END, corpus.START
    tokens = swapped[forward.tokens[::-1]]
    backward = corpus.Corpus(words=forward.words, tokens=tokens, depths=corpus.depths_of(tokens))
    models = tuple(estimation.estimate(side, ESTIMATION).model for side in (forward, backward)[:sides])
    counts = np.bincount(forward.tokens, minlength=len(forward.words))
    counts[[corpus.START, corpus.END]] = 0
    return GapCounts(counts, models)


class Answer(NamedTuple):
    """The ids of the most probable words, the most probable first, and their probabilities."""

    words: corpus.Longs
    probabilities: corpus.Doubles


class GapModel:
    """Predicts the words in gaps; ``top`` words are listed (0: all)."""

    def __init__(self, learnt: GapCounts, top: int) -> None:
        counts = learnt.counts
        self._sides = [_Side(model) for model in learnt.sides]
        weights = np.ones(len(counts))
        if len(self._sides) > 1:
            shares = np.maximum(counts, 1.0)
            shares[corpus.UNKNOWN] = max(1, int(np.count_nonzero(counts == 1)))
            weights = counts.sum() / shares
        weights[[corpus.START, corpus.END]] = 0.0
        self._weights = weights
        self._base = weights * math.prod(side.unigrams for side in self._sides)
        self._base_sum = float(self._base.sum())
        order = np.argsort(-self._base, kind="stable")
        self._first = order[(order != corpus.UNKNOWN) & (self._base[order] > 0)]
        self._top = top or len(counts)
        self._first = self._first[: self._top]
        self._taken = np.zeros(len(counts), np.bool_)
        self._places = np.zeros(len(counts), np.int64)

    def answers(self, gaps: Iterable[corpus.Gap]) -> Iterator[Answer]:
        """Yield the answer to each gap."""
        block: list[corpus.Gap] = []
        for gap in gaps:
            block.append(gap)
            if len(block) == AT_A_TIME:
                yield from self._answers(block)
                block = []
        yield from self._answers(block)

    def _answers(self, gaps: Sequence[corpus.Gap]) -> Iterator[Answer]:
        contexts = ([gap.left[-ORDER + 1 :] for gap in gaps], [gap.right[: ORDER - 1][::-1] for gap in gaps])
        seen = [side.followers(of_side) for side, of_side in zip(self._sides, contexts, strict=False)]
        for of_item in zip(*seen, strict=True):
            yield self._answer(of_item)

    def _answer(self, seen: Sequence[Followers]) -> Answer:
        named = self._united([of_side.words for of_side in seen])
        candidates = np.concatenate([named, self._first[~self._taken[self._first]]])
        self._taken[named] = False
        self._places[candidates] = np.arange(len(candidates))
        scores = self._weights[candidates]
        for side, of_side in zip(self._sides, seen, strict=True):
            shares = side.unigrams[candidates] * of_side.scale
            shares[self._places[of_side.words]] = of_side.probabilities
            scores = scores * shares
        others = max(self._base_sum - float(self._base[named].sum()), float(self._base[corpus.UNKNOWN]))
        total = others * math.prod(of_side.scale for of_side in seen) + float(scores[: len(named)].sum())
        return self._best(candidates, scores / total) if total > 0 else Answer(candidates[:0], scores[:0])

    def _united(self, groups: Sequence[corpus.Longs]) -> corpus.Longs:
        """Return the words of all groups without repetition, and mark them as taken."""
        new = []
        for words in groups:
            new.append(words[~self._taken[words]])
            self._taken[words] = True
        return np.concatenate(new)

    def _best(self, words: corpus.Longs, probabilities: corpus.Doubles) -> Answer:
        """Choose the most probable words; of equal ones, the first of the training set."""
        size = min(self._top, len(words))
        least = np.partition(probabilities, len(words) - size)[len(words) - size]
        above = np.flatnonzero(probabilities > least)
        equal = np.flatnonzero((probabilities == least) & (probabilities > 0))
        equal = equal[np.argsort(words[equal])][: size - len(above)]
        chosen = np.concatenate([above, equal])
        chosen = chosen[np.lexsort((words[chosen], -probabilities[chosen]))]
        return Answer(words[chosen], probabilities[chosen])


class Followers(NamedTuple):
    """The words that follow a context, their probabilities, and the factor of the shares of all other words."""

    words: corpus.Longs
    probabilities: corpus.Doubles
    scale: float


class _Side:
    """The followers of contexts by one model."""

    def __init__(self, model: ngram_model.NgramModel) -> None:
        self._model = model
        self._words = [level.words.astype(np.int64) for level in model.levels]
        self._probabilities = [10.0**level.log_probabilities for level in model.levels]
        self._backoffs = [10.0**level.log_backoffs for level in model.levels]
        self.unigrams = self._probabilities[0]

    def followers(self, contexts: Sequence[corpus.Sentence]) -> Iterator[Followers]:
        """Yield the followers of each context, given with the nearest word last."""
        rows = self._rows(contexts)
        factors = [np.where(of >= 0, back[of], 1.0) for of, back in zip(rows, self._backoffs, strict=False)]
        scales = [np.ones(len(contexts))]
        for factor in reversed(factors):
            scales.insert(0, scales[0] * factor)
        ranges = [level.followers(of) for level, of in zip(self._model.levels[1:], rows, strict=True)]
        bounds = [list(zip(starts.tolist(), ends.tolist(), strict=True)) for starts, ends in ranges]
        per_item = zip(*(scale.tolist() for scale in scales), strict=True)
        for places, of_item in zip(zip(*bounds, strict=True), per_item, strict=True):
            yield self._followers(places, of_item)

    def _followers(self, places: Sequence[tuple[int, int]], scales: Sequence[float]) -> Followers:
        """Take the longest n-gram for each word; ``scales`` are the factors of unigrams, bigrams and so on."""
        start, end = places[0]
        words = self._words[1][start:end]
        probabilities = self._probabilities[1][start:end] * scales[1]
        for length, (start, end) in enumerate(places[1:], 3):
            if start < end:
                longer = np.searchsorted(words, self._words[length - 1][start:end])
                probabilities[longer] = self._probabilities[length - 1][start:end] * scales[length - 1]
        return Followers(words, probabilities, scales[0])

    def _rows(self, contexts: Sequence[corpus.Sentence]) -> list[corpus.Ids]:
        """Return the rows of the contexts' last word, last two words and so on; -1 if there is none."""
        ids, longest = self._model.ids, self._model.order - 1
        columns = np.full((longest, len(contexts)), -1, np.int32)
        for place, words in enumerate(contexts):
            for back, word in enumerate(reversed(words)):
                columns[back, place] = ids.get(word, corpus.UNKNOWN)
        rows = []
        for length in range(1, longest + 1):
            of = columns[length - 1]
            for shorter in range(length - 1, 0, -1):
                of = self._model.levels[length - shorter].find(of, columns[shorter - 1])
            rows.append(of)
        return rows


def cache_folder() -> str:
    """Return the folder in which trained models are kept between runs; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("GEVAL_CACHE") or os.path.join(base, "geval-py")


def digest_of(paths: Sequence[str], sides: int, reading: Sequence[object]) -> str:
    """Return a digest of files as they are stored, and of everything else that a trained model depends on.

    ``reading`` is what decides how the files are read: the headers and the columns.
    """
    joining = (corpus.SHARED, corpus.OVERLAPPING)
    digest = sha256(
        repr((version.__version__, sides, ESTIMATION, joining, tuple(reading))).encode("utf-8", "replace")
    )
    for path in paths:
        with sources.naming(path), open(path, "rb") as file:
            digest.update(file_digest(file, "sha256").digest())
    return digest.hexdigest()


def load(digest: str) -> GapCounts | None:
    """Load the models trained on the files of a digest; None if they are missing or broken."""
    try:
        with np.load(_path(digest), allow_pickle=False) as arrays:
            words = arrays["words"].tobytes().split(b"\n")
            sides = tuple(_model(arrays, side, words) for side in range(int(arrays["sides"])))
            return GapCounts(arrays["counts"], sides)
    except (OSError, ValueError, KeyError, EOFError):
        return None


def save(digest: str, learnt: GapCounts) -> None:
    """Store trained models, if the folder can be written."""
    arrays: dict[str, NDArray[np.generic]] = {
        "words": np.frombuffer(b"\n".join(learnt.sides[0].words), np.uint8),
        "counts": learnt.counts,
        "sides": np.array(len(learnt.sides)),
    }
    for side, model in enumerate(learnt.sides):
        arrays[f"order-{side}"] = np.array(model.order)
        for order, level in enumerate(model.levels):
            arrays |= {f"{field}-{side}-{order}": getattr(level, field) for field in _FIELDS}
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **arrays)
    try:
        os.makedirs(cache_folder(), exist_ok=True)
        with rewriting.written_whole(_path(digest)) as file:
            file.write(data.getvalue())
    except (OSError, errors.UsageError):
        return


def _path(digest: str) -> str:
    return os.path.join(cache_folder(), f"{digest}.npz")


def _model(arrays: np.lib.npyio.NpzFile, side: int, words: list[bytes]) -> ngram_model.NgramModel:
    orders = range(int(arrays[f"order-{side}"]))
    levels = (
        ngram_model.Ngrams(**{field: arrays[f"{field}-{side}-{order}"] for field in _FIELDS}) for order in orders
    )
    return ngram_model.NgramModel(words=words, levels=tuple(levels))
