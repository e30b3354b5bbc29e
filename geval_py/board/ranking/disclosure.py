"""Disclosure: which figures of each output may be shown, rounded to the digits that board.yaml allows.

In this order: the ladder; the stored disclosures; and the stored comparisons of what is ranked by them.

Of the variants that a submission has for a hidden test, only the best one shows figures. Of a test that is split,
all figures are of the public part or, once the private part decides, of that (ranking.parts). With a ladder, an
output may show those of an earlier submission by the same submitter in the same phase: the parameter-free ladder of
Blum and Hardt, "The Ladder: A Reliable Leaderboard for Machine Learning Competitions", 2015.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import combinations, groupby, islice
from operator import attrgetter
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
from geval_py.board.database.store import Board
from geval_py.board.ranking import order, place_ranges
from geval_py.board.ranking.parts import WHOLE, Figures, part_figures
from geval_py.board.settings import (
    MAX_DIGITS,
    PUBLIC,
    BoardSettings,
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
    >>> [ladder.climb(n, sum(losses), lambda: (np.array(losses), None)) for n, losses in enumerate(steps)]
    [0, 0, 2]
    """

    fall: float = 0.0
    digits: int = MAX_DIGITS
    shown: Any = None
    losses: Any = ()  # of the shown step
    badness: float = 0.0  # its score, turned so that lower is better

    def climb(self, step: Any, badness: float, read: Callable[[], tuple[Losses, Documents | None]]) -> Any:
        """Add a step with its score, and return the step to show.

        ``read`` returns its line losses (at least one, not negative) and their documents.
        """
        from geval_py.explaining.statistics import spread_of_mean

        if self.shown is None:
            self.shown, self.losses, self.badness = step, read()[0], badness
            return step
        before, after = (rounded(value, self.digits) or 0.0 for value in (self.badness, badness))
        if after >= before:
            return self.shown
        losses, documents = read()
        falls = [self.losses.clip(max=CLIP) - losses.clip(max=CLIP)]
        if math.inf not in self.losses:
            falls.append(self.losses - losses)
        for fall in falls:
            mean = math.fsum(fall.tolist()) / len(fall)
            error = float(fall.std()) / math.sqrt(len(fall))
            if documents and documents.count > 1:
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
    connection.execute(update(board).values(changed=board.c.changed + 1))


def disclose(connection: Connection, settings: BoardSettings, now: datetime) -> None:
    """Update the disclosures to the present scores, settings and moment; writes only what changed."""
    if not order.is_disclosed(connection, settings, now):
        decided = connection.scalar(select(board.c.decided)) or {}
        for name, in_phase in settings.by_phase.items():
            if any(in_phase.is_decided(test, name, now) for test in in_phase.tests):
                decided[name] = moment_text(order.bounds(settings, name)[1])
        values = {"disclosed_with": order.made_with(settings, now), "decided": decided}
        connection.execute(update(board).values(values))
    infinite = metric_of(settings.metric).measure.sign * math.inf
    current = set[tuple[Any, ...]]()
    for phase, in_phase in settings.by_phase.items():
        for test in in_phase.tests:
            digits = in_phase.digits_of(test, now)
            for output_id, source in _public_outputs(connection, in_phase, phase, test, now).items():
                for metric, figures in source.figures.items():
                    if source.informed:
                        value = rounded(figures.score, digits.score)
                        ends = rounded_outward(figures.low, figures.high, digits.ends)
                    else:
                        value = infinite if metric == settings.metric and digits.score else None
                        ends = None, None
                    current.add((output_id, metric, figures.id, value, *ends))
    stored = set(map(tuple, connection.execute(select(disclosures))))
    if outdated := sorted(row[:2] for row in stored - current):
        is_outdated = Disclosures.output_id == bindparam("output"), Disclosures.metric == bindparam("name")
        rows = [{"output": output, "name": metric} for output, metric in outdated]
        connection.execute(delete(disclosures).where(*is_outdated), rows)
    if missing := [dict(zip(Disclosures.keys(), row, strict=True)) for row in current - stored]:
        connection.execute(insert(disclosures), missing)


class _Output(NamedTuple):
    """An output of a submission, named by its code: its figures by metric, and whose ladder it is a step of.

    Its ``badness`` is its score by the ranking metric, turned so that lower is better. It is not ``informed`` if the
    answers are hidden and it is worse than knowing nothing: then an infinite score is public, without an interval or
    other metrics.
    """

    id: int
    submission: str
    climber: int
    figures: Mapping[str, Figures]
    badness: float | None
    informed: bool


