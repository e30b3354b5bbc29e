"""Rank tests of features: the Mann-Whitney U test, Kendall's tau-b; and the gain in score that a feature allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geval_py.explaining.significance import NORMAL_QUANTILE, Array, Integers, normal_cdf

EQUAL_DIGITS = 12  # scores that agree in so many significant digits are tied
LEAST_SCORE = 1e-12  # a smaller score counts as 0


def kendall_z(x: Array, y: Array) -> float:
    """Compute Kendall's rank correlation with ties (tau-b) of two aligned columns, as a z-score.

    NaN for fewer than two rows or no variance. Source: M. G. Kendall, Rank Correlation Methods, 1970, chapter 4; the
    variance under ties is the one that scipy.stats and GEval use.
    """
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
    """Count the pairs in the wrong order, by a merge sort of all blocks of one width at a time.

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


# The Mann-Whitney U test of many features at once


def rank_scores(scores: Sequence[float], *, greatest_first: bool) -> Array:
    """Rank scores from 1, the greatest or the smallest first; tied scores share the mean rank.

    Scores are tied if they are equal to 12 significant digits, or both nearer to 0 than 1e-12: any difference is
    rounding noise. NaN is not allowed.
    """
    rounded = np.array([float(f"{score:.{EQUAL_DIGITS - 1}e}") for score in scores])
    rounded[np.abs(rounded) < LEAST_SCORE] = 0.0
    _, place, tied = np.unique(-rounded if greatest_first else rounded, return_inverse=True, return_counts=True)
    mean_ranks: Array = np.cumsum(tied) - (tied - 1) / 2
    return mean_ranks[place]


def tie_correction(ranks: Array) -> float:
    """Return the factor that corrects z for tied ranks: 1 without ties, inf if all are tied."""
    items = len(ranks)
    tied = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    left = items + 1 - float((tied**3 - tied).sum()) / max(items * (items - 1), 1)
    return float(np.sqrt((items + 1) / left)) if left > 1e-9 * items else np.inf


def rank_sum_z(counts: Integers | Array, rank_sums: Array, items: int) -> Array:
    """Compute z of features from the number of their items and their rank sums; NaN for a feature of all items."""
    counts = counts.astype(np.float64)  # millions of items cubed are too many for 64 bits
    others = items - counts
    u = rank_sums - counts * (counts + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        z: Array = (u - counts * others / 2) / np.sqrt(counts * others * (items + 1) / 12)
    return z


def p_of(z: Array) -> Array:
    """Return the probability that z is at most as great, for each z."""
    return np.fromiter(map(normal_cdf, z.tolist()), np.float64, len(z))


# What a feature costs: how much better the score would be if its lines were no worse than the others


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of all items, in nats, and the weights to sum over a feature's items to compute its gain.

    Sums are of losses minus the mean loss, so that squares lose no digits; infinite losses stay infinite.
    """

    losses: Array

    @property
    def centre(self) -> float:
        """The mean loss, or 0 if it is infinite."""
        mean = float(self.losses.mean()) if len(self.losses) else 0.0
        return mean if np.isfinite(mean) else 0.0

    @property
    def weights(self) -> Array:
        """The two rows to be summed: the losses and their squares, each divided by the number of items."""
        apart = self.losses - self.centre
        return np.array([apart, apart**2]) / max(len(apart), 1)

    def columns(self, counts: Array, sums: Array) -> dict[str, Array]:
        """Compute the features' perplexity, exp of the mean loss, and their gain with its 95 % interval.

        ``sums`` are sums of the weights. A gain with an infinite loss is NaN.
        """
        items = len(self.losses)
        share = counts / items
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            perplexity = np.exp(self.centre + sums[0] / share)
            gain, error = self._gain(share, sums)
            ends = (gain, gain - NORMAL_QUANTILE * error, gain + NORMAL_QUANTILE * error)
            falls = [np.where(np.isfinite(gain) & np.isfinite(error), -np.expm1(-end), np.nan) for end in ends]
        return {"perplexity": perplexity} | dict(zip(("gain", "gain_low", "gain_high"), falls, strict=True))

    def _gain(self, share: Array, sums: Array) -> tuple[Array, Array]:
        """Compute the gain in nats and its standard error."""
        others = 1 - share
        total, squares = self.weights.sum(axis=1)
        mean_of_others = (total - sums[0]) / others
        gain: Array = sums[0] - share * mean_of_others
        on = mean_of_others + gain
        variance_on = sums[1] - 2 * on * sums[0] + share * on**2
        spread_of_others = squares - sums[1] - others * mean_of_others**2
        variance = variance_on + (share / others) ** 2 * spread_of_others + others * gain**2
        return gain, np.sqrt(np.maximum(variance, 0) / len(self.losses))
