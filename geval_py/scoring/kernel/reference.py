"""The reference of the kernel in Python: the losses of lines and their flags.

The functions that take blocks have a native twin of the same name, arguments and errors.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from math import inf, log, nan
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.wordprobs import (
    COLON_EXPECTED,
    MAX_LOG_TOTAL,
    MIN_LOG_TOTAL,
    MIN_TOTAL,
    NUMBER,
    NUMBER_MISTAKES,
    TOLERANCE,
    TOO_LARGE,
    WRONG_VECTOR_LENGTH,
    are_far_above_one,
    are_probabilities,
    log_sum_exp,
    look_like_probabilities,
    number_mistake,
    parse_entries,
    parse_vector,
    scale_logarithms,
    scale_probabilities,
    sum_in_order,
    total_far_above_one,
    word_buckets,
)
from geval_py.scoring import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Doubles: TypeAlias = "array[float] | NDArray[np.float64]"

MIN_DIVIDED = 1e-280  # a smaller value may become subnormal when a line is divided by its total
HALF_UNITS = (0.0, *(float(f"5e-{places + 1}") for places in range(1, 17)))  # by the number of decimal places
_CONTROL = re.compile(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]")
_CAPITAL = re.compile(rb"[A-Z]")
_SEPARATOR = re.compile(r"[0-9][,;\t](?!$)")  # a last one is as in `5:00,`


def is_split(word: str) -> bool:
    """Whether an entry's word looks like two entries that a comma, a semicolon or a TAB separates."""
    return ":" in word and _SEPARATOR.search(word) is not None


def bounded_losses(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], float, int]:
    """Score a block of output lines; return the losses, a bound of them, and the number of lines far above one.

    ``outputs`` and ``expected`` are as many UTF-8 lines, each ended by LF (the last one may lack it); ``bits`` is the
    binary logarithm of the number of buckets, 1 to 24; ``first_line`` is the number, from 1, of the first line in
    its file, which seeds the hash. The losses are in nats, in [0, inf].

    The bound is the greatest loss, in nats, possibly inf, that any of the lines could have had: for a word whose
    bucket has only its share of the rest, or the smallest value of a vector; 0 for no lines. Lines far above one have
    the flag FAR_ABOVE_ONE: their numbers are hardly logarithms of probabilities.

    Raises MalformedLineError, with the line's number in the file, at the first line that is not in the format,
    and ValueError if the two blocks differ in their number of lines.
    """
    pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
    of_lines = [_score_line(text, word, bits, line) for line, (text, word) in enumerate(pairs, first_line)]
    losses = array("d", (loss for loss, _, _ in of_lines))
    return losses, max((bound for _, bound, _ in of_lines), default=0.0), sum(far for _, _, far in of_lines)


def score_lines(outputs: Bytes, expected: bytes, bits: int, first_line: int) -> tuple[array[float], array[int]]:
    """Score a block as :func:`bounded_losses`, and flag what deserves a second look on each line.

    Returns the losses, NaN on malformed lines, and the lines' flags (:mod:`geval_py.scoring.kernel`). Raises
    ValueError if the two blocks differ in their number of lines.
    """
    losses, flags = array("d"), array("I")
    raw_lines = bytes(outputs).split(b"\n")
    words = decode_lines(expected)
    if not raw_lines[-1]:
        raw_lines.pop()
    for line, (raw, word) in enumerate(zip(raw_lines, words, strict=True), first_line):
        (text,) = decode_lines(raw + b"\n")
        of_bytes = (
            kernel.CARRIAGE_RETURN * (b"\r" in raw)
            | kernel.NOT_ASCII * (not raw.isascii())
            | kernel.CONTROL * bool(_CONTROL.search(raw))
            | kernel.CAPITAL * bool(_CAPITAL.search(raw))
        )
        try:
            losses.append(line_loss(text, word, bits, line))
            flags.append(of_bytes | distribution_flags(text, line))
        except MalformedLineError as error:
            losses.append(nan)
            flags.append(of_bytes | kernel.MALFORMED | error_kind(error))
    return losses, flags


