"""The public and the private part of a hidden test: which lines they have, and the scores of outputs on them.

The public part has some documents, or lines, chosen by a hash with the secret seed of the board. Neither which lines
these are nor anything about the private part is shown before the deadline of the test.

An output's score on a part is an evaluation of its own, made from the stored losses of its lines. So its interval,
its ladder and its comparisons with others are made as for a whole test. Evaluations of the private part are made
after the deadline only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, insert, select

from geval_py.board.database.schema import evaluations
from geval_py.board.references import documents_of
from geval_py.board.settings import PUBLIC, BoardSettings, Test, metrics_of
from geval_py.board.submission import Scored, pack, unpack
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import find_metric
from geval_py.scoring.metrics.base import LineStatistics

Wholes: TypeAlias = "Mapping[int, Mapping[str, int]]"  # evaluations of whole tests, by output and metric
EvaluationScore: TypeAlias = "tuple[int, float | None]"  # the id of an evaluation, and its score
AT_A_TIME = 500  # ids in a query
KEY = ("test", "output_sha256", "reference", "metric", "version")


def public_lines(documents: Sequence[str], share: float, key: str) -> frozenset[int]:
    """Choose the documents of the public part by a hash with a key; return the places of their lines, from 0.

    The part has nearly the given share of the lines. At least one document is in each part, if there are two.

    >>> sorted(public_lines(["a", "a", "b", "c", "c", "b"], 0.3, "secret"))
    [0, 1]
    """
    sizes = Counter(documents)
    in_order = sorted(sizes, key=lambda document: sha256(f"{key}\n{document}".encode("utf-8", "replace")).digest())
    public: set[str] = set()
    lines = 0
    for document in in_order:
        if lines + sizes[document] / 2 <= share * len(documents):
            public.add(document)
            lines += sizes[document]
    if not public:
        public = {min(in_order, key=sizes.__getitem__)}
    elif len(public) == len(sizes):
        public.remove(in_order[-1])
    return frozenset(place for place, document in enumerate(documents) if document in public)


def part_scores(
    connection: Connection, settings: BoardSettings, test: Test, part: str, wholes: Wholes
) -> dict[int, dict[str, EvaluationScore]]:
    """Return the scores of outputs on a part, by output and metric; compute and store those that are missing.

    An output whose whole score has no losses, or is of another number of lines than the test has now, has none.
    Raises the errors of :func:`geval_py.board.references.documents_of`.
    """
    e, metrics = evaluations.c, metrics_of(settings, test)
    ids = sorted({own[metric] for own in wholes.values() for metric in metrics if metric in own})
    rows: dict[int, Row[Any]] = {}
    for start in range(0, len(ids), AT_A_TIME):
        columns = (e.id, *(e[name] for name in KEY), e.signature, e.lines, e.made)
        query = select(*columns).where(e.id.in_(ids[start : start + AT_A_TIME]))
        rows |= {row.id: row for row in connection.execute(query)}
    keys: dict[int, tuple[str, ...]] = {}
    for number, row in rows.items():
        made_with = (row.reference, part, repr(test.split), str(settings.seed), test.documents)
        reference = sha256("\n".join(made_with).encode()).hexdigest()
        keys[number] = row.test, row.output_sha256, reference, row.metric, row.version
    query = select(e.id, e.score, *(e[name] for name in KEY)).where(
        e.reference.in_({key[2] for key in keys.values()})
    )
    known: dict[tuple[str, ...], EvaluationScore] = {
        tuple(getattr(row, name) for name in KEY): (row.id, row.score) for row in connection.execute(query)
    }

    @cache
    def places_of(lines: int) -> list[int]:
        """Return the places of the part's lines; none if the test has another number of lines."""
        documents = documents_of(settings, test)
        if documents is None:
            documents = [str(line) for line in range(lines)]
        public = public_lines(documents, test.split, f"{settings.seed} {test.name}")
        places = range(lines) if len(documents) == lines else ()
        return [line for line in places if (line in public) == (part == PUBLIC)]

    by_output: dict[int, dict[str, EvaluationScore]] = {}
    for output, own in wholes.items():
        by_output[output] = {}
        for metric in (metric for metric in metrics if metric in own):
            key, ranking = keys[own[metric]], own.get(settings.metric)
            if key not in known and ranking is not None:
                lines = rows[ranking].lines
                losses = connection.execute(select(e.losses).where(e.id == ranking)).scalar_one()
                places = places_of(lines)
                if losses is not None and places:
                    statistics = LineStatistics(unpack(losses, lines)).only(places)
                    scored = _scored(settings, rows[own[metric]], statistics, is_ranking=own[metric] == ranking)
                    names = ("signature", "lines", "score", "low", "high", "losses")
                    values = dict(zip(KEY, key, strict=True)) | {name: getattr(scored, name) for name in names}
                    new = insert(evaluations).values(**values, made=rows[own[metric]].made).returning(e.id)
                    known[key] = int(connection.execute(new).scalar_one()), scored.score
            if key in known:
                by_output[output][metric] = known[key]
    return by_output


def _scored(settings: BoardSettings, whole: Row[Any], statistics: LineStatistics, *, is_ranking: bool) -> Scored:
    """Score an output on a part by the metric of its ``whole`` score; by the ranking metric, with its interval."""
    from geval_py.board.ranking.uncertainty import with_interval

    (scheme,) = parse_schemes(whole.metric)
    score = find_metric(scheme.metric).value(statistics)
    scored = Scored(
        test=whole.test,
        output_sha256=whole.output_sha256,
        metric=whole.metric,
        signature=whole.signature,
        lines=statistics.lines,
        score=None if math.isnan(score) else score,
        losses=pack(statistics.columns) if is_ranking else None,
    )
    return with_interval(scored, settings.seed) if is_ranking else scored
