"""Disclosure: which figures of each output may be shown, rounded to the digits that board.yaml allows.

Of the variants that a submission has for a hidden test, only the best one shows figures. With a ladder, it may show
those of an earlier submission by the same submitter in the same phase: the parameter-free ladder of Blum and Hardt,
"The Ladder: A Reliable Leaderboard for Machine Learning Competitions", 2015.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import Connection, case, delete, insert, select

from geval_py.board.database.schema import SCORED, disclosures, evaluations, facts, outputs, scores, submissions
from geval_py.board.database.store import Board, remember
from geval_py.board.ranking.comparisons import complete
from geval_py.board.ranking.order import arrived_in
from geval_py.board.settings import BEST, Settings, Test, measure_of
from geval_py.tables.numbers import MOST_PLAIN, fixed, shortest, special

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Losses: TypeAlias = "npt.NDArray[np.float64]"

ERRORS = 1.0  # of a ladder: standard errors by which a mean loss must fall
MADE_WITH = "disclosed"  # the name of the fact that holds all settings that disclosures depend on
LADDER = "ladder/"  # with the names of a phase and a test: the fact that holds the ladders of this table
AT_A_TIME = 1000  # ids in a query: databases limit the number of parameters


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
    """The ladder of one submitter on one test in one phase; larger losses count as ``bound`` nats.

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
        if rung is None or (mean < rung.mean - ERRORS * error and badness <= rung.badness):
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
    wanted: dict[int, _Shown] = {}
    for phase, of in settings.by_phase.items():
        for test in of.tests:
            wanted |= _shown_in(connection, of, phase, test, now)
    _replace_disclosures(connection, wanted)


def _made_with(settings: Settings, now: datetime) -> str:
    """Return, as JSON, all settings that the disclosures and the choice of compared entries depend on."""
    tests = [
        [name, test.name, of.digits_of(test, now), test.ladder and [test.clip, ERRORS], test.show]
        for name, of in settings.by_phase.items()
        for test in of.tests
    ]
    phases = [[phase.name, phase.until.isoformat()] for phase in settings.phases]
    return json.dumps([tests, settings.metrics, phases, settings.entries, settings.samples, settings.seed])


def _fact(connection: Connection, name: str) -> str | None:
    value: str | None = connection.execute(select(facts.c.value).where(facts.c.name == name)).scalar()
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    """An output of a submission: its evaluations by metric, its score by the ranking metric, who climbs with it."""

    id: int
    submission: int
    climber: str
    evaluations: Mapping[str, int]
    score: float | None


@dataclass(frozen=True, slots=True)
class _Shown:
    """The evaluations whose figures an output shows, by metric, and the digits of these figures."""

    evaluations: Mapping[str, int]
    digits: int


def _shown_in(connection: Connection, settings: Settings, phase: str, test: Test, now: datetime) -> dict[int, _Shown]:
    """Return what the outputs for a test that arrived in a phase show; an output that shows nothing is missing.

    If only the best variant of a submission is shown, but a ladder holds it back or nothing is shown yet, the first
    variant stands in its place, so that nobody learns which one is the best.
    """
    found = list(_scored_outputs(connection, settings, phase, test))
    digits = settings.digits_of(test, now)
    firsts = steps = found
    if test.show == BEST:
        groups = [list(group) for _, group in groupby(found, key=lambda one: one.submission)]
        firsts, steps = [group[0] for group in groups], [min(group, key=partial(_rank, settings)) for group in groups]
    if not digits:
        return {first.id: _Shown(first.evaluations, digits) for first in firsts}
    rungs = _climbed(connection, settings, phase, test, steps) if test.ladder else {}
    by_id = {step.id: step for step in steps}
    shown: dict[int, _Shown] = {}
    for first, step in zip(firsts, steps, strict=True):
        rung = by_id[rungs.get(step.id, step.id)]
        shown[(step if rung is step else first).id] = _Shown(rung.evaluations, digits)
    return shown


def _scored_outputs(connection: Connection, settings: Settings, phase: str, test: Test) -> Iterator[_Output]:
    """Yield the outputs for a test that arrived in a phase, in order of arrival; each baseline climbs for itself."""
    climber = case((submissions.c.baseline, -submissions.c.id), else_=submissions.c.submitter_id).label("climber")
    columns = (scores.c.output_id, submissions.c.id, climber, scores.c.metric, scores.c.evaluation_id)
    query = (
        select(*columns, evaluations.c.score)
        .join_from(scores, outputs, outputs.c.id == scores.c.output_id)
        .join(submissions, submissions.c.id == outputs.c.submission_id)
        .join(evaluations, evaluations.c.id == scores.c.evaluation_id)
        .where(outputs.c.test == test.name, scores.c.metric.in_(settings.metrics))
        .where(submissions.c.state == SCORED, submissions.c.withdrawn.is_(None), *arrived_in(settings, phase))
        .order_by(submissions.c.arrived, submissions.c.id, scores.c.output_id)
    )
    for output, rows in groupby(connection.execute(query), key=lambda row: row.output_id):
        scored = list(rows)
        yield _Output(
            id=output,
            submission=scored[0].id,
            climber=str(scored[0].climber),
            evaluations={row.metric: row.evaluation_id for row in scored},
            score=next((row.score for row in scored if row.metric == settings.metric), None),
        )


