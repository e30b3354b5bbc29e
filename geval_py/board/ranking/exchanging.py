"""Approximate randomisation of many systems, each made ready once and then compared with any other.

In a sample, systems A and B change places on some lines. With m(A) the mean loss of A where those lines count
negatively, the difference of the two is then m(A) - m(B), so each system needs one mean a sample, whatever it is
compared with. The coins are those of :func:`geval_py.explaining.statistics.paired.randomisation_p_values`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from geval_py.explaining.statistics.resampling import MOST, Array, Bytes, swap_coins
from geval_py.scoring.metrics.base import NOISE

_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)  # of a byte's eight lines


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A system that is ready to be compared: its mean loss, and that in each sample; none where it is infinite."""

    mean: float
    means: Array


def exchanged(losses: Array, *, samples: int, seed: int) -> Exchanged:
    """Make a system ready, from its line losses (in [0, inf], at least one)."""
    if not (np.abs(losses) <= MOST).all():
        return Exchanged(math.inf, np.empty(0))
    padded = np.zeros(-(-len(losses) // 8) * 8)
    padded[: len(losses)] = losses
    sums = padded.reshape(-1, 8) @ _SIGNS.T  # of eight lines each, for every byte of coins
    means = np.zeros(samples)
    for column, byte in zip(_coins(len(losses), samples, seed), sums, strict=True):
        means += byte[column]
    return Exchanged(float(losses.sum()) / len(losses), means / len(losses))


@lru_cache(maxsize=1)
def _coins(lines: int, samples: int, seed: int) -> Bytes:
    """Give the coins of eight lines a row, a byte a sample."""
    return np.ascontiguousarray(np.concatenate(list(swap_coins(lines, samples, seed))).T)


def p_value(one: Exchanged, other: Exchanged) -> float:
    """Give the two-sided p-value of two systems; without a test 0 where one is infinite, 1 where both are."""
    if not (one.means.size and other.means.size):
        return float(one.means.size == other.means.size)
    observed = abs(one.mean - other.mean) - NOISE * (abs(one.mean) + abs(other.mean))
    extreme = int(np.count_nonzero(np.abs(one.means - other.means) >= observed))
    return (extreme + 1) / (one.means.size + 1)
