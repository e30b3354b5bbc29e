"""Whether an output is calibrated: the parts, on small cases and on calibrated outputs."""

import math
import random

import numpy as np
import pytest
from raising import refused
from scipy.stats import binom

from geval_py import evaluate, score, score_file
from geval_py.errors import UnreadableFileError
from geval_py.explaining.calibration import calibration, hits_range

GAZETTE = "challenges/gazette"
WORDS = [f"w{n}" for n in range(40)]


def calibrated(outputs, expected, metrics="PerplexityHashed"):
    return calibration(score(outputs, expected, metric=metrics))


def calibrated_lines(lines, seed=1, power=1.0):
    """Random distributions, and words drawn from them; a power other than 1 makes them sure of too much, or too little."""
    rng = np.random.default_rng(seed)
    outputs, expected = [], []
    for _ in range(lines):
        true = rng.dirichlet([0.3] * 12)
        words = rng.choice(len(WORDS), 11, replace=False)
        said = true**power / (true**power).sum()
        drawn = rng.choice(12, p=true)
        expected.append("stranger" if drawn == 11 else WORDS[words[drawn]])
        entries = [f"{WORDS[word]}:{mass!r}" for word, mass in zip(words, said.tolist(), strict=False)]
        outputs.append(f"{' '.join(entries)} :{float(said[11])!r}")
    return outputs, expected


@pytest.mark.parametrize("lines", [300, 1500])
def test_a_calibrated_output(lines):
    result = calibrated(*calibrated_lines(lines, seed=3), ["Accuracy", "PerplexityHashed"])
    assert [part.is_calibrated for part in (result.claim, result.words, result.guess, result.rest)] == [True] * 4
    inside = [row.is_calibrated for part in result.parts().values() for row in part.bins]
    assert sum(inside) >= 0.9 * len(inside)


@pytest.mark.parametrize(("power", "sentence"), [
    (2, "It claims a perplexity of 4.61 and gets 12.4 (outside the calibrated range, 4.25 to 5.00): it is "
        "overconfident, by 0.987 nats a word."),
    (0.5, "It claims a perplexity of 13.4 and gets 10.9 (outside the calibrated range, 12.2 to 14.8): it is "
          "underconfident, by 0.208 nats a word."),
])  # fmt: skip
def test_an_output_that_is_too_sure_or_not_sure_enough(power, sentence):
    result = calibrated(*calibrated_lines(1500, power=power))
    assert not result.claim.is_calibrated
    assert (result.claim.observed > result.claim.claimed) == (power > 1)
    assert (result.guess.observed < result.guess.low) == (power > 1)
    assert next(result.sentences()) == sentence


def test_the_claim():
    """The mean of the entropies over 2 buckets against that of the losses, and the range, by hand."""
    result = calibrated(["a:0.5 :0.5", ":1", "a:1"], ["a", "a", "a"], "LogLossHashed1")
    losses, chances = np.log([4 / 3, 4]), [0.75, 0.25]
    mean = np.average(losses, weights=chances)
    variance = np.average((losses - mean) ** 2, weights=chances)  # the other lines have none
    claim = result.claim
    assert (claim.n, result.infinite) == (3, 0)
    assert (claim.claimed, claim.observed) == pytest.approx(((mean + math.log(2)) / 3, (losses[0] + math.log(2)) / 3))
    middle, half = mean + math.log(2), 1.96 * math.sqrt(variance)
    assert (claim.low, claim.high) == pytest.approx(((middle - half) / 3, (middle + half) / 3))


def test_only_hashed_metrics_are_calibrated():
    with refused("this needs a metric on hashed words, such as PerplexityHashed, not Accuracy"):
        calibrated(["a:1"], ["a"], "Accuracy")


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_infinite_lines_are_left_out_of_the_claim():
    result = calibrated(["a:1", "a:0.5 :0.5"], ["b", "a"])
    assert (result.claim.n, result.infinite) == (1, 1)
    finite = calibrated(["a:0.5 :0.5"], ["a"]).claim
    assert result.claim.claimed == pytest.approx(finite.claimed, rel=1e-3)  # the line's number seeds its hash
    assert "This leaves out 1 line with an infinite loss." in list(result.sentences())
    bad = calibrated(["a:1"], ["b"])
    assert bad.claim is None
    assert next(bad.sentences()) == "The loss of every line is infinite, so the claimed perplexity cannot be checked."


