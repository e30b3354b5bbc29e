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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, bindparam, case, delete, insert, select, update

from geval_py.board.database.schema import (
    COUNTED,
    Disclosures,
    Evaluations,
    Outputs,
    Scores,
    Submissions,
    board,
    comparisons,
    disclosures,
    evaluations,
    outputs,
    pick,
    scores,
    submissions,
)
from geval_py.board.database.store import Board, mark_changed
from geval_py.board.ranking import order, place_ranges
from geval_py.board.ranking.parts import WHOLE, Figures, part_figures
from geval_py.board.settings import (
    BEST,
    MAX_DIGITS,
    PUBLIC,
    BoardSettings,
    Digits,
    Test,
    metric_of,
    moment_text,
    uninformed_score,
)
from geval_py.board.submission import unpack, unpack_documents
from geval_py.scoring.metrics.base import NOISE
from geval_py.tables.numbers import rounded, rounded_outward

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from geval_py.explaining.documents import Documents

    Losses: TypeAlias = "npt.NDArray[np.float64]"

SMALLEST = 1e-12  # distance of a score from the best one
MAX_PAIRS = 2 * order.MAX_COMPARED  # that a change compares at its end; more are compared by the next reader
CLIP = 20.0  # nats: as much as a single line can contribute to a step of a ladder


# The ladder: a submitter's shown score moves only when a submission is surely better


@dataclass
class Ladder:
    """The ladder of one submitter on one test in one phase.

    A step is shown if its figure, rounded to ``digits``, is better than the shown one, and its mean loss is lower by
    more than two standard errors of the difference and by at least ``fall`` nats; both for the losses as they are and
    for those clipped at :data:`CLIP` nats, so that neither a single line nor a waste on all lines can move it.

    >>> import numpy as np
    >>> ladder = Ladder()
    >>> steps = [[2.0, 3.0], [1.0, 3.9], [1.0, 2.0]]
    >>> [ladder.climb(n, np.array(losses), sum(losses)) for n, losses in enumerate(steps)]
    [0, 0, 2]
    """

    fall: float = 0.0
    digits: int = MAX_DIGITS
    shown: int | None = None
    losses: Any = ()  # of the shown step
    badness: float = 0.0  # its score, turned so that lower is better

    def may_move(self, badness: float) -> bool:
        """Return whether a score has a better figure than the shown one."""
        before, after = (rounded(value, self.digits) or 0.0 for value in (self.badness, badness))
        return self.shown is None or after < before

    def climb(self, step: int, losses: Losses, badness: float, documents: Documents | None = None) -> int:
        """Add a step with its line losses (at least one, not negative) and score; return the step to show."""
        from geval_py.explaining.statistics import spread_of_mean

        if self.shown is not None:
            if not self.may_move(badness):
                return self.shown
            falls = [self.losses.clip(max=CLIP) - losses.clip(max=CLIP)]
            if math.inf not in self.losses:
                falls.append(self.losses - losses)
            for fall in falls:
                mean = math.fsum(fall.tolist()) / len(fall)
                error = float(fall.std()) / math.sqrt(len(fall))
                if documents is not None and documents.count > 1:
                    error = spread_of_mean(fall, documents.of_line).deviation
                if mean <= order.ERRORS * error or mean < self.fall:
                    return self.shown
        self.shown, self.losses, self.badness = step, losses, badness
        return step


# Stored disclosures


@contextmanager
def disclosed(opened: Board, now: datetime) -> Iterator[Connection]:
    """Read one state of the database, with the disclosures of now; raises StoreError.

    They are updated if board.yaml was edited, or a deadline passed, since they were made.
    """
    with opened.reading() as connection:
        if order.is_disclosed(connection, opened.settings, now):
            yield connection
            return
    with opened.writing() as connection:
        refresh(connection, opened.settings, now)
    with opened.reading() as connection:
        yield connection


@contextmanager
def changing(opened: Board, now: datetime) -> Iterator[Connection]:
    """Change a board in one transaction, at whose end its disclosures are updated; raises StoreError."""
    with opened.writing() as connection:
        yield connection
        refresh(connection, opened.settings, now, max_pairs=MAX_PAIRS)


def refresh(connection: Connection, settings: BoardSettings, now: datetime, *, max_pairs: float = math.inf) -> None:
    """Update the disclosures and the comparisons, in the transaction that changed scores or submissions.

    If more than ``max_pairs`` of a table are to be compared, as after a change of the seed, the next reader does it.
    """
    disclose(connection, settings, now)
    complete(connection, settings, now, max_pairs)
    mark_changed(connection)


