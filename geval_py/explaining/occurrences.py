"""Occurrences of features on items: on documents of items, and of pairs of features on the same item.

No matrix of all features, nor of all features and documents, is held in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.significance import Array, Flags, Integers
from geval_py.explaining.statistics import centred_ranks
from geval_py.scoring.kernel import backends

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents


PAIRS_AT_ONCE = 2_000_000
MOST_COUNTED = 2_000_000_000  # on all items together: counting as many takes some minutes
MOST_SHOWN = 10_000_000  # as many take 2 GB


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Aligned items and features, both numbered from 0; a feature is on an item at most once."""

    items: Integers
    features: Integers

    @classmethod
    def joined(cls, parts: Sequence[Occurrences]) -> Occurrences:
        """Join occurrences of different features, or items."""
        if len(parts) == 1:
            return parts[0]
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(part.items for part in parts)]),
            np.concatenate([none, *(part.features for part in parts)]),
        )

    def only(self, wanted: Integers, features: int) -> Occurrences:
        """Keep the wanted features, out of ``features``, and renumber them from 0."""
        if np.array_equal(wanted, np.arange(features)):
            return self
        place = np.full(features, -1)
        place[wanted] = np.arange(len(wanted))
        return self.renumbered(place)

    def renumbered(self, place: Integers) -> Occurrences:
        """Renumber features; drop those with a negative number."""
        numbers = place[self.features]
        kept = np.flatnonzero(numbers >= 0)  # which, unlike a choice by flags, has no branch to predict
        return (
            Occurrences(self.items[kept], numbers[kept])
            if len(kept) < len(numbers)
            else replace(self, features=numbers)
        )

    def sums(self, values: Array, features: int) -> Array:
        """Sum the values of the items of each feature; ``values`` has one for each item."""
        sums: Array = np.bincount(self.features, values[self.items], features).astype(np.float64)
        return sums

    def sums_of_rows(self, rows: Array, features: int) -> Array:
        """Sum the rows of the items of each feature, a row for each item; return a column for each feature."""
        sums = np.zeros((features, rows.shape[1]))
        backends.add_rows(sums, rows, self.items, self.features)
        return sums.T

    def vector(self, feature: int, items: int) -> Array:
        """Return 1 for each item with a feature, and 0 for each other item."""
        has = np.zeros(items)
        has[self.items[self.features == feature]] = 1
        return has


@dataclass(frozen=True, slots=True, eq=False)
class Crossed:
    """Features on documents: aligned ``features``, numbers of a ``document``, and ``counts`` of its items with it.

    ``pair`` is the place of each occurrence's feature and document in these.
    """

    occurrences: Occurrences
    documents: Documents
    features: Integers
    document: Integers
    counts: Array
    pair: Integers

    @classmethod
    def of(cls, occurrences: Occurrences, documents: Documents) -> Crossed:
        """Count features on the documents of all items."""
        keys = occurrences.features * documents.count + documents.of_line[occurrences.items]
        found, pair, counts = np.unique(keys, return_inverse=True, return_counts=True)
        features, document = found // documents.count, found % documents.count
        return cls(occurrences, documents, features, document, counts.astype(np.float64), pair)

    def sums(self, values: Array) -> Array:
        """Sum the values of a document's items with a feature; ``values`` has one for each item."""
        sums: Array = np.bincount(self.pair, values[self.occurrences.items], len(self.counts)).astype(np.float64)
        return sums

    def count(self, features: int) -> Array | Integers:
        """Count the documents with each feature; NaN if a feature has no kept occurrence."""
        counts = np.bincount(self.features, minlength=features).astype(np.int64)
        return counts if counts.all() else np.where(counts > 0, counts, np.nan)

    def rank_sum_z(self, ranks: Array, features: int) -> Array:
        """Compute z of features from the ranks of items, compared with those of the same document alone.

        In a document of n items, ranked among themselves, let r be the ranks minus their mean, divided by n + 1. If
        the feature does not matter, the sum of r over the m items with it has the variance m (n - m) / (n (n - 1))
        times the sum of all r^2 (van Elteren, "On the combination of independent two sample tests of Wilcoxon",
        1960). If documents differ more in what their lines with a feature are like, all variances are greater by the
        same factor, which is estimated from all features. NaN for a feature that fewer than two documents tell of.
        """
        of_line, documents = self.documents.of_line, self.documents.count
        sizes = np.bincount(of_line, minlength=documents).astype(np.float64)
        places = np.unique(ranks, return_inverse=True)[1]
        apart = centred_ranks((of_line * len(ranks) + places).astype(np.float64))
        centred = (apart - (np.bincount(of_line, apart, documents) / sizes)[of_line]) / (sizes[of_line] + 1)
        squares = np.bincount(of_line, centred**2, documents) / np.maximum(sizes * (sizes - 1), 1)
        variances = self.counts * (sizes[self.document] - self.counts) * squares[self.document]
        tell = variances > 0
        of_feature, variances, sums = self.features[tell], variances[tell], self.sums(centred)[tell]
        telling = np.bincount(of_feature, minlength=features)
        total, variance = (np.bincount(of_feature, column, features) for column in (sums, variances))
        with np.errstate(divide="ignore", invalid="ignore"):
            left = sums - variances * (total / variance)[of_feature]
            z: Array = np.where(telling > 1, total / np.sqrt(variance), np.nan)
        degrees = int((telling[telling > 1] - 1).sum())
        excess = float((left**2 / variances)[telling[of_feature] > 1].sum()) / max(degrees, 1)
        return z / math.sqrt(max(1.0, excess))


