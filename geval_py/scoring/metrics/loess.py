"""How true probabilities are: GEval's calibration, 1 for those that come true as often as they say.

A line is fitted to what came true, locally, around each probability (Cleveland, "Robust locally weighted regression
and smoothing scatterplots", 1979; with Gaussian weights here, and no robustness). The calibration is 1 minus twice
the mean distance of that curve from the diagonal, at least 0. The mean is an integral, by Simpson's rule on the
double exponential (tanh-sinh) substitution of Takahasi and Mori ("Double exponential formulas for numerical
integration", 1974), at the 25 points with which GEval's library begins and GEval ends. No library has this curve, nor
just these points, which the score depends on.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHARPNESS = 8.0  # of the weights: their standard deviation is 1/8
LEAST_BAND = 0.001  # narrower probabilities make no curve
MARGIN = 0.0001  # left out of the integral at both ends
FARTHEST = 3.0  # of the points before substitution; beyond, there is no weight in doubles
STEP = 0.25


def calibration(results: Array, probabilities: Array) -> float:
    """Give the calibration, in [0, 1], of what came true (0 to 1 each) with these probabilities; 1 of nothing."""
    if not len(results):
        return 1.0
    low, high = float(probabilities.min()), float(probabilities.max())
    if high - low < LEAST_BAND:
        return 1 - abs(float(probabilities.mean() - results.mean()))
    low, high = low + MARGIN, high - MARGIN
    points, weights = _rule(low, high)
    distances = np.abs(np.clip(fitted(probabilities, results, points), 0, 1) - points)
    return 1 - min(1.0, 2 * float(weights @ distances) / (high - low))


def fitted(inputs: Array, outputs: Array, points: Array) -> Array:
    """Give at each point the value of the line fitted there, by least squares of weighted inputs and outputs.

    The columns are made orthogonal by the modified Gram-Schmidt process, as GEval's library does (statistics for
    Haskell, Statistics.Matrix.Algorithms). It loses the slope where one input outweighs all others 1e13 times; these
    scores are GEval's to the digit, too, which a better conditioned solution would change.
    """
    deviations = SHARPNESS * (points[:, np.newaxis] - inputs)
    weights = SHARPNESS * np.exp(-(deviations**2) / 2) / math.sqrt(2 * math.pi)
    targets, slanted = outputs * weights, inputs * weights
    height = np.sqrt((weights**2).sum(axis=1))
    level = weights / height[:, np.newaxis]
    common = (level * slanted).sum(axis=1)
    slanted = slanted - common[:, np.newaxis] * level
    steepness = np.sqrt((slanted**2).sum(axis=1))
    slopes = (slanted / steepness[:, np.newaxis] * targets).sum(axis=1) / steepness
    values: Array = ((level * targets).sum(axis=1) - common * slopes) / height + slopes * points
    return values


def _rule(low: float, high: float) -> tuple[Array, Array]:
    """Give the points and weights of the integral from low to high: four thirds of the fine rule less the coarse."""
    steps = np.arange(-FARTHEST, FARTHEST + STEP, STEP)
    steps = steps[np.abs(steps) <= FARTHEST]
    angles = math.pi / 2 * np.sinh(steps)
    fine = STEP * math.pi / 2 * np.cosh(steps) / np.cosh(angles) ** 2
    is_coarse = np.arange(len(steps)) % 2 == 0
    weights = (4 * fine - np.where(is_coarse, 2 * fine, 0)) / 3
    half = (high - low) / 2
    return (low + high) / 2 + half * np.tanh(angles), half * weights
