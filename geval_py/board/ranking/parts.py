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
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Row, insert, select

from geval_py.board.database.schema import Evaluations, evaluations, pick
from geval_py.board.settings import PUBLIC, BoardSettings, Test, metric_of, metrics_of
from geval_py.board.submission import line_values, unpack, unpack_documents
from geval_py.scoring.metrics.base import LineStatistics

Wholes: TypeAlias = "Mapping[int, Mapping[str, Row[Any]]]"  # evaluations of whole tests, by output and metric
KEY = ("test", "output_sha256", "reference", "metric", "version")
WHOLE = (*KEY, "signature", "lines", "made")  # the columns of an evaluation that one of a part is made from


class Figures(NamedTuple):
    """An evaluation: its id, its score and the ends of its interval."""

    id: int
    score: float | None
    low: float | None
    high: float | None


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


def part_figures(
    connection: Connection, settings: BoardSettings, test: Test, part: str, wholes: Wholes
) -> dict[int, dict[str, Figures]]:
    """Return the figures of outputs on a part, by output and metric; compute and store those that are missing.

    An output whose whole score has no losses has none.
    """

    @cache
    def reference_of(whole: str) -> str:
        made_with = (whole, part, repr(test.split), str(settings.seed), test.documents)
        return sha256("\n".join(made_with).encode()).hexdigest()

    @cache
    def places_of(packed: bytes | None, lines: int) -> list[int]:
        """Return the places of the part's lines, which have these documents."""
        documents = unpack_documents(packed, lines)
        of_line = range(lines) if documents is None else documents.of_line
        public = public_lines([str(document) for document in of_line], test.split, f"{settings.seed} {test.name}")
        return [line for line in range(lines) if (line in public) == (part == PUBLIC)]

    references = {reference_of(row.reference) for by_metric in wholes.values() for row in by_metric.values()}
    query = select(*pick(Evaluations, "id score low high"), *(Evaluations[name] for name in KEY))
    rows = connection.execute(query.where(Evaluations.reference.in_(references)))
    stored = {tuple(row[4:]): Figures(*row[:4]) for row in rows}
    by_output: dict[int, dict[str, Figures]] = {output: {} for output in wholes}
    for (output, by_metric), metric in product(wholes.items(), metrics_of(settings, test)):
        whole, ranking = by_metric.get(metric), by_metric.get(settings.metric)
        if whole is None or ranking is None:
            continue
        key = whole.test, whole.output_sha256, reference_of(whole.reference), metric, whole.version
        if key not in stored:
            of_whole = select(Evaluations.losses, Evaluations.documents)
            losses, packed = connection.execute(of_whole.where(Evaluations.id == ranking.evaluation_id)).one()
            places = places_of(packed, ranking.lines)
            if losses is None or not places:
                continue
            statistics = LineStatistics(unpack(losses, ranking.lines)).only(places)
            documents, score = unpack_documents(packed, ranking.lines), metric_of(metric).value(statistics)
            values: dict[str, Any] = dict(zip(KEY, key, strict=True))
            values |= {"lines": statistics.lines, "score": None if math.isnan(score) else score}
            if metric == settings.metric:
                documents = documents and documents.only(places)
                values |= line_values(metric_of(metric), statistics, documents, settings.seed)
            new = insert(evaluations).values(**values, signature=whole.signature, made=whole.made)
            number = connection.scalar(new.returning(Evaluations.id))
            stored[key] = Figures(number, *(values.get(name) for name in ("score", "low", "high")))
        by_output[output][metric] = stored[key]
    return by_output
