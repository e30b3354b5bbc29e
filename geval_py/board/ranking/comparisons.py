"""Approximate randomisation of many systems, each made ready once and then compared with any other.

In a sample, systems A and B change places on some lines. With m(A) the mean loss of A where those lines count
negatively, the difference of the two is then m(A) - m(B), so each system needs one mean a sample, whatever it is
compared with. The coins are those of :func:`geval_py.explaining.paired.randomisation_p_values`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sqlalchemy import and_, delete, func, insert, select, union

from geval_py.board.database.schema import (
    SCORED,
    comparisons,
    evaluations,
    exchanges,
    outputs,
    scores,
    submissions,
    submitters,
)
from geval_py.board.ranking import order
from geval_py.board.settings import measure_of
from geval_py.board.submission import unpack
from geval_py.explaining.paired import randomisation_p_values
from geval_py.explaining.resampling import MOST, Array, Bytes, StatisticsTable, swap_coins
from geval_py.explaining.significance import LEVEL
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import LineStatistics, find_metric
from geval_py.scoring.metrics.base import NOISE

if TYPE_CHECKING:
    import numpy.typing as npt
    from sqlalchemy import ColumnElement, Connection, Row

    from geval_py.board.settings import Settings


_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)  # of a byte's eight lines


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A system that is ready to be compared: its mean loss, and that in each sample; none where it is infinite."""

    mean: float
    means: Array


