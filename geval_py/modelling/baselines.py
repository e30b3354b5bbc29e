"""Baselines: what simple models, trained on a challenge's train, answer for a test set.

A baseline has two methods (:class:`WordModel`), and a user's own model may be one. :data:`BASELINES` are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from geval_py.errors import UsageError
from geval_py.modelling.gaps import Answer, GapCounts, GapModel, learn
from geval_py.modelling.model import Texts
from geval_py.modelling.unigrams import RestModel, ShareModel, line_of
from geval_py.modelling.windows import gap_of, texts_of
from geval_py.reading.items import Item
from geval_py.reading.writing import format_line
from geval_py.text import nearest, visible

if TYPE_CHECKING:
    from geval_py.reading.writing import Probabilities

TOP = 300
DEFAULT = "ngram-both"
SIDES = {"ngram": 1, DEFAULT: 2}


class WordModel(Protocol):
    """A model that fills gaps: what can be a baseline.

    ``fit`` learns from items whose answers are known. ``predict`` answers each item, in order: by a line of an
    output, or by words with their probabilities, as ``format_line`` takes them.
    """

    def fit(self, items: Iterable[Item], /) -> object: ...

    def predict(self, items: Iterable[Item], /) -> Iterable[str | Probabilities]: ...


def predict(
    model: str | WordModel, items: Iterable[Item], *, train: Iterable[Item] | None = None, top: int = TOP
) -> Iterator[str]:
    """Give the lines that a model answers to items, one a line.

    ``model`` is the name of a baseline, with ``top`` words a line (0: all), or a WordModel. With ``train``, it first
    learns from these items; a baseline by its name has to. Raises UsageError for a name that there is not, and for a
    model that does not give one answer an item; ModelError where there is nothing to learn from.
    """
    if isinstance(model, str):
        if train is None:
            raise UsageError(message=f"the baseline `{visible(model)}` has to learn from items: give train=…")
        model = baseline(model, top=top)
    if train is not None:
        model.fit(train)
    return _lines(model, items)


def _lines(model: WordModel, items: Iterable[Item]) -> Iterator[str]:
    taken = given = 0

    def counted() -> Iterator[Item]:
        nonlocal taken
        for item in items:
            taken += 1
            yield item

    source = counted()
    for answer in model.predict(source):
        given += 1
        yield answer if isinstance(answer, str) else format_line(answer)
    taken += sum(1 for _ in source)
    if given != taken:
        raise UsageError(message=f"the model gave {given} answers to {taken} items")


def baseline(name: str, *, top: int = TOP) -> WordModel:
    """Make a baseline by its name; raises UsageError for one that there is not."""
    if name.startswith("kenlm:"):
        from geval_py.modelling.rescoring import KenlmModel

        return KenlmModel(name.removeprefix("kenlm:"), top)
    if name not in BASELINES:
        close = nearest(name, BASELINES)
        advice = "" if close is None else f"did you mean {close}? "
        there = f"the baselines are {', '.join(BASELINES)} and kenlm:FILE"
        raise UsageError(message=f"there is no baseline `{visible(name)}`\n  {advice}{there}")
    return BASELINES[name](top)


class NgramGapModel:
    """N-gram models of the left context, or of both (:mod:`geval_py.modelling.gaps`)."""

    def __init__(self, top: int, *, sides: int) -> None:
        self._top, self._sides = top, sides
        self._model: GapModel | None = None
        self._texts: Texts = np.empty(0, np.object_)

    def fit(self, items: Iterable[Item]) -> None:
        """Train the models on the items' texts, laid back together."""
        self.take(learn(texts_of(items), self._sides))

    def take(self, learnt: GapCounts) -> None:
        """Take what was learnt before."""
        self._model = GapModel(learnt, self._top)
        self._texts = learnt.sides[0].texts

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Answer each item; raises UsageError before anything was learnt."""
        if self._model is None:
            raise UsageError(message="the model has learnt nothing yet: call fit first")
        return map(self._line, self._model.answers(map(gap_of, items)))

    def _line(self, answer: Answer) -> str:
        rest = 1.0 - float(answer.probabilities.sum())
        return line_of(self._texts[answer.words].tolist(), answer.probabilities.tolist(), rest)


BASELINES: dict[str, Callable[[int], WordModel]] = {
    "rest": RestModel,
    "uniform": lambda top: ShareModel(top, uniform=True),
    "unigram": lambda top: ShareModel(top, uniform=False),
    "ngram": lambda top: NgramGapModel(top, sides=SIDES["ngram"]),
    DEFAULT: lambda top: NgramGapModel(top, sides=SIDES[DEFAULT]),
}
SUMMARIES = {
    "rest": "`:1`, which knows nothing",
    "uniform": "all words of train alike",
    "unigram": "the words of train by their share",
    "ngram": "four-grams of the left context",
    DEFAULT: "four-grams of both contexts (the default)",
}
