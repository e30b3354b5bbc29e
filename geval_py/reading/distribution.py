r"""What an output line means: from words and numbers as they are written to masses.

With the values v of a line (Specification, "From a line to a distribution"):

1.  If every v has 0 <= v <= 1 and at least one is > 0, they are probabilities; otherwise natural logarithms.
2.  Their total (of exp v, for logarithms) is *off* when it is > 1 or < 1 - 1e-8.
3.  Probabilities, off: if the total is > 1 or there is a rest entry, divide all by the total; else the rest is
    1 - total. Logarithms, off: if the total is < 1 and there is no rest entry, the rest is 1 - total; else divide
    (softmax). A vector has no rest: it is divided.

Totals are summed from left to right, as GEval does, since a sum decides what happens next; logarithms are combined
by log-sum-exp, which is right where exp overflows or underflows. Scoring (:mod:`geval_py.scoring.kernel`) and whoever
reads a line (:class:`geval_py.WordProbs`) do what is said here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1, inf, log, log1p

from geval_py.errors import UsageError
from geval_py.values import Value

TOLERANCE = 1e-8  # how far below 1 a total may be and still count as 1 (GEval's epsilon)
LEAST_TOTAL = 1.0 - TOLERANCE
LEAST_LOG_TOTAL = log1p(-TOLERANCE)
MOST_LOG_TOTAL = log1p(TOLERANCE)

DEFAULT_BITS = 10  # of a number of buckets, its binary logarithm
LEAST_BITS, MOST_BITS = 1, 24


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
