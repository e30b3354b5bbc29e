"""The lines that a metric's flags select, such as ``LogLossHashed:f<in[Year]:1901>`` and ``LogLossHashed:p<50>``.

GEval's module Confidence measures how confident an output line is of its guesses.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from geval_py.errors import MalformedLineError, SchemeError, UsageError
from geval_py.reading.features import Fields, ItemFilter, parse_filter
from geval_py.reading.items import ScoredItem
from geval_py.reading.wordprobs import NUMBER
from geval_py.scoring.metrics.columns import PreparedColumn, RowColumn
from geval_py.text import split_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from geval_py.reading.outputs import Output
    from geval_py.reading.preparation import Preparation
    from geval_py.reading.schemes import EvaluationScheme, Flag
    from geval_py.reading.splits import Split
    from geval_py.scoring.metrics.base import Column, LineStatistics

# Which lines are scored: the flags that select them, and the preparations of lines before these flags look at them:
# of answers and outputs, and of the input.
Choice: TypeAlias = "tuple[tuple[Flag, ...], Preparation | None, Preparation | None]"
Key: TypeAlias = "tuple[Choice | None, Column]"  # of a metric's statistics: the lines (None: all), and the column
Found: TypeAlias = "LineStatistics | SchemeError"  # the statistics, or why an output has none
MOST_REMEMBERED = 5_000  # items without the feature, from which a close feature is suggested


class Selection:
    """The selected lines of an output and their expected words, and the lines' numbers in the file, from 1.

    A ``preparation`` changes expected lines and outputs before the flags look at them, and ``of_input`` the input.
    The metric's column prepares the lines to score itself. With a percentage (the flag ``p``) only that share of the
    lines is kept, the most confident first, and of equally confident lines the first; after the last line, call
    :meth:`finish`.
    """

    def __init__(
        self,
        scheme: EvaluationScheme,
        header: tuple[str, ...],
        preparation: Preparation | None = None,
        of_input: Preparation | None = None,
    ) -> None:
        self._scheme = scheme
        self._preparation, self._of_input = preparation or str, of_input or str
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
        """Add the items that have the features; ``texts`` are each item's input, expected line and output."""
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
        text, expected, output = texts
        return ScoredItem(self._of_input(text), self._preparation(expected), self._preparation(output))

    def finish(self) -> None:
        """With a percentage, keep the most confident lines, the most confident first."""
        if self._scheme.percentage is None:
            return
        confidences = self._confidences
        kept = math.ceil(self._scheme.percentage * len(confidences) / 100)
        order = sorted(range(len(confidences)), key=lambda n: -confidences[n])[:kept]
        self.line_numbers = array("q", (self.line_numbers[n] for n in order))
        self._inputs = [self._inputs[n] for n in order]
        self._outputs = [self._outputs[n] for n in order]
        self._expected = [self._expected[n] for n in order]

    def statistics(
        self, column: Column, output_path: str, expected_path: str, input_path: str | None = None
    ) -> LineStatistics:
        """Score the selected lines; raises SchemeError if there are none, and MalformedLineError."""
        if not self.line_numbers:
            path = output_path if self.filter.is_of_outputs else ""
            raise SchemeError(scheme=self._scheme.text, message=self.filter.nothing_found(self._others), path=path)
        try:
            return beside_input(column, self._inputs).statistics(_block(self._outputs), _block(self._expected), 1)
        except MalformedLineError as error:
            error.line = self.line_numbers[error.line - 1]
            error.path = {"output": output_path, "expected": expected_path, "input": input_path or ""}[error.role]
            raise


def beside_input(column: Column, inputs: Sequence[str]) -> Column:
    """Return a column that has the lines of the input, prepared as the other lines are, if it needs them."""
    if isinstance(column, PreparedColumn):
        return replace(column, column=beside_input(column.column, list(map(column.preparation, inputs))))
    if isinstance(column, RowColumn) and column.inputs is not None:
        return replace(column, inputs=tuple(inputs))
    return column


def _block(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def statistics_of_selected(
    selections: Mapping[Choice, Selection], metrics: Mapping[Key, tuple[str, ...]], split: Split, output: Output
) -> dict[Key, Found]:
    """Score the selected lines; where none of this output was selected, the value is the error.

    ``metrics`` holds the names of the metrics of each key, for an error. Raises SchemeError where no output could
    have such a line, and MalformedLineError.
    """
    found: dict[Key, Found] = {}
    for (choice, column), names in metrics.items():
        if choice is None:
            continue
        try:
            found[choice, column] = selections[choice].statistics(column, output.path, split.expected, split.input)
        except SchemeError as error:
            if error.path != output.path:
                raise
            found[choice, column] = error
        except MalformedLineError as error:
            error.metrics = names
            raise
    return found


def line_confidence(text: str) -> float:
    """Return the geometric mean of the probabilities in a line of ``label:p``, in [0, 1]; 1 for an empty line.

    A number counts if it has a point and is in [0, 1]; another word, and the rest, counts as 1. The numbers are not
    normalised, and are multiplied from left to right: a product of very many may be 0.

    >>> line_confidence("a:0.5 b:0.125"), line_confidence("a:1 the:-0.5 :0.1")
    (0.25, 1.0)
    """
    words = split_words(text)
    return prod(map(_probability, words)) ** (1 / len(words)) if words else 1.0


def _probability(word: str) -> float:
    label, _, number = word.rpartition(":")
    if not label or "." not in number or not NUMBER.fullmatch(number):
        return 1.0
    value = float(number)
    return value if 0 <= value <= 1 else 1.0
