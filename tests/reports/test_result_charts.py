"""The charts of results: SVG in colours of their own, with what they show in words."""

import struct
import sys
from pathlib import Path

import pytest
from raising import refused

from geval_py import UsageError, compare, evaluate, evaluate_all, score
from geval_py.errors import MissingPackageError
from geval_py.version import installs

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


@pytest.fixture(scope="module")
def bigram():
    return evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv")


def check(chart):
    assert "var(--" not in chart.svg
    assert "PerplexityHashed" not in chart.svg
    assert "</title>" in chart.svg


@pytest.mark.parametrize("name", ["spread", "costs", "length", "frequency", "Year"])
def test_a_chart_of_an_evaluation(bigram, name):
    check(bigram.chart(name))


def test_a_chart_of_the_worst_features():
    words = ["bad", "good"] * 100
    check(score([f"{word}:{0.1 if word == 'bad' else 0.8} :0.1" for word in words], words, metric="PerplexityHashed")
          .chart("culprits"))  # fmt: skip


def test_a_chart_of_a_comparison():
    outputs = evaluate_all(GAZETTE, "dev-0")
    check(compare(outputs).chart())


@pytest.mark.filterwarnings("ignore:.*infinite", "ignore:.*no guess at all would be better")
def test_a_comparison_without_a_finite_line():
    outputs = [score(["a:1 :0"] * 9, ["b"] * 9, metric="PerplexityHashed", name=name) for name in ("one", "two")]
    with refused("there is no difference to draw: no line is finite in all outputs"):
        compare(outputs).chart()


def test_a_chart_that_is_not_there(bigram):
    with refused(
        "there is no chart 'FileId' of perplexity\n"
        "  charts: spread, costs, length, frequency, culprits, Year, LeftContext, RightContext"
    ):
        bigram.chart("FileId")
    for metric in ("PerplexityHashed", "Accuracy"):  # without a train, and without losses of words
        with pytest.raises(UsageError, match=r"^there is no chart 'frequency' of "):
            score([":1"] * 10, ["a"] * 10, metric=metric).chart("frequency")


MAGIC = {"c.svg": b"<svg xmlns=", "c.PNG": b"\x89PNG\r\n\x1a\n", "c.pdf": b"%PDF-1."}


def test_the_ending_decides_what_a_chart_is_saved_as(bigram, tmp_path, monkeypatch):
    chart = bigram.chart()
    for name, magic in MAGIC.items():
        chart.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert struct.unpack(">II", (tmp_path / "c.PNG").read_bytes()[16:24]) == (3 * chart.width, 3 * chart.height)
    monkeypatch.chdir(tmp_path)
    for name in ("d.gif", "d", "d.svg.gz"):
        with refused(f"Cannot write `{name}`: charts are saved as .svg, .png or .pdf"):
            chart.save(name)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for name in ("d.png", "d.pdf"):
        with refused(
            f"charts are saved as PNG and PDF by vl-convert, of the extra charts: {installs('charts')}",
            MissingPackageError,
        ):
            chart.save(name)
    assert {path.name for path in tmp_path.iterdir()} == {*MAGIC}
