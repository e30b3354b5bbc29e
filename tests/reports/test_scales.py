"""Round values on the axes of charts."""

import pytest

from geval_py.reports.axes import figure
from geval_py.reports.scales import round_ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(3.0, 3.0, [3.0]), (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-5.0, 5.0, [-4.0, -2.0, 0.0, 2.0, 4.0])],
)
def test_round_ticks(low, high, expected):
    assert round_ticks(low, high) == expected


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
