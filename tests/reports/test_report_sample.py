"""Most charts in a report on many lines are those of a sample of whole documents."""

import os
import random
from pathlib import Path

import numpy as np
import pytest

from geval_py import evaluate
from geval_py.explaining import losses
from geval_py.reading import config
from geval_py.reports import report as reports
from geval_py.reports.panels import features_panel, sections
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


def test_a_sample_says_the_same(evaluation, monkeypatch):
    whole = Report(evaluation, documents="FileId")
    assert len(whole.sample) == 4000
    assert "sample" not in features_panel(whole).method
    monkeypatch.setattr(reports, "MAX_LINES", 2000)
    monkeypatch.setattr(reports, "SAMPLED_LINES", 1000)
    sampled = Report(evaluation, documents="FileId")
    lines = sampled.sample
    assert len(lines) == 1000
    assert len(np.unique(lines // 20)) == 50
    assert sampled.features.names == whole.features.names == ["in<Left>:storm", "in<Left>:wind"]
    gains = [report.features.columns["gain"] for report in (whole, sampled)]
    assert gains[0] == pytest.approx(gains[1], abs=0.03)
    panel = features_panel(sampled)
    assert " lines of the sample with `storm` in Left were no worse" in panel.sentence
    assert panel.method.endswith(" The sample is 1,000 of the 4,000 lines, whole documents, drawn at random.")
    assert (sampled.score, sampled.interval) == (whole.score, whole.interval)


def test_calibration_of_a_sample(evaluation, monkeypatch):
    whole = Report(evaluation, documents="FileId")
    calibration = whole.calibration
    monkeypatch.setattr(reports, "MAX_LINES", 2000)
    monkeypatch.setattr(reports, "SAMPLED_LINES", 1000)
    monkeypatch.setattr(reports, "LINES_AT_ONCE", 700)
    sampled = Report(evaluation, documents="FileId")
    own = sampled.calibration
    assert own.lines == 1000
    assert own.words.n == 2000
    assert own.claim.observed == pytest.approx(sampled.values[sampled.sample].mean())  # of the same seeds
    for name in ("claimed", "observed"):
        assert getattr(own.claim, name) == pytest.approx(getattr(calibration.claim, name), abs=0.05)
    assert own.claim.is_calibrated == calibration.claim.is_calibrated
    panels = {panel.key: panel for _, of_section in sections(sampled) for panel in of_section}
    for key in ("words", "guess", "rest", "culprits"):
        assert panels[key].method.endswith(
            " The sample is 1,000 of the 4,000 lines, whole documents, drawn at random."
        )
    assert np.array_equal(sampled.outcomes.codes, whole.outcomes.codes[sampled.sample])


def test_charts_of_a_sample_say_the_same(evaluation, monkeypatch):
    whole = Report(evaluation, documents="FileId")
    monkeypatch.setattr(reports, "MAX_LINES", 2000)
    monkeypatch.setattr(reports, "SAMPLED_LINES", 1000)
    sampled = Report(evaluation, documents="FileId")
    costs = [
        losses.outcome_shares(report.values[report.sample], report.outcomes.codes) for report in (whole, sampled)
    ]
    for one, other in zip(*costs, strict=True):
        assert (one.share_of_lines, one.share_of_loss) == pytest.approx(
            (other.share_of_lines, other.share_of_loss), abs=0.05
        )
    columns = [
        {name: {row.label: row for row in report.rows(grouping)} for name, grouping in report.columns()}
        for report in (whole, sampled)
    ]
    for label, row in columns[1]["Left"].items():
        assert row.low < columns[0]["Left"][label].value < row.high
    assert [number for number, *_ in whole.examples()][:5] == [number for number, *_ in sampled.examples()][:5]


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The report on all of 210,380 lines: 20 times those of a participant for dev-0 of Challenging America.

    GEVAL_REAL_CHALLENGE names the folder of the public submission, which is not part of the project:
    github.com/KrzRac/challenging-america-word-gap-prediction.
    """
    if (submission := os.environ.get("GEVAL_REAL_CHALLENGE")) is None:
        pytest.skip("GEVAL_REAL_CHALLENGE names no folder with a real submission")
    folder = tmp_path_factory.mktemp("real")
    (folder / "config.txt").write_text("--metric PerplexityHashed\n")
    for test, copies in (("dev-0", 1), ("dev-1", 20)):
        (folder / test).mkdir()
        for name in ("expected.tsv", "out.tsv"):
            text = Path(submission, "dev-0", name).read_bytes().rstrip(b"\n") + b"\n"
            (folder / test / name).write_bytes(copies * text)
    score = evaluate(folder, "dev-0").scores[0]
    assert score.value == pytest.approx(549.9369172278606)  # GEval 1.42.2, --metric PerplexityHashed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports, "MAX_LINES", 10**9)
        report = Report(evaluate(folder, "dev-1"))
        assert len(report.sample) == 210_380
        return report, report.features, report.calibration, losses_by_outcome(report)


def losses_by_outcome(report):
    """Return the share of the lines, and that of the losses, of each outcome."""
    shares = losses.outcome_shares(report.values[report.sample], report.outcomes.codes)
    return [figure for share in shares for figure in (share.share_of_lines, share.share_of_loss)]


@pytest.mark.parametrize("draw", range(1, 5))
def test_a_sample_of_a_real_submission_says_the_same(real, monkeypatch, draw):
    report, features, calibration, by_outcome = real
    monkeypatch.setattr(config, "DEFAULT_SEED", draw)
    sampled = Report(report.evaluation)
    assert len(sampled.sample) == reports.SAMPLED_LINES
    assert sampled.score == report.score
    assert sampled.features.names[:4] == features.names[:4]
    gains = [found.columns["gain"][:4] for found in (sampled.features, features)]
    assert gains[0] == pytest.approx(gains[1], abs=0.01)
    assert losses_by_outcome(sampled) == pytest.approx(by_outcome, abs=0.01)

    own = sampled.calibration
    assert not own.claim.is_calibrated
    assert not calibration.claim.is_calibrated
    gaps = [one.claim.observed - one.claim.claimed for one in (own, calibration)]
    assert gaps[0] == pytest.approx(gaps[1], abs=0.06)  # four standard errors of the sample's
    for part in ("words", "guess", "rest"):
        one, other = getattr(own, part), getattr(calibration, part)
        assert one.is_calibrated == other.is_calibrated
        assert (one.claimed, one.observed) == pytest.approx((other.claimed, other.observed), abs=0.01)
