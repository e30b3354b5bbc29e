"""Kendall's rank correlation with ties (tau-b), as a z-score.

Source: M. G. Kendall, Rank Correlation Methods, 1970, chapter 4; the variance under ties is that of scipy.stats and
of GEval.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def kendall_z(x: Floats, y: Floats) -> float:
    """Give the z-score of the correlation of two aligned columns; NaN for fewer than two rows or no variance."""
    n = len(x)
    if n < 2:
        return math.nan
    _, x_place = np.unique(x, return_inverse=True)
    _, y_place = np.unique(y, return_inverse=True)
    order = np.lexsort((y_place, x_place))
    x_ties, y_ties = np.bincount(x_place), np.bincount(y_place)
    if n in (x_ties[0], y_ties[0]):  # no variance, but for rounding
        return math.nan
    both = np.unique(x_place * np.int64(n) + y_place, return_counts=True)[1]
    pairs = n * (n - 1) // 2
    discordant = count_inversions(y_place[order])
    concordant = pairs - discordant - _pairs(x_ties) - _pairs(y_ties) + _pairs(both)
    variance = (_spread(np.array([n])) - _spread(x_ties) - _spread(y_ties)) / 18
    variance += 2 * _pairs(x_ties) * _pairs(y_ties) / (n * (n - 1))
    if n > 2:
        variance += _triples(x_ties) * _triples(y_ties) / (9 * n * (n - 1) * (n - 2))
    return (concordant - discordant) / math.sqrt(variance) if variance > 0 else math.nan


def _pairs(ties: Integers) -> int:
    return sum(t * (t - 1) // 2 for t in ties.tolist())


def _triples(ties: Integers) -> int:
    return sum(t * (t - 1) * (t - 2) for t in ties.tolist())


def _spread(ties: Integers) -> int:
    return sum(t * (t - 1) * (2 * t + 5) for t in ties.tolist())


def count_inversions(places: Integers) -> int:
    """Count the pairs that stand in the wrong order, in a merge sort of all blocks of a width at a time.

    ``places`` are whole numbers from 0.

    >>> count_inversions(np.array([2, 0, 1, 1]))
    3
    """
    length = 1 << max(len(places) - 1, 0).bit_length()
    beyond = int(places.max(initial=0)) + 1
    values = np.concatenate([places, np.full(length - len(places), beyond)]).astype(np.int64)
    inversions, width = 0, 1
    while width < length:
        blocks = values.reshape(-1, 2 * width)
        apart = blocks + np.arange(len(blocks))[:, None] * (beyond + 1)  # so that one search serves all blocks
        left, right = apart[:, :width].ravel(), apart[:, width:].ravel()
        not_greater = np.searchsorted(left, right, side="right")
        ends = np.repeat((np.arange(len(blocks)) + 1) * width, width)
        inversions += int((ends - not_greater).sum())
        values = np.sort(blocks, axis=1).ravel()
        width *= 2
    return inversions
