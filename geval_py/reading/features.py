"""Features of an item: what its texts contain.

    feature = field ":" token | field ":" token "++" token | field ":SHAPE:" shape | …
    field   = "exp" | "out" | "in<" column ">"

``exp`` is the expected line, ``out`` the output line, a column of the input is named as its header says, or numbered
from 1. Tokens are split at space, TAB and colon, or by a tokenizer. The definitions are GEval's (its modules
FeatureExtractor and WordShape); which features go with bad scores is said in
:mod:`geval_py.explaining.features.worst`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from geval_py.errors import UsageError
from geval_py.reading.items import column_name, has_name
from geval_py.text import nearest, visible

EXPECTED, OUTPUT = "exp", "out"
SHAPE = "SHAPE:"
BETWEEN_TOKENS = "++"
BETWEEN_FEATURES = "~~"
NUMERICAL = "=#?[+-]"  # a regular expression: a field's length or number, and at which end it is worse
MOST_CANDIDATES = 20_000  # tokens that a misspelt one is compared with

Item = tuple[str, str, str]  # input, expected, output
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


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of an item's fields, given the header of the input."""

    header: tuple[str, ...] = ()

    def column(self, index: int) -> str:
        """Name a column of the input, counted from 0: by its name or, if it has none of its own, by its number."""
        return f"in<{column_name(self.header, index)}>"

    def order(self, name: str) -> tuple[int, str, int]:
        """Give the sort key of a field: exp, out, columns with a name by name, the others by number."""
        if not name.startswith("in<"):
            return ((EXPECTED, OUTPUT).index(name), "", 0)
        column = name[3:-1]
        is_number = re.fullmatch("[1-9][0-9]{0,17}", column)  # so many columns fit in no memory
        return (3, "", int(column)) if is_number else (2, column, 0)

    def split(self, item: Item) -> list[tuple[str, str]]:
        """Give an item's fields, named."""
        text, expected, output = item
        columns = enumerate(text.split("\t"))
        return [(EXPECTED, expected), (OUTPUT, output), *((self.column(i), column) for i, column in columns)]

    def find(self, name: str) -> int:
        """Give the index of a column of the input that is called by its name or number; raises KeyError."""
        if name in self.header and has_name(self.header, self.header.index(name)):
            return self.header.index(name)
        if re.fullmatch("[1-9][0-9]{0,8}", name):
            return int(name) - 1
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: its name as given, its field (a column counted from 0, or exp or out) and its token."""

    name: str
    field: int | str
    token: str

    @property
    def needs_input(self) -> bool:
        return isinstance(self.field, int)

    def text(self, item: Item) -> str | None:
        """Give the text of an item in which the feature may be; None if the item has no such column."""
        if self.field == EXPECTED:
            return item[1]
        if self.field == OUTPUT:
            return item[2]
        columns = item[0].split("\t")
        return columns[self.field] if isinstance(self.field, int) and self.field < len(columns) else None

    def is_in(self, item: Item, kinds: FeatureKinds) -> bool:
        """Tell whether an item has the feature, be it a token, or a shape or bigram by its name."""
        text = self.text(item)
        return text is not None and any(self.token in features for features in self.kinds(kinds).of_text(text))

    def kinds(self, kinds: FeatureKinds) -> FeatureKinds:
        """Give the kinds of features among which this one is, by its name or as asked for."""
        shapes = self.token.startswith(SHAPE)
        bigrams = BETWEEN_TOKENS in self.token
        return FeatureKinds(bigrams=bigrams, word_shapes=shapes, tokens=kinds.tokens) if shapes or bigrams else kinds


def parse_feature(name: str, fields: Fields) -> Feature:
    """Read a feature, such as ``exp:the`` or ``in<Year>:1601`` (or ``in[Year]:1601``); raises UsageError.

    >>> parse_feature("in<Year>:1601", Fields(("FileId", "Year")))
    Feature(name='in<Year>:1601', field=1, token='1601')
    """
    match = re.fullmatch(r"(?:(exp|out)|in<(.*?)>|in\[(.*?)\]):(.*)", name, re.DOTALL)
    if match is None:
        raise UsageError(
            message=f"Unknown feature `{visible(name)}'\n"
            "  a feature is exp:WORD, out:WORD or in<COLUMN>:WORD, for example exp:the"
        )
    field, angled, squared, token = match.groups()
    if field is not None:
        return Feature(name, field, token)
    column = squared if angled is None else angled
    try:
        return Feature(name, fields.find(column), token)
    except KeyError:
        raise UsageError(message=_unknown_column(name, column, fields.header)) from None


def _unknown_column(name: str, column: str, header: Sequence[str]) -> str:
    other_case = (name for name in header if name.casefold() == column.casefold())
    close = next(other_case, None) or nearest(column, header)
    guess = f"did you mean in<{visible(close)}>? " if close else ""
    there_are = f"the columns are {visible(', '.join(header))}" if header else "the columns have numbers, from 1"
    return f"Unknown column `{visible(column)}' in the feature `{visible(name)}'\n  {guess}{there_are}"


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """The items that have all of some features."""

    features: tuple[Feature, ...]
    kinds: FeatureKinds = FeatureKinds()

    @property
    def needs_input(self) -> bool:
        return any(feature.needs_input for feature in self.features)

    def selects(self, item: Item) -> bool:
        """Tell whether an item has all the features."""
        return all(feature.is_in(item, self.kinds) for feature in self.features)

    def nothing_found(self, items: Iterable[Item]) -> str:
        """Say that no item was selected, and which feature might have been meant."""
        names = " and ".join(f"`{visible(feature.name)}'" for feature in self.features)
        if len(self.features) > 1:
            return f"No item has the features {names} together"
        if re.fullmatch(NUMERICAL, self.features[0].token):
            return f"{names} is no feature of a line by itself: it is the quarter of all lines at one end"
        guess = self._nearest(self.features[0], items)
        return f"No item has the feature {names}" + (f"\n  did you mean {visible(guess)}?" if guess else "")

    def _nearest(self, feature: Feature, items: Iterable[Item]) -> str | None:
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
