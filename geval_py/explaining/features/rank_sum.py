"""The Mann-Whitney U test of many features at once.

Items are ranked by score, the worst first. A feature on n1 of n items with the rank sum R has

    U = R - n1 (n1 + 1) / 2,    z = (U - n1 n2 / 2) / sqrt(n1 n2 (n + 1) / 12),    p = Phi(z),    n2 = n - n1,

so that a small p says that its items are worse than the others (Mann and Whitney 1947; the normal approximation,
one-sided). Where t scores tie, for every such group, n + 1 should be n + 1 - sum(t^3 - t) / (n (n - 1)); p is without
that correction, as in GEval, and q, which is ours, with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from geval_py.explaining.statistics.distributions import normal_cdf

EQUAL_DIGITS = 12  # scores that agree in so many significant digits are tied
LEAST_SCORE = 1e-12  # below which a score is one of 0

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def rank_scores(scores: Sequence[float], *, greatest_first: bool) -> Floats:
    """Give each score's rank from 1, the greatest or the smallest first; tied ones share the mean rank.

    Scores are tied if they are equal to 12 significant digits, or nearer to 0 than 1e-12: what is left is rounding
    noise. NaN is not allowed.
    """
    rounded = np.array([float(f"{score:.{EQUAL_DIGITS - 1}e}") for score in scores])
    rounded[np.abs(rounded) < LEAST_SCORE] = 0.0
    _, place, tied = np.unique(-rounded if greatest_first else rounded, return_inverse=True, return_counts=True)
    mean_ranks: Floats = np.cumsum(tied) - (tied - 1) / 2
    return mean_ranks[place]


def tie_correction(ranks: Floats) -> float:
    """Give what z is to be multiplied by, since some of the ranks are shared: 1 where none is, inf where all are."""
    items = len(ranks)
    tied = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    left = items + 1 - float((tied**3 - tied).sum()) / max(items * (items - 1), 1)
    return float(np.sqrt((items + 1) / left)) if left > 1e-9 * items else np.inf


def rank_sum_z(counts: Integers | Floats, rank_sums: Floats, items: int) -> Floats:
    """Give z of features from the number of their items and their rank sums; NaN where all items have one."""
    counts = counts.astype(np.float64)  # millions of items cubed are too many for 64 bits
    others = items - counts
    u = rank_sums - counts * (counts + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        z: Floats = (u - counts * others / 2) / np.sqrt(counts * others * (items + 1) / 12)
    return z


def p_of(z: Floats) -> Floats:
    """Give the probability of a z at most as great, of each."""
    return np.fromiter(map(normal_cdf, z.tolist()), np.float64, len(z))
