"""A confidence interval, from the values that a score takes on resamples, or from the spread of its documents.

It needs no numpy, so that whoever only shows or holds an interval starts fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from geval_py.explaining.statistics.distributions import NORMAL_QUANTILE, normal_cdf, t_quantile
from geval_py.scoring.metrics.base import NOISE

CONFIDENCE = 0.95
GEVAL_TAIL = (1 - CONFIDENCE + 0.0001) / 2  # the share that GEval cuts from each end; 0.0001 guards against rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A 95 % interval: low <= high, in the unit of the score, both possibly inf, or both NaN.

    ``samples`` is the number of resamples, ``seed`` that of their random numbers; both are None where nothing was
    drawn. ``documents`` is the number of documents that it is by, None for one by lines.
    """

    low: float
    high: float
    samples: int | None = None
    seed: int | None = None
    documents: int | None = None

    @classmethod
    def of(
        cls,
        values: Iterable[float],
        *,
        samples: int,
        seed: int,
        tail: float = GEVAL_TAIL,
        documents: int | None = None,
    ) -> Interval:
        """Cut the values of the resamples (at least one) to the interval, by a ``tail`` at each end.

        Rounding noise has no width. Resamples on which the score is not defined, NaN, are left out; where that is all
        of them, so are the ends.
        """
        low, high = percentile_bounds([value for value in values if not math.isnan(value)] or [math.nan], tail)
        return cls(low=low, high=_without_noise(low, high), samples=samples, seed=seed, documents=documents)

    @classmethod
    def between(cls, low: float, high: float, *, documents: int) -> Interval:
        """Make one that was computed; rounding noise has no width."""
        return cls(low=low, high=_without_noise(low, high), documents=documents)

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
        """Give what JSON documents show, the number of documents where it is by them; the ends may be inf."""
        shown = {
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "samples": self.samples,
            "seed": self.seed,
        }
        return shown if self.documents is None else shown | {"documents": self.documents}


def _without_noise(low: float, high: float) -> float:
    return low if math.isclose(low, high, rel_tol=NOISE) else high


def expansion(units: int) -> float:
    """Give how much wider the spread of resamples of so many units (two at least) should be: 1 of many.

    Resamples vary too little, by the square root of (n - 1) / n, and know nothing of how uncertain their spread is.
    """
    return math.sqrt(units / (units - 1)) * t_quantile(units - 1) / NORMAL_QUANTILE


def expanded_tail(units: int) -> float:
    """Give the share to cut from each end of the means of resamples of so many lines, or documents (at least one).

    Of few, less is cut: Phi(-sqrt(n / (n - 1)) t), where t is the quantile of Student's with n - 1 degrees of freedom
    (Hesterberg, "What teachers should know about the bootstrap", 2015, section 5.3). Nothing is cut for one.

    >>> [round(expanded_tail(units), 4) for units in (5, 20, 100, 10_000)]
    [0.001, 0.0159, 0.0231, 0.025]
    """
    return normal_cdf(-expansion(units) * NORMAL_QUANTILE) if units > 1 else 0.0


def percentile_bounds(values: Iterable[float], tail: float = GEVAL_TAIL) -> tuple[float, float]:
    """Cut floor(tail N) of N values (at least one) from each end; give the ends of what is left.

    By default it is GEval's cut (getConfidenceBounds), floor((1 - 0.95 + 0.0001) N / 2).

    >>> percentile_bounds(range(1000))
    (25, 974)
    """
    ordered = sorted(values)
    cut = math.floor(tail * len(ordered))
    return ordered[cut], ordered[-1 - cut]
