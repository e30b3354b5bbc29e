"""One-to-one matching of expected and given items: labels, or regions.

A region is a set of boxes that do not overlap: spans of positions (:mod:`geval_py.scoring.metrics.spans`), or one
rectangle of a page (:mod:`geval_py.scoring.metrics.rectangles`). The size of a region, and of what two regions have
in common, is computed from the ends of boxes, so that a span of 1e12 positions costs no more than one of three.

All pairs of items are in a matrix with a row for each expected item and a column for each given one. The matching is
the one with the greatest sum of scores (the assignment problem: Kuhn, "The Hungarian method for the assignment
problem", 1955), by scipy. A line with too many pairs is an error.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeAlias

from geval_py.errors import MalformedLineError
from geval_py.scoring.metrics.base import Array, Flags, Row, codes_of
from geval_py.scoring.metrics.columns import mismatch

MAX_PAIRS = 10_000_000  # of a line: some seconds, for Fuzzy/ a minute, and 80 MB for each matrix

Judged: TypeAlias = tuple[tuple[float, float], ...]  # the score and the probability of each given item


class Box(NamedTuple):
    """The first and the last position on each axis; both belong to the box."""

    left: int
    right: int
    top: int = 0
    bottom: int = 0

    @property
    def size(self) -> int:
        return (self.right - self.left + 1) * (self.bottom - self.top + 1)


class Region(NamedTuple):
    """A label, and perhaps a page, with the boxes of that label; ``column`` is its place in the line, from 1."""

    label: Hashable
    boxes: tuple[Box, ...]
    probability: float = 1.0
    column: int = 1

    @property
    def size(self) -> int:
        return sum(box.size for box in self.boxes)


def too_many(answers: Sequence[object], given: Sequence[object]) -> MalformedLineError:
    """Return the error for a line whose items would take too long, or too much memory, to compare."""
    items = f"{len(answers)} expected and {len(given)} given items cannot be compared"
    return mismatch("too many items to be matched", f"{items}; split the text of the line into several lines")


def check_pairs(answers: Sequence[object], given: Sequence[object]) -> None:
    """Raise the error for a line with too many pairs."""
    if len(answers) * len(given) > MAX_PAIRS:
        raise too_many(answers, given)


def equal_pairs(answers: Sequence[Hashable], given: Sequence[Hashable]) -> Flags:
    """Return for each pair whether both are equal; raises the error for too many pairs."""
    import numpy as np

    check_pairs(answers, given)
    codes = codes_of([*answers, *given])
    return np.equal.outer(codes[: len(answers)], codes[len(answers) :])


def common_shares(answers: Sequence[Region], regions: Sequence[Region]) -> tuple[Array, Array, Array]:
    """Return what each pair has in common, as a share of the expected one, of the given one, and of both together.

    Two empty regions of one label have all in common. Raises the error for too many pairs.
    """
    import numpy as np

    is_alike = equal_pairs([region.label for region in answers], [region.label for region in regions])
    rows = [(*box, place) for place, region in enumerate(regions) for box in region.boxes]
    boxes = np.array(rows, np.int64).reshape(-1, 5).T.copy()
    common = np.zeros(is_alike.shape)
    for row, region in zip(common, answers, strict=True):
        for box in region.boxes:
            left, right, top, bottom, places = boxes[:, (boxes[0] <= box.right) & (box.left <= boxes[1])]
            width = np.minimum(right, box.right) - np.maximum(left, box.left) + 1.0
            height = np.minimum(bottom, box.bottom) - np.maximum(top, box.top) + 1
            np.add.at(row, places, width * np.maximum(height, 0))
    common *= is_alike
    answer_sizes, sizes = (np.array([float(region.size) for region in side]) for side in (answers, regions))
    wholes = answer_sizes[:, np.newaxis], sizes, np.add.outer(answer_sizes, sizes) - common
    first, second, both = (np.where(whole, common / np.maximum(whole, 1), is_alike) for whole in wholes)
    return first, second, both


def matched_scores(scores: Array | Flags) -> list[float]:
    """Return the score of each given item with the expected item that it is matched with; 0 without one."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(scores, maximize=True)
    matched = np.zeros(scores.shape[1])
    matched[columns] = scores[rows, columns]
    scores_given: list[float] = matched.tolist()
    return scores_given


def probable_row(scores: Sequence[float], probabilities: Sequence[float], expected: int) -> tuple[Row, Judged]:
    """Return the probability of what is right and the number expected; and of each given item its score and p."""
    judged = tuple(zip(scores, probabilities, strict=True))
    return (math.fsum(score * probability for score, probability in judged), expected), judged


def probable_counts(regions: Sequence[Region], answers: Sequence[Region]) -> tuple[Row, Judged]:
    """Return what :func:`probable_row` does, of regions, as far as each has its positions in common with another."""
    *_, scores = common_shares(answers, regions)
    return probable_row(matched_scores(scores), [region.probability for region in regions], len(answers))
