"""Round values on the axes of charts."""

import pytest

from geval_py.reports.scales import round_ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(3.0, 3.0, [3.0]), (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-5.0, 5.0, [-4.0, -2.0, 0.0, 2.0, 4.0])],
)
def test_round_ticks(low, high, expected):
    assert round_ticks(low, high) == expected
