"""What mixing promises on held-out lines holds on many unseen lines, of outputs whose faults are known."""

import numpy as np
import pytest

from geval_py import evaluate, improve

LISTED = 8
FREQUENT = [f"t{n}" for n in range(40)]
SIZES = (300, 1000)
LARGE_ERROR = 0.2


def write(folder, rng, lines, error):
    """Write lines and answers of an output; evaluate it.

    On half of the lines, the output is unsure. There, the share ``error`` of all answers are other words, half of them
    frequent ones of train, although the output gives their probability to the words that it lists.
    """
    unsure = rng.random((lines, 1)) < 0.5
    powers = rng.gamma(np.where(unsure, 5.0, 0.2), size=(lines, LISTED)) + 1e-6
    rests = rng.beta(2, 8, (lines, 1))
    masses = powers / powers.sum(axis=1, keepdims=True) * (1 - rests)
    places = (rng.random((lines, 1)) > np.cumsum(masses, axis=1)).sum(axis=1)
    is_error = (rng.random((lines, 1)) < error * unsure)[:, 0]
    outputs, answers = [], []
    for row, rest, place, is_other in zip(masses.tolist(), rests[:, 0].tolist(), places, is_error, strict=True):
        words = rng.integers(10**9, size=LISTED)
        outputs.append(" ".join(f"w{word}:{mass!r}" for word, mass in zip(words, row, strict=True)) + f" :{rest!r}\n")
        if is_other and rng.random() < 0.5:
            answers.append(f"{rng.choice(FREQUENT)}\n")
        elif is_other or place == LISTED:
            answers.append(f"other{rng.integers(10**9)}\n")
        else:
            answers.append(f"w{words[place]}\n")
    for name in ("dev-0", "train"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "config.txt").write_text("--metric LogLossHashed\n")
    (folder / "train/expected.tsv").write_text("".join(f"{word}\n" for word in FREQUENT))
    (folder / "dev-0/out.tsv").write_text("".join(outputs))
    (folder / "dev-0/expected.tsv").write_text("".join(answers))
    return evaluate(folder, "dev-0", output="out.tsv")


@pytest.mark.filterwarnings("ignore:.*a little worse")
@pytest.mark.long
def test_what_is_said_holds_on_unseen_lines(tmp_path):
    rng, trials, unseen_lines = np.random.default_rng(1), 50, 10_000
    for error in (0.0, 0.02, 0.05, LARGE_ERROR):
        unseen = write(tmp_path / "unseen", rng, unseen_lines, error)
        for lines in SIZES:
            changes, true_changes, taken = [], [], []
            for _ in range(trials):
                mixture = improve(write(tmp_path / "seen", rng, lines, error))
                written = mixture.apply(unseen.output.path, force=True)
                true_changes.append(evaluate(tmp_path / "unseen", "dev-0", output=written).score - unseen.score)
                changes.append(mixture.change)
                taken.append(mixture.taken)
            means, true = np.array([change.mean for change in changes]), np.array(true_changes)
            held = [change.low <= there <= change.high for change, there in zip(changes, true, strict=True)]
            sure = np.array([change.high < 0 for change in changes]) & taken
            print(
                f"\nerror {error}, {lines} lines: held out {means.mean():.4f}, unseen {true.mean():.4f}, interval holds "
                f"{np.mean(held):.0%}, take it {sure.mean():.0%}, probably better {np.mean(taken) - sure.mean():.0%}, "
                f"taken and worse {(taken & (true > 0)).mean():.0%}"
            )
            if not error:
                assert np.sum(taken) <= 0.05 * trials
            spread = np.hypot(means.std(ddof=1), true.std(ddof=1)) / np.sqrt(trials)
            # Weights of all lines are a little better than those of nine tenths; and the unseen lines are a sample, too.
            assert abs(means.mean() - true.mean()) < 4 * spread + 0.05 * abs(true.mean()) + 0.5 / unseen_lines**0.5
            if error == LARGE_ERROR:
                assert all(taken)
                assert (true < 0).all()
                assert np.mean(held) >= 0.85 - 1.5 / np.sqrt(trials)
            assert np.sum(sure & (true > 0)) <= 0.02 * trials
