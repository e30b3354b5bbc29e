"""Statistical significance: distributions, the Interval, corrections of p-values, groups of systems.

SciPy is not used: importing it takes longer than running all of these. numpy is imported when it is needed.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement, groupby
from typing import Any, ClassVar

from geval_py.scoring.metrics.base import NOISE, Array

CONFIDENCE = 0.95  # of intervals
LEVEL = 0.05  # of tests
MIN_LINES = 10  # of a part of the lines, or with a feature and without it: with fewer, a figure means little
MIN_TESTED_LINES = 20  # lines: with fewer, a test means little
NORMAL = 1.96  # standard deviations on either side that hold 95 %, as calibration and luck round it
NORMAL_QUANTILE = 1.959963984540054  # the normal distribution's quantile at 97.5 %
POWER_QUANTILE = 0.8416212335729143  # the normal distribution's quantile at 80 %
GEVAL_TAIL = (1 - CONFIDENCE + 0.0001) / 2  # the share that GEval cuts from each end; 0.0001 guards against rounding
TINY = 1e-300  # in the place of a 0 that would be divided by


def dot(first: Array, second: Array) -> float:
    """Return the sum of the products. BLAS, behind ``@``, would give other last digits on another processor."""
    return sum_of(first * second)


def sum_of(values: Array) -> float:
    """Return the sum of some values."""
    return float(values.sum())


def mean_of(values: Array) -> float:
    """Return the mean of some values, at least one."""
    return float(values.mean())


def slices(count: int, size: int) -> Iterator[slice]:
    """Yield the slices of so many items, of ``size`` items each."""
    return (slice(start, start + size) for start in range(0, count, size))


def normal_cdf(z: float) -> float:
    """Return the probability that a standard normal variable is at most z.

    >>> normal_cdf(0.0), round(normal_cdf(-1.959964), 6)
    (0.5, 0.025)
    """
    return math.erfc(-z / math.sqrt(2)) / 2


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the probability that a variable with the beta distribution (a, b > 0) is at most x, to ten digits.

    It is computed from Gauss's continued fraction (Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964,
    26.5.8), from its last part to its first.

    >>> round(beta_cdf(0.25, 2, 3), 10), beta_cdf(0.0, 1, 1), beta_cdf(1.0, 1, 1)
    (0.26171875, 0.0, 1.0)
    """
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1) / (a + b + 2):  # beyond the mode the fraction for the other tail converges sooner
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    fraction = 1.0
    for m in range(50 + int(math.sqrt(a + b)), 0, -1):  # it takes about as many parts as the root of a + b
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = (a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1.0 + even / (1.0 - odd / fraction)
    return math.exp(front) / (a - a * (a + b) * x / ((a + 1) * fraction))


def t_tails(t: float, degrees: float) -> float:
    """Return the probability that a variable with Student's t distribution is as far from 0 as t: a two-sided p.

    >>> round(t_tails(2.0, 10), 6), t_tails(0.0, 3)
    (0.073388, 1.0)
    """
    return beta_cdf(degrees / (degrees + t * t), degrees / 2, 0.5) if math.isfinite(t) else 0.0


@lru_cache(maxsize=1000)
def t_quantile(degrees: float) -> float:
    """Return the quantile at 97.5 % of Student's t with ``degrees`` of freedom, at least 1, a fraction or not.

    >>> [round(t_quantile(degrees), 3) for degrees in (1, 2, 2.5, 11, 1000)]
    [12.706, 4.303, 3.575, 2.201, 1.962]
    """
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(math.pi * degrees) / 2
    t = NORMAL_QUANTILE  # below the quantile, from where Newton's method rises to it: the tails are convex
    for _ in range(100):
        density = math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = (t_tails(t, degrees) - (1 - CONFIDENCE)) / (2 * density)
        t += step
        if step < 1e-12 * t:
            break
    return t


@dataclass(frozen=True)
class Interval:
    """A 95 % interval in the unit of the score: low < high, or both inf. If there is none, both are NaN.

    There is none where no line differs from another, so that the ends differ by rounding noise at most: nothing then
    shows how far the true score may be. ``samples`` is the number of resamples, ``seed`` the seed of the random
    numbers; both are None for an interval without resampling. ``documents`` is the number of documents, None for an
    interval by lines.
    """

    low: float
    high: float
    samples: int | None = None
    seed: int | None = None
    documents: int | None = None
    confidence: ClassVar[float] = CONFIDENCE  # how often such intervals hold the true score

    def __post_init__(self) -> None:
        if math.isfinite(self.low) and math.isclose(self.low, self.high, rel_tol=NOISE):
            object.__setattr__(self, "low", math.nan)
            object.__setattr__(self, "high", math.nan)

    @classmethod
    def of(
        cls,
        values: Iterable[float],
        *,
        samples: int,
        seed: int,
        tail: float = GEVAL_TAIL,
    ) -> Interval:
        """Cut floor(``tail`` N) of N scores on resamples (at least one) from each end; the rest is in the interval.

        The default is GEval's cut (getConfidenceBounds), floor((1 - 0.95 + 0.0001) N / 2). Undefined scores (NaN) are
        left out. If all are undefined, there is no interval.

        >>> Interval.of(range(1000), samples=1000, seed=1).ends
        (25, 974)
        """
        ordered = sorted(value for value in values if not math.isnan(value)) or [math.nan]
        cut = math.floor(tail * len(ordered))
        return cls(ordered[cut], ordered[-1 - cut], samples, seed)

    @property
    def ends(self) -> tuple[float, float] | tuple[None, None]:
        """Both ends; None if there is no interval."""
        return (None, None) if math.isnan(self.low) else (self.low, self.high)

    @property
    def middle(self) -> float:
        """The centre; inf if the upper end is infinite."""
        return self.low if self.low == self.high else self.low / 2 + self.high / 2

    @property
    def half_width(self) -> float:
        """Half the distance between the ends: 0 if both are inf, otherwise inf if the upper end is."""
        return 0.0 if self.low == self.high else self.high / 2 - self.low / 2

    def to_dict(self) -> dict[str, Any]:
        names = ("low", "high", "confidence", "samples", "seed", *(() if self.documents is None else ("documents",)))
        return {name: getattr(self, name) for name in names}


def expanded_tail(units: int) -> float:
    """Return the share to cut from each end of the means of resamples of n lines or documents (at least one).

    The fewer units, the smaller the share: Phi(-sqrt(n / (n - 1)) t), where t is the quantile of Student's t with
    n - 1 degrees of freedom (Hesterberg, "What teachers should know about the bootstrap", 2015, section 5.3). For a
    single unit nothing is cut.

    >>> [round(expanded_tail(units), 4) for units in (5, 20, 100, 10_000)]
    [0.001, 0.0159, 0.0231, 0.025]
    """
    return normal_cdf(-math.sqrt(units / (units - 1)) * t_quantile(units - 1)) if units > 1 else 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the number of tests (Holm's method); the order stays, and no p-value falls or exceeds 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    greatest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = greatest
    return corrected


def benjamini_hochberg(p_values: Array, tests: int | None = None) -> Array:
    """Return each p-value's q: the lowest false discovery rate at which it counts as a discovery; the order stays.

    An unknown p (NaN) is no test, and its q is unknown. ``tests`` is the number of all tests, if only some of their
    p-values are there: the others then count as 1.

    >>> import numpy as np
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.04, 0.04]
    """
    import numpy as np

    known = np.flatnonzero(~np.isnan(p_values))
    falling = known[np.argsort(p_values[known], kind="stable")[::-1]]  # fast for those that are sorted already
    ranks = np.arange(len(known), 0, -1)
    corrected = np.full(len(p_values), np.nan)
    corrected[falling] = np.minimum.accumulate(p_values[falling] * ((tests or len(known)) / ranks))
    return corrected.clip(max=1.0)


def group_letters(groups: Iterable[int]) -> str:
    """Write the numbers of groups as compact letters, more than three in a row as a range.

    After the last letter there are numbers from 1.

    >>> group_letters([0, 1]), group_letters([1, 2, 3, 4, 6]), group_letters([25, 26, 51, 52])
    ('ab', 'b–eg', 'zAZ(53)')
    """
    text = ""
    for _, run in groupby(enumerate(groups), lambda pair: (pair[1] - pair[0], pair[1] // 26)):
        names = [string.ascii_letters[n] if n < len(string.ascii_letters) else f"({n + 1})" for _, n in run]
        text += "".join(names) if len(names) < 4 else f"{names[0]}–{names[-1]}"
    return text


def undistinguished_groups(systems: int, distinct: frozenset[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Group systems that cannot be told apart; ``distinct`` are the pairs that can be, the lesser number first.

    Systems are numbered in order of score. No group holds a distinct pair, no system could be added to a group, and
    every system and every pair that is not distinct is in some group. There may be exponentially many such groups:
    only the first that are needed to cover all pairs are returned, in order of score.
    """
    apart = [0] * systems  # of each system, those that can be told apart from it: a bit for each, as fast as arrays
    for one, other in distinct:
        apart[one] |= 1 << other
        apart[other] |= 1 << one
    covered = apart.copy()
    groups = []
    for one, other in combinations_with_replacement(range(systems), 2):
        if not covered[one] >> other & 1:
            group = 1 << one | 1 << other
            for new in range(systems):
                if not apart[new] & group:
                    group |= 1 << new
            members = tuple(number for number in range(systems) if group >> number & 1)
            groups.append(members)
            for member in members:
                covered[member] |= group
    return sorted(groups)
