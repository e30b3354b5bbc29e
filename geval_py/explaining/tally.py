"""Counting the features of items, with the sums of the items' weights, in one pass, here or by workers elsewhere.

Sums are the same in whatever order, and in whatever groups, their terms are added: a term is split into multiples of
powers of two, each so great that no sum of such parts needs more bits than a double has; so sums of parts are exact
(Demmel and Nguyen, "Parallel Reproducible Summation", 2015). Terms of similar size have two or three parts; the more
they differ, the more parts there are. Sums must not be too large for a double.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, compress, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.occurrences import Occurrences
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
from geval_py.reading.items import ItemColumns, ScoredItem, lines_of
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.scoring import blocks, scores
from geval_py.scoring.kernel import backends

if TYPE_CHECKING:
    from geval_py.explaining.significance import Array, Flags, Integers
    from geval_py.scoring.kernel.tokens import TokenTable


ITEMS_AT_ONCE = 4096
MOST_COLUMNS = 100  # of an input, which are taken out of it one after the other
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


def number_features(table: TokenTable, features: Iterable[str]) -> array[int]:
    """Return the numbers of features in a table, which gets those that it lacks."""
    return table.number(lines_of(list(features)), b"")[1]


@dataclass(slots=True)
class Tally:
    """The features of one kind in one field: the number of items of each, and the sums of these items' weights.

    ``tokens`` numbers the features from 0; ``prefix`` precedes their names. If occurrences are kept, nothing is
    summed: ``places`` are their (items, numbers). Figures have a row per feature here, since the figures of a feature
    change together.
    """

    prefix: str = ""
    tokens: TokenTable = field(default_factory=lambda: backends.TokenTable())
    _room: Array = field(default_factory=lambda: np.zeros((0, 0)))
    places: list[tuple[Integers, Integers]] = field(default_factory=list)

    def add(self, owners: Integers, numbers: Integers, weights: Array, *, keep: bool) -> None:
        """Count features on the items that have them; ``weights`` has a row for each of all items: 1, its weights."""
        if keep:
            self.places.append((owners, numbers))
        else:
            backends.add_rows(self._with_room(weights.shape[1]), weights, owners, numbers)

    def extend(self, later: Tally, first: int) -> None:
        """Add the tally of later items, which are numbered from ``first`` on here."""
        of_later = later.tokens.names(array("q", range(len(later.tokens))))
        numbers = np.array(number_features(self.tokens, of_later), np.int64)
        if later.places:
            self.places.extend((owners + first, numbers[flat]) for owners, flat in later.places)
            return
        with np.errstate(invalid="ignore"):  # opposite infinities
            self._with_room(len(later.figures))[numbers] += later.figures.T

    @property
    def figures(self) -> Array:
        """A column per feature: the number of items, then a row for each weight."""
        return self._room[: len(self.tokens)].T

    def take(self, numbers: Integers) -> Array:
        """Return the figures of some features, and forget all figures, which take much memory."""
        figures = self._room.take(numbers, axis=0).T
        self._room = np.zeros((0, 0))
        return figures

    @property
    def occurrences(self) -> Occurrences:
        """The occurrences of all features, if they are kept."""
        return Occurrences.joined([Occurrences(owners, numbers) for owners, numbers in self.places])

    def _with_room(self, figures: int) -> Array:
        """Return rows of so many figures for all features, with room for twice as many if it has to grow."""
        size = len(self.tokens)
        if len(self._room) < size or self._room.shape[1] < figures:
            grown = np.zeros((2 * size, figures))
            grown[: len(self._room), : self._room.shape[1]] = self._room
            self._room = grown
        return self._room


class _Classes(dict[int, str]):
    """The class of each character in a shape, found when it is asked for."""

    def __missing__(self, character: int) -> str:
        self[character] = found = character_shape(chr(character))
        return found


_CLASSES = _Classes({ord("\n"): "\n"} | dict.fromkeys(map(ord, SEPARATORS), "\t"))
_HAVE_NO_RUNS = b"9\t\n"


def text_shapes(lines: str) -> bytes:
    r"""Return the shapes of the tokens of some lines, as :func:`word_shape` but without prefix, separated by TABs.

    >>> text_shapes("Kowalski-1970, 1:0.5\n")
    b'Aa+.9999.\t9\t9.9\n'
    """
    classes = np.frombuffer(lines.translate(_CLASSES).encode(), np.uint8)
    again = np.zeros(len(classes), np.bool_)  # whether a character continues a run of its class
    again[1:] = classes[1:] == classes[:-1]
    for without in _HAVE_NO_RUNS:
        again &= classes != without
    second = again.copy()
    second[1:] &= ~again[:-1]
    shapes = classes.copy()
    np.putmask(shapes, second, ord("+"))
    return shapes[second | ~again].tobytes()


_ASCII = bytes(range(128))


def shape_classes(text: bytes) -> bytes:
    """Return the class of each character of a text in UTF-8 in a token's shape, by its code point."""
    others = "" if text.isascii() else "".join(set(text.translate(None, _ASCII).decode()))
    classes = bytearray(b"#" * (1 + max(map(ord, others), default=0x7F)))
    for character in chain(map(chr, _ASCII), others):
        classes[ord(character)] = ord(character_shape(character))
    return bytes(classes)


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
    """The counts of one field of the items: a tally for each kind of feature, and numbers if they are asked for.

    Occurrences that are kept may be those of features on at least ``least`` items alone: then the texts are collected
    until :meth:`finish`.
    """

    kinds: FeatureKinds
    keep: bool
    least: int = 1
    numbers: Numbers = field(default_factory=Numbers)
    tallies: list[Tally] = field(init=False)
    _collected: list[tuple[Integers, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        of_shapes = SHAPE if self.kinds.are_in_kernel else ""
        self.tallies = [Tally(prefix) for prefix in ("", of_shapes, "", "")[: 4 if self.kinds.bigrams else 2]]

    def _numbered(self, texts: Sequence[str]) -> Iterator[tuple[array[int], array[int]]]:
        """Yield for each kind the number of features of each text, and their numbers."""
        if self.kinds.are_in_kernel:
            lines = "\n".join(texts) + "\n"
            tokens, shapes = self.tallies
            yield tokens.tokens.number(lines.encode(), SEPARATORS.encode())
            yield shapes.tokens.number(text_shapes(lines) if self.kinds.word_shapes else b"\n" * len(texts), b"\t")
            return
        for tally, features in zip(self.tallies, zip(*map(self.kinds.of_text, texts), strict=True), strict=True):
            yield array("q", map(len, features)), number_features(tally.tokens, chain.from_iterable(features))

    def add(self, items: Sequence[int], texts: Sequence[str], weights: Array) -> None:
        """Count the features of some items' texts; ``weights`` are as for :meth:`Tally.add`."""
        owners = np.array(items, np.int64)
        if self.kinds.numerical:
            self.numbers.add(items, list(map(self.kinds.referenced, texts)))
        if self.keep and self.least > 1 and self.kinds.are_in_kernel:
            self.collect(owners, lines_of(texts))
            return
        for tally, (counts, numbers) in zip(self.tallies, self._numbered(texts), strict=True):
            of_items = np.repeat(owners, np.frombuffer(counts, np.int64))
            tally.add(of_items, np.frombuffer(numbers, np.int64), weights, keep=self.keep)

    def collect(self, owners: Integers, text: bytes) -> None:
        """Take a line for each of some items, whose frequent features are found in the end."""
        self._collected.append((owners, text))

    def finish(self) -> None:
        """Keep the occurrences of frequent features in the texts that were collected."""
        if not self._collected:
            return
        owners = np.concatenate([of_items for of_items, _ in self._collected])
        text = b"".join([lines for _, lines in self._collected])
        self._collected.clear()
        kinds = (b"", shape_classes(text)) if self.kinds.word_shapes else (b"",)
        for tally, classes in zip(self.tallies, kinds, strict=False):
            names, counts, numbers = backends.frequent_tokens(text, SEPARATORS.encode(), classes, self.least)
            number_features(tally.tokens, names)
            of_items = np.repeat(owners, np.frombuffer(counts, np.int64))
            tally.places.append((of_items, np.frombuffer(numbers, np.int64)))

    def extend(self, later: FieldTally, first: int) -> None:
        """Add the tally of later items, which are numbered from ``first`` on here."""
        for tally, of_later in zip(self.tallies, later.tallies, strict=True):
            tally.extend(of_later, first)
        self.numbers.extend(later.numbers, first)


def tally_features(
    items: Iterator[ScoredItem] | ItemColumns,
    weights: Array,
    fields: Fields,
    kinds: FeatureKinds,
    *,
    keep: bool = False,
    least: int = 1,
    progress: blocks.Progress | None = None,
) -> dict[Field, FieldTally]:
    """Count the features of all items; return the fields in order. ``weights`` has a column per item.

    With ``keep``, or for pairs of features, the occurrences are kept in place of sums; without pairs, those of rarer
    features than on ``least`` items may be left out.
    """
    keep, least = keep or kinds.cartesian, 1 if kinds.cartesian else least
    of_items = np.ascontiguousarray(np.concatenate([np.ones((1, weights.shape[1])), weights]).T)
    found: dict[Field, FieldTally] = {}
    if isinstance(items, ItemColumns):
        if keep and least > 1 and kinds.are_in_kernel and not kinds.numerical and items.width <= MOST_COLUMNS:
            return _tally_columns(items, fields, kinds, least)
        items = iter(items)
    first = 0
    while chunk := list(islice(items, ITEMS_AT_ONCE)):
        for where, owners, texts in _texts_by_field(chunk, first, fields):
            if where not in found:
                found[where] = FieldTally(kinds, keep, least)
            found[where].add(owners, texts, of_items)
        first += len(chunk)
        if progress is not None:
            progress(first, len(weights[0]))
    for of_field in found.values():
        of_field.finish()
    return {where: found[where] for where in sorted(found)}


def _tally_columns(items: ItemColumns, fields: Fields, kinds: FeatureKinds, least: int) -> dict[Field, FieldTally]:
    """Find the occurrences of frequent features; a column that a line lacks is like an empty one."""
    inputs, owners = lines_of(items.inputs), np.arange(len(items))
    texts = [(EXPECTED, lines_of(items.expected)), (OUTPUT, lines_of(items.outputs))]
    texts += [(fields.column(column), backends.take_column(inputs, column)) for column in range(items.width)]
    found = {where: FieldTally(kinds, True, least) for where, _ in sorted(texts)}
    for where, text in texts:
        found[where].collect(owners, text)
        found[where].finish()
    return found


def _texts_by_field(
    chunk: Sequence[ScoredItem], first: int, fields: Fields
) -> Iterator[tuple[Field, Sequence[int], Sequence[str]]]:
    """Yield the texts of items in each field, and the numbers of these items, which count from ``first``."""
    inputs, expected, outputs = zip(*chunk, strict=True)
    numbers = range(first, first + len(chunk))
    yield EXPECTED, numbers, expected
    yield OUTPUT, numbers, outputs
    by_column: list[tuple[list[int], list[str]]] = []
    rows = [text.split("\t") for text in inputs]
    if len(set(map(len, rows))) == 1:
        yield from ((fields.column(place), numbers, column) for place, column in enumerate(zip(*rows, strict=True)))
        return
    for number, row in zip(numbers, rows, strict=True):
        by_column += [([], []) for _ in row[len(by_column) :]]
        for (owners, column), text in zip(by_column, row, strict=False):
            owners.append(number)
            column.append(text)
    yield from ((fields.column(place), *of_column) for place, of_column in enumerate(by_column))


# Counting on workers elsewhere: each counts the pieces that it reads


class _Lines(NamedTuple):
    """What is sent with lines of an output: their inputs and expected words, which count, and their weights."""

    beside: list[tuple[str, str]]
    known: Flags
    weights: Array


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
    """Count the features of an evaluation's lines as :func:`tally_features` does, with weights whose sums are exact.

    ``known`` is whether each line counts, and ``weights`` has a column for each that does. Raises UsageError if the
    lines were selected or the output can be read only once, UnreadableFileError if it was changed, and ClusterError.
    """
    fields = Fields(evaluation.split.in_header)
    found: dict[Field, FieldTally] = {}
    first = 0
    with LineReader(evaluation.output.path, header=evaluation.split.output_header) as outputs:
        evaluation.kept_texts().outputs.check(outputs)
        if evaluation.line_numbers is not None and not workers.is_local:
            what = "metrics whose flags (f, p) select some"
            raise UsageError(message=f"a cluster looks at all lines: leave out {what}")
        lines = _lines_of(evaluation, known, weights)
        work = partial(_tally, fields=fields, kinds=kinds, keep=keep)
        for block, of_lines in blocks.map_blocks(outputs, None, work, workers, beside=lines):
            for where, tally in of_lines.found.items():
                found.setdefault(where, FieldTally(kinds, tally.keep)).extend(tally, first)
            first += int(known[block.first_line - 1 :][: block.lines].sum())
            if progress is not None:
                progress(first, len(weights[0]))
    return {where: found[where] for where in sorted(found)}


def _lines_of(evaluation: scores.ScoredOutput, known: Flags, weights: Array) -> Callable[[blocks.Block], _Lines]:
    """Return a function from a block to the data beside its lines, for blocks in order."""
    beside = zip(evaluation.input.lines(), evaluation.kept_texts().expected.read(), strict=False)  # "" without end
    before = 0

    def lines_of(block: blocks.Block) -> _Lines:
        nonlocal before
        of_block = known[block.first_line - 1 :][: block.lines]
        first, before = before, before + int(of_block.sum())
        return _Lines(list(islice(beside, block.lines)), of_block, weights[:, first:before])

    return lines_of


def _tally(parts: Iterable[blocks.Block], *, fields: Fields, kinds: FeatureKinds, keep: bool) -> _Counted:
    """Count the features of lines, which are numbered from 0."""
    parts = iter(parts)
    first = next(parts)
    lines: _Lines = first.beside
    outputs = (output for part in chain((first,), parts) for output in decode_lines(part.outputs))
    items = (ScoredItem(*beside, output) for beside, output in zip(lines.beside, outputs, strict=True))
    return _Counted(tally_features(compress(items, lines.known.tolist()), lines.weights, fields, kinds, keep=keep))
