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

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from geval_py.errors import MalformedLineError
from geval_py.reading.wordprobs import TOO_LARGE
from geval_py.scoring.metrics.assignment import Box, Region, common_shares, matched_scores
from geval_py.scoring.metrics.base import LineScore, LineStatistics, Row, joined_columns
from geval_py.scoring.metrics.classes import harmonic, ratio
from geval_py.scoring.metrics.columns import malformed
from geval_py.tables.numbers import exact
from geval_py.text import SPACES, shorten, split_words, visible

NOT_READ = "endOfInput"  # the reasons of errors are GEval's own bracketed messages
MAX_DIGITS = 18  # GEval's whole numbers have 64 bits, and greater ones wrap around
PROBABILITY = r"[+-]?[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?[0-9]++)?+"
TOKEN = re.compile(r"[^ \t]+")
_SPAN = r"[0-9]++(?:-[0-9]++)?+"
_POSITIONS = re.compile(rf"(?:{_SPAN}(?:,{_SPAN})*+)?+")
_ANNOTATION = re.compile(rf"([^:{SPACES}]+):({_POSITIONS.pattern})(?::({PROBABILITY}))?")
_WORD = re.compile(f"[^{SPACES}]+")


def soft_counts(regions: Sequence[Region], answers: Sequence[Region]) -> Row:
    """Sum the scores of the matched annotations, and count those expected and those given."""
    *_, scores = common_shares(answers, regions)
    return math.fsum(matched_scores(scores)), len(answers), len(regions)


def fragment_counts(regions: Sequence[Region], answers: Sequence[Region]) -> Row:
    """Sum the covered shares of the expected and of the given annotations, and count both.

    Nothing is covered where given annotations of one label overlap. A pair of different labels has nothing in common;
    GEval fails there. An empty annotation is covered whole by each of its label.
    """
    boxes = sorted((str(region.label), box) for region in regions for box in region.boxes)
    if any(one[0] == other[0] and other[1].left <= one[1].right for one, other in pairwise(boxes)):
        return 0, 0, len(answers), len(regions)
    of_answers, of_regions, _ = common_shares(answers, regions)
    return float(of_answers.sum()), float(of_regions.sum()), len(answers), len(regions)


def fragment_f(beta: float, covered: float, right: float, expected: float, given: float) -> float:
    """Compute F_β from the sums of covered shares, of what is expected and of what is given, and from the numbers."""
    return harmonic(beta, ratio(right, given), ratio(covered, expected))


def segment_hits(regions: Sequence[Region], answers: Sequence[Region]) -> Row:
    """Count the different segments that are both expected and given, and all expected ones."""
    right = {region[:2] for region in regions} & {region[:2] for region in answers}
    return len(right), len(answers)


def segment_accuracy(systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that averages the shares of right segments; NaN if nothing is expected on some line."""
    import numpy as np

    right, expected = joined_columns(systems)
    with np.errstate(invalid="ignore"):
        shares = right / expected
    return lambda lines: float(shares[lines].mean())


def read_annotations(is_output: bool, text: str, line: int) -> list[Region]:
    """Read the annotations of a line, only those of outputs with probabilities; raises MalformedLineError.

    >>> [region] = read_annotations(True, "name:7,1-3,2-5:0.5", 1)
    >>> region.label, [(span.left, span.right) for span in region.boxes], region.size, region.probability
    ('name', [(1, 5), (7, 7)], 6, 0.5)
    """
    hint = "an annotation is `label:1-4,7`; only outputs have probabilities"
    if is_output:
        hint = "an annotation is `label:1-4,7`, perhaps with a probability behind it: `label:1-4,7:0.5`"
    regions = []
    for token in TOKEN.finditer(text):
        match = _ANNOTATION.fullmatch(token[0])
        if match is None or (match[3] is not None and not is_output):
            raise unread(NOT_READ, line, token, f"is no annotation; {hint}")
        probability = 1.0 if match[3] is None else float(match[3])
        regions.append(Region(match[1], _spans(match[2], line, token), probability, token.start() + 1))
    return regions


def probable_annotations(text: str, line: int) -> list[Region]:
    """Read annotations with probabilities from 0 to 1; raises MalformedLineError.

    GEval takes a probability above 1, which could make the score better than that of a perfect output.
    """
    regions = read_annotations(True, text, line)
    for region in regions:
        if not 0 <= region.probability <= 1:
            shown = f"its probability {exact(region.probability)} is not from 0 to 1"
            raise malformed(NOT_READ, text, line, shown, region.column)
    return regions


def read_segments(text: str, line: int) -> list[Region]:
    """Read the segments of a line, whose labels may contain colons; raises MalformedLineError."""
    segments = []
    for token in _WORD.finditer(text):
        label, colon, positions = token[0].rpartition(":")
        if not colon or not _POSITIONS.fullmatch(positions):
            reason = NOT_READ if colon else "Colon expected"
            raise unread(reason, line, token, "is no segment; a segment is `label:1-4,7`")
        segments.append(Region(label, _spans(positions, line, token), column=token.start() + 1))
    spans = sorted((span, segment.column) for segment in segments for span in segment.boxes)
    for (one, first), (other, second) in pairwise(spans):
        if other.left <= one.right:
            hint = f"position {other.left} is in two segments, the other one in column {min(first, second)}"
            written = split_words(text[max(first, second) - 1 :])[0]
            raise malformed("Overlapping segments", text, line, hint, max(first, second), written)
    return segments


def _spans(written: str, line: int, token: re.Match[str]) -> tuple[Box, ...]:
    """Read positions as the fewest spans, in order, so that equal positions are equal spans."""
    spans: list[Box] = []
    pairs = (span.partition("-") for span in written.split(",") if span)
    ends = ((whole_number(a, line, token), whole_number(b or a, line, token)) for a, _, b in pairs)
    for low, high in sorted(pair for pair in ends if pair[0] <= pair[1]):
        if spans and low <= spans[-1].right + 1:
            spans[-1] = Box(spans[-1].left, max(spans[-1].right, high))
        else:
            spans.append(Box(low, high))
    return tuple(spans)


def unread(reason: str, line: int, token: re.Match[str], fault: str) -> MalformedLineError:
    """Return the error for a token of a line, whose hint is the token and its fault."""
    hint = f"`{visible(shorten(token[0]))}` {fault}"
    return malformed(reason, token.string, line, hint, token.start() + 1, token[0])


def whole_number(written: str, line: int, token: re.Match[str]) -> int:
    """Read a whole number, a part of a token of a line; raises MalformedLineError for one of too many digits."""
    digits = written.lstrip("0") or "0"
    if len(digits) > MAX_DIGITS:
        hint = f"`{shorten(written)}` is too large; a number has at most {MAX_DIGITS} digits"
        column = token.start() + token[0].index(written) + 1
        raise malformed(TOO_LARGE, token.string, line, hint, column, written)
    return int(digits)
