"""How confident an output line is of its guesses, by GEval's measure (its module Confidence)."""

from __future__ import annotations

from math import prod

from geval_py.reading.wordprobs import NUMBER
from geval_py.text import split_words


def line_confidence(text: str) -> float:
    """Give the geometric mean of the probabilities in a line of ``label:p``, in [0, 1]; 1 of an empty line.

    A number counts if it has a point and is in [0, 1]; another word, and the rest, counts as 1. The numbers are taken
    as they are written, and multiplied from left to right: very many of them may come to 0.

    >>> line_confidence("a:0.5 b:0.125"), line_confidence("a:1 the:-0.5 :0.1")
    (0.25, 1.0)
    """
    words = split_words(text)
    return prod(map(_probability, words)) ** (1 / len(words)) if words else 1.0


def _probability(word: str) -> float:
    label, _, number = word.rpartition(":")
    if not label or "." not in number or not NUMBER.fullmatch(number):
        return 1.0
    value = float(number)
    return value if 0 <= value <= 1 else 1.0
