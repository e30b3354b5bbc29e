"""Two distributions, as far as they are needed: without scipy, which takes longer to import than all else to run."""

from __future__ import annotations

import math

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
