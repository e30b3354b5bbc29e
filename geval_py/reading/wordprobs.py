"""Output lines: the grammar and its parser, the probability distribution that a line means, and hash buckets.

Hashing words into buckets makes outputs comparable, whatever words they list. The bucket of a word on a line is
MurmurHash3_x86_32(word, seed = line number mod 2^32) mod 2^bits; the rest is spread evenly over all buckets. A vector
gives the buckets themselves. :mod:`geval_py.scoring.writing` writes whole outputs.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, fsum, inf, isfinite, isinf, log, log1p
from typing import TypeVar

from mmh3 import hash as murmur3

from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading.schemes import DEFAULT_BITS, MAX_BITS, MIN_BITS
from geval_py.text import shorten, visible

Key = TypeVar("Key", str, int)
TOLERANCE = 1e-8  # a total so little below 1 counts as 1 (GEval's epsilon)
MIN_TOTAL = 1.0 - TOLERANCE
MIN_LOG_TOTAL = log1p(-TOLERANCE)
MAX_LOG_TOTAL = log1p(TOLERANCE)
OVERSHOOT = 1e-6  # how far outside [0, 1] a badly rounded probability may be
MAX_LOG_PLAUSIBLE = log(1.5)  # the total of logarithms that were rounded to tenths is nearer to 1
NEARLY_ONE = 1.02  # a total of numbers of which some were rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """The distribution of a line: each word's probability, in the line's order, and that of all other words.

    The masses and the rest are in [0, 1]; their total is 1, or less by at most 1e-8.
    """

    masses: dict[str, float]
    rest: float


def distribution_of(words: Sequence[str], values: Sequence[float]) -> Distribution:
    """Return the distribution of a line's entries; an empty word is the rest, and repeated words add up."""
    rests = [value for word, value in zip(words, values, strict=True) if not word]
    if are_probabilities(values):
        divisor, missing = scale_probabilities(values, bool(rests))
        masses, rest = [value / divisor for value in values], sum_in_order(rests) / divisor + missing
    else:
        shift, log_divisor, log_missing = scale_logarithms(values, bool(rests))
        masses = [exp(value - shift - log_divisor) for value in values]
        rest = exp(log_sum_exp([value - shift for value in rests]) - log_divisor) + exp(log_missing)
    listed = ((word, mass) for word, mass in zip(words, masses, strict=True) if word)
    return Distribution(masses=merge_masses(listed), rest=rest)


