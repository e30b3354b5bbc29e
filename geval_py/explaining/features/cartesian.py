"""Pairs of features that are on the same items, counted without a square of all features in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geval_py.errors import UsageError

PAIRS_AT_ONCE = 2_000_000
MOST_COUNTED = 2_000_000_000  # on all items together: as many take some minutes
MOST_SHOWN = 10_000_000  # as many take 2 GB

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Keep = Callable[["Pairs"], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of features, the first the smaller: on how many items they are together, with what sums of weights.

    ``sums`` has a row a weight (shape weights x pairs).
    """

    first: Integers
    second: Integers
    counts: Integers
    sums: Floats

    def only(self, wanted: npt.NDArray[np.bool_]) -> Pairs:
        """Give some of the pairs."""
        return Pairs(self.first[wanted], self.second[wanted], self.counts[wanted], self.sums[:, wanted])


def count_pairs(items: Integers, features: Integers, weights: Floats, keep: Keep) -> Pairs:
    """Count the pairs of features on the same item, given where each feature is: aligned items and features.

    ``weights`` has a row a weight and a column an item; those of a pair's items are added. ``keep`` tells which of
    some pairs are wanted; only those are held. A feature is on an item at most once.

    Raises UsageError for more pairs than can be counted in minutes, or held.
    """
    order = np.lexsort((features, items))
    items, features = items[order], features[order]
    ends = np.searchsorted(items, items, side="right")  # where each one's item ends
    by_feature = np.argsort(features, kind="stable")
    following = (ends - np.arange(len(items)) - 1)[by_feature]  # how many features follow it on its item
    _check_number(int(following.sum()), MOST_COUNTED, "to count")
    kept: list[Pairs] = []
    for part in _batches(features[by_feature], following):
        counted = _count(by_feature[part], following[part], items, features, weights)
        kept.append(counted.only(keep(counted)))
        _check_number(sum(len(pairs.counts) for pairs in kept), MOST_SHOWN, "to show")
    return Pairs(
        np.concatenate([np.zeros(0, np.int64), *(pairs.first for pairs in kept)]),
        np.concatenate([np.zeros(0, np.int64), *(pairs.second for pairs in kept)]),
        np.concatenate([np.zeros(0, np.int64), *(pairs.counts for pairs in kept)]),
        np.concatenate([np.zeros((len(weights), 0)), *(pairs.sums for pairs in kept)], axis=1),
    )


def _check_number(pairs: int, most: int, what: str) -> None:
    """Refuse what would take hours, or all memory: a single line of a stranger's output may hold so many words."""
    if pairs > most:
        raise UsageError(
            message=f"there are more than {most} pairs of features {what}\n  take fewer with",
            arguments=("min_cartesian_frequency", "min_frequency"),
        )


def _batches(features: Integers, following: Integers) -> Iterator[slice]:
    """Cut the occurrences, ordered by feature, into parts of whole features with about PAIRS_AT_ONCE pairs."""
    starts = np.append(np.flatnonzero(np.diff(features, prepend=-1)), len(features))
    before = np.concatenate([[0], np.cumsum(following)])[starts]  # pairs before each feature
    start = 0
    while start < len(starts) - 1:
        stop = int(np.searchsorted(before, before[start] + PAIRS_AT_ONCE, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(int(starts[start]), int(starts[stop]))
        start = stop


def _count(places: Integers, following: Integers, items: Integers, features: Integers, weights: Floats) -> Pairs:
    """Count the pairs whose first feature stands at some places."""
    firsts = np.repeat(features[places], following)
    before = np.repeat(np.cumsum(following) - following, following)
    seconds = np.repeat(places, following) + 1 + np.arange(len(firsts)) - before
    owners = items[seconds]
    width = int(features.max(initial=0)) + 1
    keys, pair, counts = np.unique(firsts * width + features[seconds], return_inverse=True, return_counts=True)
    sums = np.array([np.bincount(pair, of_item[owners], len(keys)) for of_item in weights])
    return Pairs(keys // width, keys % width, counts, sums.reshape(len(weights), len(keys)))
