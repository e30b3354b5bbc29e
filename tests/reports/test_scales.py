"""Round values on the axes of charts."""

import math

import pytest

from geval_py.reports.axes import figure
from geval_py.reports.scales import Scale, linear_domain, log_domain, log_ticks, round_ticks, scale_of


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