def merge_masses(masses: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """Add up the masses of equal words, or of equal buckets."""
    merged: dict[Key, float] = {}
    for key, mass in masses:
        merged[key] = merged.get(key, 0.0) + mass
    return merged


def are_probabilities(values: Sequence[float]) -> bool:
    """Whether a line's values are probabilities rather than natural logarithms."""
    return 0.0 < max(values) <= 1.0 and min(values) >= 0.0


def look_like_probabilities(values: Sequence[float]) -> bool:
    """Whether numbers read as logarithms were meant as probabilities: most are, or all but for rounding."""
    inside = [value for value in values if 0.0 <= value <= 1.0]
    return (_overshoot(values) and max(values) >= 0.5) or (any(inside) and 2 * len(inside) > len(values))


def is_overshoot(values: Sequence[float]) -> bool:
    """Whether numbers read as logarithms are probabilities, of which rounding made some leave [0, 1]."""
    return _overshoot(values) and look_like_probabilities(values)


def _overshoot(values: Sequence[float]) -> bool:
    return min(values) >= -OVERSHOOT and max(values) <= 1.0 + OVERSHOOT


def total_far_above_one(values: Sequence[float]) -> bool:
    """Whether the exponentials of values total too much for logarithms of probabilities."""
    return log_sum_exp(values) > MAX_LOG_PLAUSIBLE


def are_far_above_one(values: Sequence[float]) -> bool:
    """Whether the values of a line's entries are neither probabilities nor logarithms of probabilities."""
    return not are_probabilities(values) and not is_overshoot(values) and total_far_above_one(values)


def scale_probabilities(values: Sequence[float], whole: bool) -> tuple[float, float]:
    """Return the divisor of a line's probabilities, and the missing mass, which goes to the rest.

    ``whole`` means that no mass can be missing: the line has a rest entry.
    """
    total = sum_in_order(values)
    if total > 1.0 or (total < MIN_TOTAL and whole):
        return total, 0.0
    return 1.0, 1.0 - total if total < MIN_TOTAL else 0.0


def scale_logarithms(values: Sequence[float], whole: bool) -> tuple[float, float, float]:
    """Return ``shift`` and ``log_divisor``, which scale a line's logarithms, and the logarithm of the missing mass.

    The logarithm of the mass of v is v - shift - log_divisor; the shift by the greatest value avoids rounding errors.
    ``whole`` means that no mass can be missing: the line has a rest entry, or is a vector.
    """
    log_total = log_sum_exp(values)
    off_below = log_total < MIN_LOG_TOTAL
    if log_total > 0.0 or (off_below and whole):
        greatest = max(values)
        return greatest, log_sum_exp([value - greatest for value in values]), -inf
    return 0.0, 0.0, log(-expm1(log_total)) if off_below else -inf  # ln(1 - total)


def log_sum_exp(values: Sequence[float]) -> float:
    """Return ln of the sum of exp of the values, -inf for no values, without overflow or underflow."""
    greatest = max(values, default=-inf)
    if greatest == -inf:
        return -inf
    return greatest + log(sum_in_order([exp(value - greatest) for value in values]))


def sum_in_order(values: Sequence[float]) -> float:
    """Sum from left to right like GEval; from Python 3.12 on sum() would compensate rounding errors."""
    total = 0.0
    for value in values:
        total += value
    return total


# The grammar. Its quantifiers are possessive: without backtracking, any line takes linear time and no memory.
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
    """One output line as written: words and their numbers, before normalisation.

    ``words`` is None for a vector. An empty word is the rest entry.
    """

    words: tuple[str, ...] | None
    values: tuple[float, ...]

    @property
    def is_far_above_one(self) -> bool:
        """Whether its numbers are neither probabilities nor their logarithms; the number of a class has none."""
        if self.words is None and len(self.values) == 1:
            return not _overshoot(self.values)
        return total_far_above_one(self.values) if self.words is None else are_far_above_one(self.values)

    def normalised(self) -> Distribution:
        """Return the distribution that the line means: each word's mass, and the mass of all other words.

        Raises UsageError for a vector, which has buckets instead of words.

        >>> parse_line("the:0.5 a:0.5 the:0.5 :0.5").normalised()
        Distribution(masses={'the': 0.5, 'a': 0.25}, rest=0.25)
        """
        if self.words is None:
            raise UsageError("the line is a vector, which has no words: its masses are buckets(bits)")
        return distribution_of(self.words, self.values)

    def buckets(self, bits: int = DEFAULT_BITS, line: int = 1) -> array[float]:
        """Return the masses of the 2^bits buckets; the loss is -ln of the mass of the expected word's bucket.

        ``bits`` is 1 to 24; ``line`` is the line's number in its file, from 1, which seeds the hash. The masses total
        1, or less by at most 1e-8. A mass too small for a double is 0 here, while scoring keeps its logarithm.

        Raises UsageError for bits or a line out of range and for a word that UTF-8 cannot write, MalformedLineError
        for a vector of another length.

        >>> list(parse_line("the:0.5 :0.5").buckets(bits=2))
        [0.125, 0.625, 0.125, 0.125]
        """
        if not MIN_BITS <= bits <= MAX_BITS:
            raise UsageError(f"bits is {bits}; it is from {MIN_BITS} to {MAX_BITS}")
        if line < 1:
            raise UsageError(f"line is {line}; lines are counted from 1")
        if self.words is None:
            if len(self.values) != 1 << bits:
                text = " ".join(map(repr, self.values))
                raise wrong_vector_length(text, line, len(self.values), bits)
            shift, log_divisor, _ = scale_logarithms(self.values, whole=True)
            return array("d", (exp(value - shift - log_divisor) for value in self.values))
        try:
            "".join(self.words).encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"a word cannot be hashed, since UTF-8 cannot write it: {error.reason}") from error
        return bucket_masses(self.normalised(), bits, line)


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
    entries = [token.rpartition(":") for token in text.split(" ")]
    if _ENTRIES.fullmatch(text):
        values = [float(number) for _, _, number in entries]
        _refuse_infinity(text, line, values)
        return [word for word, _, _ in entries], values
    index = next(n for n, (_, colon, number) in enumerate(entries) if not (colon and NUMBER.fullmatch(number)))
    word, colon, number = entries[index]
    column = column_of(text, index)
    if colon:
        raise _malformed_number(text, line, column + len(word) + 1, number, word=word)
    if number:
        name = visible(shorten(number))
        hint = f"`{name}` has no probability; an entry is `word:probability`, and a word cannot contain a space"
    else:
        place = "leading" if index == 0 else "trailing" if column > len(text) else "double"
        hint = f"a {place} space; entries are separated by exactly one space"
        column = max(1, column - (index > 0))
    raise _malformed(text, line, column, COLON_EXPECTED, number, hint)


