"""Whether a rare line could cost so much that no resampling of the lines that are there foretells it.

Where one line in some hundreds has a loss of hundreds, and by chance none of those scored is such, every interval is
far too narrow: none that is made from the lines alone can know better. What the lines leave to other words tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geval_py.scoring.evaluation import Evaluation

ORDINARY = 20.0  # nats: what a word costs that is not listed, at ten bits and with a rest of two millionths
LEAST_LINES = 20  # fewer foretell little of anything
FAR = 10  # standard errors of the mean loss by which one such line would move it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruin:
    """The greatest loss that some line could have had, possibly inf, and the greatest that one had, in nats."""

    bound: float
    seen: float


def find_ruin(evaluation: Evaluation) -> Ruin | None:
    """Tell of an output what a line of it could lose, where that would move the mean loss by ten standard errors.

    None elsewhere: for metrics that are not of hashed words, a loss that every miss may have, few lines, and where a
    loss is infinite already.
    """
    statistics = evaluation.scores[0].statistics
    if statistics.bound <= ORDINARY or statistics.lines < LEAST_LINES:
        return None
    import numpy as np

    losses = np.array(statistics.columns[0])
    seen = float(losses.max())
    if math.isinf(seen):
        return None
    moved = FAR * float(losses.std(ddof=1)) * math.sqrt(len(losses))
    return Ruin(bound=statistics.bound, seen=seen) if statistics.bound > seen + moved else None
