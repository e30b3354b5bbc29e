"""Paired tests, Holm's correction and groups: exact on small cases."""

from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from resampled import column, paired, ranked

from geval_py.explaining.comparison import equal_systems
from geval_py.explaining.significance import undistinguished_groups
from geval_py.explaining.statistics import Estimator, line_shares, pair_tests, sample_of
from geval_py.scoring.metrics.registry import METRICS

PROPERTY = settings(deadline=None, derandomize=True)
LOG_LOSS = METRICS["LogLossHashed"]
EIGHT_LINES = {
    "no difference": [0.1, -0.1, 0.2, -0.3, 0.3, -0.2, 0.05, -0.06],
    "a small one": [0.1, -0.1, 0.2, -0.3, 0.3, 0.2, 0.05, 0.06],
    "a great one": [1.0, 1.1, 0.9, 1.2, 1.0, 0.8, 1.3, 0.95], "ties": [1.0, 0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 1.0],
}  # fmt: skip


def sample(*columns, metric=LOG_LOSS, classes=()):
    return sample_of(metric, [column(losses, classes) for losses in columns])


def systems(differences):
    base = 2 + np.sin(np.arange(len(differences)))
    return base, base + differences


def test_students_sleep():
    """Student (1908), of ten patients with two lines each: t is 4.0621 with 9 degrees of freedom, p 0.002833."""
    first = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
    second = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    change = paired(first.repeat(2) + 10, second.repeat(2) + 10, documents=np.arange(10).repeat(2)).change
    assert (change.spread.degrees, change.p_value) == pytest.approx((9, 0.00283289), rel=1e-6)
    assert change.ends == pytest.approx((0.7001142, 2.4598858), rel=1e-6)


@pytest.mark.parametrize("lines", [17, 400])
def test_without_skewness_it_is_students(lines):
    differences = np.concatenate([np.arange(lines // 2), -np.arange(lines // 2), [0] * (lines % 2)]) / lines + 0.1
    change = paired(np.full(lines, 5.0), 5 + differences).change
    assert change.p_value == pytest.approx(scipy.stats.ttest_1samp(differences, 0).pvalue)
    expected = scipy.stats.ttest_1samp(differences, 0.2, alternative="less").pvalue
    assert change.p_of_more(0.2) == pytest.approx(expected)


def test_p_and_the_interval_of_a_ratio_agree():
    """Of perplexities by few documents, whose difference has another interval than their ratio."""
    rng, decided = np.random.default_rng(6), 0
    for _ in range(100):
        labels = np.repeat(np.arange(6), 10)
        base = rng.exponential(2, 60) + 1
        losses = [base, base + rng.normal(0.3, 0.3, 6)[labels] + rng.normal(0, 0.3, 60)]
        both = list(map(column, losses))
        systems, _ = ranked(METRICS["PerplexityHashed"], "ab", both, baseline=0, samples=1, seed=1, documents=labels)
        (system,) = (one for one in systems if one.name == "b")
        low, high = system.effect_interval.ends
        assert (system.p_value < 0.05) == (not low <= 0 <= high)
        assert system.effect == pytest.approx(100 * (system.difference / (system.score - system.difference)))
        decided += system.p_value < 0.05
    assert 10 < decided < 90


@settings(PROPERTY, max_examples=examples(100, most=8))
@given(st.lists(st.floats(0, 50), min_size=1, max_size=30), st.integers(0, 2**32), st.sampled_from([1, 10, 99]))
def test_a_system_against_itself(losses, seed, samples):
    """p = 1 exactly, the difference is 0, and so are both ends of its interval."""
    for baseline in (0, 2):
        same, metric = [column(losses)] * 3, METRICS["PerplexityHashed"]
        systems, groups = ranked(metric, ["a", "b", "c"], same, baseline=baseline, samples=samples, seed=seed)
        assert groups == [("a", "b", "c")]
        for system in systems[: baseline or None]:
            if system.name != "abc"[baseline]:
                assert (system.p_value, system.difference, system.effect) == (1, 0, 0)
                assert (system.won, system.lost, system.tied) == (0, 0, 1)


def test_differences_by_rounding_and_of_one_line_are_none():
    losses = np.random.default_rng(1).exponential(5, 1000)
    assert paired(losses, losses * (1 + 4e-16)).p_value == paired([1.0], [2.0]).p_value == 1
    assert 0 < paired(losses, losses + 0.5).p_value < 1e-20


@pytest.mark.parametrize("name", ["LikelihoodHashed", "PerplexityHashed", "CrossEntropyHashed"])
def test_what_rises_with_the_mean_loss_is_tested_by_it(name):
    both = systems(EIGHT_LINES["a small one"])
    assert paired(*both, metric=METRICS[name]).p_value == paired(*both).p_value


def test_shares_count_infinite_losses():
    """They lose to finite ones and tie with each other; what is no number, or too much to sum, is infinite."""
    inf, nan = float("inf"), float("nan")
    tested = sample([1.0, inf, nan, 1e300, 2.0, inf, 1.0, 1.0], [inf, 1.0, inf, nan, 1.0, 0.0, 1.0, 2.0])
    assert line_shares(tested, 0) == [(0, 0, 1), (3 / 8, 2 / 8, 3 / 8)]
    assert line_shares(tested, 1) == [(2 / 8, 3 / 8, 3 / 8), (0, 0, 1)]


def test_equal_systems():
    inf = float("inf")
    columns = [[1, inf, 0.0], [1, inf, 1], [1, inf, -0.0], [2, 2, 2], [1, inf, 1], [1, inf, 1 + 1e-15]]
    assert equal_systems(map(column, columns)) == [(0, 2), (1, 4)]
    assert equal_systems(map(column, columns[3:])) == []


@PROPERTY
@given(st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.sampled_from(list(combinations(range(n), 2)) or [(0, 0)])))
))  # fmt: skip
def test_groups_share_a_letter_unless_distinct(case):
    """Two systems share a group if and only if they are not distinct; no group can grow; every system is in one."""
    count, distinct = case
    distinct.discard((0, 0))
    groups = undistinguished_groups(count, frozenset(distinct))
    for pair in combinations(range(count), 2):
        assert any(set(pair) <= set(group) for group in groups) == (pair not in distinct)
    assert {system for group in groups for system in group} == set(range(count))
    for group in groups:
        for new in set(range(count)) - set(group):
            assert any(tuple(sorted((new, old))) in distinct for old in group)
    assert groups == sorted(set(groups))


