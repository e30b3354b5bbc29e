"""Small p-values of approximate randomisation, smaller than counting samples can tell.

With 10,000 samples no counted p-value is below 1/10,001, and Holm's correction for the 780 pairs of forty systems
asks for less. The systems of a pair change places on each line, or document, by the toss of a coin. So for a sum of
losses the test is about S, the sum of the differences d_i with random signs, and the p-value is 2 P(S >= x) for the
observed sum x > 0. For every t > 0 for which the mean of S under the weights exp(t S) is at most x,

    P(S >= x) <= exp(K(t) - t x) (min(1/2, 1 / (t s sqrt(2 pi))) + 1.12 r / s^3)    with K(t) = sum log cosh(t d_i)

where s^2 and r are the sums of the variances and of the absolute third central moments of the signed differences
under these weights. The first factor is Chernoff's bound. The second is the Berry-Esseen inequality with the constant
0.56 (Shevtsova, "An improvement of convergence rate estimates in the Lyapunov theorem", Doklady Mathematics, 2010);
it counts as 1 where it is greater. The bound holds for all differences, however skewed, tied or few. With more lines
it approaches the saddlepoint approximation of the exact p-value (Robinson, "Saddlepoint approximations for
permutation tests and confidence intervals", Journal of the Royal Statistical Society B 44, 1982). A p-value that is
no less than the exact one rejects a true null hypothesis no more often than it should.

For a metric that is no function of sums of losses there is no such bound. Its tail is extended by an exponential one.
The tails of these distributions are lighter (about normal), so the p-value is rather too large than too small.
"""

from __future__ import annotations

import math

import numpy as np

from geval_py.explaining.significance import Array
from geval_py.scoring.metrics.base import NOISE

FEW = 10  # samples as extreme as the observed difference: a p-value of so few or fewer is uncertain
BERRY_ESSEEN = 0.56
ENOUGH = 1e-9  # less than what Holm's correction asks for with 10,000 systems
LEAST = 1e-300  # a p-value of finite losses is never 0
STEPS = 50
TAIL_SHARE = 40  # one sample in so many belongs to the tail
LEAST_TAIL = 25
UPPER_QUANTILE = 1.645  # the standard normal distribution's quantile at 95 %


def sign_flip_bound(differences: Array, noise: float = 0.0) -> float:
    """Return an upper bound of the two-sided p-value of a sum of differences (finite) whose signs are random.

    The sum counts as less by ``noise``, so rounding cannot make it more extreme than an equal one.
    """
    sizes = np.abs(differences)
    largest = float(sizes.max())
    if largest == 0.0:
        return 1.0
    sizes /= largest
    total = (abs(float(differences.sum())) - noise) / largest
    if total <= 0.0:
        return 1.0
    bound = 2 * math.exp(-total * total / float((sizes * sizes).sum()) / 2)  # Hoeffding's inequality
    if bound > ENOUGH:
        bound = min(1.0, 2 * _one_sided(sizes, total))
    return max(bound, LEAST)


def _one_sided(sizes: Array, total: float) -> float:
    """Return the bound for a positive total, at the best t, which Newton's method approaches from below."""
    squares = sizes * sizes  # sums, not products of vectors, which numpy computes in threads
    t = total / float(squares.sum())
    for left in reversed(range(STEPS)):
        tanh = np.tanh(t * sizes)
        missing = total - float((sizes * tanh).sum())
        variances = squares * (1 - tanh * tanh)
        variance = float(variances.sum())
        if missing * missing <= 1e-3 * variance or variance <= NOISE or not left:
            break
        t += missing / variance
    log_chernoff = _log_cosh(t * sizes) - t * total
    deviation = math.sqrt(variance)
    third = float((variances * sizes * (1 + tanh * tanh)).sum())
    if not deviation > 0.0:
        return math.exp(log_chernoff)
    normal = min(0.5, 1 / (t * deviation * math.sqrt(2 * math.pi)))
    return math.exp(log_chernoff) * min(1.0, normal + 2 * BERRY_ESSEEN * third / deviation**3)


def _log_cosh(values: Array) -> float:
    """Return the sum of log cosh of positive values."""
    return float((values + np.log1p(np.exp(-2 * values))).sum()) - len(values) * math.log(2)


def exponential_tail(samples: Array, observed: float, units: int) -> float:
    """Return the two-sided p-value of an observed difference beyond most samples; 1 if these are too few.

    ``units`` is the number of lines, or documents, on which the systems differ: with so many coins no p-value is less
    than 2^(1 - units). The mean excess over the tail's beginning is taken at the upper end of its 95 % interval.
    """
    tail = len(samples) // TAIL_SHARE
    if tail < LEAST_TAIL:
        return 1.0
    sizes = np.sort(np.abs(samples))[-tail - 1 :]
    excess = float((sizes[1:] - sizes[0]).mean()) * (1 + UPPER_QUANTILE / math.sqrt(tail))
    if not excess > 0.0:
        return 1.0
    p_value = tail / len(samples) * math.exp(-max(0.0, observed - float(sizes[0])) / excess)
    return max(p_value, 2.0 ** (1 - units), LEAST)
