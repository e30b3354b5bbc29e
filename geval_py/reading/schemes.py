"""Evaluation schemes: a metric with flags, such as ``PerplexityHashed:N<ppl>P<2>``.

    schemes  = text with products "{a,b}", never inside "<...>"; "<...>" may be inside of a product
    scheme   = metric [ ":" *flag ]
    flag     = letter | letter "<" argument ">" | "s<" regexp "><" replacement ">" | "f<in<" column ">:" token ">"

The names of metrics are in :mod:`geval_py.scoring.metrics`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from geval_py.errors import SchemeError, UsageError
from geval_py.text import shorten, suggestion, visible

TOKENIZERS = ("minimalistic", "character-by-character", "13a", "v14")  # of geval_py.reading.preparation
MAX_PRODUCTS = 10_000
DEFAULT_BITS = 10  # of a metric on hashed words: the binary logarithm of the number of buckets
MIN_BITS, MAX_BITS = 1, 24
_FLAG = r"[lucS]|f<(in<[^>]*>:[^>]*)>|[NPmtfp]<([^>]*)>|s<([^>]*)><([^>]*)>"
_READ_OF_BROKEN = r"\A(?:[NPmtfp]|s(?:<[^>]*>)?+)(?=.)"  # what GEval's parser has read, so that it does not name it
_FLAGS = "the flags are l u c S m<REGEXP> t<REGEXP> s<REGEXP><REPLACEMENT> f<FEATURE> p<PERCENT> N<NAME> P<NUMBER>"
_TEXT_FLAGS = "lucSmts"
_SELECTING_FLAGS = "fp"
_PERCENTAGE = r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_ARGUMENT = r"f<in<[^>]*>:[^>]*>|<[^>]*>"
_ALTERNATIVE = rf"(?:^|,)((?:{_ARGUMENT}|[^,])*)"
_PRODUCT = rf"{_ARGUMENT}|\{{((?:{_ARGUMENT}|[^{{}}<>])*)\}}"


class Flag(NamedTuple):
    """A flag: its letter and its arguments (none, one, or a regexp and its replacement)."""

    letter: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.letter + "".join(f"<{argument}>" for argument in self.arguments)


class EvaluationScheme(NamedTuple):
    """A metric's name with flags.

    ``text`` is the scheme as written, ``metric`` the name without flags (with its bits, if given). ``tokenizer``,
    from an option, splits the lines into tokens after the flags.
    """

    text: str
    metric: str
    flags: tuple[Flag, ...] = ()
    tokenizer: str | None = None

    def _arguments(self, letter: str) -> list[str]:
        return [flag.arguments[0] for flag in self.flags if flag.letter == letter]

    @property
    def name(self) -> str:
        """The display name: from the ``N`` flags, else the metric and its other flags as written."""
        names = self._arguments("N")
        return " ".join(names) if names else self.text.removesuffix(":")

    @property
    def priority(self) -> int:
        """The display priority, from the last ``P`` flag; 1 is shown first."""
        return int(["1", *self._arguments("P")][-1])

    @property
    def text_flags(self) -> tuple[Flag, ...]:
        """The flags that change the lines before scoring, in order."""
        return tuple(flag for flag in self.flags if flag.letter in _TEXT_FLAGS)

    @property
    def changes_lines(self) -> bool:
        """Whether lines are changed before they are scored."""
        return bool(self.text_flags) or self.tokenizer is not None

    @property
    def filters(self) -> tuple[str, ...]:
        """The features that a line must have to be scored."""
        return tuple(self._arguments("f"))

    @property
    def percentage(self) -> float | None:
        """The percentage of lines that are scored, those with most confidence, in (0, 100]; None for all."""
        return next(map(float, self._arguments("p")), None)

    @property
    def selecting_flags(self) -> tuple[Flag, ...]:
        """The flags that select the scored lines and their order."""
        return tuple(flag for flag in self.flags if flag.letter in _SELECTING_FLAGS)


@lru_cache  # config.txt is checked when it is read, and its metrics are looked up when something is scored
def parse_schemes(text: str) -> tuple[EvaluationScheme, ...]:
    """Parse a metric argument, in which ``{a,b}`` multiplies out.

    Raises SchemeError.

    >>> [scheme.metric for scheme in parse_schemes("{Likelihood,LogLoss}Hashed{8,12}")]
    ['LikelihoodHashed8', 'LikelihoodHashed12', 'LogLossHashed8', 'LogLossHashed12']
    """
    return tuple(map(parse_scheme, multiply_out(text)))


def multiply_out(text: str) -> list[str]:
    """Replace each ``{a,b}`` outside of ``<...>`` by its alternatives, the last one changing fastest.

    As in GEval's Data.CartesianStrings, a product ends at the next ``}``, and alternatives may have flags with
    arguments: ``{Accuracy:N<Acc>,F1:N<F>}``. Unlike GEval, a comma or a brace inside of ``<...>`` is the argument's.
    """
    products = [""]
    position = 0
    for match in re.finditer(_PRODUCT, text):
        inside = match[1]
        alternatives = [match[0]] if inside is None else re.findall(_ALTERNATIVE, inside)
        between = text[position : match.start()]
        if len(products) * len(alternatives) > MAX_PRODUCTS:
            message = f"More than {MAX_PRODUCTS} metrics in one definition: {visible(shorten(text))}"
            raise SchemeError(scheme=text, message=message)
        products = [done + between + new for done in products for new in alternatives]
        position = match.end()
    return [done + text[position:] for done in products]


def parse_scheme(text: str) -> EvaluationScheme:
    """Parse one scheme; raises SchemeError."""
    metric, _, rest = text.partition(":")
    flags: list[Flag] = []
    while rest:
        match = re.match(_FLAG, rest)
        if match is None:
            raise broken_flags(text, re.sub(_READ_OF_BROKEN, "", rest), _FLAGS)
        letter, arguments = rest[0], tuple(group for group in match.groups() if group is not None)
        if letter == "P":
            if not re.fullmatch("[0-9]{1,9}", arguments[0]):
                raise broken_flags(text, rest, "P<n> takes a whole number")
            arguments = (str(int(arguments[0])),)
        elif letter == "p":
            if not re.fullmatch(_PERCENTAGE, arguments[0]) or not 0 < float(arguments[0]) <= 100:
                raise broken_flags(text, rest, "p<n> takes a percentage, above 0 and at most 100")
            arguments = (str(float(arguments[0])),)
        flags.append(Flag(letter, arguments))
        rest = rest[match.end() :]
    return EvaluationScheme(text, metric, tuple(flags))


def broken_flags(scheme: str, flags: str, hint: str) -> SchemeError:
    """Return the error for flags of a scheme that have no meaning."""
    return SchemeError(scheme=scheme, message=f"Unknown or broken metric flags: {visible(flags)}\n  {hint}")


def checked_tokenizer(name: str) -> str:
    """Return the name of a tokenizer; raises UsageError for an unknown name."""
    if name in TOKENIZERS:
        return name
    hint = f"{suggestion(name, TOKENIZERS)}there are {', '.join(TOKENIZERS)}"
    folder = "; no folder is needed" if "/" in name else ""  # as lmplz's -T names
    raise UsageError(f"Unknown tokenizer: {visible(name)}\n  {hint}{folder}")
