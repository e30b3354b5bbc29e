"""The lines of an output, each with its score, and what another output made of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from geval_py.reading.items import ScoredItem
    from geval_py.scoring.evaluation import Evaluation


class Line(NamedTuple):
    """A scored line: its number in the file, from 1, the first metric's score and loss, its texts.

    The loss is None where the metric is made from other statistics.
    """

    number: int
    score: float
    loss: float | None
    item: ScoredItem


class LineDifference(NamedTuple):
    """A line in two outputs, and its score in the first minus that in the other; NaN where both are infinite."""

    difference: float
    line: Line
    other: Line

    @property
    def differs(self) -> bool:
        """Whether the line differs in both its output and its score."""
        is_number = self.difference == self.difference
        return self.difference != 0 and is_number and self.line.item.output != self.other.item.output


def read_lines(evaluation: Evaluation) -> Iterator[Line]:
    """Give the lines that were scored, in order; raises as :meth:`Evaluation.read_items`."""
    count, numbers = evaluation.line_count, evaluation.line_numbers
    return map(
        Line,
        range(1, count + 1) if numbers is None else numbers,
        evaluation.each_line_score(),
        evaluation.line_losses if evaluation.scores[0].metric.measure.of_losses else repeat(None),
        evaluation.read_items(),
    )


def read_differences(evaluation: Evaluation, other: Evaluation) -> Iterator[LineDifference]:
    """Give each line in both outputs; raises as :func:`read_lines` and :meth:`Evaluation.check_same_lines`."""
    differences = evaluation.each_score_difference(other)
    return map(LineDifference, differences, read_lines(evaluation), read_lines(other))
