"""Paired tests, Holm's correction and groups: exact on small cases."""

import math
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from resampled import column, ranked

from geval_py.explaining.comparison import equal_systems
from geval_py.explaining.significance import holm, undistinguished_groups
from geval_py.explaining.statistics import (
    against_baseline,
    bootstrap_weights,
    line_shares,
    pair_p_values,
    sample_of,
)
from geval_py.scoring.metrics.registry import METRICS

PROPERTY = settings(deadline=None, derandomize=True)
RNG = np.random.default_rng(1)
LOG_LOSS, MACRO = METRICS["LogLossHashed"], METRICS["MacroAvg/Likelihood"]
CLASSES = [0, 1, 0, 0, 1, 1, 0, 1]
EIGHT_LINES = {
    "no difference": [0.1, -0.1, 0.2, -0.3, 0.3, -0.2, 0.05, -0.06],
    "a small one": [0.1, -0.1, 0.2, -0.3, 0.3, 0.2, 0.05, 0.06],
    "a great one": [1.0, 1.1, 0.9, 1.2, 1.0, 0.8, 1.3, 0.95],
    "ties": [1.0, 0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 1.0],
}


def sample(*columns, metric=LOG_LOSS, classes=()):
    return sample_of(metric, [column(losses, classes) for losses in columns])


def p_randomisation(tested, samples, seed):
    return pair_p_values(tested, [(0, 1)], samples=samples, seed=seed)[0, 1]


def p_bootstrap(tested, samples, seed):
    return against_baseline(tested, 0, samples=samples, seed=seed)[1].p_value


def systems(differences):
    base = 2 + np.sin(np.arange(len(differences)))
    return base, base + differences


def score(metric, losses, classes):
    return metric.value(column(losses, classes))


def monte_carlo(p_value, samples):
    """Four standard errors of a share."""
    return pytest.approx(p_value, abs=4 * np.sqrt(max(p_value, 1 / samples) * (1 - p_value) / samples) + 2 / samples)


# Approximate randomisation


@pytest.mark.parametrize(("metric", "classes"), [(LOG_LOSS, ()), (MACRO, CLASSES)], ids=["mean", "classes"])
@pytest.mark.parametrize("differences", EIGHT_LINES.values(), ids=EIGHT_LINES)
def test_approximate_randomisation_approaches_the_exact_test(differences, metric, classes):
    """Of all 2^8 exchanges, the share with a difference as far from 0."""
    first, second = systems(differences)
    observed = score(metric, first, classes) - score(metric, second, classes)
    far = 0
    for swaps in product([False, True], repeat=8):
        one, two = np.where(swaps, second, first), np.where(swaps, first, second)
        far += abs(score(metric, one, classes) - score(metric, two, classes)) >= abs(observed) - 1e-12
    p_value = p_randomisation(sample(first, second, metric=metric, classes=classes), 20_000, 1)
    assert p_value == monte_carlo(far / 2**8, 20_000)


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_exchanges_are_shared_by_all_pairs(seed):
    losses, classes = np.random.default_rng(3).exponential(2, (4, 50)), ["a", "b"] * 25
    of = partial(sample, metric=MACRO, classes=classes)
    p_values = pair_p_values(of(*losses), combinations(range(4), 2), samples=500, seed=seed)
    assert list(p_values) == list(combinations(range(4), 2))
    for one, other in p_values:
        assert p_randomisation(of(losses[one], losses[other]), 500, seed) == p_values[one, other]


def test_of_mean_losses_no_seed_and_no_number_of_samples_decides():
    losses = np.random.default_rng(3).exponential(2, (2, 50))
    assert p_randomisation(sample(*losses), 1, 1) == p_randomisation(sample(*losses), 500, 2)


# The paired bootstrap


