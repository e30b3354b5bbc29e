"""Features of an item: the tokens, shapes, bigrams and sizes in its texts, and filters by them.

    feature = field ":" token | field ":" token "++" token | field ":SHAPE:" shape | field ":=#" length | …
    field   = "exp" | "out" | "in<" column ">"

``exp`` is the expected line, ``out`` the output line; an input column has its name in the header or its number.
Tokens are split at space, TAB and colon, or by a tokenizer. The definitions are GEval's (modules FeatureExtractor and
WordShape). :mod:`geval_py.explaining.worst_features` ranks the features by the scores of their lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

from geval_py.errors import MalformedLineError, MissingFileError, UsageError
from geval_py.reading.files import find_file
from geval_py.reading.items import ScoredItem, column_name
from geval_py.reading.lines import read_lines
from geval_py.reading.schemes import checked_tokenizer
from geval_py.text import counted, nearest, shorten, suggestion, visible

SEPARATORS = " \t:"  # of tokens
SHAPE = "SHAPE:"
BETWEEN_TOKENS = "++"
BETWEEN_FEATURES = "~~"
NUMERICAL = "=#?[+-]"  # a regular expression: a field's length or number, and the end that is worse
LENGTH = "=#"  # precedes a field's length
VALUE = "="  # precedes a field's number
MAX_CANDIDATES = 20_000  # tokens among which a misspelt one is looked up

# The usual notations among those that Haskell reads as a number.
FIELD_NUMBER = re.compile(r"\s*-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
Tokens = Callable[[str], Iterable[str]]


def split_tokens(text: str) -> list[str]:
    """Split a text at space, TAB and colon.

    >>> split_tokens("a:0.5 :0.5")
    ['a', '0.5', '0.5']
    """
    return [token for token in text.replace("\t", " ").replace(":", " ").split(" ") if token]


def tokens_of(tokenizer: str | None) -> Tokens:
    """Return the function that splits texts into tokens: a tokenizer's, by default :func:`split_tokens`."""
    if tokenizer is None:
        return split_tokens
    from geval_py.reading.preparation import tokenized

    return partial(tokenized, checked_tokenizer(tokenizer))


_SPAN = "[0-9]{1,18}(?:-[0-9]{1,18})?"  # no text is longer
_REFERENCE = re.compile(f"([0-9]+) ((?:{_SPAN}(?:,{_SPAN})*)?)")


def read_references(path: str) -> dict[str, str]:
    """Read a file of texts, to which fields refer, by their numbers.

    On each line there is a whole number, a TAB and a text; of equal numbers the last one counts.

    Raises MissingFileError and other DataErrors, also for a line that is not of this form.
    """
    place = find_file(path)
    if place is None:
        raise MissingFileError(what="No file with the references", path=path)
    texts: dict[str, str] = {}
    for line, text in enumerate(read_lines(place), 1):
        number, tab, referenced = text.partition("\t")
        if not re.fullmatch("[0-9]+", number) or not tab or "\t" in referenced:
            raise MalformedLineError(
                path=place, line=line, column=1, reason="no reference", token=shorten(text), text=text,
                hint="a line of references is a whole number, a TAB and a text without TABs",
            )  # fmt: skip
        texts[number.lstrip("0")] = referenced
    return texts


