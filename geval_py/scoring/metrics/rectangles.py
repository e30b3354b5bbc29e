"""Metrics of clippings: rectangles on pages, such as the figures in a scanned book.

    line      = [ clipping *( 1*white-space clipping ) ]         white space is spaces and TABs, at the ends too
    clipping  = [ label ":" ] [ page "/" ] rectangle [ ":" probability ]    a probability only in outputs
    rectangle = x0 "," y0 "," x1 "," y1                          whole numbers, x0 <= x1 and y0 <= y1
    ClippEU's = [ page "/" ] rectangle [ "/" margin ]            a margin in all that are expected, and in no other

The bounds belong to a rectangle: `3,3,3,3` is one pixel. Soft2D-F is the F-score of the area of a line, counted as
often as it is covered, and the mean of the lines. Probabilistic-Soft2D-F matches rectangles one to one by the share
of the common area in the area of both together (Jaccard's index). ClippEU counts rectangles that are right within
their margin; its score is F2.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import pairwise

from geval_py.scoring.metrics.assignment import Box, Region, equal_pairs, matched_scores, too_many
from geval_py.scoring.metrics.base import Row
from geval_py.scoring.metrics.columns import malformed
from geval_py.scoring.metrics.spans import PROBABILITY, TOKEN, unread, whole_number
from geval_py.tables.numbers import exact
from geval_py.text import SPACES, shorten

NOT_READ = "cannot parse line"  # the reasons of errors are GEval's own messages
THRESHOLD = 0.5  # from this probability on, a rectangle is given

MAX_RECTANGLES = 10_000  # of a line of Soft2D-F, expected and given: some seconds

_CORNERS = r"([0-9]++),([0-9]++),([0-9]++),([0-9]++)"
_RECTANGLE = re.compile(rf"(?:([^:{SPACES}]+):)?(?:([0-9]++)/)?{_CORNERS}(?::({PROBABILITY}))?")
_CLIPPING = re.compile(rf"()(?:([0-9]++)/)?{_CORNERS}(?:/([0-9]++))?")  # without a label, and with a margin


def area_counts(regions: Sequence[Region], answers: Sequence[Region]) -> Row:
    """Return the common, the expected and the given area; rectangles of a probability below 0.5 do not count.

    The common area is the sum over all points, of each label and page, of how many rectangles of each side cover it,
    the lesser number. Raises the error for too many rectangles.
    """
    regions = [region for region in regions if region.probability >= THRESHOLD]
    if len(answers) + len(regions) > MAX_RECTANGLES:
        raise too_many(answers, regions)
    boxes: dict[Hashable, tuple[list[Box], list[Box]]] = defaultdict(lambda: ([], []))
    for side, side_regions in enumerate((answers, regions)):
        for region in side_regions:
            boxes[region.label][side].extend(region.boxes)
    common = sum(common_area(*sides) for sides in boxes.values() if all(sides))
    return common, *(sum(region.size for region in side) for side in (answers, regions))


def common_area(*sides: Sequence[Box]) -> float:
    """Sum the lesser number of covers of all points, a strip between two ends of boxes at a time."""
    import numpy as np

    boxes = [np.array(side) + np.array([0, 1, 0, 1]) for side in sides]
    ends = np.concatenate(boxes)
    lefts, tops = np.unique(ends[:, :2]), np.unique(ends[:, 2:])
    heights = np.diff(tops).astype(np.float64)
    area = 0.0
    for left, right in pairwise(lefts.tolist()):
        covers = []
        for side in boxes:
            rows = np.searchsorted(tops, side[(side[:, 0] <= left) & (left < side[:, 1]), 2:])
            first, end = (np.bincount(column, minlength=len(tops)) for column in rows.T)
            covers.append((first - end).cumsum()[:-1])
        area += (right - left) * float((np.minimum(*covers) * heights).sum())
    return area


def clipping_counts(regions: Sequence[tuple[Region, int]], answers: Sequence[tuple[Region, int]]) -> Row:
    """Count the right, the expected and the given rectangles of a line.

    An expected rectangle and one given on its page fit if all bounds are within the margin.
    """
    import numpy as np

    sides = answers, regions
    fits = equal_pairs(*([region.label for region, _ in side] for side in sides))
    bounds = (np.array([region.boxes[0] for region, _ in side], np.int64).reshape(-1, 4).T for side in sides)
    margins = np.array([margin for _, margin in answers], np.int64).reshape(-1, 1)
    for expected, given in zip(*bounds, strict=True):
        fits &= np.abs(np.subtract.outer(expected, given)) <= margins
    return math.fsum(matched_scores(fits)), len(answers), len(regions)


def without_margins(expected: str) -> str:
    """Return the output that is right for an expected line of ClippEU."""
    return " ".join(token[0].rpartition("/")[0] for token in TOKEN.finditer(expected))


def read_rectangles(is_output: bool, text: str, line: int) -> list[Region]:
    """Read the rectangles of a line; only outputs have probabilities.

    Raises MalformedLineError, also for what is no probability.

    >>> [region] = read_rectangles(True, "figure:2/10,20,30,40:0.5", 1)
    >>> region.label, region.size, region.probability
    (('figure', 2), 441, 0.5)
    """
    end = ", perhaps with a probability behind it" if is_output else "; only outputs have probabilities"
    hint = f"a rectangle is `label:2/10,20,30,40`, on page 2{end}"
    regions = []
    for region, match in _regions(_RECTANGLE, text, line, hint, (False, is_output)):
        probability = float(match[7] or 1)
        if not 0 <= probability <= 1:
            reason, hint = f"{exact(probability)} is not in [0, 1]", f"`{shorten(match[7])}` is not from 0 to 1"
            raise malformed(reason, text, line, hint, match.start(7) + 1, match[7], is_numbered=False)
        regions.append(region._replace(probability=probability))
    return regions


def read_clippings(is_output: bool, text: str, line: int) -> list[tuple[Region, int]]:
    """Read the rectangles of a line of ClippEU, with their margins (0 in outputs); raises MalformedLineError."""
    end = "without label or margin" if is_output else "with a margin of 5"
    hint = f"a rectangle is `2/10,20,30,40{'' if is_output else '/5'}`, on page 2, {end}"
    regions = _regions(_CLIPPING, text, line, hint, (not is_output,))
    return [(region, whole_number(match[7] or "0", line, match)) for region, match in regions]


def _regions(
    pattern: re.Pattern[str], text: str, line: int, hint: str, may_end: tuple[bool, ...]
) -> list[tuple[Region, re.Match[str]]]:
    """Return the rectangles, with what matched them; ``may_end``: whether a probability or margin is at the end."""
    regions = []
    for token in TOKEN.finditer(text):
        match = pattern.fullmatch(text, *token.span())
        if match is None or (match[7] is not None) not in may_end:
            raise unread(NOT_READ, line, token, f"is no rectangle; {hint}")
        label, page, *corners, _ = match.groups()
        number = None if page is None else whole_number(page, line, token)
        x0, y0, x1, y1 = (whole_number(corner, line, token) for corner in corners)
        if x1 < x0 or y1 < y0:
            fault = "is no rectangle; the first corner is the one with the smaller numbers"
            raise unread(NOT_READ, line, token, fault)
        regions.append((Region((label, number), (Box(x0, x1, y0, y1),), column=token.start() + 1), match))
    return regions
