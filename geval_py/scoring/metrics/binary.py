"""Metrics of binary classification: output lines are the probability of 1, expected lines are 0 or 1."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from math import inf, log, log1p

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.wordprobs import parse_number
from geval_py.scoring.metrics.base import LineStatistics, Setting


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
    probability = min(1.0, max(0.0, parse_number(text, line)))
    try:
        number = parse_number(expected, line)
    except MalformedLineError as error:
        error.role = "expected"
        raise
    if number > 0.5:
        return (max(0.0, -log(probability)) if probability > 0 else inf), number
    return (max(0.0, -log1p(-probability)) if probability < 1 else inf), number
