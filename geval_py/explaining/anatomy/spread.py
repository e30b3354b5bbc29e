"""How losses are spread: a histogram of them, by what became of the lines."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geval_py.explaining.anatomy.outcomes import Floats, Outcome, Outcomes

MOST_BINS = 24
_STEPS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # nats


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Losses from ``low`` up to below ``high``, in nats, of lines with one outcome: how many of them."""

    low: float
    high: float
    outcome: Outcome
    lines: int


def loss_bins(losses: Floats, outcomes: Outcomes) -> list[Bin]:
    """Count the finite losses in bins of equal and round width, at most 24; empty ones are left out."""
    finite = np.isfinite(losses)
    greatest = float(losses[finite].max(initial=0.0))
    width = next((step for step in _STEPS if greatest / step < MOST_BINS), math.ceil(greatest / MOST_BINS) or 1.0)
    places = (losses[finite] / width).astype(np.int64)
    codes = outcomes.codes[finite]
    return [
        Bin(low=place * width, high=(place + 1) * width, outcome=outcome, lines=lines)
        for outcome in Outcome
        for place, lines in enumerate(np.bincount(places[codes == outcome]).tolist())
        if lines
    ]
