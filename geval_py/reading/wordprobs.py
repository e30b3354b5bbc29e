"""Which bucket a word goes to, so that nobody can cheat or be ruined by an unknown word.

The bucket of a word on a line is MurmurHash3_x86_32(word, seed = line number mod 2^32) mod 2^bits; the rest is spread
evenly over all buckets. A vector is the buckets.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p

from mmh3 import hash as murmur3

from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading.schemes import DEFAULT_BITS as DEFAULT_BITS
from geval_py.reading.schemes import LEAST_BITS as LEAST_BITS
from geval_py.reading.schemes import MOST_BITS as MOST_BITS
from geval_py.text import shorten, visible
from geval_py.values import Value


def word_buckets(words: Sequence[str], bits: int, line: int) -> list[int]:
    """Give each word's bucket, in [0, 2^bits), on the line of that number, from 1.

    The words are ones that UTF-8 can write: mmh3 5.3.1 ends the whole process on a lone surrogate.
    """
    mask, seed = (1 << bits) - 1, line & 0xFFFFFFFF
    return [murmur3(word, seed) & mask for word in words]


def bucket_masses(distribution: Distribution, bits: int, line: int) -> array[float]:
    """Give the mass of each of the 2^bits buckets."""
    size = 1 << bits
    masses = array("d", [0.0]) * size
    words = list(distribution.masses)
    for bucket, mass in zip(word_buckets(words, bits, line), distribution.masses.values(), strict=True):
        masses[bucket] += mass
    share = distribution.rest / size
    return array("d", [mass + share for mass in masses])


# What an output line means: from words and numbers as they are written to masses.


TOLERANCE = 1e-8  # how far below 1 a total may be and still count as 1 (GEval's epsilon)
LEAST_TOTAL = 1.0 - TOLERANCE
LEAST_LOG_TOTAL = log1p(-TOLERANCE)
MOST_LOG_TOTAL = log1p(TOLERANCE)


def check_bits(bits: int) -> None:
    """Raise UsageError for a number of bits out of range."""
    if not LEAST_BITS <= bits <= MOST_BITS:
        raise UsageError(message=f"bits is {bits}; it is from {LEAST_BITS} to {MOST_BITS}")


def check_line_number(line: int, name: str) -> None:
    """Raise UsageError for a line number, given as the argument ``name``, that is none."""
    if line < 1:
        raise UsageError(message=f"{name} is {line}; lines are counted from 1")


class Distribution(Value):
    """What a line means: the mass of each word, in the line's order, and that of all other words together.

    The masses and the rest are in [0, 1]; together they are 1, or less by at most 1e-8.
    """

    masses: dict[str, float]
    rest: float


def distribution_of(words: Sequence[str], values: Sequence[float]) -> Distribution:
    """Give what the entries of a line mean; an empty word is the rest. What stands there twice is added up."""
    listed, rest = entry_masses(words, values)
    masses: dict[str, float] = {}
    for word, mass in zip(filter(None, words), listed, strict=True):
        masses[word] = masses.get(word, 0.0) + mass
    return Distribution(masses=masses, rest=rest)


def entry_masses(words: Sequence[str], values: Sequence[float]) -> tuple[list[float], float]:
    """Give the mass of each entry that is not a rest, in order, and that of the rest."""
    rests = [value for word, value in zip(words, values, strict=True) if not word]
    listed = [value for word, value in zip(words, values, strict=True) if word] if rests else values
    if are_probabilities(values):
        divisor, missing = scale_probabilities(values, bool(rests))
        return [value / divisor for value in listed], sum(rests) / divisor + missing
    shift, log_divisor, log_missing = scale_logarithms(values, bool(rests))
    rest = exp(log_sum_exp([value - shift for value in rests]) - log_divisor) + exp(log_missing)
    return [exp(value - shift - log_divisor) for value in listed], rest


def vector_masses(values: Sequence[float]) -> list[float]:
    """Give the masses of the buckets that a vector of logarithms means."""
    shift, log_divisor, _ = scale_logarithms(values, whole=True)
    return [exp(value - shift - log_divisor) for value in values]


def are_probabilities(values: Sequence[float]) -> bool:
    """Tell whether a line's values are probabilities; otherwise they are natural logarithms."""
    return 0.0 < max(values) <= 1.0 and min(values) >= 0.0


def scale_probabilities(values: Sequence[float], whole: bool) -> tuple[float, float]:
    """Give by what a line's probabilities are divided, and the mass that is missing, which goes to the rest.

    ``whole`` tells that nothing can be missing: the line has a rest entry.
    """
    total = sum_in_order(values)
    if total > 1.0 or (total < LEAST_TOTAL and whole):
        return total, 0.0
    return 1.0, 1.0 - total if total < LEAST_TOTAL else 0.0


def scale_logarithms(values: Sequence[float], whole: bool) -> tuple[float, float, float]:
    """Give what scales a line's logarithms, ``shift`` and ``log_divisor``, and the logarithm of the missing mass.

    The logarithm of the mass of v is v - shift - log_divisor: relative to the greatest value, which cancels out,
    nothing is lost to rounding. ``whole`` tells that nothing can be missing: the line has a rest entry, or is a
    vector.
    """
    log_total = log_sum_exp(values)
    off_below = log_total < LEAST_LOG_TOTAL
    if log_total > 0.0 or (off_below and whole):
        greatest = max(values)
        return greatest, log_sum_exp([value - greatest for value in values]), -inf
    return 0.0, 0.0, log(-expm1(log_total)) if off_below else -inf  # ln(1 - total)


def log_sum_exp(values: Sequence[float]) -> float:
    """Give ln of the sum of exp of the values, -inf for none, without overflow or underflow."""
    greatest = max(values, default=-inf)
    if greatest == -inf:
        return -inf
    return greatest + log(sum_in_order([exp(value - greatest) for value in values]))


def sum_in_order(values: Sequence[float]) -> float:
    """Sum from left to right, as GEval does; sum() compensates from Python 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


# The grammar of an output line, and its one parser in Python.


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
