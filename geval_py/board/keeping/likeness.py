"""Outputs of different submitters that are much alike: for the organiser to look at, never for a public page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from geval_py.board.storing.columns import unpack
from geval_py.board.storing.schema import SCORED, evaluations, outputs, scores, submissions, submitters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from sqlalchemy import Connection, Row

    from geval_py.board.settings import Settings

LEAST_SHARE = 0.95  # of lines with the same loss
MOST_OUTPUTS = 1000  # of a test, the latest, that are compared with each other
MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Two outputs of different submitters that have the same loss on ``same`` of ``lines`` lines."""

    test: str
    one: str
    one_submitter: str
    other: str
    other_submitter: str
    same: int
    lines: int


def likenesses(connection: Connection, settings: Settings) -> Iterator[Likeness]:
    """Give the pairs of outputs, of different submitters, that lose the same on nearly all lines; baselines too."""
    import numpy as np

    for test in settings.tests:
        rows = _latest(connection, settings, test.name)
        losses = {row.evaluation_id: np.array(unpack(row.losses, row.lines)[0]) for row in rows}
        for number, found in enumerate(_pairs(test.name, rows, losses)):
            if number < MOST_PAIRS:
                yield found


def _latest(connection: Connection, settings: Settings, test: str) -> list[Row[Any]]:
    of = (scores.c.evaluation_id, evaluations.c.lines, evaluations.c.losses)
    query = (
        select(submissions.c.code, submitters.c.name, submitters.c.id, *of)
        .join(submitters, submitters.c.id == submissions.c.submitter_id)
        .join(outputs, outputs.c.submission_id == submissions.c.id)
        .join(scores, scores.c.output_id == outputs.c.id)
        .join(evaluations, evaluations.c.id == scores.c.evaluation_id)
        .where(outputs.c.test == test, scores.c.metric == settings.metric, evaluations.c.losses.is_not(None))
        .where(submissions.c.state == SCORED)
        .order_by(submissions.c.arrived.desc(), outputs.c.id)
    )
    return list(connection.execute(query.limit(MOST_OUTPUTS)))


def _pairs(test: str, rows: list[Row[Any]], losses: dict[int, npt.NDArray[np.float64]]) -> Iterator[Likeness]:
    seen: set[tuple[str, str]] = set()
    for one, other in combinations(rows, 2):
        a, b = losses[one.evaluation_id], losses[other.evaluation_id]
        codes = (one.code, other.code)
        if one.id == other.id or len(a) != len(b) or codes in seen:
            continue
        same = int((a == b).sum())
        if same >= LEAST_SHARE * len(a):
            seen.add(codes)
            yield Likeness(
                test=test,
                one=one.code,
                one_submitter=one.name,
                other=other.code,
                other_submitter=other.name,
                same=same,
                lines=len(a),
            )
