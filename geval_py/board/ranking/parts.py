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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, insert, select

from geval_py.board.database.schema import evaluations
from geval_py.board.references import documents_of
from geval_py.board.settings import PUBLIC, Settings, Test, metrics_of
from geval_py.board.submission import PartScore, Scored, pack, unpack
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import find_metric
from geval_py.scoring.metrics.base import LineStatistics

Wholes: TypeAlias = "Mapping[int, Mapping[str, int]]"  # evaluations of whole tests, by output and metric
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
    connection: Connection, settings: Settings, test: Test, part: str, wholes: Wholes
) -> dict[int, dict[str, PartScore]]:
    """Return the scores of outputs on a part, by output and metric; compute and store those that are missing.

    An output whose whole score has no losses, or is of another number of lines than the test has now, has none.
    Raises the errors of :func:`geval_py.board.references.documents_of`.
    """
    metrics = metrics_of(settings, test)
    ids = {of[metric] for of in wholes.values() for metric in metrics if metric in of}
    rows = {row.id: row for row in _read(connection, ids)}
    made = _Part(settings, test, part)
    keys = {number: made.key_of(row) for number, row in rows.items()}
    known = dict(_known(connection, {key[2] for key in keys.values()}))
    found: dict[int, dict[str, PartScore]] = {}
    for output, of in wholes.items():
        scores: dict[str, PartScore] = {}
        for metric in (metric for metric in metrics if metric in of):
            key = keys[of[metric]]
            if key not in known:
                ranking = of.get(settings.metric)
                scored = None if ranking is None else made.scored(connection, rows[of[metric]], rows[ranking])
                if scored is None:
                    continue
                known[key] = _stored(connection, key, scored, rows[of[metric]])
            scores[metric] = known[key]
        found[output] = scores
    return found


def _read(connection: Connection, ids: Iterable[int]) -> Iterator[Row[Any]]:
    e, in_order = evaluations.c, sorted(ids)
    columns = [e.id, *(e[name] for name in KEY), e.signature, e.lines, e.made]
    for start in range(0, len(in_order), AT_A_TIME):
        yield from connection.execute(select(*columns).where(e.id.in_(in_order[start : start + AT_A_TIME])))


def _known(connection: Connection, references: Iterable[str]) -> Iterator[tuple[tuple[str, ...], PartScore]]:
    e = evaluations.c
    query = select(e.id, e.score, *(e[name] for name in KEY)).where(e.reference.in_(sorted(references)))
    for row in connection.execute(query):
        yield tuple(getattr(row, name) for name in KEY), PartScore(row.id, row.score)


def _stored(connection: Connection, key: tuple[str, ...], scored: Scored, whole: Row[Any]) -> PartScore:
    of_part = {name: getattr(scored, name) for name in ("signature", "lines", "score", "low", "high", "losses")}
    values = dict(zip(KEY, key, strict=True)) | of_part | {"made": whole.made}
    number = connection.execute(insert(evaluations).values(values).returning(evaluations.c.id)).scalar_one()
    return PartScore(int(number), scored.score)


class _Part:
    """A part of a test as board.yaml and the challenge's files have it now; they are read when a score is missing."""

    def __init__(self, settings: Settings, test: Test, part: str) -> None:
        self._settings, self._test, self._part = settings, test, part
        self._places: dict[int, list[int]] = {}

    def key_of(self, whole: Row[Any]) -> tuple[str, ...]:
        """Return the key of the evaluation of the same content on the part."""
        test = self._test
        made_with = (whole.reference, self._part, repr(test.split), str(self._settings.seed), test.documents)
        reference = sha256("\n".join(made_with).encode()).hexdigest()
        return whole.test, whole.output_sha256, reference, whole.metric, whole.version

    @cached_property
    def _documents(self) -> list[str] | None:
        return documents_of(self._settings, self._test)

    def _places_of(self, lines: int) -> list[int]:
        """Return the places of the part's lines; none if the test has another number of lines."""
        if lines not in self._places:
            documents = [str(line) for line in range(lines)] if self._documents is None else self._documents
            public = public_lines(documents, self._test.split, f"{self._settings.seed} {self._test.name}")
            known = range(lines) if len(documents) == lines else ()
            self._places[lines] = [line for line in known if (line in public) == (self._part == PUBLIC)]
        return self._places[lines]

    def scored(self, connection: Connection, whole: Row[Any], ranking: Row[Any]) -> Scored | None:
        """Score an output on the part by the metric of ``whole``, from the losses of the ranking metric."""
        query = select(evaluations.c.losses).where(evaluations.c.id == ranking.id)
        packed = connection.execute(query).scalar_one()
        places = self._places_of(ranking.lines)
        if packed is None or not places:
            return None
        from geval_py.board.ranking.uncertainty import with_interval

        of_part = LineStatistics(unpack(packed, ranking.lines)).only(places)
        (scheme,) = parse_schemes(whole.metric)
        score = find_metric(scheme.metric).value(of_part)
        scored = Scored(
            test=whole.test,
            output_sha256=whole.output_sha256,
            metric=whole.metric,
            signature=whole.signature,
            lines=len(places),
            score=None if math.isnan(score) else score,
        )
        if whole.id != ranking.id:
            return scored
        return with_interval(replace(scored, losses=pack(of_part.columns)), self._settings.seed)
