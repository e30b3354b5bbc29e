"""Precision, recall and F-score, with what GEval makes of divisions by zero.

F_β = (1 + β²) P R / (β² P + R), with precision P and recall R (van Rijsbergen, "Information Retrieval", 1979,
chapter 7). β is how many times as much recall counts as precision.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from geval_py.reading.preparation import lower_case
from geval_py.reading.wordprobs import REST
from geval_py.scoring.metrics.exact import best_guess, is_hit
from geval_py.scoring.metrics.rows import malformed, number_of, of_answer
from geval_py.text import strip_spaces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from geval_py.scoring.metrics.base import LineStatistics


def ratio(part: float, whole: float) -> float:
    """Divide; 1 where there is nothing to divide by, as where nothing was expected, and nothing missed."""
    return part / whole if whole else 1.0


def harmonic(beta: float, precision: float, recall: float) -> float:
    """Give F_β of a precision and a recall; 0 where both are."""
    below = beta * beta * precision + recall
    return (1 + beta * beta) * precision * recall / below if below else 0.0


def f_score(beta: float, totals: Sequence[float], lines: float = 1) -> float:
    """Give F_β, in [0, 1], of how many are right, how many were expected, and how many were given."""
    del lines
    right, expected, given = totals
    return harmonic(beta, ratio(right, given), ratio(right, expected))


def share(totals: Sequence[float], lines: float) -> float:
    """Give a part of a whole; 1 where the whole is nothing."""
    del lines
    part, every = totals
    return ratio(part, every)


# Metrics of classification: a class a line; for the F-scores of one class, 1 where it was expected and 0 elsewhere.


THRESHOLD = 0.5  # from this probability on, 1 is given
ZERO_OR_ONE = "expected 0 or 1"  # GEval's own bracketed messages
NO_PROBABILITY = "expected probability"
_ZERO_OR_ONE = re.compile(r"0*+(1?)(?:\t.*)?", re.DOTALL)


def detection(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Count what is right, expected, and given: each 1 or 0."""
    given, wanted = is_given(text, line), of_answer(is_wanted, expected, line)
    return given and wanted, wanted, given


def is_given(text: str, line: int) -> bool:
    """Read the probability of 1: whether that is the guess; raises MalformedLineError."""
    probability = number_of(text, line)
    if not 0 <= probability <= 1:
        raise malformed(NO_PROBABILITY, text, line, "0, 1 or a probability of 1 is expected, from 0 to 1")
    return probability >= THRESHOLD


def is_wanted(text: str, line: int) -> bool:
    """Read 0 or 1; raises MalformedLineError."""
    match = _ZERO_OR_ONE.fullmatch(text)
    if match is None or not text or text[0] == "\t":
        raise malformed(ZERO_OR_ONE, text, line, "0 or 1 is expected")
    return match[1] == "1"


def lower_miss(text: str, expected: str, line: int) -> tuple[float, ...]:
    """Give 0 where the line is one of those expected, each behind a TAB, in whatever case; else 1."""
    del line
    answers = strip_spaces(expected).split("\t")
    return (lower_case(strip_spaces(text)) not in map(lower_case, answers),)


def miss_in_class(text: str, expected: str, line: int) -> tuple[tuple[float, ...], str]:
    """Give 0 for a hit and 1 for a miss, and the class expected."""
    del line
    return (not is_hit(text, expected),), strip_spaces(expected)


def classes(text: str, expected: str, line: int) -> tuple[tuple[float, ...], tuple[str, str | None]]:
    """Give 1 for a hit and 0 for a miss, and the classes, expected and guessed: None for no guess but the rest."""
    del line
    answer, text = strip_spaces(expected), strip_spaces(text)
    guess = best_guess(text)
    found = text if guess is None else None if guess == REST else guess
    return (found == answer,), (answer, found)


def clusters(text: str, expected: str, line: int) -> tuple[tuple[float, ...], tuple[str, str]]:
    """Give 1 where the lines are equal, else 0, and both as they are."""
    del line
    return (text == expected,), (expected, text)


def macro_f(beta: float, systems: Sequence[LineStatistics]) -> Callable[[NDArray[np.intp]], float]:
    """Give what averages the F-scores of the classes that are expected on some lines."""
    import numpy as np

    expected, given = _codes(systems)
    size = int(max(expected.max(), given.max())) + 1

    def score(lines: NDArray[np.intp]) -> float:
        wanted, found = expected[lines], given[lines]
        counts = [np.bincount(of, minlength=size) for of in (wanted[wanted == found], wanted, found)]
        scores = [
            f_score(beta, of_class) for of_class in zip(*(of.tolist() for of in counts), strict=True) if of_class[1]
        ]
        return math.fsum(scores) / len(scores)

    return score


def mutual_information(systems: Sequence[LineStatistics]) -> Callable[[NDArray[np.intp]], float]:
    """Give what computes the normalised mutual information of some lines."""
    import numpy as np

    expected, given = _codes(systems)
    both = expected * (given.max() + 1) + given

    def entropy(codes: NDArray[np.intp]) -> float:
        shares = np.unique(codes, return_counts=True)[1] / len(codes)
        return -float((shares * np.log(shares)).sum()) + 0.0

    def score(lines: NDArray[np.intp]) -> float:
        apart = entropy(expected[lines]) + entropy(given[lines])
        return 2 * (apart - entropy(both[lines])) / apart if apart else math.nan

    return score


def _codes(systems: Sequence[LineStatistics]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Give a number for the class of each line, expected and given; equal ones have equal numbers."""
    import numpy as np

    numbers: dict[Any, int] = {}
    codes = [[numbers.setdefault(one, len(numbers)) for one in pair] for of in systems for pair in of.details]
    expected, given = np.array(codes, np.intp).T
    return expected, given
