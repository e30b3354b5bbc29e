"""How often equal systems differ significantly, and how often intervals hold the true difference, on simulated losses.

The rows of docs/simulations.md. All losses are drawn here, by numpy alone. These simulations are for ``--long``: with few
trials, they would let pass what many catch.
"""

from itertools import combinations

import numpy as np
import pytest
from resampled import column, paired

from geval_py.explaining.significance import holm
from geval_py.explaining.statistics import Estimator, intervals, pair_tests, sample_of
from geval_py.scoring.metrics.registry import METRICS

LOG_LOSS, ACCURACY = METRICS["LogLossHashed"], METRICS["Accuracy"]
TRIALS, DOCUMENT_TRIALS = 2000, 500


def rare(share, size, lines, noise=0.1):
    """Differences of which some lines are worse, by so many nats on average."""
    return lambda rng: rng.normal(0, noise, lines) + rng.exponential(size, lines) * (rng.random(lines) < share)


def lognormal(deviation, lines):
    return lambda rng: rng.lognormal(0, deviation, lines)


def symmetric(deviation, lines):
    return lambda rng: rng.lognormal(0, deviation, lines) - rng.lognormal(0, deviation, lines)


def few(*differing, lines=400):
    """Differences of some lines, by groups of lines with a standard deviation of each; the others are equal."""
    return lambda rng: np.append(
        np.concatenate([rng.normal(0, deviation, count) for count, deviation in differing]),
        np.zeros(lines - sum(count for count, _ in differing)),
    )


