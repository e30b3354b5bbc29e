"""Metrics on exact words and on classes 0 and 1: losses without hashing, and Accuracy.

For binary classification, output lines are the probability of 1, and expected lines are 0 or 1. Both are read up to
the first TAB; the text after it is a remark.
"""

from __future__ import annotations

import re
from math import inf, log, log1p

from geval_py.errors import MalformedLineError
from geval_py.reading.wordprobs import NUMBER, REST, parse_entries, parse_line
from geval_py.scoring.kernel.reference import mixture_loss
from geval_py.scoring.metrics.columns import parse_as, read_number
from geval_py.text import strip_spaces

_MAY_EXCEED_ONE = re.compile(r"(?:^|:)(?:-|\+?[1-9])|[0-9][eE]\+?[0-9]")
_CLASS_LINE = re.compile(rf"{NUMBER.pattern}(?:\t.*)?", re.DOTALL)


def binary_loss(probability: float, number: float) -> tuple[float, float]:
    """Compute the loss of a probability of 1, clipped to [0, 1]; also return the expected number (above 0.5: 1)."""
    probability = min(1.0, max(0.0, probability))
    if number > 0.5:
        return max(0.0, -log(probability)) if probability > 0 else inf, number
    return max(0.0, -log1p(-probability)) if probability < 1 else inf, number


def is_class_line(text: str) -> bool:
    """Whether a line is one plain number, up to its first TAB."""
    return _CLASS_LINE.fullmatch(text) is not None


def is_far_above_one(text: str) -> bool:
    """Whether a line that a metric can read has numbers that are no probabilities, nor, of entries, logarithms."""
    if not _MAY_EXCEED_ONE.search(text):  # reading it again takes as long as scoring it
        return False
    return parse_line(text.partition("\t")[0] if is_class_line(text) else text).is_far_above_one


def class_or_entries(text: str, line: int) -> object:
    """Read a line as a metric on exact words does where classes are expected; raises MalformedLineError."""
    if ":" in text and not is_class_line(text):
        return parse_entries(text, line)
    return read_number(text, line)


def word_loss(vocabulary: frozenset[str], text: str, expected: str) -> tuple[float, bool]:
    """Compute the loss of the expected word itself, in nats; also return whether the vocabulary lacks the word.

    An unlisted word shares the rest evenly with the other unlisted words of the vocabulary; a word outside the
    vocabulary has probability 0. A line that begins with one plain number where 0 or 1 is expected is binary
    classification (GEval's own LogLoss and Likelihood).
    """
    is_class = "\t" in text and is_class_line(text) and is_class_line(expected)  # a colon may follow the TAB
    if ":" not in text or is_class:
        probability = read_number(text, 0)
        try:
            return binary_loss(probability, parse_as("expected", read_number, expected, 0))[0], False
        except MalformedLineError as error:
            error.hint = "the output's plain number answers only 0 or 1; for a word the output has `word:probability`"
            raise
    words, values = parse_entries(text, 0)
    hits = [value for word, value in zip(words, values, strict=True) if word == expected and word != REST]
    rests = [value for word, value in zip(words, values, strict=True) if word == REST]
    share = 0.0
    if not hits and expected in vocabulary:
        listed = {word for word in words if word != REST and word in vocabulary}
        share = 1 / (len(vocabulary) - len(listed))
    return mixture_loss(values, hits, rests, share), expected not in vocabulary


def miss(text: str, expected: str) -> float:
    """Return 0 if a line's best guess is the expected line, else 1; both are stripped first. No line is malformed.

    The guess of a line of entries is the word with the greatest number (of equal numbers, the greatest word in code
    point order; the rest is not a word). Other lines are compared as a whole; where 0 or 1 is expected, a number in
    [0, 1], without a plus sign, is the probability of 1.
    """
    text, expected = strip_spaces(text), strip_spaces(expected)
    guess = best_guess(text)
    if guess is not None:
        return guess == REST or guess != expected
    if expected in {"0", "1"} and NUMBER.fullmatch(text) and text[0] != "+" and 0 <= float(text) <= 1:
        return (float(text) >= 0.5) != (expected == "1")
    return text != expected


def best_guess(text: str) -> str | None:
    """Return the word with the greatest number, "" if there is only the rest, and None for another kind of line."""
    if ":" not in text:
        return None
    try:
        words, values = parse_entries(text, 1)
    except MalformedLineError:
        return None
    return max(zip(values, words, strict=True), key=lambda pair: (pair[1] != REST, *pair))[1]
