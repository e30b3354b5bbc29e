"""A few distinct features that together explain the bad lines.

The ranked list is redundant: words on the same lines are bad together. A forward selection chooses *distinct*
features one by one, each time the feature that explains most of what the ones before left open: with the residual r
of the losses after a regression on these, and the part x' of the feature's 0s and 1s that they do not explain, the
feature with the greatest

    z = x'.r / sqrt(s^2 |x'|^2),    s^2 = |r|^2 / (n - k - 1) after k features,

until Phi(-z) is not below 0.05 over the number of candidates (Bonferroni). The regression is by Gram and Schmidt
(Efroymson, "Multiple regression analysis", 1960; Hastie, Tibshirani and Friedman, "The Elements of Statistical
Learning", 2009, section 3.3.2).
"""

from __future__ import annotations

import re

import numpy as np

from geval_py.explaining.occurrences import Occurrences
from geval_py.explaining.significance import LEVEL, Array, normal_cdf
from geval_py.reading.features import BETWEEN_TOKENS, FIELD_NUMBER, OUTPUT, SHAPE

LEAST_NEW = 1e-9  # share of a feature's variance: with less left, the chosen ones explain it fully
_NUMBER_SHAPE = re.compile(r"[9.]*9[9.]*(?:a\.?9+)?")  # of 0.5, -2.31 and 1e-05, for example


def select_distinct(
    badness: Array, occurrences: Occurrences, features: int, most: int | None = None
) -> tuple[list[int], list[float]]:
    """Choose at most ``most`` features, the one that explains most first; return them and the share explained so far.

    ``badness`` has a finite number for each item: the greater, the worse. Features that go with less are not chosen.
    """
    items = len(badness)
    if not items:
        return [], []
    residual = badness - badness.mean()
    whole = float(residual @ residual)
    counts = np.bincount(occurrences.features, minlength=features)
    left = counts * (1 - counts / items)  # |x'|^2
    own = left.copy()
    usable = occurrences.sums(residual, features) > 0
    directions: list[Array] = []
    chosen: list[int] = []
    explained: list[float] = []
    while len(chosen) < min(features if most is None else most, features, items - 2):
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


def _new_direction(values: Array, directions: list[Array]) -> Array:
    """Return the part of values that is orthogonal to their mean and to other directions, as a unit vector."""
    rest = values - values.mean()
    for _ in range(2):  # twice: the first time leaves rounding noise
        for direction in directions:
            rest = rest - (rest @ direction) * direction
    unit: Array = rest / np.sqrt(rest @ rest)
    return unit


def is_output_number(name: str) -> bool:
    """Whether a feature is, or has, a number of the output: a probability, and no word.

    >>> [is_output_number(name) for name in ("out:0.5", "out:SHAPE:9.99", "out:the++0.5", "out:the", "exp:1901")]
    [True, True, True, False, False]
    """
    field, _, token = name.partition(":")
    if field != str(OUTPUT):
        return False
    shapes = token.startswith(SHAPE)
    parts = token.replace(SHAPE, "").split(BETWEEN_TOKENS)
    return any(_NUMBER_SHAPE.fullmatch(part) if shapes else FIELD_NUMBER.fullmatch(part) for part in parts)
