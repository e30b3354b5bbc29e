"""What a site shows, read from one state of the database, and from the challenge's public files."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from geval_py.board.keeping.likeness import likenesses
from geval_py.board.publishing.site.lines import LineTables
from geval_py.board.publishing.site.view import Figures, FileView, OutputView, SiteView, SubmissionView
from geval_py.board.ranking.comparing import MOST_COMPARED
from geval_py.board.ranking.disclosing import ensure_disclosed
from geval_py.board.ranking.places import what_it_takes
from geval_py.board.ranking.standings import standings_on
from geval_py.board.settings import read_text
from geval_py.board.storing.schema import disclosures, files, outputs, submissions, submitters
from geval_py.board.units import names_of
from geval_py.board.values import Entry, Standings
from geval_py.reading.challenge import README_FILE

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from geval_py.board.settings import Settings
    from geval_py.board.storing.store import Board


@contextmanager
def loaded(board: Board, *, now: datetime, organiser: bool = False) -> Iterator[SiteView]:
    """Gather what a site shows now; lines are read as long as the block goes on. Raises StoreError, DataError."""
    ensure_disclosed(board, now)
    with board.reading() as connection:
        yield _view(connection, board.settings, now, organiser=organiser)


def _view(connection: Connection, settings: Settings, now: datetime, *, organiser: bool) -> SiteView:
    phase = settings.phase_of(now)
    names = settings.phase_names
    return SiteView(
        settings=settings,
        metrics=names_of(settings.metrics),
        phase=phase,
        digits={test.name: settings.digits_of(test, now) for test in settings.tests},
        standings={
            (test.name, name): standings_on(connection, settings, test.name, phase=name, now=now)
            for test in settings.tests
            for name in names[: names.index(phase) + 1]
        },
        submissions=tuple(_submissions(connection, settings)),
        readme=_readme(settings),
        lines_of=LineTables(connection, settings),
        advice=_advice,
        likenesses=tuple(likenesses(connection, settings)) if organiser else None,
    )


def _readme(settings: Settings) -> str:
    path = os.path.join(settings.challenge, README_FILE)
    return read_text(path) if os.path.isfile(path) else ""


def _advice(standings: Standings, entry: Entry) -> tuple[str, ...]:
    """Say what it takes to change places; only of as many as are compared with each other."""
    return what_it_takes(standings, entry) if (entry.place or 0) <= MOST_COMPARED else ()


def _submissions(connection: Connection, settings: Settings) -> Iterator[SubmissionView]:
    """Give all submissions, the latest first."""
    own_files, own_outputs = _files(connection), _outputs(connection, settings)
    query = select(submissions, submitters.c.name.label("submitter")).join(
        submitters, submitters.c.id == submissions.c.submitter_id
    )
    for row in connection.execute(query.order_by(submissions.c.arrived.desc(), submissions.c.id.desc())):
        yield _submission(row, tuple(own_files.get(row.id, ())), tuple(own_outputs.get(row.id, ())))


def _submission(row: Row[Any], files: tuple[FileView, ...], outputs: tuple[OutputView, ...]) -> SubmissionView:
    names = ("code", "submitter", "arrived", "state", "reason", "baseline", "description", "author", "revision")
    more = ("remark", "withdrawn", "scorer")
    return SubmissionView(
        **{name: getattr(row, name) for name in (*names, *more)},
        tags=tuple(map(str, row.tags)),
        params=_texts(row.params),
        links=tuple((str(title), str(url)) for title, url in row.links),
        problems=tuple(row.problems),
        files=files,
        outputs=outputs,
    )


def _texts(params: Mapping[str, object]) -> dict[str, str]:
    return {str(name): str(value) for name, value in params.items()}


def _files(connection: Connection) -> dict[int, list[FileView]]:
    found: dict[int, list[FileView]] = defaultdict(list)
    query = select(files.c.submission_id, files.c.name, files.c.bytes, files.c.sha256)
    for row in connection.execute(query.order_by(files.c.submission_id, files.c.name)):
        found[row.submission_id].append(FileView(name=row.name, bytes=row.bytes, sha256=row.sha256))
    return found


def _outputs(connection: Connection, settings: Settings) -> dict[int, list[OutputView]]:
    """Give the outputs by submission; figures are those that are disclosed, and only they."""
    figures, evaluations = _figures(connection, settings)
    found: dict[int, list[OutputView]] = defaultdict(list)
    for row in connection.execute(
        select(outputs).order_by(outputs.c.submission_id, outputs.c.test, outputs.c.variant)
    ):
        output = OutputView(
            id=row.id,
            test=row.test,
            variant=row.variant,
            params=_texts(row.params),
            figures=figures.get(row.id, {}),
            evaluation_id=evaluations.get(row.id),
        )
        found[row.submission_id].append(output)
    return found


def _figures(connection: Connection, settings: Settings) -> tuple[dict[int, dict[str, Figures]], dict[int, int]]:
    """Give what is disclosed of outputs, by output and name of the metric, and the evaluations that rank them."""
    names = dict(zip(settings.metrics, names_of(settings.metrics), strict=True))
    figures: dict[int, dict[str, Figures]] = defaultdict(dict)
    evaluations: dict[int, int] = {}
    of = disclosures.c
    query = select(of.output_id, of.metric, of.evaluation_id, of.value, of.low, of.high)
    rows = {(row.output_id, row.metric): row for row in connection.execute(query)}
    for (output, metric), row in sorted(rows.items(), key=lambda item: item[0][0]):
        if metric == settings.metric:
            evaluations[output] = row.evaluation_id
        if metric in names:
            figures[output][metric] = Figures(value=row.value, low=row.low, high=row.high)
    return {
        output: {names[metric]: by[metric] for metric in settings.metrics if metric in by}
        for output, by in figures.items()
    }, evaluations
