"""Places: paired tests of entries, which other places one might as well have.

The paired test of ``geval compare``, with Holm's correction over all pairs of the ranked entries, tells two entries
apart at 5 %. Two shown scores are told apart if all pairs
of their entries are: so entries with the same shown score have the same range and groups, which reveal nothing of the
undisclosed digits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, select

from geval_py.board.database.schema import Evaluations, pick
from geval_py.board.settings import BoardSettings, metric_of
from geval_py.board.submission import unpack, unpack_documents
from geval_py.explaining.significance import LEVEL, undistinguished_groups
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.tables.numbers import significant

if TYPE_CHECKING:
    from geval_py.board.ranking.views import Standings

MAX_SPREAD = 20  # evaluations, whose lines show how far equally good ones are apart


def compare_pairs(
    connection: Connection, settings: BoardSettings, pairs: Sequence[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Test pairs of evaluations of one test set; yield rows of the table ``comparisons``.

    Pairs scored with different answers, or without stored losses, get p = 1. So do pairs whose mean losses say the
    contrary of their scores, as those of a metric that averages over classes may: what is stored are the losses.
    """
    from geval_py.explaining.statistics import Estimator, pair_tests, sample_of

    ids = sorted({evaluation for pair in pairs for evaluation in pair})
    query = select(
        *pick(Evaluations, "id score reference metric lines losses documents"),
    ).where(Evaluations.losses.is_not(None), Evaluations.id.in_(ids))
    rows = {row.id: row for row in connection.execute(query)}
    metric = metric_of(settings.metric)
    same_answers: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in rows.values():
        same_answers[row.reference, row.metric, row.lines].append(row.id)
    p_values: dict[tuple[int, int], float] = {}
    for together in same_answers.values():
        place = {evaluation: n for n, evaluation in enumerate(together)}
        statistics = [LineStatistics(unpack(rows[one].losses, rows[one].lines)) for one in together]
        tested = {(place[a], place[b]): (a, b) for a, b in pairs if a in place and b in place}
        documents = unpack_documents(rows[together[0]].documents, statistics[0].lines)
        sample = sample_of(metric, statistics, None if documents is None else documents.of_line)
        tests = pair_tests(Estimator(sample, settings.samples, settings.seed), tested)
        p_values |= {tested[pair]: test.p_value for pair, test in tests.items()}
    for one, other in pairs:
        p_value = p_values.get((one, other), 1.0)
        yield {"one_id": one, "other_id": other, "p": p_value, "samples": settings.samples, "seed": settings.seed}


def with_note_on_choice(connection: Connection, settings: BoardSettings, standings: Standings) -> Standings:
    """Add a note on how good the best entry looks by chance; it tells of the lines, so their answers are public."""
    from geval_py.explaining.statistics import optimism, sample_of

    metric = metric_of(settings.metric)
    ranked = [entry.output.evaluation_id for entry in standings.entries if entry.place is not None]
    query = select(*pick(Evaluations, "reference lines losses documents")).where(
        Evaluations.id.in_(ranked[:MAX_SPREAD])
    )
    rows = [row for row in connection.execute(query) if row.losses is not None]
    if not standings.digits or len({(row.reference, row.lines) for row in rows}) != 1 or len(rows) < 2:
        return standings
    lines, statistics = rows[0].lines, [LineStatistics(unpack(row.losses, row.lines)) for row in rows]
    documents = unpack_documents(rows[0].documents, lines)
    sample = sample_of(metric, statistics, None if documents is None else documents.of_line)
    if not (seeming := optimism(sample, len(ranked))):
        return standings
    note = (
        f"of {len(ranked)} equally good entries, the best would seem better than their mean by "
        f"{significant(seeming, 2)} {metric.measure.unit}, by chance"
    )
    return replace(standings, notes=(*standings.notes, note))


class Method(NamedTuple):
    """How the entries of a leaderboard are compared: the name of the paired test, and the units that are drawn."""

    test: str
    units: str


def method_of(connection: Connection, settings: BoardSettings, standings: Standings) -> Method | None:
    """Return how the entries of a leaderboard are compared; None if they are not."""
    from geval_py.explaining.comparison import test_method
    from geval_py.explaining.statistics import sample_of

    first = next((entry.output.evaluation_id for entry in standings.entries if entry.place is not None), None)
    query = select(*pick(Evaluations, "lines losses documents")).where(Evaluations.losses.is_not(None))
    row = connection.execute(query.where(Evaluations.id == first)).first()
    if row is None:
        return None
    documents = unpack_documents(row.documents, row.lines)
    statistics = LineStatistics(unpack(row.losses, row.lines))
    sample = sample_of(metric_of(settings.metric), [statistics], None if documents is None else documents.of_line)
    units = "lines" if documents is None else "documents"
    return Method(test_method(sample, settings.samples, settings.seed), units)


class Position(NamedTuple):
    """The first and last place that cannot be told apart from an entry's, and the numbers of its groups."""

    first: int
    last: int
    groups: tuple[int, ...]


def positions(
    ranked: Sequence[tuple[float | None, int]], p_values: Iterable[Sequence[Any]], *, of: int
) -> list[Position]:
    """Compute the positions of the first entries of a ranking of ``of`` entries, given as (shown score, evaluation).

    ``p_values`` of pairs of evaluations come in ascending order; a missing pair has p = 1.
    """
    pairs = list(told_apart(ranked, p_values))
    sizes = Counter(score for score, _ in ranked)
    told = Counter((ranked[one][0], ranked[other][0]) for one, other in pairs)
    distinct = frozenset(
        (one, other)
        for one, other in pairs
        if told[ranked[one][0], ranked[other][0]] == sizes[ranked[one][0]] * sizes[ranked[other][0]]
    )
    better, worse = [0] * len(ranked), [0] * len(ranked)
    for one, other in distinct:
        worse[one] += 1
        better[other] += 1
    groups: list[list[int]] = [[] for _ in ranked]
    together = undistinguished_groups(len(ranked), distinct) if distinct else [tuple(range(len(ranked)))]
    for number, group in enumerate(together):
        for one in group:
            groups[one].append(number)
    return [Position(1 + better[n], of - worse[n], tuple(groups[n])) for n in range(len(ranked))]


def told_apart(
    ranked: Sequence[tuple[float | None, int]], p_values: Iterable[Sequence[Any]]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of entries, as indexes, that can be told apart.

    Holm's correction multiplies each p-value, in ascending order, by the number of pairs left; when the product
    reaches the level, this pair and all later ones cannot be told apart, so the loop ends.
    """
    left = len(ranked) * (len(ranked) - 1) // 2
    by_evaluation: dict[int, list[int]] = {}
    for number, (_, evaluation) in enumerate(ranked):
        by_evaluation.setdefault(evaluation, []).append(number)
    for one, other, p_value in p_values:
        for a in by_evaluation.get(one, ()):
            for b in by_evaluation.get(other, ()):
                if ranked[a][0] != ranked[b][0]:
                    if left * p_value >= LEVEL:
                        return
                    yield (a, b) if a < b else (b, a)
                    left -= 1
