"""What the first lines of an output show beside its score: their order, a spelling, a unit."""

from __future__ import annotations

from collections.abc import Iterator
from math import e, fsum, isclose

from geval_py.checking.order import Fault, judge_lines
from geval_py.scoring.blocks import Block

SAMPLED_BYTES, SAMPLED_FOR_UNITS = 1 << 17, 20
ROUNDING = 0.005  # of the total of a line whose numbers have three digits or more
BASE_TWO = "the numbers look like logarithms to base 2: multiply each by 0.693147 (ln 2)"


def faults_of_first_lines(first: Block, items: int, bits: int | None, *, words_are_plain: bool) -> Iterator[Fault]:
    """Yield what is wrong with the first lines of an output, and last, the likely cause of a bad score (W304).

    It is for some ``items``. ``bits`` are those of the buckets of words, None for a metric of another task.
    ``words_are_plain``: the metric compares words as they are.
    """
    order = judge_lines(first, items, bits)
    if order.code == "W305":
        yield order
    if bits is not None:
        sample = bytes(first.outputs[:SAMPLED_BYTES]).split(b"\n")[: min(first.lines, SAMPLED_FOR_UNITS)]
        if 2 * sum(map(_is_of_bits, sample)) > len(sample):
            yield Fault("W223", BASE_TWO)
        if words_are_plain:
            from geval_py.checking.spelling import find_misspelling  # whose modules take long to import

            yield from find_misspelling(first)
    if order.code == "W304":
        yield order


def _is_of_bits(line: bytes) -> bool:
    """Return whether the numbers of a line are logarithms to base 2, and not natural ones."""
    try:
        values = [float(entry.rpartition(b":")[2]) for entry in line.split(b" ")]
        natural, binary = (fsum(base**value for value in values) for base in (e, 2.0))
    except (ValueError, OverflowError):
        return False
    return isclose(binary, 1.0, abs_tol=ROUNDING) and not isclose(natural, 1.0, abs_tol=ROUNDING)
