"""Charts: round values on their axes, and marks at their values."""

import math
import re
import struct
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from raising import refused

from geval_py import UsageError, compare, evaluate, evaluate_all, score
from geval_py.errors import MissingPackageError
from geval_py.explaining.calibration import Verdict
from geval_py.reports import charts
from geval_py.reports.charts import ACCENT, BAD, BarPart, ChartRow, dots, figure, percent, reliability
from geval_py.version import installs


@pytest.mark.parametrize(("make", "low", "high", "expected"), [
    (charts.round_ticks, 3.0, 3.0, [3.0]),
    (charts.round_ticks, 0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    (charts.round_ticks, -5.0, 5.0, [-4.0, -2.0, 0.0, 2.0, 4.0]),
    (charts.round_ticks, 0.0, 50.0, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]),
    (charts.round_ticks, 0.0, 51.0, [0.0, 20.0, 40.0]),
    (charts.log_ticks, 1.0, 10.0, [1.0, 2.0, 5.0, 10.0]),  # the ends are ticks
    (charts.log_ticks, 1.1, 9.9, [2.0, 5.0]),
    (charts.log_ticks, 1.0, 100.0, [1.0, 3.0, 10.0, 30.0, 100.0]),
    (charts.log_ticks, 1.0, 1e4, [1.0, 10.0, 100.0, 1e3, 1e4]),
    (charts.log_ticks, 1.0, 1e5, [1.0, 100.0, 1e4]),  # every other one
    (charts.log_ticks, 0.01, 0.1, [0.01, 0.02, 0.05, 0.1]),
])  # fmt: skip
def test_ticks(make, low, high, expected):
    assert make(low, high) == (pytest.approx(expected) if make is charts.log_ticks else expected)


@pytest.mark.parametrize(("values", "wanted", "ends", "is_logarithmic"), [
    ([2.0, 2.0], None, (1.92, 2.08), False),  # some room around equal values, by their size
    ([-0.05], None, (-0.052, -0.048), False),
    ([0.0, 0.0], None, (-1.0, 1.0), False),
    ([0.0, 100.0], None, (-4.0, 104.0), False),
    ([1.0, 7.9], None, (0.724, 8.176), False),
    ([1.0, 8.0], None, (8**-0.04, 8**1.04), True),
    ([1.0, 100.0], False, (-2.96, 103.96), False),
    ([1.0, math.inf, None, math.nan, 2.0], None, (0.96, 2.04), False),
    ([100.0, 1.0, None, 10.0, 0.0, -1.0], True, (100**-0.04, 100**1.04), True),
    ([5.0], True, (5 / 1.02, 5 * 1.02), True),
    ([None, 0.0, math.inf], True, (10**-0.04, 10**1.04), True),
    ([], False, (0.64, 10.36), False),
])  # fmt: skip
def test_the_scale_of_values(values, wanted, ends, is_logarithmic):
    scale = charts.scale_of(values, 0.0, 100.0, logarithmic=wanted)
    assert (scale.low, scale.high) == pytest.approx(ends)
    assert scale.logarithmic == is_logarithmic


WRITTEN = {  # a figure has three digits: rounding up to 100 adds no fourth; a percentage has two
    figure: {
        0.0: "0", -0.5: "−0.500", 99.94: "99.9", 99.96: "100", -99.96: "−100", 100.4: "100", 9_999_999.0: "9,999,999",
        1e7: "1.00e+07", 1e-4: "0.000100", 9e-5: "9.00e−05", math.inf: "∞", None: "–",
    },
    percent: {
        0.0: "0 %", 0.00049: "<0.1 %", 0.0005: "0.1 %", 0.02: "2 %", 0.0994: "9.9 %", 0.0995: "10 %", 0.104: "10 %",
        1.0: "100 %", None: "–",
    },
    charts.tick_text: {
        0.0: "0", -0.5: "−0.5", 100.0: "100", 1e-4: "0.0001", 9e-5: "9e−05", 9_999_999.0: "9,999,999", 1e7: "1e+07",
        -1e7: "−1e+07",
    },
}  # fmt: skip


@pytest.mark.parametrize("write", WRITTEN, ids=lambda write: write.__name__)
def test_how_figures_are_written(write):
    assert {value: write(value) for value in WRITTEN[write]} == WRITTEN[write]


@pytest.mark.parametrize(("y", "is_good"), [(0.2, True), (0.3, True), (0.4, True), (0.19, False), (0.41, False)])
def test_a_point_at_the_edge_of_the_band_is_inside(y, is_good):
    bins = [Verdict(claimed=0.3, observed=y, low=0.2, high=0.4, n=1234)]
    (circle,) = circles(reliability(bins, x_title="x", y_title="y"))
    assert circle["fill"] == (ACCENT if is_good else BAD)
    assert circle["said"].endswith("calibrated range 20 % to 40 %, of 1,234")


def circles(chart):
    found = re.findall(r"<circle ([^>]*)><title>(.*?)</title></circle>", chart.element("chart"))
    return [dict(re.findall(r'([\w-]+)="([^"]*)"', attributes)) | {"said": said} for attributes, said in found]