def _public_outputs(
    connection: Connection, settings: BoardSettings, phase: str, test: Test, now: datetime
) -> dict[int, _Output]:
    """Return the output whose figures each output for a test that arrived in a phase shows, if it shows any.

    If only the best variant of a submission is shown, but a ladder holds it back, or its own score is not shown, then
    the first variant with a score stands in its place, so that nobody learns which one is the best.
    """
    part, is_decided = settings.part_of(test, phase, now), settings.is_decided(test, phase, now)
    outputs = list(scored_outputs(connection, settings, phase, test, part))
    digits = settings.digits_of(test, now).score
    public = list(scored_outputs(connection, settings, phase, test, PUBLIC)) if is_decided else []  # grades need them
    if is_decided and settings.finals:
        final = _final_submissions(connection, settings, public)
        outputs = [output for output in outputs if output.submission in final]
    ladders = dict[int, Ladder]()
    by_id: dict[int, _Output] = {}
    for _, group in groupby(outputs, key=attrgetter("id" if test.shows_all else "submission")):
        variants = list(group)
        best = source = min(variants, key=partial(_rank, digits))
        first = next((output for output in variants if output.badness is not None), variants[0])
        if test.ladder and digits and not is_decided:
            ladder = ladders.setdefault(best.climber, Ladder(fall=test.step, digits=digits))
            source = _climb(connection, settings, ladder, best)
        if not digits or (source is best and not best.informed):
            source = first
        by_id[best.id if source is best else first.id] = source
    return by_id


def _final_submissions(connection: Connection, settings: BoardSettings, public: Iterable[_Output]) -> set[str]:
    """Return the codes of the submissions that decide: all baselines, and of each submitter those named as final.

    Of a submitter without any, these are the best by the public part, the earlier ones first; ``public`` has the
    outputs in order of arrival. If too many were named, the first ones count.
    """
    query = select(Submissions.code).where(Submissions.final.is_not(None)).order_by(Submissions.final, Submissions.id)
    named = list(connection.scalars(query))
    by_climber = defaultdict[int, list[str]](list)
    for output in sorted(public, key=partial(_rank, MAX_DIGITS)):
        by_climber[output.climber].append(output.submission)
    final: set[str] = set()
    for sent in by_climber.values():
        chosen = [submission for submission in named if submission in sent]
        final.update((chosen or list(dict.fromkeys(sent)))[: settings.finals])
    return final


def scored_outputs(
    connection: Connection, settings: BoardSettings, phase: str, test: Test, part: str
) -> Iterator[_Output]:
    """Yield the outputs for a test that arrived in a phase, in order of arrival; each baseline climbs for itself.

    Their evaluations and scores are those of a part of the test; "" for the whole.
    """
    is_in_phase = order.bound(order.IN_PHASE, settings, phase)
    climber = case((Submissions.baseline, -Submissions.id), else_=Submissions.submitter_id).label("climber")
    query = (
        select(
            *pick(Scores, "output_id evaluation_id metric"),
            Submissions.code,
            climber,
            *pick(Evaluations, "score low high"),
            *(Evaluations[name] for name in WHOLE if name != "metric"),
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
    by_output = groupby(connection.execute(query), key=attrgetter("output_id"))
    rows: dict[int, dict[str, Any]] = {output: {row.metric: row for row in group} for output, group in by_output}
    if part:
        figures = part_figures(connection, settings, test, part, rows)
    else:
        figures = {
            output: {
                metric: Figures(row.evaluation_id, row.score, row.low, row.high) for metric, row in by_metric.items()
            }
            for output, by_metric in rows.items()
        }
    for output, by_metric in rows.items():
        first = next(iter(by_metric.values()))
        ranking = figures[output].get(settings.metric)
        badness = None if ranking is None or ranking.score is None else sign * ranking.score
        yield _Output(
            id=output,
            submission=first.code,
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
    return badness is None, math.isinf(badness or 0.0), badness or 0.0


def _climb(connection: Connection, settings: BoardSettings, ladder: Ladder, step: _Output) -> _Output:
    """Climb a ladder; return the output whose figures a step shows.

    A step without a score, or whose score is worse than that of knowing nothing, never moves a ladder. A metric that
    is not made of losses has the logarithm of the score's distance from the best one in their place or, if there is
    no best one, of its size, with its sign.
    """
    badness, measure = step.badness, metric_of(settings.metric).measure
    if badness is None:
        return step
    if not step.informed:
        return ladder.shown or step

    def read() -> tuple[Losses, Documents | None]:
        import numpy as np

        columns = select(*pick(Evaluations, "lines losses documents"))
        row = connection.execute(columns.where(Evaluations.id == step.figures[settings.metric].id)).one()
        if measure.of_losses and row.losses is not None:
            return np.array(unpack(row.losses, row.lines)[0]), unpack_documents(row.documents, row.lines)
        if math.isinf(measure.best):
            return np.arcsinh([badness]), None
        return np.log([max(abs(badness - measure.sign * measure.best), SMALLEST)]), None

    shown: _Output = ladder.climb(step, badness, read)
    return shown


# Stored comparisons


def complete(connection: Connection, settings: BoardSettings, now: datetime, max_pairs: float = math.inf) -> None:
    """Compare all pairs of ranked evaluations that were not compared with these samples and this seed."""
    for phase, own in settings.by_phase.items():
        for test in own.tests:
            if own.digits_of(test, now).score:
                ranking = order.entries(connection, own, test.name, phase, order.GROUPINGS[settings.entries])
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