def disclose(connection: Connection, settings: BoardSettings, now: datetime) -> None:
    """Update the disclosures to the present scores, settings and moment; writes only what changed."""
    if not order.is_disclosed(connection, settings, now):
        connection.execute(delete(disclosures))
        decided = connection.execute(select(board.c.decided)).scalar() or {}
        for name, own in settings.by_phase.items():
            if any(own.is_decided(test, name, now) for test in own.tests):
                decided[name] = moment_text(order.bounds(settings, name)[1])
        values = {"disclosed_with": order.made_with(settings, now), "decided": decided}
        connection.execute(update(board).values(values))
    shown: dict[int, _Shown] = {}
    for phase, own in settings.by_phase.items():
        for test in own.tests:
            shown |= _shown_in(connection, own, phase, test, now)
    stored: dict[int, dict[str, int]] = {}
    for output, metric, evaluation in connection.execute(
        select(*pick(Disclosures, "output_id metric evaluation_id"))
    ):
        stored.setdefault(output, {})[metric] = evaluation
    current = {output: rung.evaluations for output, (rung, _) in shown.items()}
    outdated = [output for output, evaluation in stored.items() if current.get(output) != evaluation]
    if outdated:
        is_outdated = Disclosures.output_id == bindparam("outdated")
        connection.execute(delete(disclosures).where(is_outdated), [{"outdated": one} for one in sorted(outdated)])
    infinite = metric_of(settings.metric).measure.sign * math.inf
    rows = []
    for output in [one for one in shown if stored.get(one) != current[one]]:
        rung, digits = shown[output]
        for metric, of in rung.figures.items():
            row = {"output_id": output, "metric": metric, "evaluation_id": of.id, "low": None, "high": None}
            if rung.informed:
                row |= dict(zip(("low", "high"), rounded_outward(of.low, of.high, digits.ends), strict=True))
                row["value"] = rounded(of.score, digits.score)
            else:
                row["value"] = infinite if metric == settings.metric and digits.score else None
            rows.append(row)
    if rows:
        connection.execute(insert(disclosures), rows)


class _Output(NamedTuple):
    """An output of a submission: its figures by metric, and who climbs with it.

    Its ``badness`` is its score by the ranking metric, turned so that lower is better. It is not ``informed`` if the
    answers are hidden and it is worse than knowing nothing.
    """

    id: int
    submission: int
    climber: int
    figures: Mapping[str, Figures]
    badness: float | None
    informed: bool

    @property
    def evaluations(self) -> dict[str, int]:
        """The ids of its evaluations by metric."""
        return {metric: of.id for metric, of in self.figures.items()}


# The output whose figures an output shows, and their digits. In place of a score that is not informed, an infinite
# one is shown, without an interval or other metrics.
_Shown: TypeAlias = tuple[_Output, Digits]


def _shown_in(
    connection: Connection, settings: BoardSettings, phase: str, test: Test, now: datetime
) -> dict[int, _Shown]:
    """Return what the outputs for a test that arrived in a phase show; an output that shows nothing is missing.

    If only the best variant of a submission is shown, but a ladder holds it back, or its own score is not shown, then
    the first variant with a score stands in its place, so that nobody learns which one is the best.
    """
    part, is_decided = settings.part_of(test, phase, now), settings.is_decided(test, phase, now)
    candidates = list(scored_outputs(connection, settings, phase, test, part))
    digits = settings.digits_of(test, now)
    public = list(scored_outputs(connection, settings, phase, test, PUBLIC)) if is_decided else []  # grades need them
    if is_decided and settings.finals:
        final = _final_submissions(connection, settings, public)
        candidates = [one for one in candidates if one.submission in final]
    firsts = steps = candidates
    if test.show == BEST:
        groups = [list(group) for _, group in groupby(candidates, key=lambda one: one.submission)]
        firsts = [next((one for one in group if one.badness is not None), group[0]) for group in groups]
        steps = [min(group, key=partial(_rank, digits.score)) for group in groups]
    climbs = test.ladder and digits.score and not is_decided
    climbed = _climbed(connection, settings, test, digits.score, steps) if climbs else {}
    by_id = {step.id: step for step in steps}
    shown: dict[int, _Shown] = {}
    for first, step in zip(firsts, steps, strict=True):
        rung = by_id[climbed.get(step.id, step.id)]
        if not digits.score or (rung is step and not step.informed):
            rung = first
        stands = step if rung is step else first
        shown[stands.id] = rung, digits
    return shown


def _final_submissions(connection: Connection, settings: BoardSettings, public: Iterable[_Output]) -> set[int]:
    """Return the submissions that decide: all baselines, and of each submitter those that were named as final.

    Of a submitter without any, these are the best by the public part, the earlier ones first; ``public`` has the
    outputs in order of arrival. If too many were named, the first ones count.
    """
    query = select(Submissions.id).where(Submissions.final.is_not(None)).order_by(Submissions.final, Submissions.id)
    named = list(connection.execute(query).scalars())
    by_climber: dict[int, dict[int, tuple[bool, bool, float]]] = {}
    for output in public:
        ranks, rank = by_climber.setdefault(output.climber, {}), _rank(MAX_DIGITS, output)
        ranks[output.submission] = min(rank, ranks.get(output.submission, rank))
    final: set[int] = set()
    for ranks in by_climber.values():
        own = [one for one in named if one in ranks]
        final.update((own or sorted(ranks, key=ranks.__getitem__))[: settings.finals])
    return final


