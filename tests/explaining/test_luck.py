"""What hashing gave a score: its scores under other seeds."""

import math

import numpy as np
import pytest
from raising import refused
from scipy.stats import t
from scorers import hashed_losses

from geval_py import MalformedLineError, evaluate, score
from geval_py.explaining.luck import luck

GAZETTE = "challenges/gazette"


def test_other_seeds_are_line_numbers_further_down():
    outputs, expected = ["a:0.5 b:0.3 :0.2", "c:0.4 d:0.4 :0.2"], ["x", "c"]
    found = luck(score(outputs, expected, metric="LogLossHashed4"), seeds=30)
    wanted = [np.mean(hashed_losses(outputs, expected, 4, first_line=1 + k)) for k in range(1, 31)]
    assert found.scores == pytest.approx(wanted)
    assert (found.mean, found.sd) == pytest.approx((np.mean(wanted), np.std(wanted, ddof=1)))
    half = t.ppf(0.975, 29) * found.sd * math.sqrt(1 + 1 / 30)  # the prediction interval
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half))
    assert found.score == pytest.approx(np.mean(hashed_losses(outputs, expected, 4)))


@pytest.mark.filterwarnings("ignore:.*no guess at all would be better")
@pytest.mark.long
@pytest.mark.parametrize(("lines", "bits", "seeds"), [(100, 10, 25), (100, 6, 5), (30, 8, 25)])
def test_seeds_that_were_not_tried_are_within(lines, bits, seeds):
    """By what the legend says, 95 % of them: the first other ten, which are seeds further down."""
    rng, within = np.random.default_rng(1), []
    for _ in range(2000):
        outputs = [" ".join(f"w{word}:0.03" for word in rng.integers(5000, size=20)) + " :0.4" for _ in range(lines)]
        expected = [f"w{word}" for word in rng.integers(5000, size=lines)]
        result = luck(score(outputs, expected, metric=f"LogLossHashed{bits}"), seeds=seeds)
        others = [np.mean(hashed_losses(outputs, expected, bits, seeds + 2 + k)) for k in range(10)]
        within += [result.low <= other <= result.high for other in others]
    share = np.mean(within)
    print(f"\n{lines} lines, {bits} bits, {seeds} seeds: {share:.4f} of other seeds are within")
    assert share == pytest.approx(0.95, abs=0.01)


@pytest.mark.filterwarnings("ignore:.*lines is infinite")
def test_lines_that_a_seed_makes_infinite_are_left_out():
    found = luck(score(["a:1", "a:0.5 :0.5"], ["b", "a"], metric="LogLossHashed"), seeds=3)
    assert (found.lines, found.left_out) == (1, 1)
    assert found.score == pytest.approx(-math.log(0.5 + 0.5 / 1024))
    alone = luck(score(["a:1"], ["b"], metric="LogLossHashed"), seeds=2)
    assert (alone.lines, alone.left_out) == (0, 1)
    assert str(alone).endswith("\npredictions: without 1 line that some seeds make infinite")
    assert str(alone).splitlines()[1].split() == ["predictions", "NaN", "NaN", "[NaN,", "NaN]", "NaN", "0"]


@pytest.mark.parametrize("seeds", [-1, 1, 1001])
def test_seeds_out_of_range(seeds):
    with refused(f"the number of seeds is from 2 to 1000, not {seeds}"):
        luck(evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv"), seeds=seeds)


def test_lines_of_buckets_are_refused():
    message = "Line 2: Unexpected data [a line of buckets holds for one seed of the hash]\n"
    message += (
        "  `predictions`, line 2, column 1: luck is measured on lines of words with probabilities\n    0 0\n    ^"
    )
    with refused(message, MalformedLineError):
        luck(score(["a:1", "0 0"], ["a", "a"], metric="LogLossHashed1"))
