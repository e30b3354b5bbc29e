"""The comparisons of evaluations in the database: what is compared, and what keeps it from being."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sqlalchemy import and_, insert, select

from geval_py.board.ranking.exchanging import Exchanged, exchanged, p_value
from geval_py.board.storing.columns import unpack
from geval_py.board.storing.schema import evaluations, exchanges
from geval_py.board.units import measure_of
from geval_py.explaining.statistics.paired import randomisation_p_values
from geval_py.explaining.statistics.resampling import StatisticsTable
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import LineStatistics, find_metric
from geval_py.scoring.metrics.base import NOISE

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from geval_py.board.settings import Settings

Pair = tuple[int, int]
PairTest: TypeAlias = "Callable[[int, int], float]"  # the p-value of two evaluations


def compare_pairs(connection: Connection, settings: Settings, pairs: Sequence[Pair]) -> Iterator[dict[str, Any]]:
    """Give rows of comparisons, of pairs of evaluations of one test."""
    ids = sorted({evaluation for pair in pairs for evaluation in pair})
    of = {row.id: row for row in _evaluations(connection, ids)}
    kept = [row for row in of.values() if row.has_losses]
    make = _test_of_losses if measure_of(settings.metric).of_losses else _test_of_sums
    tested = make(connection, settings, kept)
    made_with = {"samples": settings.samples, "seed": settings.seed}
    for one, other in pairs:
        p = tested(one, other) if _can_be_compared(of[one], of[other]) else 1.0
        yield {"one_id": one, "other_id": other, "p": p, **made_with}


def _test_of_losses(connection: Connection, settings: Settings, rows: Sequence[Row[Any]]) -> PairTest:
    """Give the test of two evaluations by a metric that is made from losses; each is made ready once."""
    of = {row.id: row for row in rows}
    ready = _ready(connection, settings, list(of))

    def p_of(one: int, other: int) -> float:
        if _disagree(settings, (of[one], ready[one]), (of[other], ready[other])):
            return 1.0
        return p_value(ready[one], ready[other])

    return p_of


def _test_of_sums(connection: Connection, settings: Settings, rows: Sequence[Row[Any]]) -> PairTest:
    """Give the test of two evaluations on the metric itself, as ``geval compare`` has it: from sums of statistics."""
    metric = find_metric(parse_schemes(settings.metric)[0].metric)
    tables = {
        evaluation: LineStatistics(unpack(packed, lines))
        for evaluation, lines, packed in _columns(connection, [row.id for row in rows])
    }

    def p_of(one: int, other: int) -> float:
        table = StatisticsTable.of_systems([tables[one], tables[other]]).finite()
        if not table.lines:
            return 1.0
        found = randomisation_p_values(metric, table, samples=settings.samples, seed=settings.seed)
        return float(found[0, 1])

    return p_of


def _columns(connection: Connection, ids: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Give the number of lines, and the packed columns of statistics, of some evaluations."""
    query = select(evaluations.c.id, evaluations.c.lines, evaluations.c.losses).where(evaluations.c.id.in_(ids))
    return [(row.id, row.lines, row.losses) for row in connection.execute(query)] if ids else []


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
    for evaluation, lines, packed in _columns(connection, new):
        of = exchanged(np.array(unpack(packed, lines)[0]), samples=settings.samples, seed=settings.seed)
        ready[evaluation] = of
        row = {"evaluation_id": evaluation, "samples": settings.samples, "seed": settings.seed, "mean": of.mean}
        connection.execute(insert(exchanges).values(**row, means=of.means.astype("<f8").tobytes()))
    return ready