class FeatureKinds(NamedTuple):
    """The kinds of features besides tokens; ``tokens`` splits a text.

    ``references`` are texts by their numbers, to which fields may refer: ``7 0-4,10`` is six characters of the text
    7. Positions count from 0, and both ends belong to a span.
    """

    bigrams: bool = False
    word_shapes: bool = False
    numerical: bool = False
    cartesian: bool = False
    tokens: Tokens = split_tokens
    references: Mapping[str, str] | None = None

    def referenced(self, field: str) -> str:
        """Return the characters that a field refers to, in the order of the text; another field is returned as it is.

        As in GEval, a field is also returned if there is no such text. What is beyond the end of a text is left out.

        >>> kinds = FeatureKinds(references={"7": "Rome, in Italy"})
        >>> kinds.referenced("7 9-20,0-3"), kinds.referenced("07 3"), kinds.referenced("8 0-3")
        ('RomeItaly', 'e', '8 0-3')
        """
        match = _REFERENCE.fullmatch(field) if self.references else None
        text = self.references.get(match[1].lstrip("0")) if self.references and match else None
        if match is None or text is None:
            return field
        parts, reached = [], 0
        spans = [span.partition("-") for span in match[2].split(",") if span]
        for start, stop in sorted((int(start), int(end or start) + 1) for start, _, end in spans):
            parts.append(text[max(start, reached) : max(stop, reached)])
            reached = max(reached, stop)
        return "".join(parts)

    @property
    def are_in_kernel(self) -> bool:
        """Whether the kernel finds these features."""
        return self.tokens is split_tokens and not self.bigrams and self.references is None

    def of_text(self, text: str) -> tuple[list[str], ...]:
        """Return a text's distinct features, without field: tokens, shapes, bigrams of tokens, of shapes."""
        tokens = list(dict.fromkeys(self.tokens(self.referenced(text))))
        kinds = tokens, list(dict.fromkeys(map(word_shape, tokens))) if self.word_shapes else []
        if not self.bigrams:
            return kinds
        return *kinds, *(list(dict.fromkeys(map(BETWEEN_TOKENS.join, pairwise(kind)))) for kind in kinds)


_SHAPES = {"Lu": "A", "Lt": "A", "Ll": "a", "Ps": "(", "Pe": "(", "Zs": " "}


@cache
def character_shape(character: str) -> str:
    """Return the class of a character in a token's shape, which is an ASCII character."""
    if "0" <= character <= "9":
        return "9"
    if "\t" <= character <= "\r":
        return " "
    from unicodedata import category

    kind = category(character)
    return _SHAPES.get(kind) or ("." if kind.startswith("P") else "#")


def word_shape(token: str) -> str:
    """Return a token's shape: letters by case, digits, brackets, punctuation, and ``#`` for all else.

    A run of the same class, except digits, becomes its first character and a plus sign.

    >>> word_shape("Kowalski-1970,")
    'SHAPE:Aa+.9999.'
    """
    return SHAPE + re.sub(r"([^9])\1+", r"\1+", "".join(map(character_shape, token)))


_NAME = re.compile(r"(?:(exp|out)|in<(.*?)>|in\[(.*?)\]):(.*)", re.DOTALL)
_FORMS = {"a": "small letters", "A": "capital letters", "a+": "lower-case words", "Aa+": "capitalized words",
          "A+": "words in capitals"}  # fmt: skip
_ENDS = {"=#+": "greatest length", "=#-": "least length", "=+": "greatest number", "=-": "least number"}


def feature_words(name: str) -> str:
    r"""Describe a feature to people, by its name.

    >>> print(feature_words("in<Left>:the"), feature_words("exp:SHAPE:a+."), feature_words("in<2>:=#+"), sep="\n")
    `the` in Left
    lower-case words in the answer that end in punctuation
    greatest length of column 2
    """
    described = []
    for part in re.split(f"{BETWEEN_FEATURES}(?=(?:exp|out|in<.*?>):)", name):
        match = _NAME.fullmatch(part)
        if match is None:
            return name
        field, column, _, token = match.groups()
        place = {"exp": "the answer", "out": "the output"}.get(field) or column
        place = f"column {place}" if place.isdigit() else place
        if token.startswith(SHAPE):
            shapes = token.removeprefix(SHAPE).split(BETWEEN_TOKENS + SHAPE)
            described.append(" before ".join(_words_of_shape(shape, place) for shape in shapes))
        elif token in _ENDS:
            described.append(f"{_ENDS[token]} of {place}")
        else:
            words = re.sub(r"(?<=.)\+\+(?=[^+])", " ", token)  # a bigram, but not C++
            described.append(f"`{words}` in {place}")
    return " and ".join(described)