def _badness(settings: Settings, score: float) -> float:
    """Return a score turned so that lower is better."""
    return score if measure_of(settings.metric).direction == "lower" else -score


def _rank(settings: Settings, output: _Output) -> tuple[bool, bool, float]:
    """Return a key by which the best output is the first: finite scores, infinite ones, none."""
    if output.score is None:
        return True, True, 0.0
    return False, math.isinf(output.score), _badness(settings, output.score)


def _climbed(
    connection: Connection, settings: Settings, phase: str, test: Test, steps: Sequence[_Output]
) -> dict[int, int]:
    """Climb the ladders of a table; return the id of the output that each step shows.

    A fact holds the last state of each ladder: its steps, each an output, its evaluation and the output shown. A
    ladder with the same steps is not climbed again.
    """
    name = f"{LADDER}{phase}/{test.name}"
    ladders: dict[str, list[_Output]] = {}
    for step in steps:
        ladders.setdefault(step.climber, []).append(step)
    before: dict[str, list[list[int]]] = json.loads(_fact(connection, name) or "{}")
    after: dict[str, list[list[int]]] = {}
    for climber, own in ladders.items():
        known = before.get(climber, [])
        contents = [[step.id, step.evaluations.get(settings.metric, 0)] for step in own]
        if contents == [content for *content, _ in known]:
            after[climber] = known
        else:
            rungs = _climb(connection, settings, test, own)
            after[climber] = [[*content, rung] for content, rung in zip(contents, rungs, strict=True)]
    if after != before:
        remember(connection, name, json.dumps(after))
    return {output: rung for known in after.values() for output, _, rung in known}


def _climb(connection: Connection, settings: Settings, test: Test, steps: Sequence[_Output]) -> Iterator[int]:
    """Climb one ladder; yield for each step the output shown from then on (itself, if it has no score)."""
    import numpy as np

    from geval_py.board.submission import unpack

    ladder = Ladder(test.clip)
    columns = select(evaluations.c.lines, evaluations.c.losses)
    for step in steps:
        evaluation = step.evaluations.get(settings.metric, 0)
        of = connection.execute(columns.where(evaluations.c.id == evaluation)).first()
        if of is None or of.losses is None or step.score is None:
            yield step.id
        else:
            losses = np.array(unpack(of.losses, of.lines)[0])
            yield ladder.climb(step.id, losses, _badness(settings, step.score))


def _replace_disclosures(connection: Connection, wanted: Mapping[int, _Shown]) -> None:
    """Make the stored disclosures those that are wanted; leave alone what is the same."""
    c = disclosures.c
    stored: dict[int, dict[str, int]] = {}
    for output, metric, evaluation in connection.execute(select(c.output_id, c.metric, c.evaluation_id)):
        stored.setdefault(output, {})[metric] = evaluation
    nothing = _Shown({}, 0)
    outdated = [output for output, by in stored.items() if by != wanted.get(output, nothing).evaluations]
    for some in _parts(outdated):
        connection.execute(delete(disclosures).where(c.output_id.in_(some)))
        for output in some:
            del stored[output]
    new = {output: shown for output, shown in wanted.items() if shown.evaluations and output not in stored}
    figures = _figures(connection, {one for shown in new.values() for one in shown.evaluations.values()})
    rows = []
    for output, shown in new.items():
        for metric, evaluation in shown.evaluations.items():
            value, low, high = (significant(one, shown.digits) for one in figures[evaluation])
            row = {"output_id": output, "metric": metric, "evaluation_id": evaluation}
            rows.append({**row, "value": value, "low": low, "high": high})
    if rows:
        connection.execute(insert(disclosures), rows)


def _figures(connection: Connection, ids: set[int]) -> dict[int, tuple[float | None, ...]]:
    """Read the score of evaluations and the ends of its interval."""
    e = evaluations.c
    found: dict[int, tuple[float | None, ...]] = {}
    for some in _parts(sorted(ids)):
        rows = connection.execute(select(e.id, e.score, e.low, e.high).where(e.id.in_(some)))
        found |= {number: tuple(figures) for number, *figures in rows}
    return found


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Cut ids into parts for a query each."""
    return (ids[start : start + AT_A_TIME] for start in range(0, len(ids), AT_A_TIME))
