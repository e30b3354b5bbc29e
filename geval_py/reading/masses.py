"""Lines of outputs made from masses: what tuning and mixing write.

A line's numbers are rounded, and the largest of them last: it takes what is missing to 1, so that a line sums to 1,
and nobody divides it by its sum. Of the largest, rounding all others costs the least part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, log

from geval_py.reading.wordprobs import REST

LEAST_LOG = -745.0  # of a bucket without mass, in whose place stands the least that a double holds


def line_of_masses(masses: Mapping[str, float], rest: float) -> str:
    """Write words and their masses, which with the rest's are 1 together, with six significant digits.

    Words without mass are left out, and so is a rest without.

    >>> line_of_masses({"the": 0.5, "a": 0.0, "of": 1 / 3}, 1 / 6)
    'the:0.5 of:0.333333 :0.166667'
    >>> line_of_masses({"the": 1 / 3, "a": 1 / 3}, 1 / 3)
    'the:0.333334 a:0.333333 :0.333333'
    """
    words = [word for word, mass in masses.items() if mass > 0.0]
    values = [mass for mass in masses.values() if mass > 0.0]
    if rest > 0.0:
        words.append(REST)
        values.append(rest)
    numbers = [f"{value:.6g}" for value in values]
    largest = values.index(max(values))
    others = fsum(map(float, numbers)) - float(numbers[largest])
    numbers[largest] = f"{1.0 - others:.12g}"
    return " ".join([f"{word}:{number}" for word, number in zip(words, numbers, strict=True)])


def line_of_buckets(masses: Sequence[float]) -> str:
    """Write the masses of buckets, which are 1 together, as a vector of natural logarithms.

    >>> line_of_buckets([0.25, 0.75])
    '-1.386294361 -0.2876820725'
    """
    return " ".join([f"{log(mass) if mass > 0.0 else LEAST_LOG:.10g}" for mass in masses])
