"""How much better the best of equally good systems seems, against what simulated systems show."""

import math

import numpy as np
import pytest
from resampled import column

from geval_py import compare, score
from geval_py.explaining.statistics import optimism, sample_of
from geval_py.scoring.metrics.registry import METRICS

LOG_LOSS = METRICS["LogLossHashed"]


@pytest.mark.parametrize("trials", [60, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("systems", [3, 20])
def test_the_best_of_equal_systems(systems, trials):
    """On 300 lines of sd 0.5, beside what the lines have in common."""
    rng = np.random.default_rng(systems)
    estimates, gains = [], []
    for _ in range(trials):
        losses = rng.exponential(2, (300, 1)) + rng.normal(5, 0.5, (300, systems))
        estimates.append(optimism(sample_of(LOG_LOSS, list(map(column, losses.T)))))
        gains.append(losses.mean() - losses.mean(axis=0).min())
    assert np.mean(estimates) == pytest.approx(np.mean(gains), rel=4 * np.std(gains) / np.mean(gains) / trials**0.5)
    assert np.std(estimates) < 0.1 * np.mean(estimates)


def test_the_best_of_systems_that_share_documents():
    """Documents of ten lines that are all alike are no more than single lines."""
    losses = np.random.default_rng(2).normal(5, 0.5, (60, 4))
    single = optimism(sample_of(LOG_LOSS, list(map(column, losses.T))))
    documents = np.repeat(np.arange(60), 10)
    assert optimism(sample_of(LOG_LOSS, list(map(column, losses.repeat(10, axis=0).T)), documents)) == pytest.approx(
        single
    )


def test_what_has_no_best_of_many():
    two = [column([1.0, 2.0]), column([2.0, 1.0])]
    assert optimism(sample_of(LOG_LOSS, two)) is None
    assert optimism(sample_of(LOG_LOSS, [column([1.0, math.inf]), column([math.inf, 1.0]), column([1, 1])])) is None
    assert optimism(sample_of(METRICS["MacroAvg/Likelihood"], [column([1.0, 2.0], ["a", "b"])] * 3)) is None


@pytest.mark.filterwarnings("ignore:.*not in a vocabulary")
def test_the_table_says_whether_the_best_survives():
    rng = np.random.default_rng(5)
    outputs = [
        score([{"the": p} for p in rng.uniform(0.3, 0.5, 100)], ["the"] * 100, metric="LogLoss") for _ in range(5)
    ]
    worst = max(range(5), key=lambda n: outputs[n].score)
    compared = compare(outputs, baseline=worst, samples=10)
    assert compared.p_best == min(1, 4 * compared.systems[0].p_randomisation)
    verdict = "is" if compared.p_best < 0.05 else "is not"
    assert f"{verdict} significantly better than the baseline, corrected for the choice of the best of 5" in str(
        compared
    )
    assert "best of 5: of 5 equally good systems, the best would seem better than their mean by" in str(compared)
