"""Error rates: how many words, or characters, must be put in, taken out or replaced to come to what was expected.

WER and CER are the edits of all lines by the length of all expected lines, in [0, ∞); WAR and CAR are 1 minus these.
In ``Mean/…`` each line counts the same, however long. An empty line lacks all that is expected; where nothing is, the
rate of a line is 0 if it is empty, and else 1. The distances (Levenshtein, "Binary codes capable of correcting
deletions, insertions and reversals", 1966) are RapidFuzz's, whose algorithm takes 64 characters at a time.

CharMatch is F_0.5 of corrections, in [0, 1]: the edits from the input to what was expected, and those of the output.
RapidFuzz rather than JiWER, which rests on it: that would split and normalise texts in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rapidfuzz.distance import Levenshtein

from geval_py.text import split_words

if TYPE_CHECKING:
    from collections.abc import Hashable


CHAR_MATCH_BETA = 0.5


def distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Count the least edits, of an item each, that make one sequence the other.

    >>> distance("kitten", "sitting"), distance(["a", "cat"], ["cat"])
    (3, 1)
    """
    return Levenshtein.distance(one, other)


def word_errors(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the edits of words, and the words expected."""
    del line
    answer = split_words(expected)
    return distance(split_words(text), answer), len(answer)


def character_errors(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count the edits of characters, and the characters expected; white space counts, at the ends too."""
    del line
    return distance(text, expected), len(expected)


def word_error_rate(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the error rate of a line's words."""
    return (error_rate(*word_errors(text, expected, line)),)


def character_error_rate(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give the error rate of a line's characters."""
    return (error_rate(*character_errors(text, expected, line)),)


def error_rate(edits: float, length: float) -> float:
    """Divide edits by a length; where nothing was expected, 0 if nothing was given, else 1."""
    return edits / length if length else float(edits > 0)


def errors(totals: Sequence[float], lines: float) -> float:
    """Give the error rate of all lines."""
    del lines
    return error_rate(*totals)


def right(totals: Sequence[float], lines: float) -> float:
    """Give 1 minus the error rate of all lines."""
    del lines
    return 1 - error_rate(*totals)


def corrections(given: str, text: str, expected: str) -> tuple[float, ...]:
    """Count the corrections of an input line that were made, those expected, and the edits of the output.

    What was made is half of what the way from the input by the output to the answer is shorter than it may be:
    GEval's definition, which no library has.
    """
    wanted, done, left = distance(given, expected), distance(given, text), distance(text, expected)
    return min(wanted, max(0, wanted + done - left) // 2), wanted, done
