"""The word in a gap, by n-gram models of what stands before it and of what stands behind it.

    score(w) = P(w | left) P(w | right) / P(w)

normalised over all words, where the first two are models with modified Kneser-Ney, of the text and of the reversed
text, and P(w) is w's share of the text. Of <unk>, which stands for all words that train does not have, P is the
share of the words that occur once. With the left model alone, score(w) = P(w | left).

A word that no n-gram of an item names scores the same for every item, but for a factor. So the candidates are the
followers of the left neighbour, the predecessors of the right one, and the first words by that score: the result is
exact, and the time does not depend on the vocabulary.
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

from geval_py.errors import UsageError
from geval_py.modelling.corpus import END, MARKS, START, UNKNOWN, Corpus, Ids, Sentence, depths_of
from geval_py.modelling.kneser_ney import FALLBACK, Estimation, estimate
from geval_py.modelling.ngram_model import Doubles, NgramModel, Ngrams
from geval_py.modelling.windows import Gap
from geval_py.reading.rewriting import written_whole
from geval_py.reading.sources import naming
from geval_py.version import __version__

ORDER = 4
AT_A_TIME = 1024  # items whose contexts are looked up together
HOW = Estimation(order=ORDER, fallback=FALLBACK, interpolate_unigrams=False)
Longs = NDArray[np.int64]


class GapCounts(NamedTuple):
    """What is learnt from texts: how often each word occurs, and a model for each side that is looked at."""

    counts: Longs
    sides: tuple[NgramModel, ...]  # the left one or both


def learn(texts: Sequence[Sentence], sides: int) -> GapCounts:
    """Learn from texts (at least one), with one side or both."""
    marked = [[word for word in text if word not in MARKS] for text in texts]
    corpus = Corpus.of(marked)
    corpora = [corpus, _reversed(corpus)][:sides]
    models = tuple(estimate(side, HOW).model for side in corpora)
    counts = np.bincount(corpus.tokens, minlength=len(corpus.words))
    counts[[START, END]] = 0
    return GapCounts(counts, models)


def _reversed(corpus: Corpus) -> Corpus:
    """Turn each sentence around; the words keep their ids."""
    swapped = np.arange(len(corpus.words), dtype=np.int32)
    swapped[[START, END]] = END, START
    tokens = swapped[corpus.tokens[::-1]]
    return Corpus(words=corpus.words, tokens=tokens, depths=depths_of(tokens))


class Answer(NamedTuple):
    """The likeliest words by their ids, from the likeliest on, and their probabilities."""

    words: Longs
    probabilities: Doubles


class GapModel:
    """Fills gaps by what was learnt; ``top`` words are listed (0: all)."""

    def __init__(self, learnt: GapCounts, top: int) -> None:
        counts = learnt.counts
        self._sides = [_Side(model) for model in learnt.sides]
        weights = np.ones(len(counts))
        if len(self._sides) > 1:
            shares = np.maximum(counts, 1.0)
            shares[UNKNOWN] = max(1, int(np.count_nonzero(counts == 1)))
            weights = counts.sum() / shares
        weights[[START, END]] = 0.0
        self._weights = weights
        self._base = weights * math.prod(side.unigrams for side in self._sides)
        self._base_sum = float(self._base.sum())
        order = np.argsort(-self._base, kind="stable")
        self._first = order[(order != UNKNOWN) & (self._base[order] > 0)]
        self._top = top or len(counts)
        self._first = self._first[: self._top]
        self._taken = np.zeros(len(counts), np.bool_)
        self._places = np.zeros(len(counts), np.int64)

    def answers(self, gaps: Iterable[Gap]) -> Iterator[Answer]:
        """Give the answer to each gap."""
        block: list[Gap] = []
        for gap in gaps:
            block.append(gap)
            if len(block) == AT_A_TIME:
                yield from self._answers(block)
                block = []
        yield from self._answers(block)

    def _answers(self, gaps: Sequence[Gap]) -> Iterator[Answer]:
        contexts = ([gap.left[-ORDER + 1 :] for gap in gaps], [gap.right[: ORDER - 1][::-1] for gap in gaps])
        seen = [side.behind(of_side) for side, of_side in zip(self._sides, contexts, strict=False)]
        for of_item in zip(*seen, strict=True):
            yield self._answer(of_item)

    def _answer(self, seen: Sequence[Seen]) -> Answer:
        named = self._united([of_side.words for of_side in seen])
        candidates = np.concatenate([named, self._first[~self._taken[self._first]]])
        self._taken[named] = False
        self._places[candidates] = np.arange(len(candidates))
        scores = self._weights[candidates]
        for side, of_side in zip(self._sides, seen, strict=True):
            shares = side.unigrams[candidates] * of_side.scale
            shares[self._places[of_side.words]] = of_side.probabilities
            scores = scores * shares
        others = max(self._base_sum - float(self._base[named].sum()), float(self._base[UNKNOWN]))
        total = others * math.prod(of_side.scale for of_side in seen) + float(scores[: len(named)].sum())
        return self._best(candidates, scores / total) if total > 0 else Answer(candidates[:0], scores[:0])

    def _united(self, groups: Sequence[Longs]) -> Longs:
        """Unite the words of some groups, each without repetition; they are marked as taken."""
        new = []
        for words in groups:
            new.append(words[~self._taken[words]])
            self._taken[words] = True
        return np.concatenate(new)

    def _best(self, words: Longs, probabilities: Doubles) -> Answer:
        """Choose the likeliest words; of equal ones that which train had first."""
        size = min(self._top, len(words))
        least = np.partition(probabilities, len(words) - size)[len(words) - size]
        above = np.flatnonzero(probabilities > least)
        equal = np.flatnonzero((probabilities == least) & (probabilities > 0))
        equal = equal[np.argsort(words[equal])][: size - len(above)]
        chosen = np.concatenate([above, equal])
        chosen = chosen[np.lexsort((words[chosen], -probabilities[chosen]))]
        return Answer(words[chosen], probabilities[chosen])


class Seen(NamedTuple):
    """The words that were seen behind a context, their probabilities, and the factor of all others' own shares."""

    words: Longs
    probabilities: Doubles
    scale: float


