"""Disclosure: which figures of each output may be shown, rounded to the digits that board.yaml allows.

With a ladder, an output may show the figures of an earlier output of the same submitter: the parameter-free ladder of
Blum and Hardt, "The Ladder: A Reliable Leaderboard for Machine Learning Competitions", 2015.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, Row, and_, case, delete, exists, insert, or_, select

from geval_py.board.database.schema import SCORED, disclosures, evaluations, facts, outputs, scores, submissions
from geval_py.board.database.store import Board, remember
from geval_py.board.ranking.comparisons import complete
from geval_py.board.settings import Settings, Test, measure_of
from geval_py.tables.numbers import MOST_PLAIN, fixed, shortest, special

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Losses: TypeAlias = "npt.NDArray[np.float64]"

MADE_WITH = "disclosed"  # the name of the fact that holds all settings that disclosures depend on
LADDER = "ladder/"  # with the name of a test: the fact that holds the steps of each of its ladders
AT_A_TIME = 1000  # ids in a query: databases limit the number of parameters
_STANDS = and_(submissions.c.state == SCORED, submissions.c.withdrawn.is_(None))


def significant(value: float | None, digits: int) -> float | None:
    """Round to significant digits, half-even; None for None, NaN and 0 digits.

    >>> significant(549.9369, 4), significant(0.00181838, 2), significant(math.inf, 3), significant(549.9, 0)
    (549.9, 0.0018, inf, None)
    """
    if value is None or digits == 0 or math.isnan(value):
        return None
    if math.isinf(value):
        return value
    return float(f"{value:.{digits - 1}e}") + 0.0


def figure(value: float | None, digits: int) -> str:
    """Write a rounded value with all its significant digits, zeros at the end too; "" for None.

    >>> figure(549.9, 4), figure(550.0, 4), figure(0.00182, 3), figure(8100.0, 2), figure(0.0, 4)
    ('549.9', '550.0', '0.00182', '8100', '0')
    """
    if value is None:
        return ""
    if not math.isfinite(value):
        return special(value)
    if abs(value) >= MOST_PLAIN:
        return shortest(value)
    return fixed(value, decimals(value, digits))


def decimals(value: float, digits: int) -> int:
    """Return the number of decimals of a finite value with these significant digits; 0 for the value 0."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def difference(one: float, other: float, digits: int) -> str:
    """Write the distance of two finite rounded values, with the decimals of the coarser one.

    >>> difference(549.9, 560.25, 4), difference(99.99, 100.5, 4)
    ('10.4', '0.5')
    """
    return fixed(abs(one - other), min(decimals(value, digits) for value in (one, other)))


# The ladder: a submitter's shown score moves only when a submission is surely better


@dataclass(frozen=True, slots=True)
class _Rung:
    """The shown step: its number, its clipped losses, their mean, its score turned so that lower is better."""

    step: int
    losses: Losses
    mean: float
    badness: float


class Ladder:
    """The ladder of one submitter on one test; larger losses count as ``bound`` nats.

    >>> import numpy as np
    >>> ladder = Ladder(20.0)
    >>> steps = [[2.0, 3.0], [1.0, 3.9], [1.0, 2.0]]
    >>> [ladder.climb(n, np.array(losses), sum(losses)) for n, losses in enumerate(steps)]
    [0, 0, 2]
    """

    def __init__(self, bound: float) -> None:
        self.bound = bound
        self._rung: _Rung | None = None

    def climb(self, step: int, losses: Losses, badness: float) -> int:
        """Add a step with its line losses (in [0, inf], at least one) and score; return the step to show."""
        clipped = losses.clip(max=self.bound)
        mean = math.fsum(clipped.tolist()) / len(clipped)
        rung = self._rung
        if rung is not None:
            error = float((clipped - rung.losses).std()) / math.sqrt(len(clipped))  # of the mean difference
        if rung is None or (mean < rung.mean - error and badness <= rung.badness):
            rung = _Rung(step, clipped, mean, badness)
        self._rung = rung
        return rung.step


# Stored disclosures


def ensure_disclosed(board: Board, now: datetime) -> None:
    """Update the disclosures if board.yaml was edited, or the last deadline passed, since they were made."""
    with board.reading() as connection:
        if _fact(connection, MADE_WITH) == _made_with(board.settings, now):
            return
    with board.writing() as connection:
        refresh(connection, board.settings, now)


def refresh(connection: Connection, settings: Settings, now: datetime) -> None:
    """Update the disclosures and the comparisons, in the transaction that changed scores or submissions."""
    disclose(connection, settings, now)
    complete(connection, settings, now)


def disclose(connection: Connection, settings: Settings, now: datetime) -> None:
    """Update the disclosures to the present scores, settings and moment; writes only what changed."""
    made_with = _made_with(settings, now)
    if _fact(connection, MADE_WITH) != made_with:
        connection.execute(delete(disclosures))
        connection.execute(delete(facts).where(facts.c.name.startswith(LADDER)))
        remember(connection, MADE_WITH, made_with)
    _delete_outdated(connection, [test.name for test in settings.tests if test.ladder])
    for test in settings.tests:
        shown = _climb(connection, settings, test) if test.ladder else {}
        _disclose_new(connection, settings, test, settings.digits_of(test, now), shown)


def _made_with(settings: Settings, now: datetime) -> str:
    """Return, as JSON, all settings that the disclosures and the choice of compared entries depend on."""
    tests = {test.name: [settings.digits_of(test, now), test.ladder and test.clip] for test in settings.tests}
    phases = [[phase.name, phase.until.isoformat()] for phase in settings.phases]
    return json.dumps([tests, settings.metrics, phases, settings.entries, settings.samples, settings.seed])


