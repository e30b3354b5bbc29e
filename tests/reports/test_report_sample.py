"""A report on many lines reads some of them again, drawn at random, and says so in its headings."""

import random

import numpy as np
import pytest

from geval_py import evaluate
from geval_py.reports import report as reports
from geval_py.reports.page import page
from geval_py.reports.report import Report


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    """An output whose lines with "storm" are bad, and those with "wind" half as bad, in 200 documents of 20 lines."""
    folder, chance = tmp_path_factory.mktemp("weather"), random.Random(1)
    (folder / "dev-0").mkdir()
    (folder / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
    (folder / "in-header.tsv").write_text("FileId\tLeft\tRight\n")
    rows = []
    for line in range(4000):
        word = chance.choice(["storm", "wind", "rain", "snow", "sun"])
        mass = {"storm": 0.05, "wind": 0.2}.get(word, 0.4) + 0.1 * chance.random()
        rows.append((f"doc-{line // 20}\tthe {word}\tcame", "now", f"now:{mass:.4f} then:0.2 :0.1"))
    for name, column in zip(("in", "expected", "out"), zip(*rows, strict=True), strict=True):
        (folder / f"dev-0/{name}.tsv").write_text("".join(f"{text}\n" for text in column))
    return evaluate(folder, "dev-0")


@pytest.mark.slow
def test_a_sample_says_the_same(evaluation, monkeypatch):
    whole = Report(evaluation, documents="FileId")
    assert "sample" not in page(whole, "Weather")
    monkeypatch.setattr(reports, "MAX_LINES", 1000)
    sampled = Report(evaluation, documents="FileId")
    assert (whole.sample.line_count, sampled.sample.line_count) == (4000, 1000)
    assert sampled.features.names[0] == whole.features.names[0] == "in<Left>:storm"
    gains = [report.features.columns["gain"][0] for report in (whole, sampled)]
    assert gains[0] == pytest.approx(gains[1], abs=0.05)
    assert (sampled.score, sampled.interval) == (whole.score, whole.interval)
    assert sampled.calibration == whole.calibration
    numbers = np.array(sampled.sample.line_numbers)
    assert sampled.values.tolist() == whole.values[numbers - 1].tolist()
    assert sampled.outcomes.codes.tolist() == whole.outcomes.codes[numbers - 1].tolist()
    text = page(sampled, "Weather")
    for heading in ("Where the loss comes from", "Which lines are hard", "The lines"):
        assert f"{heading}, in a random sample of 1,000 lines</h2>" in text
    assert "The 300 worst and the 100 best of 1,000 lines" in text
    assert " lines of the sample with `storm` in Left were no worse" in text
    assert {number for number, *_ in sampled.examples()} <= set(numbers.tolist())
