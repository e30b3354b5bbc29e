"""A model of KenLM's, ARPA or binary, as a baseline: the most frequent words of train, scored in their context.

Each of the words is put into the gap, and scored with what stands around it: P(w | left) P(right | left w). What the
unigram leaves to the words that are not listed is the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from geval_py.errors import MissingFileError, ModelError, UsageError
from geval_py.modelling.texts import Sentence
from geval_py.modelling.unigrams import line_of, unigram_shares
from geval_py.modelling.windows import Gap, gap_of, texts_of
from geval_py.reading.items import Item


class KenlmModel:
    """A model that the package ``kenlm`` reads; ``top`` words are scored (0: all of train)."""

    def __init__(self, path: str, top: int) -> None:
        self._kenlm, self._model = _open(path)
        self._top = top
        self._words: list[str] = []
        self._rest = 1.0

    def fit(self, items: Iterable[Item]) -> None:
        """Take the most frequent words of the items' texts, and the share of all others as the rest."""
        shares, _ = unigram_shares(texts_of(items))
        listed = list(shares.items())[: self._top or None]
        self._words = [word.decode(errors="replace") for word, _ in listed]
        self._rest = 1.0 - sum(share for _, share in listed)

    def predict(self, items: Iterable[Item]) -> Iterator[str]:
        """Answer each item."""
        return map(self._line, map(gap_of, items))

    def _line(self, gap: Gap) -> str:
        reach = self._model.order - 1
        before = self._kenlm.State()
        self._model.NullContextWrite(before)
        for word in _texts(gap.left[-reach:] if reach else []):
            after = self._kenlm.State()
            self._model.BaseScore(before, word, after)
            before = after
        right = _texts(gap.right[:reach])
        logs = np.array([self._log10(before, word, right) for word in self._words])
        shares = 10.0 ** (logs - logs.max())
        shares *= (1.0 - self._rest) / shares.sum()
        by_share = np.argsort(-shares, kind="stable").tolist()
        return line_of([self._words[place] for place in by_share], shares[by_share].tolist(), self._rest)

    def _log10(self, before: Any, word: str, right: Sequence[str]) -> float:
        """Score a word in its context, and what stands behind it."""
        total = 0.0
        for scored in (word, *right):
            after = self._kenlm.State()
            total += self._model.BaseScore(before, scored, after)
            before = after
        return total


def _texts(words: Sentence) -> list[str]:
    return [word.decode(errors="replace") for word in words]


def _open(path: str) -> tuple[Any, Any]:
    """Import the package and open a model, silently; raises UsageError, MissingFileError and ModelError."""
    if not os.path.isfile(path):
        raise MissingFileError(what="No file with the model", path=path)
    try:
        kenlm = import_module("kenlm")
    except ImportError as error:
        message = (
            "kenlm:FILE needs the package kenlm, which is built from source by cmake and a C++ compiler, in minutes:"
            "\n  pip install ./geval-py[models]"
        )
        raise UsageError(message=message) from error
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm, kenlm.Model(path, config)
    except (OSError, RuntimeError) as error:
        raise ModelError(path=path, message="KenLM cannot read this model") from error
