"""Metrics of classification: a class a line, with GEval's results for divisions by zero.

F_β = (1 + β²) P R / (β² P + R), with precision P and recall R (van Rijsbergen, "Information Retrieval", 1979,
chapter 7). Recall counts β times as much as precision. The F-score of one class takes 1 for a line that was expected
to be of the class and 0 for another. The reasons of errors are GEval's own bracketed messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from geval_py.reading.wordprobs import NO_DIGIT, REST
from geval_py.scoring.metrics.base import Formula, LineScore, LineStatistics, Places, Row, codes_of, joined_columns
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


def line_score(row: Callable[[Any, Any], Row], formula: Formula, output: object, answer: object) -> float:
    """Compute the score of a line alone, for the mean of such scores, from another metric's statistics of it."""
    score: float = formula(row(output, answer), 1)
    return score


CountsByLabel: TypeAlias = Mapping[str | None, tuple[int, int, int]]  # right, expected and given items of a line

THRESHOLD = 0.5  # from this probability on, 1 is given


def detection(is_given: bool, is_wanted: bool) -> Row:
    """Count right, expected and given items of a line: each 1 or 0."""
    return is_given and is_wanted, is_wanted, is_given


def is_given(text: str, line: int) -> bool:
    """Read the probability of 1, and whether 1 is the guess; raises MalformedLineError."""
    probability = number_of(text, line)
    if not 0 <= probability <= 1:
        raise malformed("expected probability", text, line, "0, 1 or a probability of 1 is expected, from 0 to 1")
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
        reason = "expected 0 or 1"
    else:
        return value == "1"
    raise malformed(reason, text, line, "0 or 1 is expected")


def in_class(row: Callable[[Any, Any], Any], output: object, answer: float | str) -> tuple[Any, float | str]:
    """Return another metric's statistics of a line, and the expected class: a number, or a text without its ends."""
    return row(output, answer), strip_spaces(answer) if isinstance(answer, str) else answer


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
        reason = "two fields expected" if len(fields) < 2 else "too many fields, only two expected"
        raise malformed(reason, text, line, hint)
    return fields


def classes(text: str, expected: str) -> tuple[float, CountsByLabel]:
    """Return 1 for a hit or 0 for a miss, and the counts of the expected and the guessed class."""
    answer, text = strip_spaces(expected), strip_spaces(text)
    guess = best_guess(text)
    guessed = text if guess is None else None if guess == REST else guess
    is_hit = guessed == answer
    return is_hit, {guessed: (0, 0, 1), answer: (is_hit, 1, is_hit)}


def clusters(text: str, expected: str) -> tuple[float, tuple[str, str]]:
    """Return 1 if the lines are equal, else 0, and both lines."""
    return text == expected, (expected, text)


def mean_of_classes(formula: Formula, systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that averages a formula's values for the classes of some lines."""
    import numpy as np

    columns = joined_columns(systems)
    codes = codes_of(name for system in systems for name in system.details)

    def score(lines: Places) -> float:
        _, places, counts = np.unique(codes[lines], return_inverse=True, return_counts=True)
        totals = [np.bincount(places, column[lines]) for column in columns]
        return float(formula(totals, counts.astype(np.float64)).mean())

    return score


def score_of_labels(formula: Callable[[list[list[int]]], float], systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that computes a formula of the counts on some lines of each label that is expected there."""
    import numpy as np

    codes: dict[str | None, int] = {}
    lines_of_systems = [by_label for system in systems for by_label in system.details]
    rows = [
        (line, codes.setdefault(label, len(codes)), *counts)
        for line, by_label in enumerate(lines_of_systems)
        for label, counts in by_label.items()
    ]
    owners, label_codes, *columns = np.array(rows, np.intp).reshape(-1, 5).T

    def score(lines: Places) -> float:
        times = np.bincount(lines, minlength=len(lines_of_systems))[owners]
        sums = [np.bincount(label_codes, times * column, minlength=len(codes)) for column in columns]
        return formula([counts for counts in np.array(sums).T.tolist() if counts[1]])

    return score


def macro_f(beta: float, counts_of_classes: Sequence[Sequence[int]]) -> float:
    """Average the F-scores of classes, at least one."""
    return math.fsum(f_score(beta, *counts) for counts in counts_of_classes) / len(counts_of_classes)


def weighted_f(counts_of_labels: Sequence[Sequence[int]]) -> float:
    """Average the F1 of labels by the numbers expected; 1 without any."""
    weighted = [counts[1] * f_score(1, *counts) for counts in counts_of_labels]
    return ratio(math.fsum(weighted), sum(expected for _, expected, _ in counts_of_labels))


def mutual_information(systems: Sequence[LineStatistics]) -> LineScore:
    """Return a function that computes the normalised mutual information of some lines."""
    import numpy as np

    codes = codes_of(name for system in systems for pair in system.details for name in pair)
    expected, guessed = codes.reshape(-1, 2).T
    both = expected * (guessed.max() + 1) + guessed

    def entropy(codes: Places) -> float:
        shares = np.unique(codes, return_counts=True)[1] / len(codes)
        return -float((shares * np.log(shares)).sum()) + 0.0

    def score(lines: Places) -> float:
        apart = entropy(expected[lines]) + entropy(guessed[lines])
        return 2 * (apart - entropy(both[lines])) / apart if apart else math.nan

    return score