# Pairs of features on the same items


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of features, the smaller number first: their number of common items, and the sums of the items' weights.

    ``sums`` has a row for each weight (shape weights x pairs).
    """

    first: Integers
    second: Integers
    counts: Integers
    sums: Array

    def only(self, wanted: Flags) -> Pairs:
        """Keep some of the pairs."""
        return Pairs(self.first[wanted], self.second[wanted], self.counts[wanted], self.sums[:, wanted])


def count_pairs(items: Integers, features: Integers, weights: Array, keep: Callable[[Pairs], Flags]) -> Pairs:
    """Count the pairs of features on the same item; ``items`` and ``features`` are aligned occurrences.

    ``weights`` is weights x items; the weights of a pair's items are added. ``keep`` chooses the pairs to hold in
    memory. A feature is on an item at most once.

    Raises UsageError for more pairs than can be counted in minutes, or held.
    """
    order = np.lexsort((features, items))
    items, features = items[order], features[order]
    ends = np.searchsorted(items, items, side="right")  # where each occurrence's item ends
    by_feature = np.argsort(features, kind="stable")
    following = (ends - np.arange(len(items)) - 1)[by_feature]  # how many features follow an occurrence on its item
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
    """Raise UsageError for a count that would take hours, or all memory: one line may hold enough words for that."""
    if pairs > most:
        raise UsageError(
            message=f"there are more than {most} pairs of features {what}\n  take fewer with",
            arguments=("min_cartesian_frequency", "min_frequency"),
        )


def _batches(features: Integers, following: Integers) -> Iterator[slice]:
    """Cut the occurrences, sorted by feature, into parts of whole features with about PAIRS_AT_ONCE pairs."""
    starts = np.append(np.flatnonzero(np.diff(features, prepend=-1)), len(features))
    before = np.concatenate([[0], np.cumsum(following)])[starts]  # pairs before each feature
    start = 0
    while start < len(starts) - 1:
        stop = int(np.searchsorted(before, before[start] + PAIRS_AT_ONCE, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(int(starts[start]), int(starts[stop]))
        start = stop


def _count(places: Integers, following: Integers, items: Integers, features: Integers, weights: Array) -> Pairs:
    """Count the pairs whose first feature is at some places."""
    firsts = np.repeat(features[places], following)
    before = np.repeat(np.cumsum(following) - following, following)
    seconds = np.repeat(places, following) + 1 + np.arange(len(firsts)) - before
    owners = items[seconds]
    width = int(features.max(initial=0)) + 1
    keys, pair, counts = np.unique(firsts * width + features[seconds], return_inverse=True, return_counts=True)
    sums = np.array([np.bincount(pair, of_item[owners], len(keys)) for of_item in weights])
    return Pairs(keys // width, keys % width, counts, sums.reshape(len(weights), len(keys)))
