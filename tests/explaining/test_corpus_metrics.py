"""Corpus-level metrics, and sacreBLEU's own tests of significance."""

import math
import os

import numpy as np
import pytest
import scipy.stats
from resampled import bootstrap_scores, interval, ranked
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scorers import score, statistics_of

from geval_py.explaining import statistics
from geval_py.explaining.significance import Interval
from geval_py.explaining.statistics import CorpusSample, Estimator, bootstrap_weights, pair_tests, sample_of
from geval_py.scoring.evaluate import find_metric

CORPUS_METRICS = ["Macro-F1", "NMI", "Pearson", "Spearman", "Improvement@0.5", "SegmentAccuracy", "BIO-Weighted-F1"]
CORPUS_METRICS += ["Probabilistic-MultiLabel-F1", "Probabilistic-Soft-F1", "Probabilistic-Soft2D-F1"]
RNG = np.random.default_rng(1)
NUMBERS = [f"{value:.3f}" for value in RNG.normal(0, 1, 40)]
NEAR = [f"{float(number) + noise:.3f}" for number, noise in zip(NUMBERS, RNG.normal(0, 0.5, 40), strict=True)]
FAR = [f"{float(number) + noise:.3f}" for number, noise in zip(NUMBERS, RNG.normal(0, 2, 40), strict=True)]
CLASSES = ["abc"[n % 3] for n in range(40)]
GOOD = [one if n % 4 else "a" for n, one in enumerate(CLASSES)]
BAD = [one if n % 2 else "b" for n, one in enumerate(CLASSES)]
PROBABLE = [f"{one}:{0.5 + n / 100:.2f}" for n, one in enumerate(GOOD)]
DOUBTFUL = [f"{one}:{0.9 - n / 100:.2f}" for n, one in enumerate(BAD)]
DATA = {
    **dict.fromkeys(["Pearson", "Spearman"], (NUMBERS, NEAR, FAR)),
    **dict.fromkeys(["Macro-F1", "NMI"], (CLASSES, GOOD, BAD)), "Improvement@0.5": (NUMBERS, NEAR, FAR),
    "SegmentAccuracy": [[f"{one}:1-4" for one in of] for of in (CLASSES, GOOD, BAD)],
    "BIO-Weighted-F1": [[f"B-{one} O" for one in of] for of in (CLASSES, GOOD, BAD)],
    "Probabilistic-MultiLabel-F1": (CLASSES, PROBABLE, DOUBTFUL),
    "Probabilistic-Soft-F1": [
        [f"{one[0]}:1-{end}{one[1:]}" for one in of] for of, end in ((CLASSES, 4), (PROBABLE, 5), (DOUBTFUL, 6))
    ],
    "Probabilistic-Soft2D-F1": [
        [f"{one[0]}:1,1,2,{end}{one[1:]}" for one in of] for of, end in ((CLASSES, 4), (PROBABLE, 5), (DOUBTFUL, 6))
    ],
}  # fmt: skip
OF_CLASSES = {  # means over as many classes as there are numbers or texts
    "MacroAvg/RMSE": ([f"{float(number):.0f}" for number in NUMBERS], NEAR, FAR),
    "MacroAvg/Fuzzy/Accuracy": ([f"{one}{one}d" for one in CLASSES], GOOD, BAD),
}
DATA |= OF_CLASSES
CORPUS_METRICS += OF_CLASSES
each = pytest.mark.parametrize("name", CORPUS_METRICS)


def of_both(name):
    expected, one, other = DATA[name]
    return [statistics_of(name, outputs, expected) for outputs in (one, other)]


@each
def test_a_resample_is_scored_as_its_lines_are(name):
    """By the definition: the lines that were drawn, written out, and scored anew."""
    expected, one, other = DATA[name]
    metric, (weights,) = find_metric(name), bootstrap_weights(40, 5, seed=3)
    sample = sample_of(metric, of_both(name))
    assert isinstance(sample, CorpusSample)
    found = sample.scores(sample.totals([weights]))
    drawn = [np.repeat(np.arange(40), row.astype(int)) for row in weights]
    want = [
        [score(name, [of[n] for n in rows], [expected[n] for n in rows]) for of in (one, other)] for rows in drawn
    ]
    assert found == pytest.approx(np.array(want), rel=1e-12)


