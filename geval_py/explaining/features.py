"""Which features items have: words, shapes of words, bigrams, numbers; and pairs of features on the same item.

Features are collected here, or by workers elsewhere, each from the pieces that it reads. An occurrence is an item and
a feature, both as numbers of four bytes; all sums over items are made from occurrences.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from geval_py.errors import UsageError
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
MAX_LINES = 200_000  # of more lines, features are counted before they are collected, and a report is of a sample
SEEN_PER_LINE = 32  # bytes in which the tokens are counted


class KindFeatures(NamedTuple):
    """The features of one kind in one field: ``table`` numbers them, and ``prefix`` precedes their names.

    Their occurrences are aligned ``items`` and ``numbers``, in parts.
    """

    prefix: str
    table: backends.TokenTable
    items: list[Places]
    numbers: list[Places]

    def counts(self) -> Integers:
        """Count the items of each feature; numpy.bincount would make eight bytes of each number first."""
        counts = np.zeros(len(self.table), np.int64)
        for part in self.numbers:
            np.add.at(counts, part, 1)
        return counts


class FieldFeatures(NamedTuple):
    """The features of one field, by kind: words and their shapes, and then bigrams of both, if they are asked for.

    ``texts`` are, for numerical features, items, their lengths in characters, and their values; these are NaN if one
    of these texts is no number.
    """

    kinds: list[KindFeatures]
    texts: list[tuple[Places, Integers, Array]]


@dataclass
class Occurrences:
    """The features of items by field, collected in the order of items, which are numbered from 0.

    ``seen`` counts the tokens, or says which are on so few items that most of them are left out.
    """

    kinds: FeatureKinds
    fields: Fields
    seen: tuple[bytearray, int] = bytearray(), 0
    by_field: dict[Field, FieldFeatures] = field(default_factory=dict)
    count: int = 0

    def of_field(self, where: Field) -> FieldFeatures:
        """Return the features of a field, of which there may be none yet."""
        if where not in self.by_field:
            of_shapes = SHAPE if self.kinds.are_in_kernel else ""
            prefixes = ("", of_shapes, "", "")[: 4 if self.kinds.bigrams else 2]
            kinds = [KindFeatures(f"{where}:{prefix}", backends.TokenTable(), [], []) for prefix in prefixes]
            self.by_field[where] = FieldFeatures(kinds, [])
        return self.by_field[where]

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
            there = widths > column
            self._add(self.fields.column(column), places[there], cells[starts[there] + column].tolist())
        self.count += len(items)

    def _add(self, where: Field, items: Places, texts: Sequence[str]) -> None:
        kinds, own = self.kinds, self.of_field(where)
        if kinds.numerical:
            plain = list(map(kinds.referenced, texts))
            are_numbers = all(map(FIELD_NUMBER.fullmatch, plain))
            values = list(map(float, plain)) if are_numbers else [math.nan] * len(plain)
            own.texts.append((items, np.array(list(map(len, plain)), np.int64), np.array(values)))
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
        for of_kind, (owners, text, separators) in zip(own.kinds, tokens, strict=False):
            counts, numbers = of_kind.table.number(text, separators, *self.seen)
            of_kind.items.append(np.repeat(owners, np.frombuffer(counts, np.int64)))
            of_kind.numbers.append(np.frombuffer(numbers, np.int64).astype(np.int32))

    def extend(self, later: Occurrences) -> None:
        """Add the features of later items, which were collected elsewhere."""
        for where, of_later in later.by_field.items():
            own = self.of_field(where)
            for of_kind, more in zip(own.kinds, of_later.kinds, strict=True):
                names = more.table.names(array("q", range(len(more.table))))
                numbers = np.array(of_kind.table.number(lines_of(names), b"")[1], np.int32)
                of_kind.items.extend(items + np.int32(self.count) for items in more.items)
                of_kind.numbers.extend(numbers[part] for part in more.numbers)
            own.texts.extend(
                (items + np.int32(self.count), lengths, values) for items, lengths, values in of_later.texts
            )
        self.count += later.count


def collect(
    items: Iterable[tuple[str, str, str]],
    occurrences: Occurrences,
    progress: Callable[[int], None] | None = None,
) -> Occurrences:
    """Add the features of items to occurrences; ``progress`` is called with the number of items so far."""
    items = iter(items)
    while chunk := list(islice(items, ITEMS_AT_ONCE)):
        occurrences.add(chunk)
        if progress is not None:
            progress(occurrences.count)
    return occurrences


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


# Pairs of features on the same item


PAIRS_AT_ONCE = 2_000_000
MAX_COUNTED = 2_000_000_000  # on all items together: counting as many takes some minutes


def each_pairs(items: Places, features: Places) -> Iterator[tuple[Integers, Integers, Integers, Places, Integers]]:
    """Yield the pairs of features on the same item, part by part, with the number of their items.

    Each part is aligned first and second features and numbers of items, then, by occurrence, items and places of
    pairs. A feature is on an item at most once. Raises UsageError for more pairs than can be counted in minutes.
    """
    order = np.lexsort((features, items))
    items, features = items[order], features[order].astype(np.int64)
    following = np.searchsorted(items, items, side="right") - np.arange(len(items)) - 1  # on the same item
    by_feature = np.argsort(features, kind="stable")
    # The occurrences, and the pairs, before each feature as the first of a pair. Parts are of whole features.
    before, pairs_before = (np.append(0, np.cumsum(np.bincount(features, one))) for one in (None, following))
    check_number(int(pairs_before[-1]), MAX_COUNTED, "to count")
    width, start = len(before) - 1, 0
    while start < width:
        stop = int(np.searchsorted(pairs_before, pairs_before[start] + PAIRS_AT_ONCE, side="right")) - 1
        stop = max(stop, start + 1)
        firsts = by_feature[before[start] : before[stop]]
        number, start = following[firsts], stop
        of_first = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        firsts = np.repeat(firsts, number)
        seconds = firsts + 1 + of_first
        keys = features[firsts] * width + features[seconds]
        keys, pair, counts = np.unique(keys, return_inverse=True, return_counts=True)
        yield keys // width, keys % width, counts, items[seconds], pair


def check_number(pairs: int, most: int, what: str) -> None:
    """Raise UsageError for a count that would take hours, or all memory: one line may hold enough words for that."""
    if pairs > most:
        raise UsageError(
            message=f"there are more than {most} pairs of features {what}\n  take fewer with",
            arguments=("min_cartesian_frequency", "min_frequency"),
        )
