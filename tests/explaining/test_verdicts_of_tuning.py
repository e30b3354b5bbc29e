"""What tuning says of a change holds on many more lines: "take it" nearly always, "probably better" mostly."""

from collections import Counter

import numpy as np
import pytest

from geval_py import evaluate
from geval_py.explaining.cross_validation import Change
from geval_py.explaining.guesses import read_guesses
from geval_py.explaining.tuning import tune
from geval_py.scoring.recipes import Parameters

LISTED = 8
FREQUENT = [f"t{n}" for n in range(40)]
UNSEEN = 20_000


@pytest.mark.parametrize(
    ("high", "taken", "verdict"),
    [(-0.01, True, "take it"), (0.01, True, "probably better"), (np.nan, True, "probably better"), (0.01, False, "leave it")],
)  # fmt: skip
def test_verdicts(high, taken, verdict):
    assert Change(mean=-0.1, low=-0.2, high=high, p_value=0.001).verdict(taken=taken) == verdict


def test_ten_numbers_by_line_need_a_smaller_p():
    tuning = tune(
        evaluate("challenges/gazette", "dev-0", output="bigram"), words=0, temperature=True, documents=False
    )
    by_line = tuning.trials[-1]
    assert by_line.names == ("by-line",)
    assert 0.01 < by_line.change.p_value < 0.05
    assert (by_line.taken, tuning.taken) == (False, ())


def write(folder, rng, lines, wrong):
    """An output that, where it is unsure, moves the share ``wrong`` too little to the rest, and its frequent words."""
    unsure = rng.random((lines, 1)) < 0.5
    powers = rng.gamma(np.where(unsure, 5.0, 0.2), size=(lines, LISTED)) + 1e-6
    rests = rng.beta(2, 8, (lines, 1))
    masses = powers / powers.sum(axis=1, keepdims=True) * (1 - rests)
    truth = masses * (1 - wrong * unsure)
    places = (rng.random((lines, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    outputs, answers = [], []
    for row, rest, place in zip(masses.tolist(), rests[:, 0].tolist(), places.tolist(), strict=True):
        words = rng.integers(10**9, size=LISTED)
        outputs.append(" ".join(f"w{word}:{mass!r}" for word, mass in zip(words, row, strict=True)) + f" :{rest!r}\n")
        other = rng.choice(FREQUENT) if rng.random() < wrong else f"other{rng.integers(10**9)}"
        answers.append(f"{f'w{words[place]}' if place < LISTED else other}\n")
    (folder / "dev-0").mkdir(exist_ok=True)
    (folder / "train").mkdir(exist_ok=True)
    (folder / "config.txt").write_text("--metric PerplexityHashed\n")
    (folder / "train/expected.tsv").write_text("".join(f"{word}\n" for word in FREQUENT))
    (folder / "dev-0/out.tsv").write_text("".join(outputs))
    (folder / "dev-0/expected.tsv").write_text("".join(answers))
    return evaluate(folder, "dev-0")


@pytest.mark.parametrize("trials", [3, pytest.param(125, marks=pytest.mark.long)])
def test_what_is_said_holds_on_other_lines(trials, tmp_path):
    """Outputs that are right, or a little, or clearly wrong, on 300 and 1,000 lines."""
    rng, right, wrong = np.random.default_rng(1), Counter(), Counter()
    frequent = dict.fromkeys(FREQUENT, 1 / len(FREQUENT))
    for share in (0.0, 0.02, 0.05, 0.2):
        unseen = read_guesses(write(tmp_path, rng, UNSEEN, share), frequent, keep_entries=False)
        for lines in (300, 1000):
            for _ in range(trials):
                loss = unseen.losses(Parameters(frequent=unseen.frequent)).mean()
                for trial in tune(write(tmp_path, rng, lines, share)).trials:
                    tuned = unseen.losses(trial.found).mean()
                    counts = right if tuned < loss or not trial.taken else wrong
                    counts[trial.change.verdict(taken=trial.taken)] += 1
                    loss = tuned if trial.taken else loss
    print(f"\nright on unseen lines: {right}; wrong: {wrong}")
    assert right["take it"] >= trials
    assert right["probably better"] >= trials
    assert wrong["take it"] <= 0.05 * (right["take it"] + wrong["take it"])
    assert wrong["probably better"] <= 0.3 * (right["probably better"] + wrong["probably better"])
