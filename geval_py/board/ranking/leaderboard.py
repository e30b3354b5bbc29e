"""Leaderboards: their entries in order, and the columns of the tables that show them.

People read text, Markdown, LaTeX and the site's pages; programs read CSV and JSON. To add a column, add a row to
:data:`COLUMNS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, select

from geval_py.board.database.schema import Evaluations, Submissions
from geval_py.board.ranking import order, place_ranges
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.ranking.views import Entry, Standings, SubmissionView, submission_views
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
from geval_py.tables.numbers import counted, interval, significant
from geval_py.tables.table import Table, named_columns
from geval_py.text import nearest, visible, words

if TYPE_CHECKING:
    from geval_py.board.database.store import Board
    from geval_py.text import Alignment


BY = tuple(order.GROUPINGS.values())


def standings(
    board: Board, test: str | None = None, *, phase: str | None = None, by: str | None = None, now: datetime
) -> Standings:
    """Return the leaderboard of a test (default: the first) in a phase (default: the present one).

    After the last deadline the default is the last phase; a note says so.

    ``by`` groups the entries, and only the best of a group is shown: by submitter or by submission
    (default: as board.yaml says). Ranges of places and groups exist for the default alone.

    Raises UsageError for an unknown test, phase or grouping, StoreError.
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
    open_phase, notes = settings.phase_of(now), []
    in_phase = front_phase(settings, open_phase, test) if phase is None else phase
    if phase is None and open_phase == AFTER != in_phase:
        notes.append(f"this is the final table of {visible(in_phase)}; later submissions are in {AFTER}")
    own = settings.in_phase(_checked("phase", in_phase, settings.phase_names))
    tests = {one.name: one for one in own.tests}
    name = _checked("test", test or next(iter(tests)), [one.name for one in settings.tests])
    if name not in tests:
        message = f"the phase `{visible(in_phase)}` does not rank `{visible(name)}`"
        raise UsageError(message=f"{message}\n  it ranks {visible(', '.join(tests))}")
    shown = tests[name]
    own = replace(own, also=metrics_of(own, shown)[1:])
    by = _checked("grouping", by or order.GROUPINGS[settings.entries], BY)
    digits = own.digits_of(shown, now)
    named = zip(settings.metrics, names_of(settings.metrics), strict=True)
    names = tuple(name for metric, name in named if metric in own.metrics)
    rows = order.entries(connection, own, name, in_phase, by)
    if views is None:
        are_entries = Submissions.id.in_([row["submission_id"] for row in rows])
        views = {one.code: one for one in submission_views(connection, settings, are_entries)}
    entries: list[Entry] = []
    for row in rows:
        submission = views[row["code"]]
        (output,) = (one for one in submission.outputs if one.id == row["output_id"])
        is_held = row["held"] and digits.score > 0
        place = {name: row[name] for name in ("place", "shared")}
        entries.append(Entry(submission=submission, output=output, held=is_held, **place))
    floor = None if shown.visible else uninformed_score(settings.metric)
    if digits.score and by == order.GROUPINGS[settings.entries]:
        notes += _add_ranges(connection, settings, entries, floor)
    if floor is not None and any(entry.score is not None and math.isinf(entry.score) for entry in entries):
        nothing = f"a score worse than {significant(floor, digits.score)}, the {names[0]} without any knowledge"
        notes.append(f"{nothing}, is shown as infinite")
    part, last = settings.part_of(shown, in_phase, now), settings.deciding_phase(name)
    if part and digits.score and entries:
        is_open = last is not None and last.name == in_phase and part == PUBLIC
        lines = connection.execute(
            select(Evaluations.lines).where(Evaluations.id == entries[0].output.evaluation_id)
        ).scalar_one()
        undecided = "; after the deadline the private part decides" if is_open else ""
        notes.append(f"the scores are of the {part} part, {counted(lines, 'line')}{undecided}")
        if settings.finals and settings.is_decided(shown, in_phase, now):
            notes.append(f"only final submissions are ranked, at most {settings.finals} of a submitter")
    measure = metric_of(settings.metric).measure
    return Standings(
        test=name,
        phase=in_phase,
        metric=names[0],
        others=names[1:],
        unit=measure.unit,
        direction=measure.direction,
        digits=digits.score,
        end_digits=digits.ends,
        by=by,
        entries=tuple(entries),
        floor=floor,
        notes=tuple(notes),
        part=part,
    )


def front_phase(settings: BoardSettings, phase: str, test: str | None = None) -> str:
    """Return the phase that is shown by default in a present ``phase``: the last one until then that ranks the test.

    What arrives after the last deadline has a table of its own, which is never the default. Without a test, any test
    counts.
    """
    until = settings.phase_names[: settings.phase_names.index(phase) + 1]
    tests = {name: [None, *(one.name for one in settings.in_phase(name).tests)] for name in until if name != AFTER}
    return next((name for name in reversed(until) if test in tests.get(name, ())), phase)


def _checked(what: str, name: str, names: Sequence[str]) -> str:
    """Return a name after checking that it is known; raises UsageError."""
    if name in names:
        return name
    meant = nearest(name, names)
    there = ", ".join(names) if any(names) else "none"
    advice = f"did you mean {meant}?" if meant else f"there is {there}" if len(names) == 1 else f"there are {there}"
    raise UsageError(message=visible(f"the board has no {what} `{name}`") + f"\n  {visible(advice)}")


