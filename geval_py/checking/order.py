"""Whether lines of an output fit their answers, or those of other lines: shifted lines, a batch written twice.

The first lines are scored with their own answers, and with those of other lines. A difference is clear if it is
large, and if its self-normalised sum is, whose tails are those of a normal distribution whatever the losses are
(de la Peña, Lai and Shao, "Self-normalized processes", 2009).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count, groupby, islice
from math import fsum, gcd, hypot, log
from operator import eq, itemgetter
from typing import Any, NamedTuple

from geval_py.errors import MalformedLineError
from geval_py.scoring.kernel import backends

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


class Fault(NamedTuple):
    """What is wrong with the first lines: the code of the rule, a sentence, and the remedy if it is not the rule's.

    ``places`` are the Places of lines; without them, the whole output is at fault.
    """

    code: str
    message: str
    fix: str = ""
    places: Sequence[Any] = ()


def judge_lines(texts: Sequence[bytes], answers: Sequence[bytes], items: int, bits: int | None) -> Fault:
    """Return what is wrong with the places of lines (W305) or, if nothing is, the likely cause of a bad score (W304).

    ``texts`` are the first lines of an output for some ``items``. ``bits`` are those of the buckets of words; without
    them, a line is right if it is the answer.
    """
    rows = [*zip(texts, answers, strict=False)][:MAX_LINES]
    sample = [text for text, _ in rows[:SAMPLED_LINES]]
    if len({*sample}) < 2:  # one guess has no order
        return Fault("W304", OTHER_ORDER)
    bounded_losses = backends.bounded_losses
    if bits is not None:
        if _are_sorted(texts[:MAX_LINES]):
            return Fault("W305", "the lines are sorted")
        if len(sample) >= MIN_EQUAL and [text.removesuffix(b":1") for text in sample] == answers[: len(sample)]:
            return Fault("W305", f"the first {len(sample)} lines are the answers themselves")

    def losses(places: Iterable[int]) -> list[float]:
        """Return the losses of lines with the answers at some places, which begin again after the last answer."""
        chosen = [answers[place % len(answers)] for place in islice(places, start, start + len(scored))]
        if bits is None:
            return [LOSS_OF_MISS * (text != answer) for text, answer in zip(scored, chosen, strict=True)]
        outputs, expected = (b"\n".join(lines) + b"\n" for lines in (scored, chosen))
        return [min(loss, MAX_LOSS) for loss in bounded_losses(outputs, expected, bits, 1)[0]]

    if repetition := _repetition(rows):
        return Fault("W305", repetition)
    cause = OTHER_ORDER
    with suppress(MalformedLineError):
        for start, end in SCORED_LINES:
            scored = sample[start:end]
            own, far = losses(count()), losses(count(len(scored) // 2))
            if not _are_clearly_less(own, far, MIN_DEVIATIONS_IN_ORDER):
                for fault, places in _wrong_orders(items, start):
                    moved = losses(places)
                    if _are_clearly_less(moved, own) and _are_clearly_less(moved, far, MIN_DEVIATIONS_IN_ORDER):
                        return Fault("W305", fault)
            elif cause == OTHER_ORDER:
                right = sum(loss < log(2) for loss in own)
                cause = f"{right} of the first {len(own)} guesses are right, but too sure: leave more for the rest"
    return Fault("W304", cause)


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


def _repetition(rows: Sequence[tuple[bytes, bytes]]) -> str:
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
