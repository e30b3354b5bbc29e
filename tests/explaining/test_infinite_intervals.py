"""Intervals of scores with infinite losses, and of shares that are 0 or 1."""

import math

import numpy as np
import pytest
from resampled import column, interval

from geval_py.scoring.metrics.registry import METRICS


@pytest.mark.parametrize("infinite", [1, 4])
def test_one_end_is_that_of_the_finite_lines(infinite):
    """The other end is the worst score, of a loss or of a likelihood."""
    losses = np.random.default_rng(3).exponential(2, 100)
    losses[:infinite] = math.inf
    for name, worst in (("LogLossHashed", "high"), ("LikelihoodHashed", "low")):
        got, rest = (interval(METRICS[name], column(values)) for values in (losses, losses[infinite:]))
        best = {"high": "low", "low": "high"}[worst]
        assert getattr(got, worst) == METRICS[name].measure.worst
        assert getattr(got, best) == getattr(rest, best)


def test_without_a_finite_line_both_ends_are_the_worst_score():
    got = interval(METRICS["LogLossHashed"], column([math.inf] * 5))
    assert (got.low, got.high) == (math.inf, math.inf)


def test_a_share_has_an_interval_even_if_all_lines_are_right():
    """Wilson's: for 20 of 20, from 20 / (20 + z^2)."""
    got = interval(METRICS["Accuracy"], column(np.zeros(20)))
    assert (got.low, got.high) == (pytest.approx(20 / (20 + 1.959963984540054**2)), 1.0)
