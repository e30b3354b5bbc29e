"""One-to-one matching of expected and given regions.

A region is a set of boxes that do not overlap: spans of positions (:mod:`geval_py.scoring.metrics.spans`), or one
rectangle of a page (:mod:`geval_py.scoring.metrics.rectangles`). The size of a region, and of what two regions have
in common, is computed from the ends of boxes, so that a span of 1e12 positions costs no more than one of three.

The pairs of overlapping regions are found by a sweep along the first axis. The matching is the one with the greatest
sum of scores (the assignment problem: Kuhn, "The Hungarian method for the assignment problem", 1955), by scipy. It is
found separately in each component of the graph of overlaps: regions without a common neighbour cannot compete.

Lines come from strangers. A line whose matching would take too long, or too much memory, is an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from geval_py.errors import MalformedLineError
from geval_py.scoring.metrics.base import Row
from geval_py.scoring.metrics.columns import mismatch

MAX_COMPARED = 5_000_000  # pairs of boxes of a line that overlap on the first axis: some seconds
MAX_PAIRS = 250_000  # of a line that have a score: 50 MB
MAX_CELLS = 4_000_000  # of the matrices of scores of a line: 32 MB
TOO_MANY = "too many overlapping items"
ADVICE = "split the text of the line into several lines"

Pair: TypeAlias = tuple[int, int]  # the places of an expected and of a given region, from 0


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


def matched_scores(answers: Sequence[Region], regions: Sequence[Region]) -> dict[int, float]:
    """Return the scores of the matched regions of an output line, by their places; others have no match.

    The score of a pair is the size of what both have in common divided by the size of both together. Two empty
    regions of one label have the score 1. An empty region fits no other, so each is paired with one only. Raises the
    error for too many regions that overlap.
    """
    sizes = [[region.size for region in side] for side in (answers, regions)]
    scores = {
        (answer, place): size / (sizes[0][answer] + sizes[1][place] - size)
        for (answer, place), size in common_sizes(answers, regions).items()
    }
    empty: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, regions_of_side in enumerate((answers, regions)):
        for place, region in enumerate(regions_of_side):
            if not sizes[side][place]:
                empty[region.label][side].append(place)
    for pair in empty.values():
        scores |= dict.fromkeys(zip(*pair, strict=False), 1.0)
    return {place: scores[answer, place] for answer, place in best_matching(scores)}


def probable_counts(
    regions: Sequence[Region], answers: Sequence[Region]
) -> tuple[Row, tuple[tuple[float, float], ...]]:
    """Return the probability of what is right and the number expected; and of each region its score and p."""
    scores = matched_scores(answers, regions)
    judged = tuple((scores.get(place, 0.0), region.probability) for place, region in enumerate(regions))
    return (sum(score * probability for score, probability in judged), len(answers)), judged


def common_sizes(answers: Sequence[Region], regions: Sequence[Region]) -> dict[Pair, int]:
    """Return the sizes of what the pairs of one label have in common; pairs without anything are left out.

    Raises the error for too many regions that overlap.
    """
    starts: dict[Hashable, list[tuple[Box, int, int]]] = defaultdict(list)  # the boxes of a label, side and place
    for side, regions_of_side in enumerate((answers, regions)):
        for place, region in enumerate(regions_of_side):
            starts[region.label].extend((box, side, place) for box in region.boxes)
    sizes: dict[Pair, int] = {}
    compared = 0
    for boxes in starts.values():
        open_boxes: tuple[list[tuple[int, Box, int]], ...] = ([], [])  # of each side, the one that ends first on top
        for box, side, place in sorted(boxes):
            others = open_boxes[1 - side]
            while others and others[0][0] < box.left:
                heappop(others)
            compared += len(others)
            check_pairs(compared, len(sizes))
            for end, other, neighbour in others:
                height = min(box.bottom, other.bottom) - max(box.top, other.top) + 1
                if height > 0:
                    width = min(box.right, end) - box.left + 1
                    pair = (neighbour, place) if side else (place, neighbour)
                    sizes[pair] = sizes.get(pair, 0) + width * height
                    check_pairs(compared, len(sizes))
            heappush(open_boxes[side], (box.right, box, place))
    return sizes


def too_many(what: str) -> MalformedLineError:
    """Return the error for a line that would take too long, or too much memory, to score."""
    return mismatch(TOO_MANY, f"{what}; {ADVICE}")


def check_pairs(compared: int, near: int) -> None:
    """Raise an error if so many pairs take too long to compare, or those with a score too much memory."""
    if compared > MAX_COMPARED:
        raise too_many(f"more than {MAX_COMPARED} pairs of items would have to be compared")
    if near > MAX_PAIRS:
        raise too_many(f"more than {MAX_PAIRS} pairs of items are near each other")


def best_matching(scores: Mapping[Pair, float]) -> list[Pair]:
    """Match one to one, so that the sum of the scores is the greatest; pairs without a score stay apart.

    Raises the error for too many regions that overlap.
    """
    parent: dict[tuple[int, int], tuple[int, int]] = {}  # of a side and a place; the root is its own

    def root(node: tuple[int, int]) -> tuple[int, int]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for answer, place in scores:
        parent[root((0, answer))] = root((1, place))
    components: dict[tuple[int, int], list[Pair]] = defaultdict(list)
    for pair in scores:
        components[root((0, pair[0]))].append(pair)
    matched: list[Pair] = []
    cells = 0
    for pairs in components.values():
        if len(pairs) == 1:
            matched += pairs
            continue
        answers, places = (sorted({pair[side] for pair in pairs}) for side in range(2))
        cells += len(answers) * len(places)
        if cells > MAX_CELLS:
            raise too_many(f"{len(answers)} expected and {len(places)} given items hang together by overlaps")
        import numpy as np
        from scipy.optimize import linear_sum_assignment

        matrix = np.zeros((len(answers), len(places)))
        row_of, column_of = ({place: n for n, place in enumerate(side)} for side in (answers, places))
        for answer, place in pairs:
            matrix[row_of[answer], column_of[place]] = scores[answer, place]
        cells_chosen = zip(*linear_sum_assignment(matrix, maximize=True), strict=True)
        best = ((answers[row], places[column]) for row, column in cells_chosen)
        matched += (pair for pair in best if scores.get(pair))
    return matched
