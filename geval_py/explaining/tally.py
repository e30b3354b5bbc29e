"""Counting the features of items, with the sums of the items' weights, in one pass, here or by workers elsewhere.

Sums are the same in whatever order, and in whatever groups, their terms are added: a term is split into multiples of
powers of two, each so great that no sum of such parts needs more bits than a double has; so sums of parts are exact
(Demmel and Nguyen, "Parallel Reproducible Summation", 2015). Terms of similar size have two or three parts; the more
they differ, the more parts there are. Sums must not be too large for a double.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from geval_py.reading.features import BETWEEN_TOKENS, FIELD_NUMBER, FeatureKinds, Field, Fields, word_shape
from geval_py.reading.items import ScoredItem
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.scoring import blocks, scores
from geval_py.scoring.kernel.backends import token_numbers

if TYPE_CHECKING:
    from geval_py.explaining.significance import Array, Flags, Integers
    from geval_py.scoring.kernel.backends import TokenNumbers


ITEMS_AT_ONCE = 4096
BITS = 52  # of a sum, one less than a double has
LEAST = 5e-324  # each double is a multiple of it


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of rows of terms: ``rows`` are the parts, ``of`` the row that each belongs to, the greatest first.

    >>> parts = Parts.split(np.array([[0.1, 1e300, np.inf], [1, 2, 4]]))
    >>> parts.sums(parts.rows[:, ::-1].cumsum(axis=1))[:, :2]
    array([[inf, inf],
           [ 4.,  6.]])
    """

    rows: Array
    of: tuple[int, ...]

    @classmethod
    def split(cls, terms: Array) -> Parts:
        """Split rows of terms; infinite terms go into the first part."""
        rows: list[Array] = []
        of: list[int] = []
        left = terms
        while not of or left.any():
            part = _truncated(left)
            wanted = range(len(terms)) if not of else np.flatnonzero(left.any(axis=1)).tolist()
            rows.append(part[list(wanted)])
            of += wanted
            with np.errstate(invalid="ignore"):  # inf - inf
                left = np.where(np.isfinite(left), left - part, 0.0)
        return cls(np.concatenate(rows), tuple(of))

    def sums(self, of_parts: Array) -> Array:
        """Compute the sums of terms, a row each, from the sums of the parts."""
        sums = np.zeros((max(self.of) + 1, of_parts.shape[1]))
        for row, part in zip(reversed(self.of), of_parts[::-1], strict=True):
            sums[row] += part
        return sums


def _truncated(terms: Array) -> Array:
    """Truncate each row to multiples of a power of two, such that all sums of its terms are exact."""
    finite = np.where(np.isfinite(terms), np.abs(terms), 0.0)
    _, exponents = np.frexp(finite.max(axis=1, initial=0.0))
    unit = np.maximum(np.ldexp(1.0, exponents + terms.shape[1].bit_length() - BITS), LEAST)[:, None]
    truncated: Array = np.trunc(terms / unit) * unit  # rounding might overflow
    return truncated


# Tallies


