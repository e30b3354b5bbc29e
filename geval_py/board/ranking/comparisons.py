"""How sure stored scores are: 95 % intervals by the bootstrap, and paired tests by approximate randomisation.

All outputs of one test share the resamples and the coins, so each output is prepared once and then compared with any
other. In one sample of the randomisation, systems A and B swap their losses on some lines. Let m(A) be the mean loss
of A with the swapped lines counted negatively: the difference of the two systems is then m(A) - m(B), so each system
needs one mean per sample. The coins are those of :func:`geval_py.explaining.paired.randomisation_p_values`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, insert, select, union

from geval_py.board.database import schema
from geval_py.board.database.schema import comparisons, evaluations, exchanges, outputs, scores, submissions
from geval_py.board.ranking import order
from geval_py.board.settings import Settings, measure_of
from geval_py.board.submission import Scored, unpack
from geval_py.explaining import resampling
from geval_py.explaining.resampling import percentile_interval, scores_on
from geval_py.explaining.significance import LEVEL
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import LineStatistics, find_metric
from geval_py.scoring.metrics.base import NOISE

if TYPE_CHECKING:
    from geval_py.explaining.significance import Array, Interval


SAMPLES = 1000  # of the bootstrap
MOST_KEPT = 1 << 25  # weights of a test's resamples, 8 bytes each, that are kept for its next output
SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)  # of a byte's eight lines
PairTest: TypeAlias = "Callable[[int, int], float]"  # two ids of evaluations -> p-value


def with_interval(scored: Scored, seed: int) -> Scored:
    """Add the interval of a score that has line losses; equals :func:`bootstrap.interval` up to rounding."""
    if scored.losses is None:
        return scored
    metric = find_metric(parse_schemes(scored.metric)[0].metric)
    table = resampling.StatisticsTable.of_systems([LineStatistics(unpack(scored.losses, scored.lines))])
    weights = _kept_weights if SAMPLES * table.lines <= MOST_KEPT else resampling.bootstrap_weights
    values = scores_on(metric, _totals(table, weights(table.lines, SAMPLES, seed)))[:, 0]
    low, high = interval_ends(percentile_interval(values, table, seed=seed))
    return replace(scored, low=low, high=high)


@lru_cache(maxsize=2)
def _kept_weights(lines: int, samples: int, seed: int) -> tuple[Array, ...]:
    return tuple(resampling.bootstrap_weights(lines, samples, seed))


def _totals(table: resampling.StatisticsTable, blocks: Iterable[Array]) -> resampling.Totals:
    """Sum the statistics on resamples. Finite ones use one core: a matrix product takes all cores, and longer."""
    if table.infinite.any():
        return table.totals(blocks)
    columns = np.ascontiguousarray(table.statistics[:, :, 0])
    sums = np.concatenate([np.einsum("rl,cl->cr", block, columns) for block in blocks], axis=1)
    counts = np.full((sums.shape[1], 1), float(table.lines))
    return resampling.Totals(sums=sums[:, :, np.newaxis, np.newaxis], counts=counts)


def interval_ends(interval: Interval) -> tuple[float | None, float | None]:
    """Return the ends of an interval, None in place of NaN."""
    low, high = (None if math.isnan(end) else end for end in (interval.low, interval.high))
    return low, high


# Approximate randomisation of two systems


@dataclass(frozen=True, slots=True)
class SwappedMeans:
    """A system prepared for comparisons: its mean loss, and its mean in each sample (empty if infinite)."""

    mean: float
    means: Array


def swapped_means(losses: Array, *, samples: int, seed: int) -> SwappedMeans:
    """Prepare a system from its line losses (in [0, inf], at least one)."""
    if not (np.abs(losses) <= resampling.MOST).all():
        return SwappedMeans(math.inf, np.empty(0))
    padded = np.zeros(-(-len(losses) // 8) * 8)
    padded[: len(losses)] = losses
    sums = padded.reshape(-1, 8) @ SIGNS.T  # of eight lines each, for every byte of coins
    means = np.zeros(samples)
    for column, byte in zip(_coins(len(losses), samples, seed), sums, strict=True):
        means += byte[column]
    return SwappedMeans(float(losses.sum()) / len(losses), means / len(losses))


@lru_cache(maxsize=1)
def _coins(lines: int, samples: int, seed: int) -> resampling.Bytes:
    """Return the coins: a row per eight lines, a byte per sample."""
    return np.ascontiguousarray(np.concatenate(list(resampling.swap_coins(lines, samples, seed))).T)


def p_value(one: SwappedMeans, other: SwappedMeans) -> float:
    """Return the two-sided p-value of two systems; 0 if exactly one of them is infinite, 1 if both are."""
    if not (one.means.size and other.means.size):
        return float(one.means.size == other.means.size)
    observed = abs(one.mean - other.mean) - NOISE * (abs(one.mean) + abs(other.mean))
    extreme = int(np.count_nonzero(np.abs(one.means - other.means) >= observed))
    return (extreme + 1) / (one.means.size + 1)


# The tests of stored evaluations


def compare_pairs(
    connection: Connection, settings: Settings, pairs: Sequence[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Test pairs of evaluations of one test set; yield rows of the table ``comparisons``.

    Pairs scored with different answers, or without stored losses, get p = 1.
    """
    c = evaluations.c
    has_losses = c.losses.is_not(None).label("has_losses")
    query = select(c.id, c.score, c.reference, c.metric, c.lines, has_losses)
    ids = sorted({evaluation for pair in pairs for evaluation in pair})
    rows = {row.id: row for row in connection.execute(query.where(c.id.in_(ids)))}
    kept = [row for row in rows.values() if row.has_losses]
    make = losses_test if measure_of(settings.metric).of_losses else metric_test
    test = make(connection, settings, kept)
    made_with = {"samples": settings.samples, "seed": settings.seed}
    for one, other in pairs:
        a, b = rows[one], rows[other]
        same_answers = (a.reference, a.metric, a.lines) == (b.reference, b.metric, b.lines)
        p = test(one, other) if same_answers and a.has_losses and b.has_losses else 1.0
        yield {"one_id": one, "other_id": other, "p": p, **made_with}


