"""Features of an item: what its texts contain.

    feature = field ":" token | field ":" token "++" token | field ":SHAPE:" shape | field ":=#" length | …
    field   = "exp" | "out" | "in<" column ">"

``exp`` is the expected line, ``out`` the output line, a column of the input is named as its header says, or numbered
from 1. Tokens are split at space, TAB and colon, or by a tokenizer. The definitions are GEval's (its modules
FeatureExtractor and WordShape); which features go with bad scores is said in
:mod:`geval_py.explaining.worst_features`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from geval_py.errors import UsageError
from geval_py.reading.items import ScoredItem, has_name
from geval_py.text import nearest, visible

SHAPE = "SHAPE:"
BETWEEN_TOKENS = "++"
BETWEEN_FEATURES = "~~"
NUMERICAL = "=#?[+-]"  # a regular expression: a field's length or number, and at which end it is worse
LENGTH = "=#"  # in front of a field's length
VALUE = "="  # in front of its number
MOST_CANDIDATES = 20_000  # tokens that a misspelt one is compared with

# What Haskell reads as a number, as far as people write it.
FIELD_NUMBER = re.compile(r"\s*-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
Tokens = Callable[[str], Iterable[str]]


def split_tokens(text: str) -> list[str]:
    """Split a text at space, TAB and colon.

    >>> split_tokens("a:0.5 :0.5")
    ['a', '0.5', '0.5']
    """
    return [token for token in text.replace("\t", " ").replace(":", " ").split(" ") if token]


def tokens_of(tokenizer: str | None) -> Tokens:
    """Tell how texts are split into features: by a tokenizer, by default at space, TAB and colon."""
    if tokenizer is None:
        return split_tokens
    from geval_py.reading.tokenizers import find_tokenizer

    return find_tokenizer(tokenizer).tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureKinds:
    """Which features there are beside the tokens themselves; ``tokens`` splits a text."""

    bigrams: bool = False
    word_shapes: bool = False
    numerical: bool = False
    cartesian: bool = False
    tokens: Tokens = split_tokens

    def of_text(self, text: str) -> tuple[list[str], ...]:
        """Give a text's distinct features, without field: tokens, shapes, bigrams of tokens, of shapes."""
        tokens = list(dict.fromkeys(self.tokens(text)))
        shapes = list(dict.fromkeys(map(word_shape, tokens))) if self.word_shapes else []
        if not self.bigrams:
            return tokens, shapes
        return tokens, shapes, list(_bigrams(tokens)), list(_bigrams(shapes))


def _bigrams(tokens: Sequence[str]) -> Iterable[str]:
    return dict.fromkeys(f"{first}{BETWEEN_TOKENS}{second}" for first, second in pairwise(tokens))


_SHAPES = {"Lu": "A", "Lt": "A", "Ll": "a", "Ps": "(", "Pe": "(", "Zs": " "}


@cache
def _character_shape(character: str) -> str:
    if "0" <= character <= "9":
        return "9"
    if "\t" <= character <= "\r":
        return " "
    from unicodedata import category

    kind = category(character)
    return _SHAPES.get(kind) or ("." if kind.startswith("P") else "#")


def word_shape(token: str) -> str:
    """Give a token's shape: letters by case, digits, brackets, punctuation, and all else as ``#``.

    Of a run of the same, digits aside, the first is kept, and a plus sign.

    >>> word_shape("Kowalski-1970,")
    'SHAPE:Aa+.9999.'
    """
    return SHAPE + re.sub(r"([^9])\1+", r"\1+", "".join(map(_character_shape, token)))


class FieldKind(IntEnum):
    """What a field is of, in the order in which fields are shown."""

    EXPECTED = 0
    OUTPUT = 1
    NAMED_COLUMN = 2
    NUMBERED_COLUMN = 3


