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
from geval_py.board.settings import PUBLIC, BoardSettings, Test, metric_of, metrics_of
from geval_py.board.submission import INTERVAL_SAMPLES, pack, unpack
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
    stored: dict[tuple[str, ...], EvaluationScore] = {
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
            if key not in stored and ranking is not None:
                lines = rows[ranking].lines
                losses = connection.execute(select(e.losses).where(e.id == ranking)).scalar_one()
                places = places_of(lines)
                if losses is not None and places:
                    statistics = LineStatistics(unpack(losses, lines)).only(places)
                    whole = rows[own[metric]]
                    values = _scored(settings, metric, statistics) | dict(zip(KEY, key, strict=True))
                    new = insert(evaluations).values(**values, signature=whole.signature, made=whole.made)
                    stored[key] = int(connection.execute(new.returning(e.id)).scalar_one()), values["score"]
            if key in stored:
                by_output[output][metric] = stored[key]
    return by_output


def _scored(settings: BoardSettings, metric: str, statistics: LineStatistics) -> dict[str, Any]:
    """Return the columns of an evaluation with a part's score; by the ranking metric, its interval and losses too."""
    from geval_py.explaining.statistics import interval

    kind = metric_of(metric)
    score = kind.value(statistics)
    values = {"lines": statistics.lines, "score": None if math.isnan(score) else score}
    if metric != settings.metric:
        return values
    ends = interval(kind, statistics, samples=INTERVAL_SAMPLES, seed=settings.seed).ends
    return values | dict(zip(("low", "high"), ends, strict=True)) | {"losses": pack(statistics.columns)}
