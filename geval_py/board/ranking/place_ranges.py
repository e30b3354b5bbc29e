"""Places: paired tests of entries, which other places one might as well have.

The paired test of ``geval compare``, with Holm's correction over all pairs of the ranked entries, tells two entries
apart at 5 %. Two shown scores are told apart if all pairs
of their entries are: so entries with the same shown score have the same range and groups, which reveal nothing of the
undisclosed digits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Row, select

from geval_py.board.database.schema import Evaluations, evaluations
from geval_py.board.settings import BoardSettings, metric_of
from geval_py.board.submission import unpack, unpack_documents
from geval_py.explaining.significance import LEVEL, undistinguished_groups
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.tables.numbers import significant

if TYPE_CHECKING:
    from geval_py.board.ranking.views import Standings
    from geval_py.explaining.statistics import LineSample

MAX_SPREAD = 20  # evaluations, whose lines show how far equally good ones are apart


def compare_pairs(
    connection: Connection, settings: BoardSettings, pairs: Sequence[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Test pairs of evaluations of one test set; yield rows of the table ``comparisons``.

    Pairs scored with different answers, or without stored losses, get p = 1. So do pairs whose mean losses say the
    contrary of their scores, as those of a metric that averages over classes may: what is stored are the losses.
    """
    from geval_py.explaining.statistics import Estimator, pair_tests

    same_answers = defaultdict[tuple[Any, ...], list[Row[Any]]](list)
    for row in _evaluations(connection, {evaluation for pair in pairs for evaluation in pair}):
        same_answers[row.reference, row.metric, row.lines].append(row)
    p_values: dict[tuple[int, int], float] = {}
    for rows in same_answers.values():
        place = {row.id: n for n, row in enumerate(rows)}
        tested = {(place[a], place[b]): (a, b) for a, b in pairs if a in place and b in place}
        tests = pair_tests(Estimator(_sample(settings, rows), settings.samples, settings.seed), tested)
        p_values |= {tested[pair]: test.p_value for pair, test in tests.items()}
    for one, other in pairs:
        p_value = p_values.get((one, other), 1.0)
        yield {"one_id": one, "other_id": other, "p": p_value, "samples": settings.samples, "seed": settings.seed}


def _evaluations(connection: Connection, ids: Collection[int | None]) -> Sequence[Row[Any]]:
    """Return the evaluations with some ids that have losses, by id."""
    query = select(evaluations).where(Evaluations.losses.is_not(None), Evaluations.id.in_(ids))
    return connection.execute(query.order_by(Evaluations.id)).all()


def _sample(settings: BoardSettings, rows: Sequence[Row[Any]]) -> LineSample:
    """Return the sample of evaluations with the same answers, from which statistics draw."""
    from geval_py.explaining.statistics import sample_of

    statistics = [LineStatistics(unpack(row.losses, row.lines)) for row in rows]
    documents = unpack_documents(rows[0].documents, rows[0].lines)
    return sample_of(metric_of(settings.metric), statistics, None if documents is None else documents.of_line)


class Method(NamedTuple):
    """How the entries of a leaderboard are compared: the name of the paired test, and the units that are drawn."""

    test: str
    units: str


def method_of(connection: Connection, settings: BoardSettings, standings: Standings) -> Method | None:
    """Return how the entries of a leaderboard are compared; None if they are not."""
    from geval_py.explaining.comparison import test_method

    placed = (entry.output.evaluation_id for entry in standings.entries if entry.place)
    rows = _evaluations(connection, set(islice(placed, 1)))
    if not rows:
        return None
    name = test_method(_sample(settings, rows), settings.samples, settings.seed)
    return Method(name, "lines" if rows[0].documents is None else "documents")


def with_note_on_choice(connection: Connection, settings: BoardSettings, standings: Standings) -> Standings:
    """Add a note on how good the best entry looks by chance; it tells of the lines, so their answers are public."""
    from geval_py.explaining.statistics import optimism

    placed = [entry.output.evaluation_id for entry in standings.entries if entry.place]
    rows = _evaluations(connection, set(placed[:MAX_SPREAD]))
    is_comparable = standings.digits and len(rows) > 1 and len({(row.reference, row.lines) for row in rows}) == 1
    if not is_comparable or not (seeming := optimism(_sample(settings, rows), len(placed))):
        return standings
    note = (
        f"of {len(placed)} equally good entries, the best would seem better than their mean by "
        f"{significant(seeming, 2)} {standings.unit}, by chance"
    )
    return replace(standings, notes=(*standings.notes, note))


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
    scores = [score for score, _ in ranked]
    pairs = list(distinct_pairs(ranked, p_values))
    sizes = Counter(scores)
    tested = Counter((scores[one], scores[other]) for one, other in pairs)
    distinct = frozenset(
        (one, other)
        for one, other in pairs
        if tested[scores[one], scores[other]] == sizes[scores[one]] * sizes[scores[other]]
    )
    worse, better = (Counter(pair[end] for pair in distinct) for end in (0, 1))
    groups = list(map(set, undistinguished_groups(len(ranked), distinct)))
    return [
        Position(1 + better[n], of - worse[n], tuple(number for number, group in enumerate(groups) if n in group))
        for n in range(len(ranked))
    ]


def distinct_pairs(
    ranked: Sequence[tuple[float | None, int]], p_values: Iterable[Sequence[Any]]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of entries, as indexes, that differ significantly and in their shown scores.

    Holm's correction multiplies each p-value, in ascending order, by the number of pairs left; when the product
    reaches the level, this pair and all later ones do not differ significantly, so the loop ends.
    """
    left = len(ranked) * (len(ranked) - 1) // 2
    by_evaluation = defaultdict[int, list[int]](list)
    for number, (_, evaluation) in enumerate(ranked):
        by_evaluation[evaluation].append(number)
    for one, other, p_value in p_values:
        for a, b in product(by_evaluation[one], by_evaluation[other]):
            if ranked[a][0] != ranked[b][0]:
                if left * p_value >= LEVEL:
                    return
                yield min(a, b), max(a, b)
                left -= 1
