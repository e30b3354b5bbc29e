"""Columns of statistics that a function computes line by line, also of lines that text flags have changed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.preparation import Preparation
from geval_py.reading.wordprobs import NO_DIGIT, NUMBER
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.exact import read_number
from geval_py.text import split_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.scoring.metrics.base import Column


Parse: TypeAlias = Callable[[str, int], Any]  # reads a line with its number; raises MalformedLineError


@dataclass(frozen=True, slots=True)
class RowColumn:
    """Statistics that a function computes from an output line, the expected line and their number.

    ``width`` is the number of statistics; what is ``given`` are the function's first arguments. With ``beside``,
    the function returns a pair: the statistics, and the line's class or details.
    """

    row: Callable[..., Any]
    width: int = 1
    given: tuple[Any, ...] = ()
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
    """Statistics that a function computes from an input line, the output line, the expected line and their number.

    It is for whole files: the ``inputs`` of all lines are added once they are read.
    """

    row: Callable[[str, str, str, int], tuple[float, ...]]
    width: int
    inputs: tuple[str, ...] = ()

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
        lines = enumerate(zip(self.inputs, pairs, strict=True), first_line)
        rows = (self.row(given, text, answer, line) for line, (given, (text, answer)) in lines)
        return LineStatistics(columns=columns_of(rows, self.width))


def columns_of(rows: Iterable[tuple[float, ...]], width: int) -> tuple[array[float], ...]:
    """Turn rows of equal width into columns."""
    columns = tuple(array("d") for _ in range(width))
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


def _kept(found: Iterable[tuple[tuple[float, ...], Any]], beside: list[Any]) -> Iterator[tuple[float, ...]]:
    """Yield the rows; append what is beside each to a list."""
    for row, one in found:
        beside.append(one)
        yield row


def number_of(text: str, line: int) -> float:
    """Read a line's number, up to its first TAB; raises MalformedLineError."""
    if not text:
        raise malformed(NO_DIGIT, text, line, "the line is empty; write a number, such as 0.25")
    return read_number(text, line)


def probable_labels(text: str) -> list[tuple[str, float]]:
    """Read the labels of an output line with their probabilities.

    >>> probable_labels("a:0.5 b c:1 :0.5")
    [('a', 0.5), ('b', 1.0), ('c:1', 1.0), (':0.5', 1.0)]
    """
    return list(map(_label, split_words(text)))


def _label(word: str) -> tuple[str, float]:
    label, _, number = word.rpartition(":")
    if label and "." in number and NUMBER.fullmatch(number) and 0 <= float(number) <= 1:
        return label, float(number)
    return word, 1.0


def of_answer(parse: Parse, text: str, line: int) -> Any:
    """Parse an expected line; an error names the expected file."""
    return of_role("expected", parse, text, line)


def of_role(role: Literal["expected", "input"], parse: Parse, text: str, line: int) -> Any:
    """Parse a line of another file than the output; an error names that file."""
    try:
        return parse(text, line)
    except MalformedLineError as error:
        error.role = role
        raise


def malformed(
    reason: str, text: str, line: int, hint: str, column: int = 1, token: str | None = None
) -> MalformedLineError:
    """Return the error for a malformed line; ``token`` is the part that is wrong, by default the whole line."""
    shown = text if token is None else token
    return MalformedLineError(line=line, column=column, reason=reason, token=shown, hint=hint, text=text)


@dataclass(frozen=True, slots=True)
class PreparedColumn:
    """Another column, of lines that a preparation has changed; the lines keep their numbers."""

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
