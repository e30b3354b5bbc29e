"""What calibration and luck promise, on simulated outputs. Run by ``scripts/test --long``."""

import numpy as np
import pytest

from geval_py.scoring.kernel.native import hashed_losses, line_profiles
from geval_py.scoring.kernel.profile import COLUMNS

pytestmark = pytest.mark.long

TRIALS, LINES = 2000, 300
SEEDS = 1000


def simulated(rng, lines, concentration):
    """Outputs of twenty words and a rest, and words drawn from them: strangers, where the rest is drawn."""
    masses = rng.dirichlet([concentration] * 21, lines)
    drawn = (masses.cumsum(axis=1) > rng.random((lines, 1))).argmax(axis=1)
    words = [*(f"w{n}" for n in range(20)), ""]
    outputs = [" ".join(f"{word}:{mass!r}" for word, mass in zip(words, row, strict=True)) for row in masses.tolist()]
    return outputs, [words[n] or f"stranger{line}" for line, n in enumerate(drawn.tolist())]


def block(lines):
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize("concentration", [0.3, 1.0])
def test_the_gap_of_honest_outputs_is_significant_as_often_as_it_should_be(concentration):
    """Independent of geval_py.explaining: the losses and entropies alone, and z by hand."""
    rng = np.random.default_rng(1)
    outputs, expected = simulated(rng, 100_000, concentration)
    columns, _ = line_profiles(block(outputs), block(expected), 10, 1, 0)
    gaps = np.subtract(columns[COLUMNS.index("loss")], columns[COLUMNS.index("entropy")])
    rejected = 0
    for _ in range(TRIALS):
        of = rng.choice(gaps, LINES)
        rejected += abs(of.mean() / (of.std(ddof=1) / np.sqrt(LINES))) > 1.96
    bias = gaps.mean() / (gaps.std() / np.sqrt(len(gaps)))
    print(f"\n{TRIALS} trials of {LINES} honest lines: {rejected / TRIALS:.2%} rejected; all lines: z = {bias:.2f}")
    assert abs(bias) < 3
    assert 0.04 <= rejected / TRIALS <= 0.065


@pytest.mark.parametrize("bits", [4, 6, 8, 10, 12])
def test_the_spread_over_seeds_by_formula(bits):
    """Scores of the same lines further down, within 10 %: the standard error of an sd of 1000 is 2 %."""
    outputs, expected = simulated(np.random.default_rng(2), 2000, 0.3)
    lines = block(outputs), block(expected)
    columns, _ = line_profiles(*lines, bits, 1, 0)
    means, variances = (np.array(columns[COLUMNS.index(name)]) for name in ("seed_mean", "seed_variance"))
    scores = [np.mean(hashed_losses(*lines, bits, 1 + 7919 * seed)) for seed in range(1, SEEDS + 1)]
    sd = np.sqrt(variances.sum()) / len(variances)
    print(f"\n{bits} bits: sd {np.std(scores, ddof=1):.5f} over {SEEDS} seeds, {sd:.5f} by formula;")
    print(f"  mean {np.mean(scores):.5f} and {means.mean():.5f}")
    assert sd == pytest.approx(np.std(scores, ddof=1), rel=0.1)
    assert means.mean() == pytest.approx(np.mean(scores), abs=sd / 2)