def scored_outputs(
    connection: Connection, settings: BoardSettings, phase: str, test: Test, part: str
) -> Iterator[_Output]:
    """Yield the outputs for a test that arrived in a phase, in order of arrival; each baseline climbs for itself.

    Their evaluations and scores are those of a part of the test; "" for the whole.
    """
    is_in_phase = order.bound(order.IN_PHASE, settings, phase)
    climber = case((Submissions.baseline, -Submissions.id), else_=Submissions.submitter_id).label("climber")
    columns = (Evaluations[name] for name in WHOLE) if part else ()
    query = (
        select(
            Scores.output_id,
            Submissions.id,
            climber,
            Scores.metric,
            Scores.evaluation_id,
            *pick(Evaluations, "score low high"),
            *columns,
        )
        .join_from(scores, outputs, Outputs.id == Scores.output_id)
        .join(submissions, Submissions.id == Outputs.submission_id)
        .join(evaluations, Evaluations.id == Scores.evaluation_id)
        .where(Outputs.test == test.name, Scores.metric.in_(settings.metrics))
        .where(*COUNTED, is_in_phase)
        .order_by(Submissions.arrived, Submissions.id, Scores.output_id)
    )
    floor = None if test.visible else uninformed_score(settings.metric)
    sign = metric_of(settings.metric).measure.sign
    by_output = groupby(connection.execute(query), key=lambda row: row.output_id)
    rows = {output: {row.metric: row for row in own} for output, own in by_output}
    if part:
        figures = part_figures(connection, settings, test, part, rows)
    else:
        figures = {output: {one.metric: Figures(*one[4:8]) for one in own.values()} for output, own in rows.items()}
    for output, by_metric in rows.items():
        first, ranking = next(iter(by_metric.values())), figures[output].get(settings.metric)
        badness = None if ranking is None or ranking.score is None else sign * ranking.score
        yield _Output(
            id=output,
            submission=first.id,
            climber=first.climber,
            figures=figures[output],
            badness=badness,
            informed=floor is None or badness is None or badness - sign * floor <= NOISE * abs(floor),
        )


def _rank(digits: int, output: _Output) -> tuple[bool, bool, float]:
    """Return a key by which the best output is the first: finite scores, infinite ones, none.

    Scores are compared as they are shown, so that which variant is the best tells no more than its figure.
    """
    badness = rounded(output.badness, digits or MAX_DIGITS)
    return badness is None, badness is not None and math.isinf(badness), badness or 0.0


def _climbed(
    connection: Connection, settings: BoardSettings, test: Test, digits: int, steps: Sequence[_Output]
) -> dict[int, int]:
    """Climb the ladders of a table; return the id of the output that each step shows.

    A step without a score, or whose score is worse than that of knowing nothing, never moves a ladder. A metric that
    is not made of losses has the logarithm of the score's distance from the best one in their place or, if there is
    no best one, of its size, with its sign.
    """
    import numpy as np

    measure, ladders = metric_of(settings.metric).measure, dict[int, Ladder]()
    columns = select(*pick(Evaluations, "lines losses documents"))
    shown: dict[int, int] = {}
    for step in steps:
        ladder = ladders.setdefault(step.climber, Ladder(fall=test.step, digits=digits))
        badness = step.badness
        if badness is None:
            shown[step.id] = step.id
            continue
        if not (step.informed and ladder.may_move(badness)):
            shown[step.id] = step.id if ladder.shown is None else ladder.shown
            continue
        row = connection.execute(columns.where(Evaluations.id == step.figures[settings.metric].id)).one()
        documents = None
        if measure.of_losses and row.losses is not None:
            documents = unpack_documents(row.documents, row.lines)
            losses = np.array(unpack(row.losses, row.lines)[0])
        elif math.isinf(measure.best):
            losses = np.arcsinh([badness])
        else:
            losses = np.log([max(abs(badness - measure.sign * measure.best), SMALLEST)])
        shown[step.id] = ladder.climb(step.id, losses, badness, documents)
    return shown


# Stored comparisons


def complete(connection: Connection, settings: BoardSettings, now: datetime, max_pairs: float = math.inf) -> None:
    """Compare all pairs of ranked evaluations that were not compared with these samples and this seed."""
    by = order.GROUPINGS[settings.entries]
    for phase, own in settings.by_phase.items():
        for test in own.tests:
            if own.digits_of(test, now).score:
                ranking = order.entries(connection, own, test.name, phase, by)
                placed = (entry["evaluation_id"] for entry in ranking if entry["place"] is not None)
                ids = set(islice(placed, order.MAX_COMPARED))
                stored = select(comparisons.c.one_id, comparisons.c.other_id).where(order.are_among(own, ids))
                compared = set(map(tuple, connection.execute(stored)))
                missing = [pair for pair in combinations(sorted(ids), 2) if pair not in compared]
                if len(missing) > max_pairs:
                    connection.execute(update(board).values(disclosed_with=""))
                elif missing:
                    rows = list(place_ranges.compare_pairs(connection, own, missing))
                    connection.execute(insert(comparisons), rows)
