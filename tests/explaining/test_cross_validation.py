"""Held-out lines: folds of documents, and the change of the mean loss."""

import math

import numpy as np
import pytest
from scipy import stats

from geval_py.explaining.mixing import MIN_GAIN, SCORE_DIGITS, Change, change_of, fold_of_lines
from geval_py.tables.numbers import significant


def test_documents_are_held_out_together():
    groups = np.repeat(np.arange(25), 7)
    folds = fold_of_lines(groups, seed=3)
    assert set(folds) == set(range(10))
    assert all(len(set(folds[groups == group])) == 1 for group in range(25))
    assert set(fold_of_lines(np.array([0, 1, 1]), seed=3)) == {0, 1}


def test_the_interval_is_that_of_the_sums_of_documents():
    """Specification, section 1: v = G/(G-1) sum (sum of deviations)^2 / N^2, and Student's t."""
    rng = np.random.default_rng(5)
    base, losses, groups = rng.exponential(3, 90), rng.exponential(2, 90), np.arange(90) // 6
    change = change_of(losses, base, groups)
    mean = (losses - base).mean()
    sums = [((losses - base)[groups == g] - mean).sum() for g in range(15)]
    half = stats.t.ppf(0.975, 14) * math.sqrt(15 / 14 * np.square(sums).sum()) / 90
    assert (change.low, change.mean, change.high) == pytest.approx((mean - half, mean, mean + half))
    alone = change_of(losses, base, np.arange(90))
    theirs = stats.ttest_rel(losses, base).confidence_interval()
    assert (alone.low, alone.high) == pytest.approx(tuple(theirs), rel=1e-9)


INFINITE = {
    "fixed": ([1.0, 1.0], [math.inf, 1.0], -math.inf, True),
    "broken": ([math.inf, 1.0], [1.0, 2.0], math.inf, False),
    "both": ([math.inf, 1.0], [1.0, math.inf], math.inf, False),
    "the same": ([math.inf, 1.0], [math.inf, 1.0], 0.0, False),
}


@pytest.mark.parametrize(("losses", "base", "mean", "better"), INFINITE.values(), ids=INFINITE)
def test_changes_of_infinite_losses(losses, base, mean, better):
    change = change_of(np.array(losses), np.array(base), np.arange(2))
    assert (change.mean, change.is_better) == (mean, better)


def test_what_is_no_use_is_not_taken():
    tiny = np.full(100, 1.0)
    assert not change_of(tiny - MIN_GAIN / 2, tiny, np.arange(100)).is_better
    spread = np.linspace(-1e-6, 1e-6, 100)
    assert change_of(tiny - MIN_GAIN * 2 + spread, tiny, np.arange(100)).is_better
    alike = change_of(tiny - MIN_GAIN * 2, tiny, np.arange(100))  # only p can tell, and 0.98 does not
    assert (alike.is_better, alike.cells()) == (False, ("-0.0002", "", "0.9802"))


def test_p_is_a_bound_by_the_likelihood():
    losses, lines = np.zeros(400), np.arange(400)
    losses[:40] = -0.2  # 8 nats less in all
    assert change_of(losses, np.zeros(400), lines).p_value == pytest.approx(math.exp(-8))
    assert change_of(-losses, np.zeros(400), lines).p_value == 1.0
    by_document = change_of(losses, np.zeros(400), lines // 20)
    assert math.exp(-8) < by_document.p_value < 1
    assert by_document.is_better is (by_document.p_value <= 0.05)
    assert not change_of(np.zeros(400), np.zeros(400), lines).is_better


@pytest.mark.parametrize(
    ("high", "taken", "verdict"),
    [(-0.01, True, "take it"), (0.01, True, "probably better"), (np.nan, True, "probably better"), (0.01, False, "leave it")],
)  # fmt: skip
def test_verdicts(high, taken, verdict):
    assert Change(mean=-0.1, low=-0.2, high=high, p_value=0.001).verdict(taken=taken) == verdict


@pytest.mark.parametrize(
    ("value", "text"),
    [(10.0, "10.000"), (9.99994, "9.9999"), (-9.99994, "-9.9999"), (0.999994, "0.99999"), (0.0, "0"), (math.inf, "Infinity")],
)  # fmt: skip
def test_scores_have_five_digits(value, text):
    assert significant(value, SCORE_DIGITS) == text
