"""The interval of a mean of few lines, whose figures are skewed: Hall's transformation."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from geval_py.explaining.significance import expanded_tail
from geval_py.explaining.statistics import bootstrap_weights, spread_of_lines

TRIALS = 5000


def interval_of_mean(values):
    return spread_of_lines(values).ends(values.mean())


KINDS = {
    "lognormal": (lambda rng, size: rng.lognormal(0, 1, size), math.exp(0.5)),
    "exponential": (lambda rng, size: rng.exponential(1, size), 1.0),
    "Pareto 2.5": (lambda rng, size: rng.pareto(2.5, size), 1 / 1.5),
    "normal": (lambda rng, size: rng.normal(0, 1, size), 0.0),
    # Of a fifth of the words an output knows nothing; the others have a probability by chance.
    "words": (
        lambda rng, size: np.where(rng.random(size) < 0.2, 7.0, rng.exponential(1.5, size)),
        0.2 * 7 + 0.8 * 1.5,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("lines", [10, 20, 40, 100, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_the_coverage_of_intervals_by_line(kind, lines):
    """At least 93 % from 40 lines on, 90 % with fewer."""
    draw, mean = KINDS[kind]
    rng = np.random.default_rng(lines)
    weights = np.concatenate(list(bootstrap_weights(lines, 1000, 1))) / lines
    held, percentiles = [], []
    for _ in range(TRIALS):
        values = draw(rng, lines)
        low, high = interval_of_mean(values)
        held.append(low <= mean <= high)
        low, high = np.quantile(weights @ values, [expanded_tail(lines), 1 - expanded_tail(lines)])
        percentiles.append(low <= mean <= high)
    print(f"\n{kind}, {lines} lines: {np.mean(held):.1%}; percentiles of resamples {np.mean(percentiles):.1%}")
    least = 0.93 if lines >= 40 else 0.9
    assert np.mean(held) >= least - 3.1 * math.sqrt(least * (1 - least) / TRIALS)


@given(st.integers(0, 1000), st.integers(3, 60))
def test_it_solves_halls_equation(seed, lines):
    """The ends are where the transformed distance is Student's quantile, found by a search."""
    values = np.random.default_rng(seed).lognormal(0, 1, lines)
    skewness = scipy.stats.skew(values, bias=False)

    def transformed(end):
        u = (values.mean() - end) / values.std(ddof=1)
        return u + skewness * u**2 / 3 + skewness**2 * u**3 / 27 + skewness / (6 * lines)

    variance = scipy.stats.kurtosis(values, fisher=False) - (lines - 3) / (lines - 1)
    degrees = 2 * lines / (variance + max(0, variance - 2) / 2)
    t = scipy.stats.t.ppf(0.975, min(lines - 1, degrees)) / math.sqrt(lines)
    low, high = interval_of_mean(values)
    for end, quantile in ((low, t), (high, -t)):
        found = scipy.optimize.brentq(
            lambda end, quantile=quantile: transformed(end) - quantile, -1e4, 1e4, xtol=1e-12
        )
        assert end == pytest.approx(found, rel=1e-6, abs=1e-6)


def test_without_skewness_it_is_students():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    expected = scipy.stats.t.interval(0.95, 4, values.mean(), scipy.stats.sem(values))
    assert interval_of_mean(values) == pytest.approx(expected)
    assert interval_of_mean(np.array([1.0, 3.0])) == pytest.approx((2 - 12.7062047, 2 + 12.7062047))


@pytest.mark.parametrize("values", [[3.0, 3.0], [0.1] * 7, [1e-300, 2e-300, 5e-300], [1e150, 0.0, 0.0, 0.0]])
def test_extreme_values(values):
    low, high = interval_of_mean(np.array(values))
    assert math.isfinite(low)
    assert low <= np.mean(values) * (1 + 1e-15)
    assert math.isfinite(high)
    assert high >= np.mean(values) * (1 - 1e-15)
