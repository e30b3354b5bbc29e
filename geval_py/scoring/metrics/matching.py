"""How the answers of Accuracy and of MultiLabel-F are compared: the names before them, such as ``Smart/Fuzzy/``.

A distance of two texts is from 0, for texts that match, to 1. Each name in MATCHINGS makes a distance of another one,
so names nest in any order: ``Lower/Fuzzy/Accuracy`` is Lower of Fuzzy of the exact distance. The loss of a line of
Accuracy is the distance of the output to the nearest answer. For MultiLabel-F, each expected label is paired with at
most one given label, so that the sum of 1 minus the distances is greatest; that sum takes the place of the number of
right labels.

Fuzzy divides by the length of the expected text, and Smart and ExtractNumber look at it. As in GEval, for labels they
take the given one in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import fsum

from geval_py.reading.preparation import lower_characters
from geval_py.scoring.metrics.assignment import check_pairs, matched_scores
from geval_py.scoring.metrics.base import Row
from geval_py.scoring.metrics.labels import given_labels
from geval_py.scoring.metrics.translation import distance as edit_distance
from geval_py.text import split_words, strip_spaces

MATCHINGS = ("CutLabel", "ExtractNumber", "Fuzzy", "Harden", "LenientHarden", "Lower", "Smart")
MIN_SCORES = {"Harden": 0.8, "LenientHarden": 0.5}  # GEval's: from this score on, they count a match
_NUMBER = re.compile(r"[-+]?\d*\.\d+|\d+", re.ASCII)
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def without_label(text: str) -> str:
    """Return what follows the first equals sign; the whole text if there is none."""
    _, sign, value = text.partition("=")
    return value if sign else text


TRANSFORMS = {"CutLabel": without_label, "Lower": lower_characters}


def distance(names: tuple[str, ...], output: str, expected: str) -> float:
    """Compute the distance that names describe, the outermost first; 0 or 1 without names.

    >>> distance(("Lower", "Fuzzy"), "Łódż", "łódź")
    0.25
    """
    if not names:
        return float(output != expected)
    name, inner = names[0], names[1:]
    if name == "Fuzzy":  # as in GEval, it forgets the names after it
        return fuzzy(output, expected)
    if name in TRANSFORMS:
        return distance(inner, TRANSFORMS[name](output), TRANSFORMS[name](expected))
    if name == "Smart":
        return distance(inner if any(map(str.isalpha, expected)) else (), output, expected)
    if name == "ExtractNumber":
        number = number_in(expected)
        return distance(inner, output, expected) if number is None else float(number_in(output) != number)
    least = MIN_SCORES[name]
    return float(1 - distance(inner, output, expected) < least)


def fuzzy(output: str, expected: str) -> float:
    """Divide the edits of characters by the length of the expected text; at most 1, and 1 if nothing is expected.

    The hint makes RapidFuzz look for few edits first, which is much faster for long texts that are alike: two of a
    megabyte take a second, and up to a minute if they are not.
    """
    length = len(expected)
    if not length:
        return 1.0
    return min(1.0, edit_distance(output, expected, score_cutoff=length, score_hint=length // 64) / length)


def number_in(text: str) -> str | None:
    """Return the first number in a text, as it is written, or else the first Roman number, in digits.

    >>> number_in("-0.5 m"), number_in("item 007"), number_in("Henry VIII"), number_in("I am"), number_in("none")
    ('-0.5', '007', '8', '1', None)
    """
    match = _NUMBER.search(text)
    if match is not None:
        return match[0]
    for word in split_words(text):
        total = right = 0
        for letter in reversed(word) if _ROMAN.keys() >= set(word) else "":
            value = _ROMAN[letter]
            total += value if value >= right else -value
            right = value
        if total > 0:
            return str(total)
    return None


def answer_distance(names: tuple[str, ...], text: str, expected: str) -> float:
    """Compute the distance of an output line to the nearest of the expected answers, which TABs separate."""
    output, answers = strip_spaces(text), strip_spaces(expected).split("\t")
    return min(distance(names, output, answer) for answer in answers)


def matched_counts(names: tuple[str, ...], text: str, expected: str) -> Row:
    """Compute how well the labels of a line match in sum, and count the expected and the given labels."""
    labels, answers = given_labels(text), split_words(expected)
    return greatest_match(partial(distance, names), answers, labels), len(answers), len(labels)


def greatest_match(measure: Callable[[str, str], float], expected: Sequence[str], labels: Sequence[str]) -> float:
    """Compute the greatest sum of 1 minus the distances of pairs; each label is in one pair at most.

    Raises the error for too many pairs.
    """
    import numpy as np

    check_pairs(expected, labels)
    rows, columns = ({label: n for n, label in enumerate(dict.fromkeys(side))} for side in (expected, labels))
    scores = np.fromiter((1 - measure(*pair) for pair in product(rows, columns)), np.float64)
    places = np.ix_([rows[label] for label in expected], [columns[label] for label in labels])
    return fsum(matched_scores(scores.reshape(len(rows), len(columns))[places]))