class Names:
    """Names of features, numbered from 0 in the order in which they come."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self.add(names)

    def add(self, names: Iterable[str]) -> Integers:
        """Return the numbers of names."""
        known = self._numbers
        return np.array([known.setdefault(name, len(known)) for name in names], np.int64)

    def names(self, first: int = 0) -> list[str]:
        """Return the names from a number on."""
        return list(islice(self._numbers, first, None))

    def sorted(self) -> tuple[list[str], Integers]:
        """Return all names, sorted, and their numbers."""
        pairs = sorted(self._numbers.items())
        return [name for name, _ in pairs], np.array([number for _, number in pairs], np.int64)


@dataclass(slots=True)
class Tally:
    """The features of one kind in one field: the number of items of each, and the sums of these items' weights.

    ``names`` numbers the features from 0; there are ``size`` of them. ``places`` are the (items, numbers) of the
    occurrences, if they are kept.
    """

    names: Names | TokenNumbers = field(default_factory=Names)
    size: int = 0
    _room: Array = field(default_factory=lambda: np.zeros((0, 0)))
    places: list[tuple[Integers, Integers]] = field(default_factory=list)

    def add(self, owners: Integers, numbers: Integers, weights: Array, *, keep: bool) -> None:
        """Count the occurrences of features on items, at most one of a feature on an item.

        ``weights`` has a column for each of all items.
        """
        self.size = max(self.size, int(numbers.max(initial=-1)) + 1)
        figures = self._with_room(1 + len(weights))
        np.add.at(figures[0], numbers, 1.0)
        with np.errstate(invalid="ignore"):  # opposite infinities
            for row, of_item in zip(figures[1:], weights, strict=True):
                np.add.at(row, numbers, of_item[owners])
        if keep:
            self.places.append((owners, numbers))

    def extend(self, later: Tally, first: int) -> None:
        """Add the tally of later items, which are numbered from ``first`` on here; the names must be Names."""
        assert isinstance(self.names, Names)
        numbers = self.names.add(later.names.names())
        self.size = max(self.size, int(numbers.max(initial=-1)) + 1)
        with np.errstate(invalid="ignore"):  # opposite infinities
            self._with_room(len(later.figures))[:, numbers] += later.figures
        self.places.extend((owners + first, numbers[of_later]) for owners, of_later in later.places)

    @property
    def figures(self) -> Array:
        """A column per feature: the number of items, then a row for each weight."""
        return self._room[:, : self.size]

    @figures.setter
    def figures(self, figures: Array) -> None:
        self._room = figures

    def _with_room(self, rows: int) -> Array:
        """Return figures that have room for all features, twice as much as before if it has to grow."""
        if self._room.shape[1] < self.size or len(self._room) < rows:
            grown = np.zeros((rows, 2 * self.size))
            grown[: len(self._room), : self._room.shape[1]] = self._room
            self._room = grown
        return self._room


@dataclass(slots=True)
class Numbers:
    """A field's lengths in characters and, as long as all texts are numbers, its values; aligned with ``items``."""

    items: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] | None = field(default_factory=lambda: array("d"))

    def add(self, items: Iterable[int], texts: Sequence[str]) -> None:
        """Add the texts of some items."""
        self.items.extend(items)
        self.lengths.extend(map(len, texts))
        if self.values is not None and all(map(FIELD_NUMBER.fullmatch, texts)):
            self.values.extend(map(float, texts))
        else:
            self.values = None

    def extend(self, later: Numbers, first: int) -> None:
        """Add the numbers of later items, which are numbered from ``first`` on here."""
        self.items.extend(first + item for item in later.items)
        self.lengths.extend(later.lengths)
        if self.values is not None and later.values is not None:
            self.values.extend(later.values)
        else:
            self.values = None


@dataclass(slots=True)
class FieldTally:
    """The counts of one field of the items: a tally for each kind of feature, and numbers if they are asked for."""

    kinds: FeatureKinds
    keep: bool
    tallies: list[Tally] = field(default_factory=list)
    numbers: Numbers = field(default_factory=Numbers)
    counter: FeatureCounter | None = None

    def add(self, items: Sequence[int], texts: Sequence[str], weights: Array) -> None:
        """Count the features of some items' texts."""
        if self.counter is None:
            self.counter = FeatureCounter(self.kinds)
            self.tallies = [Tally(names) for names in self.counter.names]
        owners = np.array(items, np.int64)
        for tally, (places, numbers) in zip(self.tallies, self.counter.count(texts), strict=True):
            tally.add(owners[places], numbers, weights, keep=self.keep)
        if self.kinds.numerical:
            self.numbers.add(items, texts)

    def sealed(self) -> FieldTally:
        """Return the same to be sent, without what only counting needs."""
        tallies = [replace(tally, names=Names(tally.names.names())) for tally in self.tallies]
        return replace(self, tallies=tallies, counter=None)

    def extend(self, later: FieldTally, first: int) -> None:
        """Add the tally of later items, which are numbered from ``first`` on here."""
        self.tallies.extend(Tally() for _ in later.tallies[len(self.tallies) :])
        for tally, of_later in zip(self.tallies, later.tallies, strict=True):
            tally.extend(of_later, first)
        self.numbers.extend(later.numbers, first)


