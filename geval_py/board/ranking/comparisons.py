"""Which entries are better than others by more than chance, and which outputs are suspiciously alike.

p-values of pairs of evaluations are computed when an entry is scored, and stored with the samples and the seed they
were made with. Likenesses are for the organiser alone and never stand on a public page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, insert, select, union

from geval_py.board.database import schema
from geval_py.board.database.schema import comparisons, evaluations, exchanges, outputs, scores, submissions
from geval_py.board.ranking import order
from geval_py.board.submission import unpack
from geval_py.explaining.significance import LEVEL

if TYPE_CHECKING:
    from geval_py.board.settings import Settings


MOST_COMPARED = 500  # entries of a ranking, the first ones
LEAST_SHARE = 0.95  # of lines with the same loss
MOST_OUTPUTS = 1000  # of a test, the latest, that are compared with each other
MOST_PAIRS = 1000


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
    ranked: set[int] = set()
    by = order.GROUPINGS[settings.entries]
    for test in settings.tests:
        if settings.digits_of(test, now):
            for phase in settings.phase_names:
                rows = connection.execute(order.entries(settings, test.name, phase, by, connection.dialect.name))
                placed = (row.evaluation_id for row in rows if row.place is not None)
                ids = set(islice(placed, MOST_COMPARED))
                _compare_missing(connection, settings, ids)
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


# Outputs of different submitters that are much alike


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
    """Yield pairs of outputs, of different submitters, with the same loss on nearly all lines; baselines too."""
    for test in settings.tests:
        yield from islice(_alike(test.name, _latest_outputs(connection, settings, test.name)), MOST_PAIRS)


def _latest_outputs(connection: Connection, settings: Settings, test: str) -> list[Row[Any]]:
    submitters = schema.submitters
    columns = (submissions.c.code, submitters.c.name, submitters.c.id, evaluations.c.lines, evaluations.c.losses)
    query = (
        select(*columns, scores.c.evaluation_id)
        .join(submitters, submitters.c.id == submissions.c.submitter_id)
        .join(outputs, outputs.c.submission_id == submissions.c.id)
        .join(scores, scores.c.output_id == outputs.c.id)
        .join(evaluations, evaluations.c.id == scores.c.evaluation_id)
        .where(outputs.c.test == test, scores.c.metric == settings.metric, evaluations.c.losses.is_not(None))
        .where(submissions.c.state == schema.SCORED)
        .order_by(submissions.c.arrived.desc(), outputs.c.id)
    )
    return list(connection.execute(query.limit(MOST_OUTPUTS)))


def _alike(test: str, rows: list[Row[Any]]) -> Iterator[Likeness]:
    import numpy as np

    losses = {row.evaluation_id: np.array(unpack(row.losses, row.lines)[0]) for row in rows}
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