def losses_test(connection: Connection, settings: Settings, rows: Sequence[Row[Any]]) -> PairTest:
    """Return the test of mean losses, for a metric that is a function of them; prepares each evaluation once.

    A metric that averages over classes may rank two systems differently than their mean losses do: then p is 1.
    """
    scores = {row.id: row.score for row in rows}
    prepared = _prepared(connection, settings, list(scores))
    sign = 1 if measure_of(settings.metric).direction == "lower" else -1

    def p_of(one: int, other: int) -> float:
        a, b = prepared[one], prepared[other]
        if a.means.size and b.means.size:
            by_mean = a.mean - b.mean
            by_score = sign * (scores[one] - scores[other])
            if abs(by_mean) > NOISE * (a.mean + b.mean) and by_score * by_mean < 0:
                return 1.0
        return p_value(a, b)

    return p_of


def metric_test(connection: Connection, settings: Settings, rows: Sequence[Row[Any]]) -> PairTest:
    """Return the test of the metric itself, from sums of line statistics, as ``geval compare`` computes it."""
    from geval_py.explaining.paired import randomisation_p_values

    metric = find_metric(parse_schemes(settings.metric)[0].metric)
    tables = {
        evaluation: LineStatistics(unpack(packed, lines))
        for evaluation, lines, packed in stored_statistics(connection, [row.id for row in rows])
    }

    def p_of(one: int, other: int) -> float:
        table = resampling.StatisticsTable.of_systems([tables[one], tables[other]]).finite()
        if not table.lines:
            return 1.0
        found = randomisation_p_values(metric, table, samples=settings.samples, seed=settings.seed)
        return float(found[0, 1])

    return p_of


def stored_statistics(connection: Connection, ids: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Return the id, the number of lines and the packed line statistics of some evaluations."""
    query = select(evaluations.c.id, evaluations.c.lines, evaluations.c.losses).where(evaluations.c.id.in_(ids))
    return [(row.id, row.lines, row.losses) for row in connection.execute(query)] if ids else []


def _prepared(connection: Connection, settings: Settings, ids: Sequence[int]) -> dict[int, SwappedMeans]:
    """Read the prepared evaluations; prepare and store those that are not stored yet."""
    c = exchanges.c
    samples, seed = settings.samples, settings.seed
    stored = select(c.evaluation_id, c.mean, c.means).where(
        c.evaluation_id.in_(ids), and_(c.samples == samples, c.seed == seed)
    )
    prepared = {
        row.evaluation_id: SwappedMeans(row.mean, np.frombuffer(row.means, dtype="<f8"))
        for row in connection.execute(stored)
    }
    new = [evaluation for evaluation in ids if evaluation not in prepared]
    for evaluation, lines, packed in stored_statistics(connection, new):
        found = swapped_means(np.array(unpack(packed, lines)[0]), samples=samples, seed=seed)
        prepared[evaluation] = found
        row = {"evaluation_id": evaluation, "samples": samples, "seed": seed, "mean": found.mean}
        connection.execute(insert(exchanges).values(**row, means=found.means.astype("<f8").tobytes()))
    return prepared


# Which entries are better than others by more than chance, and which outputs are suspiciously alike.


MOST_COMPARED = 500  # entries of a ranking, the first ones


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
    """Delete what was prepared of evaluations that are no longer ranked, and for other samples or seeds."""
    c = exchanges.c
    for evaluation, samples, seed in connection.execute(select(c.evaluation_id, c.samples, c.seed)).all():
        if evaluation not in ranked or (samples, seed) != (settings.samples, settings.seed):
            this = and_(c.evaluation_id == evaluation, c.samples == samples, c.seed == seed)
            connection.execute(delete(exchanges).where(this))


# Outputs of different submitters that are much alike


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