def _words_of_shape(shape: str, place: str) -> str:
    base = shape.removesuffix(".")
    form = _FORMS.get(base) or (f"numbers of {counted(len(base), 'digit')}" if base and not base.strip("9") else None)
    if form is None:
        return f"words in {place} of the form `{shape}`"
    return f"{form} in {place}" + (" that end in punctuation" if base != shape else "")


DOCUMENT_NAMES = ["fileid", "file", "docid", "document", "documentid", "articleid", "sourceid", "url"]


def columns_named(names: Container[str], columns: Iterable[str]) -> list[str]:
    """Return the columns with one of some names, which are in lower case and without spaces, "_" and "-".

    >>> columns_named(DOCUMENT_NAMES, ["Document title", "Doc_Id"])
    ['Doc_Id']
    """
    return [column for column in columns if re.sub("[ _-]", "", column).lower() in names]


class Field(NamedTuple):
    """A field of an item: ``exp``, ``out`` (both have the column -1), or a column of the input, counted from 0.

    Fields sort by their ``place`` in the order of display: exp, out, columns by name, other columns by number. The
    ``name`` of a column is that in the header or, if that is not unique, its number, from 1.
    """

    place: int
    name: str
    column: int = -1

    def __str__(self) -> str:
        return f"in<{self.name}>" if self.column >= 0 else self.name


EXPECTED, OUTPUT = Field(0, "exp"), Field(1, "out")


class Fields:
    """The fields of items, by the header of the input.

    >>> fields = Fields(["Year"])
    >>> print(fields.column(0), fields.column(1))
    in<Year> in<2>
    """

    def __init__(self, header: Sequence[str] = ()) -> None:
        self.header = tuple(header)
        self._columns: dict[int, Field] = {}

    def column(self, index: int) -> Field:
        """Return a column of the input, counted from 0."""
        if index not in self._columns:
            name = column_name(self.header, index)
            self._columns[index] = Field(3 + index if name == str(index + 1) else 2, name, index)
        return self._columns[index]

    def split(self, item: ScoredItem) -> list[tuple[Field, str]]:
        """Return an item's fields with their texts."""
        text, expected, output = item
        columns = enumerate(text.split("\t"))
        return [(EXPECTED, expected), (OUTPUT, output), *((self.column(i), column) for i, column in columns)]

    def find(self, name: str) -> Field:
        """Return the column of the input with a name or number; raises KeyError."""
        for field in map(self.column, range(len(self.header))):
            if field.name == name:
                return field
        if re.fullmatch("[1-9][0-9]{0,8}", name):
            return self.column(int(name) - 1)
        raise KeyError(name)


class Feature(NamedTuple):
    """One feature: its name as given, its field and its token."""

    name: str
    field: Field
    token: str

    def text(self, item: ScoredItem) -> str | None:
        """Return the text of the feature's field; None if the item lacks that column."""
        if self.field == EXPECTED:
            return item.expected
        if self.field == OUTPUT:
            return item.output
        columns = item.input.split("\t")
        return columns[self.field.column] if self.field.column < len(columns) else None

    def is_in(self, item: ScoredItem, kinds: FeatureKinds) -> bool:
        """Whether an item has the feature.

        If ``kinds`` has lengths and numbers, a text has the number in the token (``=1901.0``) or, if it is no number,
        the length (``=#8``).
        """
        text = self.text(item)
        if text is None:
            return False
        if kinds.numerical:
            size, number = kinds.referenced(text), self.token.removeprefix(VALUE)
            if not FIELD_NUMBER.fullmatch(size):
                if self.token == f"{LENGTH}{len(size)}":
                    return True
            elif number != self.token and FIELD_NUMBER.fullmatch(number) and float(number) == float(size):
                return True
        return any(self.token in features for features in self.kinds(kinds).of_text(text))

    def kinds(self, kinds: FeatureKinds) -> FeatureKinds:
        """Return the kinds to search for this feature: shapes or bigrams by its name, else the given ones."""
        shapes = self.token.startswith(SHAPE)
        bigrams = BETWEEN_TOKENS in self.token
        return kinds._replace(bigrams=bigrams, word_shapes=shapes) if shapes or bigrams else kinds


