"""Outputs of different submitters that are much alike, for the organiser alone: no public page shows them.

An output may be a copy with its words in another order, some noise, a few lines of its own, or all probabilities
scaled or smoothed. Two measures find these in the line losses:

- *Same lines*: the share of lines whose losses differ by at most 0.1 nats (for other metrics: whose first statistics
  are equal). It must be 90 %, corrected for the share that two such columns have by chance, as in Cohen's kappa.
- *Same order*: the rank correlation of the losses (Spearman's), which neither scaling nor smoothing changes much. It
  must be 0.999.

``tests/board/ranking/test_likeness.py`` tries both on n-gram models and their copies. Two models of different texts
are not listed, nor are a bigram and a four-gram model of one text. Two models of one text with nearly the same
settings often are: they give nearly the same probabilities, so nothing can tell them from copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from geval_py.board.database.schema import (
    SCORED,
    Evaluations,
    Outputs,
    Scores,
    Submissions,
    Submitters,
    evaluations,
    outputs,
    scores,
    submitters,
)
from geval_py.board.settings import BoardSettings, metric_of
from geval_py.board.submission import unpack
from geval_py.explaining.significance import MIN_TESTED_LINES
from geval_py.scoring.metrics import regression
from geval_py.scoring.metrics.base import NOISE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from geval_py.scoring.metrics.base import Array

TOLERANCE = 0.1  # nats
MIN_SHARE = 0.9  # of lines, beyond chance
MIN_CORRELATION = 0.999
MAX_OUTPUTS = 1000  # of a test, the latest, that are compared with each other
MAX_LINES = 10_000  # of more lines, as many are compared, at equal distances
MAX_PAIRS = 1000  # the most alike
ROUNDING = 1e-9
INFINITE = 1e9  # stands for an infinite loss


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """Two outputs of different submitters that are much alike; ``one`` did not arrive before the ``other``.

    Their losses are nearly the same on ``same`` of ``lines`` lines; ``correlation`` is that of their ranks.
    """

    test: str
    one: str
    one_submitter: str
    other: str
    other_submitter: str
    same: int
    lines: int
    correlation: float

    @property
    def same_lines(self) -> str:
        """The number of lines with nearly the same loss, as shown."""
        return f"{self.same} of {self.lines} lines"

    @property
    def same_order(self) -> str:
        """The rank correlation as shown, never rounded up."""
        return f"{math.floor(self.correlation * 10_000) / 10_000:.4f}"


def likenesses(connection: Connection, settings: BoardSettings) -> Iterator[Likeness]:
    """Yield the pairs of outputs of different submitters that are much alike, the most alike first; baselines too."""
    tolerance = TOLERANCE if metric_of(settings.metric).measure.in_nats else NOISE
    query = (
        select(Submissions.code, Submitters.name, Submitters.id, Evaluations.lines, Evaluations.losses)
        .join(submitters, Submitters.id == Submissions.submitter_id)
        .join(outputs, Outputs.submission_id == Submissions.id)
        .join(scores, Scores.output_id == Outputs.id)
        .join(evaluations, Evaluations.id == Scores.evaluation_id)
        .where(Scores.metric == settings.metric, Evaluations.losses.is_not(None), Submissions.state == SCORED)
        .order_by(Submissions.arrived.desc(), Outputs.id)
    )
    for test in settings.tests:
        rows = connection.execute(query.where(Outputs.test == test.name).limit(MAX_OUTPUTS)).all()
        pairs = _alike(test.name, [row for row in rows if row.lines == rows[0].lines], tolerance) if rows else ()
        most_alike: dict[tuple[str, str], Likeness] = {}  # of the outputs of two submissions
        for pair in sorted(pairs, key=lambda pair: (pair.same, pair.correlation), reverse=True):
            most_alike.setdefault((pair.one, pair.other), pair)
        yield from islice(most_alike.values(), MAX_PAIRS)


def _alike(test: str, rows: Sequence[Any], tolerance: float) -> Iterator[Likeness]:
    """Yield the pairs that are much alike, of outputs with the same number of lines."""
    import numpy as np

    step = -(-rows[0].lines // MAX_LINES)
    losses = np.array([np.array(unpack(row.losses, row.lines)[0])[::step] for row in rows])
    losses = np.nan_to_num(losses, copy=False, nan=INFINITE, posinf=INFINITE)
    whose = np.array([row.id for row in rows])
    ranks = _standard_ranks(losses)
    correlations = ranks @ ranks.T
    for number, row in enumerate(rows):
        correlated = correlations[number] >= MIN_CORRELATION
        others = np.flatnonzero((np.arange(len(rows)) > number) & (whose != whose[number]))
        for other in others.tolist():
            same = int((np.abs(losses[number] - losses[other]) <= tolerance).sum())
            if correlated[other] or _is_more_than_chance(losses[number], losses[other], same, tolerance):
                apart = (ranks[number] - ranks[other]).astype("f8")  # so that equal ranks give exactly 1
                is_ranked = ranks[number].any() and ranks[other].any()
                yield Likeness(
                    test=test,
                    one=row.code,
                    one_submitter=row.name,
                    other=rows[other].code,
                    other_submitter=rows[other].name,
                    same=same,
                    lines=losses.shape[1],
                    correlation=1 - float((apart * apart).sum()) / 2 if is_ranked else 0.0,
                )


def _is_more_than_chance(one: Array, other: Array, same: int, tolerance: float) -> bool:
    """Whether more lines are the same than two columns with these losses, in any order, would have by chance."""
    import numpy as np

    if same < MIN_SHARE * len(one):
        return False
    in_order = np.sort(other)
    ends = np.searchsorted(in_order, one + tolerance, "right") - np.searchsorted(in_order, one - tolerance, "left")
    chance = float(ends.mean()) / len(one)
    is_equal = float(np.abs(one - other).max()) <= ROUNDING
    return is_equal or same / len(one) - chance >= MIN_SHARE * (1 - chance) > 0


def _standard_ranks(losses: Array) -> NDArray[np.float32]:
    """Return the ranks of each row's losses with the mean 0 and the length 1; 0 for few lines or equal losses."""
    import numpy as np

    rows, lines = losses.shape
    standard = np.zeros((rows, lines), np.float32)
    if lines < MIN_TESTED_LINES:
        return standard
    for number, row in enumerate(losses):
        centred = regression.ranks((row / ROUNDING).round()) - (lines + 1) / 2
        spread = float(np.sqrt((centred * centred).sum()))
        if spread:
            standard[number] = centred / spread
    return standard