@pytest.mark.parametrize("differences", [[0.1, -0.2, 0.3, 0.05, -0.12], [0.5, 0.4, 0.6, 0.1, -0.3], [1, 0, 0, 0, -1]])
def test_the_bootstrap_approaches_the_exact_one(differences):
    """Of all 5^5 resamples, the share whose difference is as far from the observed one as that is from 0.

    Resamples of five lines vary too little, and do not know how uncertain their spread is.
    """
    first, second = systems(differences)
    means = [np.mean([differences[n] for n in drawn]) for drawn in product(range(5), repeat=5)]
    observed = np.mean(differences)
    expansion = math.sqrt(5 / 4) * scipy.stats.t.ppf(0.975, 4) / scipy.stats.norm.ppf(0.975)
    exact = np.mean(np.abs(np.array(means) - observed) * expansion >= abs(observed) - 1e-12)
    assert p_bootstrap(sample(first, second), 20_000, 2) == monte_carlo(exact, 20_000)


def resampled_scores(tested, samples, seed):
    return tested.scores(tested.totals(bootstrap_weights(tested.units, samples, seed)))


def test_the_interval_of_the_difference_is_that_of_the_scores():
    """Not of the losses: of perplexities, say."""
    tested = sample(*systems(EIGHT_LINES["a great one"]), metric=METRICS["PerplexityHashed"])
    scores = resampled_scores(tested, 2000, 2)
    none, interval = (test.interval for test in against_baseline(tested, 0, samples=2000, seed=2))
    assert none.ends == (None, None)
    differences = np.sort(scores[:, 1] - scores[:, 0])
    cut = math.floor(2000 * scipy.stats.norm.cdf(-math.sqrt(8 / 7) * scipy.stats.t.ppf(0.975, 7)))
    assert (interval.low, interval.high) == (differences[cut], differences[-1 - cut])
    assert (interval.samples, interval.seed) == (2000, 2)


def test_there_is_no_interval_of_the_difference_of_infinite_scores():
    tested = sample([800.0] * 3, [900.0] * 3, metric=METRICS["PerplexityHashed"])
    assert [test.interval for test in against_baseline(tested, 0, samples=9, seed=2)] == [None, None]


# Both


@PROPERTY
@given(st.lists(st.floats(0, 50), min_size=1, max_size=30), st.integers(0, 2**32), st.sampled_from([1, 10, 99]))
def test_a_system_against_itself(losses, seed, samples):
    """p = 1 exactly, the difference is 0, and so are both ends of its interval."""
    for baseline in (0, 2):
        same, metric = [column(losses)] * 3, METRICS["PerplexityHashed"]
        systems, groups, _ = ranked(metric, ["a", "b", "c"], same, baseline=baseline, samples=samples, seed=seed)
        assert groups == [("a", "b", "c")]
        for system in systems[: baseline or None]:
            if system.name != "abc"[baseline]:
                assert (system.p_bootstrap, system.p_randomisation) == (1, 1)
                assert (system.difference, system.difference_interval.ends) == (0, (None, None))
                assert (system.won, system.lost, system.tied) == (0, 0, 1)


@PROPERTY
@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50)), min_size=5, max_size=30), st.integers(0, 2**32))
def test_p_values(pairs, seed):
    """The bootstrap counts samples, from 1/(N+1) to 1; both are the same the other way round."""
    first, second = np.array(pairs).T
    tested, turned = sample(first, second), sample(second, first)
    p_value = p_bootstrap(tested, 50, seed)
    assert p_value * 51 == pytest.approx(round(p_value * 51))
    assert 1 / 51 <= p_value <= 1
    assert against_baseline(tested, 0, samples=50, seed=seed)[0].p_value == 1
    assert (p_value, p_randomisation(tested, 50, seed)) == (
        p_bootstrap(turned, 50, seed),
        p_randomisation(turned, 50, seed),
    )


