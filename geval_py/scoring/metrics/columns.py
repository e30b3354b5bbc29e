"""Columns of statistics that a function computes line by line, also of lines that text flags have changed.

Then functions with some of their arguments, and formulas of floats.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, Literal, NamedTuple, TypeAlias

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.preparation import Preparation
from geval_py.reading.wordprobs import NO_DIGIT, NUMBER, TEXT_AFTER_NUMBER, parse_number
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.text import split_words

Role: TypeAlias = Literal["output", "expected", "input"]  # the file that a line is of
Parse: TypeAlias = Callable[[str, int], Any]  # reads a line with its number; raises MalformedLineError
NUMBER_EXPECTED = "number expected"  # GEval's own bracketed message, for numbers that are not part of a distribution


class RowColumn(NamedTuple):
    """Statistics that a function computes from an output line and the expected line.

    ``parse``, ``parse_answer`` and ``parse_input`` read a line of each file; by default, the function takes the text.
    It takes the ``vocabulary`` before both, if there is one, and the input line after them if the metric compares
    lines of the input too. It returns one number or a tuple of ``width`` numbers; with
    ``beside``, a pair: these, and the line's details, such as its class, or whether its expected word is out of the
    vocabulary. It raises the errors that :func:`mismatch` makes. ``is_far_above_one`` says of a line whether its
    numbers are neither probabilities nor their logarithms.
    """

    row: Callable[..., Any]
    width: int = 1
    parse: Parse | None = None
    parse_answer: Parse | None = None
    parse_input: Parse | None = None
    beside: Literal["details", "out_of_vocabulary"] | None = None
    vocabulary: frozenset[str] | None = None
    is_far_above_one: Callable[[str], bool] | None = None

    def statistics(
        self, outputs: Bytes, expected: bytes, first_line: int, inputs: Sequence[str] | None = None
    ) -> LineStatistics:
        row = self.row if self.vocabulary is None else partial(self.row, self.vocabulary)
        texts: dict[Role, Sequence[str]] = {"output": decode_lines(outputs), "expected": decode_lines(expected)}
        if inputs is not None:
            texts["input"] = inputs
        parsers = (self.parse, self.parse_answer, self.parse_input)
        sides = [
            lines if parse is None else map(partial(parse_as, role, parse), lines, count(first_line))
            for (role, lines), parse in zip(texts.items(), parsers, strict=False)
        ]
        columns = tuple(array("d") for _ in range(self.width))
        beside: list[Any] = []
        try:
            for values in zip(*sides, strict=True):
                result = row(*values)
                if self.beside is not None:
                    result, of_line = result
                    beside.append(of_line)
                for column, value in zip(columns, result if isinstance(result, tuple) else (result,), strict=True):
                    column.append(value)
        except MalformedLineError as error:
            error.line = error.line or first_line + len(columns[0])  # only parsers know the line's number
            place = error.line - first_line
            if not error.text:
                error.text = texts[error.role][place]
                error.token = error.token or error.text
            if error.role == "output" and self.parse_answer is not None:  # an answer that is no better is blamed
                parse_as("expected", self.parse_answer, texts["expected"][place], error.line)
            raise
        of_lines: Any = sum(beside) if self.beside == "out_of_vocabulary" else beside
        far = 0 if self.is_far_above_one is None else sum(map(self.is_far_above_one, texts["output"]))
        return LineStatistics(columns, far_above_one=far, **{self.beside or "details": of_lines})


def parse_as(role: Role, parse: Parse, text: str, line: int) -> Any:
    """Parse a line; an error names the file that it is of."""
    try:
        return parse(text, line)
    except MalformedLineError as error:
        error.role = role
        raise


class PreparedColumn(NamedTuple):
    """Another column, of lines that a preparation has changed; the lines keep their numbers."""

    column: Any  # a StatisticsColumn; only a RowColumn takes inputs
    preparation: Preparation

    def statistics(
        self, outputs: Bytes, expected: bytes, first_line: int, inputs: Sequence[str] | None = None
    ) -> LineStatistics:
        more = () if inputs is None else (list(map(self.preparation, inputs)),)
        try:
            statistics: LineStatistics = self.column.statistics(
                self._prepared(outputs), self._prepared(expected), first_line, *more
            )
            return statistics
        except MalformedLineError as error:
            error.prepared_by = str(self.preparation)
            raise

    def _prepared(self, block: Bytes) -> bytes:
        text = str(block, "utf-8", "replace").replace("\r", "")
        # A lone surrogate, from the command line's bytes, is replaced when it is read, as in a file.
        return self.preparation.of_lines(text).encode("utf-8", "surrogatepass")


class Partial(partial[Any]):
    """A function with its first arguments. Equal ones compare as equal, other than those of ``functools.partial``."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partial) and (self.func, self.args) == (other.func, other.args)

    def __hash__(self) -> int:
        return hash((self.func, self.args))


def elementwise(score: Callable[..., float], totals: Sequence[Any], lines: Any) -> Any:
    """Compute a formula made of a function of sums as floats, which is called once for each of many resamples."""
    if isinstance(lines, int | float):
        return score(*totals)
    import numpy as np

    return np.vectorize(score, otypes=[np.float64])(*totals)


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


def malformed(
    reason: str, text: str, line: int, hint: str, column: int = 1, token: str | None = None, **more: Any
) -> MalformedLineError:
    """Return the error for a malformed line; ``token`` is the part that is wrong, by default the whole line."""
    shown = text if token is None else token
    return MalformedLineError(line=line, column=column, reason=reason, token=shown, hint=hint, text=text, **more)


def mismatch(reason: str, hint: str, **more: Any) -> MalformedLineError:
    """Return the error for lines that cannot be scored together; the column adds the line of the role's file."""
    return malformed(reason, "", 0, hint, **more)
