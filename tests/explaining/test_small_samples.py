"""The interval of a mean of few lines, whose figures are skewed: Hall's transformation."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from profiles import examples
from resampled import paired

from geval_py.explaining.significance import benjamini_hochberg, holm
from geval_py.explaining.statistics import sign_test, spread_of_lines

TRIALS = 5000


def interval_of_mean(values):
    return spread_of_lines(values).ends(values.mean())


KINDS = {
    "lognormal": (lambda rng, size: rng.lognormal(0, 1, size), math.exp(0.5)),
    "exponential": (lambda rng, size: rng.exponential(1, size), 1.0),
    "Pareto 2.5": (lambda rng, size: rng.pareto(2.5, size), 1 / 1.5),
    "normal": (lambda rng, size: rng.normal(0, 1, size), 0.0),
    # Of a fifth of the words an output knows nothing; the others have a probability by chance.
    "words": (lambda rng, size: np.where(rng.random(size) < 0.2, 7.0, rng.exponential(1.5, size)), 1.4 + 1.2),
}


@pytest.mark.long
@pytest.mark.parametrize("lines", [10, 20, 40, 100, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_the_coverage_of_intervals_by_line(kind, lines):
    """At least 93 % from 40 lines on, 90 % with fewer."""
    draw, mean = KINDS[kind]
    rng = np.random.default_rng(lines)
    held = []
    for _ in range(TRIALS):
        values = draw(rng, lines)
        low, high = interval_of_mean(values)
        held.append(low <= mean <= high)
    print(f"\n{kind}, {lines} lines: {np.mean(held):.1%}")
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
        found = scipy.optimize.brentq(lambda end, q=quantile: transformed(end) - q, -1e4, 1e4, xtol=1e-12)
        assert end == pytest.approx(found, rel=1e-6, abs=1e-6)


FORTY = 0.05 / 780  # what Holm's correction asks of the first of all pairs of forty


def exact(differences):
    """The share of all 2^n choices of signs with a sum as far from 0, of whole numbers, by counting sums."""
    size = sum(map(abs, differences))
    ways = np.zeros(2 * size + 1)
    ways[size] = 1.0
    for one in map(abs, differences):
        moved = np.zeros_like(ways)
        moved[one:] += ways[: len(ways) - one]
        moved[: len(ways) - one] += ways[one:]
        ways = moved / 2
    far = abs(sum(differences))
    return float(ways[: size - far + 1].sum() + ways[size + far :].sum()) if far else 1.0


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=16))
@hypothesis_settings(max_examples=examples(100), deadline=None)
def test_of_few_lines_all_signs_are_tried(differences):
    base = np.full(len(differences), 64.0)
    change = paired(base, base + differences).change
    assert change.p_value == pytest.approx(exact(differences), rel=1e-12)
    low, high = change.ends
    assert (change.p_value < 0.05) == (not low <= 0 <= high)


def test_darwins_maize():
    """Fisher, "The Design of Experiments" (1935): 1,726 of 32,768 choices of signs, of differences in eighths of inches."""
    differences = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]) / 8
    change = paired(np.full(15, 50.0), 50 + differences).change
    assert change.p_value == 1726 / 32768
    for end, step in zip(change.ends, (-1e-6, 1e-6), strict=True):  # where p of this true mean passes 0.05
        beyond, within = (paired(np.full(15, 50.0), 50 + differences - by).change for by in (end + step, end - step))
        assert beyond.p_value < 0.05 <= within.p_value
    assert change.p_of_more(0.0) == 1 - 863 / 32768 + np.mean(2 * subset_sums(differences) == 2 * differences.sum())


def subset_sums(values):
    return np.array([sum(chosen) for size in range(16) for chosen in itertools.combinations(values, size)])


@pytest.mark.parametrize(("wins", "losses"), [(4, 13), (0, 1), (0, 6), (5, 5), (130, 190), (0, 0)])
def test_the_sign_test_is_the_binomial_one(wins, losses):
    expected = scipy.stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == sign_test(losses, wins) == pytest.approx(expected, rel=1e-9)


SYSTEMS = {  # the losses of forty equal systems on the same lines
    "normal": lambda rng: rng.normal(0, 2, (123, 1)) + rng.normal(0, 1, (123, 40)),
    "heavy": lambda rng: rng.exponential(2, (123, 1)) + rng.pareto(1.5, (123, 40)),
    "few differ": lambda rng: np.where(rng.random((123, 40)) < 0.1, rng.exponential(5, (123, 40)), 0.0),
    "ties": lambda rng: (rng.random((123, 40)) < rng.beta(1, 1, (123, 1))) * 1.0,
}


def extreme_p_values(losses):
    """The p-values of the pairs that may differ significantly: only a sum of 3.5 standard deviations can be."""
    sums, products = losses.sum(axis=0), losses.T @ losses
    squares = np.diag(products)
    spread = np.sqrt(np.maximum(squares[:, None] + squares - 2 * products, 1e-9))
    for one, other in np.argwhere(np.triu(np.abs(sums[:, None] - sums) > 3.5 * spread)):
        differences = losses[:, one] - losses[:, other]
        yield spread_of_lines(differences).p_value(differences.mean())


@pytest.mark.long
@pytest.mark.parametrize("kind", SYSTEMS)
def test_the_family_wise_error_of_forty_equal_systems(kind):
    """The share of families in which some pair would differ significantly is at most 5 %; it is 2 to 4 %."""
    rng = np.random.default_rng(12)
    alarms = (any(p < FORTY for p in extreme_p_values(SYSTEMS[kind](rng))) for _ in range(3000))
    share = np.mean(list(alarms))
    print(f"{kind}: some pair of forty equal systems differs significantly in {share:.2%} of families")
    assert share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 3000)


PROPERTY = settings(deadline=None, derandomize=True)
P_VALUES = st.lists(st.floats(0, 1), max_size=12)


@pytest.mark.parametrize(("p_values", "corrected"), [
    ([], []), ([0.2], [0.2]), ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]), ([0.5, 0.5], [1.0, 1.0]),
    ([0.9, 0.001], [0.9, 0.002]), ([0.01, 0.011, 0.012], [0.03, 0.03, 0.03]),
])  # fmt: skip
def test_holm(p_values, corrected):
    assert holm(p_values) == pytest.approx(corrected)


@PROPERTY
@given(P_VALUES.filter(len))
@example([0.01, 0.04, 0.03, 0.005])
@example([0.5, 0.5, 0.5])
@example([0.0, 1.0, 1e-300])
def test_benjamini_hochberg_is_that_of_scipy(p_values):
    corrected = benjamini_hochberg(np.array(p_values))
    assert corrected == pytest.approx(scipy.stats.false_discovery_control(p_values, method="bh"), rel=1e-14)