def exchanged(losses: Array, *, samples: int, seed: int) -> Exchanged:
    """Make a system ready, from its line losses (in [0, inf], at least one)."""
    if not (np.abs(losses) <= MOST).all():
        return Exchanged(math.inf, np.empty(0))
    padded = np.zeros(-(-len(losses) // 8) * 8)
    padded[: len(losses)] = losses
    sums = padded.reshape(-1, 8) @ _SIGNS.T  # of eight lines each, for every byte of coins
    means = np.zeros(samples)
    for column, byte in zip(_coins(len(losses), samples, seed), sums, strict=True):
        means += byte[column]
    return Exchanged(float(losses.sum()) / len(losses), means / len(losses))


@lru_cache(maxsize=1)
def _coins(lines: int, samples: int, seed: int) -> Bytes:
    """Give the coins of eight lines a row, a byte a sample."""
    return np.ascontiguousarray(np.concatenate(list(swap_coins(lines, samples, seed))).T)


def p_value(one: Exchanged, other: Exchanged) -> float:
    """Give the two-sided p-value of two systems; without a test 0 where one is infinite, 1 where both are."""
    if not (one.means.size and other.means.size):
        return float(one.means.size == other.means.size)
    observed = abs(one.mean - other.mean) - NOISE * (abs(one.mean) + abs(other.mean))
    extreme = int(np.count_nonzero(np.abs(one.means - other.means) >= observed))
    return (extreme + 1) / (one.means.size + 1)


# The comparisons of evaluations in the database: what is compared, and what keeps it from being.


Pair = tuple[int, int]
PairTest: TypeAlias = "Callable[[int, int], float]"  # the p-value of two evaluations


def compare_pairs(connection: Connection, settings: Settings, pairs: Sequence[Pair]) -> Iterator[dict[str, Any]]:
    """Give rows of comparisons, of pairs of evaluations of one test."""
    ids = sorted({evaluation for pair in pairs for evaluation in pair})
    of = {row.id: row for row in _evaluations(connection, ids)}
    kept = [row for row in of.values() if row.has_losses]
    make = _test_of_losses if measure_of(settings.metric).of_losses else _test_of_sums
    tested = make(connection, settings, kept)
    made_with = {"samples": settings.samples, "seed": settings.seed}
    for one, other in pairs:
        p = tested(one, other) if _can_be_compared(of[one], of[other]) else 1.0
        yield {"one_id": one, "other_id": other, "p": p, **made_with}


def _test_of_losses(connection: Connection, settings: Settings, rows: Sequence[Row[Any]]) -> PairTest:
    """Give the test of two evaluations by a metric that is made from losses; each is made ready once."""
    of = {row.id: row for row in rows}
    ready = _ready(connection, settings, list(of))

    def p_of(one: int, other: int) -> float:
        if _disagree(settings, (of[one], ready[one]), (of[other], ready[other])):
            return 1.0
        return p_value(ready[one], ready[other])

    return p_of


def _test_of_sums(connection: Connection, settings: Settings, rows: Sequence[Row[Any]]) -> PairTest:
    """Give the test of two evaluations on the metric itself, as ``geval compare`` has it: from sums of statistics."""
    metric = find_metric(parse_schemes(settings.metric)[0].metric)
    tables = {
        evaluation: LineStatistics(unpack(packed, lines))
        for evaluation, lines, packed in _columns(connection, [row.id for row in rows])
    }

    def p_of(one: int, other: int) -> float:
        table = StatisticsTable.of_systems([tables[one], tables[other]]).finite()
        if not table.lines:
            return 1.0
        found = randomisation_p_values(metric, table, samples=settings.samples, seed=settings.seed)
        return float(found[0, 1])

    return p_of


def _columns(connection: Connection, ids: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Give the number of lines, and the packed columns of statistics, of some evaluations."""
    query = select(evaluations.c.id, evaluations.c.lines, evaluations.c.losses).where(evaluations.c.id.in_(ids))
    return [(row.id, row.lines, row.losses) for row in connection.execute(query)] if ids else []


def _evaluations(connection: Connection, ids: Sequence[int]) -> list[Row[Any]]:
    c = evaluations.c
    has_losses = c.losses.is_not(None).label("has_losses")
    query = select(c.id, c.score, c.reference, c.metric, c.lines, has_losses)
    return list(connection.execute(query.where(c.id.in_(ids))))


def _can_be_compared(one: Row[Any], other: Row[Any]) -> bool:
    """Tell whether two evaluations are of the same answers, and both have losses."""
    same = (one.reference, one.metric, one.lines) == (other.reference, other.metric, other.lines)
    return same and one.has_losses and other.has_losses


def _disagree(settings: Settings, one: tuple[Row[Any], Exchanged], other: tuple[Row[Any], Exchanged]) -> bool:
    """Tell whether mean losses put another first than scores, as of a metric that averages over classes."""
    (a, ready_a), (b, ready_b) = one, other
    if not (ready_a.means.size and ready_b.means.size):
        return False
    sign = 1 if measure_of(settings.metric).direction == "lower" else -1
    by_mean = ready_a.mean - ready_b.mean
    noise = NOISE * (ready_a.mean + ready_b.mean)
    return bool(abs(by_mean) > noise and sign * (a.score - b.score) * by_mean < 0)


def _ready(connection: Connection, settings: Settings, ids: Sequence[int]) -> dict[int, Exchanged]:
    """Give what is kept of evaluations, and make it of those where it is not; none of one without line losses."""
    c = exchanges.c
    made_with = and_(c.samples == settings.samples, c.seed == settings.seed)
    kept = connection.execute(select(c.evaluation_id, c.mean, c.means).where(c.evaluation_id.in_(ids), made_with))
    ready = {row.evaluation_id: Exchanged(row.mean, np.frombuffer(row.means, dtype="<f8")) for row in kept}
    new = [evaluation for evaluation in ids if evaluation not in ready]
    for evaluation, lines, packed in _columns(connection, new):
        of = exchanged(np.array(unpack(packed, lines)[0]), samples=settings.samples, seed=settings.seed)
        ready[evaluation] = of
        row = {"evaluation_id": evaluation, "samples": settings.samples, "seed": settings.seed, "mean": of.mean}
        connection.execute(insert(exchanges).values(**row, means=of.means.astype("<f8").tobytes()))
    return ready


# Which entries are better than others by more than chance: p-values, stored when an entry is scored.


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


# Outputs of different submitters that are much alike: for the organiser to look at, never for a public page.


LEAST_SHARE = 0.95  # of lines with the same loss
MOST_OUTPUTS = 1000  # of a test, the latest, that are compared with each other
MOST_PAIRS = 1000


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
    """Give the pairs of outputs, of different submitters, that lose the same on nearly all lines; baselines too."""
    import numpy as np

    for test in settings.tests:
        rows = _latest(connection, settings, test.name)
        losses = {row.evaluation_id: np.array(unpack(row.losses, row.lines)[0]) for row in rows}
        for number, found in enumerate(_pairs(test.name, rows, losses)):
            if number < MOST_PAIRS:
                yield found


def _latest(connection: Connection, settings: Settings, test: str) -> list[Row[Any]]:
    of = (scores.c.evaluation_id, evaluations.c.lines, evaluations.c.losses)
    query = (
        select(submissions.c.code, submitters.c.name, submitters.c.id, *of)
        .join(submitters, submitters.c.id == submissions.c.submitter_id)
        .join(outputs, outputs.c.submission_id == submissions.c.id)
        .join(scores, scores.c.output_id == outputs.c.id)
        .join(evaluations, evaluations.c.id == scores.c.evaluation_id)
        .where(outputs.c.test == test, scores.c.metric == settings.metric, evaluations.c.losses.is_not(None))
        .where(submissions.c.state == SCORED)
        .order_by(submissions.c.arrived.desc(), outputs.c.id)
    )
    return list(connection.execute(query.limit(MOST_OUTPUTS)))


def _pairs(test: str, rows: list[Row[Any]], losses: dict[int, npt.NDArray[np.float64]]) -> Iterator[Likeness]:
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
