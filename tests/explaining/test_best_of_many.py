"""How much better the best of equally good systems seems, against what simulated systems show."""

import math
import re

import numpy as np
import pytest
from raising import refused
from resampled import column

from geval_py import compare, score
from geval_py.explaining.statistics import optimism, sample_of
from geval_py.scoring.metrics.registry import METRICS

LOG_LOSS = METRICS["LogLossHashed"]
TRIALS = 2000


@pytest.mark.long
@pytest.mark.parametrize("systems", [3, 20])
def test_the_best_of_equal_systems(systems):
    """On 300 lines of sd 0.5, beside what the lines have in common."""
    rng = np.random.default_rng(systems)
    estimates, gains = [], []
    for _ in range(TRIALS):
        losses = rng.exponential(2, (300, 1)) + rng.normal(5, 0.5, (300, systems))
        estimates.append(optimism(sample_of(LOG_LOSS, list(map(column, losses.T)))))
        gains.append(losses.mean() - losses.mean(axis=0).min())
    assert np.mean(estimates) == pytest.approx(np.mean(gains), rel=4 * np.std(gains) / np.mean(gains) / TRIALS**0.5)
    assert np.std(estimates) < 0.1 * np.mean(estimates)


def test_the_best_of_systems_that_share_documents():
    """Documents of ten lines that are all alike are no more than single lines."""
    losses = np.random.default_rng(2).normal(5, 0.5, (60, 4))
    single = optimism(sample_of(LOG_LOSS, list(map(column, losses.T))))
    documents = np.repeat(np.arange(60), 10)
    assert optimism(sample_of(LOG_LOSS, list(map(column, losses.repeat(10, axis=0).T)), documents)) == pytest.approx(
        single
    )


def test_tries_that_are_not_here():
    """Of 60 tries, twenty are in the folder."""
    rng = np.random.default_rng(9)
    losses = 5 + rng.exponential(2, (300, 1)) + rng.normal(0, 0.5, (300, 20))
    sample = sample_of(LOG_LOSS, list(map(column, losses.T)))
    best = [-rng.normal(0, 1, (4000, tries)).min(axis=1).mean() for tries in (20, 60)]
    assert optimism(sample, 60) / optimism(sample) == pytest.approx(best[1] / best[0], rel=0.03)


def test_what_has_no_best_of_many():
    two = [column([1.0, 2.0]), column([2.0, 1.0])]
    assert optimism(sample_of(LOG_LOSS, two)) is None
    assert optimism(sample_of(LOG_LOSS, [column([1.0, math.inf]), column([math.inf, 1.0]), column([1, 1])])) is None
    assert optimism(sample_of(METRICS["MacroAvg/Likelihood"], [column([1.0, 2.0], ["a", "b"])] * 3)) is None


@pytest.mark.filterwarnings("ignore:.*not in a vocabulary")
def test_the_table_says_how_much_of_it_is_chance():
    rng = np.random.default_rng(5)
    outputs = [
        score([{"the": p} for p in rng.uniform(0.3, 0.5, 100)], ["the"] * 100, metric="LogLoss") for _ in range(5)
    ]
    compared = compare(outputs, tries=60)
    assert (compared.tries, compared.optimism > compare(outputs).optimism) == (60, True)
    best = "best of 60: if all 60 were equally good and as correlated as these, the best would on average score "
    assert re.search(best + r"0\.\d+ nats better than their mean \(selection by chance\)", str(compared))
    with refused("4 tries are fewer than the 5 systems that are compared"):
        compare(outputs, tries=4)
    with refused("the best of many tries is estimated only for a mean loss, without training runs"):
        compare([score(["the"] * 5, ["the"] * 5, metric="BLEU")] * 3, tries=60)
