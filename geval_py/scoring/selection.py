"""The lines that a metric's flags select, such as ``LogLossHashed:f<in[Year]:1901>`` and ``LogLossHashed:p<50>``.

A line's seed is its number among the selected lines. So these lines are collected, and scored by themselves when all
are read. The others are neither parsed nor counted.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace

from geval_py.errors import MalformedLineError, SchemeError, UsageError
from geval_py.reading.features import Fields, ItemFilter, parse_filter
from geval_py.reading.items import ScoredItem
from geval_py.reading.schemes import EvaluationScheme
from geval_py.scoring.confidence import line_confidence
from geval_py.scoring.metrics import LineStatistics
from geval_py.scoring.metrics.prepared import PreparedColumn
from geval_py.scoring.metrics.rows import InputColumn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation
    from geval_py.scoring.metrics.base import Column

MOST_REMEMBERED = 5_000  # items without the feature, to find out what was meant instead


class Selection:
    """The selected lines of an output and their expected words, and the lines' numbers in the file, from 1.

    A ``preparation`` is what is done to expected lines and outputs before they are looked at; what is scored, the
    metric's column prepares itself. With a percentage (the flag ``p``) only that part of the lines is kept, those
    with most confidence, in this order, and of equal ones the first; call :meth:`finish` once all are added.
    """

    def __init__(
        self, scheme: EvaluationScheme, header: tuple[str, ...], preparation: Preparation | None = None
    ) -> None:
        self._scheme = scheme
        self._preparation = preparation
        try:
            self.filter: ItemFilter = parse_filter(scheme.filters, Fields(header))
        except UsageError as error:
            raise SchemeError(scheme=scheme.text, message=error.message) from error
        self.line_numbers: array[int] = array("q")
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        self._expected: list[str] = []
        self._confidences = array("d")
        self._others: list[ScoredItem] = []

    def add(self, first_line: int, texts: Sequence[tuple[str, str, str]]) -> None:
        """Take those of the items, which stand on the lines from ``first_line``, that have the features.

        ``texts`` are an item's input, expected line and output.
        """
        items = [self._prepared(item) for item in texts]
        for line, (item, (text, expected, output)) in enumerate(zip(items, texts, strict=True), first_line):
            if self.filter.selects(item):
                self.line_numbers.append(line)
                self._inputs.append(text)
                self._outputs.append(output)
                self._expected.append(expected)
                if self._scheme.percentage is not None:
                    self._confidences.append(line_confidence(item.output))
        if not self.line_numbers and len(self._others) < MOST_REMEMBERED:
            self._others.extend(items)

    def _prepared(self, texts: tuple[str, str, str]) -> ScoredItem:
        if self._preparation is None:
            return ScoredItem._make(texts)
        text, expected, output = texts
        return ScoredItem(text, self._preparation(expected), self._preparation(output))

    def finish(self) -> None:
        """Keep the lines with most confidence, and put them in order, where a percentage of them is asked for."""
        if self._scheme.percentage is None:
            return
        confidences = self._confidences
        kept = math.ceil(self._scheme.percentage * len(confidences) / 100)
        order = sorted(range(len(confidences)), key=lambda n: -confidences[n])[:kept]
        self.line_numbers = array("q", (self.line_numbers[n] for n in order))
        self._inputs = [self._inputs[n] for n in order]
        self._outputs = [self._outputs[n] for n in order]
        self._expected = [self._expected[n] for n in order]

    def statistics(self, column: Column, output_path: str, expected_path: str) -> LineStatistics:
        """Score the selected lines; raises SchemeError if there is none, and MalformedLineError."""
        if not self.line_numbers:
            raise self._nothing_found(output_path)
        try:
            return beside_input(column, self._inputs).statistics(_block(self._outputs), _block(self._expected), 1)
        except MalformedLineError as error:
            error.line = self.line_numbers[error.line - 1]
            error.path = output_path if error.role == "output" else expected_path
            raise

    def _nothing_found(self, output_path: str) -> SchemeError:
        path = output_path if self.filter.is_of_outputs else ""
        return SchemeError(scheme=self._scheme.text, message=self.filter.nothing_found(self._others), path=path)


def beside_input(column: Column, inputs: Sequence[str]) -> Column:
    """Give a column that needs the lines of the input these lines, prepared as the others are; others as they are."""
    if isinstance(column, PreparedColumn):
        return replace(column, column=beside_input(column.column, list(map(column.preparation, inputs))))
    return replace(column, inputs=tuple(inputs)) if isinstance(column, InputColumn) else column


def _block(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