def distribution_flags(text: str, line: int) -> int:
    """Return the flags that follow from the entries of a well-formed line."""
    if ":" not in text:
        values = parse_vector(text, line)
        far_above_one = kernel.FAR_ABOVE_ONE * total_far_above_one(values)
        return kernel.VECTOR | kernel.LOGARITHMS | far_above_one | _logarithm_flags(values)
    words, values = parse_entries(text, line)
    rests = [value for word, value in zip(words, values, strict=True) if not word]
    flags = (
        kernel.HAS_REST * bool(rests)
        | kernel.REST_ALONE * (len(rests) == len(values))
        | kernel.ZERO_ENTRY * any(value == 0.0 and word for word, value in zip(words, values, strict=True))
        | kernel.REPEATED * (len(set(words)) < len(words))
        | kernel.ALL_ZERO * (not any(values))
        | kernel.TINY * any(0.0 < value < MIN_DIVIDED for value in values)
        | kernel.SEPARATOR * any(map(is_split, words))
    )
    if not are_probabilities(values):
        looks = kernel.LOOKS_LIKE_PROBABILITIES * look_like_probabilities(values)
        looks |= kernel.FAR_ABOVE_ONE * are_far_above_one(values)
        return flags | looks | kernel.LOGARITHMS | _logarithm_flags(values)
    total = sum_in_order(values)
    off = kernel.ABOVE_ONE * (total > 1.0 + TOLERANCE) | kernel.BELOW_ONE * (total < MIN_TOTAL)
    off |= kernel.ROUNDED * (off != 0 and is_explained(total, rounding(numbers_of(text))))
    return flags | off | kernel.ZERO_REST * (bool(rests) and sum(rests) == 0.0)


def is_explained(total: float, bound: float) -> bool:
    """Whether a total is 1 within the tolerance and the rounding error ``bound``."""
    explained = TOLERANCE + bound
    return 1.0 - explained <= total <= 1.0 + explained


def numbers_of(text: str) -> list[str]:
    """Return the numbers of a well-formed line of entries, as they are written."""
    return [token.rpartition(":")[2] for token in text.split(" ")]


def rounding(numbers: Iterable[str]) -> float:
    """Bound the error of a sum of numbers, each of which was rounded to its last written place.

    >>> rounding(["0.333333", "0.333333", "1.5e-3", "1"])
    5.1e-05
    """
    return sum_in_order([half_unit(number) for number in numbers])


def half_unit(number: str) -> float:
    """Return half a unit in the last place of a number of the grammar.

    It is 0 for a number in whole units: 0 and 1 are certainties, and `a:1 b:1` is not a rounded distribution. It is
    also 0 for more than 16 decimal places, whose rounding errors do not add up to anything on the longest line.

    >>> half_unit("0.25"), half_unit("1.5e-7"), half_unit("1")
    (0.005, 5e-09, 0.0)
    """
    mantissa, _, exponent = number.lower().partition("e")
    size = min(int(exponent.lstrip("+-").lstrip("0")[:11] or 0), 1 << 30)  # int() takes long for long numbers
    places = len(mantissa.partition(".")[2]) - (-size if exponent.startswith("-") else size)
    return HALF_UNITS[places] if 0 < places < len(HALF_UNITS) else 0.0


def _logarithm_flags(values: list[float]) -> int:
    log_total = log_sum_exp(values)
    above, below = log_total > MAX_LOG_TOTAL, log_total < MIN_LOG_TOTAL
    return kernel.ABOVE_ONE * above | kernel.BELOW_ONE * below


def malformed_error(text: str, bits: int, line: int = 1) -> MalformedLineError:
    """Parse a malformed line again and return its error; ``line`` is its number."""
    try:
        line_loss(text, "", bits, line)
    except MalformedLineError as error:
        return error
    raise AssertionError(f"line {line} is malformed only to the native kernel")


def raise_malformed(outputs: Bytes, bits: int, first_line: int, index: int) -> NoReturn:
    """Parse the malformed line of a block, by its index, again, and raise its error; the native kernel calls this."""
    (text,) = decode_lines(bytes(outputs).split(b"\n", index + 1)[index] + b"\n")
    raise malformed_error(text, bits, first_line + index)


def error_kind(error: MalformedLineError) -> int:
    """Return which of ERROR_KINDS a malformed line has."""
    is_vector = ":" not in error.text
    if not error.text:
        return kernel.EMPTY_LINE
    if error.reason == TOO_LARGE:
        return kernel.NUMBER_TOO_LARGE
    if error.reason == WRONG_VECTOR_LENGTH:
        return kernel.WRONG_LENGTH
    if not error.token and (error.reason == COLON_EXPECTED or is_vector):
        return kernel.STRAY_SPACE
    first, several, _ = error.text.partition(" ")
    is_bad_number = (  # in a line without a colon, which was meant as a vector
        bool(several)
        and NUMBER.fullmatch(first) is not None
        and number_mistake(error.token, NUMBER_MISTAKES)[0] != "text"
    )
    if error.reason == COLON_EXPECTED or (is_vector and not is_bad_number):
        return kernel.NO_COLON
    return kernel.NOT_A_NUMBER


