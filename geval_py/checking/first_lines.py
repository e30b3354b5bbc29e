"""What the first lines of an output show beside its score: their order, a spelling, a unit, a guess that is better.

The first lines are scored with their own answers, and with those of other lines, which finds lines that are shifted
or were written twice. A difference is clear if it is large, and if its self-normalised sum is, whose tails are those
of a normal distribution whatever the losses are (de la Peña, Lai and Shao, "Self-normalized processes", 2009).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count, groupby, islice
from math import e, fsum, gcd, hypot, isclose, log
from operator import eq, itemgetter
from typing import Any, NamedTuple, TypeAlias

from geval_py.errors import GevalError, MalformedLineError
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import Metric, total
from geval_py.text import named

SAMPLED_LINES, SAMPLED_BYTES = 200, 1 << 18  # that are compared with answers
MIN_LINES = 5  # of which most show something
MIN_EQUAL = 20  # lines that are the answers themselves, or sorted
MIN_BATCH = 8  # lines
MAX_LINES = 2_000  # that may be sorted or repeated
SCORED_LINES = (0, 100), (0, 50), (50, 100), (100, 150), (150, 200)  # with their answers and with others
MIN_GAIN = log(2)  # nats a line, of a clear difference
MIN_DEVIATIONS = 3.4  # standard deviations, of a clear difference
MIN_DEVIATIONS_IN_ORDER = 2.0  # from which lines are not compared with further answers
OTHER_ORDER = "the lines may have another order than in.tsv, or words unlike the answers"
MAX_LOSS, LOSS_OF_MISS = 20.0, 2.0  # nats; a greater loss counts as MAX_LOSS
SAMPLED_FOR_UNITS = 20
ROUNDING = 0.005  # of the total of a line whose numbers have three digits or more
SUSPECTED_LINES, MIN_SUSPECTS, MIN_SHARE = 60, 3, 0.15  # lines without their answers; that may have another spelling
Rows: TypeAlias = Sequence[tuple[bytes, bytes]]  # lines with their answers
_WORDS, _ENCODED = re.compile(rb"[a-z][a-z0-9]*"), re.compile(rb"&[#a-zA-Z]|[\x80-\xff]")
MIN_LOSS = 0.1  # of a score that is clearly worse, as a share of the other
IN_UNITS = "Write lines in the order of in.tsv, and values in the units and classes of expected.tsv."


class Fault(NamedTuple):
    """What is wrong with the first lines: the code of the rule, a sentence, and the remedy if it is not the rule's.

    ``places`` are the Places of lines; without them, the whole output is at fault.
    """

    code: str
    message: str
    fix: str = ""
    places: Sequence[Any] = ()


def faults_of_first_lines(
    first: Block, items: int, metric: Metric | None, bits: int, *, words_are_plain: bool
) -> Iterator[Fault]:
    """Yield what is wrong with the first lines of an output, and last, the likely cause of a bad score (W304).

    It is for some ``items``. A ``metric`` is of another task than word gaps, whose buckets have ``bits``.
    ``words_are_plain``: the metric compares words as they are.
    """
    texts = bytes(first.outputs[:SAMPLED_BYTES]).split(b"\n")[:-1]
    answers = first.expected.split(b"\n")[: first.known]
    misplaced, cause = judge_places(texts, answers, items, None if metric else bits)
    if misplaced:
        yield Fault("W305", misplaced)
    if metric is not None:
        are_all = words_are_plain and MIN_LINES <= len(texts) == len(answers) == items
        yield from _faults_of_values(metric, texts, answers, are_all=are_all)
        return
    rows, sample = [*zip(texts, answers, strict=False)][:SAMPLED_LINES], texts[:SAMPLED_FOR_UNITS]
    if 2 * sum(map(_is_of_bits, sample)) > len(sample):
        yield Fault("W223", "the numbers look like logarithms to base 2: multiply each by 0.693147 (ln 2)")
    if message := other_line_numbers(rows, bits):
        yield Fault("W306", message)
    if words_are_plain and _may_be_misspelt(rows):
        from geval_py.checking.spelling import find_misspelling  # whose modules take long to import

        if misspelling := find_misspelling(rows):
            yield Fault("W302", *misspelling)
    if not misplaced:
        yield Fault("W304", cause)


def judge_places(texts: Sequence[bytes], answers: Sequence[bytes], items: int, bits: int | None) -> tuple[str, str]:
    """Return what is wrong with the places of lines, and the likely cause of a bad score; "" for nothing.

    ``texts`` are the first lines of an output for some ``items``. ``bits`` are those of the buckets of words; without
    them, a line is right if it is the answer.
    """
    rows = [*zip(texts, answers, strict=False)][:MAX_LINES]
    sample = [text for text, _ in rows[:SAMPLED_LINES]]
    if len({*sample}) < 2:  # one guess has no order
        return "", OTHER_ORDER
    bounded_losses = backends.bounded_losses  # looked up once
    if bits is not None:
        if _are_sorted(texts[:MAX_LINES]):
            return "the lines are sorted", ""
        if len(sample) >= MIN_EQUAL and [text.removesuffix(b":1") for text in sample] == answers[: len(sample)]:
            return f"the first {len(sample)} lines are the answers themselves", ""

    def losses(places: Iterable[int]) -> list[float]:
        """Return the losses of lines with the answers at some places, which begin again after the last answer."""
        chosen = [answers[place % len(answers)] for place in islice(places, start, start + len(scored))]
        if bits is None:
            return [LOSS_OF_MISS * (text != answer) for text, answer in zip(scored, chosen, strict=True)]
        outputs, expected = (b"\n".join(lines) + b"\n" for lines in (scored, chosen))
        return [min(loss, MAX_LOSS) for loss in bounded_losses(outputs, expected, bits, 1)[0]]

    if repetition := _repetition(rows):
        return repetition, ""
    cause = OTHER_ORDER
    with suppress(MalformedLineError):
        for start, end in SCORED_LINES:
            scored = sample[start:end]
            own, far = losses(count()), losses(count(len(scored) // 2))
            if not _are_clearly_less(own, far, MIN_DEVIATIONS_IN_ORDER):
                for fault, places in _wrong_orders(items, start):
                    moved = losses(places)
                    if _are_clearly_less(moved, own) and _are_clearly_less(moved, far, MIN_DEVIATIONS_IN_ORDER):
                        return fault, ""
            elif cause == OTHER_ORDER:
                right = sum(loss < log(2) for loss in own)
                cause = f"{right} of the first {len(own)} guesses are right, but too sure: leave more for the rest"
    return "", cause


def _are_clearly_less(losses: Sequence[float], others: Sequence[float], deviations: float = MIN_DEVIATIONS) -> bool:
    gains = [other - loss for loss, other in zip(losses, others, strict=True)]
    return fsum(gains) > max(MIN_GAIN * len(gains), deviations * hypot(*gains))


def _wrong_orders(items: int, start: int) -> Iterator[tuple[str, Iterable[int]]]:
    """Yield what to say of lines in another order, from a place on, and the places of the answers of all lines."""
    for shift in (1, 2, 3):
        shifted, line, later = f"the lines are shifted by {shift}", 1 + start, 1 + start + shift
        yield f"{shifted}: line {line} fits the answer of line {later}", range(shift, items + shift)
        yield f"{shifted}: line {later} fits the answer of line {line}", range(-shift, items)
    yield "the lines are in reverse order", reversed(range(items))
    yield "the two halves of the lines are exchanged", range(items // 2, 2 * items)
    for workers in (2, 4, 8):
        turns = [range(worker, items, workers) for worker in range(workers)]
        yield f"the lines of {workers} workers follow one worker after the other, and belong in turns", chain(*turns)


def _are_sorted(texts: Sequence[bytes]) -> bool:
    is_varied = len(texts) >= MIN_EQUAL and 2 * len({*texts}) > len(texts)
    return is_varied and texts in (sorted(texts), sorted(texts, key=bytes.lower))


def _repetition(rows: Rows) -> str:
    """Return what to say of lines with their answers that repeat others, which have other answers; "" for none."""
    runs = [[answer for _, answer in run] for _, run in groupby(rows, key=itemgetter(0))]
    size = gcd(*map(len, runs[:-1]))
    if len(runs) > 2 and size >= MIN_BATCH and len({*runs[0]}) > 1:
        return f"every {size} lines have the same guess, as if the first of a batch was written for all"
    texts = [text for text, _ in rows]
    last: dict[tuple[bytes, ...], int] = {}  # the last places of some texts
    for start in range(len(rows)):
        few = tuple(texts[start : start + MIN_BATCH])
        before = last.get(few, start)
        last[few] = start
        size = start - before
        batch, repeated = texts[before:start], texts[start : start + size]
        is_varied = size >= MIN_BATCH and batch == repeated and 2 * len({*batch}) > size
        if is_varied and 2 * sum(map(eq, rows[before:start], rows[start:])) < size:
            return f"lines {start + 1} to {start + size} repeat lines {before + 1} to {start}"
    return ""


def _faults_of_values(
    metric: Metric, texts: Sequence[bytes], answers: Sequence[bytes], *, are_all: bool
) -> Iterator[Fault]:
    """Yield columns that are not read (W225), and if the lines ``are_all``, a better guess for each (W304)."""
    from statistics import fmean, mode  # which takes long to import, and word gaps need none of these

    from geval_py.scoring.evaluate import column_of
    from geval_py.scoring.metrics.columns import number_of

    columns = 1 + max(answers, default=b"").count(b"\t")
    if metric.parse is number_of and columns > 1:
        yield Fault("W225", f"{metric.name} reads the first of {columns} columns; the others are not compared")
    is_quick = metric.parse or metric.labels != "none" or metric.answers == "all"  # unlike BLEU and the like
    if not (is_quick and are_all):
        return
    step = 1 + len(answers) // MAX_LINES
    texts, answers = texts[::step], answers[::step]
    guesses = [mode(answers)]
    with suppress(ValueError, OverflowError):
        numbers, _ = ([*map(float, lines)] for lines in (answers, texts))
        guesses.insert(metric.labels != "none", b"%.6g" % fmean(numbers))

    def loss(lines: Sequence[bytes]) -> float:
        outputs, expected = (b"\n".join(of_file) + b"\n" for of_file in (lines, answers))
        table = column_of(metric, frozenset()).statistics(outputs, expected, 1)
        return metric.measure.sign * metric.value(table)

    with suppress(GevalError):  # also a package that is missing
        own = loss(texts)
        for guess in guesses:
            least = loss([guess] * len(answers))
            if own - least > MIN_LOSS * abs(least):
                better = f"{metric.name} would be better with {named(guess.decode(errors='replace'))}"
                yield Fault("W304", f"{better} on each line", IN_UNITS)
                return


def _may_be_misspelt(rows: Rows) -> bool:
    """Return whether several answers are missing on their lines that may be there in another spelling.

    To look for all spellings takes as long as to score a small output.
    """
    missing = [(text, answer) for text, answer in rows if b" %b:" % answer not in b" %b" % text][:SUSPECTED_LINES]
    encoded = sum(bool(_ENCODED.search(text + answer)) for text, answer in missing)
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
        return total(
            [
                backends.bounded_losses(line + b"\n", answer + b"\n", bits, seed)[0][0]
                for (line, answer), seed in zip(rows, seeds, strict=True)
            ]
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
