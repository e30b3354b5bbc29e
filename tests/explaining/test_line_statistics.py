"""Metrics of two numbers a line: differences, won lines and equal systems, against numpy."""

import math
from array import array

import numpy as np
import pytest
import scipy.stats
from resampled import ranked

from geval_py.explaining.comparison import equal_systems
from geval_py.explaining.statistics import Estimator, line_shares, pair_tests, sample_of
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.metrics.registry import METRICS

LINES, SEED = 60, 7

PRECISION, ERRORS = METRICS["TokenAccuracy"], METRICS["WER"]  # what is right, or wrong, of so many words
each_metric = pytest.mark.parametrize(("metric", "sign"), [(PRECISION, -1), (ERRORS, 1)], ids=["higher", "lower"])


def draw(systems=2):
    """Matches and words of systems, the later the better: systems x lines."""
    rng = np.random.default_rng(1)
    words = rng.integers(1, 9, (systems, LINES))
    return rng.binomial(words, np.linspace(0.4, 0.5, systems)[:, np.newaxis]), words


def statistics(matches, words, classes=()):
    return LineStatistics(columns=(array("d", matches), array("d", words)), details=list(classes))


def sample(metric, matches, words):
    return sample_of(metric, list(map(statistics, matches, words)))


@each_metric
def test_a_difference_is_tested_by_pseudo_values(metric, sign):
    """The jackknife's, whose mean difference has Student's distribution where it is not skewed."""
    matches, words = draw()

    def score(kept):
        return np.diff(matches[:, kept].sum(axis=1) / words[:, kept].sum(axis=1))[0]

    every = np.arange(LINES)
    without = np.array([score(every[every != n]) for n in every])
    pseudo = LINES * score(every) - (LINES - 1) * without
    change = pair_tests(Estimator(sample(metric, matches, words), samples=1, seed=SEED), [(1, 0)])[1, 0].change
    assert change.change == pytest.approx(sign * score(every))  # above 0 for the worse, whatever the direction
    assert change.spread.deviation == pytest.approx(pseudo.std(ddof=1) / math.sqrt(LINES))
    p_value = 2 * scipy.stats.t.sf(abs(change.change) / change.spread.deviation, 59)
    assert change.p_value == pytest.approx(p_value, abs=0.01)


@each_metric
def test_lines_are_won_by_their_scores(metric, sign):
    """Not by the first statistic, nor by the second."""
    matches, words = draw()
    quotients = matches / words
    won, lost = (quotients[1] > quotients[0]).mean(), (quotients[1] < quotients[0]).mean()
    won, lost = (won, lost) if sign < 0 else (lost, won)
    assert {won, lost} != {(matches[1] > matches[0]).mean(), (matches[1] < matches[0]).mean()}
    assert line_shares(sample(metric, matches, words), 0) == [(0, 0, 1), (won, lost, pytest.approx(1 - won - lost))]


def test_equal_systems_have_all_statistics_the_same():
    matches, words = np.array([[1, 2], [1, 2], [2, 4], [1, 2]]), np.array([[2, 4], [2, 4], [4, 8], [2, 5]])
    assert equal_systems(map(statistics, matches, words)) == [(0, 1)]
    assert line_shares(sample(PRECISION, matches, words), 0)[2] == (0, 0, 1)


def test_equal_systems_do_not_differ_by_rounding():
    rng = np.random.default_rng(2)
    one, other = rng.random((2, 2, 500))
    systems = [statistics(*one), statistics(*other), statistics(*one)]
    tests = pair_tests(Estimator(sample_of(PRECISION, systems), samples=50, seed=1), [(1, 0), (2, 0)])
    assert (tests[2, 0].change.ends, tests[2, 0].p_value) == ((0, 0), 1)
    assert tests[1, 0].change.ends[0] < tests[1, 0].change.ends[1]


@pytest.mark.parametrize(("matches", "words"), [([math.inf, 1, 2], [2, 4, 2]), ([1, 1, 2], [math.inf, 4, 2])])
def test_infinite_lines_are_counted_and_set_aside(matches, words):
    systems = [statistics(matches, words), statistics([1.0, 3.0, 2.0], [2.0, 4.0, 2.0])]
    compared, *_ = ranked(PRECISION, "ab", systems, baseline=1, samples=50, seed=1)
    by_name = {system.name: system for system in compared}
    assert (by_name["a"].compared, by_name["a"].infinite, by_name["b"].infinite) == (2, 1, 0)
    assert (by_name["a"].finite_score, by_name["b"].finite_score) == (3 / 6, 6 / 8)
    assert by_name["a"].difference == 3 / 6 - 5 / 6  # on the lines that are finite in both
    assert (by_name["a"].won, by_name["a"].lost, by_name["a"].tied) == (0, 2 / 3, 1 / 3)
