"""Columns of statistics that a function computes line by line, also of lines that text flags have changed."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.preparation import Preparation
from geval_py.reading.wordprobs import NO_DIGIT, NUMBER, TEXT_AFTER_NUMBER, parse_number
from geval_py.scoring.metrics.base import LineStatistics, StatisticsColumn
from geval_py.text import split_words

Parse: TypeAlias = Callable[[str, int], Any]  # reads a line with its number; raises MalformedLineError
NUMBER_EXPECTED = "number expected"  # GEval's own bracketed message, for numbers that are not part of a distribution


@dataclass(frozen=True, slots=True)
class RowColumn:
    """Statistics that a function computes from an output line, the expected line and their number.

    ``width`` is the number of statistics. Before these arguments the function takes the ``vocabulary`` if there is
    one, and the input line unless ``inputs`` is None: an empty tuple stands there until all lines are read. With
    ``beside``, the function returns a pair: the statistics, and the line's class, its details, or whether its
    expected word is out of the vocabulary.
    """

    row: Callable[..., Any]
    width: int = 1
    beside: Literal["details", "classes", "out_of_vocabulary"] | None = None
    vocabulary: frozenset[str] | None = None
    inputs: tuple[str, ...] | None = None

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        row = self.row if self.vocabulary is None else partial(self.row, self.vocabulary)
        inputs = () if self.inputs is None else (self.inputs,)
        columns = tuple(array("d") for _ in range(self.width))
        beside: list[Any] = []
        lines = zip(*inputs, decode_lines(outputs), decode_lines(expected), strict=True)
        for line, texts in enumerate(lines, first_line):
            values = row(*texts, line)
            if self.beside is not None:
                values, of_line = values
                beside.append(of_line)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        if self.beside == "out_of_vocabulary":
            return LineStatistics(columns, out_of_vocabulary=sum(beside))
        if self.beside == "classes":
            return LineStatistics(columns, classes=beside)
        return LineStatistics(columns, details=beside)


@dataclass(frozen=True, slots=True)
class PreparedColumn:
    """Another column, of lines that a preparation has changed; the lines keep their numbers."""

    column: StatisticsColumn
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


def read_number(text: str, line: int) -> float:
    """Read a line's number, up to its first TAB; raises MalformedLineError."""
    number, tab, _ = text.partition("\t")
    try:
        return parse_number(number, line)
    except MalformedLineError as error:
        error.text = text
        if error.reason == TEXT_AFTER_NUMBER:
            error.reason = NUMBER_EXPECTED
        if tab and not number:
            error.hint = "there is nothing before the TAB; write a number, such as 0.25"
        raise


def number_of(text: str, line: int) -> float:
    """Read a line's number as :func:`read_number` does, with another message for an empty line."""
    if not text:
        raise malformed(NO_DIGIT, text, line, "the line is empty; write a number, such as 0.25")
    return read_number(text, line)


def probable_labels(text: str) -> list[tuple[str, float]]:
    """Read the labels of an output line with their probabilities.

    >>> probable_labels("a:0.5 b c:1 :0.5")
    [('a', 0.5), ('b', 1.0), ('c:1', 1.0), (':0.5', 1.0)]
    """
    labels = []
    for word in split_words(text):
        label, _, number = word.rpartition(":")
        is_probability = label and "." in number and NUMBER.fullmatch(number) and 0 <= float(number) <= 1
        labels.append((label, float(number)) if is_probability else (word, 1.0))
    return labels


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
