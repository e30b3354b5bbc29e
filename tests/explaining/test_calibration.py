"""Whether an output means what it says: the parts, on small cases and on honest outputs."""

import json
import math

import numpy as np
import pytest

from geval_py import evaluate, score, score_file
from geval_py.errors import UnreadableFileError
from geval_py.explaining.calibration import (
    Forecasts,
    Points,
    Reliability,
    calibration,
    calibration_error,
    reliability,
)
from geval_py.tables.escapes import json_text

GAZETTE = "challenges/gazette"
WORDS = [f"w{n}" for n in range(40)]


def calibrated(outputs, expected, metrics="PerplexityHashed"):
    return calibration(score(outputs, expected, metric=metrics))


def honest_lines(lines, seed=1, power=1.0):
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


def test_an_honest_output():
    found = calibrated(*honest_lines(1500, seed=3))
    assert not found.claim.is_significant
    assert found.words.is_honest
    assert found.guess.is_honest
    assert found.rest.is_honest
    assert found.guess_error.ece < found.guess_error.honest_high
    assert found.sets.y == pytest.approx([0.5, 0.8, 0.9], abs=0.03)
    inside = [row["low"] <= row["y"] <= row["high"] for row in found.words.bins.to_dict()]
    assert sum(inside) >= len(inside) - 3


def test_an_output_that_is_too_sure():
    found = calibrated(*honest_lines(1500, power=2))
    assert found.claim.is_significant
    assert found.claim.gap > 0
    assert found.guess.found < found.guess.low
    assert found.guess_error.ece > 3 * found.guess_error.honest
    assert found.sets.y[2] < found.sets.low[2]


def test_the_claim():
    """The mean of the entropies over 2 buckets against that of the losses, by hand."""
    found = calibrated(["a:0.5 :0.5", ":1", "a:1"], ["a", "a", "a"], "LogLossHashed1").claim
    entropy = [-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)), math.log(2), 0.0]
    losses = [-math.log(0.75), math.log(2), 0.0]
    gaps = np.subtract(losses, entropy)
    assert (found.lines, found.infinite) == (3, 0)
    assert (found.entropy, found.loss) == pytest.approx((np.mean(entropy), np.mean(losses)))
    assert found.z == pytest.approx(gaps.mean() / (gaps.std(ddof=1) / math.sqrt(3)))
    assert found.perplexity == pytest.approx(math.exp(np.mean(losses)))


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_infinite_lines_are_left_out_of_the_claim():
    found = calibrated(["a:1", "a:0.5 :0.5"], ["b", "a"])
    assert (found.claim.lines, found.claim.infinite, found.claim.z) == (1, 1, None)
    finite = calibrated(["a:0.5 :0.5"], ["a"]).claim
    assert found.claim.entropy == pytest.approx(finite.entropy, rel=1e-3)  # the line's number seeds its hash
    assert found.claim.gap == found.claim.loss - found.claim.entropy
    assert found.sets.y[0] == pytest.approx((0 + 1) / 2)
    none = calibrated(["a:1"], ["b"])
    assert (none.claim.lines, none.claim.loss, none.claim.z) == (0, math.inf, None)
    assert str(none).splitlines()[2] == (
        "The loss of every line is infinite, so the claimed perplexity cannot be checked."
    )


def test_lines_without_words():
    found = calibrated([":1", ":1"], ["a", "b"])
    assert (found.words, found.guess, found.rest, found.guess_error) == (None,) * 4
    assert found.sets.y == pytest.approx([0.5, 0.8, 0.9])
    assert found.sets_of_guesses is None


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better")
def test_sets_with_and_without_lines_that_list_no_words():
    """Those reach each level whatever the word is, and would hide that the guesses are wrong."""
    found = calibrated([":1", ":1", "a:0.9 :0.1", "b:0.9 :0.1"], ["a", "b", "c", "c"])
    with_guess = found.sets_of_guesses
    assert (found.sets.n, with_guess.n) == ([4] * 3, [2] * 3)
    assert with_guess.y[:2] == [0, 0]
    assert found.sets.y[:2] == pytest.approx([0.25, 0.4])
    assert (
        "A line that lists no words reaches every level. The sets hold the word on 0.0, 0.0 and 0.0 % of the 2 other lines."
    ) in list(found.sentences())
    assert "the smallest sets, on lines with a guess" in str(found)
    assert calibrated(["a:0.9 :0.1"], ["c"]).sets_of_guesses is None


def test_lines_of_buckets():
    found = calibrated(["-1 -1", "-0.5 -1"], ["a", "b"], "LogLossHashed1")
    assert (found.vectors, found.sets, found.words) == (2, None, None)
    assert found.claim.entropy > 0.6
    assert "What follows leaves out 2 lines of buckets, which list no words.\n" in str(found)