class Field(NamedTuple):
    """A field of an item; its order is that in which fields are shown: exp, out, columns by name, others by number.

    A ``column`` of the input is counted from 0, and has a ``name`` unless it is called by its number.

    >>> print(Field(FieldKind.OUTPUT), Field(FieldKind.NAMED_COLUMN, "Year", 1))
    out in<Year>
    """

    kind: FieldKind
    name: str = ""
    column: int = 0

    def __str__(self) -> str:
        if self.is_column:
            return f"in<{self.column_name}>"
        return "exp" if self.kind == FieldKind.EXPECTED else "out"

    @property
    def is_column(self) -> bool:
        """Whether it is a column of the input."""
        return self.kind >= FieldKind.NAMED_COLUMN

    @property
    def column_name(self) -> str:
        """What a column is called: by its name or, if it has none of its own, by its number, from 1."""
        return self.name if self.kind == FieldKind.NAMED_COLUMN else str(self.column + 1)


EXPECTED, OUTPUT = Field(FieldKind.EXPECTED), Field(FieldKind.OUTPUT)


class Fields:
    """The fields of an item, given the header of the input."""

    def __init__(self, header: Sequence[str] = ()) -> None:
        self.header = tuple(header)
        self._columns = [_column(self.header, index) for index in range(len(self.header))]
        self._by_name = {field.column_name: field for field in self._columns}

    def column(self, index: int) -> Field:
        """Give a column of the input, counted from 0."""
        return self._columns[index] if index < len(self._columns) else _numbered(index)

    def split(self, item: ScoredItem) -> list[tuple[Field, str]]:
        """Give an item's fields and their texts."""
        text, expected, output = item
        columns = enumerate(text.split("\t"))
        return [(EXPECTED, expected), (OUTPUT, output), *((self.column(i), column) for i, column in columns)]

    def find(self, name: str) -> Field:
        """Give the column of the input that is called by its name or number; raises KeyError."""
        if name in self._by_name:
            return self._by_name[name]
        if re.fullmatch("[1-9][0-9]{0,8}", name):
            return self.column(int(name) - 1)
        raise KeyError(name)


def _column(header: Sequence[str], index: int) -> Field:
    """Give a column of the header; one that is called by its number has no name, though the header may give it."""
    name = header[index]
    if not has_name(header, index) or name == str(index + 1):
        return _numbered(index)
    return Field(FieldKind.NAMED_COLUMN, name, index)


