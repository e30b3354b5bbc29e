"""Few features that together explain the bad lines: a forward selection.

The list of features is redundant: words that stand on the same lines are bad together. Features are chosen one by
one, each time that which says most of what those before it left open: with the residual r of the losses after a
regression on these, and the part x' of the feature's 0s and 1s that they do not tell, the greatest

    z = x'.r / sqrt(s^2 |x'|^2),    s^2 = |r|^2 / (n - k - 1) after k features,

until Phi(-z) is not below 0.05 over the number of candidates (Bonferroni). The regression is by Gram and Schmidt
(Efroymson, "Multiple regression analysis", 1960; Hastie, Tibshirani and Friedman, "The Elements of Statistical
Learning", 2009, section 3.3.2).
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from geval_py.explaining.features.occurrences import Occurrences
from geval_py.explaining.statistics.distributions import normal_cdf
from geval_py.explaining.statistics.groups import LEVEL
from geval_py.reading.features import BETWEEN_TOKENS, FIELD_NUMBER, OUTPUT, SHAPE

LEAST_NEW = 1e-9  # the share of a feature's own variance below which the chosen ones tell it all

_NUMBER_SHAPE = re.compile(r"[9.]*9[9.]*(?:a\.?9+)?")  # of 0.5, -2.31 and 1e-05, for example

Floats = npt.NDArray[np.float64]


def select_distinct(badness: Floats, occurrences: Occurrences, features: int) -> tuple[list[int], list[float]]:
    """Choose features, the one that says most first; gives them, and the share of the variance explained so far.

    ``badness`` is a number an item, the greater the worse, all finite. Features that go with less of it are none.
    """
    items = len(badness)
    residual = badness - badness.mean()
    whole = float(residual @ residual)
    counts = np.bincount(occurrences.features, minlength=features)
    left = counts * (1 - counts / items)  # |x'|^2
    own = left.copy()
    usable = occurrences.sums(residual, features) > 0
    directions: list[Floats] = []
    chosen: list[int] = []
    explained: list[float] = []
    while len(chosen) < min(features, items - 2):
        products = occurrences.sums(residual, features)
        new = usable & (left > LEAST_NEW * own)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(new, products / np.sqrt(residual @ residual / (items - len(chosen) - 1) * left), -np.inf)
        best = int(np.argmax(z))
        if not normal_cdf(-z[best]) < LEVEL / features:
            break
        direction = _new_direction(occurrences.vector(best, items), directions)
        directions.append(direction)
        residual = residual - (residual @ direction) * direction
        left = left - occurrences.sums(direction, features) ** 2
        chosen.append(best)
        usable[best] = False
        explained.append(1 - float(residual @ residual) / whole)
    return chosen, explained


def _new_direction(values: Floats, directions: list[Floats]) -> Floats:
    """Give the part of some values that neither their mean nor other directions tell, as a vector of length 1."""
    rest = values - values.mean()
    for _ in range(2):  # twice, since the first time leaves rounding noise
        for direction in directions:
            rest = rest - (rest @ direction) * direction
    unit: Floats = rest / np.sqrt(rest @ rest)
    return unit


def is_output_number(name: str) -> bool:
    """Tell whether a feature is a number of the output, which is its probabilities and no word, or has one.

    >>> [is_output_number(name) for name in ("out:0.5", "out:SHAPE:9.99", "out:the++0.5", "out:the", "exp:1901")]
    [True, True, True, False, False]
    """
    field, _, token = name.partition(":")
    if field != str(OUTPUT):
        return False
    shapes = token.startswith(SHAPE)
    parts = token.replace(SHAPE, "").split(BETWEEN_TOKENS)
    return any(_NUMBER_SHAPE.fullmatch(part) if shapes else FIELD_NUMBER.fullmatch(part) for part in parts)