@pytest.mark.parametrize("name", ["LikelihoodHashed", "PerplexityHashed", "CrossEntropyHashed"])
def test_what_rises_with_the_mean_loss_is_tested_by_it(name):
    both = systems(EIGHT_LINES["a small one"])
    one, other = (sample(*both, metric=metric) for metric in (METRICS[name], LOG_LOSS))
    assert p_bootstrap(one, 200, 2) == p_bootstrap(other, 200, 2)
    assert p_randomisation(one, 200, 2) == p_randomisation(other, 200, 2)


@pytest.mark.parametrize(
    ("columns", "bootstrap", "randomisation", "shares"),
    [
        (RNG.exponential(5, 1000) * np.array([[1], [1 + 4e-16]]), 1, 1, (0, 0, 1)),
        (systems(np.full(100, 0.5)), 0.001, pytest.approx(2**-99, rel=0.1), (0, 1, 0)),
        (([1.0], [2.0]), 1, 1, (0, 1, 0)),
    ],
    ids=["rounding", "sure", "a single line"],
)
def test_extremes(columns, bootstrap, randomisation, shares):
    tested = sample(*columns)
    assert p_bootstrap(tested, 999, 1) == bootstrap
    assert p_randomisation(tested, 999, 1) == randomisation
    assert line_shares(tested, 0)[1] == shares


# Lines


def test_shares_count_infinite_losses():
    """They lose to finite ones and tie with each other; what is no number, or too much to sum, is infinite."""
    inf, nan = float("inf"), float("nan")
    tested = sample([1.0, inf, nan, 1e300, 2.0, inf, 1.0, 1.0], [inf, 1.0, inf, nan, 1.0, 0.0, 1.0, 2.0])
    assert line_shares(tested, 0) == [(0, 0, 1), (3 / 8, 2 / 8, 3 / 8)]
    assert line_shares(tested, 1) == [(2 / 8, 3 / 8, 3 / 8), (0, 0, 1)]


@PROPERTY
@given(st.lists(st.tuples(st.floats(0), st.floats(0)), min_size=1, max_size=30))
def test_shares_sum_to_one(pairs):
    """Every line is won, lost or tied, and what one wins the other loses."""
    tested = sample(*np.array(pairs).T)
    (_, (won, lost, tied)), ((lost_too, won_too, tied_too), _) = line_shares(tested, 0), line_shares(tested, 1)
    assert won + lost + tied == pytest.approx(1)
    assert (won, lost, tied) == (won_too, lost_too, tied_too)


def test_equal_systems():
    inf = float("inf")
    columns = [[1, inf, 0.0], [1, inf, 1], [1, inf, -0.0], [2, 2, 2], [1, inf, 1], [1, inf, 1 + 1e-15]]
    assert equal_systems(map(column, columns)) == [(0, 2), (1, 4)]
    assert equal_systems(map(column, columns[3:])) == []


# Groups


@pytest.mark.parametrize("pairs", [1, 3, 6, 45, 1225])
def test_the_samples_that_a_rejection_takes(pairs):
    def least(samples):
        return holm([1 / (samples + 1)] * pairs)[0]

    assert least(20 * pairs) < 0.05
    assert least(20 * pairs - 1) >= 0.05


@pytest.mark.parametrize(
    ("count", "distinct", "groups"),
    [
        (1, [], [(0,)]), (2, [], [(0, 1)]), (2, [(0, 1)], [(0,), (1,)]), (3, [(0, 2)], [(0, 1), (1, 2)]),
        (3, [(0, 1), (0, 2)], [(0,), (1, 2)]), (4, [(0, 2), (0, 3), (1, 3)], [(0, 1), (1, 2), (2, 3)]),
        (4, [(0, 1)], [(0, 2, 3), (1, 2, 3)]),
    ],
)  # fmt: skip
def test_groups(count, distinct, groups):
    assert undistinguished_groups(count, frozenset(distinct)) == groups


@PROPERTY
@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.sampled_from(list(combinations(range(n), 2)) or [(0, 0)])))
    )
)
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