def _numbered(index: int) -> Field:
    return Field(FieldKind.NUMBERED_COLUMN, column=index)


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: its name as given, its field and its token."""

    name: str
    field: Field
    token: str

    @property
    def needs_input(self) -> bool:
        return self.field.is_column

    def text(self, item: ScoredItem) -> str | None:
        """Give the text of an item in which the feature may be; None if the item has no such column."""
        if self.field == EXPECTED:
            return item.expected
        if self.field == OUTPUT:
            return item.output
        columns = item.input.split("\t")
        return columns[self.field.column] if self.field.column < len(columns) else None

    def is_in(self, item: ScoredItem, kinds: FeatureKinds) -> bool:
        """Tell whether an item has the feature: a token, a shape or bigram by its name, a size if numbers count."""
        text = self.text(item)
        if text is None:
            return False
        if kinds.numerical and self.is_size_of(text):
            return True
        return any(self.token in features for features in self.kinds(kinds).of_text(text))

    def is_size_of(self, text: str) -> bool:
        """Tell whether a text is the number in the token (``=1901.0``), or as long (``=#8``) and no number."""
        is_number = FIELD_NUMBER.fullmatch(text) is not None
        if self.token.startswith(LENGTH):
            return not is_number and self.token == f"{LENGTH}{len(text)}"
        number = self.token.removeprefix(VALUE)
        if not is_number or number == self.token or not FIELD_NUMBER.fullmatch(number):
            return False
        return float(number) == float(text)

    def kinds(self, kinds: FeatureKinds) -> FeatureKinds:
        """Give the kinds of features among which this one is, by its name or as asked for."""
        shapes = self.token.startswith(SHAPE)
        bigrams = BETWEEN_TOKENS in self.token
        return FeatureKinds(bigrams=bigrams, word_shapes=shapes, tokens=kinds.tokens) if shapes or bigrams else kinds


def parse_feature(name: str, fields: Fields) -> Feature:
    """Read a feature, such as ``exp:the`` or ``in<Year>:1601`` (or ``in[Year]:1601``); raises UsageError.

    >>> feature = parse_feature("in[Year]:1601", Fields(("FileId", "Year")))
    >>> print(feature.field, feature.field.column, feature.token)
    in<Year> 1 1601
    """
    match = re.fullmatch(r"(?:(exp|out)|in<(.*?)>|in\[(.*?)\]):(.*)", name, re.DOTALL)
    if match is None:
        raise UsageError(
            message=f"Unknown feature `{visible(name)}'\n"
            "  a feature is exp:WORD, out:WORD or in<COLUMN>:WORD, for example exp:the"
        )
    field, angled, squared, token = match.groups()
    if field is not None:
        return Feature(name, EXPECTED if field == "exp" else OUTPUT, token)
    column = squared if angled is None else angled
    try:
        return Feature(name, fields.find(column), token)
    except KeyError:
        raise UsageError(message=_unknown_column(name, column, fields.header)) from None


def _unknown_column(name: str, column: str, header: Sequence[str]) -> str:
    there_are = columns_there_are(column, header, "in<{}>")
    return f"Unknown column `{visible(column)}' in the feature `{visible(name)}'\n  {there_are}"


def columns_there_are(column: str, header: Sequence[str], written: str = "{}") -> str:
    """Say which column of the input may have been meant, as it is ``written``, and which there are.

    >>> columns_there_are("year", ("FileId", "Year"))
    'did you mean Year? the columns are FileId, Year'
    """
    other_case = (name for name in header if name.casefold() == column.casefold())
    close = next(other_case, None) or nearest(column, header)
    guess = f"did you mean {written.format(visible(close))}? " if close else ""
    there_are = f"the columns are {visible(', '.join(header))}" if header else "the columns have numbers, from 1"
    return guess + there_are


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """The items that have all of some features."""

    features: tuple[Feature, ...]
    kinds: FeatureKinds = FeatureKinds()

    @property
    def needs_input(self) -> bool:
        return any(feature.needs_input for feature in self.features)

    @property
    def is_of_outputs(self) -> bool:
        """Tell whether of different outputs it may select different items."""
        return any(feature.field == OUTPUT for feature in self.features)

    def selects(self, item: ScoredItem) -> bool:
        """Tell whether an item has all the features."""
        return all(feature.is_in(item, self.kinds) for feature in self.features)

    def nothing_found(self, items: Iterable[ScoredItem]) -> str:
        """Say that no item was selected, and which feature might have been meant."""
        names = " and ".join(f"`{visible(feature.name)}'" for feature in self.features)
        if len(self.features) > 1:
            return f"No item has the features {names} together"
        if re.fullmatch(NUMERICAL, self.features[0].token):
            return f"{names} is no feature of a line by itself: it is the quarter of all lines at one end"
        guess = self._nearest(self.features[0], items)
        return f"No item has the feature {names}" + (f"\n  did you mean {visible(guess)}?" if guess else "")

    def _nearest(self, feature: Feature, items: Iterable[ScoredItem]) -> str | None:
        tokens: dict[str, None] = {}
        for item in items:
            text = feature.text(item)
            if text is not None:
                kinds = feature.kinds(self.kinds)
                tokens.update(dict.fromkeys(token for kind in kinds.of_text(text) for token in kind))
            if len(tokens) > MOST_CANDIDATES:
                break
        other_case = (token for token in tokens if token.casefold() == feature.token.casefold())
        close = next(other_case, None) or nearest(feature.token, tokens)
        return None if close is None else feature.name.removesuffix(feature.token) + close


def parse_filter(names: Iterable[str], fields: Fields, kinds: FeatureKinds | None = None) -> ItemFilter:
    """Make a filter from the names of features; with Cartesian features a name may be two, ``A~~B``.

    Raises UsageError.
    """
    kinds = kinds or FeatureKinds()
    parts = [part for name in names for part in (name.split(BETWEEN_FEATURES) if kinds.cartesian else [name])]
    return ItemFilter(tuple(parse_feature(part, fields) for part in parts), kinds)
