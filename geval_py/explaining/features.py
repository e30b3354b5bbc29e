"""Which features items have: words, shapes of words, bigrams, numbers; and pairs of features on the same item.

Features are collected item by item, and then become one table of occurrences, of which all sums over items are made.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.significance import slices
from geval_py.reading.features import (
    EXPECTED,
    FIELD_NUMBER,
    OUTPUT,
    SEPARATORS,
    SHAPE,
    FeatureKinds,
    Field,
    Fields,
    character_shape,
)
from geval_py.reading.items import lines_of
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import Array, Integers, Places

ITEMS_AT_ONCE = 4096
OCCURRENCES_AT_ONCE = 1 << 20
MAX_LINES = 200_000  # of more lines, features are counted before they are collected, and a report is of a sample
SEEN_PER_LINE = 32  # bytes in which the tokens are counted
MAX_COUNTED = 2_000_000_000  # pairs on all items together: counting as many takes some minutes


@dataclass(frozen=True)
class FeatureTable:
    """Features of items: aligned ``items`` and ``features``, numbered from 0, of which one item has one feature.

    ``names`` are those of the features. First come tokens, then ``numbers``, whose items are those at their worse
    end, then pairs.
    """

    names: Sequence[str]
    items: Places
    features: Places
    numbers: range

    def sums(self, values: Array) -> Array:
        """Sum the values of the items of each feature; ``values`` has one for each item."""
        sums = np.zeros(len(self.names))
        for part in slices(len(self.items), OCCURRENCES_AT_ONCE):
            sums += np.bincount(self.features[part], values[self.items[part]], len(sums))
        return sums

    def counts(self) -> Integers:
        """Count the items of each feature."""
        counts = np.zeros(len(self.names), np.int64)
        for part in slices(len(self.items), OCCURRENCES_AT_ONCE):
            counts += np.bincount(self.features[part], minlength=len(counts))
        return counts


class TokenItems(NamedTuple):
    """The tokens of one kind in one field: ``table`` numbers them, ``items`` and ``numbers`` are aligned parts."""

    table: backends.TokenTable
    items: list[Places]
    numbers: list[Places]


@dataclass
class Occurrences:
    """The features of items by field, collected in the order of items, which are numbered from 0.

    ``seen`` counts the tokens, or says which are on so few items that most of them are left out. Kinds of ``tokens``
    are numbered: words, shapes, and bigrams of both. ``texts`` are, for numerical features, the items of a field,
    their lengths in characters, and their values, which are NaN if one of these texts is no number.
    """

    kinds: FeatureKinds
    fields: Fields
    seen: tuple[bytearray, int] = bytearray(), 0
    tokens: dict[tuple[Field, int], TokenItems] = field(default_factory=dict)
    texts: dict[Field, list[tuple[Places, Integers, Array]]] = field(default_factory=dict)
    count: int = 0

    def add(self, items: Sequence[tuple[str, str, str]]) -> None:
        """Add the next items, as tuples in the order of :class:`ScoredItem`."""
        inputs, expected, outputs = zip(*items, strict=True)
        places = np.arange(self.count, self.count + len(items), dtype=np.int32)
        self._add(EXPECTED, places, expected)
        self._add(OUTPUT, places, outputs)
        cells = np.array("\t".join(inputs).split("\t"), object)
        widths = np.array([text.count("\t") for text in inputs]) + 1
        starts = np.cumsum(widths) - widths
        for column in range(widths.max()):
            has_column = widths > column
            texts = cells[starts[has_column] + column].tolist()
            self._add(self.fields.column(column), places[has_column], texts)
        self.count += len(items)

    def _add(self, where: Field, items: Places, texts: Sequence[str]) -> None:
        kinds = self.kinds
        if kinds.numerical:
            plain = list(map(kinds.referenced, texts))
            are_numbers = all(map(FIELD_NUMBER.fullmatch, plain))
            values = list(map(float, plain)) if are_numbers else [math.nan] * len(plain)
            lengths = np.array(list(map(len, plain)), np.int64)
            self.texts.setdefault(where, []).append((items, lengths, np.array(values)))
        if kinds.are_in_kernel:
            lines = "\n".join(texts) + "\n"
            tokens = [(items, lines.encode(), SEPARATORS.encode())]
            if kinds.word_shapes:
                tokens.append((items, text_shapes(lines), b"\t"))
        else:
            tokens = [
                (np.repeat(items, list(map(len, features))), lines_of([*chain(*features)]), b"")
                for features in zip(*map(kinds.of_text, texts), strict=True)
            ]
        for kind, (owners, text, separators) in enumerate(tokens):
            of_kind = self.tokens.setdefault((where, kind), TokenItems(backends.TokenTable(), [], []))
            counts, numbers = of_kind.table.number(text, separators, *self.seen)
            of_kind.items.append(np.repeat(owners, np.frombuffer(counts, np.int64)))
            of_kind.numbers.append(np.frombuffer(numbers, np.int64).astype(np.int32))

    def table(self, least: int, most: int) -> FeatureTable:
        """Return the tokens on ``least`` to ``most`` items, by field, kind and name; they are here no longer."""
        names: list[str] = []
        all_items: list[Places] = [np.zeros(0, np.int32)]
        all_features: list[Places] = [np.zeros(0, np.int32)]
        for where, kind in sorted(self.tokens):
            of_kind = self.tokens.pop((where, kind))
            counts = np.zeros(len(of_kind.table), np.int64)
            for numbers in of_kind.numbers:
                np.add.at(counts, numbers, 1)
            frequent = np.flatnonzero((least <= counts) & (counts <= most))
            tokens = of_kind.table.sorted(array("q", frequent.tobytes()))
            feature_of_token = np.full(len(counts), -1, np.int32)
            feature_of_token[tokens] = np.arange(len(names), len(names) + len(tokens))
            for items, numbers in zip(of_kind.items, of_kind.numbers, strict=True):
                features = feature_of_token[numbers]
                kept = np.flatnonzero(features >= 0)  # which, unlike a choice by flags, has no branch to predict
                all_items.append(items[kept])
                all_features.append(features[kept])
            prefix = f"{where}:{SHAPE if kind == 1 and self.kinds.are_in_kernel else ''}"
            names += [prefix + token for token in of_kind.table.names(tokens)]
        items = np.concatenate(all_items)
        all_items.clear()  # as large as these
        return FeatureTable(names, items, np.concatenate(all_features), range(len(names), len(names)))


_CLASSES = np.zeros(0x110000, np.uint8)  # of each character in a shape, as far as it occurred; else 0
_CLASSES[[*map(ord, SEPARATORS)]] = ord("\t")
_CLASSES[ord("\n")] = ord("\n")


def text_shapes(lines: str) -> bytes:
    r"""Return the shapes of the tokens of some lines, as :func:`word_shape` but without prefix, separated by TABs.

    >>> text_shapes("Kowalski-1970, 1:0.5\n")
    b'Aa+.9999.\t9\t9.9\n'
    """
    characters = np.frombuffer(lines.encode("utf-32-le"), np.uint32)
    classes = _CLASSES[characters]
    if not classes.all():
        for character in set(characters[classes == 0].tolist()):
            _CLASSES[character] = ord(character_shape(chr(character)))
        classes = _CLASSES[characters]
    again = np.zeros(len(classes), np.bool_)  # whether a character continues a run of its class
    again[1:] = classes[1:] == classes[:-1]
    for without_runs in b"9\t\n":
        again &= classes != without_runs
    second = again.copy()
    second[1:] &= ~again[:-1]
    shapes = classes.copy()
    np.putmask(shapes, second, ord("+"))
    return shapes[second | ~again].tobytes()


def pairs_on_items(
    items: Places, features: Places, count: int
) -> Iterator[tuple[int, Places, Integers, Places, Integers]]:
    """Yield, for each of ``count`` features, the later features on the same items.

    These are the number of the first feature, those of the second ones, on how many items each pair is, and then, by
    occurrence, items and places of pairs. Raises UsageError for more pairs than can be counted in minutes.
    """
    order = np.lexsort((features, items))
    items, features = items[order], features[order]
    ends = np.searchsorted(items, items, side="right")  # of the features on the same item
    later = ends - np.arange(len(items)) - 1
    check_number(int(later.sum()), MAX_COUNTED, "to count")
    by_feature = np.argsort(features, kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(features, minlength=count)))
    for first in range(count):
        places = by_feature[bounds[first] : bounds[first + 1]]
        spans = zip((places + 1).tolist(), ends[places].tolist(), strict=True)
        seconds = [features[start:end] for start, end in spans]
        if seconds:
            second, pair, counts = np.unique(np.concatenate(seconds), return_inverse=True, return_counts=True)
            yield first, second, counts, np.repeat(items[places], later[places]), pair


def check_number(pairs: int, most: int, what: str) -> None:
    """Raise UsageError for a count that would take hours, or all memory: one line may hold enough words for that."""
    if pairs > most:
        raise UsageError(
            f"there are more than {most} pairs of features {what}\n  take fewer with",
            arguments=("min_cartesian_frequency", "min_frequency"),
        )
