"""Which lines belong together: lines of one document are alike, and say less than as many lines of others.

A document is what a column of the input says: the lines on which it is the same, such as those of one file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geval_py.errors import UsageError
from geval_py.reading.features import Field, Fields, columns_there_are
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.scoring.scores import MetricScore, ScoredOutput

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Documents:
    """The documents of the scored lines.

    ``column`` is the name, or the number, of the column that tells them; ``of_line`` has for each scored line the
    number of its document, from 0 in the order in which they come; ``count`` is the number of documents.
    """

    column: str
    of_line: Integers
    count: int

    @classmethod
    def of(cls, column: str, values: Iterable[Hashable]) -> Documents:
        """Make them of the values of a column, a value a line."""
        numbers: defaultdict[Hashable, int] = defaultdict(count().__next__)
        of_line = np.fromiter(map(numbers.__getitem__, values), np.int64)
        return cls(column=column, of_line=of_line, count=len(numbers))

    @property
    def are_lines(self) -> bool:
        """Whether each line is a document of its own, which is the same as no documents."""
        return self.count == len(self.of_line)

    @property
    def nothing_gained(self) -> str:
        """Say that they are the lines."""
        return f"each line is a document of its own by the column {visible(self.column)}: it is as if there were none"

    def several(self) -> Documents | None:
        """Give them where they say something: None where each line is one; raises UsageError where all lines are."""
        if self.are_lines:
            return None
        if self.count == 1:
            column, lines = visible(self.column), len(self.of_line)
            raise UsageError(
                message=f"all {lines} lines are of one document, since the column {column} is the same on all of them"
                "\n  how much documents differ is seen on two or more"
            )
        return self

    def of_score(self, score: MetricScore) -> Documents:
        """Give those of the lines that a metric scored, of all lines of the file."""
        return self if score.line_numbers is None else self.only(np.array(score.line_numbers) - 1)

    def only(self, places: Sequence[int] | Integers) -> Documents:
        """Give those of some lines, by their places from 0, in this order."""
        values = self.of_line[np.asarray(places, np.int64)]
        numbers, first, of_line = np.unique(values, return_index=True, return_inverse=True)
        rank = np.empty(len(numbers), np.int64)
        rank[np.argsort(first)] = np.arange(len(numbers))
        return Documents(column=self.column, of_line=rank[of_line], count=len(numbers))


def documents_of(evaluation: ScoredOutput, column: str | int) -> Documents:
    """Give the documents of the lines that an evaluation's first metric scored; as :func:`documents_in`."""
    return documents_in(evaluation, column).of_score(evaluation.scores[0])


def documents_in(evaluation: ScoredOutput, column: str | int) -> Documents:
    """Give the documents of all lines of the file that an evaluation is of, scored or not.

    ``column`` is the name of a column of the input or its number, from 1. A line that lacks the column counts as one
    on which it is empty.

    Raises UsageError where there is no input file or no such column, and LineCountError for an input of another
    number of lines.
    """
    if evaluation.split.input is None:
        raise UsageError(message="documents are told by a column of the input, and there is no input file")
    header = evaluation.split.in_header
    field = _column(str(column), header)
    evaluation.input.check_lines(evaluation.file_lines)
    cells = _Cells(field)
    documents = Documents.of(field.column_name, map(cells.of_line, evaluation.input.lines()))
    if not cells.found:
        raise _no_column(str(column), header)
    return documents


class _Cells:
    """A column of the lines of an input; ``found`` tells whether some line has it."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.found = False

    def of_line(self, line: str) -> str:
        column = self.field.column
        cells = line.split("\t", column + 1)
        if len(cells) <= column:
            return ""
        self.found = True
        return cells[column]


def _column(name: str, header: Sequence[str]) -> Field:
    try:
        return Fields(header).find(name)
    except KeyError:
        raise _no_column(name, header) from None


def _no_column(name: str, header: Sequence[str]) -> UsageError:
    return UsageError(message=f"Unknown column `{visible(name)}'\n  {columns_there_are(name, header)}")
