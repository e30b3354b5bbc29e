"""What the tests of pairs find, beside sampled randomisation, and how often intervals of differences are right.

The rows of the tables in docs/compare.md. The samples are drawn here, by numpy alone.
"""

import numpy as np
import pytest
from resampled import column

from geval_py.explaining.statistics import against_baseline, pair_p_values, sample_of
from geval_py.scoring.metrics.registry import METRICS

LOG_LOSS = METRICS["LogLossHashed"]
LONG = pytest.param(4000, marks=pytest.mark.long)
SWAPS = 999


def sampled_p_value(differences, rng):
    """Approximate randomisation of sums, such as of documents, as it is done with samples."""
    signs = rng.integers(0, 2, (SWAPS, len(differences))) * 2.0 - 1
    return (1 + np.sum(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9)) / (SWAPS + 1)


DRAWN = {  # lines, the differences without their mean, and the true difference
    "100 lines, normal": (lambda rng: rng.normal(0, 1, 100), 0.28),
    "100 lines, lognormal": (lambda rng: rng.lognormal(0, 1, 100) - rng.lognormal(0, 1, 100), 0.8),
    "400 lines, heavy tails": (lambda rng: rng.standard_t(3, 400), 0.23),
    "400 lines, 40 differ": (lambda rng: np.append(rng.normal(0, 1, 40), np.zeros(360)), 0.044),
}


@pytest.mark.parametrize("trials", [60, LONG])
@pytest.mark.parametrize("kind", DRAWN)
def test_power_by_line(kind, trials):
    """The power is that of samples, and the interval holds the true difference in at least 93 % of trials."""
    draw, true = DRAWN[kind]
    rng, found = np.random.default_rng(3), np.zeros(3)
    for trial in range(trials):
        differences = draw(rng)
        differences = np.where(
            differences == 0.0, 0.0, differences + true * len(differences) / np.count_nonzero(differences)
        )
        base = 100 + rng.exponential(2, len(differences))
        sample = sample_of(LOG_LOSS, [column(base), column(base + differences)])
        p_value = pair_p_values(sample, [(0, 1)], samples=1, seed=1)[0, 1]
        interval = against_baseline(sample, 0, samples=500, seed=trial)[1].interval
        found += p_value < 0.05, sampled_p_value(differences, rng) < 0.05, interval.low <= true <= interval.high
    power, sampled, covered = found / trials
    print(f"\n{kind}: power {power:.1%}, by samples {sampled:.1%}, coverage {covered:.1%} of {trials}")
    assert power >= sampled - 3 * np.sqrt(0.02 / trials)
    assert covered >= 0.93 - 3 * np.sqrt(0.07 / trials) * (trials < 4000)


BY_DOCUMENT = {
    "12 documents": (12, False),
    "40 documents": (40, False),
    "40 documents of different sizes": (40, True),
}


@pytest.mark.parametrize("trials", [60, LONG])
@pytest.mark.parametrize("kind", BY_DOCUMENT)
def test_power_by_document(kind, trials):
    """Against swaps of whole documents, whose level is too high for skewed documents of different sizes."""
    documents, differ = BY_DOCUMENT[kind]
    rng, found, true = np.random.default_rng(4), np.zeros(3), 2.8 / np.sqrt(documents)
    for _ in range(trials):
        sizes = (
            np.maximum(2, np.round(15 * rng.lognormal(0, 1, documents))).astype(int)
            if differ
            else np.full(documents, 15)
        )
        labels = np.repeat(np.arange(documents), sizes)
        differences = true + rng.normal(0, 1, documents)[labels] + rng.normal(0, 1, len(labels))
        base = 100 + rng.exponential(2, len(labels))
        sample = sample_of(LOG_LOSS, [column(base), column(base + differences)], labels)
        p_value = pair_p_values(sample, [(0, 1)], samples=1, seed=1)[0, 1]
        interval = against_baseline(sample, 0, samples=1, seed=1)[1].interval
        by_swaps = sampled_p_value(np.bincount(labels, differences), rng)
        found += p_value < 0.05, by_swaps < 0.05, interval.low <= true <= interval.high
    power, sampled, covered = found / trials
    print(f"\n{kind}: power {power:.1%}, by samples {sampled:.1%}, coverage {covered:.1%} of {trials}")
    assert differ or power >= sampled - 3 * np.sqrt(0.02 / trials)
    assert covered >= 0.93 - 3 * np.sqrt(0.07 / trials) * (trials < 4000)
