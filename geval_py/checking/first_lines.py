"""What the first lines of an output show beside its score: their order, a spelling, a unit, columns left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import e, fsum, isclose, log
from typing import TypeAlias

from geval_py.checking.order import MIN_LINES, SAMPLED_BYTES, SAMPLED_LINES, Fault, judge_lines
from geval_py.errors import MalformedLineError
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import Metric

SAMPLED_FOR_UNITS = 20
ROUNDING = 0.005  # of the total of a line whose numbers have three digits or more
SUSPECTED_LINES, MIN_SUSPECTS, MIN_SHARE = 60, 3, 0.15  # lines without their answers; that may have another spelling
Rows: TypeAlias = Sequence[tuple[bytes, bytes]]  # lines with their answers
_WORDS, _ENTITY = re.compile(rb"[a-z][a-z0-9]*"), re.compile(rb"&[#a-zA-Z]")
BASE_TWO = "the numbers look like logarithms to base 2: multiply each by 0.693147 (ln 2)"


def faults_of_first_lines(
    first: Block, items: int, metric: Metric | None, bits: int | None, *, words_are_plain: bool
) -> Iterator[Fault]:
    """Yield what is wrong with the first lines of an output, and last, the likely cause of a bad score (W304).

    It is for some ``items``. ``bits`` are those of the buckets of words, None for a ``metric`` of another task.
    ``words_are_plain``: the metric compares words as they are.
    """
    texts = bytes(first.outputs[:SAMPLED_BYTES]).split(b"\n")[:-1]
    answers = first.expected.split(b"\n")[: first.known]
    order = judge_lines(texts, answers, items, bits)
    rows = [*zip(texts, answers, strict=False)][:SAMPLED_LINES]
    if order.code == "W305":
        yield order
    if bits is None:
        from geval_py.scoring.metrics.columns import number_of  # which word gaps need not

        columns = 1 + answers[0].count(b"\t") if answers else 1
        if metric is not None and metric.parse is number_of and columns > 1:
            yield Fault("W225", f"{metric.name} reads the first of {columns} columns; the others are not compared")
    else:
        sample = texts[:SAMPLED_FOR_UNITS]
        if 2 * sum(map(_is_of_bits, sample)) > len(sample):
            yield Fault("W223", BASE_TWO)
        if message := other_line_numbers(rows, bits):
            yield Fault("W306", message)
        if words_are_plain and _may_be_misspelt(rows):
            from geval_py.checking.spelling import find_misspelling  # whose modules take long to import

            yield from find_misspelling(rows)
    if order.code == "W304":
        yield order


def _may_be_misspelt(rows: Rows) -> bool:
    """Return whether several answers are missing on their lines that may be there in another spelling.

    To look for all spellings takes as long as to score a small output.
    """
    missing = [(text, answer) for text, answer in rows if b" %b:" % answer not in b" %b" % text][:SUSPECTED_LINES]
    encoded = sum(not (text + answer).isascii() or bool(_ENTITY.search(text)) for text, answer in missing)
    same = (
        set(_WORDS.findall(text.lower())).intersection(_WORDS.findall(answer.lower())) for text, answer in missing
    )
    return encoded >= MIN_SUSPECTS or sum(map(bool, same)) >= max(MIN_SUSPECTS, MIN_SHARE * len(missing))


def _is_of_bits(line: bytes) -> bool:
    """Return whether the numbers of a line are logarithms to base 2, and not natural ones."""
    try:
        values = [float(entry.rpartition(b":")[2]) for entry in line.split(b" ")]
        natural, binary = (fsum(base**value for value in values) for base in (e, 2.0))
    except (ValueError, OverflowError):
        return False
    return isclose(binary, 1.0, abs_tol=ROUNDING) and not isclose(natural, 1.0, abs_tol=ROUNDING)


def other_line_numbers(rows: Rows, bits: int) -> str:
    """Return what to say of vectors that fit the answers clearly better with other seeds of the hash; "" for none."""
    if len(rows) < MIN_LINES or not all(line.startswith(b"-") and b":" not in line for line, _ in rows):
        return ""

    def loss(seeds: Iterable[int]) -> float:
        return fsum(
            backends.bounded_losses(line + b"\n", answer + b"\n", bits, seed)[0][0]
            for (line, answer), seed in zip(rows, seeds, strict=True)
        )

    number = len(rows)
    seeds_of = {f"the seed {seed} on all lines": [seed] * number for seed in (0, 1, 42)}
    seeds_of["line numbers from 0 on"] = [*range(number)]
    with suppress(MalformedLineError):
        right = loss(range(1, number + 1)) - number * log(2)
        for name, seeds in seeds_of.items():
            if loss(seeds) < right:
                return f"the vectors fit {name}: the seed of the hash is the line's number, from 1 on"
    return ""
