"""Corrections of p-values for their number: against scipy, and by their definitions."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geval_py.explaining.significance import benjamini_hochberg, holm

PROPERTY = settings(deadline=None, derandomize=True)
P_VALUES = st.lists(st.floats(0, 1), max_size=12)


# Holm


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
@given(P_VALUES)
def test_holm_rejects_step_by_step(p_values):
    """From the least on: reject while p < level / (number not yet rejected)."""
    rejected = set()
    for step, index in enumerate(sorted(range(len(p_values)), key=lambda n: p_values[n])):
        if p_values[index] * (len(p_values) - step) >= 0.05:
            break
        rejected.add(index)
    assert {n for n, p_value in enumerate(holm(p_values)) if p_value < 0.05} == rejected


# Benjamini and Hochberg


@PROPERTY
@given(P_VALUES.filter(len))
@example([0.01, 0.04, 0.03, 0.005])
@example([0.5, 0.5, 0.5])
@example([0.0, 1.0, 1e-300])
def test_benjamini_hochberg_is_that_of_scipy(p_values):
    corrected = benjamini_hochberg(np.array(p_values))
    assert corrected == pytest.approx(scipy.stats.false_discovery_control(p_values, method="bh"), rel=1e-14)


@PROPERTY
@given(P_VALUES, st.floats(0, 1))
def test_benjamini_hochberg_finds_step_by_step(p_values, level):
    """Of n in rising order, the finds are those up to the last whose p is at most its rank's share of the level."""
    ordered = sorted(p_values)
    finds = max((rank for rank, p in enumerate(ordered, 1) if p * (len(ordered) / rank) <= level), default=0)
    assert (np.sort(benjamini_hochberg(np.array(p_values)))[:finds] <= level).all()
    assert (benjamini_hochberg(np.array(p_values)) <= level).sum() == finds


@PROPERTY
@given(P_VALUES)
def test_q_is_never_below_p(p_values):
    corrected = benjamini_hochberg(np.array(p_values))
    assert ((corrected >= p_values) & (corrected <= 1)).all()
