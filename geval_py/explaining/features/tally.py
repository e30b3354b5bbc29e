"""Count the features of many items in one pass, a few thousand items at a time.

What is kept is a row of figures a feature; the texts are let go. Sums do not hang on how the items are divided, so
that machines may each count some of them. Only for what looks at features together, such as
pairs, which cannot be counted before it is known which features are frequent, it is kept on which items each is.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

import numpy as np
import numpy.typing as npt

from geval_py.explaining.features.exact import Parts
from geval_py.reading.features import FIELD_NUMBER, FeatureKinds, Field, Fields
from geval_py.reading.items import ScoredItem
from geval_py.scoring.parallel import Progress

ITEMS_AT_ONCE = 4096

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Tally:
    """The features of one kind in one field: on how many items each is, and the sums of these items' weights.

    ``codes`` numbers the features from 0; ``figures`` has a column a feature: the number of items, then a row a
    weight. ``places`` are the (items, codes) at which they are, where that is wanted.
    """

    codes: defaultdict[str, int] = field(default_factory=lambda: defaultdict(count().__next__))
    figures: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    places: list[tuple[Integers, Integers]] = field(default_factory=list)

    def add(self, items: Integers, features: Sequence[Sequence[str]], weights: Floats, *, keep: bool) -> None:
        """Count the features of some items, distinct within each; ``weights`` has a column an item of all."""
        codes = array("q")
        for of_item in features:
            codes.extend(map(self.codes.__getitem__, of_item))
        flat = np.array(codes, np.int64)
        owners = np.repeat(items, [len(of_item) for of_item in features])
        size = len(self.codes)
        sums = (np.bincount(flat, of_item[owners], size) for of_item in weights)
        figures = np.array([np.bincount(flat, minlength=size), *sums], np.float64)
        if self.figures.size:
            with np.errstate(invalid="ignore"):  # opposite infinities
                figures[:, : self.figures.shape[1]] += self.figures
        self.figures = figures
        if keep:
            self.places.append((owners, flat))

    def extend(self, later: Tally, first: int) -> None:
        """Add what was counted of later items, which are numbered from ``first`` on here."""
        codes = np.array([self.codes[feature] for feature in later.codes], np.int64)
        figures = np.zeros((len(later.figures), len(self.codes)))
        figures[:, codes] = later.figures
        if self.figures.size:
            with np.errstate(invalid="ignore"):  # opposite infinities
                figures[:, : self.figures.shape[1]] += self.figures
        self.figures = figures
        self.places.extend((owners + first, codes[flat]) for owners, flat in later.places)


@dataclass(slots=True)
class Numbers:
    """A field's lengths in characters and, as long as all of them are numbers, its values; aligned with ``items``."""

    items: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] | None = field(default_factory=lambda: array("d"))

    def add(self, items: Iterable[int], texts: Sequence[str]) -> None:
        """Take the texts of some items."""
        self.items.extend(items)
        self.lengths.extend(map(len, texts))
        if self.values is not None and all(map(FIELD_NUMBER.fullmatch, texts)):
            self.values.extend(map(float, texts))
        else:
            self.values = None

    def extend(self, later: Numbers, first: int) -> None:
        """Add those of later items, which are numbered from ``first`` on here."""
        self.items.extend(first + item for item in later.items)
        self.lengths.extend(later.lengths)
        if self.values is not None and later.values is not None:
            self.values.extend(later.values)
        else:
            self.values = None


@dataclass(slots=True)
class FieldTally:
    """What is counted of one field of the items: a tally a kind of feature, and numbers where they are wanted."""

    kinds: FeatureKinds
    keep: bool
    tallies: list[Tally] = field(default_factory=list)
    numbers: Numbers = field(default_factory=Numbers)

    def add(self, items: Sequence[int], texts: Sequence[str], weights: Floats) -> None:
        """Count the features of some items' texts."""
        by_kind = list(zip(*map(self.kinds.of_text, texts), strict=True))
        self.tallies.extend(Tally() for _ in by_kind[len(self.tallies) :])
        owners = np.array(items, np.int64)
        for tally, features in zip(self.tallies, by_kind, strict=True):
            tally.add(owners, features, weights, keep=self.keep)
        if self.kinds.numerical:
            self.numbers.add(items, texts)

    def extend(self, later: FieldTally, first: int) -> None:
        """Add what was counted of later items, which are numbered from ``first`` on here."""
        self.tallies.extend(Tally() for _ in later.tallies[len(self.tallies) :])
        for tally, of_later in zip(self.tallies, later.tallies, strict=True):
            tally.extend(of_later, first)
        self.numbers.extend(later.numbers, first)


def tally_features(
    items: Iterator[ScoredItem],
    weights: Floats,
    fields: Fields,
    kinds: FeatureKinds,
    *,
    keep: bool = False,
    progress: Progress | None = None,
) -> dict[Field, FieldTally]:
    """Count the features of all items; gives the fields in order. ``weights`` has a column an item.

    With ``keep``, or for pairs of features, it is kept on which items each feature is.
    """
    parts = Parts.split(weights)
    return added_up(tally_parts(items, parts.rows, fields, kinds, keep=keep, progress=progress), parts)


def added_up(found: dict[Field, FieldTally], parts: Parts) -> dict[Field, FieldTally]:
    """Make sums of weights from those of their parts; gives the fields in order."""
    for of_field in found.values():
        for tally in of_field.tallies:
            tally.figures = np.concatenate([tally.figures[:1], parts.sums(tally.figures[1:])])
    return {where: found[where] for where in sorted(found)}


def tally_parts(
    items: Iterator[ScoredItem],
    parts: Floats,
    fields: Fields,
    kinds: FeatureKinds,
    *,
    keep: bool = False,
    progress: Progress | None = None,
) -> dict[Field, FieldTally]:
    """Do as :func:`tally_features` for some of all items, with the parts of their weights."""
    keep = keep or kinds.cartesian
    found: dict[Field, FieldTally] = {}
    first = 0
    while chunk := list(islice(items, ITEMS_AT_ONCE)):
        texts: dict[Field, tuple[list[int], list[str]]] = {}
        for number, item in enumerate(chunk, first):
            for where, text in fields.split(item):
                owners, of_field = texts.setdefault(where, ([], []))
                owners.append(number)
                of_field.append(text)
        for where, (owners, of_field) in texts.items():
            found.setdefault(where, FieldTally(kinds, keep)).add(owners, of_field, parts)
        first += len(chunk)
        if progress is not None:
            progress(first, len(parts[0]))
    return found