class FeatureCounter:
    """Numbers the features of texts: distinct tokens, shapes, and bigrams of each, as FeatureKinds.of_text has them.

    ``names`` are those of each kind. Only tokens are cut out of texts; the shape of a token, and the name of a
    bigram, is made once.
    """

    def __init__(self, kinds: FeatureKinds) -> None:
        self._kinds = kinds
        self._tokens = token_numbers(kinds.tokens)
        self._shapes = Names()
        self._shape_of = np.zeros(0, np.int64)
        self._bigrams = [_Bigrams(), _Bigrams()] if kinds.bigrams else []
        self.names: list[Names | TokenNumbers] = [
            self._tokens,
            self._shapes,
            *(bigrams.names for bigrams in self._bigrams),
        ]

    def count(self, texts: Sequence[str]) -> Iterator[tuple[Integers, Integers]]:
        """Yield for each kind the aligned places of texts, which rise, and the numbers of their distinct features."""
        numbers, counts = (np.asarray(column).astype(np.int64) for column in self._tokens.add(texts))
        places = np.repeat(np.arange(len(texts)), counts)
        yield places, numbers
        shapes = places[:0], numbers[:0]
        if self._kinds.word_shapes:
            new = self._tokens.names(len(self._shape_of))
            self._shape_of = np.concatenate([self._shape_of, self._shapes.add(map(word_shape, new))])
            shapes = _distinct(places, self._shape_of[numbers], in_order=self._kinds.bigrams)
        yield shapes
        if self._kinds.bigrams:
            of_tokens, of_shapes = self._bigrams
            yield of_tokens.count(places, numbers, self._tokens)
            yield of_shapes.count(*shapes, self._shapes)


class _Bigrams:
    """Names of pairs of neighbours."""

    def __init__(self) -> None:
        self.names = Names()
        self._texts: list[str] = []  # of the single features
        self._numbers: dict[int, int] = {}

    def count(self, places: Integers, numbers: Integers, names: Names | TokenNumbers) -> tuple[Integers, Integers]:
        """Return the places and numbers of the pairs of neighbours on the same text."""
        together = np.flatnonzero(places[1:] == places[:-1])
        keys, pairs = np.unique(numbers[together] << 32 | numbers[together + 1], return_inverse=True)
        known = self._numbers
        new = [key for key in keys.tolist() if key not in known]
        if new:
            texts = self._texts
            texts += names.names(len(texts))
            pieces = (f"{texts[key >> 32]}{BETWEEN_TOKENS}{texts[key & 0xFFFFFFFF]}" for key in new)
            known.update(zip(new, self.names.add(pieces).tolist(), strict=True))
        found = np.array([known[key] for key in keys.tolist()], np.int64)
        return _distinct(places[together], found[pairs])  # two pairs may have one name, with ++ in a token


def _distinct(places: Integers, numbers: Integers, *, in_order: bool = False) -> tuple[Integers, Integers]:
    """Keep the first of equal numbers at each place; the places rise, and the numbers too unless ``in_order``."""
    width = int(numbers.max(initial=0)) + 1
    keys = places * width + numbers
    if in_order:
        first = np.sort(np.unique(keys, return_index=True)[1])
        return places[first], numbers[first]
    keys = np.unique(keys)
    return keys // width, keys % width


def tally_features(
    items: Iterator[ScoredItem],
    weights: Array,
    fields: Fields,
    kinds: FeatureKinds,
    *,
    keep: bool = False,
    progress: blocks.Progress | None = None,
) -> dict[Field, FieldTally]:
    """Count the features of all items; return the fields in order. ``weights`` has a column per item.

    With ``keep``, or for pairs of features, the occurrences are kept.
    """
    parts = Parts.split(weights)
    return added_up(tally_parts(items, parts.rows, fields, kinds, keep=keep, progress=progress), parts)