def _fact(connection: Connection, name: str) -> str | None:
    value: str | None = connection.execute(select(facts.c.value).where(facts.c.name == name)).scalar()
    return value


def _delete_outdated(connection: Connection, ladders: list[str]) -> None:
    """Delete the disclosures of withdrawn or rescored outputs; :func:`_climb` deletes the disclosures of ladders."""
    holds = (
        exists(scores)
        .where(scores.c.output_id == disclosures.c.output_id, scores.c.metric == disclosures.c.metric)
        .where(outputs.c.id == scores.c.output_id, submissions.c.id == outputs.c.submission_id, _STANDS)
        .where(or_(outputs.c.test.in_(ladders), scores.c.evaluation_id == disclosures.c.evaluation_id))
    )
    connection.execute(delete(disclosures).where(~holds))


def _disclose_new(connection: Connection, settings: Settings, test: Test, digits: int, shown: dict[int, int]) -> None:
    """Disclose the new outputs of a test; ``shown`` maps an output to the one whose figures it shows instead."""
    missing = ~exists(disclosures).where(
        disclosures.c.output_id == scores.c.output_id, disclosures.c.metric == scores.c.metric
    )
    new = connection.execute(
        select(scores.c.output_id, scores.c.metric)
        .join(outputs, outputs.c.id == scores.c.output_id)
        .join(submissions, submissions.c.id == outputs.c.submission_id)
        .where(_STANDS, outputs.c.test == test.name, scores.c.metric.in_(settings.metrics), missing)
        .order_by(scores.c.output_id, scores.c.metric)
    ).all()
    if not new:
        return
    figures = _figures(connection, {shown.get(output, output) for output, _ in new})
    rows = []
    for output, metric in new:
        found = figures.get((shown.get(output, output), metric))
        if found is not None:
            value, low, high = (significant(one, digits) for one in (found.score, found.low, found.high))
            row = {"output_id": output, "metric": metric, "evaluation_id": found.id}
            rows.append({**row, "value": value, "low": low, "high": high})
    connection.execute(insert(disclosures), rows)


def _figures(connection: Connection, of: set[int]) -> dict[tuple[int, str], Row[Any]]:
    """Read the evaluations of outputs, by output and metric."""
    e = evaluations.c
    query = select(scores.c.output_id, scores.c.metric, e.id, e.score, e.low, e.high)
    query = query.join(evaluations, e.id == scores.c.evaluation_id)
    ids = sorted(of)
    found: dict[tuple[int, str], Row[Any]] = {}
    for start in range(0, len(ids), AT_A_TIME):
        some = query.where(scores.c.output_id.in_(ids[start : start + AT_A_TIME]))
        found |= {(row.output_id, row.metric): row for row in connection.execute(some)}
    return found


def _climb(connection: Connection, settings: Settings, test: Test) -> dict[int, int]:
    """Climb the ladders of a test that changed, and delete their disclosures.

    Return the output whose figures each of their outputs shows.
    """
    before: dict[str, list[list[int]]] = json.loads(_fact(connection, LADDER + test.name) or "{}")
    steps = dict(_steps(connection, settings, test))
    shown: dict[int, int] = {}
    for climber, of in steps.items():
        if before.get(climber) != of:
            connection.execute(delete(disclosures).where(disclosures.c.output_id.in_([step[0] for step in of])))
            shown |= _climb_one(connection, settings, test, of)
    if steps != before:
        remember(connection, LADDER + test.name, json.dumps(steps))
    return shown


def _steps(connection: Connection, settings: Settings, test: Test) -> Iterator[tuple[str, list[list[int]]]]:
    """Yield the steps of each submitter in order of arrival; each baseline counts as a submitter.

    A step is an output and its evaluations, 0 for a missing one: first by the metric that ranks, then by the other
    metrics, whose figures follow the ladder too.
    """
    climber = case((submissions.c.baseline, -submissions.c.id), else_=submissions.c.submitter_id)
    query = (
        select(climber.label("climber"), outputs.c.id, scores.c.metric, scores.c.evaluation_id)
        .join(submissions, submissions.c.id == outputs.c.submission_id)
        .join(scores, scores.c.output_id == outputs.c.id)
        .where(_STANDS, outputs.c.test == test.name)
        .order_by("climber", submissions.c.arrived, submissions.c.id, outputs.c.id)
    )
    for one, rows in groupby(connection.execute(query), key=lambda row: row.climber):
        steps: list[list[int]] = []
        for output, scored in groupby(rows, key=lambda row: row.id):
            by_metric = {row.metric: row.evaluation_id for row in scored}
            steps.append([output, *(by_metric.get(metric, 0) for metric in settings.metrics)])
        yield str(one), steps


def _climb_one(
    connection: Connection, settings: Settings, test: Test, steps: Sequence[Sequence[int]]
) -> dict[int, int]:
    """Climb one ladder; return for each output the one shown from then on (itself, if it has no score)."""
    import numpy as np

    from geval_py.board.submission import unpack

    sign = 1 if measure_of(settings.metric).direction == "lower" else -1
    ladder, shown = Ladder(test.clip), {}
    columns = select(evaluations.c.score, evaluations.c.lines, evaluations.c.losses)
    for output, evaluation, *_ in steps:
        of = connection.execute(columns.where(evaluations.c.id == evaluation)).first()
        shown[output] = output
        if of is not None and of.score is not None and of.losses is not None:
            losses = np.array(unpack(of.losses, of.lines)[0])
            shown[output] = ladder.climb(output, losses, sign * of.score)
    return shown