def count_lines(text: Bytes) -> int:
    """Count the lines of a text; the last one may lack its LF."""
    data = bytes(text)
    return data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))


def line_loss(text: str, expected: str, bits: int, line: int) -> float:
    """Compute the loss of one output line, in nats; see :func:`bounded_losses`."""
    return _score_line(text, expected, bits, line)[0]


def _score_line(text: str, expected: str, bits: int, line: int) -> tuple[float, float, bool]:
    """Return a line's loss, the greatest loss that it could have had, and whether it is far above one."""
    if ":" not in text:
        values = parse_vector(text, line, bits)
        (bucket,) = word_buckets([expected], bits, line)
        shift, log_divisor, _ = scale_logarithms(values, whole=True)
        loss, bound = (max(0.0, log_divisor - (value - shift)) for value in (values[bucket], min(values)))
        return loss, bound, total_far_above_one(values)
    words, values = parse_entries(text, line)
    hits: list[float] = []
    rests: list[float] = []
    bucket, *buckets = word_buckets([expected, *words], bits, line)
    for word, value, own in zip(words, values, buckets, strict=True):
        if not word:
            rests.append(value)
        elif own == bucket:
            hits.append(value)
    share = 1 / (1 << bits)
    far_above_one = are_far_above_one(values)
    return mixture_loss(values, hits, rests, share), mixture_loss(values, [], rests, share), far_above_one


def mixture_loss(
    values: Sequence[float],
    hits: Sequence[float],
    rests: Sequence[float],
    share: float,
    probabilities: bool | None = None,
) -> float:
    """Compute the loss of a bucket or word with the values ``hits`` and a share of the rest, on a line of ``values``.

    ``rests`` are the values of the rest entries (they add up); ``share`` in [0, 1] is the part of the rest's mass
    that the bucket or word gets. All values are numbers as written; here they become masses. They are
    ``probabilities``, or else natural logarithms; by default, this is guessed.
    """
    if are_probabilities(values) if probabilities is None else probabilities:
        divisor, missing = scale_probabilities(values, bool(rests))
        mass = sum_in_order(hits) / divisor + (sum_in_order(rests) / divisor + missing) * share
        return max(0.0, -log(mass)) if mass > 0.0 else inf
    shift, log_divisor, log_missing = scale_logarithms(values, bool(rests))
    log_share = log(share) if share > 0.0 else -inf
    log_rest = log_sum_exp([value - shift for value in rests]) if rests else log_missing
    return max(
        0.0,
        log_divisor - log_sum_exp([log_sum_exp([v - shift for v in hits]), log_rest + log_share]),
    )


def bucket_shares(words: bytes, shares: array[float], expected: bytes, bits: int, first_line: int) -> array[float]:
    """Sum, for each expected word, the shares of the words that fall into its bucket.

    ``words`` are UTF-8 lines, each ended by LF, none empty, with as many ``shares``; for the other arguments see
    :func:`bounded_losses`. Raises ValueError where words and shares differ in number.
    """
    vocabulary = decode_lines(words)
    if len(vocabulary) != len(shares):
        raise ValueError(f"{len(vocabulary)} words, but {len(shares)} shares")
    sums = array("d")
    for line, word in enumerate(decode_lines(expected), first_line):
        bucket, *buckets = word_buckets([word, *vocabulary], bits, line)
        sums.append(sum_in_order([share for own, share in zip(buckets, shares, strict=True) if own == bucket]))
    return sums


def format_entries(words: bytes, numbers: Doubles, least: float, most: float) -> str:
    """Write words, UTF-8 lines, each ended by LF, and as many finite numbers as an output line.

    Numbers have the fewest digits that read back the same. Raises ValueError where words and numbers differ in
    number, and for a number below ``least`` or above ``most``.
    """
    values: list[float] = numbers.tolist()
    texts = words.decode().split("\n")[:-1]
    if len(values) != len(texts) or not all(least <= value <= most for value in values):
        raise ValueError("words and numbers differ in number, or a number is out of range")
    digits = (repr(value + 0.0).removesuffix(".0") for value in values)  # + 0.0: no "-0"
    return " ".join([f"{word}:{number}" for word, number in zip(texts, digits, strict=True)])
