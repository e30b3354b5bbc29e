"""Paired tests hold what they promise, and agree with others' implementations. Run by ``scripts/test --long``."""

import numpy as np
import pytest
from resampled import column
from scipy import stats

from geval_py.explaining.significance import Interval
from geval_py.explaining.statistics import against_baseline, pair_p_values, sample_of
from geval_py.scoring.metrics.registry import METRICS

pytestmark = pytest.mark.long

LOG_LOSS, PERPLEXITY = METRICS["LogLossHashed"], METRICS["PerplexityHashed"]
TRIALS, LINES, SAMPLES = 2000, 300, 1000
MANY = 100_000
SHIFTS = [0.01, 0.1, 0.2, 0.3, 0.5]


def draw(rng, scale=1.0):
    """Losses of two systems on lines that are hard for both or for neither; ``scale`` is that of the second."""
    return rng.exponential(3, (LINES, 1)) + rng.exponential(2, (LINES, 2)) * [1, scale]


def sample_of_losses(metric, losses):
    """A sample of lines x systems."""
    return sample_of(metric, list(map(column, losses.T)))


def test_the_level_and_the_coverage_where_the_systems_are_the_same():
    rng = np.random.default_rng(1)
    p_values, covered = [], 0
    for trial in range(TRIALS):
        sample = sample_of_losses(PERPLEXITY, draw(rng))
        interval, bootstrap, _ = against_baseline(sample, 0, samples=SAMPLES, seed=trial)[1]
        randomisation = pair_p_values(sample, [(0, 1)], samples=SAMPLES, seed=trial)[0, 1]
        p_values.append((bootstrap, randomisation))
        covered += interval.low <= 0 <= interval.high
    bootstrap, randomisation = (np.array(p_values) < 0.05).mean(axis=0)
    print(f"\n{TRIALS} trials of {LINES} lines, {SAMPLES} samples, no difference: p < 0.05 in")
    print(f"  {bootstrap:.2%} paired bootstrap, {randomisation:.2%} approximate randomisation")
    print(f"  the interval of the difference of perplexities covers 0 in {covered / TRIALS:.2%}")
    assert 0.04 <= bootstrap <= 0.06
    assert 0.04 <= randomisation <= 0.06
    assert 0.94 <= covered / TRIALS <= 0.96


def test_the_coverage_where_the_systems_differ():
    rng = np.random.default_rng(2)
    covered = 0
    for trial in range(TRIALS):
        sample = sample_of_losses(LOG_LOSS, draw(rng, scale=1.2))
        interval = against_baseline(sample, 0, samples=SAMPLES, seed=trial)[1].interval
        covered += interval.low <= 0.4 <= interval.high
    print(f"\n{TRIALS} trials, a difference of 0.4 nats: the interval covers it in {covered / TRIALS:.2%}")
    assert 0.94 <= covered / TRIALS <= 0.96


def draw_documents(rng, documents):
    """Losses of two systems on 25 lines of each document, of which some are hard for both, and some for one."""
    labels = np.repeat(np.arange(documents), 25)
    of_document = rng.gamma(2, 0.5, (documents, 1)) + rng.gamma(1, 0.5, (documents, 2))
    return rng.exponential(2, (len(labels), 2)) + of_document[labels], labels


@pytest.mark.parametrize("documents", [12, 40])
def test_the_difference_by_document(documents):
    rng = np.random.default_rng(100 + documents)
    p_values, covered = [], 0
    for trial in range(TRIALS):
        losses, labels = draw_documents(rng, documents)
        systems = list(map(column, losses.T))
        by_document, by_line = (sample_of(LOG_LOSS, systems, documents) for documents in (labels, None))
        found, p_bootstrap, _ = against_baseline(by_document, 0, samples=1000, seed=trial)[1]
        covered += found.low <= 0 <= found.high
        p_values.append(
            (
                p_bootstrap,
                pair_p_values(by_document, [(0, 1)], samples=1000, seed=trial)[0, 1],
                pair_p_values(by_line, [(0, 1)], samples=300, seed=trial)[0, 1],
            )
        )
    bootstrap, randomisation, lines = (np.array(p_values) < 0.05).mean(axis=0)
    print(f"\n{TRIALS} trials of {documents} documents, no difference: p < 0.05 in")
    print(f"  {bootstrap:.2%} paired t test, {randomisation:.2%} approximate randomisation, by document")
    print(f"  {lines:.2%} approximate randomisation by line")
    print(f"  the interval of the difference by document covers 0 in {covered / TRIALS:.2%}")
    assert 0.04 <= bootstrap <= 0.065
    assert 0.04 <= randomisation <= 0.065
    assert lines > 0.1
    assert 0.93 <= covered / TRIALS <= 0.97


def close(p_value):
    """Within four standard errors of the difference of two such shares, of which one is doubled."""
    return pytest.approx(p_value, abs=4 * np.sqrt(3 * max(p_value, 1e-4) * (1 - p_value) / MANY) + 2 / MANY)


@pytest.fixture(params=SHIFTS)
def losses(request):
    shifted = draw(np.random.default_rng(5))
    return shifted - shifted.mean(axis=0) + [shifted.mean(), shifted.mean() + request.param]


def mean_difference(x, y, axis):
    return np.mean(x, axis=axis) - np.mean(y, axis=axis)


def test_the_bootstrap_agrees_with_scipy(losses):
    theirs = stats.bootstrap(
        losses.T, mean_difference, paired=True, n_resamples=MANY, batch=1000, method="percentile", rng=1
    )
    ours, our_p, _ = against_baseline(sample_of_losses(LOG_LOSS, losses[:, ::-1]), 0, samples=MANY, seed=2)[1]
    print(f"\ninterval [{ours.low:.4f}, {ours.high:.4f}], scipy {np.round(theirs.confidence_interval, 4)}")
    width = ours.high - ours.low
    assert list(theirs.confidence_interval) == pytest.approx([ours.low, ours.high], abs=0.02 * width)
    with_our_cut = Interval.of(theirs.bootstrap_distribution.tolist(), samples=MANY, seed=1)
    assert with_our_cut.ends == pytest.approx((ours.low, ours.high), abs=0.02 * width)
    observed = mean_difference(*losses.T, axis=0)
    their_p = np.mean(np.abs(theirs.bootstrap_distribution - observed) >= abs(observed) - 1e-12)
    print(f"p of the paired bootstrap: {our_p:.5f}, from scipy's distribution {their_p:.5f}")
    assert our_p == close(their_p)