def test_lines_without_words():
    result = calibrated([":1", ":1"], ["a", "b"])
    assert (result.words, result.guess, result.rest, result.parts()) == (None, None, None, {})
    assert result.claim.is_calibrated
    assert next(result.sentences()) == (
        "It claims a perplexity of 1024 and gets 1024 (within the calibrated range, 1024 to 1024)."
    )


def test_lines_of_buckets():
    result = calibrated(["-1 -1", "-0.5 -1"], ["a", "b"], "LogLossHashed1")
    assert (result.vectors, result.words) == (2, None)
    assert result.claim.claimed > 0.6
    assert "What follows leaves out 2 lines of buckets, which list no words." in list(result.sentences())


def test_flags_hold():
    outputs, expected = ["A:0.5 :0.5", "b:0.5 :0.5"], ["a", "c"]
    result = calibrated(outputs, expected, "LogLossHashed:lf<exp:a>")
    assert (result.lines, result.guess.n, result.guess.observed) == (1, 1, 1.0)


def test_words_are_in_bins_by_their_probability():
    """At most one word of a line is right: of two in a bin, one is with their common probability."""
    result = calibrated(["a:0.3 b:0.25 c:0.05 :0.4", "a:0.3 b:0.2 :0.5"], ["b", "z"], "LogLossHashed")
    assert [(row.n, row.claimed, row.observed) for row in result.words.bins] == [
        (1, 0.05, 0), (4, pytest.approx((0.55 + 0.5) / 4), 1 / 4),
    ]  # fmt: skip
    assert (result.words.n, result.words.claimed) == (5, pytest.approx(1.1 / 5))


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better")
def test_bins_have_as_many_lines_and_keep_equal_probabilities_together():
    outputs = [f"a:{p} :{1 - p:.2f}" for p in [0.1] * 20 + [0.2] * 5 + [0.9] * 25]
    bins = calibrated(outputs, ["b"] * 50).guess.bins
    assert [row.claimed for row in bins] == pytest.approx([0.1, 0.2, 0.9])
    assert [(row.n, row.observed) for row in bins] == [(20, 0), (5, 0), (25, 0)]
    in_any_order = random.Random(1).sample(range(1, 1000), 999)
    many = calibrated([f"a:{n / 1000} :{1 - n / 1000}" for n in in_any_order], ["b"] * 999).guess.bins
    assert {row.n for row in many} <= {99, 100, 101}


@pytest.mark.parametrize(("things", "p"), [(20, 0.5), (400, 0.03), (999, 0.9), (5, 0.001)])
def test_the_range_of_equal_probabilities_is_the_binomials(things, p):
    below = binom.cdf(np.arange(-1, things), things, p) + binom.pmf(np.arange(things + 1), things, p) / 2
    inside = np.flatnonzero((below >= 0.025) & (below <= 0.975))
    assert hits_range(np.full(things, p)) == (inside[0], inside[-1])


@pytest.mark.parametrize("missing", ["out", "expected"])
@pytest.mark.parametrize("kept", [1 << 20, 0])
def test_a_file_that_went_away_meanwhile_is_named_unless_it_was_kept(kept, missing, tmp_path, monkeypatch):
    monkeypatch.setattr("geval_py.reading.files.MAX_KEPT_BYTES", kept)
    for name, line in (("out", "a:0.5 :0.5"), ("expected", "a")):
        (tmp_path / f"{name}.tsv").write_text(f"{line}\n")
    evaluation = score_file(tmp_path / "out.tsv", tmp_path / "expected.tsv", metric="PerplexityHashed")
    (tmp_path / f"{missing}.tsv").unlink()
    if kept:
        assert math.exp(calibration(evaluation).claim.observed) == pytest.approx(evaluation.score)
        return
    with refused(f"Cannot read `{tmp_path}/{missing}.tsv`: No such file or directory", UnreadableFileError):
        calibration(evaluation)


def test_charts():
    result = calibration(evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv"))
    charts = [result.chart().svg, result.chart("guess").svg, result.chart("rest").svg]
    assert ["word not listed" in svg for svg in charts] == [False, False, True]
    assert result.chart("words").svg == charts[0]
    assert all("var(--" not in svg and "</title>" in svg for svg in charts)
    with refused("there is no part 'sets': the parts are words, guess, rest"):
        result.chart("sets")
    with refused("there is nothing to draw: no line lists a word"):
        calibrated([":1"], ["a"]).chart()