def test_flags_hold():
    """The text is lower-cased, as for scoring, and only some lines are looked at."""
    outputs, expected = ["A:0.5 :0.5", "b:0.5 :0.5"], ["a", "c"]
    found = calibrated(outputs, expected, "LogLossHashed:lf<exp:a>")
    assert (found.lines, found.guess.n, found.guess.found) == (1, 1, 1.0)


def test_the_loss_is_the_score():
    evaluation = evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv")
    found = calibration(evaluation)
    assert found.claim.perplexity == pytest.approx(evaluation.score, rel=1e-12)
    assert found.signature == str(evaluation.signature)
    assert calibration(evaluation) == found


def test_frames_and_documents():
    found = calibration(evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv"))
    for part in (found.words, found.guess, found.rest, found.sets):
        frame = part.to_frame()
        assert list(frame) == ["x", "y", "low", "high", "n"]
        assert frame["x"].is_monotonic_increasing
        assert (frame["low"] <= frame["high"]).all()
    document = json.loads(json_text(found.to_dict()))
    assert document["guess"]["bins"][0].keys() == {"x", "y", "low", "high", "n"}
    assert sum(row["n"] for row in document["guess"]["bins"]) == found.guess.n == 212


def test_bins_have_as_many_things_and_keep_equal_probabilities_together():
    p = np.array([0.1] * 10 + [0.1 + 1e-14] * 10 + [0.2] * 5 + [0.9] * 25)
    bins = reliability(*Forecasts(p, np.zeros(50)).bin_sums).bins
    assert bins.x == pytest.approx([0.1, 0.2, 0.9])
    assert (bins.n, bins.y) == ([20, 5, 25], [0, 0, 0])


def test_calibration_error_by_hand():
    """Two bins, 0.2 and 0.8 with shares 0.5 and 0.5: ECE 0.3, and the mean square less its chance."""
    p, y = np.repeat([0.2, 0.8], 10), np.tile([0.0, 1.0], 10)
    found = calibration_error(Forecasts(p, y))
    assert found.ece == pytest.approx(0.3)
    assert found.debiased == pytest.approx(math.sqrt(0.3**2 - 0.5 * 0.5 / 9))
    assert 0 < found.honest < found.honest_high < 0.3


def test_one_line_has_no_debiased_error():
    assert calibration_error(Forecasts(np.array([0.3]), np.array([1.0]))).debiased == 0


def test_honest_draws_by_hand():
    """What is certain happens, what is impossible does not; of 4,000 things, about as many come true as said."""
    forecasts = Forecasts(np.repeat([0.0, 0.25, 1.0], 4000), np.zeros(12_000))
    draws = np.array(list(forecasts.draws()))
    assert (draws.shape, set(draws[:, 0]), set(draws[:, 2])) == ((200, 3), {0}, {4000})
    assert draws[:, 1].mean() == pytest.approx(1000, abs=4 * math.sqrt(4000 * 0.25 * 0.75 / 200))
    assert draws[:, 1].std() == pytest.approx(math.sqrt(4000 * 0.25 * 0.75), rel=0.2)
    assert (draws == list(forecasts.draws())).all()


@pytest.mark.parametrize("missing", ["out", "expected"])
@pytest.mark.parametrize("kept", [1 << 20, 0])
def test_a_file_that_went_away_meanwhile_is_named_unless_it_was_kept(kept, missing, tmp_path, monkeypatch):
    monkeypatch.setattr("geval_py.reading.files.MAX_KEPT_BYTES", kept)
    for name, line in (("out", "a:0.5 :0.5"), ("expected", "a")):
        (tmp_path / f"{name}.tsv").write_text(f"{line}\n")
    evaluation = score_file(tmp_path / "out.tsv", tmp_path / "expected.tsv", metric="PerplexityHashed")
    (tmp_path / f"{missing}.tsv").unlink()
    if kept:
        assert calibration(evaluation).claim.perplexity == pytest.approx(evaluation.score)
        return
    with pytest.raises(UnreadableFileError) as caught:
        calibration(evaluation)
    assert str(caught.value) == f"Cannot read `{tmp_path}/{missing}.tsv`: No such file or directory"


@pytest.mark.parametrize(
    ("found", "is_honest"), [(0.2, True), (0.4, True), (0.3, True), (0.19999, False), (0.40001, False)]
)
def test_a_share_at_an_end_of_the_band_is_honest(found, is_honest):
    bins = Points(x=[], y=[], low=[], high=[], n=[])
    of = Reliability(n=9, claimed=0.3, found=found, low=0.2, high=0.4, bins=bins)
    assert of.is_honest == is_honest


def test_honest_hits_are_as_many_as_equal_probabilities_say():
    """Single things are drawn otherwise than several of one probability."""
    forecasts = Forecasts(np.repeat([0.2, 0.5, 0.8], [1, 2, 3]), np.zeros(6))
    hits = np.array(list(forecasts.draws()))
    assert hits.mean(axis=0) == pytest.approx([0.2, 1.0, 2.4], abs=0.15)
    assert hits.max(axis=0).tolist() == [1, 2, 3]
