"""Metrics of binary classification: output lines are the probability of 1, expected lines are 0 or 1.

Both are read up to the first TAB only; what stands behind it is a remark.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from math import inf, log, log1p

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.wordprobs import NUMBER, TEXT_AFTER_NUMBER, parse_number
from geval_py.scoring.metrics.base import LineStatistics, Setting

NUMBER_EXPECTED = "number expected"  # GEval's own bracketed message, of numbers that are no part of a distribution
_CLASS_LINE = re.compile(rf"{NUMBER.pattern}(?:\t.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BinaryColumn:
    """The loss of the expected class, in nats, and the classes: each distinct expected number is one of its own."""

    @classmethod
    def of(cls, setting: Setting) -> BinaryColumn:
        """Make the column; nothing can be set."""
        del setting
        return cls()

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        losses = array("d")
        classes: list[float | str] = []
        pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
        for line, (text, word) in enumerate(pairs, first_line):
            loss, number = binary_loss(text, word, line)
            losses.append(loss)
            classes.append(number)
        return LineStatistics(columns=(losses,), classes=classes)


def binary_loss(text: str, expected: str, line: int) -> tuple[float, float]:
    """Give the loss of a probability of 1, clipped to [0, 1], and the expected number: above 0.5 it counts as 1."""
    probability = min(1.0, max(0.0, read_number(text, line)))
    try:
        number = read_number(expected, line)
    except MalformedLineError as error:
        error.role = "expected"
        raise
    if number > 0.5:
        return (max(0.0, -log(probability)) if probability > 0 else inf), number
    return (max(0.0, -log1p(-probability)) if probability < 1 else inf), number


def is_class_line(text: str) -> bool:
    """Tell whether a line is one plain number, up to its first TAB."""
    return _CLASS_LINE.fullmatch(text) is not None


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
