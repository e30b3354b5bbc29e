"""Metrics of classification: a class a line, with GEval's results for divisions by zero.

F_β = (1 + β²) P R / (β² P + R), with precision P and recall R (van Rijsbergen, "Information Retrieval", 1979,
chapter 7). Recall counts β times as much as precision. The F-score of one class takes 1 for a line that was expected
to be of the class and 0 for another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from geval_py.reading.wordprobs import NO_DIGIT, REST
from geval_py.scoring.metrics.base import Formula, LineScore, LineStatistics, Places, Row, joined_columns
from geval_py.scoring.metrics.columns import NUMBER_EXPECTED, malformed, number_of
from geval_py.scoring.metrics.exact import best_guess
from geval_py.text import strip_spaces


def ratio(part: float, whole: float) -> float:
    """Divide; 1 for a divisor of 0, as where nothing was expected and so nothing was missed."""
    return part / whole if whole else 1.0


def harmonic(beta: float, precision: float, recall: float) -> float:
    """Compute F_β of a precision and a recall; 0 where both are 0.

    The brackets are GEval's: with others the last bit often differs, and with it a score that is rounded.

    >>> harmonic(1, 0.6, 1), 2 * 0.6 * 1 / (0.6 + 1)
    (0.75, 0.7499999999999999)
    """
    below = beta * beta * precision + recall
    return (1 + beta * beta) * precision * (recall / below) if below else 0.0


def f_score(beta: float, right: float, expected: float, given: float) -> float:
    """Compute F_β, in [0, 1], from the numbers of right, expected and given items."""
    return harmonic(beta, ratio(right, given), ratio(right, expected))


def line_score(row: Callable[[Any, Any], Row], score: Callable[..., float], output: object, answer: object) -> float:
    """Compute the score of a line alone, for the mean of such scores, from another metric's statistics of it."""
    return score(*row(output, answer))


THRESHOLD = 0.5  # from this probability on, 1 is given
ZERO_OR_ONE = "expected 0 or 1"  # GEval's own bracketed messages, of numbers and of what follows a whole number
NO_PROBABILITY = "expected probability"
TOO_FEW_FIELDS = "two fields expected"
TOO_MANY_FIELDS = "too many fields, only two expected"


def detection(is_given: bool, is_wanted: bool) -> Row:
    """Count right, expected and given items of a line: each 1 or 0."""
    return is_given and is_wanted, is_wanted, is_given


def is_given(text: str, line: int) -> bool:
    """Read the probability of 1, and whether 1 is the guess; raises MalformedLineError."""
    probability = number_of(text, line)
    if not 0 <= probability <= 1:
        raise malformed(NO_PROBABILITY, text, line, "0, 1 or a probability of 1 is expected, from 0 to 1")
    return probability >= THRESHOLD


def is_wanted(text: str, line: int) -> bool:
    """Read 0 or 1; raises MalformedLineError."""
    whole = text[: len(text) - len(text.lstrip("0123456789"))]
    value = whole.lstrip("0")
    if not whole:
        reason = NO_DIGIT
    elif text[len(whole) :][:1] not in ("", "\t"):
        reason = NUMBER_EXPECTED
    elif value not in ("", "1"):
        reason = ZERO_OR_ONE
    else:
        return value == "1"
    raise malformed(reason, text, line, "0 or 1 is expected")


def in_class(
    row: Callable[[Any, Any], Any], class_of: Callable[[Any], float | str], output: object, answer: object
) -> tuple[Any, float | str]:
    """Return another metric's statistics of a line, and the expected class."""
    return row(output, answer), class_of(answer)


def field_shares(fields: Sequence[str], answers: Sequence[str]) -> float:
    """Return a quarter for the right first field and three quarters for the right second.

    GEval has it for the expansion of abbreviations at PolEval 2022.
    """
    return 0.25 * (fields[0] == answers[0]) + 0.75 * (fields[1] == answers[1])


def read_fields(text: str, line: int) -> list[str]:
    """Split a line into two fields; raises MalformedLineError."""
    fields = text.split("\t")
    if len(fields) != 2:
        here = "is 1" if len(fields) == 1 else f"are {len(fields)}"
        hint = f"a line has two fields with a TAB between them, and here {here}"
        raise malformed(TOO_FEW_FIELDS if len(fields) < 2 else TOO_MANY_FIELDS, text, line, hint)
    return fields


def classes(text: str, expected: str) -> tuple[float, tuple[str, str | None]]:
    """Return 1 for a hit or 0 for a miss, and the expected and the guessed class (None for the rest alone)."""
    answer, text = strip_spaces(expected), strip_spaces(text)
    guess = best_guess(text)
    guessed = text if guess is None else None if guess == REST else guess
    return guessed == answer, (answer, guessed)


def clusters(text: str, expected: str) -> tuple[float, tuple[str, str]]:
    """Return 1 if the lines are equal, else 0, and both lines."""
    return text == expected, (expected, text)


def mean_of_classes(formula: Formula, systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that averages a formula's values, of sums of errors, for the classes of some lines."""
    import numpy as np

    (errors,) = joined_columns(systems)
    numbers: dict[float | str, int] = {}
    codes = np.array([numbers.setdefault(name, len(numbers)) for system in systems for name in system.classes])

    def score(lines: Places) -> float:
        _, places, counts = np.unique(codes[lines], return_inverse=True, return_counts=True)
        totals = np.bincount(places, errors[lines]).astype(np.float64)
        return float(formula([totals], counts.astype(np.float64)).mean())

    return score


def macro_f(beta: float, systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that averages the F-scores of the classes expected on some lines."""
    import numpy as np

    expected, guessed = _codes(systems)
    size = int(max(expected.max(), guessed.max())) + 1

    def score(lines: Places) -> float:
        answers, guesses = expected[lines], guessed[lines]
        sides = answers[answers == guesses], answers, guesses
        counts = np.array([np.bincount(side, minlength=size) for side in sides]).T.tolist()
        scores = [f_score(beta, *of_class) for of_class in counts if of_class[1]]
        return math.fsum(scores) / len(scores)

    return score


def mutual_information(systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that computes the normalised mutual information of some lines."""
    import numpy as np

    expected, guessed = _codes(systems)
    both = expected * (guessed.max() + 1) + guessed

    def entropy(codes: Places) -> float:
        shares = np.unique(codes, return_counts=True)[1] / len(codes)
        return -float((shares * np.log(shares)).sum()) + 0.0

    def score(lines: Places) -> float:
        apart = entropy(expected[lines]) + entropy(guessed[lines])
        return 2 * (apart - entropy(both[lines])) / apart if apart else math.nan

    return score


def _codes(systems: Sequence[LineStatistics]) -> tuple[Places, Places]:
    """Return numbers for the expected and the given class of each line; equal classes have equal numbers."""
    import numpy as np

    numbers: dict[Any, int] = {}
    codes = [
        [numbers.setdefault(name, len(numbers)) for name in pair] for system in systems for pair in system.details
    ]
    expected, guessed = np.array(codes, np.intp).T
    return expected, guessed
