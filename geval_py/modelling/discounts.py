"""The discounts of modified Kneser-Ney, as lmplz computes them.

Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling", TR-10-98, 1998, equation 26:
y = n1 / (n1 + 2 n2), D_j = j - (j + 1) y n_(j+1) / n_j for j = 1, 2, 3, where n_j is how many n-grams have the
adjusted count j.

lmplz makes a mistake (kpu/kenlm issues 405 and 427): of each order but the highest, the last n-gram in suffix order
enters n_j by its count instead of its adjusted count. It is imitated, unless exact discounts are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import ModelError
from geval_py.modelling.counting import Longs, NgramCounts

FALLBACK = (0.5, 1.0, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discounts:
    """D1, D2 and D3+ of one order; ``fell_back`` where its counts give none, and the fall-back was taken."""

    amounts: tuple[float, float, float]
    fell_back: bool = False

    def of(self, counts: Longs) -> NDArray[np.float64]:
        """Give what is taken off each adjusted count."""
        table = np.array((0.0, *self.amounts))
        return table[np.minimum(counts, 3)]


def find_discounts(
    level: NgramCounts,
    adjusted: Longs,
    order: int,
    *,
    fallback: tuple[float, float, float] | None,
    exact: bool,
    path: str = "",
) -> Discounts:
    """Compute the discounts of one order.

    Where the counts of counts give none, they are the ``fallback`` or, without one, a ModelError, which names the
    text at ``path``. Numbers are of single precision, as lmplz's are: it decides whether a D of 0 is in range.
    """
    counts = np.bincount(np.minimum(adjusted, 5), minlength=6)[:5]
    if level.last is not None and not exact:
        _move_last(counts, int(adjusted[level.last]), int(level.counts[level.last]))
    fault = f"no {order}-gram has the adjusted count {_missing(counts)}" if _missing(counts) else ""
    if not fault:
        amounts = _amounts(counts)
        wrong = next((j for j, amount in enumerate(amounts, 1) if not 0 <= amount <= j), None)
        if wrong is None:
            return Discounts(amounts=amounts)
        fault = f"the discount of {order}-grams with the adjusted count {wrong} is {amounts[wrong - 1]:.4g}"
    if fallback is None:
        raise ModelError(
            path=path,
            message=f"Kneser-Ney has no discounts for this text: {fault}\n  is it small or made up? sentences that "
            "are there many times over are best left out; or take the fall-back discounts: --discount-fallback",
        )
    return Discounts(amounts=_single(fallback), fell_back=True)


def _move_last(counts: Longs, adjusted: int, count: int) -> None:
    """Count the last n-gram in suffix order by its count."""
    if adjusted < len(counts):
        counts[adjusted] -= 1
    if count < len(counts):
        counts[count] += 1


def _missing(counts: Longs) -> int | None:
    return next((j for j in (1, 2, 3) if counts[j] == 0), None)


def _amounts(counts: Longs) -> tuple[float, float, float]:
    of = np.float32
    y = of(int(counts[1]) / (int(counts[1]) + 2.0 * int(counts[2])))
    one, two, three = (of(j) - of(j + 1) * y * of(counts[j + 1]) / of(counts[j]) for j in (1, 2, 3))
    return float(one), float(two), float(three)


def _single(amounts: tuple[float, float, float]) -> tuple[float, float, float]:
    one, two, three = (float(np.float32(amount)) for amount in amounts)
    return one, two, three
