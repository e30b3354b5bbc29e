"""Intervals and tests by document hold what they promise, and those of few lines. Run by ``scripts/test --long``."""

import numpy as np
import pytest
from resampled import column

from geval_py.explaining.statistics import against_baseline, pair_p_values, sample_of
from geval_py.explaining.worst_features import worst_features
from geval_py.scoring.metrics import METRICS

pytestmark = pytest.mark.long

LOG_LOSS, PERPLEXITY = METRICS["LogLossHashed"], METRICS["PerplexityHashed"]
TRIALS, LINES_IN_A_DOCUMENT = 2000, 25


def draw(rng, documents, systems=1):
    """Losses of systems on lines of documents, of which some are hard for all, and some for one system."""
    labels = np.repeat(np.arange(documents), LINES_IN_A_DOCUMENT)
    of_document = rng.gamma(2, 0.5, (documents, 1)) + rng.gamma(1, 0.5, (documents, systems))
    return rng.exponential(2, (len(labels), systems)) + of_document[labels], labels


@pytest.mark.parametrize("documents", [12, 40])
def test_the_difference_by_document(documents):
    rng = np.random.default_rng(100 + documents)
    p_values, covered = [], 0
    for trial in range(TRIALS):
        losses, labels = draw(rng, documents, systems=2)
        systems = list(map(column, losses.T))
        by_document, by_line = (sample_of(LOG_LOSS, systems, documents) for documents in (labels, None))
        found, p_bootstrap = against_baseline(by_document, 0, samples=1000, seed=trial)[1]
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


def test_no_feature_is_found_where_none_matters():
    """Under a global null, q < 0.05 finds anything in at most about 5 % of permutations."""
    rng = np.random.default_rng(7)
    vocabulary = [f"w{n}" for n in range(400)]
    shares = 1 / np.arange(3, 403)
    drawn = rng.choice(400, (2000, 8), p=shares / shares.sum())
    items = [("", "", " ".join(vocabulary[n] for n in line)) for line in drawn]
    losses = np.round(rng.exponential(3, 2000), 1)  # with ties
    found = 0
    for _ in range(300):
        losses = rng.permutation(losses)
        ranked = worst_features(items, losses.tolist(), worst_is_greatest=True, least=20)
        found += bool((ranked.columns["q"] < 0.05).any())
    print(f"\n300 permutations, {len(ranked)} features tested: q < 0.05 finds anything in {found / 300:.1%}")
    assert found / 300 <= 0.06
