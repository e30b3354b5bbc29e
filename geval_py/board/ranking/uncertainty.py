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
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sqlalchemy import Connection, Row, and_, insert, select

from geval_py.board.database.schema import evaluations, exchanges
from geval_py.board.settings import Settings, measure_of
from geval_py.board.submission import Scored, unpack
from geval_py.explaining import resampling
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import find_metric
from geval_py.scoring.metrics.base import NOISE, LineStatistics

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
    values = resampling.scores_on(metric, _totals(table, weights(table.lines, SAMPLES, seed)))[:, 0]
    low, high = interval_ends(resampling.percentile_interval(values, table, seed=seed))
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
    """Return the ends of an interval, None for NaN."""
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
