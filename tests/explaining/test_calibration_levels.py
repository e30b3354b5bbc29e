"""Calibrated outputs are found calibrated as often as 95 % ranges should, by line and by document."""

from collections import Counter

import numpy as np
import pytest

from geval_py import score
from geval_py.explaining.calibration import calibration

pytestmark = pytest.mark.filterwarnings("ignore:.*no guess at all would be better")
LISTED = 8
PARTS = ("claim", "words", "guess", "rest")
SENTENCE = "The calibrated ranges are computed by document (document)."
KINDS = {  # of outputs: the rests, and how even the masses of the words are
    "mixed": ((2, 5), 0.5), "sure": ((1, 30), 0.15), "even": ((8, 4), 2.0),
}  # fmt: skip
EQUAL, UNEQUAL = [15] * 20, [60, 50, 40, 30, 20] + [7] * 15


def drawn(rng, sizes, alike, kind="mixed"):
    """A calibrated output, its answers, and the documents of its lines.

    Each answer is drawn from its line's own distribution: by its own random number or, with the probability
    ``alike``, by that of its document. So the probabilities are right, but the lines of a document are right, or
    wrong, together.
    """
    documents = np.repeat(np.arange(len(sizes)), sizes)
    lines, (rest, shape) = len(documents), KINDS[kind]
    numbers = np.where(rng.random(lines) < alike, rng.random(len(sizes))[documents], rng.random(lines))
    rests = rng.beta(*rest, (lines, 1))
    powers = np.sort(rng.gamma(shape, size=(lines, LISTED)) + 1e-4)[:, ::-1]
    masses = powers / powers.sum(axis=1, keepdims=True) * (1 - rests)
    places = (numbers[:, np.newaxis] > np.cumsum(masses, axis=1)).sum(axis=1)
    outputs, answers = [], []
    for row, rest, place in zip(masses.tolist(), rests[:, 0].tolist(), places.tolist(), strict=True):
        words = rng.choice(5000, LISTED, replace=False)
        outputs.append(" ".join(f"w{word}:{mass!r}" for word, mass in zip(words, row, strict=True)) + f" :{rest!r}")
        answers.append(f"w{words[place]}" if place < LISTED else f"other{rng.integers(10**9)}")
    return outputs, answers, documents


def outside(result):
    return [part for part in PARTS if not getattr(result, part).is_calibrated]


def levels(trials, sizes, alike, kind, *, by_document):
    rng, counts, bins = np.random.default_rng(1), Counter(), []
    for _ in range(trials):
        outputs, answers, documents = drawn(rng, sizes, alike, kind)
        evaluation = score(outputs, answers, metric="PerplexityHashed")
        result = calibration(evaluation, documents=documents if by_document else False)
        counts.update(outside(result))
        bins += [not row.is_calibrated for part in result.parts().values() for row in part.bins]
    shares = {part: counts[part] / trials for part in PARTS}
    print(
        f"\n{kind}, {len(sizes)} documents, {sum(sizes)} lines, alike {alike}: outside {shares}, bins {np.mean(bins):.3f}"
    )
    return shares, float(np.mean(bins))


@pytest.mark.long
@pytest.mark.parametrize("lines", [30, 100, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_the_level_by_line(lines, kind):
    shares, bins = levels(2000, [1] * lines, 0.0, kind, by_document=False)
    assert max(shares.values()) <= 0.07
    assert min(shares.values()) >= 0.02
    assert bins <= 0.07


@pytest.mark.long
@pytest.mark.parametrize(("sizes", "alike", "kind"), [
    (EQUAL, 0.4, "mixed"), (EQUAL, 0.0, "mixed"), (UNEQUAL, 0.4, "mixed"), ([10] * 10, 0.2, "mixed"),
    ([10] * 40, 0.4, "mixed"), (EQUAL, 0.2, "sure"), (EQUAL, 0.2, "even"),
])  # fmt: skip
def test_the_level_by_document(sizes, alike, kind):
    shares, bins = levels(500, sizes, alike, kind, by_document=True)
    assert max(shares.values()) <= 0.07
    assert bins <= 0.07


def test_an_output_that_is_too_sure_is_found_out():
    outputs, answers, documents = drawn(np.random.default_rng(2), [15] * 40, 0.3)
    swapped = [answer if n % 3 else "other" for n, answer in enumerate(answers)]
    evaluation = score(outputs, swapped, metric="PerplexityHashed")
    result = calibration(evaluation, documents=documents)
    assert outside(result) == list(PARTS)
    assert SENTENCE in list(result.sentences())
    assert SENTENCE not in list(calibration(evaluation, documents=False).sentences())
