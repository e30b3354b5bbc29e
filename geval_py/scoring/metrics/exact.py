"""Metrics on exact words and on classes 0 and 1: losses without hashing, and Accuracy.

For binary classification, output lines are the probability of 1, and expected lines are 0 or 1. Both are read up to
the first TAB; the text after it is a remark.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from math import inf, log, log1p

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes, decode_lines
from geval_py.reading.wordprobs import COLON_EXPECTED, NUMBER, REST, TEXT_AFTER_NUMBER, parse_entries, parse_number
from geval_py.scoring.kernel.reference import mixture_loss
from geval_py.scoring.metrics.base import LineStatistics, Setting
from geval_py.text import strip_spaces

NUMBER_EXPECTED = "number expected"  # GEval's own bracketed message, for numbers that are not part of a distribution
_CLASS_LINE = re.compile(rf"{NUMBER.pattern}(?:\t.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BinaryColumn:
    """The loss of the expected class, in nats, and the classes: each distinct expected number is a class."""

    @classmethod
    def of(cls, setting: Setting) -> BinaryColumn:
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
    """Compute the loss of a probability of 1, clipped to [0, 1]; also return the expected number (above 0.5: 1)."""
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
    """Whether a line is one plain number, up to its first TAB."""
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


def class_or_entries(text: str, line: int) -> object:
    """Read a line as a metric on exact words does where classes are expected; raises MalformedLineError."""
    if ":" in text and not is_class_line(text):
        return parse_entries(text, line)
    return read_number(text, line)


@dataclass(frozen=True, slots=True)
class WordColumn:
    """The loss of the expected word itself, in nats.

    An unlisted word shares the rest evenly with the other unlisted words of the vocabulary; a word outside the
    vocabulary has probability 0. A line that begins with one plain number where 0 or 1 is expected is binary
    classification (GEval's own LogLoss and Likelihood).
    """

    vocabulary: frozenset[str]

    @classmethod
    def of(cls, setting: Setting) -> WordColumn:
        return cls(setting.vocabulary)

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        losses = array("d")
        unknown = 0
        pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
        for line, (text, word) in enumerate(pairs, first_line):
            if ":" in text and not _is_class(text, word):
                losses.append(self._word_loss(text, word, line))
                unknown += word not in self.vocabulary
            elif is_class_line(text) and not is_class_line(word):
                raise _colon_expected(text, line)
            else:
                losses.append(binary_loss(text, word, line)[0])
        return LineStatistics(columns=(losses,), out_of_vocabulary=unknown)

    def _word_loss(self, text: str, expected: str, line: int) -> float:
        words, values = parse_entries(text, line)
        pairs = list(zip(words, values, strict=True))
        hits = [value for word, value in pairs if word == expected and word != REST]
        rests = [value for word, value in pairs if word == REST]
        share = 0.0
        if not hits and expected in self.vocabulary:
            listed = {word for word in words if word != REST and word in self.vocabulary}
            share = 1 / (len(self.vocabulary) - len(listed))
        return mixture_loss(values, hits, rests, share)


def _is_class(text: str, expected: str) -> bool:
    """Whether a line with a colon after a TAB is a number, where a number is expected."""
    return "\t" in text and is_class_line(text) and is_class_line(expected)


def _colon_expected(text: str, line: int) -> MalformedLineError:
    return MalformedLineError(
        line=line,
        column=1,
        reason=COLON_EXPECTED,
        token=text,
        text=text,
        hint="a plain number answers only where 0 or 1 is expected; here a word is: write `word:probability`",
    )


@dataclass(frozen=True, slots=True)
class MissColumn:
    """0 if the best guess is the expected line, else 1."""

    @classmethod
    def of(cls, setting: Setting) -> MissColumn:
        del setting
        return cls()

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        del first_line  # no line is malformed for Accuracy
        pairs = zip(decode_lines(outputs), decode_lines(expected), strict=True)
        misses = array("d", (0.0 if is_hit(text, word) else 1.0 for text, word in pairs))
        return LineStatistics(columns=(misses,))


def is_hit(text: str, expected: str) -> bool:
    """Whether an output line's best guess is the expected line; both are stripped first.

    The guess of a line of entries is the word with the greatest number (of equal numbers, the greatest word in code
    point order; the rest is not a word). Other lines are compared as a whole; where 0 or 1 is expected, a number in
    [0, 1], without a plus sign, is the probability of 1.
    """
    text, expected = strip_spaces(text), strip_spaces(expected)
    guess = best_guess(text)
    if guess is not None:
        return guess != REST and guess == expected
    if expected in {"0", "1"} and NUMBER.fullmatch(text) and text[0] != "+" and 0 <= float(text) <= 1:
        return (float(text) >= 0.5) == (expected == "1")
    return text == expected


def best_guess(text: str) -> str | None:
    """Return the word with the greatest number, "" if there is only the rest, and None for another kind of line."""
    if ":" not in text:
        return None
    try:
        words, values = parse_entries(text, 1)
    except MalformedLineError:
        return None
    return max(zip(values, words, strict=True), key=lambda pair: (pair[1] != REST, *pair))[1]