BY_LINE = {  # differences, their true mean, and how often p may be below 0.05
    "lognormal, sd 1, 60 lines": (lognormal(1, 60), np.exp(0.5), 0.07),
    "lognormal, sd 2, 400 lines": (lognormal(2, 400), np.exp(2), 0.07),
    "lognormal, sd 2, 2,000 lines": (lognormal(2, 2000), np.exp(2), 0.07),
    "Pareto 2.5, 100 lines": (lambda rng: rng.pareto(2.5, 100), 1 / 1.5, 0.07),
    "1 % of the lines 5 nats worse, 500 lines": (rare(0.01, 5, 500), 0.05, 0.07),
    "1 % of the lines 5 nats worse, 1,000 lines": (rare(0.01, 5, 1000), 0.05, 0.07),
    "1 % of the lines 5 nats worse, 3,000 lines": (rare(0.01, 5, 3000), 0.05, 0.07),
    "2 % of the lines 3 nats worse, 500 lines": (rare(0.02, 3, 500), 0.06, 0.07),
    **{f"2 % of the lines 3 nats worse, {sets} sets": (rare(0.02, 3, 400 * sets), 0.06, 0.07) for sets in (2, 5, 20)},
    "difference of lognormals, 60 lines": (symmetric(1.5, 60), 0.0, 0.065),
    "difference of lognormals, 400 lines": (symmetric(1.5, 400), 0.0, 0.065),
    "normal, 10 lines": (lambda rng: rng.normal(0, 1, 10), 0.0, 0.065),
    "normal, 20 lines": (lambda rng: rng.normal(0, 1, 20), 0.0, 0.065),
    "normal, 400 lines": (lambda rng: rng.normal(0, 1, 400), 0.0, 0.065),
    "400 lines, of which 12 differ": (few((12, 1.0)), 0.0, 0.065),
    "400 lines, of which 30 differ, 5 by far": (few((25, 0.1), (5, 5.0)), 0.0, 0.065),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", BY_LINE)
def test_by_line(kind):
    """The interval leaves out the true difference as often as its test rejects it; the test is also one-sided."""
    draw, true, level = BY_LINE[kind]
    rng, alarms, no_worse = np.random.default_rng(2), 0, 0
    for _ in range(TRIALS):
        differences = draw(rng)
        base = 100 + rng.exponential(2, len(differences))
        change = paired(base, base + differences).change
        low, high = change.ends
        alarms += not low <= true <= high
        no_worse += "nats" in kind and change.p_of_more(true) < 0.05
    shares = np.array([alarms, no_worse]) / TRIALS
    print("\n{}: level {:.1%}, no worse {:.1%} of {}".format(kind, *shares, TRIALS))
    assert shares[0] <= level
    if "nats" in kind:
        assert shares[1] <= 0.075


POWER = {
    "100 lines, normal": (lambda rng: rng.normal(0.28, 1, 100), 0.75),
    "100 lines, lognormal": (lambda rng: symmetric(1, 100)(rng) + 0.8, 0.65),
    "400 lines, heavy tails": (lambda rng: rng.standard_t(3, 400) + 0.23, 0.7),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", POWER)
def test_the_power_by_line(kind):
    draw, least = POWER[kind]
    rng, found = np.random.default_rng(3), 0
    for _ in range(TRIALS):
        differences = draw(rng)
        base = 100 + rng.exponential(2, len(differences))
        found += paired(base, base + differences).change.p_value < 0.05
    print(f"\n{kind}: power {found / TRIALS:.1%} of {TRIALS}")
    assert found / TRIALS >= least


def sizes_of(rng, documents, deviation):
    return np.maximum(2, np.round(15 * rng.lognormal(0, deviation, documents))).astype(int)


BY_DOCUMENT = {  # documents, how unequal their sizes are, and their effects
    "12 documents": (12, 0.0, "normal"), "40 documents": (40, 0.0, "normal"),
    "12 documents of different sizes": (12, 1.0, "normal"), "40 documents of different sizes": (40, 1.0, "normal"),
    "40 documents, exponential effects": (40, 0.0, "exponential"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", BY_DOCUMENT)
def test_by_document(kind):
    documents, unequal, effects = BY_DOCUMENT[kind]
    rng, alarms, by_line = np.random.default_rng(4), 0, 0
    for _ in range(DOCUMENT_TRIALS):
        labels = np.repeat(np.arange(documents), sizes_of(rng, documents, unequal))
        of_document = rng.normal(0, 1, documents) if effects == "normal" else rng.exponential(1, documents) - 1
        base = 100 + rng.exponential(2, len(labels))
        differences = of_document[labels] + rng.normal(0, 1, len(labels))
        change = paired(base, base + differences, documents=labels).change
        low, high = change.ends
        assert (change.p_value < 0.05) == (not low <= 0 <= high)
        alarms += change.p_value < 0.05
        by_line += paired(base, base + differences).change.p_value < 0.05
    print(f"\n{kind}: level {alarms / DOCUMENT_TRIALS:.1%}, by line {by_line / DOCUMENT_TRIALS:.1%}")
    assert alarms / DOCUMENT_TRIALS <= 0.07
    assert by_line > alarms


@pytest.mark.long
@pytest.mark.parametrize("documents", [None, 20])
def test_groups(documents):
    """The share of trials in which some pair of 15 equal systems differs significantly, by Holm's correction."""
    rng, alarms, pairs = np.random.default_rng(1), 0, list(combinations(range(15), 2))
    for _ in range(DOCUMENT_TRIALS):
        labels = np.arange(300) if documents is None else np.repeat(np.arange(documents), sizes_of(rng, documents, 1))
        effects = rng.normal(0, 0.3, (labels.max() + 1, 15))[labels]
        losses = rng.exponential(2, (len(labels), 1)) + 5 + effects + rng.exponential(1, (len(labels), 15))
        sample = sample_of(LOG_LOSS, list(map(column, losses.T)), None if documents is None else labels)
        tests = pair_tests(Estimator(sample, samples=1, seed=1), pairs).values()
        alarms += min(holm([test.p_value for test in tests])) < 0.05
    print(f"\n{documents} documents: {alarms / DOCUMENT_TRIALS:.1%} of {DOCUMENT_TRIALS}")
    assert alarms / DOCUMENT_TRIALS <= 0.065


@pytest.mark.long
@pytest.mark.parametrize("share", [0.9, 0.97, 0.99])
def test_the_accuracy_by_document(share):
    """By Wilson's interval."""
    rng, held = np.random.default_rng(8), 0
    labels = np.repeat(np.arange(40), 25)
    for _ in range(DOCUMENT_TRIALS):
        shares = rng.beta(20 * share, 20 * (1 - share), 40)
        wrong = (rng.random(1000) >= shares[labels]).astype(float)
        (interval,) = intervals(sample_of(ACCURACY, [column(wrong)], labels), samples=1, seed=1)
        held += interval.low <= share <= interval.high
    print(f"\naccuracy {share:.0%}: coverage {held / DOCUMENT_TRIALS:.1%} of {DOCUMENT_TRIALS}")
    assert held / DOCUMENT_TRIALS >= 0.925


@pytest.mark.long
def test_rare_infinite_lines_of_equal_systems():
    """Whether some of five systems is told apart, of which one loses infinitely on a line of 1,000 at times."""
    rng, alarms, pairs = np.random.default_rng(9), 0, list(combinations(range(5), 2))
    for _ in range(DOCUMENT_TRIALS):
        losses = 5 + rng.exponential(2, (1000, 1)) + rng.normal(0, 0.5, (1000, 5))
        losses[rng.random((1000, 5)) < 0.0005] = np.inf
        sample = sample_of(LOG_LOSS, list(map(column, losses.T)))
        tests = pair_tests(Estimator(sample, samples=1, seed=1), pairs).values()
        alarms += min(holm([test.p_value for test in tests])) < 0.05
    print(f"\nfive equal systems, rare infinite lines: {alarms / DOCUMENT_TRIALS:.1%} of {DOCUMENT_TRIALS}")
    assert alarms / DOCUMENT_TRIALS <= 0.065
