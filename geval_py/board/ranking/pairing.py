"""The comparisons of evaluations in the database: what is compared, and what keeps it from being."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import and_, insert, select

from geval_py.board.ranking.exchanging import Exchanged, exchanged, p_value
from geval_py.board.storing.columns import unpack
from geval_py.board.storing.schema import evaluations, exchanges
from geval_py.board.units import measure_of
from geval_py.scoring.metrics.base import NOISE

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from geval_py.board.settings import Settings

Pair = tuple[int, int]


def compare_pairs(connection: Connection, settings: Settings, pairs: Sequence[Pair]) -> Iterator[dict[str, Any]]:
    """Give rows of comparisons, of pairs of evaluations of one test."""
    ids = sorted({evaluation for pair in pairs for evaluation in pair})
    of = {row.id: row for row in _evaluations(connection, ids)}
    ready = _ready(connection, settings, [row.id for row in of.values() if row.has_losses])
    made_with = {"samples": settings.samples, "seed": settings.seed}
    for one, other in pairs:
        p = 1.0
        if _can_be_compared(of[one], of[other]):
            p = p_value(ready[one], ready[other])
            if _disagree(settings, (of[one], ready[one]), (of[other], ready[other])):
                p = 1.0
        yield {"one_id": one, "other_id": other, "p": p, **made_with}


def _evaluations(connection: Connection, ids: Sequence[int]) -> list[Row[Any]]:
    c = evaluations.c
    has_losses = c.losses.is_not(None).label("has_losses")
    query = select(c.id, c.score, c.reference, c.metric, c.lines, has_losses)
    return list(connection.execute(query.where(c.id.in_(ids))))


def _can_be_compared(one: Row[Any], other: Row[Any]) -> bool:
    """Tell whether two evaluations are of the same answers, and both have losses."""
    same = (one.reference, one.metric, one.lines) == (other.reference, other.metric, other.lines)
    return same and one.has_losses and other.has_losses


def _disagree(settings: Settings, one: tuple[Row[Any], Exchanged], other: tuple[Row[Any], Exchanged]) -> bool:
    """Tell whether mean losses put another first than scores, as of a metric that averages over classes."""
    (a, ready_a), (b, ready_b) = one, other
    if not (ready_a.means.size and ready_b.means.size):
        return False
    sign = 1 if measure_of(settings.metric).direction == "lower" else -1
    by_mean = ready_a.mean - ready_b.mean
    noise = NOISE * (ready_a.mean + ready_b.mean)
    return bool(abs(by_mean) > noise and sign * (a.score - b.score) * by_mean < 0)


def _ready(connection: Connection, settings: Settings, ids: Sequence[int]) -> dict[int, Exchanged]:
    """Give what is kept of evaluations, and make it of those where it is not; none of one without line losses."""
    c = exchanges.c
    made_with = and_(c.samples == settings.samples, c.seed == settings.seed)
    kept = connection.execute(select(c.evaluation_id, c.mean, c.means).where(c.evaluation_id.in_(ids), made_with))
    ready = {row.evaluation_id: Exchanged(row.mean, np.frombuffer(row.means, dtype="<f8")) for row in kept}
    new = [evaluation for evaluation in ids if evaluation not in ready]
    columns = select(evaluations.c.id, evaluations.c.lines, evaluations.c.losses).where(evaluations.c.id.in_(new))
    for evaluation, lines, packed in connection.execute(columns).all() if new else ():
        of = exchanged(np.array(unpack(packed, lines)[0]), samples=settings.samples, seed=settings.seed)
        ready[evaluation] = of
        row = {"evaluation_id": evaluation, "samples": settings.samples, "seed": settings.seed, "mean": of.mean}
        connection.execute(insert(exchanges).values(**row, means=of.means.astype("<f8").tobytes()))
    return ready
