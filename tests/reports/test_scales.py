"""Round values on the axes of charts."""

import math

import pytest

from geval_py.reports.axes import figure
from geval_py.reports.scales import round_ticks, scale_of


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(3.0, 3.0, [3.0]), (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-5.0, 5.0, [-4.0, -2.0, 0.0, 2.0, 4.0])],
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
