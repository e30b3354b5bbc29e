"""Which entries are better than others by more than chance.

p-values of pairs of evaluations are computed when an entry is scored, and stored with the samples and the seed they
were made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import combinations, islice
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, union

from geval_py.board.database.schema import comparisons, exchanges
from geval_py.board.database.store import facts_about, remember
from geval_py.board.ranking import order
from geval_py.explaining.significance import LEVEL

if TYPE_CHECKING:
    from geval_py.board.settings import Settings


P_VALUES = "counted, or bounded if few"  # how p-values are made; others are made again
MADE_BY = "p-values"  # the name of the fact that holds this
MOST_COMPARED = 500  # entries of a ranking, the first ones


def are_compared(connection: Connection, settings: Settings, evaluations: Iterable[int]) -> bool:
    """Whether all pairs of some evaluations were compared, with the samples and the seed of the settings."""
    ids = set(evaluations)
    return _number_stored(connection, settings, ids) == len(ids) * (len(ids) - 1) // 2


def p_values(
    connection: Connection, settings: Settings, evaluations: Iterable[int], below: float = LEVEL
) -> Iterator[tuple[int, int, float]]:
    """Yield the stored p-values below a level, the smallest first; of each pair the smaller id comes first."""
    c = comparisons.c
    query = select(c.one_id, c.other_id, c.p).where(_stored_among(settings, set(evaluations)), c.p < below)
    for row in connection.execute(query.order_by(c.p, c.one_id, c.other_id)):
        yield row.one_id, row.other_id, row.p


def _number_stored(connection: Connection, settings: Settings, ids: set[int]) -> int:
    query = select(func.count()).select_from(comparisons).where(_stored_among(settings, ids))
    return connection.execute(query).scalar_one()


def _stored_among(settings: Settings, ids: set[int]) -> ColumnElement[bool]:
    c = comparisons.c
    made_with = and_(c.samples == settings.samples, c.seed == settings.seed)
    return and_(c.one_id.in_(ids), c.other_id.in_(ids), made_with)


def complete(connection: Connection, settings: Settings, now: datetime) -> None:
    """Compare all pairs of ranked evaluations that were not compared with these samples and this seed."""
    if facts_about(connection, MADE_BY).get("") != P_VALUES:
        connection.execute(delete(comparisons))
        remember(connection, MADE_BY, P_VALUES)
    ranked: set[int] = set()
    by = order.GROUPINGS[settings.entries]
    for phase, of in settings.by_phase.items():
        for test in of.tests:
            if of.digits_of(test, now).score:
                rows = connection.execute(order.entries(of, test.name, phase, by, connection.dialect.name))
                placed = (row.evaluation_id for row in rows if row.place is not None)
                ids = set(islice(placed, MOST_COMPARED))
                _compare_missing(connection, of, ids)
                ranked.update(ids)
    _forget_unranked(connection, settings, ranked)


def _compare_missing(connection: Connection, settings: Settings, ids: set[int]) -> None:
    missing = list(_missing_pairs(connection, settings, ids))
    if missing:
        from geval_py.board.ranking.uncertainty import compare_pairs

        connection.execute(insert(comparisons), list(compare_pairs(connection, settings, missing)))


def _missing_pairs(connection: Connection, settings: Settings, ids: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs without a stored p-value; usually these are just the pairs with a new evaluation."""
    c = comparisons.c
    among = _stored_among(settings, ids)
    ends = union(select(c.one_id).where(among), select(c.other_id).where(among))
    old = set(connection.execute(ends).scalars())
    stored: set[tuple[int, int]] = set()
    if _number_stored(connection, settings, ids) < len(old) * (len(old) - 1) // 2:
        stored = {(one, other) for one, other in connection.execute(select(c.one_id, c.other_id).where(among))}
        old = set()
    for one, other in combinations(sorted(ids), 2):
        if not (one in old and other in old) and (one, other) not in stored:
            yield one, other


def _forget_unranked(connection: Connection, settings: Settings, ranked: set[int]) -> None:
    """Delete the prepared means of evaluations that are no longer ranked, and of other samples or seeds."""
    c = exchanges.c
    for evaluation, samples, seed in connection.execute(select(c.evaluation_id, c.samples, c.seed)).all():
        if evaluation not in ranked or (samples, seed) != (settings.samples, settings.seed):
            this = and_(c.evaluation_id == evaluation, c.samples == samples, c.seed == seed)
            connection.execute(delete(exchanges).where(this))
