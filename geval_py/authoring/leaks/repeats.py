"""Items that are there twice, documents in two parts, and training windows that overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geval_py.authoring.leaks.hashes import Runs
from geval_py.authoring.leaks.rules import LEAST_NGRAM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geval_py.authoring.leaks.hashes import Hashes
    from geval_py.authoring.leaks.items import Numbers

SAMPLED = 4  # one run in so many is compared: windows that overlap share several


class PartItems:
    """What is compared of all items of a part: the hash of each, its document, and for train a sample of its runs."""

    def __init__(self, path: str, *, samples: bool = False) -> None:
        self.path = path
        self._samples = samples
        self._hashes: list[Hashes] = []
        self._groups: list[Numbers] = []
        self._runs: list[NDArray[np.uint64]] = []
        self._items = 0

    def add(self, runs: Runs) -> None:
        """Add a block of items."""
        self._hashes.append(runs.items())
        self._groups.append(runs.block.groups)
        if self._samples:
            hashes, starts = runs.ngrams(LEAST_NGRAM)
            taken = hashes % np.uint64(SAMPLED) == 0
            items = runs.item_of[starts[taken]]
            groups = runs.block.groups[items].astype(np.uint64)
            self._runs.append(np.stack((hashes[taken], groups, (items + self._items).astype(np.uint64))))
        self._items += runs.block.items

    @property
    def hashes(self) -> Hashes:
        """The hash of each item."""
        return np.concatenate(self._hashes) if self._hashes else np.zeros(0, dtype=np.uint64)

    @property
    def groups(self) -> Numbers:
        """The document of each item."""
        return np.concatenate(self._groups) if self._groups else np.zeros(0, dtype=np.int64)

    def overlapping(self) -> Numbers:
        """Give the items that share a run with another of the same document, among those that are compared."""
        if not self._runs:
            return np.zeros(0, dtype=np.int64)
        hashes, groups, items = np.concatenate(self._runs, axis=1)
        order = np.lexsort((items, groups, hashes))
        hashes, groups, items = hashes[order], groups[order], items[order]
        same = (hashes[1:] == hashes[:-1]) & (groups[1:] == groups[:-1]) & (items[1:] != items[:-1])
        found = np.concatenate((items[1:][same], items[:-1][same]))
        return np.unique(found).astype(np.int64)


def repeated(parts: Sequence[PartItems]) -> list[tuple[list[tuple[int, int, int]], list[tuple[int, int]]]]:
    """Give for each part the items that an earlier part has, and those that the part itself has before.

    The first are triples: item, part, item there; the others pairs: item, item before. Items count from 0.
    """
    first: dict[int, tuple[int, int]] = {}
    result = []
    for number, part in enumerate(parts):
        elsewhere, within = [], []
        hashes = part.hashes
        doubtful = _not_unique(parts, hashes)
        for item in np.flatnonzero(doubtful).tolist():
            of_part, of_item = first.setdefault(int(hashes[item]), (number, item))
            if of_part != number:
                elsewhere.append((item, of_part, of_item))
            elif of_item != item:
                within.append((item, of_item))
        result.append((elsewhere, within))
    return result


def _not_unique(parts: Sequence[PartItems], hashes: Hashes) -> NDArray[np.bool_]:
    """Tell of each hash whether the parts have it more than once."""
    values, counts = np.unique(np.concatenate([part.hashes for part in parts]), return_counts=True)
    return np.isin(hashes, values[counts > 1])


def shared_groups(parts: Sequence[PartItems]) -> list[tuple[Numbers, dict[int, int]]]:
    """Give for each part the first item of each document that an earlier part has, and that part by the document."""
    home: dict[int, int] = {}
    result = []
    for number, part in enumerate(parts):
        groups, items = np.unique(part.groups, return_index=True)
        elsewhere = {group: home[group] for group in groups.tolist() if home.setdefault(group, number) != number}
        shared = np.isin(groups, list(elsewhere))
        result.append((np.sort(items[shared]), elsewhere))
    return result
