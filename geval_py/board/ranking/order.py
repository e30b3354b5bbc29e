"""The one query that decides the order of a leaderboard, and the stored p-values of its entries.

    candidates   all outputs of the test and phase that have a disclosure, and whether a ladder holds them back
    numbered     the candidates of each submitter (or submission), the best first
    chosen       the best candidate of each

A finite value is better than an infinite one, then the better value in the metric's own direction, then the earlier
arrival. Entries without a value come last and have no place, nor do baselines; equal values share a place.

The p-values of pairs of evaluations are computed when an entry is scored, and stored with the samples and the seed
they were made with.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Row, RowMapping, and_, bindparam, select

from geval_py.board.database.schema import SCORED, Moment, board, comparisons
from geval_py.board.settings import ALL, BEST, BoardSettings, metric_of
from geval_py.board.submission import attributes
from geval_py.explaining.significance import LEVEL

SUBMITTER, SUBMISSION = "submitter", "submission"
GROUPINGS = {BEST: SUBMITTER, ALL: SUBMISSION}  # by the word of board.yaml
ERRORS = 2.0  # of a ladder: standard errors by which a mean loss must fall
BEGINNING, END = (datetime(year, 1, 1, tzinfo=UTC) for year in (1000, 9999))
MAX_COMPARED = 500  # entries of a ranking, the first ones

UNTIL = (  # the deadline of a submission's team
    "coalesce((SELECT max(until) FROM exceptions WHERE submitter_id = submissions.submitter_id"
    " AND phase = :{0} AND until > :{1}), :{1})"
)
IN_PHASE = f"submissions.arrived > {UNTIL.format('before', 'begin')}"
IN_PHASE += f" AND submissions.arrived <= {UNTIL.format('phase', 'end')}"
ENTRIES = """
WITH candidates AS (
    SELECT outputs.id AS output_id, submissions.id AS submission_id, disclosures.evaluation_id,
           submissions.submitter_id, submissions.arrived, submissions.baseline,
           disclosures.value,
           coalesce(own.output_sha256, '') <> coalesce(shown.output_sha256, '') AS held
    FROM outputs
    JOIN submissions ON submissions.id = outputs.submission_id
    JOIN disclosures ON disclosures.output_id = outputs.id AND disclosures.metric = :metric
    LEFT JOIN scores ON scores.output_id = outputs.id AND scores.metric = :metric
    LEFT JOIN evaluations AS own ON own.id = scores.evaluation_id
    LEFT JOIN evaluations AS shown ON shown.id = disclosures.evaluation_id
    WHERE outputs.test = :test AND submissions.state = :scored AND submissions.withdrawn IS NULL
          AND {in_phase}
), numbered AS (
    SELECT candidates.*,
           row_number() OVER (PARTITION BY {whose} ORDER BY {quality}, arrived, submission_id, output_id) AS nth,
           first_value(held) OVER (PARTITION BY {whose} ORDER BY arrived DESC, submission_id DESC, held)
               AS latest_held
    FROM candidates
), chosen AS (
    SELECT numbered.*, NOT baseline AND value IS NOT NULL AS ranked FROM numbered WHERE nth = 1
)
SELECT code, chosen.submission_id, output_id, evaluation_id, latest_held AS held,
       CASE WHEN ranked THEN rank() OVER (PARTITION BY ranked ORDER BY {quality}) END AS place,
       ranked AND count(*) OVER (PARTITION BY ranked, value) > 1 AS shared
FROM chosen
JOIN submissions ON submissions.id = chosen.submission_id
ORDER BY {quality}, chosen.arrived, chosen.submission_id, chosen.output_id
"""


def entries(connection: Connection, settings: BoardSettings, test: str, phase: str, by: str) -> Sequence[RowMapping]:
    """Return the entries of a leaderboard in order.

    Each has the ``code`` and ``submission_id`` of its submission, its ``output_id``, the disclosed ``evaluation_id``,
    its ``place`` and whether it is ``shared``, and whether the ladder ``held`` the latest submission back.
    """
    whose = "submission_id" if by == SUBMISSION else "submitter_id, CASE WHEN baseline THEN submission_id ELSE 0 END"
    direction = "ASC" if metric_of(settings.metric).measure.direction == "lower" else "DESC"
    quality = f"abs(value) = :infinity NULLS LAST, value {direction} NULLS LAST"
    query = bound(ENTRIES.format(in_phase=IN_PHASE, whose=whose, quality=quality), settings, phase)  # baselines alone
    values = {"metric": settings.metric, "test": test, "scored": SCORED, "infinity": math.inf}
    return connection.execute(query.columns(shared=sa.Boolean(), held=sa.Boolean()), values).mappings().all()


def bound(sql: str, settings: BoardSettings, phase: str) -> sa.TextClause:
    """Return SQL with the values of IN_PHASE: a submission arrived in a phase, by the deadlines of its team."""
    (begin, end), number = bounds(settings, phase), settings.phase_names.index(phase)
    before = settings.phase_names[number - 1] if number else ""
    moments = bindparam("begin", begin, Moment), bindparam("end", end, Moment)
    return sa.text(sql).bindparams(*moments, bindparam("before", before), bindparam("phase", phase))


def bounds(settings: BoardSettings, phase: str) -> tuple[datetime, datetime]:
    """Return the deadline before a phase and its own; without one, a moment that lies before or after all others."""
    deadlines = [BEGINNING, *(one.until for one in settings.phases), END]
    number = settings.phase_names.index(phase)
    return deadlines[number], deadlines[number + 1]


def arrived_in(settings: BoardSettings, phase: str, arrived: ColumnElement[datetime]) -> ColumnElement[bool]:
    """Return the condition for an arrival in a phase: after the deadline before it, until its own deadline."""
    begin, end = bounds(settings, phase)
    return and_(arrived > begin, arrived <= end)


def is_disclosed(connection: Connection, settings: BoardSettings, now: datetime) -> bool:
    """Whether the stored disclosures and comparisons are those of now."""
    return connection.scalar(select(board.c.disclosed_with)) == made_with(settings, now)


def made_with(settings: BoardSettings, now: datetime) -> str:
    """Return, as text, all settings that the disclosures and the choice of compared entries depend on."""
    return repr((settings.phase_of(now), attributes(settings, "metrics tests phases entries finals samples seed")))


def p_values(
    connection: Connection, settings: BoardSettings, evaluations: Collection[int]
) -> Sequence[Row[int, int, float]]:
    """Return the stored p-values that are significant, the smallest first; of each pair the smaller id is first."""
    c = comparisons.c
    query = select(c.one_id, c.other_id, c.p).where(are_among(settings, evaluations), c.p < LEVEL)
    return connection.execute(query.order_by(c.p, c.one_id, c.other_id)).all()


def are_among(settings: BoardSettings, evaluations: Collection[int]) -> ColumnElement[bool]:
    """Return the condition for comparisons among some evaluations, with the samples and seed of the settings."""
    c, ids = comparisons.c, sorted(evaluations)
    is_made = and_(c.samples == settings.samples, c.seed == settings.seed)
    return and_(c.one_id.in_(ids), c.other_id.in_(ids), is_made)
