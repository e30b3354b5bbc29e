"""Which entries are better than others by more than chance: p-values, stored when an entry is scored.

It is the approximate randomisation of :mod:`geval_py.explaining.statistics.paired`, of the mean line losses, with
the samples and the seed of board.yaml. All pairs change places on the same lines, so what an entry brings to each of
its pairs is made once, and kept while it is ranked: its mean loss in each sample, where the lines that change places
count negatively. The difference of two such means is that of the pair.

A finite entry is surely better than an infinite one, p = 0, without a test; p = 1 of two infinite ones, and of two
that were scored with different answers. At most 500 entries of a ranking are compared, the best ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import combinations, islice
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, func, insert, select, union

from geval_py.board.ranking import order
from geval_py.board.storing.schema import comparisons, exchanges
from geval_py.explaining.statistics.groups import LEVEL

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from geval_py.board.settings import Settings

MOST_COMPARED = 500


def are_compared(connection: Connection, settings: Settings, evaluations: Iterable[int]) -> bool:
    """Tell whether all pairs of some evaluations were compared, with the samples and the seed of the settings."""
    ids = set(evaluations)
    return _known(connection, settings, ids) == len(ids) * (len(ids) - 1) // 2


def p_values(
    connection: Connection, settings: Settings, evaluations: Iterable[int], below: float = LEVEL
) -> Iterator[tuple[int, int, float]]:
    """Give the p-values below a level of the pairs of some evaluations, from the least on; the lesser id first."""
    c = comparisons.c
    query = select(c.one_id, c.other_id, c.p).where(_among(settings, set(evaluations)), c.p < below)
    for row in connection.execute(query.order_by(c.p, c.one_id, c.other_id)):
        yield row.one_id, row.other_id, row.p


def _known(connection: Connection, settings: Settings, ids: set[int]) -> int:
    query = select(func.count()).select_from(comparisons).where(_among(settings, ids))
    return connection.execute(query).scalar_one()


def _among(settings: Settings, ids: set[int]) -> ColumnElement[bool]:
    c = comparisons.c
    made_with = and_(c.samples == settings.samples, c.seed == settings.seed)
    return and_(c.one_id.in_(ids), c.other_id.in_(ids), made_with)


def complete(connection: Connection, settings: Settings, now: datetime) -> None:
    """Compare all pairs of evaluations that stand in some ranking, unless they were with these samples and seed."""
    ranked: set[int] = set()
    for test in settings.tests:
        if settings.digits_of(test, now):
            for phase in settings.phase_names:
                ids = _compared(connection, settings, test.name, phase)
                _compare(connection, settings, ids)
                ranked.update(ids)
    _forget(connection, settings, ranked)


def _compared(connection: Connection, settings: Settings, test: str, phase: str) -> set[int]:
    by = order.GROUPINGS[settings.entries]
    rows = connection.execute(order.entries(settings, test, phase, by, connection.dialect.name))
    placed = (row.evaluation_id for row in rows if row.place is not None)
    return set(islice(placed, MOST_COMPARED))


def _compare(connection: Connection, settings: Settings, ids: set[int]) -> None:
    """Store the p-values of those pairs of evaluations of a test that are not known."""
    missing = list(_missing(connection, settings, ids))
    if missing:
        from geval_py.board.ranking.pairing import compare_pairs

        connection.execute(insert(comparisons), list(compare_pairs(connection, settings, missing)))


def _missing(connection: Connection, settings: Settings, ids: set[int]) -> Iterator[tuple[int, int]]:
    """Give the pairs that are not known; mostly these are all those of what is new."""
    c = comparisons.c
    among = _among(settings, ids)
    ends = union(select(c.one_id).where(among), select(c.other_id).where(among))
    old = set(connection.execute(ends).scalars())
    known: set[tuple[int, int]] = set()
    if _known(connection, settings, ids) < len(old) * (len(old) - 1) // 2:
        known = {(one, other) for one, other in connection.execute(select(c.one_id, c.other_id).where(among))}
        old = set()
    for one, other in combinations(sorted(ids), 2):
        if not (one in old and other in old) and (one, other) not in known:
            yield one, other


def _forget(connection: Connection, settings: Settings, ranked: set[int]) -> None:
    """Forget what is kept of evaluations that are no longer ranked, and of other samples and seeds."""
    c = exchanges.c
    for evaluation, samples, seed in connection.execute(select(c.evaluation_id, c.samples, c.seed)).all():
        if evaluation not in ranked or (samples, seed) != (settings.samples, settings.seed):
            this = and_(c.evaluation_id == evaluation, c.samples == samples, c.seed == seed)
            connection.execute(delete(exchanges).where(this))
