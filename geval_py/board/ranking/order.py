"""The one query that decides the order of a leaderboard, and the stored p-values of its entries.

    candidates   all outputs of the test and phase that have a disclosure, and whether a ladder holds them back
    numbered     the candidates of each submitter (or submission, or tag), the best first
    chosen       the best candidate of each
    entries      with their places, in order

A finite value is better than an infinite one, then the better value in the metric's own direction, then the earlier
arrival. Entries without a value come last and have no place, nor do baselines; equal values share a place.

The p-values of pairs of evaluations are computed when an entry is scored, and stored with the samples and the seed
they were made with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import datetime
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from geval_py.board.database.schema import (
    SCORED,
    comparisons,
    disclosures,
    evaluations,
    exchanges,
    outputs,
    scores,
    submissions,
    submitters,
)
from geval_py.board.database.store import facts_about, remember
from geval_py.board.settings import ALL, BEST, BY_TAG, Settings, measure_of
from geval_py.board.submission import Entry
from geval_py.explaining.significance import LEVEL

if TYPE_CHECKING:
    from sqlalchemy.sql import ColumnCollection


SUBMITTER, SUBMISSION, TAG = "submitter", "submission", "tag"
GROUPINGS = {BEST: SUBMITTER, ALL: SUBMISSION, BY_TAG: TAG}  # by the word of board.yaml
KEYS = ("output_id", "submission_id", "evaluation_id", "submitter_id", "arrived", "baseline", "value", "low", "high")
P_VALUES = "counted, or bounded if few"  # how p-values are made; others are made again
MADE_BY = "p-values"  # the name of the fact that holds this
MOST_COMPARED = 500  # entries of a ranking, the first ones
TOLD = [one.name for one in fields(Entry) if one.name in submissions.c and one.name not in KEYS]  # by submissions


def entries(settings: Settings, test: str, phase: str, by: str, dialect: str) -> sa.Select[Any]:
    """Select the entries of a leaderboard in order; the other metrics are the columns other0, other1 and so on."""
    lower = measure_of(settings.metric).direction == "lower"
    candidates = _candidates(settings, test, phase)
    pool = _with_tags(candidates, dialect) if by == TAG else candidates
    numbered = sa.select(
        pool,
        sa.func.row_number().over(partition_by=_group(pool.c, by), order_by=_order(pool.c, lower)).label("nth"),
        _latest_held(pool.c, by).label("latest_held"),
    ).subquery("numbered")
    columns = [*(numbered.c[key] for key in KEYS), numbered.c.latest_held]
    chosen = sa.select(*columns).where(numbered.c.nth == 1).distinct().subquery("chosen")
    return _placed(settings, chosen, lower)


def _candidates(settings: Settings, test: str, phase: str) -> sa.Subquery:
    own, shown = evaluations.alias("own"), evaluations.alias("shown")
    return (
        sa.select(
            outputs.c.id.label("output_id"),
            submissions.c.id.label("submission_id"),
            disclosures.c.evaluation_id,
            submissions.c.submitter_id,
            submissions.c.arrived,
            submissions.c.baseline,
            disclosures.c.value,
            disclosures.c.low,
            disclosures.c.high,
            own.c.output_sha256.is_distinct_from(shown.c.output_sha256).label("held"),
            submissions.c.tags,
        )
        .join(submissions, submissions.c.id == outputs.c.submission_id)
        .join(disclosures, sa.and_(disclosures.c.output_id == outputs.c.id, disclosures.c.metric == settings.metric))
        .outerjoin(scores, sa.and_(scores.c.output_id == outputs.c.id, scores.c.metric == settings.metric))
        .outerjoin(own, own.c.id == scores.c.evaluation_id)
        .outerjoin(shown, shown.c.id == disclosures.c.evaluation_id)
        .where(outputs.c.test == test, submissions.c.state == SCORED, submissions.c.withdrawn.is_(None))
        .where(*arrived_in(settings, phase))
        .subquery("candidates")
    )


def arrived_in(settings: Settings, phase: str) -> list[sa.ColumnElement[bool]]:
    """Return the conditions for an arrival in a phase: after the deadline before it, until its own deadline."""
    begin, end = bounds(settings, phase)
    arrived = submissions.c.arrived
    return [*([arrived > begin] if begin else []), *([arrived <= end] if end else [])]


def bounds(settings: Settings, phase: str) -> tuple[datetime | None, datetime | None]:
    """Return the deadline before a phase and its own; None for a missing one."""
    deadlines = [None, *(of.until for of in settings.phases), None]
    number = settings.phase_names.index(phase)
    return deadlines[number], deadlines[number + 1]


def _with_tags(candidates: sa.Subquery, dialect: str) -> sa.Subquery:
    """Repeat each candidate for each of its tags; a candidate without tags stays, with the tag NULL."""
    if dialect == "postgresql":
        tags = (
            sa.func.json_array_elements_text(candidates.c.tags).table_valued("value", name="tagged").render_derived()
        )
    else:
        tags = sa.func.json_each(candidates.c.tags).table_valued("value", name="tagged")
    joined = candidates.outerjoin(tags, sa.true())
    columns = [column for column in candidates.c if column.name != "tags"]
    return sa.select(*columns, tags.c.value.label("tag")).select_from(joined).subquery("by_tag")


def _group(c: ColumnCollection[str, Any], by: str) -> list[sa.ColumnElement[Any]]:
    """Return the columns that candidates are grouped by, to show one entry each; each baseline is a group."""
    return [*_whose(c, by), c.tag] if by == TAG else _whose(c, by)


def _whose(c: ColumnCollection[str, Any], by: str) -> list[sa.ColumnElement[Any]]:
    own = sa.case((c.baseline, c.submission_id), else_=0)
    return [c.submission_id] if by == SUBMISSION else [c.submitter_id, own]


def _latest_held(c: ColumnCollection[str, Any], by: str) -> sa.ColumnElement[bool]:
    """Whether a ladder holds back all outputs of the latest submission of a submitter (or of this submission)."""
    latest_first = [c.arrived.desc(), c.submission_id.desc(), c.held.asc()]
    return sa.func.first_value(c.held).over(partition_by=_whose(c, by), order_by=latest_first)


def _quality(c: ColumnCollection[str, Any], lower: bool) -> list[sa.ColumnElement[Any]]:
    infinite = sa.func.abs(c.value) == sa.literal(math.inf)
    return [sa.nulls_last(infinite.asc()), sa.nulls_last(c.value.asc() if lower else c.value.desc())]


def _order(c: ColumnCollection[str, Any], lower: bool) -> list[sa.ColumnElement[Any]]:
    return [*_quality(c, lower), c.arrived, c.submission_id, c.output_id]


def _placed(settings: Settings, chosen: sa.Subquery, lower: bool) -> sa.Select[Any]:
    """Add places, whether they are shared, and the other columns of an entry."""
    c = chosen.c
    ranked = sa.and_(~c.baseline, c.value.is_not(None))
    place = sa.func.rank().over(partition_by=ranked, order_by=_quality(c, lower))
    sharing = sa.func.count().over(partition_by=[ranked, c.value])
    source, others = _with_others(settings, chosen)
    return (
        sa.select(
            sa.case((ranked, place), else_=sa.null()).label("place"),
            sa.case((ranked, sharing > 1), else_=sa.false()).label("shared"),
            *(c[key] for key in KEYS),
            c.latest_held,
            *others,
            submitters.c.name.label("submitter"),
            *(submissions.c[name] for name in TOLD),
            outputs.c.variant,
            outputs.c.params.label("variant_params"),
        )
        .select_from(source)
        .order_by(*_order(c, lower))
    )


def _with_others(settings: Settings, chosen: sa.Subquery) -> tuple[sa.FromClause, list[sa.ColumnElement[Any]]]:
    """Join the tables of an entry, and the disclosures of the metrics that do not rank."""
    source: sa.FromClause = (
        chosen.join(submissions, submissions.c.id == chosen.c.submission_id)
        .join(submitters, submitters.c.id == chosen.c.submitter_id)
        .join(outputs, outputs.c.id == chosen.c.output_id)
    )
    columns: list[sa.ColumnElement[Any]] = []
    for number, metric in enumerate(settings.also):
        other = disclosures.alias(f"of_other{number}")
        source = source.outerjoin(other, sa.and_(other.c.output_id == chosen.c.output_id, other.c.metric == metric))
        columns.append(other.c.value.label(f"other{number}"))
    return source, columns


def are_compared(connection: sa.Connection, settings: Settings, evaluations: Iterable[int]) -> bool:
    """Whether all pairs of some evaluations were compared, with the samples and the seed of the settings."""
    ids = set(evaluations)
    return _number_stored(connection, settings, ids) == len(ids) * (len(ids) - 1) // 2


def p_values(
    connection: sa.Connection, settings: Settings, evaluations: Iterable[int], below: float = LEVEL
) -> Iterator[tuple[int, int, float]]:
    """Yield the stored p-values below a level, the smallest first; of each pair the smaller id comes first."""
    c = comparisons.c
    query = sa.select(c.one_id, c.other_id, c.p).where(_stored_among(settings, set(evaluations)), c.p < below)
    for row in connection.execute(query.order_by(c.p, c.one_id, c.other_id)):
        yield row.one_id, row.other_id, row.p


def _number_stored(connection: sa.Connection, settings: Settings, ids: set[int]) -> int:
    query = sa.select(sa.func.count()).select_from(comparisons).where(_stored_among(settings, ids))
    return connection.execute(query).scalar_one()


def _stored_among(settings: Settings, ids: set[int]) -> sa.ColumnElement[bool]:
    c = comparisons.c
    made_with = sa.and_(c.samples == settings.samples, c.seed == settings.seed)
    return sa.and_(c.one_id.in_(ids), c.other_id.in_(ids), made_with)


def complete(connection: sa.Connection, settings: Settings, now: datetime) -> None:
    """Compare all pairs of ranked evaluations that were not compared with these samples and this seed."""
    if facts_about(connection, MADE_BY).get("") != P_VALUES:
        connection.execute(sa.delete(comparisons))
        remember(connection, MADE_BY, P_VALUES)
    ranked: set[int] = set()
    by = GROUPINGS[settings.entries]
    for phase, of in settings.by_phase.items():
        for test in of.tests:
            if of.digits_of(test, now).score:
                rows = connection.execute(entries(of, test.name, phase, by, connection.dialect.name))
                placed = (row.evaluation_id for row in rows if row.place is not None)
                ids = set(islice(placed, MOST_COMPARED))
                _compare_missing(connection, of, ids)
                ranked.update(ids)
    _forget_unranked(connection, settings, ranked)


def _compare_missing(connection: sa.Connection, settings: Settings, ids: set[int]) -> None:
    missing = list(_missing_pairs(connection, settings, ids))
    if missing:
        from geval_py.board.ranking.uncertainty import compare_pairs

        connection.execute(sa.insert(comparisons), list(compare_pairs(connection, settings, missing)))


def _missing_pairs(connection: sa.Connection, settings: Settings, ids: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs without a stored p-value; usually these are just the pairs with a new evaluation."""
    c = comparisons.c
    among = _stored_among(settings, ids)
    ends = sa.union(sa.select(c.one_id).where(among), sa.select(c.other_id).where(among))
    old = set(connection.execute(ends).scalars())
    stored: set[tuple[int, int]] = set()
    if _number_stored(connection, settings, ids) < len(old) * (len(old) - 1) // 2:
        stored = {(one, other) for one, other in connection.execute(sa.select(c.one_id, c.other_id).where(among))}
        old = set()
    for one, other in combinations(sorted(ids), 2):
        if not (one in old and other in old) and (one, other) not in stored:
            yield one, other


def _forget_unranked(connection: sa.Connection, settings: Settings, ranked: set[int]) -> None:
    """Delete the prepared means of evaluations that are no longer ranked, and of other samples or seeds."""
    c = exchanges.c
    for evaluation, samples, seed in connection.execute(sa.select(c.evaluation_id, c.samples, c.seed)).all():
        if evaluation not in ranked or (samples, seed) != (settings.samples, settings.seed):
            this = sa.and_(c.evaluation_id == evaluation, c.samples == samples, c.seed == seed)
            connection.execute(sa.delete(exchanges).where(this))
