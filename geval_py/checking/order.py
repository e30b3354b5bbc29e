"""Whether lines of an output fit their answers, or those of other lines: shifted lines, a batch written twice.

The first lines are scored with their own answers, and with those of other lines. A difference is clear if it is
large, and if its self-normalised sum is, whose tails are those of a normal distribution whatever the losses are
(de la Peña, Lai and Shao, "Self-normalized processes", 2009).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count, islice
from math import fsum, hypot, log
from typing import Any, NamedTuple

from geval_py.errors import MalformedLineError
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel import backends

SAMPLED_LINES, SAMPLED_BYTES = 200, 1 << 17
SCORED_LINES = 100  # of these, with their answers and with others
MIN_LINES = 20  # that are the answers themselves
MIN_BATCH = 8  # lines
MAX_LINES = 10_000  # that may be sorted
MIN_GAIN = log(2)  # nats a line, of a clear difference
MIN_DEVIATIONS = 3.4  # standard deviations, of a clear difference
MIN_DEVIATIONS_IN_ORDER = 2.0  # from which lines are not compared with further answers
OTHER_ORDER = "the lines may have another order than in.tsv, or words unlike the answers"
MAX_LOSS, LOSS_OF_MISS = 20.0, 2.0  # nats; a greater loss counts as MAX_LOSS


class Fault(NamedTuple):
    """What is wrong with the first lines: the code of the rule, a sentence, and the remedy if it is not the rule's.

    ``places`` are those of lines, with the fields of a Place; without them, the whole output is at fault.
    """

    code: str
    message: str
    fix: str = ""
    places: Sequence[tuple[Any, ...]] = ()


def judge_lines(first: Block, items: int, bits: int | None) -> Fault:
    """Return what is wrong with the places of lines (W305) or, if nothing is, the likely cause of a bad score (W304).

    The lines are at the beginning of the ``first`` block of an output for some ``items``. ``bits`` are those of the
    buckets of words; without them, a line is right if it is the answer.
    """
    answers = first.expected.split(b"\n")[: first.known]
    if bits is not None and _are_sorted(bytes(first.outputs).split(b"\n")[:-1][:MAX_LINES]):
        return Fault("W305", "the lines are sorted")
    texts = bytes(first.outputs[:SAMPLED_BYTES]).split(b"\n")[:-1][: min(SAMPLED_LINES, first.known)]
    if len({*texts}) < 2:  # one guess has no order
        return Fault("W304", OTHER_ORDER)
    guesses = [text.removesuffix(b":1") for text in texts]
    if bits is not None and len(texts) >= MIN_LINES and guesses == answers[: len(texts)]:
        return Fault("W305", f"the first {len(texts)} lines are the answers themselves")

    def losses(places: Iterable[int]) -> list[float]:
        """Return the losses of lines with the answers at some places, which begin again after the last answer."""
        chosen = [answers[place % len(answers)] for place in islice(places, len(scored))]
        if bits is None:
            return [LOSS_OF_MISS * (text != answer) for text, answer in zip(scored, chosen, strict=True)]
        outputs, expected = (b"\n".join(rows) + b"\n" for rows in (scored, chosen))
        return [min(loss, MAX_LOSS) for loss in backends.bounded_losses(outputs, expected, bits, 1)[0]]

    scored, cause = texts[:SCORED_LINES], OTHER_ORDER
    with suppress(MalformedLineError):
        own, far = losses(count()), losses(count(len(scored) // 2))
        if _are_clearly_less(own, far, MIN_DEVIATIONS_IN_ORDER):
            right = sum(loss < log(2) for loss in own)
            cause = f"{right} of the first {len(own)} guesses are right, but too sure: leave more for the rest"
        else:
            for fault, places in _wrong_orders(items):
                moved = losses(places)
                if _are_clearly_less(moved, own) and _are_clearly_less(moved, far, MIN_DEVIATIONS_IN_ORDER):
                    return Fault("W305", fault)
    repetition = _repetition(texts, answers[: len(texts)])
    return Fault("W305", repetition) if repetition else Fault("W304", cause)


def _are_clearly_less(losses: Sequence[float], others: Sequence[float], deviations: float = MIN_DEVIATIONS) -> bool:
    gains = [other - loss for loss, other in zip(losses, others, strict=True)]
    return fsum(gains) > max(MIN_GAIN * len(gains), deviations * hypot(*gains))


def _wrong_orders(items: int) -> Iterator[tuple[str, Iterable[int]]]:
    """Yield what to say of lines in another order, and the places of their answers."""
    for shift in (1, 2, 3):
        shifted, last = f"the lines are shifted by {shift}", 1 + shift
        yield f"{shifted}: line 1 fits the answer of line {last}", range(shift, items + shift)
        yield f"{shifted}: line {last} fits the answer of line 1", range(-shift, items)
    yield "the lines are in reverse order", reversed(range(items))
    for workers in (2, 4, 8):
        turns = [range(worker, items, workers) for worker in range(workers)]
        yield f"the lines of {workers} workers follow one worker after the other, and belong in turns", chain(*turns)


def _are_sorted(texts: Sequence[bytes]) -> bool:
    is_varied = len(texts) >= MIN_LINES and 2 * len({*texts}) > len(texts)
    return is_varied and texts in (sorted(texts), sorted(texts, key=bytes.lower))


def _repetition(texts: Sequence[bytes], answers: Sequence[bytes]) -> str:
    """Return what to say of batches of lines that are the same where their answers are not; "" for none."""
    is_varied = 2 < len({*texts}) < len(texts)
    for size in range(len(texts) // 2, MIN_BATCH - 1, -1) if is_varied else ():
        if texts[:size] == [texts[0]] * size:
            first_lines = [line - line % size for line in range(len(texts))]
            firsts, first_answers = ([rows[line] for line in first_lines] for rows in (texts, answers))
            if texts == firsts and answers != first_answers:
                return f"every {size} lines have the same guess, as if the first of a batch was written for all"
        for start in range(size, len(texts) - size + 1, size):
            before, batch = slice(start - size, start), slice(start, start + size)
            is_repeated = texts[batch] == texts[before] and answers[batch] != answers[before]
            if is_repeated and 2 * len({*texts[batch]}) > size:
                return f"lines {start + 1} to {start + size} repeat the {size} lines before"
    return ""
