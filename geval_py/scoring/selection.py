"""The lines that a metric's flags select, such as ``LogLossHashed:f<in[Year]:1901>`` and ``LogLossHashed:p<50>``.

GEval's module Confidence measures how confident an output line is of its guesses.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Sequence
from math import prod
from typing import Any

from geval_py.errors import MalformedLineError, SchemeError, UsageError
from geval_py.reading.features import OUTPUT, Fields, ItemFilter, parse_filter
from geval_py.reading.items import ScoredItem, lines_of
from geval_py.reading.outputs import Output
from geval_py.reading.preparation import Preparation
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.splits import Split
from geval_py.scoring.metrics.base import LineStatistics, Metric
from geval_py.scoring.metrics.columns import probable_labels

MAX_REMEMBERED = 5_000  # items without the feature, from which a close feature is suggested


class SelectedLines:
    """The selected lines of an output and their expected words, and the lines' numbers in the file, from 1.

    A ``preparation`` of answers and outputs, and one ``of_input``, change lines before the flags look at them; the
    metric's column prepares the lines to score itself. With a percentage (the flag ``p``) only that share is kept,
    the most confident first, and of equally confident lines the first; after the last line, call :meth:`finish`.
    """

    def __init__(
        self,
        scheme: EvaluationScheme,
        header: tuple[str, ...],
        preparation: Preparation | None,
        of_input: Preparation | None,
    ) -> None:
        self._scheme = scheme
        self._preparation, self._of_input = preparation or str, of_input or str
        try:
            self.filter: ItemFilter = parse_filter(scheme.filters, Fields(header))
        except UsageError as error:
            raise SchemeError(error.message, scheme=scheme.text) from error
        self.line_numbers: array[int] = array("q")
        self._items: list[ScoredItem] = []
        self._others: list[ScoredItem] = []

    def add(self, first_line: int, inputs: Sequence[str], expected: Sequence[str], outputs: Sequence[str]) -> None:
        """Add the lines that have the features."""
        items = list(map(ScoredItem, inputs, expected, outputs))
        prepared = [
            ScoredItem(self._of_input(text), self._preparation(answer), self._preparation(output))
            for text, answer, output in items
        ]
        for line, (item, seen) in enumerate(zip(items, prepared, strict=True), first_line):
            if self.filter.selects(seen):
                self.line_numbers.append(line)
                self._items.append(item)
        if not self.line_numbers and len(self._others) < MAX_REMEMBERED:
            self._others.extend(prepared)

    def finish(self) -> None:
        """With a percentage, keep the most confident lines, the most confident first."""
        if self._scheme.percentage is None:
            return
        ranked = sorted(
            zip(self.line_numbers, self._items, strict=True),
            key=lambda line: -line_confidence(self._preparation(line[1].output)),
        )
        ranked = ranked[: math.ceil(self._scheme.percentage * len(ranked) / 100)]
        self.line_numbers = array("q", (number for number, _ in ranked))
        self._items = [item for _, item in ranked]

    def statistics(
        self, metric: Metric, column: Any, split: Split, output: Output, names: tuple[str, ...]
    ) -> LineStatistics | SchemeError:
        """Compute a metric's column for the selected lines; return the error if this output has none.

        Raises SchemeError if no output could have such a line, and MalformedLineError with the ``names`` of metrics.
        """
        if not self.line_numbers:
            path = output.path if OUTPUT in [feature.field for feature in self.filter.features] else ""
            error = SchemeError(self.filter.nothing_found(self._others), scheme=self._scheme.text, path=path)
            if path:
                return error
            raise error
        inputs, expected, outputs = zip(*self._items, strict=True)
        more = (inputs,) if metric.needs_input else ()
        try:
            statistics: LineStatistics = column.statistics(lines_of(outputs), lines_of(expected), 1, *more)
            return statistics
        except MalformedLineError as error:
            error.line, error.metrics = self.line_numbers[error.line - 1], names
            files = {"output": output.file, "expected": split.expected, "input": split.input}
            error.path = os.fspath(files[error.role] or "")
            raise


def line_confidence(text: str) -> float:
    """Return the geometric mean of the probabilities in a line of ``label:p``, in [0, 1]; 1 for an empty line.

    A number counts if it has a point and is in [0, 1]; another word, and the rest, counts as 1. The numbers are not
    normalised, and are multiplied from left to right: a product of very many may be 0.

    >>> line_confidence("a:0.5 b:0.125"), line_confidence("a:1 the:-0.5 :0.1")
    (0.25, 1.0)
    """
    probabilities = [probability for _, probability in probable_labels(text)]
    return prod(probabilities) ** (1 / len(probabilities)) if probabilities else 1.0
