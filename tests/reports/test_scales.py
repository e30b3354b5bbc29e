"""Charts: round values on their axes, and marks at their values."""

import math
import re
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py.errors import UsageError
from geval_py.explaining.reliability import Points
from geval_py.reports.charts import Block, Row, bars, dots, histogram, reliability
from geval_py.reports.drawing import NOTEBOOK, PAGE, quoted
from geval_py.reports.panels import figure, p_text, percent, perplexity
from geval_py.reports.scales import Scale, linear_domain, log_domain, log_ticks, round_ticks, scale_of, tick_text


@given(st.text() | st.text("\"'&<>\n\r\t"))
def test_an_attribute_is_quoted_as_by_xml_sax(value):
    assert quoted(value) == quoteattr(value)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (3.0, 3.0, [3.0]),
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-5.0, 5.0, [-4.0, -2.0, 0.0, 2.0, 4.0]),
        (0.0, 50.0, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]),
        (0.0, 51.0, [0.0, 20.0, 40.0]),
    ],
)
def test_round_ticks(low, high, expected):
    assert round_ticks(low, high) == expected


@pytest.mark.parametrize(
    ("values", "ends", "logarithmic"),
    [
        ([2.0, 2.0], (1.92, 2.08), False),  # some room around equal values, by their size
        ([-0.05], (-0.052, -0.048), False),
        ([0.0, 0.0], (-1.0, 1.0), False),
        ([1.0, 2.0], (0.96, 2.04), False),
        ([0.0, 100.0], (-4.0, 104.0), False),
        ([1.0, 7.9], (0.724, 8.176), False),
        ([1.0, 8.0], (8**-0.04, 8**1.04), True),
        ([1.0, math.inf, math.nan, 2.0], (0.96, 2.04), False),
    ],
)
def test_the_scale_of_values(values, ends, logarithmic):
    scale = scale_of(values, 0.0, 100.0)
    assert (scale.low, scale.high) == pytest.approx(ends)
    assert scale.logarithmic == logarithmic


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([], (1.0, 10.0)),
        ([None, 0.0, -1.0, math.inf, math.nan], (1.0, 10.0)),
        ([5.0], (5 / 1.02, 5 * 1.02)),
        ([100.0, 1.0, None, 10.0, 0.0], (100**-0.06, 100**1.06)),
        ([3.0, 4.0], (3 / 1.02, 4 * 1.02)),
    ],
)
def test_the_domain_of_a_logarithmic_axis(values, ends):
    assert log_domain(values) == pytest.approx(ends)


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([], (-0.06, 1.06)),
        ([None, math.inf, math.nan], (-0.06, 1.06)),
        ([5.0], (4.0, 6.0)),
        ([100.0, None, 0.0, -100.0], (-112.0, 112.0)),
    ],
)
def test_the_domain_of_a_linear_axis(values, ends):
    assert linear_domain(values) == pytest.approx(ends)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 10.0, [1.0, 2.0, 5.0, 10.0]),  # the ends are ticks
        (1.1, 9.9, [2.0, 5.0]),
        (1.0, 100.0, [1.0, 3.0, 10.0, 30.0, 100.0]),
        (1.0, 1e4, [1.0, 10.0, 100.0, 1e3, 1e4]),
        (1.0, 1e5, [1.0, 100.0, 1e4]),  # every other one
        (0.01, 0.1, [0.01, 0.02, 0.05, 0.1]),
    ],
)
def test_log_ticks(low, high, expected):
    assert log_ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "logarithmic", "at"),
    [
        (1.0, False, 200.0),
        (100.0, False, 0.0),
        (50.5, False, 100.0),
        (0.0, False, 200.0),  # outside: at the edge
        (101.0, False, 0.0),
        (10.0, True, 100.0),
        (3.0, True, 152.3),
        (0.5, True, 200.0),
    ],
)
def test_the_pixel_of_a_value(value, logarithmic, at):
    assert Scale(low=1.0, high=100.0, start=200.0, end=0.0, logarithmic=logarithmic).at(value) == at


def test_the_pixel_of_equal_ends_is_in_the_middle():
    assert Scale(low=2.0, high=2.0, start=0.0, end=50.0).at(2.0) == 25.0


def test_no_finite_value_has_no_scale():
    assert scale_of([math.inf, math.nan], 0.0, 100.0) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.5, "−0.500"),
        (99.94, "99.9"),
        (99.96, "100"),
        (-99.96, "−100"),
        (100.4, "100"),
        (9_999_999.0, "9,999,999"),
        (1e7, "1.00e+07"),
        (1e-4, "0.000100"),
        (9e-5, "9.00e−05"),
    ],
)
def test_a_figure_has_three_digits(value, text):
    """Rounding up to 100 adds no fourth digit."""
    assert figure(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.00049, "<0.1 %"),
        (0.0005, "0.1 %"),
        (0.02, "2 %"),
        (0.0994, "9.9 %"),
        (0.0995, "10 %"),
        (0.104, "10 %"),
        (1.0, "100 %"),
    ],
)
def test_a_percentage_has_two_digits(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "<0.001"), (0.00099, "<0.001"), (0.001, "0.001"), (0.0994, "0.099"), (0.1, "0.10"), (1.0, "1.00")],
)
def test_a_small_p_has_three_decimals(p, text):
    assert p_text(p) == text


