"""The 95 % intervals of scores, from the line losses; outputs of one test share the resamples of its lines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from geval_py.board.submission import Scored, unpack
from geval_py.explaining.bootstrap import percentile_interval, scores_on
from geval_py.explaining.resampling import Array, StatisticsTable, Totals, bootstrap_weights
from geval_py.explaining.significance import Interval
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import LineStatistics, find_metric

SAMPLES = 1000  # of the bootstrap
MOST_KEPT = 1 << 25  # weights of the resamples of a test, 8 bytes each, that are kept for its next output


def with_interval(scored: Scored, seed: int) -> Scored:
    """Add the interval of a score whose losses are there: that of :func:`bootstrap.interval`, but for rounding."""
    if scored.losses is None:
        return scored
    metric = find_metric(parse_schemes(scored.metric)[0].metric)
    table = StatisticsTable.of_systems([LineStatistics(unpack(scored.losses, scored.lines))])
    kept = SAMPLES * table.lines <= MOST_KEPT
    blocks = (_kept_weights if kept else bootstrap_weights)(table.lines, SAMPLES, seed)
    values = scores_on(metric, _totals(table, blocks))[:, 0]
    low, high = ends(percentile_interval(values, table, seed=seed))
    return replace(scored, low=low, high=high)


def _totals(table: StatisticsTable, blocks: Iterable[Array]) -> Totals:
    """Sum the statistics on resamples; finite ones on one core: a product of matrices takes all, and longer."""
    if table.infinite.any():
        return table.totals(blocks)
    columns = np.ascontiguousarray(table.statistics[:, :, 0])
    sums = np.concatenate([np.einsum("rl,cl->cr", block, columns) for block in blocks], axis=1)
    return Totals(sums=sums[:, :, np.newaxis, np.newaxis], counts=np.full((sums.shape[1], 1), float(table.lines)))


@lru_cache(maxsize=2)
def _kept_weights(lines: int, samples: int, seed: int) -> tuple[Array, ...]:
    return tuple(bootstrap_weights(lines, samples, seed))


def ends(interval: Interval) -> tuple[float | None, float | None]:
    """Give the ends of an interval, None for what is no number."""
    low, high = (None if math.isnan(end) else end for end in (interval.low, interval.high))
    return low, high