def _add_ranges(
    connection: Connection, settings: BoardSettings, entries: list[Entry], floor: float | None
) -> Iterator[str]:
    """Add the range and the groups to each entry that has a place; yield notes for people.

    With a ``floor``, entries with an infinite score have none, since their scores are hidden.
    """
    ranked = [number for number, entry in enumerate(entries) if entry.place is not None]
    if floor is not None:
        ranked = [number for number in ranked if math.isfinite(entries[number].score or 0.0)]
    compared = ranked[: order.MAX_COMPARED]
    scores = [(entries[number].score, entries[number].output.evaluation_id or 0) for number in compared]
    ids = {evaluation for _, evaluation in scores}
    if len(compared) < 2:
        return
    positions = place_ranges.positions(scores, order.p_values(connection, settings, ids), of=len(ranked))
    for number, at in zip(compared, positions, strict=True):
        entries[number] = replace(entries[number], first=at.first, last=at.last, groups=at.groups)
    if len(ranked) > len(compared):
        yield f"only the first {len(compared)} of {len(ranked)} entries are compared with each other"


# The columns of a leaderboard, for people and for programs


class EntryColumn(NamedTuple):
    """A column of a leaderboard.

    Programs read the ``value`` under its ``name``; in CSV, ``cell`` makes one text of it. People read the ``text``
    below its ``heading``, if it has one; the ``legend`` explains it. A column that is not ``kept`` is left out where
    all of its texts are empty. Pages show it in a column of the class ``style``, sorted as a ``kind``, if it has one.
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

    def key(self, entry: Entry) -> object:
        """Return what a page sorts by."""
        return self.value(entry) if self.kind == "number" else self.text(entry, Digits(0, 0))


def place_text(entry: Entry) -> str:
    """Write a place: ``3=`` if others share it; ``baseline`` for a baseline."""
    if entry.submission.baseline:
        return "baseline"
    return "" if entry.place is None else f"{entry.place}{'=' if entry.shared else ''}"


def _plain(path: str) -> Any:
    """Return the value, heading and text of a column that shows a text as it is."""
    value = attrgetter(path)
    return {"value": value, "heading": path.rpartition(".")[2], "text": lambda entry, _: value(entry)}


def _interval_text(entry: Entry, digits: Digits) -> str:
    _, low, high = entry.output.shown
    return "" if low is None or high is None else f"[{', '.join(interval(low, high, digits.ends))}]"


def _figures(name: str, value: Callable[[Entry], float | None], **more: Any) -> EntryColumn:
    """Return a column of scores."""

    def text(entry: Entry, digits: Digits) -> str:
        return significant(value(entry), digits.score)

    return EntryColumn(name, value, name, text, "right", **more)


COLUMNS = (
    EntryColumn("place", attrgetter("place"), "place", lambda entry, _: place_text(entry), "right", kept=True),
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
    EntryColumn("submitter", **_plain("submission.submitter"), kept=True),
    EntryColumn("code", attrgetter("code")),
    EntryColumn("variant", **_plain("output.variant")),
    _figures("score", attrgetter("score")),
    EntryColumn("low", attrgetter("output.shown.low"), "95 % interval", _interval_text, "centre"),
    EntryColumn("high", attrgetter("output.shown.high")),
    EntryColumn("others", attrgetter("output.figures")),
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
    EntryColumn("affiliation", **_plain("submission.affiliation")),
    EntryColumn("description", **_plain("submission.description")),
    EntryColumn("links", attrgetter("submission.links"), cell=lambda links: " ".join(url for _, url in links)),
    EntryColumn("remark", **_plain("submission.remark")),
)


def columns_of(standings: Standings) -> Iterator[EntryColumn]:
    """Yield the columns of a leaderboard, with a column for each metric."""

    def value(metric: str, entry: Entry) -> float | None:
        figures = entry.output.figures.get(metric)
        return None if figures is None else figures.value

    for column in COLUMNS:
        if column.name == "others":
            for metric in standings.others:
                yield _figures(metric, partial(value, metric), style="other", kind="number")
        elif column.name == "score":
            yield column._replace(heading=standings.metric)
        else:
            yield column._replace(kept=standings.digits > 0) if column.name == "place" else column


def shown_columns(standings: Standings) -> list[EntryColumn]:
    """Return the columns that people see, without empty ones."""
    digits = standings.shown_digits
    return [
        column
        for column in columns_of(standings)
        if column.heading and (column.kept or any(column.text(entry, digits) for entry in standings.entries))
    ]


def page_columns(standings: Standings) -> list[EntryColumn]:
    """Return the columns that a page shows beside place, submitter and score."""
    shown = {"when", *(words("range other groups") if standings.digits else ())}
    if any(entry.held for entry in standings.entries):
        shown.add("ladder")
    return [column for column in columns_of(standings) if column.style in shown]


def standings_records(standings: Standings) -> Table:
    """Return the table for programs, a row per entry."""
    columns = list(columns_of(standings))
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
    columns = list(columns_of(standings))
    entries = []
    for entry in standings.entries:
        values = {column.name: column.value(entry) for column in columns if column.style != "other"}
        others = {column.name: column.value(entry) for column in columns if column.style == "other"}
        entries.append(values | {"others": others, "params": entry.params})
    return {name: getattr(standings, name) for name in head} | {"entries": entries}
