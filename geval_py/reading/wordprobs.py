r"""The grammar of an output line, and its one parser in Python.

    line     = entries | vector
    entries  = entry *( " " entry )          exactly one ASCII space between
    entry    = [ word ] ":" number           split at the last colon; an empty word is the rest: any other word
    vector   = number *( " " number )        a line with no colon: 2^bits natural-log probabilities, one a bucket
    number   = [ "+" / "-" ] digits [ "." digits ] [ ( "e" / "E" ) [ "+" / "-" ] digits ]

A word is anything without a space and a line end; colons, TABs and no-break spaces are part of it. Digits are
the ten ASCII ones.

What a distribution means (which lines hold probabilities and which logarithms, and how they are normalised) is
said once, in :mod:`geval_py.reading.distribution`.
"""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass

from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading.distribution import (
    DEFAULT_BITS,
    Distribution,
    check_bits,
    check_line_number,
    distribution_of,
    vector_masses,
)
from geval_py.text import shorten, visible

# Possessive throughout: nothing is tried twice, so any line takes linear time and no memory.
_NUMBER = r"[+-]?[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
NUMBER = re.compile(_NUMBER)
_NUMBERS = re.compile(f"{_NUMBER}(?: {_NUMBER})*+")
_ENTRY = rf"(?:[^ :]*+:)++{_NUMBER}"
_ENTRIES = re.compile(f"{_ENTRY}(?: {_ENTRY})*+")
REST = ""  # the word of the rest entry

# GEval's own bracketed messages.
NO_DIGIT = "input does not start with a digit"
TEXT_AFTER_NUMBER = "number text found after a number"
COLON_EXPECTED = "colon expected"
TOO_LARGE = "number too large"
WRONG_VECTOR_LENGTH = "unexpected number of log probs"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordProbs:
    """One output line as it is written: words and their numbers, not yet normalised.

    ``words`` is None for a vector. An empty word is the rest entry.
    """

    words: tuple[str, ...] | None
    values: tuple[float, ...]

    def normalised(self) -> Distribution:
        """Give what the line means: the mass of each word, and that of all other words together.

        Raises UsageError for a vector, which holds buckets, not words.

        >>> parse_line("the:0.5 a:0.5 the:0.5 :0.5").normalised()
        Distribution(masses={'the': 0.5, 'a': 0.25}, rest=0.25)
        """
        if self.words is None:
            raise UsageError(message="the line is a vector, which has no words: its masses are buckets(bits)")
        return distribution_of(self.words, self.values)

    def buckets(self, bits: int = DEFAULT_BITS, line: int = 1) -> array[float]:
        """Give the masses of the 2^bits buckets that are scored: the loss is -ln of that of the expected word.

        ``bits`` is 1 to 24; ``line`` is the line's number in its file, from 1, which seeds the hash: another line
        throws the same words into other buckets. The masses are 1 together, or less by at most 1e-8. What is too
        small for a double is 0 here, while scoring keeps its logarithm.

        Raises UsageError for bits or a line out of range and for a word that UTF-8 cannot write, MalformedLineError
        for a vector of another length.

        >>> list(parse_line("the:0.5 :0.5").buckets(bits=2))
        [0.125, 0.625, 0.125, 0.125]
        """
        check_bits(bits)
        check_line_number(line, "line")
        if self.words is None:
            return array("d", vector_masses(self._vector(bits, line)))
        from geval_py.reading.buckets import bucket_masses

        try:
            "".join(self.words).encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                message=f"a word cannot be hashed, since UTF-8 cannot write it: {error.reason}"
            ) from error
        return bucket_masses(self.normalised(), bits, line)

    def _vector(self, bits: int, line: int) -> tuple[float, ...]:
        """Give the values of a vector, which should be one a bucket."""
        if len(self.values) != 1 << bits:
            raise wrong_vector_length(" ".join(map(repr, self.values)), line, len(self.values), bits)
        return self.values


def parse_line(text: str, line: int = 1) -> WordProbs:
    """Parse one output line (without its line end); ``line`` is its number, for the error.

    Raises MalformedLineError, without a path.

    >>> parse_line("the:0.5 :0.5")
    WordProbs(words=('the', ''), values=(0.5, 0.5))
    """
    if ":" in text:
        words, values = parse_entries(text, line)
        return WordProbs(words=tuple(words), values=tuple(values))
    return WordProbs(words=None, values=tuple(parse_vector(text, line)))


def parse_entries(text: str, line: int) -> tuple[list[str], list[float]]:
    """Parse a line that has a colon into its words and their numbers, in order."""
    if not _ENTRIES.fullmatch(text):
        raise _first_malformed_entry(text, line)
    words: list[str] = []
    values: list[float] = []
    for token in text.split(" "):
        word, _, number = token.rpartition(":")
        words.append(word)
        values.append(float(number))
    if not math.isfinite(sum(values)):
        _refuse_infinity(text, line, values)
    return words, values


def parse_vector(text: str, line: int) -> list[float]:
    """Parse a line without a colon into its numbers, in order."""
    tokens = text.split(" ")
    if not _NUMBERS.fullmatch(text):
        index = next(i for i, token in enumerate(tokens) if not NUMBER.fullmatch(token))
        raise _malformed_number(text, line, _column(text, index), tokens[index], no_colon=True)
    values = list(map(float, tokens))
    if not math.isfinite(sum(values)):
        _refuse_infinity(text, line, values)
    return values


