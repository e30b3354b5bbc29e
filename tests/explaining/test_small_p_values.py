"""p-values of approximate randomisation without samples, beside the exact ones, which other code computes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.explaining.statistics import MIN_P_VALUE, exponential_tail, sign_flip_p_value

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


def test_the_exact_p_value_is_that_of_all_choices_of_signs():
    differences = [3, -1, 4, 1, -5, 9, 2, 6]
    sums = [sum(map(int.__mul__, signs, differences)) for signs in itertools.product((-1, 1), repeat=8)]
    assert exact(differences) == sum(abs(one) >= 19 for one in sums) / 256


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=16))
@hypothesis_settings(max_examples=examples(400), deadline=None)
def test_of_few_differences_all_signs_are_tried(differences):
    assert sign_flip_p_value(np.array(differences, dtype=float)) == pytest.approx(exact(differences), rel=1e-12)


@given(st.lists(st.integers(-1000, 1000), min_size=17, max_size=60))
@hypothesis_settings(max_examples=examples(400), deadline=None)
def test_of_many_differences_the_p_value_is_nearly_exact(differences):
    """Up to a factor: a few whole numbers have gaps between their sums."""
    p_value = exact(differences)
    assert 0.25 * p_value <= sign_flip_p_value(np.array(differences, dtype=float)) <= max(8 * p_value, 1e-9)


LOSSES = {  # differences of thousandths of a nat, of so many lines
    "normal": lambda rng, lines, shift: rng.normal(shift, 1, lines),
    "skewed": lambda rng, lines, shift: rng.exponential(1, lines) - 1 + shift,
    "heavy": lambda rng, lines, shift: rng.standard_t(3, lines) + shift,
    "few differ": lambda rng, lines, shift: np.where(rng.random(lines) < 0.3, rng.normal(1 + 2 * shift, 1, lines), 0),
    "ties": lambda rng, lines, shift: rng.choice([-1, 0, 1], lines, p=(0.3 - shift / 4, 0.4, 0.3 + shift / 4)),
    "a line of 20 nats": lambda rng, lines, shift: np.append(rng.normal(shift, 1, lines - 1), 20),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_the_p_value_where_forty_teams_are_told_apart(kind):
    """For p-values from 1e-7 to 1; the exact ones are computed, not sampled."""
    rng = np.random.default_rng(3)
    ratios = []
    for shift in np.linspace(0, 1, 60):
        differences = np.round(20 * LOSSES[kind](rng, 123, shift)).astype(int).tolist()
        p_value = exact(differences)
        if 1e-7 < p_value < 1:
            ratios.append(sign_flip_p_value(np.array(differences) / 20) / p_value)
    assert len(ratios) >= 3
    assert min(ratios) >= 0.9
    assert max(ratios) <= 1.2


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([0.0, 0.0], 1.0), ([1.0, -1.0], 1.0), ([1.0], 1.0), ([1e280] * 20, 2.0**-19), ([1e-200] * 20, 2.0**-19),
        ([1.0] * 10_000, MIN_P_VALUE),  # which no finite pair has less than
    ],
    ids=["equal", "no difference", "one line", "huge", "tiny", "many"],
)  # fmt: skip
def test_extreme_differences(differences, p):
    assert 0 < sign_flip_p_value(np.array(differences)) == pytest.approx(p, rel=1e-3, abs=0)
    assert sign_flip_p_value(np.full(40, 1e-14), noise=1e-12) == 1.0  # rounding is no difference


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
        yield sign_flip_p_value(losses[:, one] - losses[:, other])


@pytest.mark.parametrize("families", [100, pytest.param(3000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", SYSTEMS)
def test_the_family_wise_error_of_forty_equal_systems(kind, families):
    """The share of families in which some pair would differ significantly is at most 5 %; it is 2 to 4 %."""
    rng = np.random.default_rng(12)
    alarms = (any(p < FORTY for p in extreme_p_values(SYSTEMS[kind](rng))) for _ in range(families))
    share = np.mean(list(alarms))
    print(f"{kind}: some pair of forty equal systems differs significantly in {share:.2%} of families")
    assert share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / families)


# The tail of a metric that is no function of losses


def exchanged_scores(rng, samples, lines):
    """The differences of two F1 scores in samples of approximate randomisation."""
    sizes = 1 + rng.geometric(0.08, lines)
    hits = rng.binomial(sizes[:, None], 0.6, (lines, 2))
    swaps = rng.random((samples, lines)) < 0.5
    moved = swaps @ (hits[:, 1] - hits[:, 0])
    one, other = hits[:, 0].sum() + moved, hits[:, 1].sum() - moved
    return 2 * one / (sizes.sum() + one) - 2 * other / (sizes.sum() + other)


@pytest.mark.parametrize(("share", "most"), [(1e-3, 3), (1e-4, 8)])
def test_a_tail_is_rather_too_long(share, most):
    """From 10,000 samples, of what 400,000 others say."""
    rng = np.random.default_rng(4)
    samples = exchanged_scores(rng, 400_000, 60)
    observed = float(np.quantile(np.abs(samples), 1 - share))
    ratios = [exponential_tail(rng.choice(samples, 10_000), observed, 60) / share for _ in range(40)]
    assert np.quantile(ratios, 0.05) >= 0.9
    assert np.median(ratios) > 1.2
    assert np.median(ratios) < most


def test_a_tail_is_no_longer_than_all_coins_allow():
    samples = np.random.default_rng(5).normal(0, 1, 10_000)
    assert exponential_tail(samples, 30.0, 12) == 2**-11
    assert exponential_tail(samples, 30.0, 200) < 1e-20


@pytest.mark.parametrize(
    "samples", [np.zeros(10_000), np.arange(999.0), np.full(10_000, math.nan)], ids=["equal", "few", "undefined"]
)
def test_without_a_tail_there_is_no_small_p_value(samples):
    assert exponential_tail(samples, 5.0, 100) == 1.0
