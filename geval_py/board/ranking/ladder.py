"""The parameter-free ladder: a submitter's shown score moves only when a submission is surely better.

    a new one is shown  if  its mean loss < that of the one shown - s / sqrt(n)  and its score is no worse
    the one shown stays     otherwise

s is the standard deviation of the differences of their line losses, n the number of lines (Blum and Hardt, "The
Ladder: A Reliable Leaderboard for Machine Learning Competitions", 2015, figure 2). So who submits again and again
learns little of the hidden answers but what is a true gain. The theory is of bounded losses: they are clipped. It
also rounds what is shown, to 1/n; here the disclosed digits do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Losses: TypeAlias = "npt.NDArray[np.float64]"


@dataclass(frozen=True, slots=True)
class _Rung:
    """What is shown: the number of its step, its clipped losses, their mean, its score, the lower the better."""

    step: int
    losses: Losses
    mean: float
    badness: float


class Ladder:
    """The ladder of one submitter on one test; ``bound`` is the greatest loss that counts, in nats.

    >>> import numpy as np
    >>> ladder = Ladder(20.0)
    >>> steps = [[2.0, 3.0], [1.0, 3.9], [1.0, 2.0]]
    >>> [ladder.climb(n, np.array(losses), sum(losses)) for n, losses in enumerate(steps)]
    [0, 0, 2]
    """

    def __init__(self, bound: float) -> None:
        self.bound = bound
        self._rung: _Rung | None = None

    def climb(self, step: int, losses: Losses, badness: float) -> int:
        """Take the next step, its line losses in [0, inf] (at least one) and score; gives the step that is shown."""
        clipped = losses.clip(max=self.bound)
        mean = math.fsum(clipped.tolist()) / len(clipped)
        rung = self._rung
        if rung is None or (mean < rung.mean - _spread(clipped - rung.losses) and badness <= rung.badness):
            rung = _Rung(step, clipped, mean, badness)
        self._rung = rung
        return rung.step


def _spread(differences: Losses) -> float:
    """Give s / sqrt(n), the standard error of the mean difference."""
    return float(differences.std()) / math.sqrt(len(differences))
