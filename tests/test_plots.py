"""The charts of notebooks: SVG in colours of their own, with what they show in words."""

import struct
import sys
from pathlib import Path

import pytest

from geval_py import UsageError, compare, evaluate, evaluate_all, plots, score
from geval_py.errors import MissingPackageError
from geval_py.version import installs

GAZETTE = Path(__file__).parent.parent / "challenges" / "gazette"
OF_AN_EVALUATION = "losses costs lengths frequencies tuning"


@pytest.fixture(scope="module")
def bigram():
    return evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv")


def check(chart):
    assert "var(--" not in chart.svg
    assert "PerplexityHashed" not in chart.svg
    assert "</title>" in chart.svg


@pytest.mark.parametrize("name", OF_AN_EVALUATION.split())
def test_a_chart(bigram, name):
    check(getattr(plots, name)(bigram))


def test_few_lines_are_tuned_by_force():
    few = score(["a:0.9 :0.1", "b:0.8 :0.2"], ["a", "c"], metric="PerplexityHashed")
    with pytest.raises(UsageError, match=r"or give force=…$"):
        plots.tuning(few)
    check(plots.tuning(few, force=True))


def test_a_chart_of_a_column(bigram):
    check(plots.column(bigram, "Year"))
    with pytest.raises(UsageError) as caught:
        plots.column(bigram, "FileId")
    assert str(caught.value) == (
        "the column 'FileId' does not divide the lines into parts\n  columns that divide them: Year, LeftContext, RightContext"
    )


def test_a_chart_of_a_comparison():
    evaluations = evaluate_all(GAZETTE, "dev-0")
    check(plots.comparison(evaluations))
    charts = [plots.comparison(compare(*evaluations)), plots.comparison(*evaluations), plots.comparison(evaluations)]
    assert len({chart.svg for chart in charts}) == 1


MAGIC = {"c.svg": b"<svg xmlns=", "c.PNG": b"\x89PNG\r\n\x1a\n", "c.pdf": b"%PDF-1."}


def test_the_ending_decides_what_a_chart_is_saved_as(bigram, tmp_path, monkeypatch):
    chart = plots.losses(bigram)
    for name, magic in MAGIC.items():
        chart.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert struct.unpack(">II", (tmp_path / "c.PNG").read_bytes()[16:24]) == (3 * chart.width, 3 * chart.height)
    monkeypatch.chdir(tmp_path)
    for name in ("d.gif", "d", "d.svg.gz"):
        with pytest.raises(UsageError) as caught:
            chart.save(name)
        assert str(caught.value) == f"Cannot write `{name}`: charts are saved as .svg, .png or .pdf"
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for name in ("d.png", "d.pdf"):
        with pytest.raises(MissingPackageError) as missing:
            chart.save(name)
        assert str(missing.value) == (
            f"charts are saved as PNG and PDF by vl-convert, of the extra charts: {installs('charts')}"
        )
    assert {path.name for path in tmp_path.iterdir()} == {*MAGIC}


def test_what_cannot_be_drawn():
    rests = score([":1"] * 10, ["a"] * 10, metric="PerplexityHashed")
    with pytest.raises(UsageError) as caught:
        plots.frequencies(rests)
    assert str(caught.value) == "there is no train/expected.tsv beside the test set, whose words would be counted"