def parse_vector(text: str, line: int, bits: int | None = None) -> list[float]:
    """Parse a line without a colon into its numbers, in order; with ``bits``, one for each of 2^bits buckets."""
    tokens = text.split(" ")
    if not _NUMBERS.fullmatch(text):
        index = next(i for i, token in enumerate(tokens) if not NUMBER.fullmatch(token))
        raise _malformed_number(text, line, column_of(text, index), tokens[index], no_colon=True)
    values = list(map(float, tokens))
    _refuse_infinity(text, line, values)
    if bits is not None and len(values) != 1 << bits:
        raise wrong_vector_length(text, line, len(values), bits)
    return values


def parse_number(text: str, line: int) -> float:
    """Parse a line that is one plain number."""
    if not NUMBER.fullmatch(text):
        raise _malformed_number(text, line, 1, text)
    value = float(text)
    _refuse_infinity(text, line, [value])
    return value


def wrong_vector_length(text: str, line: int, length: int, bits: int) -> MalformedLineError:
    """Return the error for a line without a colon that does not have one number per bucket."""
    hint = (
        f"a line without a colon holds a log probability for each of {1 << bits} buckets, this one holds {length}; "
        "were `word:probability` entries meant?"
    )
    return _malformed(text, line, 1, WRONG_VECTOR_LENGTH, shorten(text), hint)


def column_of(text: str, index: int) -> int:
    """Return the column, from 1, of the token with an index from 0."""
    return 1 + sum(len(token) + 1 for token in text.split(" ", index)[:index])


_WRITES_LINES = "write geval_py.format_line(guess), or entries such as `the:0.5`"
_WRITES_ARRAYS = "write geval_py.format_line(numbers, vocabulary=words)"
LINE_MISTAKES = (  # the beginning and the end of a malformed line, and what it is
    ('{"', "", f"the line looks like JSON; name the file out-NAME.jsonl, or {_WRITES_LINES}"),
    (('[{"', '[[{"'), "", "the line looks like a JSON list; name the file out-NAME.json"),
    ("[", "[", "the line looks like a JSON list; name the file out-NAME.json"),
    ("PAR1\x15", "", "the line looks like Parquet; name the file out-NAME.parquet"),
    (
        '"',
        '"',
        'quotes are around the line, as pandas\' to_csv writes them: give it sep="\\t" and quoting=csv.QUOTE_NONE',
    ),
    ("{", "}", f"the line looks like a Python dict; {_WRITES_LINES}"),
    ("[{'", "", f"the line looks like a Python list of dicts, as of a pipeline; {_WRITES_LINES}"),
    ("[(", ")]", f"the line looks like a list of pairs; {_WRITES_LINES}"),
    ("[", "]", f"the line looks like an array; {_WRITES_ARRAYS}"),
    ("tensor(", ")", f"the line looks like a tensor; {_WRITES_ARRAYS}"),
)


def _malformed(text: str, line: int, column: int, reason: str, token: str, hint: str) -> MalformedLineError:
    """Return the error for a line; the hint is at the whole line if that shows what went wrong."""
    for beginning, end, mistake in LINE_MISTAKES:
        if text.startswith(beginning) and text.endswith(end):
            hint = mistake
            break
    return MalformedLineError(line=line, column=column, reason=reason, token=token, hint=hint, text=text)


def _malformed_number(
    text: str, line: int, column: int, number: str, *, word: str = "", no_colon: bool = False
) -> MalformedLineError:
    reason = TEXT_AFTER_NUMBER if NUMBER.match(number) else NO_DIGIT
    shown = visible(shorten(number))
    if not text:
        hint = "the line is empty; write `:1` where there is no guess"
    elif no_colon and not number:
        hint = "a stray space, and no colon; an entry is `word:probability`, one space between entries"
    elif no_colon and reason == NO_DIGIT and number_mistake(number)[0] == "text":
        hint = f"`{shown}` is not an entry; an entry is `word:probability`, with a colon"
        hint += ", U+003A; this one is U+FF1A" if "\uff1a" in number else ""
    elif not number:
        hint = "a number should follow the colon" + ", without a space" * (len(text) >= column)
    elif word and NUMBER.fullmatch(word) and number_mistake(number)[0] == "text":
        hint = f"`{shown}` is not a number; the word stands first: `{shown}:{visible(shorten(word))}`"
    else:
        hint = f"`{shown}` is not a number; {number_mistake(number)[1]}"
    return _malformed(text, line, column, reason, number, hint)


