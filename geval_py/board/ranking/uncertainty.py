"""How sure stored scores are: 95 % intervals, and paired tests by approximate randomisation.

All outputs of one test share the coins, so each output is prepared once and then compared with any other. In one
sample of the randomisation, systems A and B swap their losses on some lines. Let m(A) be the mean loss of A with the
swapped lines counted negatively: the difference of the two systems is then m(A) - m(B), so each system needs one mean
per sample. The coins are those of :func:`geval_py.explaining.paired.randomisation_p_values`.

If hardly any sample is as extreme as the observed difference, the p-value is smaller than counting can make it: a
bound, or the tail of the samples. So many entries can be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
    from geval_py.explaining.significance import Array


SAMPLES = 1000  # of the bootstrap
MOST_LOSSES = 1 << 23  # 8 bytes each, that are held while pairs are tested
SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)  # of a byte's eight lines
ROWS = 64  # of sums, that are added at once, in memory that is used again
FEW = 10  # samples as extreme as the observed difference: a p-value of so few or fewer is uncertain
BERRY_ESSEEN = 0.56
ENOUGH = 1e-9  # less than what Holm's correction asks for with 10,000 systems
LEAST = 1e-300  # a p-value of finite losses is never 0
STEPS = 50
TAIL_SHARE = 40  # one sample in so many belongs to the tail
LEAST_TAIL = 25
UPPER_QUANTILE = 1.645  # the standard normal distribution's quantile at 95 %

PairTest: TypeAlias = "Callable[[int, int], float]"  # two ids of evaluations -> p-value


def with_interval(scored: Scored, seed: int) -> Scored:
    """Add the interval of a score that has line losses, as :func:`geval_py.explaining.resampling.interval` does."""
    if scored.losses is None:
        return scored
    metric = find_metric(parse_schemes(scored.metric)[0].metric)
    statistics = LineStatistics(unpack(scored.losses, scored.lines))
    low, high = resampling.interval(metric, statistics, samples=SAMPLES, seed=seed).ends
    return replace(scored, low=low, high=high)


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
    coins, starts = _coins(len(losses), samples, seed), sums.shape[1] * np.arange(ROWS)[:, np.newaxis]
    places, chosen = np.empty((ROWS, samples), np.intp), np.zeros((1 + ROWS, samples))
    means = chosen[0]
    for first in range(0, len(sums), ROWS):
        some = sums[first : first + ROWS]
        now = slice(len(some))
        np.add(coins[first : first + ROWS], starts[now], out=places[now])
        some.take(places[now], out=chosen[1:][now], mode="clip")  # else NumPy copies what it takes
        means[:] = chosen[: 1 + len(some)].sum(axis=0)
    return SwappedMeans(float(losses.sum()) / len(losses), means / len(losses))


@lru_cache(maxsize=1)
def _coins(lines: int, samples: int, seed: int) -> resampling.Bytes:
    """Return the coins: a row per eight lines, a byte per sample."""
    return np.ascontiguousarray(np.concatenate(list(resampling.swap_coins(lines, samples, seed))).T)


def p_value(one: SwappedMeans, other: SwappedMeans, differences: Callable[[], Array] | None = None) -> float:
    """Return the two-sided p-value of two systems; 0 if exactly one of them is infinite, 1 if both are.

    If few samples are as extreme, the p-value is the lesser of the counted one and a bound of the exact one, which is
    made from the ``differences`` of their line losses.
    """
    if not (one.means.size and other.means.size):
        return float(one.means.size == other.means.size)
    noise = NOISE * (abs(one.mean) + abs(other.mean))
    observed = abs(one.mean - other.mean) - noise
    extreme = int(np.count_nonzero(np.abs(one.means - other.means) >= observed))
    counted = (extreme + 1) / (one.means.size + 1)
    if differences is None or extreme > FEW:
        return counted
    found = differences()
    return min(counted, sign_flip_bound(found, noise * len(found)))


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
    losses = _kept_losses(connection, list(scores), max((row.lines for row in rows), default=1))
    sign = 1 if measure_of(settings.metric).direction == "lower" else -1

    def p_of(one: int, other: int) -> float:
        a, b = prepared[one], prepared[other]
        if a.means.size and b.means.size:
            by_mean = a.mean - b.mean
            by_score = sign * (scores[one] - scores[other])
            if abs(by_mean) > NOISE * (a.mean + b.mean) and by_score * by_mean < 0:
                return 1.0
        return p_value(a, b, lambda: losses(one) - losses(other))

    return p_of


def _kept_losses(connection: Connection, ids: Sequence[int], lines: int) -> Callable[[int], Array]:
    """Return a function that reads line losses: all when it is first called or, if these are too many, one by one."""
    most = max(2, MOST_LOSSES // lines)

    @lru_cache(maxsize=1)
    def every() -> dict[int, Array]:
        return {one: np.array(unpack(packed, of)[0]) for one, of, packed in stored_statistics(connection, ids)}

    @lru_cache(maxsize=most)
    def single(evaluation: int) -> Array:
        ((_, of, packed),) = stored_statistics(connection, [evaluation])
        return np.array(unpack(packed, of)[0])

    return single if len(ids) > most else lambda evaluation: every()[evaluation]


def metric_test(connection: Connection, settings: Settings, rows: Sequence[Row[Any]]) -> PairTest:
    """Return the test of the metric itself, from sums of line statistics, as ``geval compare`` computes it.

    If few samples are as extreme, the p-value is the lesser of the counted one and that of the samples' tail.
    """
    from geval_py.explaining import paired

    metric = find_metric(parse_schemes(settings.metric)[0].metric)
    tables = {
        evaluation: LineStatistics(unpack(packed, lines))
        for evaluation, lines, packed in stored_statistics(connection, [row.id for row in rows])
    }

    def p_of(one: int, other: int) -> float:
        table = resampling.StatisticsTable.of_systems([tables[one], tables[other]]).finite()
        if not table.lines:
            return 1.0
        exchanged = table.exchanges(settings.samples, settings.seed)
        values = paired.tested_values(metric, table.observed())
        differences, observed, noise = paired.exchanged_differences(metric, values, exchanged, (0, 1))
        counted = float(paired.counted_p_value(differences, observed, noise).item())
        if counted * (len(differences) + 1) > FEW + 1:
            return counted
        units = int((table.statistics[:, :, 0] != table.statistics[:, :, 1]).any(axis=0).sum())
        return min(counted, exponential_tail(differences, abs(float(observed.item())), units))

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


# Small p-values of approximate randomisation, smaller than counting samples can tell


def sign_flip_bound(differences: Array, noise: float = 0.0) -> float:
    """Return an upper bound of the two-sided p-value of a sum of differences (finite) whose signs are random.

    With 10,000 samples no counted p-value is below 1/10,001, and Holm's correction for the 780 pairs of forty systems
    asks for less. The systems of a pair change places on each line, or document, by the toss of a coin. So for a sum
    of losses the test is about S, the sum of the differences d_i with random signs, and the p-value is 2 P(S >= x)
    for the observed sum x > 0. For every t > 0 for which the mean of S under the weights exp(t S) is at most x,

        P(S >= x) <= exp(K(t) - t x) (min(1/2, 1 / (t s sqrt(2 pi))) + 1.12 r / s^3)  with K(t) = sum log cosh(t d_i)

    where s^2 and r are the sums of the variances and of the absolute third central moments of the signed differences
    under these weights. The first factor is Chernoff's bound. The second is the Berry-Esseen inequality with the
    constant 0.56 (Shevtsova, "An improvement of convergence rate estimates in the Lyapunov theorem", Doklady
    Mathematics, 2010); it counts as 1 where it is greater. The bound holds for all differences, however skewed, tied
    or few. With more lines it approaches the saddlepoint approximation of the exact p-value (Robinson, "Saddlepoint
    approximations for permutation tests and confidence intervals", Journal of the Royal Statistical Society B 44,
    1982). A p-value that is no less than the exact one rejects a true null hypothesis no more often than it should.

    The sum counts as less by ``noise``, so rounding cannot make it more extreme than an equal one.
    """
    sizes = np.abs(differences)
    largest = float(sizes.max())
    if largest == 0.0:
        return 1.0
    sizes /= largest
    total = (abs(float(differences.sum())) - noise) / largest
    if total <= 0.0:
        return 1.0
    bound = 2 * math.exp(-total * total / float((sizes * sizes).sum()) / 2)  # Hoeffding's inequality
    if bound > ENOUGH:
        bound = min(1.0, 2 * _one_sided(sizes, total))
    return max(bound, LEAST)


def _one_sided(sizes: Array, total: float) -> float:
    """Return the bound for a positive total, at the best t, which Newton's method approaches from below."""
    squares = sizes * sizes  # sums, not products of vectors, which numpy computes in threads
    t = total / float(squares.sum())
    for left in reversed(range(STEPS)):
        tanh = np.tanh(t * sizes)
        missing = total - float((sizes * tanh).sum())
        variances = squares * (1 - tanh * tanh)
        variance = float(variances.sum())
        if missing * missing <= 1e-3 * variance or variance <= NOISE or not left:
            break
        t += missing / variance
    log_chernoff = _log_cosh(t * sizes) - t * total
    deviation = math.sqrt(variance)
    third = float((variances * sizes * (1 + tanh * tanh)).sum())
    if not deviation > 0.0:
        return math.exp(log_chernoff)
    normal = min(0.5, 1 / (t * deviation * math.sqrt(2 * math.pi)))
    return math.exp(log_chernoff) * min(1.0, normal + 2 * BERRY_ESSEEN * third / deviation**3)


def _log_cosh(values: Array) -> float:
    """Return the sum of log cosh of positive values."""
    return float((values + np.log1p(np.exp(-2 * values))).sum()) - len(values) * math.log(2)


def exponential_tail(samples: Array, observed: float, units: int) -> float:
    """Return the two-sided p-value of an observed difference beyond most samples; 1 if these are too few.

    It is for a metric that is no function of sums of losses, which has no such bound: its tail is extended by an
    exponential one. The tails of these distributions are lighter (about normal), so the p-value is rather too large
    than too small. ``units`` is the number of lines, or documents, on which the systems differ: with so many coins no
    p-value is less than 2^(1 - units). The mean excess over the tail's beginning is taken at the upper end of its
    95 % interval.
    """
    tail = len(samples) // TAIL_SHARE
    if tail < LEAST_TAIL:
        return 1.0
    sizes = np.sort(np.abs(samples))[-tail - 1 :]
    excess = float((sizes[1:] - sizes[0]).mean()) * (1 + UPPER_QUANTILE / math.sqrt(tail))
    if not excess > 0.0:
        return 1.0
    p_value = tail / len(samples) * math.exp(-max(0.0, observed - float(sizes[0])) / excess)
    return max(p_value, 2.0 ** (1 - units), LEAST)
