"""Columns of statistics that are made line by line."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.preparation import Preparation
from geval_py.reading.wordprobs import NO_DIGIT
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.exact import read_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.scoring.metrics.base import Column


Parse: TypeAlias = Callable[[str, int], Any]  # of a line and its number; raises MalformedLineError


@dataclass(frozen=True, slots=True)
class RowColumn:
    """The statistics that a function gives of an output line, the expected one and their number.

    They are as many as the ``width``; the numbers ``given`` are the function's first arguments. With something kept
    ``beside`` them, it gives a pair: the statistics, and what is kept of the line.
    """

    row: Callable[..., Any]
    width: int = 1
    given: tuple[float, ...] = ()
    beside: Literal["details", "classes"] | None = None

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
        row = partial(self.row, *self.given)
        found = (row(text, answer, line) for line, (text, answer) in enumerate(pairs, first_line))
        if self.beside is None:
            return LineStatistics(columns=columns_of(found, self.width))
        beside: list[Any] = []
        columns = columns_of(_kept(found, beside), self.width)
        if self.beside == "classes":
            return LineStatistics(columns=columns, classes=beside)
        return LineStatistics(columns=columns, details=beside)


@dataclass(frozen=True, slots=True)
class InputColumn:
    """The statistics that a function gives of a line of the input, the output and the expected one.

    The ``inputs`` are put in when all lines are there; those of the first are of line 1.
    """

    row: Callable[[str, str, str], tuple[float, ...]]
    width: int
    inputs: tuple[str, ...] = ()

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
        inputs = islice(self.inputs, first_line - 1, None)
        rows = (self.row(given, text, answer) for given, (text, answer) in zip(inputs, pairs, strict=True))
        return LineStatistics(columns=columns_of(rows, self.width))


def columns_of(rows: Iterable[tuple[float, ...]], width: int) -> tuple[array[float], ...]:
    """Turn rows of as many numbers into columns."""
    columns = tuple(array("d") for _ in range(width))
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


def _kept(found: Iterable[tuple[tuple[float, ...], Any]], beside: list[Any]) -> Iterator[tuple[float, ...]]:
    """Give the rows, and keep what is beside them."""
    for row, one in found:
        beside.append(one)
        yield row


def number_of(text: str, line: int) -> float:
    """Read a line's number, up to its first TAB; raises MalformedLineError."""
    if not text:
        raise malformed(NO_DIGIT, text, line, "the line is empty; write a number, such as 0.25")
    return read_number(text, line)


def of_answer(parse: Parse, text: str, line: int) -> Any:
    """Parse an expected line: what is wrong with it is said of the expected file."""
    try:
        return parse(text, line)
    except MalformedLineError as error:
        error.role = "expected"
        raise


def malformed(
    reason: str, text: str, line: int, hint: str, column: int = 1, token: str | None = None
) -> MalformedLineError:
    """Make the error for a line that cannot be read; ``token`` is what is wrong there, by default all of it."""
    shown = text if token is None else token
    return MalformedLineError(line=line, column=column, reason=reason, token=shown, hint=hint, text=text)


# Metrics on lines that the text flags of an evaluation scheme have changed.


@dataclass(frozen=True, slots=True)
class PreparedColumn:
    """Another column, of the lines as a preparation leaves them. Lines keep their numbers."""

    column: Column
    preparation: Preparation

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        try:
            return self.column.statistics(self._prepared(outputs), self._prepared(expected), first_line)
        except MalformedLineError as error:
            error.prepared_by = str(self.preparation)
            raise

    def _prepared(self, block: Bytes) -> bytes:
        text = str(block, "utf-8", "replace").replace("\r", "")
        # A lone surrogate, from the command line's bytes, is replaced when it is read, as in a file.
        return self.preparation.of_lines(text).encode("utf-8", "surrogatepass")
