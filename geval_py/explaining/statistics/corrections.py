"""Corrections of p-values for their number: of many tests, some find what is not there.

Holm's (Holm, "A simple sequentially rejective multiple test procedure", 1979) keeps the chance of any false find
below a level. That of Benjamini and Hochberg ("Controlling the false discovery rate", 1995) keeps the expected share
of false finds among the finds below it, where tests are independent or go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number: each at least as great as before, at most 1, in the same order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    greatest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = greatest
    return corrected


def benjamini_hochberg(p_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give each p-value's q, the least level at which it is a find: at least its p, at most 1; in the same order.

    >>> import numpy as np
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.04, 0.04]
    """
    import numpy as np

    falling = np.argsort(-p_values, kind="stable")
    ranks = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[falling] = np.minimum.accumulate(p_values[falling] * (len(p_values) / ranks))
    return np.minimum(corrected, 1.0)
