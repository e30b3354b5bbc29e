"""Precision, recall and F-score, with what GEval makes of divisions by zero.

F_β = (1 + β²) P R / (β² P + R), with precision P and recall R (van Rijsbergen, "Information Retrieval", 1979,
chapter 7). β is how many times as much recall counts as precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
