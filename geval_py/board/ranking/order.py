"""The one query that decides the order of a leaderboard.

    candidates   all outputs of the test and phase that have a disclosure, and whether a ladder holds them back
    numbered     the candidates of each submitter (or submission, or tag), the best first
    chosen       the best candidate of each
    entries      with their places, in order

A finite value is better than an infinite one, then the better value in the metric's own direction, then the earlier
arrival. Entries without a value come last and have no place, nor do baselines; equal values share a place.
"""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from geval_py.board.database.schema import SCORED, disclosures, evaluations, outputs, scores, submissions, submitters
from geval_py.board.settings import ALL, BEST, BY_TAG, Settings, measure_of
from geval_py.board.submission import Entry

if TYPE_CHECKING:
    from sqlalchemy.sql import ColumnCollection


SUBMITTER, SUBMISSION, TAG = "submitter", "submission", "tag"
GROUPINGS = {BEST: SUBMITTER, ALL: SUBMISSION, BY_TAG: TAG}  # by the word of board.yaml
KEYS = ("output_id", "submission_id", "evaluation_id", "submitter_id", "arrived", "baseline", "value", "low", "high")
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