def parse_feature(name: str, fields: Fields) -> Feature:
    """Parse a feature, such as ``exp:the`` or ``in<Year>:1601`` (or ``in[Year]:1601``); raises UsageError.

    >>> feature = parse_feature("in[Year]:1601", Fields(("FileId", "Year")))
    >>> print(feature.field, feature.field.column, feature.token)
    in<Year> 1 1601
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise UsageError(
            f"Unknown feature `{visible(name)}'\n"
            "  a feature is exp:WORD, out:WORD or in<COLUMN>:WORD, for example exp:the\n"
            "  geval … -w | head shows the names of features"
        )
    field, angled, squared, token = match.groups()
    if field is not None:
        return Feature(name, EXPECTED if field == "exp" else OUTPUT, token)
    column = squared if angled is None else angled
    try:
        return Feature(name, fields.find(column), token)
    except KeyError:
        hint = columns_there_are(column, fields.header, "in<{}>")
        message = f"Unknown column `{visible(column)}' in the feature `{visible(name)}'\n  {hint}"
        raise UsageError(message) from None


def columns_there_are(column: str, header: Sequence[str], written: str = "{}") -> str:
    """Return a hint for a misspelt column, in the form ``written``: a similar one, and all that exist.

    >>> columns_there_are("year", ("FileId", "Year"))
    'did you mean Year? the columns are FileId, Year'
    """
    guess = suggestion(column, header, written)
    return guess + (f"the columns are {visible(', '.join(header))}" if header else "the columns have numbers, from 1")


class ItemFilter(NamedTuple):
    """A filter for the items that have all of some features."""

    features: tuple[Feature, ...]
    kinds: FeatureKinds = FeatureKinds()

    @property
    def needs_input(self) -> bool:
        return any(feature.field.column >= 0 for feature in self.features)

    def selects(self, item: ScoredItem) -> bool:
        """Whether an item has all the features."""
        return all(feature.is_in(item, self.kinds) for feature in self.features)

    def nothing_found(self, items: Iterable[ScoredItem]) -> str:
        """Return the message that no item was selected, with the nearest feature."""
        names = " and ".join(f"`{visible(feature.name)}'" for feature in self.features)
        if len(self.features) > 1:
            return f"No item has the features {names} together"
        feature, tokens = self.features[0], dict[str, None]()
        if re.fullmatch(NUMERICAL, feature.token):
            return f"{names} is no feature of a line by itself: it is the quarter of all lines at one end"
        kinds = feature.kinds(self.kinds)
        for item in items:
            text = feature.text(item)
            if text is not None:
                tokens.update(dict.fromkeys(token for kind in kinds.of_text(text) for token in kind))
            if len(tokens) > MAX_CANDIDATES:
                break
        close = nearest(feature.token, tokens)
        guess = "" if close is None else feature.name.removesuffix(feature.token) + close
        return f"No item has the feature {names}" + (f"\n  did you mean {visible(guess)}?" if guess else "")


def parse_filter(names: Iterable[str], fields: Fields, kinds: FeatureKinds | None = None) -> ItemFilter:
    """Parse a filter; with Cartesian features a name may be a pair, ``A~~B``; raises UsageError."""
    kinds = kinds or FeatureKinds()
    parts = [part for name in names for part in (name.split(BETWEEN_FEATURES) if kinds.cartesian else [name])]
    return ItemFilter(tuple(parse_feature(part, fields) for part in parts), kinds)
