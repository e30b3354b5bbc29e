"""Metrics of annotations: labels with the positions in a text that they are of.

    line       = [ annotation *( 1*white-space annotation ) ]    white space is spaces and TABs, at the ends too
    annotation = label ":" positions [ ":" probability ]         a probability only in outputs
    positions  = [ span *( "," span ) ]
    span       = number [ "-" number ]                           both ends belong to it; a reversed span is empty

Soft-F compares annotations of one label by their positions: those in common, divided by those of either (Jaccard's
index). Each is matched with one other at most. FLC-F ("fragment label coverage") matches nothing, but counts for each
annotation how much of it the others of its label cover. SegmentAccuracy wants annotations that do not overlap, and
counts those that are exactly right; a label may contain colons there.

Positions are kept as spans, never one by one: `label:1-999999999999` is two numbers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from geval_py.reading.wordprobs import TOO_LARGE
from geval_py.scoring.metrics.assignment import (
    Box,
    Region,
    common_sizes,
    matched_scores,
    probable_counts,
    within_limits,
)
from geval_py.scoring.metrics.base import joined_columns
from geval_py.scoring.metrics.classes import harmonic, ratio
from geval_py.scoring.metrics.columns import malformed, of_answer
from geval_py.tables.numbers import shortest
from geval_py.text import SPACES, shorten, split_words, visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from geval_py.scoring.metrics.base import LineStatistics

NOT_READ = "endOfInput"  # GEval's own bracketed messages
NO_COLON = "Colon expected"
OVERLAPPING = "Overlapping segments"

MAX_DIGITS = 18  # GEval's whole numbers have 64 bits, and greater ones wrap around
PROBABILITY = r"[+-]?[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?[0-9]++)?+"
TOKEN = re.compile(r"[^ \t]+")
_SPAN = r"[0-9]++(?:-[0-9]++)?+"
_POSITIONS = re.compile(rf"(?:{_SPAN}(?:,{_SPAN})*+)?+")
_ANNOTATION = re.compile(rf"([^:{SPACES}]+):({_POSITIONS.pattern})(?::({PROBABILITY}))?")
_WORD = re.compile(f"[^{SPACES}]+")


def soft_counts(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Sum the scores of the matched annotations, and count those expected and those given."""
    given, wanted = given_annotations(text, line), of_answer(expected_annotations, expected, line)
    return sum(matched_scores(wanted, given, text, line).values()), len(wanted), len(given)


def probable_soft_counts(
    text: str, expected: str, line: int
) -> tuple[tuple[float, ...], tuple[tuple[float, float], ...]]:
    """Return the probability of what is right and the number expected; and each given annotation's score and p.

    GEval takes a probability above 1, which could make the score better than that of a perfect output.
    """
    given, wanted = given_annotations(text, line), of_answer(expected_annotations, expected, line)
    for region in given:
        if not 0 <= region.probability <= 1:
            shown = f"its probability {shortest(region.probability)} is not from 0 to 1"
            raise malformed(NOT_READ, text, line, shown, region.column)
    return probable_counts(wanted, given, text, line)


