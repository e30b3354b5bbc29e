"""What calibration promises, on simulated outputs. Run by ``scripts/test --long``."""

import numpy as np
import pytest

from geval_py.scoring.kernel.native import line_profiles
from geval_py.scoring.kernel.profile import COLUMNS

pytestmark = pytest.mark.long

TRIALS, LINES = 2000, 300


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