# Common mistakes in numbers: the kind, its pattern, and what to write. mistakes.hpp has the same.
NUMBER_MISTAKES = (
    ("decimal comma", r"[+-]?\d+,\d+([eE].*)?", "write a decimal point, not a comma"),
    ("percent", r"[+-]?[\d.,]+\s*%", "write a fraction, not a percentage: 0.5, not 50%"),
    ("NaN", r"[+-]?nan", "your model produced NaN (not a number): look for 0/0 or log of a negative number"),
    ("infinity", r"[+-]?inf(inity)?", "your model produced an infinity: leave the word out"),
    ("missing leading digit", r"[+-]?\.\d+([eE][+-]?\d+)?", "write a digit before the point: 0.5, not .5"),
    ("missing digit after the point", r"[+-]?\d+\.", "write a digit after the point: 5.0, not 5."),
    ("missing exponent", r"[+-]?\d+(\.\d+)?[eE][+-]?", "write digits after the exponent's e, or no e"),
    ("hexadecimal", r"[+-]?0[xX].*", "write a decimal number, not a hexadecimal one"),
    ("digit separator", r"[+-]?\d+([_']\d+)+(\.\d+)?", "write the digits without separators"),
    ("several signs", r"[+-]{2,}.*", "write one sign at most"),
    ("digits of another script", r"(?=.*[^\x00-\x7f])[+-]?[\d.]+([eE].*)?", "write the digits 0 to 9"),
)
TEXT_MISTAKES = (
    ("comma after it", rf"{_NUMBER}[,;]", "separate entries by one space alone"),
    ("Python object", r"[a-z_][\w.]*\(.*", "write the number itself: float(p)"),
    ("another minus", r"[\u2010-\u2015\u2212]\d.*", "write the minus as U+002D, the hyphen of keyboards"),
    ("fraction", rf"{_NUMBER}/{_NUMBER}", "write a decimal number: 0.6, not 6/10"),
)


def number_mistake(
    number: str, mistakes: Iterable[tuple[str, str, str]] = (*NUMBER_MISTAKES, *TEXT_MISTAKES)
) -> tuple[str, str]:
    """Return the kind of a mistake in place of a number, and advice on what to write."""
    for kind, pattern, advice in mistakes:
        if re.fullmatch(pattern, number, re.IGNORECASE):
            return kind, advice
    return "text", "digits were expected, such as 0.25, -1.5 or 2.5e-3"


NEGATIVE_LOGARITHMS = "they look like negative logarithms: write a minus before each"
BASE_10 = "they look like logarithms to base 10: multiply each by 2.302585 (ln 10)"
OF_CLASS = "the probability of the class 1 is from 0 to 1: divide percentages by 100, and apply the sigmoid to logits"
UNKNOWN_NUMBERS = "divide percentages by 100, counts by their sum; apply softmax to logits, 2^-x to surprisals (bits)"


def number_advice(words: Sequence[str] | None, values: Sequence[float]) -> str:
    """Return what numbers that are no probabilities look like, and what to write; ``words`` are those of WordProbs.

    >>> number_advice(["the", "of", ""], [120.0, 60.0, 100.0])
    'they look like counts: divide each by their sum; if they are ranks, write probabilities instead'
    """
    least, greatest, total = min(values), max(values), sum_in_order(values)
    if words is None:
        if len(values) == 1:
            return OF_CLASS
        if least >= 0.0 and greatest <= 1.0:
            return "they look like probabilities: write the natural logarithm of each"
        if least >= 0.0 and 0.9 <= fsum(exp(-value) for value in values) <= NEARLY_ONE:
            return NEGATIVE_LOGARITHMS
        if greatest <= 0.0 and fsum(10.0**value for value in values) <= NEARLY_ONE:
            return BASE_10
        return "they look like logits: write their log_softmax"
    if not any(values):
        return "all are 0, the logarithm of 1: write more digits, or `:1` where there is no guess"
    listed = [value for word, value in zip(words, values, strict=True) if word]
    rests = [value for word, value in zip(words, values, strict=True) if not word]
    if listed and rests and max(listed) <= 0.0 <= min(rests) <= max(rests) <= 1.0:
        return "the words have logarithms, but the rest has not: write the logarithm of its probability"
    if greatest <= 0.0:
        if not total_far_above_one(values):
            return "they look like logarithms of probabilities: write exp(x) of each"
        if fsum(10.0**value for value in values) <= NEARLY_ONE:
            return BASE_10
        return "normalise them: subtract their logsumexp, as log_softmax does"
    if is_overshoot(values):
        return "clip rounding errors to the range from 0 to 1"
    if least < 0.0:
        if 2 * sum(0.0 <= value <= 1.0 for value in values) > len(values):
            return "a probability is not negative: replace negative numbers by 0, and divide each by their sum"
        return "they look like logits: apply softmax"
    if 99.0 <= total <= 101.0:
        return "they look like percentages: divide each by 100"
    if all(value.is_integer() for value in values):
        return "they look like counts: divide each by their sum; if they are ranks, write probabilities instead"
    if 0.9 <= fsum(exp(-value) for value in values) <= NEARLY_ONE:
        return NEGATIVE_LOGARITHMS
    if greatest <= 2.0:
        return "a probability is at most 1: divide each by their sum"
    return UNKNOWN_NUMBERS