def fragment_counts(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Sum the covered shares of the expected and of the given annotations, and count both.

    Nothing is covered where given annotations of one label overlap. A pair of different labels has nothing in common;
    GEval fails there.
    """
    given, wanted = given_annotations(text, line), of_answer(expected_annotations, expected, line)
    by_label: dict[Hashable, list[Box]] = defaultdict(list)
    for region in given:
        by_label[region.label].extend(region.boxes)
    if any(other.left <= one.right for boxes in by_label.values() for one, other in pairwise(sorted(boxes))):
        return 0, 0, len(wanted), len(given)
    with within_limits(text, line):
        common = common_sizes(wanted, given)
    return (
        _covered(wanted, given, ((answer, size) for (answer, _), size in common.items())),
        _covered(given, wanted, ((place, size) for (_, place), size in common.items())),
        len(wanted),
        len(given),
    )


def _covered(regions: Sequence[Region], others: Iterable[Region], common: Iterable[tuple[int, int]]) -> float:
    """Sum the shares of regions that others cover; an empty one is covered whole by each of its label."""
    labels = Counter(other.label for other in others)
    whole = sum(labels[region.label] for region in regions if not region.boxes)
    sizes = [region.size for region in regions]
    return whole + sum(size / sizes[place] for place, size in common)


def fragment_f(beta: float, totals: Sequence[float], lines: float) -> float:
    """Compute F_β from the sums of covered shares, of what is expected and of what is given, and from the numbers."""
    del lines
    found, right, expected, given = totals
    return harmonic(beta, ratio(right, given), ratio(found, expected))


def segment_hits(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the different segments that are both expected and given, and all expected ones."""
    given, wanted = read_segments(text, line), of_answer(read_segments, expected, line)
    right = {region[:2] for region in given} & {region[:2] for region in wanted}
    return len(right), len(wanted)


def segment_accuracy(systems: Sequence[LineStatistics]) -> Callable[[NDArray[np.intp]], float]:
    """Return a function that averages the shares of right segments; NaN if nothing is expected on some line."""
    import numpy as np

    right, wanted = joined_columns(systems)
    with np.errstate(invalid="ignore"):
        shares = right / wanted

    def score(lines: NDArray[np.intp]) -> float:
        return float(shares[lines].mean())

    return score


def expected_annotations(text: str, line: int) -> list[Region]:
    """Read the annotations of an expected line; raises MalformedLineError."""
    return list(_annotations(text, line, "an annotation is `label:1-4,7`; only outputs have probabilities"))


def given_annotations(text: str, line: int) -> list[Region]:
    """Read the annotations of an output line; raises MalformedLineError.

    >>> [region] = given_annotations("name:7,1-3,2-5:0.5", 1)
    >>> region.label, [(span.left, span.right) for span in region.boxes], region.size, region.probability
    ('name', [(1, 5), (7, 7)], 6, 0.5)
    """
    hint = "an annotation is `label:1-4,7`, perhaps with a probability behind it: `label:1-4,7:0.5`"
    return list(_annotations(text, line, hint, has_probability=True))


def _annotations(text: str, line: int, hint: str, *, has_probability: bool = False) -> Iterator[Region]:
    for token in TOKEN.finditer(text):
        match = _ANNOTATION.fullmatch(token[0])
        if match is None or (match[3] is not None and not has_probability):
            shown = f"`{visible(shorten(token[0]))}` is no annotation; {hint}"
            raise malformed(NOT_READ, text, line, shown, token.start() + 1, token[0])
        boxes = _spans(match[2], text, line, token)
        probability = 1.0 if match[3] is None else float(match[3])
        yield Region(match[1], boxes, probability, token.start() + 1)


def read_segments(text: str, line: int) -> list[Region]:
    """Read the segments of a line, whose labels may contain colons; raises MalformedLineError."""
    segments = []
    for token in _WORD.finditer(text):
        label, colon, positions = token[0].rpartition(":")
        if not colon or not _POSITIONS.fullmatch(positions):
            shown = f"`{visible(shorten(token[0]))}` is no segment; a segment is `label:1-4,7`"
            raise malformed(NOT_READ if colon else NO_COLON, text, line, shown, token.start() + 1, token[0])
        segments.append(Region(label, _spans(positions, text, line, token), column=token.start() + 1))
    spans = sorted((span, segment.column) for segment in segments for span in segment.boxes)
    for (one, first), (other, second) in pairwise(spans):
        if other.left <= one.right:
            hint = f"position {other.left} is in two segments, the other one in column {min(first, second)}"
            written = split_words(text[max(first, second) - 1 :])[0]
            raise malformed(OVERLAPPING, text, line, hint, max(first, second), written)
    return segments


def _spans(written: str, text: str, line: int, token: re.Match[str]) -> tuple[Box, ...]:
    """Read positions as the fewest spans, in order, so that equal positions are equal spans."""
    spans: list[Box] = []
    ends = (span.partition("-") for span in written.split(",") if span)
    for low, high in sorted(
        (whole_number(a, text, line, token), whole_number(b or a, text, line, token)) for a, _, b in ends
    ):
        if spans and low <= spans[-1].right + 1 and low <= high:
            spans[-1] = Box(spans[-1].left, max(spans[-1].right, high))
        elif low <= high:
            spans.append(Box(low, high))
    return tuple(spans)


def whole_number(written: str, text: str, line: int, token: re.Match[str]) -> int:
    """Read a whole number, a part of a token of a line; raises MalformedLineError for one of too many digits."""
    digits = written.lstrip("0") or "0"
    if len(digits) > MAX_DIGITS:
        hint = f"`{shorten(written)}` is too large; a number has at most {MAX_DIGITS} digits"
        column = token.start() + token[0].index(written) + 1
        raise malformed(TOO_LARGE, text, line, hint, column, written)
    return int(digits)