def parse_number(text: str, line: int) -> float:
    """Parse a line that is one plain number."""
    if not NUMBER.fullmatch(text):
        raise _malformed_number(text, line, 1, text)
    value = float(text)
    _refuse_infinity(text, line, [value])
    return value


def wrong_vector_length(text: str, line: int, length: int, bits: int) -> MalformedLineError:
    """Make the error for a line without a colon that has not one number a bucket."""
    return MalformedLineError(
        line=line,
        column=1,
        reason=WRONG_VECTOR_LENGTH,
        token=shorten(text),
        text=text,
        hint=f"a line without a colon holds a log probability for each of {1 << bits} buckets, this one holds "
        f"{length}; were `word:probability` entries meant?",
    )


def _column(text: str, index: int) -> int:
    """Give the column, from 1, at which the token of that index (from 0) begins."""
    return 1 + sum(len(token) + 1 for token in text.split(" ", index)[:index])


def _first_malformed_entry(text: str, line: int) -> MalformedLineError:
    """Make the error for the first token that is not an entry."""
    index, token = next(
        (index, token)
        for index, token in enumerate(text.split(" "))
        if not (":" in token and NUMBER.fullmatch(token.rpartition(":")[2]))
    )
    column = _column(text, index)
    if ":" in token:
        number = token.rpartition(":")[2]
        return _malformed_number(text, line, column + len(token) - len(number), number)
    if token:
        hint = f"`{visible(shorten(token))}` has no probability; an entry is `word:probability`"
    else:
        place = "leading" if index == 0 else "trailing" if column > len(text) else "double"
        hint = f"a {place} space; entries are separated by exactly one space"
        column = max(1, column - (index > 0))
    return MalformedLineError(line=line, column=column, reason=COLON_EXPECTED, token=token, hint=hint, text=text)


def _malformed_number(
    text: str, line: int, column: int, number: str, *, no_colon: bool = False
) -> MalformedLineError:
    reason = TEXT_AFTER_NUMBER if NUMBER.match(number) else NO_DIGIT
    shown = visible(shorten(number))
    if not text:
        hint = "the line is empty; write `:1` where there is no guess"
    elif no_colon and not number:
        hint = "a stray space, and no colon; an entry is `word:probability`, one space between entries"
    elif no_colon and reason == NO_DIGIT:
        hint = f"`{shown}` is not an entry; an entry is `word:probability`, with a colon"
    elif not number:
        hint = "a number should follow the colon"
    else:
        hint = f"`{shown}` is not a number; {number_advice(number)}"
    return MalformedLineError(line=line, column=column, reason=reason, token=number, hint=hint, text=text)


# What people write instead of a number: the kind, its pattern, and what to write.
NUMBER_MISTAKES = (
    ("decimal comma", r"[+-]?\d+,\d+([eE].*)?", "write a decimal point, not a comma"),
    ("percent", r"[+-]?[\d.,]+\s*%", "write a fraction, not a percentage: 0.5, not 50%"),
    ("NaN", r"[+-]?nan", "your model produced NaN (not a number): look for 0/0 or log of a negative number"),
    ("infinity", r"[+-]?inf(inity)?", "your model produced an infinity: leave the word out, or write 0"),
    ("missing leading digit", r"[+-]?\.\d+([eE][+-]?\d+)?", "write a digit before the point: 0.5, not .5"),
    ("missing digit after the point", r"[+-]?\d+\.", "write a digit after the point: 5.0, not 5."),
    ("missing exponent", r"[+-]?\d+(\.\d+)?[eE][+-]?", "write digits after the exponent's e, or no e"),
    ("hexadecimal", r"[+-]?0[xX].*", "write a decimal number, not a hexadecimal one"),
    ("digit separator", r"[+-]?\d+([_']\d+)+(\.\d+)?", "write the digits without separators"),
    ("several signs", r"[+-]{2,}.*", "write one sign at most"),
    ("digits of another script", r"(?=.*[^\x00-\x7f])[+-]?[\d.]+([eE].*)?", "write the digits 0 to 9"),
)


def number_mistake(number: str) -> tuple[str, str]:
    """Tell what kind of thing stands where a number should, and what to write instead."""
    for kind, pattern, advice in NUMBER_MISTAKES:
        if re.fullmatch(pattern, number, re.IGNORECASE):
            return kind, advice
    return "text", "digits were expected, such as 0.25, -1.5 or 2.5e-3"


def number_advice(number: str) -> str:
    """Say what to write instead of something that is not a number."""
    return number_mistake(number)[1]


def _refuse_infinity(text: str, line: int, values: list[float]) -> None:
    """Numbers in the grammar are finite, but may be too large for a double."""
    if math.inf not in values and -math.inf not in values:
        return
    index = next(i for i, value in enumerate(values) if math.isinf(value))
    token = text.split(" ")[index]
    number = token.rpartition(":")[2]
    raise MalformedLineError(
        line=line,
        column=_column(text, index) + len(token) - len(number),
        reason=TOO_LARGE,
        token=number,
        hint=f"`{visible(shorten(number))}` is too large for a double (the largest is about 1.8e308)",
        text=text,
    )