@each
def test_systems_are_ranked(name):
    both = of_both(name)
    systems, *_ = ranked(find_metric(name), ["good", "bad"], both, baseline=1, samples=200, seed=1)
    assert [system.name for system in systems] == ["good", "bad"]
    first = systems[0]
    assert first.interval.low <= first.score <= first.interval.high
    assert first.difference == pytest.approx(first.score - systems[1].score)
    assert 0 < first.p_value <= 1
    assert first.won + first.lost + first.tied == pytest.approx(1)
    assert first.compared == 40


def test_a_line_has_no_correlation_and_ties():
    metric = find_metric("Spearman")
    sample = sample_of(metric, of_both("Spearman"))
    assert np.isnan(sample.line_scores()).all()
    assert statistics.line_shares(sample, 0) == [(0.0, 0.0, 1.0)] * 2


def test_documents_are_drawn_whole():
    """The differences on resamples of documents, spread for how few there are."""
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(8), [3, 9, 1, 5, 7, 2, 6, 4])
    losses = rng.exponential(2, (2, len(labels))) + rng.normal(0, 0.5, (2, 8))[:, labels] ** 2
    sample = CorpusSample(
        metric=find_metric("Spearman"), statistics=np.zeros((1, len(labels), 2)), documents=labels,
        score_of=lambda places: losses.ravel()[places].mean(),
    )  # fmt: skip
    (weights,) = bootstrap_weights(8, 300, 2)
    drawn = [np.subtract(*(np.average(losses[::-1], axis=1, weights=row[labels]))) for row in weights]
    change = pair_tests(Estimator(sample, samples=300, seed=2), [(1, 0)])[1, 0].change
    half = scipy.stats.t.ppf(0.975, 7) * np.std(drawn, ddof=1) * math.sqrt(8 / 7)
    assert change.ends == pytest.approx((change.change - half, change.change + half))
    assert change.change == pytest.approx(losses[0].mean() - losses[1].mean())  # above 0 for the worse


def test_a_score_that_is_not_defined():
    """Pearson of one line is none: neither has it an interval, nor a place but the last."""
    metric = find_metric("Pearson")
    alone, two = statistics_of("Pearson", ["1"], ["1"]), statistics_of("Pearson", ["1", "2"], ["1", "2"])
    assert math.isnan(metric.value(alone))
    assert math.isnan(interval(metric, alone, samples=9).low)
    some = bootstrap_scores(metric, two, samples=50)
    assert 0 < np.isnan(some).sum() < 50
    assert math.isnan(Interval.of(some.tolist(), samples=50, seed=1).low)  # of two lines it is always 1
    flat = statistics_of("Pearson", ["1", "1"], ["1", "2"])
    systems, *_ = ranked(metric, "ab", [flat, two], baseline=0, samples=20, seed=1)
    assert [system.name for system in systems] == ["b", "a"]
    assert [system.difference for system in systems] == [None, None]
    assert systems[0].p_value == 1


WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "tree", "and", "then", "it", "was", "gone"]
LINES = 60


def made_up(seed, errors):
    """An output that has a word wrong with this probability."""
    rng = np.random.default_rng(seed)
    return [" ".join(w if rng.random() > errors else rng.choice(WORDS) for w in line.split()) for line in ANSWERS]


ANSWERS = [" ".join(np.random.default_rng(seed).choice(WORDS, 12)) for seed in range(LINES)]
SYSTEMS = {"close": (made_up(101, 0.20), made_up(102, 0.24)), "apart": (made_up(103, 0.20), made_up(104, 0.30))}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("metric", ["SacreBLEU", "BLEU"])
def test_the_paired_test_is_that_of_sacrebleu(metric, name, monkeypatch):
    """``sacrebleu --paired-ar``, whose trials are others: both p-values are within 4 standard errors."""
    monkeypatch.setitem(os.environ, "SACREBLEU_SEED", "7")
    own = {"BLEU": dict(tokenize="none", smooth_method="none")}.get(metric, {})
    one, other = SYSTEMS[name]
    trials = 2000
    test = PairedTest([("one", one), ("other", other)], {"BLEU": BLEU(**own)}, [ANSWERS], "ar", trials)
    theirs = test()[1]["BLEU"][1].p_value
    sample = sample_of(find_metric(metric), [statistics_of(metric, of, ANSWERS) for of in (one, other)])
    ours = pair_tests(Estimator(sample, samples=trials, seed=1), [(0, 1)])[0, 1].p_value
    assert ours == pytest.approx(theirs, abs=0.03)
