"""Two distributions, as far as they are needed: without scipy, which takes longer to import than all else to run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from geval_py.scoring.metrics.base import NOISE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


NORMAL_QUANTILE = 1.959963984540054  # the normal distribution's quantile at 97.5 %
_FEW = (12.706204736174698, 4.302652729749464, 3.1824463052837078)  # Student's, with 1, 2 and 3 degrees


def normal_cdf(z: float) -> float:
    """Give the probability that a standard normal variable is at most z.

    >>> normal_cdf(0.0), round(normal_cdf(-1.959964), 6)
    (0.5, 0.025)
    """
    return math.erfc(-z / math.sqrt(2)) / 2


def t_quantile(degrees: int) -> float:
    """Give the quantile at 97.5 % of Student's t with some degrees of freedom (at least 1), to six digits.

    Source: G. W. Hill, "Algorithm 396: Student's t-quantiles", Communications of the ACM 13, 1970.

    >>> [round(t_quantile(degrees), 3) for degrees in (1, 2, 5, 11, 1000)]
    [12.706, 4.303, 2.571, 2.201, 1.962]
    """
    if degrees <= len(_FEW):
        return _FEW[degrees - 1]
    x = -NORMAL_QUANTILE
    a = 1 / (degrees - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * degrees
    c += 0.3 * (degrees - 4.5) * (x + 0.6) if degrees < 5 else 0.0
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
    y = (((((0.4 * x**2 + 6.3) * x**2 + 36) * x**2 + 94.5) / c - x**2 - 3) / b + 1) * x
    return math.sqrt(degrees * math.expm1(a * y**2))


# A confidence interval, from the values that a score takes on resamples, or from the spread of its documents.


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


# Corrections of p-values for their number: of many tests, some find what is not there.


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number: each at least as great as before, at most 1, in the same order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    greatest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = greatest
    return corrected


def benjamini_hochberg(p_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give each p-value's q, the least level at which it is a find: at least its p, at most 1; in the same order.

    >>> import numpy as np
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.04, 0.04]
    """
    import numpy as np

    falling = np.argsort(-p_values, kind="stable")
    ranks = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[falling] = np.minimum.accumulate(p_values[falling] * (len(p_values) / ranks))
    return np.minimum(corrected, 1.0)


# Which of many systems can be told apart, as groups of those that cannot.


LEVEL = 0.05


def samples_needed(pairs: int) -> int:
    """Give the least number of samples with which the smallest p-value of so many can pass Holm's correction.

    >>> samples_needed(1), samples_needed(1225)
    (20, 24500)
    """
    return round(pairs / LEVEL)


def undistinguished_groups(systems: int, distinct: frozenset[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Group systems, numbered in order of score, of whom ``distinct`` pairs (the lesser first) can be told apart.

    No group holds a distinct pair, to none can a system be added, and every pair that is not distinct, like every
    system, is in one. There may be more such groups, exponentially many; of those, these are the first that are
    needed, in order of score.
    """
    groups: list[tuple[int, ...]] = []
    covered: set[tuple[int, int]] = set()
    for one in range(systems):
        for other in range(one, systems):
            if (one, other) not in distinct and (one, other) not in covered:
                group = _grow({one, other}, systems, distinct)
                groups.append(group)
                covered.update((a, b) for a in group for b in group)
    return sorted(groups)


def _grow(group: set[int], systems: int, distinct: frozenset[tuple[int, int]]) -> tuple[int, ...]:
    """Add to a group every system, in order, that can be told apart from none of it."""
    for new in range(systems):
        if not any((min(new, old), max(new, old)) in distinct for old in group):
            group.add(new)
    return tuple(sorted(group))
