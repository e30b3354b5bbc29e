"""How sure stored scores are: 95 % intervals, and p-values of paired tests, as ``geval compare`` computes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from geval_py.board.database.schema import evaluations
from geval_py.board.settings import BoardSettings, measure_of
from geval_py.board.submission import INTERVAL_SAMPLES, Scored, unpack
from geval_py.explaining.statistics import interval, pair_p_values, ranking_p_values, sample_of
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import find_metric
from geval_py.scoring.metrics.base import NOISE, LineStatistics, total


def with_interval(scored: Scored, seed: int) -> Scored:
    """Add the interval of a score that has line losses."""
    if scored.losses is None:
        return scored
    metric = find_metric(parse_schemes(scored.metric)[0].metric)
    statistics = LineStatistics(unpack(scored.losses, scored.lines))
    low, high = interval(metric, statistics, samples=INTERVAL_SAMPLES, seed=seed).ends
    return replace(scored, low=low, high=high)


def compare_pairs(
    connection: Connection, settings: BoardSettings, pairs: Sequence[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Test pairs of evaluations of one test set; yield rows of the table ``comparisons``.

    Pairs scored with different answers, or without stored losses, get p = 1. So do pairs whose mean losses say the
    contrary of their scores, as those of a metric that averages over classes may: what is stored are the losses.
    """
    c, ids = evaluations.c, sorted({evaluation for pair in pairs for evaluation in pair})
    query = select(c.id, c.score, c.reference, c.metric, c.lines, c.losses).where(
        c.losses.is_not(None), c.id.in_(ids)
    )
    rows = {row.id: row for row in connection.execute(query)}
    metric, measure = find_metric(parse_schemes(settings.metric)[0].metric), measure_of(settings.metric)
    same_answers: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in rows.values():
        same_answers[row.reference, row.metric, row.lines].append(row.id)
    p_values: dict[tuple[int, int], float] = {}
    for together in same_answers.values():
        place = {evaluation: n for n, evaluation in enumerate(together)}
        statistics = [LineStatistics(unpack(rows[one].losses, rows[one].lines)) for one in together]
        means = [total(one.columns[0]) / one.lines for one in statistics]
        tested = {(place[a], place[b]): (a, b) for a, b in pairs if a in place and b in place}
        sample = sample_of(metric, statistics)
        p_of_pair = pair_p_values(sample, tested, samples=settings.samples, seed=settings.seed)
        for (one, other), p_value in ranking_p_values(sample, p_of_pair).items():
            a, b = tested[one, other]
            by_mean, by_score = means[one] - means[other], measure.sign * (rows[a].score - rows[b].score)
            differ = abs(by_mean) > NOISE * (means[one] + means[other]) and by_score * by_mean < 0
            p_values[a, b] = 1.0 if measure.of_losses and differ else p_value
    for one, other in pairs:
        p_value = p_values.get((one, other), 1.0)
        yield {"one_id": one, "other_id": other, "p": p_value, "samples": settings.samples, "seed": settings.seed}
