"""The bootstrap: intervals of scores, and what `--bootstrap` shows."""

import math

import numpy as np
import pytest
from raising import refused
from resampled import bootstrap_scores, column, interval

from geval_py import evaluate
from geval_py.explaining import statistics
from geval_py.explaining.significance import Interval
from geval_py.explaining.statistics import bootstrap_weights
from geval_py.scoring.metrics.registry import METRICS

NAMES = ["LogLossHashed", "LikelihoodHashed", "PerplexityHashed", "CrossEntropyHashed", "Accuracy"]


@pytest.mark.parametrize(("count", "cut"), [
    (1, 0), (39, 0), (40, 1), (199, 4), (200, 5), (1000, 25), (10_000, 250), (39_920, 999), (40_000, 1002),
])  # fmt: skip
def test_percentiles(count, cut):
    """Sort the N values, cut floor((1 - 0.95 + 0.0001) N / 2) from each end."""
    ends = (1 + cut, count - cut) if count > 1 else (None, None)
    assert Interval.of(range(count, 0, -1), samples=count, seed=1).ends == ends


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_is_computed_on_each_resample(name):
    losses = [0.0, 1.0, 1.0, 0.0, 1.0]
    (weights,) = bootstrap_weights(5, 50, seed=3)
    want = [METRICS[name].value(column(np.repeat(losses, row.astype(int)))) for row in weights]
    assert bootstrap_scores(METRICS[name], column(losses), samples=50, seed=3) == pytest.approx(want, rel=1e-12)


def test_blocks_of_few_resamples_are_the_same_resamples(monkeypatch):
    (whole,) = bootstrap_weights(5, 50, seed=3)
    monkeypatch.setattr(statistics, "BLOCK_BYTES", 1)
    blocks = list(bootstrap_weights(5, 50, seed=3))
    assert [len(block) for block in blocks] == [1] * 50
    assert (np.concatenate(blocks) == whole).all()


def test_infinite_losses():
    losses = column([math.inf, 1.0, 2.0])
    (weights,) = bootstrap_weights(3, 200, seed=0)
    scores = bootstrap_scores(METRICS["LikelihoodHashed"], losses, samples=200, seed=0)
    assert (scores == 0).tolist() == (weights[:, 0] > 0).tolist()
    assert interval(METRICS["LogLossHashed"], losses).high == math.inf
    everywhere = interval(METRICS["PerplexityHashed"], column([math.inf] * 3))
    assert (everywhere.low, everywhere.high, everywhere.middle, everywhere.half_width) == (*[math.inf] * 3, 0.0)


def test_a_seed_of_0_is_a_seed():
    losses, metric = column([0.5, 1.5, 4.0, 2.0]), METRICS["LogLossHashed"]
    seeds = [tuple(bootstrap_scores(metric, losses, samples=20, seed=seed)) for seed in (0, 1, 12345)]
    assert len(set(seeds)) == 3
    assert tuple(bootstrap_scores(metric, losses, samples=20)) == seeds[2]


def test_no_samples_are_refused():
    with refused("the number of bootstrap samples is at least 1"):
        interval(METRICS["LogLossHashed"], column([1.0]), samples=0)


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --precision 2\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0/expected.tsv").write_text("a\nb\nc\n")
    (tmp_path / "dev-0/out.tsv").write_text("a:0.5 :0.5\nb:1\n:1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_interval_of_an_evaluation(challenge):
    result = evaluate(challenge, "dev-0", metric=["LogLossHashed", "WER"])
    statistics = result.scores[0].statistics
    assert result.interval(samples=50, seed=3) == interval(METRICS["LogLossHashed"], statistics, samples=50, seed=3)
    assert result.interval().samples is None
    errors = result.scores[1].interval(samples=50, seed=3)
    assert errors.low < result.scores[1].value < errors.high


FEW = "geval: note: 3 lines are few: if rare lines have far greater losses, an interval contains the true score "
FEW += "in about 90 % of cases, not 95 %\n"


@pytest.mark.parametrize(("words", "printed"), [
    ("-B 1", "12.70\n"), ("-B 1 -p 0", "13\n"), ("-B 100", "64±63\n"), ("-B100 -% -a LikelihoodHashed", "50±50\n"),
    ("-B 100 --seed 0 -a LogLossHashed", "3.5±3.5\n"), ("-B 100 -a LogLossHashed -p 0", "2±2\n"),
])  # fmt: skip
def test_a_number(words, printed, challenge, geval):
    assert geval("-t", "dev-0", *words.split()) == (0, printed, FEW)


@pytest.mark.parametrize("infinite", [1, 4])
def test_one_end_is_that_of_the_finite_lines(infinite):
    losses = np.random.default_rng(3).exponential(2, 100)
    losses[:infinite] = math.inf
    for name, worst in (("LogLossHashed", "high"), ("LikelihoodHashed", "low")):
        got, rest = (interval(METRICS[name], column(values)) for values in (losses, losses[infinite:]))
        best = {"high": "low", "low": "high"}[worst]
        assert getattr(got, worst) == METRICS[name].measure.worst
        assert getattr(got, best) == getattr(rest, best)


def test_a_share_has_an_interval_even_if_all_lines_are_right():
    """Wilson's: for 20 of 20, from 20 / (20 + z^2)."""
    got = interval(METRICS["Accuracy"], column(np.zeros(20)))
    assert (got.low, got.high) == (pytest.approx(20 / (20 + 1.959963984540054**2)), 1.0)