@pytest.mark.parametrize(
    ("loss", "text"), [(None, "–"), (0.0, "1.00"), (math.log(174.6), "175"), (math.inf, "∞"), (math.nan, "–")]
)
def test_a_perplexity(loss, text):
    assert perplexity(loss) == text


@pytest.mark.parametrize(("y", "is_good"), [(0.2, True), (0.3, True), (0.4, True), (0.19, False), (0.41, False)])
def test_a_point_at_the_edge_of_the_band_is_inside(y, is_good):
    points = Points(x=[0.3], y=[y], low=[0.2], high=[0.4], n=[1234])
    (circle,) = circles(reliability(points, PAGE, x_name="x", y_name="y"))
    assert circle["fill"] == (PAGE.accent if is_good else PAGE.bad)
    assert circle["said"].endswith("honest 20 % to 40 %, of 1,234")


def circles(chart):
    """The circles of a chart: their attributes, and what they say."""
    found = re.findall(r"<circle ([^>]*)><title>(.*?)</title></circle>", chart.svg)
    return [dict(re.findall(r'([\w-]+)="([^"]*)"', attributes)) | {"said": said} for attributes, said in found]


@pytest.mark.parametrize(
    ("row", "colour", "interval"),
    [
        (Row(label="a", value=1.0, low=0.5, high=2.0, said="x"), PAGE.accent, True),
        (Row(label="a", value=1.0, low=0.5, high=math.inf, said="x", colour="#123456"), "#123456", False),
        (Row(label="a", value=math.inf, said="x"), None, False),
        (Row(label="a", value=1.0, low=None, high=2.0, said="x"), PAGE.accent, False),
    ],
)
def test_what_is_infinite_is_not_drawn(row, colour, interval):
    chart = dots([row], PAGE)
    assert [circle["fill"] for circle in circles(chart)] == ([] if colour is None else [colour])
    assert ("stroke-opacity" in chart.svg) == interval


def test_a_mark_lies_at_its_value():
    """Ticks and marks use one scale: the middle of the interval from 10 to 1,000 is 100."""
    rows = [Row(label="a", value=value, low=10.0, high=1000.0, said=str(value)) for value in (10.0, 100.0, 1000.0)]
    chart = dots(rows, PAGE)
    left, middle, right = (float(circle["cx"]) for circle in circles(chart))
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    (tick,) = re.findall(r'<text x="([\d.]+)"[^>]*>100</text>', chart.svg)
    assert float(tick) == middle
    assert (
        re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"[^>]* stroke-opacity', chart.svg)
        == [(f"{left:g}", f"{right:g}")] * 3
    )


@pytest.mark.parametrize(
    ("share", "last"), [(0.0, 1.0), (0.2, 0.2), (0.21, 0.3), (1.0, 1.0), (0.004, 0.004), (0.0041, 0.006)]
)
def test_the_highest_bar_is_below_the_last_tick(share, last):
    blocks = [Block(start=0.0, end=1.0, share=share, name="a", colour="#123456", said="bar")]
    chart = histogram(blocks, [], PAGE)
    height = float(re.search(r'<rect [^>]*height="([\d.]+)"[^>]*>', chart.svg)[1])
    assert height == pytest.approx(190 * share / last, abs=0.11)


def test_all_stays_inside_of_a_chart():
    rows = [Row(label="a" * 40, value=1.0, low=1e-9, high=1e9, lines=3, said="x", points=(1e-12, 1e12))] * 3
    for chart in (dots(rows, NOTEBOOK, rule=1e20), bars(rows, NOTEBOOK, ["x"] * 3)):
        for name, number in re.findall(r' (x|x1|x2|cx|y|y1|y2|cy)="([^"]*)"', chart.svg):
            assert 0 <= float(number) <= (chart.width if "x" in name else chart.height)


def test_a_chart_is_saved_and_shown(tmp_path):
    chart = dots([Row(label="<b>", value=1.0, said="a & b")], NOTEBOOK)
    chart.save(tmp_path / "chart.svg")
    tree = ElementTree.parse(tmp_path / "chart.svg").getroot()
    assert [text.text for text in tree.iter("{http://www.w3.org/2000/svg}title")] == ["a & b"]
    assert "<b>" in [text.text for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert chart._repr_html_() == chart.svg
    assert repr(chart) == "<Chart: 400 x 61 pixels, 3 elements>"
    with pytest.raises(UsageError, match=r"^Cannot write"):
        chart.save(tmp_path / "none" / "chart.svg")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.5, "−0.5"),
        (100.0, "100"),
        (1e-4, "0.0001"),
        (9e-5, "9e−05"),
        (9_999_999.0, "9,999,999"),
        (1e7, "1e+07"),
        (-1e7, "−1e+07"),
    ],
)
def test_the_text_of_a_tick(value, text):
    assert tick_text(value) == text
