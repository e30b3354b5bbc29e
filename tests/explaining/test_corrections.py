"""Corrections of p-values for their number: against scipy, and by their definitions."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geval_py.explaining.significance import benjamini_hochberg, holm

PROPERTY = settings(deadline=None, derandomize=True)
P_VALUES = st.lists(st.floats(0, 1), max_size=12)


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([], []), ([0.2], [0.2]), ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]), ([0.5, 0.5], [1.0, 1.0]),
        ([0.9, 0.001], [0.9, 0.002]), ([0.01, 0.011, 0.012], [0.03, 0.03, 0.03]),
    ],
)  # fmt: skip
def test_holm(p_values, corrected):
    assert holm(p_values) == pytest.approx(corrected)


@PROPERTY
@given(P_VALUES.filter(len))
@example([0.01, 0.04, 0.03, 0.005])
@example([0.5, 0.5, 0.5])
@example([0.0, 1.0, 1e-300])
def test_benjamini_hochberg_is_that_of_scipy(p_values):
    corrected = benjamini_hochberg(np.array(p_values))
    assert corrected == pytest.approx(scipy.stats.false_discovery_control(p_values, method="bh"), rel=1e-14)
