"""Intervals of scores with infinite losses are those of resamples, without drawing any where lines are many."""

import math

import numpy as np
import pytest
from resampled import column, interval

from geval_py.explaining.statistics import MANY
from geval_py.scoring.metrics.registry import METRICS


@pytest.mark.parametrize("infinite", [1, 2, 3, 4, 5])
def test_the_ends_are_those_of_resamples(infinite):
    """From four infinite lines, fewer than 2.5 % of resamples have none of them."""
    lines = MANY + 100
    losses = np.random.default_rng(infinite).exponential(2, lines)
    losses[:infinite] = math.inf
    got = interval(METRICS["LogLossHashed"], column(losses), samples=1)
    assert (got.high, got.samples) == (math.inf, None)
    rng = np.random.default_rng(7)
    drawn = rng.poisson(infinite, 4000)  # infinite lines in a resample
    finite = losses[infinite:]
    means = np.where(drawn > 0, math.inf, rng.normal(finite.mean(), finite.std() / math.sqrt(lines), 4000))
    low = np.sort(means)[100]
    assert got.low == (pytest.approx(low, abs=0.01) if infinite < 4 else math.inf)


@pytest.mark.parametrize(("infinite", "low"), [(3, 0.1), (4, math.inf)])
def test_of_few_lines_up_to_three_infinite_ones_are_drawn(infinite, low):
    losses = np.random.default_rng(3).exponential(2, 100)
    losses[:infinite] = math.inf
    got = interval(METRICS["LogLossHashed"], column(losses), samples=1000)
    assert got.high == math.inf
    assert got.samples == (1000 if infinite < 4 else None)
    assert got.low >= low


def test_a_share_has_an_interval_even_if_all_lines_are_right():
    """Wilson's: for 20 of 20, from 20 / (20 + z^2)."""
    got = interval(METRICS["Accuracy"], column(np.zeros(20)))
    assert (got.low, got.high) == (pytest.approx(20 / (20 + 1.959963984540054**2)), 1.0)