def test_many_systems_have_no_more_groups_than_pairs():
    """Of the greatest groups, of which there may be exponentially many, only those that are needed are made."""
    rng = np.random.default_rng(2)
    distinct = frozenset(pair for pair in combinations(range(50), 2) if rng.random() < 0.5)
    assert 50 < len(undistinguished_groups(50, distinct)) <= 50 * 51 / 2 - len(distinct)


@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_a_huge_loss_of_one_system_is_no_matter_to_the_others(baseline):
    """A masked word may cost 1e38 and more: the other systems' sums must not be rounded to that scale."""
    rng = np.random.default_rng(5)
    losses = [rng.gamma(2, 0.3, 100), rng.gamma(2, 0.7, 100), rng.gamma(2, 0.7, 100)]
    losses[0][7] = 1e38
    with_it = pair_p_values(sample(*losses), [(1, 2)], samples=200, seed=1)[1, 2]
    assert with_it == pytest.approx(p_randomisation(sample(*losses[1:]), 200, 1))
    if baseline:
        bootstrap = against_baseline(sample(*losses), baseline, samples=200, seed=1)[1:]
        without = against_baseline(sample(*losses[1:]), baseline - 1, samples=200, seed=1)
        assert [test.p_value for test in bootstrap] == pytest.approx([test.p_value for test in without])


# Many lines


@pytest.fixture(scope="module")
def many():
    """Two systems on 30,000 lines, of which the second is a little worse, and one line of which is no exception."""
    rng = np.random.default_rng(8)
    one = rng.gamma(2, 1.5, 30_000)
    return np.stack([one, one + rng.normal(0.004, 0.5, len(one))], axis=1)


def test_many_lines_are_compared_without_samples(many, monkeypatch):
    """The figures are those to which resamples and exchanges tend."""
    both = list(map(column, many.T))

    def last():
        return ranked(METRICS["PerplexityHashed"], "ab", both, baseline=0, samples=2000, seed=1)[0][-1]

    computed = last()
    exact = p_randomisation(sample(*many.T), 1, 1)
    assert (computed.difference_interval.samples, computed.interval.samples) == (None, None)
    assert computed.p_randomisation == pytest.approx(exact)
    differences = many[:, 1] - many[:, 0]
    assert computed.p_bootstrap == pytest.approx(scipy.stats.ttest_1samp(differences, 0).pvalue, rel=1e-6)
    monkeypatch.setattr("geval_py.explaining.statistics.MANY", len(many))
    drawn = last()
    assert (drawn.interval.samples, drawn.difference_interval.samples) == (None, 2000)
    for one, other in (
        (computed.interval, drawn.interval),
        (computed.difference_interval, drawn.difference_interval),
    ):
        assert one.half_width == pytest.approx(other.half_width, rel=0.1)
        assert one.middle == pytest.approx(other.middle, abs=0.1 * other.half_width)
    for p_value in ("p_bootstrap", "p_randomisation"):
        assert getattr(computed, p_value) == pytest.approx(getattr(drawn, p_value), abs=0.04)


def test_many_lines_of_documents_are_exchanged_by_document(many):
    """Twelve documents that differ by more than their lines do: their signs are what may be otherwise."""
    documents = np.arange(30_000) // 2500
    shifted = many + np.stack([np.zeros(30_000), np.where(documents % 3, 0.05, -0.09)], axis=1)
    tested = sample_of(LOG_LOSS, list(map(column, shifted.T)), documents)
    sums = np.bincount(documents, shifted[:, 1] - shifted[:, 0])
    signs = np.array(list(product([-1, 1], repeat=12)))
    exact = np.mean(np.abs(signs @ sums) >= abs(sums.sum()) - 1e-9)
    assert p_randomisation(tested, 20_000, 1) == monte_carlo(exact, 20_000)


def test_one_line_of_many_that_decides_is_exchanged(many):
    """A sum of which a single line is much is not nearly normal: here its sign decides, so p is above a half."""
    losses = np.vstack([many, [[1e6, 0.0]]])
    assert p_randomisation(sample(*losses.T), 200, 1) > 0.4
