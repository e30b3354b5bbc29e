"""A confidence interval, from the values that a score takes on resamples of the lines.

It needs no numpy, so that whoever only shows or holds an interval starts fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from geval_py.scoring.metrics.base import NOISE

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A percentile bootstrap interval: low <= high, in the unit of the score, both possibly inf, or both NaN.

    ``samples`` is the number of resamples, ``seed`` that of their random numbers.
    """

    low: float
    high: float
    samples: int
    seed: int

    @classmethod
    def of(cls, values: Iterable[float], *, samples: int, seed: int) -> Interval:
        """Cut the values of the resamples (at least one) to the interval; rounding noise has no width.

        Resamples on which the score is not defined, NaN, are left out; where that is all of them, so are the ends.
        """
        low, high = percentile_bounds([value for value in values if not math.isnan(value)] or [math.nan])
        if math.isclose(low, high, rel_tol=NOISE):
            high = low
        return cls(low=low, high=high, samples=samples, seed=seed)

    @property
    def confidence(self) -> float:
        """How often such intervals hold the true score."""
        return CONFIDENCE

    @property
    def middle(self) -> float:
        """The centre; inf if the upper end is."""
        return self.low if self.low == self.high else self.low / 2 + self.high / 2

    @property
    def half_width(self) -> float:
        """Half the distance of the ends: 0 where they are equal, else inf if the upper end is."""
        return 0.0 if self.low == self.high else self.high / 2 - self.low / 2

    def to_dict(self) -> dict[str, Any]:
        """Give what JSON documents show; the ends may be inf."""
        return {
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "samples": self.samples,
            "seed": self.seed,
        }


def percentile_bounds(values: Iterable[float]) -> tuple[float, float]:
    """Cut floor((1 - 0.95 + 0.0001) N / 2) of N values (at least one) from each end; give the ends of what is left.

    It is GEval's cut (getConfidenceBounds), whose 0.0001 guards against rounding.

    >>> percentile_bounds(range(1000))
    (25, 974)
    """
    ordered = sorted(values)
    cut = math.floor((1 - CONFIDENCE + 0.0001) * len(ordered) / 2)
    return ordered[cut], ordered[-1 - cut]
