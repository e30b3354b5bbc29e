"""The lines that a metric's filter selects, such as ``LogLossHashed:f<in[Year]:1901>``.

Whether a line is selected is known when it is read; its seed is its number among the selected lines. So these lines
are collected, and scored by themselves when all are read. The others are neither parsed nor counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from geval_py.errors import MalformedLineError, SchemeError, UsageError
from geval_py.reading.features import Fields, ItemFilter, parse_filter
from geval_py.reading.items import ScoredItem
from geval_py.reading.schemes import EvaluationScheme
from geval_py.scoring.metrics import LineStatistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.scoring.metrics.base import Column

MOST_REMEMBERED = 5_000  # items without the feature, to find out what was meant instead


class Selection:
    """The selected lines of an output and their expected words, and the lines' numbers in the file, from 1."""

    def __init__(self, scheme: EvaluationScheme, header: tuple[str, ...]) -> None:
        self._scheme = scheme
        try:
            self.filter: ItemFilter = parse_filter(scheme.filters, Fields(header))
        except UsageError as error:
            raise SchemeError(scheme=scheme.text, message=error.message) from error
        self.line_numbers: array[int] = array("q")
        self._outputs: list[str] = []
        self._expected: list[str] = []
        self._others: list[ScoredItem] = []

    def add(self, first_line: int, texts: Sequence[tuple[str, str, str]]) -> None:
        """Take those of the items, which stand on the lines from ``first_line``, that have the features.

        ``texts`` are an item's input, expected line and output.
        """
        items = list(map(ScoredItem._make, texts))
        for line, item in enumerate(items, first_line):
            if self.filter.selects(item):
                self.line_numbers.append(line)
                self._outputs.append(item.output)
                self._expected.append(item.expected)
        if not self.line_numbers and len(self._others) < MOST_REMEMBERED:
            self._others.extend(items)

    def statistics(self, column: Column, output_path: str, expected_path: str) -> LineStatistics:
        """Score the selected lines; raises SchemeError if there is none, and MalformedLineError."""
        if not self.line_numbers:
            raise SchemeError(scheme=self._scheme.text, message=self.filter.nothing_found(self._others))
        try:
            return column.statistics(_block(self._outputs), _block(self._expected), 1)
        except MalformedLineError as error:
            error.line = self.line_numbers[error.line - 1]
            error.path = output_path if error.role == "output" else expected_path
            raise


def _block(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