@pytest.mark.parametrize(("row", "colour", "has_interval"), [
    (ChartRow(label="a", value=1.0, low=0.5, high=2.0), ACCENT, True),
    (ChartRow(label="a", value=1.0, low=0.5, high=math.inf, colour="#123456"), "#123456", False),
    (ChartRow(label="a", value=math.inf), None, False),
    (ChartRow(label="a", value=1.0, low=None, high=2.0), ACCENT, False),
])  # fmt: skip
def test_what_is_infinite_is_not_drawn(row, colour, has_interval):
    chart = dots([row], title="x")
    assert [circle["fill"] for circle in circles(chart)] == ([] if colour is None else [colour])
    assert ("stroke-opacity" in chart.svg) == has_interval


def test_a_mark_lies_at_its_value():
    rows = [ChartRow(label="a", value=at, low=10.0, high=1000.0, note="x", lines=30) for at in (10.0, 100.0, 1000.0)]
    chart = dots(rows, title="perplexity", logarithmic=True)
    assert [circle["said"] for circle in circles(chart)] == ["a: 10.0, x", "a: 100, x", "a: 1,000, x"]
    left, middle, right = (float(circle["cx"]) for circle in circles(chart))
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    (tick,) = re.findall(r'<text x="([\d.]+)"[^>]*>100</text>', chart.svg)
    assert float(tick) == middle
    spans = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"[^>]* stroke-opacity', chart.svg)
    assert spans == [(f"{left:g}", f"{right:g}")] * 3


def test_all_stays_inside_of_a_chart():
    rows = [ChartRow(label="a" * 40, value=1.0, low=1e-9, high=1e9, lines=3, points=(1e-12, 1e12))] * 3
    points = [(1e-9, 5.0), (1e9, -5.0)]
    blocks = [BarPart(start=0.0, end=1.0, share=1.0, name="a", said="x")]
    for chart in (
        dots(rows, title="x", rule=1e20, logarithmic=True),
        dots(rows, title="x", write=percent),
        charts.scatter(points, x_title="x", y_title="y", width=860, best=points, rules=[(1e3, "baseline")]),
        charts.stacked_bars([("a", blocks), ("b", blocks)]),
    ):
        for name, number in re.findall(r' (x|x1|x2|cx|y|y1|y2|cy)="([^"]*)"', chart.svg):
            assert 0 <= float(number) <= (chart.width if "x" in name else chart.height)


def test_a_chart_is_saved_and_shown(tmp_path):
    chart = dots([ChartRow(label="<b>", value=1.0, note="a & b")], title="x")
    chart.save(tmp_path / "chart.svg")
    tree = ElementTree.parse(tmp_path / "chart.svg").getroot()
    assert [text.text for text in tree.iter("{http://www.w3.org/2000/svg}title")] == ["<b>: 1.00, a & b"]
    assert "<b>" in [text.text for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert chart._repr_html_() == chart.svg
    assert repr(chart) == "<Chart: 400 x 61 pixels, 3 elements>"
    with pytest.raises(UsageError, match=r"^Cannot write"):
        chart.save(tmp_path / "none" / "chart.svg")


def test_labels_of_a_sweep_are_whole_or_distinct():
    rates = ("0.1", "0.01", "0.001", "1e-4")
    names = [f"{model},lr={lr},seed={n}" for model in ("ela", "ola") for lr in rates for n in range(1, 6)]
    assert charts.unique_labels(names) == names
    longer = [f"{name},dropout=0.5" for name in names]
    assert len(set(charts.unique_labels(longer))) == len(longer)
    assert charts.unique_labels(["same", "same"]) == ["same", "same 2"]
    chart = dots([ChartRow(label=name, value=1.0) for name in names], title="x")
    assert ">ela,lr=0.001,seed=2<" in "".join(chart.parts)


GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


@pytest.fixture(scope="module")
def bigram():
    return evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv")


def culprits():
    words = ["bad", "good"] * 100
    lines = [f"{word}:{0.1 if word == 'bad' else 0.8} :0.1" for word in words]
    return score(lines, words, metric="PerplexityHashed").chart("culprits")


def comparison():
    return compare(evaluate_all(GAZETTE, "dev-0")).chart()


OTHERS = {"culprits": culprits, "comparison": comparison}


@pytest.mark.parametrize("name", ["spread", "costs", "length", "frequency", "Year", *OTHERS])
def test_charts_of_results_have_colours_of_their_own_and_words(bigram, name):
    chart = OTHERS[name]() if name in OTHERS else bigram.chart(name)
    assert "var(--" not in chart.svg
    assert "PerplexityHashed" not in chart.svg
    assert "</title>" in chart.svg


@pytest.mark.filterwarnings("ignore:.*infinite", "ignore:.*no guess at all would be better")
def test_a_comparison_without_a_finite_line():
    outputs = [score(["a:1 :0"] * 9, ["b"] * 9, metric="PerplexityHashed", name=name) for name in ("one", "two")]
    with refused("there is no difference to draw: no line is finite in all outputs"):
        compare(outputs).chart()


def test_a_chart_that_is_not_there(bigram):
    message = "there is no chart 'FileId' of perplexity\n"
    with refused(message + "  charts: spread, costs, length, frequency, culprits, Year, LeftContext, RightContext"):
        bigram.chart("FileId")
    for metric in ("PerplexityHashed", "Accuracy"):  # without a train, and without losses of words
        with pytest.raises(UsageError, match=r"^there is no chart 'frequency' of "):
            score(["a:1"] * 10, ["a"] * 10, metric=metric).chart("frequency")


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
        message = f"charts are saved as PNG and PDF by vl-convert, of the extra charts: {installs('charts')}"
        with refused(message, MissingPackageError):
            chart.save(name)
    assert {path.name for path in tmp_path.iterdir()} == {*MAGIC}
