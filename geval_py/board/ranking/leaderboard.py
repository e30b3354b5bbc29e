"""Leaderboards: their entries in order, and the columns of the tables that show them.

People read text, Markdown, LaTeX and the site's pages; programs read CSV and JSON. To add a column, add a row to
:data:`COLUMNS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from geval_py.board.database.schema import Evaluations, Submissions
from geval_py.board.database.store import Board
from geval_py.board.ranking import order, place_ranges
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.ranking.views import Entry, Figures, Standings, SubmissionView, submission_views
from geval_py.board.settings import (
    AFTER,
    PUBLIC,
    BoardSettings,
    Digits,
    metric_of,
    metrics_of,
    moment_text,
    names_of,
    uninformed_score,
)
from geval_py.errors import UsageError
from geval_py.explaining.significance import group_letters
from geval_py.tables.numbers import interval, significant
from geval_py.tables.table import Table, named_columns
from geval_py.text import Alignment, counted, visible

BY = tuple(order.GROUPINGS.values())


def standings(
    board: Board, test: str | None = None, *, phase: str | None = None, by: str | None = None, now: datetime
) -> Standings:
    """Return the leaderboard of a test (default: the first) in a phase (default: the present one).

    After the last deadline the default is the last phase; a note says so.

    ``by`` groups the entries, and only the best of a group is shown: by submitter or by submission
    (default: as board.yaml says). Ranges of places and groups exist for the default alone.

    Raises UsageError for an unknown test or phase, StoreError.
    """
    with disclosed(board, now) as connection:
        return standings_on(connection, board.settings, test, phase=phase, by=by, now=now)


def standings_on(
    connection: Connection,
    settings: BoardSettings,
    test: str | None = None,
    *,
    phase: str | None = None,
    by: str | None = None,
    now: datetime,
    views: Mapping[str, SubmissionView] | None = None,
) -> Standings:
    """Return the leaderboard as a transaction sees it; its scores must be disclosed already.

    ``views`` are all submissions by their codes; by default those of the entries are read.
    """
    present = settings.phase_of(now)
    in_phase = front_phase(settings, present, test) if phase is None else phase
    _check("board", "phase", in_phase, settings.phase_names)
    own = settings.in_phase(in_phase)
    tests = {one.name: one for one in own.tests}
    name = test or own.tests[0].name
    _check(f"phase `{in_phase}`" if in_phase else "board", "test", name, tests)
    ranked_test = tests[name]
    default, digits = order.GROUPINGS[settings.entries], own.digits_of(ranked_test, now)
    rows = order.entries(connection, own, ranked_test.name, in_phase, by or default)
    if views is None:
        are_entries = Submissions.id.in_([row["submission_id"] for row in rows])
        views = {one.code: one for one in submission_views(connection, settings, are_entries)}
    entries: list[Entry] = []
    for row in rows:
        submission = views[row["code"]]
        (output,) = (output for output in submission.outputs if output.id == row["output_id"])
        held = row["held"] and digits.score > 0
        entries.append(
            Entry(submission=submission, output=output, place=row["place"], shared=row["shared"], held=held)
        )
    named = zip(settings.metrics, names_of(settings.metrics), strict=True)
    metric, *others = (name for metric, name in named if metric in metrics_of(own, ranked_test))
    notes = []
    if phase is None and present == AFTER != in_phase:
        notes.append(f"this is the final table of {visible(in_phase)}; later submissions are in {AFTER}")
    floor = None if ranked_test.visible else uninformed_score(settings.metric)
    if digits.score and by in (None, default):
        # scores worse than the floor are hidden, so that no range may tell them apart
        placed = [one for one in entries if one.place and (floor is None or math.isfinite(one.score or 0.0))]
        compared = placed[: order.MAX_COMPARED]
        ranges = _ranges(connection, settings, compared, len(placed))
        entries = [replace(entry, **ranges.get(entry.output.id, {})) for entry in entries]
        if len(compared) < len(placed):
            notes.append(f"only the first {len(compared)} of {len(placed)} entries are compared with each other")
    if floor is not None and any(entry.score is not None and math.isinf(entry.score) for entry in entries):
        notes.append(
            f"a score worse than {significant(floor, digits.score)}, the {metric} without any knowledge, "
            "is shown as infinite"
        )
    part, last = settings.part_of(ranked_test, in_phase, now), settings.deciding_phase(ranked_test.name)
    if part and digits.score and entries:
        is_open = last and last.name == in_phase and part == PUBLIC
        lines = connection.execute(
            select(Evaluations.lines).where(Evaluations.id == entries[0].output.evaluation_id)
        ).scalar_one()
        undecided = "; after the deadline the private part decides" if is_open else ""
        notes.append(f"the scores are of the {part} part, {counted(lines, 'line')}{undecided}")
        if settings.finals and settings.is_decided(ranked_test, in_phase, now):
            notes.append(f"only final submissions are ranked, at most {settings.finals} of a submitter")
    measure = metric_of(settings.metric).measure
    return Standings(
        test=ranked_test.name,
        phase=in_phase,
        metric=metric,
        others=tuple(others),
        unit=measure.unit,
        direction=measure.direction,
        digits=digits.score,
        end_digits=digits.ends,
        by=by or default,
        entries=tuple(entries),
        floor=floor,
        notes=tuple(notes),
        part=part,
    )


def _ranges(
    connection: Connection, settings: BoardSettings, compared: Sequence[Entry], placed: int
) -> dict[int, dict[str, Any]]:
    """Return the range and the groups of the first of ``placed`` entries by their outputs, if there are several."""
    if len(compared) < 2:
        return {}
    scores = [(entry.score, entry.output.evaluation_id or 0) for entry in compared]
    p_values = order.p_values(connection, settings, {evaluation for _, evaluation in scores})
    positions = place_ranges.positions(scores, p_values, of=placed)
    return {entry.output.id: at._asdict() for entry, at in zip(compared, positions, strict=True)}


def front_phase(settings: BoardSettings, phase: str, test: str | None = None) -> str:
    """Return the phase that is shown by default in a present ``phase``: the last one until then that ranks the test.

    What arrives after the last deadline has a table of its own, which is never the default. Without a test, any test
    counts.
    """
    for name in reversed(settings.phase_names[: settings.phase_names.index(phase) + 1]):
        if name != AFTER and (test is None or settings.in_phase(name).test(test)):
            return name
    return phase


def _check(where: str, what: str, name: str, names: Iterable[str]) -> None:
    """Raise UsageError for a name that is not there."""
    if name not in names:
        known = ", ".join(filter(None, names)) or "none"
        raise UsageError(visible(f"the {where} has no {what} `{name}`") + f"\n  it has {visible(known)}")


# The columns of a leaderboard, for people and for programs


class EntryColumn(NamedTuple):
    """A column of a leaderboard.

    Programs read the ``value`` under its ``name``; in CSV, ``cell`` makes one text of it. People read the ``text``
    below its ``heading``, if it has one; the ``legend`` explains it. A column that is not ``kept`` is left out where
    all of its texts are empty. Pages show it in a column of the class ``style``, if it has one, sorted as a ``kind``.
    """

    name: str
    value: Callable[[Entry], Any]
    heading: str = ""
    text: Callable[[Entry, Digits], str] = lambda _entry, _digits: ""
    alignment: Alignment = "left"
    kept: bool = False
    legend: str = ""
    cell: Callable[[Any], object] = lambda value: value
    style: str = ""
    kind: str = "text"


def _interval_text(entry: Entry, digits: Digits) -> str:
    _, low, high = entry.output.shown
    return "" if low is None or high is None else f"[{', '.join(interval(low, high, digits.ends))}]"


def _text_column(path: str, **more: Any) -> EntryColumn:
    """Return a column of a text of the entry, as it is."""
    value, name = attrgetter(path), path.rpartition(".")[2]
    return EntryColumn(name, value, name, lambda entry, _: value(entry), **more)


def _score_column(name: str, metric: str, **more: Any) -> EntryColumn:
    """Return a column of the scores by a metric."""

    def value(entry: Entry) -> float | None:
        return entry.output.figures.get(metric, Figures()).value

    return EntryColumn(
        name, value, metric, lambda entry, digits: significant(value(entry), digits.score), "right", **more
    )


def columns_of(standings: Standings) -> list[EntryColumn]:
    """Return the columns of a leaderboard."""
    has_places = standings.digits > 0
    others = [_score_column(metric, metric, style="other", kind="number") for metric in standings.others]
    return [
        EntryColumn(
            "place", attrgetter("place"), "place", lambda entry, _: entry.place_text, "right", kept=has_places
        ),
        EntryColumn("shared", attrgetter("shared")),
        EntryColumn(
            "first",
            attrgetter("first"),
            "range",
            lambda entry, _: "–".join(map(str, dict.fromkeys((entry.first, entry.last)))) if entry.first else "",
            "centre",
            legend="the places that are not significantly different from this one",
            style="range",
            kind="number",
        ),
        EntryColumn("last", attrgetter("last")),
        _text_column("submission.submitter", kept=True),
        EntryColumn("code", attrgetter("code")),
        _text_column("output.variant"),
        _score_column("score", standings.metric),
        EntryColumn("low", attrgetter("output.shown.low"), "95 % interval", _interval_text, "centre"),
        EntryColumn("high", attrgetter("output.shown.high")),
        *others,
        EntryColumn(
            "groups",
            attrgetter("groups"),
            "group",
            lambda entry, _: group_letters(entry.groups),
            legend="entries that share a letter are not significantly different "
            "(paired tests of all pairs, Holm's correction, 5 %)",
            cell=lambda groups: " ".join(map(str, groups)),
            style="groups",
        ),
        EntryColumn(
            "held",
            attrgetter("held"),
            "ladder",
            lambda entry, _: "held back" if entry.held else "",
            legend="held back if the latest submission is not significantly better, so an earlier score is shown",
            style="ladder",
        ),
        EntryColumn("baseline", attrgetter("submission.baseline")),
        EntryColumn(
            "arrived",
            lambda entry: moment_text(entry.submission.arrived),
            "arrived",
            lambda entry, _: moment_text(entry.submission.arrived).replace("T", " "),
            kept=True,
            style="when",
        ),
        EntryColumn(
            "tags",
            attrgetter("submission.tags"),
            "tags",
            lambda entry, _: ", ".join(entry.submission.tags),
            cell=",".join,
        ),
        _text_column("submission.affiliation"),
        _text_column("submission.description"),
        EntryColumn("links", attrgetter("submission.links"), cell=lambda links: " ".join(url for _, url in links)),
        _text_column("submission.remark"),
    ]


def shown_columns(standings: Standings) -> list[EntryColumn]:
    """Return the columns that people see, without empty ones."""
    digits = standings.shown_digits
    return [
        column
        for column in columns_of(standings)
        if column.heading and (column.kept or any(column.text(entry, digits) for entry in standings.entries))
    ]


def standings_records(standings: Standings) -> Table:
    """Return the table for programs, a row per entry."""
    columns = columns_of(standings)
    keys = sorted({key for entry in standings.entries for key in entry.params})
    names = [*(column.name for column in columns), *(f"param {key}" for key in keys)]
    rows = [
        [*(column.cell(column.value(entry)) for column in columns), *map(entry.params.get, keys)]
        for entry in standings.entries
    ]
    return Table(named_columns(names), rows)


def standings_document(standings: Standings) -> dict[str, Any]:
    """Return a leaderboard as a JSON document; values may be infinite."""
    head = (one.name for one in fields(Standings) if one.name not in ("others", "entries"))
    columns, entries = columns_of(standings), []
    for entry in standings.entries:
        values = {column.name: column.value(entry) for column in columns if column.style != "other"}
        others = {column.name: column.value(entry) for column in columns if column.style == "other"}
        entries.append(values | {"others": others, "params": entry.params})
    return {name: getattr(standings, name) for name in head} | {"entries": entries}
