"""Where features are: on which items each of them stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Where features are: aligned items and features, both numbered from 0; a feature is on an item at most once."""

    items: Integers
    features: Integers

    @classmethod
    def of(cls, items: Integers, feature: int) -> Occurrences:
        """Make those of one feature."""
        return cls(items, np.full(len(items), feature))

    @classmethod
    def joined(cls, parts: Sequence[Occurrences]) -> Occurrences:
        """Put together those of different features, or items."""
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(part.items for part in parts)]),
            np.concatenate([none, *(part.features for part in parts)]),
        )

    def only(self, wanted: Integers, features: int) -> Occurrences:
        """Give those of some of so many features, which are numbered anew."""
        place = np.full(features, -1)
        place[wanted] = np.arange(len(wanted))
        numbers = place[self.features]
        return Occurrences(self.items[numbers >= 0], numbers[numbers >= 0])

    def sums(self, values: Floats, features: int) -> Floats:
        """Sum a value an item over the items of each feature."""
        sums: Floats = np.bincount(self.features, values[self.items], features).astype(np.float64)
        return sums

    def vector(self, feature: int, items: int) -> Floats:
        """Give 1 for an item that has a feature, and 0 for another."""
        has = np.zeros(items)
        has[self.items[self.features == feature]] = 1
        return has

    def documents(self, documents: Documents, features: int) -> Floats | Integers:
        """Count the documents that each feature is on; NaN for one whose items are not known."""
        pairs = np.unique(self.features * documents.count + documents.of_line[self.items]) // documents.count
        counts = np.bincount(pairs, minlength=features).astype(np.int64)
        return counts if counts.all() else np.where(counts > 0, counts, np.nan)
