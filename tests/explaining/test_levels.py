"""How often equal systems differ significantly: the rows of the table in docs/compare.md, on simulated losses."""

from itertools import combinations

import numpy as np
import pytest
from resampled import column

from geval_py.explaining.significance import holm
from geval_py.explaining.statistics import against_baseline, pair_p_values, sample_of
from geval_py.scoring.metrics.registry import METRICS

LOG_LOSS = METRICS["LogLossHashed"]
LONG = pytest.param(1000, marks=pytest.mark.long)


def skewed_sizes(rng, documents, lines):
    sizes = np.maximum(2, np.round(rng.lognormal(0, 1, documents))).astype(int)
    return np.maximum(2, sizes * lines // sizes.sum())


GROUPS = {  # documents, whether their sizes differ
    "12 documents": (12, False),
    "12 documents of different sizes": (12, True),
    "20 documents of different sizes": (20, True),
}


def allowed(trials):
    """6.5 %, or three standard errors more for fewer trials."""
    return 0.065 + 3 * np.sqrt(0.05 * 0.95 / trials) * (trials < 1000)


@pytest.mark.parametrize("trials", [40, LONG])
@pytest.mark.parametrize("kind", GROUPS)
def test_groups_by_document(kind, trials):
    """The share of trials in which some pair of 15 equal systems differs significantly, by Holm's correction."""
    documents, differ = GROUPS[kind]
    rng, alarms, pairs = np.random.default_rng(1), 0, list(combinations(range(15), 2))
    for _ in range(trials):
        sizes = skewed_sizes(rng, documents, 600) if differ else np.full(documents, 50)
        labels = np.repeat(np.arange(documents), sizes)
        effects = rng.normal(0, 0.3, (documents, 15))[labels]
        losses = rng.exponential(2, (len(labels), 1)) + 5 + effects + rng.normal(0, 1, (len(labels), 15))
        sample = sample_of(LOG_LOSS, list(map(column, losses.T)), labels)
        alarms += min(holm(list(pair_p_values(sample, pairs, samples=1, seed=1).values()))) < 0.05
    print(f"\n{kind}: {alarms / trials:.1%} of {trials}")
    assert alarms / trials <= allowed(trials)


PAIRS = {
    "60 lines, lognormal": lambda rng: rng.lognormal(0, 1.5, 60) - rng.lognormal(0, 1.5, 60),
    "400 lines, normal": lambda rng: rng.normal(0, 1, 400),
    "400 lines, lognormal": lambda rng: rng.lognormal(0, 1.5, 400) - rng.lognormal(0, 1.5, 400),
    "400 lines, 12 differ": lambda rng: np.append(rng.standard_t(3, 12), np.zeros(388)),
    "400 lines, 30 differ, 5 of them by far": lambda rng: np.concatenate(
        [rng.normal(0, 0.1, 25), rng.normal(0, 5, 5), np.zeros(370)]
    ),
    "400 lines, right or wrong": lambda rng: rng.choice([-1.0, 0.0, 1.0], 400, p=[0.1, 0.8, 0.1]),
    **{f"{lines} lines, normal": lambda rng, lines=lines: rng.normal(0, 1, lines) for lines in (3, 5, 10, 20)},
}


@pytest.mark.parametrize("trials", [300, pytest.param(4000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_by_line(kind, trials):
    """The shares of trials in which two equal systems differ, by randomisation and by the bootstrap."""
    rng, alarms = np.random.default_rng(2), np.zeros(2)
    for trial in range(trials):
        differences = PAIRS[kind](rng)
        base = 100 + rng.exponential(2, len(differences))
        sample = sample_of(LOG_LOSS, [column(base), column(base + differences)])
        p_randomisation = pair_p_values(sample, [(0, 1)], samples=1, seed=1)[0, 1]
        p_bootstrap = against_baseline(sample, 0, samples=500, seed=trial)[1].p_value
        alarms += np.array([p_randomisation, p_bootstrap]) < 0.05
    print(f"\n{kind}: randomisation {alarms[0] / trials:.1%}, bootstrap {alarms[1] / trials:.1%} of {trials}")
    assert alarms[0] / trials <= allowed(trials)
    assert alarms[1] / trials <= allowed(trials)