class _Side:
    """The words behind contexts, by one model."""

    def __init__(self, model: NgramModel) -> None:
        self._model = model
        self._words = [level.words.astype(np.int64) for level in model.levels]
        self._probabilities = [10.0**level.log_probabilities for level in model.levels]
        self._backoffs = [10.0**level.log_backoffs for level in model.levels]
        self.unigrams = self._probabilities[0]

    def behind(self, contexts: Sequence[Sentence]) -> Iterator[Seen]:
        """Look up contexts, the nearest word last: what was seen behind each."""
        rows = self._rows(contexts)
        factors = [np.where(of >= 0, back[of], 1.0) for of, back in zip(rows, self._backoffs, strict=False)]
        scales = [np.ones(len(contexts))]
        for factor in reversed(factors):
            scales.insert(0, scales[0] * factor)
        ranges = [self._model.followers(length, of) for length, of in enumerate(rows, 2)]
        bounds = [list(zip(starts.tolist(), ends.tolist(), strict=True)) for starts, ends in ranges]
        per_item = zip(*(scale.tolist() for scale in scales), strict=True)
        for places, of_item in zip(zip(*bounds, strict=True), per_item, strict=True):
            yield self._seen(places, of_item)

    def _seen(self, places: Sequence[tuple[int, int]], scales: Sequence[float]) -> Seen:
        """Take the longest n-gram for each word; scales are those of unigrams, bigrams and so on."""
        start, end = places[0]
        words = self._words[1][start:end]
        probabilities = self._probabilities[1][start:end] * scales[1]
        for length, (start, end) in enumerate(places[1:], 3):
            if start < end:
                longer = np.searchsorted(words, self._words[length - 1][start:end])
                probabilities[longer] = self._probabilities[length - 1][start:end] * scales[length - 1]
        return Seen(words, probabilities, scales[0])

    def _rows(self, contexts: Sequence[Sentence]) -> list[Ids]:
        """Give the rows of the contexts' last word, last two words and so on; -1 for none."""
        ids, longest = self._model.ids, self._model.order - 1
        columns = np.full((longest, len(contexts)), -1, np.int32)
        for place, words in enumerate(contexts):
            for back, word in enumerate(reversed(words)):
                columns[back, place] = ids.get(word, UNKNOWN)
        rows = []
        for length in range(1, longest + 1):
            of = columns[length - 1]
            for shorter in range(length - 1, 0, -1):
                of = self._model.find(length - shorter + 1, of, columns[shorter - 1])
            rows.append(of)
        return rows


# What n-gram baselines learnt, kept between runs: by the digest of the files that they learnt from.


_FIELDS = ("contexts", "words", "log_probabilities", "log_backoffs")


def cache_folder() -> str:
    """Name the folder, which need not be there."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("GEVAL_CACHE") or os.path.join(base, "geval-py")


def digest_of(paths: Sequence[str], sides: int) -> str:
    """Give the digest of files as they are stored, and of what else the result depends on."""
    digest = sha256(repr((__version__, sides, HOW)).encode())
    for path in paths:
        with naming(path), open(path, "rb") as file:
            digest.update(file_digest(file, "sha256").digest())
    return digest.hexdigest()


def load(digest: str) -> GapCounts | None:
    """Give what was learnt of files with a digest; None if it is not there, or broken."""
    try:
        with np.load(_path(digest), allow_pickle=False) as arrays:
            words = arrays["words"].tobytes().split(b"\n")
            sides = tuple(_model(arrays, side, words) for side in range(int(arrays["sides"])))
            return GapCounts(arrays["counts"], sides)
    except (OSError, ValueError, KeyError, EOFError):
        return None


def save(digest: str, learnt: GapCounts) -> None:
    """Keep what was learnt, if that can be."""
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
        with written_whole(_path(digest)) as file:
            file.write(data.getvalue())
    except (OSError, UsageError):  # a folder that cannot be written
        return


def _path(digest: str) -> str:
    return os.path.join(cache_folder(), f"{digest}.npz")


def _model(arrays: np.lib.npyio.NpzFile, side: int, words: list[bytes]) -> NgramModel:
    orders = range(int(arrays[f"order-{side}"]))
    levels = (Ngrams(**{field: arrays[f"{field}-{side}-{order}"] for field in _FIELDS}) for order in orders)
    return NgramModel(words=words, levels=tuple(levels))
