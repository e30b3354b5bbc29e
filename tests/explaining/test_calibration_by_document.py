"""Calibrated outputs of documents whose lines are alike are found calibrated, as often as 95 % ranges should."""

from collections import Counter

import numpy as np
import pytest

from geval_py import score
from geval_py.explaining.calibration import calibration
from geval_py.reports.panels import calibration_panels

LISTED = 8
PARTS = ("words", "guess", "rest", "sets")
SENTENCE = "The interval and the calibrated ranges are computed by document (document)."


def drawn(rng, sizes, alike):
    """A calibrated output, its answers, and the documents of its lines.

    Each answer is drawn from its line's own distribution: by its own random number or, with the probability
    ``alike``, by that of its document. So the probabilities are right, but the lines of a document are right, or
    wrong, together.
    """
    documents = np.repeat(np.arange(len(sizes)), sizes)
    lines = len(documents)
    numbers = np.where(rng.random(lines) < alike, rng.random(len(sizes))[documents], rng.random(lines))
    rests = rng.beta(2, 5, (lines, 1))
    powers = np.sort(rng.gamma(0.5, size=(lines, LISTED)) + 1e-4)[:, ::-1]
    masses = powers / powers.sum(axis=1, keepdims=True) * (1 - rests)
    places = (numbers[:, np.newaxis] > np.cumsum(masses, axis=1)).sum(axis=1)
    outputs, answers = [], []
    for row, rest, place in zip(masses.tolist(), rests[:, 0].tolist(), places.tolist(), strict=True):
        words = rng.choice(5000, LISTED, replace=False)
        outputs.append(" ".join(f"w{word}:{mass!r}" for word, mass in zip(words, row, strict=True)) + f" :{rest!r}")
        answers.append(f"w{words[place]}" if place < LISTED else f"other{rng.integers(10**9)}")
    return outputs, answers, documents


def outside(calibrated):
    """Return the parts that are outside their calibrated range; of the sets, those of 50 %."""
    sets = calibrated.sets.low[0] <= calibrated.sets.y[0] <= calibrated.sets.high[0]
    honest = {part: getattr(calibrated, part).is_honest for part in PARTS[:-1]} | {"sets": sets}
    return [part for part, is_honest in honest.items() if not is_honest]


@pytest.mark.parametrize(
    ("sizes", "alike"), [([15] * 20, 0.4), ([15] * 20, 0.0), ([60, 50, 40, 30, 20] + [7] * 15, 0.4)],
    ids=["alike", "independent", "unequal"],
)  # fmt: skip
@pytest.mark.parametrize("trials", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_calibrated_outputs_are_found_calibrated(sizes, alike, trials):
    rng = np.random.default_rng(1)
    by_document, by_line, bins = Counter(), Counter(), []
    for _ in range(trials):
        outputs, answers, documents = drawn(rng, sizes, alike)
        evaluation = score(outputs, answers, metric="PerplexityHashed")
        result = calibration(evaluation, documents=documents)
        by_document.update(outside(result))
        by_line.update(outside(calibration(evaluation, documents=False)))
        rows = [row for part in PARTS[:-1] for row in getattr(result, part).bins.to_dict()]
        bins.append(np.mean([not row["low"] <= row["y"] <= row["high"] for row in rows]))
    shares = {part: (by_document[part] / trials, by_line[part] / trials) for part in PARTS}
    print(f"\noutside by document, by line: {shares}; bins by document {np.mean(bins):.3f}")
    few = 0.065 if trials > 100 else 0.1
    assert max(share for share, _ in shares.values()) <= few
    assert np.mean(bins) <= 0.065
    if alike:
        assert max(share for _, share in shares.values()) > 2 * few
        assert SENTENCE in str(result).splitlines()
        assert SENTENCE not in str(calibration(evaluation, documents=False))


def test_an_output_that_is_too_sure_is_found_out():
    outputs, answers, documents = drawn(np.random.default_rng(2), [15] * 40, 0.3)
    swapped = [answer if n % 3 else "other" for n, answer in enumerate(answers)]
    result = calibration(score(outputs, swapped, metric="PerplexityHashed"), documents=documents)
    assert outside(result) == list(PARTS)
    panels = calibration_panels(result).values()
    assert ["It is computed by document." in panel.method for panel in panels] == [True] * 3


def test_documents_of_one_line_change_nothing():
    outputs, answers, _ = drawn(np.random.default_rng(3), [1] * 60, 0.0)
    evaluation = score(outputs, answers, metric="PerplexityHashed")
    by_document, by_line = (calibration(evaluation, documents=by) for by in (range(60), False))
    assert [getattr(by_document, part) for part in PARTS] == [getattr(by_line, part) for part in PARTS]
    assert by_document.documents is None
