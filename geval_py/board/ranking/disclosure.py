"""Disclosure: which figures of each output may be shown, rounded to the digits that board.yaml allows.

In this order: the ladder; the stored disclosures; and the stored comparisons of what is ranked by them.

Of the variants that a submission has for a hidden test, only the best one shows figures. Of a test that is split,
all figures are of the public part or, once the private part decides, of that (ranking.parts). With a ladder, an
output may show those of an earlier submission by the same submitter in the same phase: the parameter-free ladder of
Blum and Hardt, "The Ladder: A Reliable Leaderboard for Machine Learning Competitions", 2015.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import combinations, groupby, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, and_, case, delete, insert, select, update

from geval_py.board.database.schema import (
    SCORED,
    board,
    comparisons,
    disclosures,
    evaluations,
    outputs,
    rungs,
    scores,
    submissions,
)
from geval_py.board.database.store import Board, is_copy, mark_changed
from geval_py.board.ranking import order
from geval_py.board.settings import (
    BEST,
    MAX_DIGITS,
    NO_DIGITS,
    PUBLIC,
    Digits,
    Settings,
    Test,
    measure_of,
    uninformed_score,
)
from geval_py.board.submission import PartScore, unpack
from geval_py.scoring.metrics.base import NOISE
from geval_py.tables.numbers import significant

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Losses: TypeAlias = "npt.NDArray[np.float64]"

SMALLEST = 1e-12  # distance of a score from the best one
AT_A_TIME = 1000  # ids in a query: databases limit the number of parameters


# The ladder: a submitter's shown score moves only when a submission is surely better


@dataclass(frozen=True, slots=True)
class _Rung:
    """The shown step: its number, its losses, its score turned so that lower is better."""

    step: int
    losses: Losses
    badness: float


class Ladder:
    """The ladder of one submitter on one test in one phase.

    A step is shown if its figure, rounded to ``digits``, is better than the shown one, and its mean loss is lower by
    more than two standard errors of the difference and by at least ``fall`` nats; both for the losses as they are and
    for those clipped at ``bound`` nats, so that neither a single line nor a waste on all lines can move it.

    >>> import numpy as np
    >>> ladder = Ladder(20.0)
    >>> steps = [[2.0, 3.0], [1.0, 3.9], [1.0, 2.0]]
    >>> [ladder.climb(n, np.array(losses), sum(losses)) for n, losses in enumerate(steps)]
    [0, 0, 2]
    """

    def __init__(self, bound: float, *, fall: float = 0.0, digits: int = MAX_DIGITS) -> None:
        self.bound, self.fall, self.digits = bound, fall, digits
        self._rung: _Rung | None = None

    @property
    def shown(self) -> int | None:
        """The step that is shown; None before the first one."""
        return None if self._rung is None else self._rung.step

    def climb(self, step: int, losses: Losses, badness: float) -> int:
        """Add a step with its line losses (at least one, not negative) and score; return the step to show."""
        rung = self._rung
        if rung is None or self._is_better(rung, losses, badness):
            rung = _Rung(step, losses, badness)
        self._rung = rung
        return rung.step

    def _is_better(self, rung: _Rung, losses: Losses, badness: float) -> bool:
        if not (significant(badness, self.digits) or 0.0) < (significant(rung.badness, self.digits) or 0.0):
            return False
        if not self._falls(rung.losses.clip(max=self.bound) - losses.clip(max=self.bound)):
            return False
        return math.inf in rung.losses or self._falls(rung.losses - losses)

    def _falls(self, differences: Losses) -> bool:
        mean = math.fsum(differences.tolist()) / len(differences)
        return mean > order.ERRORS * float(differences.std()) / math.sqrt(len(differences)) and mean >= self.fall


# Stored disclosures


def ensure_disclosed(opened: Board, now: datetime) -> None:
    """Update the disclosures if board.yaml was edited, or a deadline passed, since they were made."""
    with opened.reading() as connection:
        if order.is_disclosed(connection, opened.settings, now):
            return
    with opened.writing() as connection:
        refresh(connection, opened.settings, now)


@contextmanager
def disclosed(opened: Board, now: datetime) -> Iterator[Connection]:
    """Read one state of the database, with the disclosures of now; raises StoreError.

    If the database cannot be written, what is not of now is computed in the connection's copy of it.
    """
    with opened.reading() as connection:
        is_old = not order.is_disclosed(connection, opened.settings, now)
        if not is_old or is_copy(connection):
            if is_old:
                refresh(connection, opened.settings, now)
            yield connection
            return
    ensure_disclosed(opened, now)
    with opened.reading() as connection:
        yield connection


def refresh(connection: Connection, settings: Settings, now: datetime) -> None:
    """Update the disclosures and the comparisons, in the transaction that changed scores or submissions."""
    disclose(connection, settings, now)
    complete(connection, settings, now)
    mark_changed(connection)


def disclose(connection: Connection, settings: Settings, now: datetime) -> None:
    """Update the disclosures to the present scores, settings and moment; writes only what changed."""
    if not order.is_disclosed(connection, settings, now):
        connection.execute(delete(disclosures))
        connection.execute(delete(rungs))
        connection.execute(update(board).values(disclosed_with=order.made_with(settings, now)))
    wanted: dict[int, _Shown] = {}
    for phase, of in settings.by_phase.items():
        for test in of.tests:
            wanted |= _shown_in(connection, of, phase, test, now)
    _replace_disclosures(connection, settings, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    """An output of a submission: its evaluations by metric, its score by the ranking metric, who climbs with it.

    It is not ``informed`` if the answers are hidden and its score is worse than that of knowing nothing.
    """

    id: int
    submission: int
    climber: int
    evaluations: Mapping[str, int]
    score: float | None
    informed: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    """The evaluations whose figures an output shows, by metric, and their digits.

    In place of a score that is not ``informed``, an infinite one is shown, without an interval or other metrics.
    """

    evaluations: Mapping[str, int]
    digits: Digits
    informed: bool = True


def _shown_in(connection: Connection, settings: Settings, phase: str, test: Test, now: datetime) -> dict[int, _Shown]:
    """Return what the outputs for a test that arrived in a phase show; an output that shows nothing is missing.

    If only the best variant of a submission is shown, but a ladder holds it back, or its own score is not shown, then
    the first variant with a score stands in its place, so that nobody learns which one is the best.
    """
    part, is_decided = settings.part_of(test, phase, now), settings.is_decided(test, phase, now)
    found = list(_scored_outputs(connection, settings, phase, test, part))
    digits = settings.digits_of(test, now)
    if is_decided and settings.finals:
        final = _final_submissions(connection, settings, _scored_outputs(connection, settings, phase, test, PUBLIC))
        found = [one for one in found if one.submission in final]
    firsts = steps = found
    if test.show == BEST:
        groups = [list(group) for _, group in groupby(found, key=lambda one: one.submission)]
        firsts = [next((one for one in group if one.score is not None), group[0]) for group in groups]
        steps = [min(group, key=partial(_rank, settings, digits.score)) for group in groups]
    climbs = test.ladder and digits.score and not is_decided
    rungs = _climbed(connection, settings, phase, test, digits.score, steps) if climbs else {}
    by_id = {step.id: step for step in steps}
    shown: dict[int, _Shown] = {}
    for first, step in zip(firsts, steps, strict=True):
        rung = by_id[rungs.get(step.id, step.id)]
        if not digits.score or (rung is step and not step.informed):
            rung = first
        stands = step if rung is step else first
        shown[stands.id] = _Shown(rung.evaluations, digits, rung.informed)
    return shown


def _final_submissions(connection: Connection, settings: Settings, public: Iterable[_Output]) -> set[int]:
    """Return the submissions that decide: all baselines, and of each submitter those that were named as final.

    Of a submitter without any, these are the best by the public part, the earlier ones first; ``public`` has the
    outputs in order of arrival. If too many were named, the first ones count.
    """
    named: dict[int, datetime] = {
        row.id: row.final
        for row in connection.execute(
            select(submissions.c.id, submissions.c.final).where(submissions.c.final.is_not(None))
        )
    }
    by_climber: dict[int, dict[int, tuple[bool, bool, float]]] = {}
    for output in public:
        of, rank = by_climber.setdefault(output.climber, {}), _rank(settings, MAX_DIGITS, output)
        of[output.submission] = min(rank, of.get(output.submission, rank))
    final: set[int] = set()
    for of in by_climber.values():
        own = sorted((one for one in of if one in named), key=lambda one: (named[one], one))
        final.update((own or sorted(of, key=of.__getitem__))[: settings.finals])
    return final


def _scored_outputs(
    connection: Connection, settings: Settings, phase: str, test: Test, part: str
) -> Iterator[_Output]:
    """Yield the outputs for a test that arrived in a phase, in order of arrival; each baseline climbs for itself.

    Their evaluations and scores are those of a part of the test; "" for the whole.
    """
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
    floor = None if test.visible else uninformed_score(settings.metric)
    rows = {output: list(of) for output, of in groupby(connection.execute(query), key=lambda row: row.output_id)}
    found = {
        output: {row.metric: PartScore(row.evaluation_id, row.score) for row in of} for output, of in rows.items()
    }
    if part:
        from geval_py.board.ranking.parts import part_scores

        wholes = {output: {metric: one.evaluation for metric, one in of.items()} for output, of in found.items()}
        found = part_scores(connection, settings, test, part, wholes)
    for output, (first, *_) in rows.items():
        scored = found[output]
        score = scored[settings.metric].score if settings.metric in scored else None
        yield _Output(
            id=output,
            submission=first.id,
            climber=first.climber,
            evaluations={metric: one.evaluation for metric, one in scored.items()},
            score=score,
            informed=floor is None or score is None or not _is_worse(settings, score, floor),
        )


def arrived_in(
    settings: Settings, phase: str, arrived: ColumnElement[datetime] = submissions.c.arrived
) -> list[ColumnElement[bool]]:
    """Return the conditions for an arrival in a phase: after the deadline before it, until its own deadline."""
    begin, end = order.bounds(settings, phase)
    return [*([arrived > begin] if begin else []), *([arrived <= end] if end else [])]


def _badness(settings: Settings, score: float) -> float:
    """Return a score turned so that lower is better."""
    return score if measure_of(settings.metric).direction == "lower" else -score


def _is_worse(settings: Settings, score: float, floor: float) -> bool:
    return _badness(settings, score) - _badness(settings, floor) > NOISE * abs(floor)


def _rank(settings: Settings, digits: int, output: _Output) -> tuple[bool, bool, float]:
    """Return a key by which the best output is the first: finite scores, infinite ones, none.

    Scores are compared as they are shown, so that which variant is the best tells no more than its figure.
    """
    score = significant(output.score, digits or MAX_DIGITS)
    if score is None:
        return True, True, 0.0
    return False, math.isinf(score), _badness(settings, score)


def _climbed(
    connection: Connection, settings: Settings, phase: str, test: Test, digits: int, steps: Sequence[_Output]
) -> dict[int, int]:
    """Climb the ladders of a table; return the id of the output that each step shows.

    A ladder with the same steps as before is not climbed again.
    """
    here = and_(rungs.c.phase == phase, rungs.c.test == test.name)
    before: dict[int, list[Row[Any]]] = {}
    for row in connection.execute(select(rungs).where(here).order_by(rungs.c.step)):
        before.setdefault(row.climber, []).append(row)
    ladders: dict[int, list[_Output]] = {}
    for step in steps:
        ladders.setdefault(step.climber, []).append(step)
    shown: dict[int, int] = {}
    changed = before.keys() - ladders.keys()
    new: list[dict[str, Any]] = []
    for climber, own in ladders.items():
        contents = [(step.id, step.evaluations.get(settings.metric, 0)) for step in own]
        stored = before.get(climber, [])
        if contents == [(row.output_id, row.evaluation_id) for row in stored]:
            shown |= {row.output_id: row.shown_id for row in stored}
            continue
        changed.add(climber)
        climbed = _climb(connection, settings, test, digits, own)
        for number, ((output, evaluation), rung) in enumerate(zip(contents, climbed, strict=True)):
            shown[output] = rung
            row_of = {"phase": phase, "test": test.name, "climber": climber, "step": number}
            new.append(row_of | {"output_id": output, "evaluation_id": evaluation, "shown_id": rung})
    for some in _parts(sorted(changed)):
        connection.execute(delete(rungs).where(here, rungs.c.climber.in_(some)))
    if new:
        connection.execute(insert(rungs), new)
    return shown


def _climb(
    connection: Connection, settings: Settings, test: Test, digits: int, steps: Sequence[_Output]
) -> Iterator[int]:
    """Climb one ladder; yield for each step the output shown from then on.

    A step without a score, or whose score is worse than that of knowing nothing, never moves a ladder.
    """
    ladder = Ladder(test.clip, fall=test.step, digits=digits)
    columns = select(evaluations.c.lines, evaluations.c.losses)
    for step in steps:
        evaluation = step.evaluations.get(settings.metric, 0)
        of = connection.execute(columns.where(evaluations.c.id == evaluation)).first()
        if step.score is None or of is None:
            yield step.id
        elif not step.informed:
            yield step.id if ladder.shown is None else ladder.shown
        else:
            yield ladder.climb(
                step.id, _losses(settings, step.score, of.lines, of.losses), _badness(settings, step.score)
            )


def _losses(settings: Settings, score: float, lines: int, packed: bytes | None) -> Losses:
    """Return the line losses that a ladder compares.

    A metric that is not made of losses has the logarithm of the score's distance from the best one in their place or,
    if there is no best one, of its size, with its sign.
    """
    import numpy as np

    measure = measure_of(settings.metric)
    if measure.of_losses and packed is not None:
        return np.array(unpack(packed, lines)[0])
    if math.isinf(measure.best):
        return np.arcsinh([_badness(settings, score)])
    return np.log([max(abs(score - measure.best), SMALLEST)])


def _rounded(
    settings: Settings, shown: _Shown, figures: Sequence[float | None], *, ranks: bool
) -> dict[str, float | None]:
    """Return the public figures of an evaluation: its score and the ends of its interval."""
    score, low, high = figures
    if not shown.informed:
        infinite = math.inf if measure_of(settings.metric).direction == "lower" else -math.inf
        return {"value": infinite if ranks and shown.digits.score else None, "low": None, "high": None}
    ends = {"low": significant(low, shown.digits.ends), "high": significant(high, shown.digits.ends)}
    return {"value": significant(score, shown.digits.score), **ends}


def _replace_disclosures(connection: Connection, settings: Settings, wanted: Mapping[int, _Shown]) -> None:
    """Make the stored disclosures those that are wanted; leave alone what is the same."""
    c = disclosures.c
    stored: dict[int, dict[str, int]] = {}
    for output, metric, evaluation in connection.execute(select(c.output_id, c.metric, c.evaluation_id)):
        stored.setdefault(output, {})[metric] = evaluation
    nothing = _Shown({}, NO_DIGITS)
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
            row = {"output_id": output, "metric": metric, "evaluation_id": evaluation}
            rows.append(row | _rounded(settings, shown, figures[evaluation], ranks=metric == settings.metric))
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


# Stored comparisons


def complete(connection: Connection, settings: Settings, now: datetime) -> None:
    """Compare all pairs of ranked evaluations that were not compared with these samples and this seed."""
    from geval_py.board.ranking.uncertainty import compare_pairs

    if connection.execute(select(board.c.compared_with)).scalar() != order.P_VALUES:
        connection.execute(delete(comparisons))
        connection.execute(update(board).values(compared_with=order.P_VALUES))
    by = order.GROUPINGS[settings.entries]
    for phase, of in settings.by_phase.items():
        for test in of.tests:
            if of.digits_of(test, now).score:
                ranking = order.entries(connection, of, test.name, phase, by)
                placed = (entry["evaluation_id"] for entry in ranking if entry["place"] is not None)
                ids = set(islice(placed, order.MOST_COMPARED))
                if not order.are_compared(connection, of, ids):
                    stored = select(comparisons.c.one_id, comparisons.c.other_id).where(order.are_among(of, ids))
                    pairs = {(one, other) for one, other in connection.execute(stored)}
                    missing = [pair for pair in combinations(sorted(ids), 2) if pair not in pairs]
                    connection.execute(insert(comparisons), list(compare_pairs(connection, of, missing)))