def test_a_huge_loss_of_one_system_is_no_matter_to_the_others():
    """A masked word may cost 1e38 and more: the other systems' sums must not be rounded to that scale."""
    rng = np.random.default_rng(5)
    losses = [rng.gamma(2, 0.3, 100), rng.gamma(2, 0.7, 100), rng.gamma(2, 0.7, 100)]
    losses[0][7] = 1e38
    with_it = pair_tests(Estimator(sample(*losses), samples=200, seed=1), [(2, 1)])[2, 1]
    alone = paired(*losses[1:])
    assert (with_it.p_value, *with_it.change.ends) == pytest.approx((alone.p_value, *alone.change.ends))


def test_numbers_of_infinite_lines_are_compared():
    """By the exact test of the lines that are infinite in just one; with the other test, p is twice the smaller one."""
    rng = np.random.default_rng(7)
    first = 2 + rng.exponential(1, 100)
    second = first + rng.normal(0, 0.5, 100)
    second -= (second - first)[8:].mean() - 1e-3  # hardly worse on the lines that are finite in both
    second[:8] = np.inf
    test = paired(first, second)
    assert test.p_infinite == pytest.approx(scipy.stats.binomtest(0, 8).pvalue)
    assert (test.lines, test.change.p_value > 0.9) == (92, True)
    assert test.p_value == 2 * test.p_infinite
    second[8:] -= 1
    better = paired(first, second)  # on the lines that are left, by failing on hard ones
    assert (better.change, better.p_value) == (None, test.p_value)
    second[:8], first[0] = 1.0, np.inf
    assert paired(first, second).p_infinite == 1.0
    assert paired(first, second).change.p_value < 1e-6
    documents = np.arange(100) // 10
    second[:20] = np.inf
    assert paired(first, second, documents=documents).p_infinite == pytest.approx(0.5)  # of two documents