def far_above_one_note(count: int, lines: int, advice: str) -> str:
    """Return the sentence on a number of lines that are far above one, out of all; the advice may be ``OF_CLASS``."""
    have = "has" if count == 1 else "have"
    what = "no probabilities" if advice == OF_CLASS else "neither probabilities nor their logarithms"
    return f"{count} of {lines} lines {have} numbers that are {what}"


def _refuse_infinity(text: str, line: int, values: list[float]) -> None:
    """Raise MalformedLineError for a number that is in the grammar but too large for a double."""
    if all(map(isfinite, values)):
        return
    index = next(place for place, value in enumerate(values) if isinf(value))
    token = text.split(" ")[index]
    number = token.rpartition(":")[2]
    column = column_of(text, index) + len(token) - len(number)
    hint = f"`{visible(shorten(number))}` is too large for a double (the largest is about 1.8e308)"
    raise _malformed(text, line, column, TOO_LARGE, number, hint)


def word_buckets(words: Sequence[str], bits: int, line: int) -> list[int]:
    """Return each word's bucket, in [0, 2^bits), on the line with a number from 1.

    The words must be valid UTF-8: mmh3 5.3.1 ends the whole process on a lone surrogate.
    """
    mask, seed = (1 << bits) - 1, line & 0xFFFFFFFF
    return [murmur3(word, seed) & mask for word in words]


def bucket_masses(distribution: Distribution, bits: int, line: int) -> array[float]:
    """Return the masses of the 2^bits buckets."""
    size = 1 << bits
    masses = array("d", [0.0]) * size
    words = list(distribution.masses)
    for bucket, mass in zip(word_buckets(words, bits, line), distribution.masses.values(), strict=True):
        masses[bucket] += mass
    share = distribution.rest / size
    return array("d", [mass + share for mass in masses])


# Words that would split a line, that UTF-8 cannot write, or that geval check takes for a mistake: an odd character,
# two entries in one.
_UNWRITABLE = re.compile(
    r"[\s\x00-\x1f\x7f-\xa0\u200b-\u200f\u2028-\u202f\u2066-\u2069\ufeff\ud800-\udfff]|:.*[0-9][,;]|[0-9][,;].*:"
)


def is_listable(word: str) -> bool:
    """Whether an output can list a word without a warning."""
    return word != "" and not _UNWRITABLE.search(word)


# Writing masses as a line

MIN_LOG = -745.0  # of a bucket without mass: the least whole logarithm whose exp is not 0


def line_of_masses(masses: Mapping[str, float], rest: float) -> str:
    """Write words with masses that total 1 with the rest, with six significant digits; leave out masses of 0.

    >>> line_of_masses({"the": 0.5, "a": 0.0, "of": 1 / 3}, 1 / 6)
    'the:0.5 of:0.333333 :0.166667'
    >>> line_of_masses({"the": 1 / 3, "a": 1 / 3}, 1 / 3)
    'the:0.333334 a:0.333333 :0.333333'
    """
    listed = {word: mass for word, mass in (*masses.items(), (REST, rest)) if mass > 0.0}
    numbers = {word: f"{mass:.6g}" for word, mass in listed.items()}
    largest = max(listed, key=listed.__getitem__)
    others = sum_in_order(list(map(float, numbers.values()))) - float(numbers[largest])
    numbers[largest] = f"{1.0 - others:.12g}"
    return " ".join([f"{word}:{number}" for word, number in numbers.items()])


def line_of_buckets(masses: Sequence[float]) -> str:
    """Write the masses of buckets, which total 1, as a vector of natural logarithms.

    >>> line_of_buckets([0.25, 0.75])
    '-1.386294361 -0.2876820725'
    """
    return " ".join([f"{log(mass) if mass > 0.0 else MIN_LOG:.10g}" for mass in masses])
