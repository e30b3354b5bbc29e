"""What the first lines of an output show beside its score: their order, a spelling, a unit, labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count, islice
from math import e, fsum, isclose

from geval_py.checking.order import Fault, judge_lines
from geval_py.checking.spelling import find_misspelling
from geval_py.checking.targets import Target
from geval_py.errors import DataError
from geval_py.reading.lines import read_lines
from geval_py.scoring.blocks import Block
from geval_py.scoring.metrics.base import Metric
from geval_py.text import shorten, some_of, split_words, strip_spaces, visible

SAMPLED_BYTES, SAMPLED_FOR_UNITS = 1 << 17, 20
ROUNDING = 0.005  # of the total of a line whose numbers have three digits or more
MIN_LINES = 5
_NUMBERED = re.compile(r"([A-Za-z]+-?(?=[0-9]+[\t ]))?([0-9]+)([:,\t ]|[.)] )(?=.)")
MAX_ANSWERS = 10_000  # of train, in which labels are looked for
LINES_PER_LABEL = 5  # at least, where the labels are few and known
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


def prefix_of(texts: Sequence[str], *, are_comparable: bool) -> str:
    """Return what begins each of some lines in front of its text; "" for nothing.

    Ids, such as `H-3` and a TAB, are looked for only in lines that ``are_comparable`` with others, which have none.
    """
    if len(texts) < MIN_LINES:
        return ""
    if all(re.match(r"\+[^\d\s:]", text) for text in texts):
        return "`+`"
    matches = list(map(_NUMBERED.match, texts))
    numbered = [(found[1], found[3], int(found[2])) for found in matches if found]
    if len(numbered) < len(texts) or len({numbers[:2] for numbers in numbered}) > 1:
        return ""
    (letters, separator, first), numbers = numbered[0], [number for *_, number in numbered]
    if letters:
        return f"an id, such as `{letters}{first}`" if are_comparable and len({*numbers}) == len(numbers) else ""
    is_in_order = separator != " " and all(map(int.__eq__, numbers, count(first)))
    return "its number" if is_in_order and (are_comparable or separator[-1] != " ") else ""


def unknown_labels(target: Target, metric: Metric, texts: Sequence[str], answers: Sequence[str]) -> str:
    """Return what to say of lines without any label of the answers or of train; "" if most lines have some."""
    from geval_py.scoring.metrics.columns import probable_labels  # which word gaps need not
    from geval_py.scoring.metrics.exact import best_guess

    prepare = target.preparation or str

    def labels_of(text: str) -> list[str]:
        text = strip_spaces(prepare(text))
        if metric.labels == "several":
            return [label for label, _ in probable_labels(text)]
        return split_words(text) if metric.labels == "none" else [best_guess(text) or text]

    if metric.matching or (metric.labels == "none" and metric.name != "TokenAccuracy"):
        return ""
    known = [label for answer in answers for label in labels_of(answer)]
    if target.training is not None:
        with suppress(DataError):
            lines = read_lines(target.training, header=target.header)
            known += [label for answer in islice(lines, MAX_ANSWERS) for label in labels_of(answer)]
    labels = {*known}
    if LINES_PER_LABEL * len(labels) > len(known) or labels <= {"0", "1"}:
        return ""
    unknown = [of_line for of_line in map(labels_of, texts) if any(of_line) and labels.isdisjoint(of_line)]
    if len(unknown) < MIN_LINES or 2 * len(unknown) <= len(texts):
        return ""
    lines_without = f"{len(unknown)} of the first {len(texts)} lines have no label of the answers"
    return f"{lines_without}: `{visible(shorten(unknown[0][0]))}` is none of {some_of(sorted(labels))}"
