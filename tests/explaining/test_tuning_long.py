"""Tuning holds what it promises on lines that are drawn from known distributions. Run by ``scripts/test --long``."""

import numpy as np
import pytest

from geval_py import evaluate, score
from geval_py.explaining.mixing import mix
from geval_py.explaining.tuning import tune

pytestmark = pytest.mark.long

VOCABULARY = 5_000
LISTED = 12
TRIALS = 200


def masses(rng, lines, spread=1.5):
    """Distributions over the listed words of each line, and their rests."""
    powers = np.exp(spread * rng.normal(size=(lines, LISTED)))
    rests = rng.beta(2, 8, size=(lines, 1))
    return powers / powers.sum(axis=1, keepdims=True) * (1 - rests), rests


def draw(rng, words, probabilities, rests):
    """An answer a line: a listed word, by its mass, or any other."""
    cumulated = np.cumsum(np.hstack([probabilities, rests]), axis=1)
    places = (rng.random((len(words), 1)) * cumulated[:, -1:] > cumulated).sum(axis=1)
    return [
        f"w{row[place]}" if place < LISTED else f"other{rng.integers(10**9)}"
        for row, place in zip(words, places, strict=True)
    ]


def lines(words, probabilities, rests):
    return [
        " ".join(f"w{word}:{mass!r}" for word, mass in zip(row, of.tolist(), strict=True)) + f" :{rest!r}"
        for row, of, rest in zip(words, probabilities, rests[:, 0].tolist(), strict=True)
    ]


def scored(outputs, answers):
    return score(outputs, answers, metric="PerplexityHashed")


def listed(rng, lines):
    return np.array([rng.choice(VOCABULARY, LISTED, replace=False) for _ in range(lines)])


def test_useless_tunings_are_left(tmp_path):
    """Of outputs that are right as they are, at most 5 % are tuned."""
    rng = np.random.default_rng(1)
    for folder in ("train", "dev-0"):
        (tmp_path / folder).mkdir()
    (tmp_path / "train/expected.tsv").write_text("".join(f"t{n % 40}\n" for n in range(1000)))
    taken = useful = 0
    for _ in range(TRIALS):
        words = listed(rng, 300)
        probabilities, rests = masses(rng, 300)
        outputs, answers = lines(words, probabilities, rests), draw(rng, words, probabilities, rests)
        for name, texts in (("out", outputs), ("expected", answers)):
            (tmp_path / f"dev-0/{name}.tsv").write_text("".join(f"{line}\n" for line in texts))
        tuning = tune(evaluate(tmp_path, "dev-0", metric="PerplexityHashed"), temperature=True)
        taken += bool(tuning.taken)
        useful += any(trial.score < tuning.score for trial in tuning.trials)
    print(f"\n{TRIALS} outputs right as they are: {taken} tuned; by the mean alone {useful}")
    assert taken <= 0.05 * TRIALS
    assert useful > taken


def check_recovered(found, value):
    mean, deviation = np.mean(found), np.std(found, ddof=1)
    print(f"\n{value}: found {mean:.4f}, standard deviation {deviation:.4f}")
    assert abs(mean - value) < 3 * deviation / np.sqrt(len(found))


@pytest.mark.parametrize("temperature", [2.0, 0.5, 1.5])
def test_the_temperature_is_recovered(temperature):
    rng = np.random.default_rng(2)
    found = []
    for _ in range(12):
        words = listed(rng, 5_000)
        probabilities, rests = masses(rng, 5_000)
        answers = draw(rng, words, probabilities, rests)
        powers = probabilities**temperature
        sharp = powers / powers.sum(axis=1, keepdims=True) * (1 - rests)
        tuning = tune(scored(lines(words, sharp, rests), answers), temperature=True)
        assert "temperature" in tuning.taken
        found.append(tuning.trials[0].found.temperature)
    check_recovered(found, temperature)


def test_lambda_is_recovered():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(12):
        words = listed(rng, 5_000)
        probabilities, rests = masses(rng, 5_000)
        answers = draw(rng, words, 0.8 * probabilities, 0.8 * rests + 0.2)
        tuning = tune(scored(lines(words, probabilities, rests), answers))
        assert tuning.taken == ("lambda",)
        found.append(tuning.parameters.lambda_)
    check_recovered(found, 0.2)


def test_the_weights_are_recovered():
    rng = np.random.default_rng(4)
    found = []
    for _ in range(12):
        words = listed(rng, 5_000)
        parts = [masses(rng, 5_000) for _ in range(2)]
        mixed = [0.3 * one + 0.7 * other for one, other in zip(*parts, strict=True)]
        answers = draw(rng, words, *mixed)
        mixture = mix([scored(lines(words, *part), answers) for part in parts])
        assert mixture.taken
        found.append(mixture.components[0].weight)
    check_recovered(found, 0.3)