def added_up(found: dict[Field, FieldTally], parts: Parts) -> dict[Field, FieldTally]:
    """Turn sums of parts of weights into sums of weights; return the fields in order."""
    for of_field in found.values():
        for tally in of_field.tallies:
            tally.figures = np.concatenate([tally.figures[:1], parts.sums(tally.figures[1:])])
    return {where: found[where] for where in sorted(found)}


def tally_parts(
    items: Iterator[ScoredItem],
    parts: Array,
    fields: Fields,
    kinds: FeatureKinds,
    *,
    keep: bool = False,
    progress: blocks.Progress | None = None,
) -> dict[Field, FieldTally]:
    """Count as :func:`tally_features`, but some of all items, with the parts of their weights."""
    keep = keep or kinds.cartesian
    found: dict[Field, FieldTally] = {}
    first = 0
    while chunk := list(islice(items, ITEMS_AT_ONCE)):
        for where, owners, texts in fields.columns(chunk):
            found.setdefault(where, FieldTally(kinds, keep)).add([first + owner for owner in owners], texts, parts)
        first += len(chunk)
        if progress is not None:
            progress(first, len(parts[0]))
    return found


# Counting on workers elsewhere: each counts the pieces that it reads


class _Lines(NamedTuple):
    """What is sent with lines of an output: their inputs and expected words, which count, parts of their weights."""

    beside: list[tuple[str, str]]
    known: Flags
    parts: Array


@dataclass(frozen=True, slots=True)
class _Counted:
    """A tally to send: Dask sends a plain dictionary in its own way, which would turn its keys into plain tuples."""

    found: dict[Field, FieldTally]


def tally_on(
    workers: blocks.Workers,
    evaluation: scores.ScoredOutput,
    known: Flags,
    weights: Array,
    kinds: FeatureKinds,
    *,
    keep: bool,
    progress: blocks.Progress | None = None,
) -> dict[Field, FieldTally]:
    """Count the features of an evaluation's lines as :func:`tally_features` does.

    ``known`` is whether each line counts, and ``weights`` has a column for each that does. Raises UsageError if the
    lines were selected or the output can be read only once, UnreadableFileError if it was changed, and ClusterError.
    """
    parts, fields = Parts.split(weights), Fields(evaluation.split.in_header)
    found: dict[Field, FieldTally] = {}
    first = 0
    with LineReader(evaluation.output.path, header=evaluation.split.output_header) as outputs:
        evaluation.kept_texts().outputs.check(outputs)
        reader = workers.reader(outputs, selects=evaluation.line_numbers is not None)
        lines = _lines_of(evaluation, known, parts)
        for block, of_lines in reader.map_pieces(_tally, lambda block: (lines(block), fields, kinds, keep)):
            for where, tally in of_lines.found.items():
                found.setdefault(where, FieldTally(kinds, keep)).extend(tally, first)
            first += int(known[block.first_line - 1 :][: block.lines].sum())
            if progress is not None:
                progress(first, len(weights[0]))
    return added_up(found, parts)


def _lines_of(evaluation: scores.ScoredOutput, known: Flags, parts: Parts) -> Callable[[blocks.Block], _Lines]:
    """Return a function from a block to the data beside its lines, for blocks in order."""
    beside = zip(evaluation.input.lines(), evaluation.kept_texts().expected.read(), strict=False)  # "" without end
    before = 0

    def lines_of(block: blocks.Block) -> _Lines:
        nonlocal before
        of_block = known[block.first_line - 1 :][: block.lines]
        first, before = before, before + int(of_block.sum())
        return _Lines(list(islice(beside, block.lines)), of_block, parts.rows[:, first:before])

    return lines_of


def _tally(
    pieces: Iterable[blocks.Block], lines: _Lines, fields: Fields, kinds: FeatureKinds, keep: bool
) -> _Counted:
    """Count the features of lines, which are numbered from 0."""
    outputs = (output for block in pieces for output in decode_lines(block.outputs))
    items = (ScoredItem(*beside, output) for beside, output in zip(lines.beside, outputs, strict=True))
    found = tally_parts(compress(items, lines.known.tolist()), lines.parts, fields, kinds, keep=keep)
    return _Counted({where: of_field.sealed() for where, of_field in found.items()})
