"""Leaderboards: their entries in order, and the tables that show them.

In this order: the leaderboard of a test and phase, read from the database; its tables for people and programs; and
the columns of these tables.

People read text, Markdown, LaTeX and the site's pages; programs read CSV and JSON. To add a column, add a field to
:class:`geval_py.board.submission.Entry`, with a name in :func:`columns_of` for people and in ``TOLD`` for programs.
:data:`geval_py.board.ranking.order.TOLD` names the fields that are columns of ``submissions``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from geval_py.board.database.schema import Evaluations
from geval_py.board.ranking import order, place_ranges
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.settings import (
    AFTER,
    PUBLIC,
    BoardSettings,
    metric_of,
    metrics_of,
    moment_text,
    names_of,
    uninformed_score,
)
from geval_py.board.submission import Entry, Standings
from geval_py.errors import UsageError
from geval_py.tables.numbers import counted, significant
from geval_py.tables.table import Table, named_columns
from geval_py.text import nearest, visible, words

if TYPE_CHECKING:
    from geval_py.board.database.store import Board


INTERNAL = ("output_id", "evaluation_id")  # fields of an entry that only the database knows
FIGURES = words("place shared first last submitter code variant score low high")
TOLD = words("groups held baseline arrived tags affiliation description links remark")
BY = tuple(order.GROUPINGS.values())


def standings(
    board: Board, test: str | None = None, *, phase: str | None = None, by: str | None = None, now: datetime
) -> Standings:
    """Return the leaderboard of a test (default: the first) in a phase (default: the present one).

    After the last deadline the default is the last phase until something arrives later; a note says so.

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
) -> Standings:
    """Return the leaderboard as a transaction sees it; its scores must be disclosed already."""

    def has_entries(name: str, phase: str) -> bool:
        return bool(order.entries(connection, settings, name, phase, order.SUBMISSION))

    open_phase, notes = settings.phase_of(now), []
    in_phase = shown_phase(settings, open_phase, test, has_entries) if phase is None else phase
    if phase is None and open_phase == AFTER != in_phase:
        notes.append(f"there are no entries in {AFTER} yet; this is the table of the last phase, {visible(in_phase)}")
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
    entries: list[Entry] = []
    for row in rows:
        values = dict(row)
        values["others"] = {name: values.pop(f"other{number}") for number, name in enumerate(names[1:])}
        values["params"] = {**values["params"], **values.pop("variant_params")}
        if not digits.score:
            values |= dict.fromkeys(words("place score low high"))
            values |= {"others": dict.fromkeys(names[1:]), "shared": False, "held": False}
        entries.append(Entry(**values))
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
            select(Evaluations.lines).where(Evaluations.id == entries[0].evaluation_id)
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


def shown_phase(
    settings: BoardSettings, phase: str, test: str | None, has_entries: Callable[[str, str], bool]
) -> str:
    """Return the phase that is shown by default in a present ``phase``: the last one until then that ranks the test.

    After the last deadline it is the phase before that until something arrives later: ``has_entries`` tells whether
    a test has entries in a phase. Without a test, that of any test counts.
    """
    until = settings.phase_names[: settings.phase_names.index(phase) + 1]
    tests = {name: [one.name for one in settings.in_phase(name).tests if test in (None, one.name)] for name in until}
    *earlier, last = [name for name in until if tests[name]] or until
    if last == AFTER and earlier:
        before, later = (any(has_entries(one, name) for one in tests[name]) for name in (earlier[-1], last))
        return earlier[-1] if before and not later else last
    return last


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
    scores = [(entries[number].score, entries[number].evaluation_id) for number in compared]
    ids = {evaluation for _, evaluation in scores}
    if len(compared) < 2:
        return
    positions = place_ranges.positions(scores, order.p_values(connection, settings, ids), of=len(ranked))
    for number, at in zip(compared, positions, strict=True):
        entries[number] = replace(entries[number], first=at.first, last=at.last, groups=at.groups)
    if len(ranked) > len(compared):
        yield f"only the first {len(compared)} of {len(ranked)} entries are compared with each other"


# Tables for people and for programs


def standings_records(standings: Standings) -> Table:
    """Return the table for programs, a row per entry: groups are numbers from 0, joined by spaces, tags by commas."""
    params = {f"param {key}": key for key in sorted({key for entry in standings.entries for key in entry.params})}
    rows = []
    for entry in standings.entries:
        cells = {name: getattr(entry, name) for name in (*FIGURES, *TOLD)} | {"arrived": moment_text(entry.arrived)}
        cells |= {"groups": " ".join(map(str, entry.groups)), "tags": ",".join(entry.tags)}
        cells["links"] = " ".join(url for _, url in entry.links)
        own = (entry.params.get(key) for key in params.values())
        others = (entry.others.get(metric) for metric in standings.others)
        rows.append([*(cells[one] for one in FIGURES), *others, *(cells[one] for one in TOLD), *own])
    return Table(named_columns((*FIGURES, *standings.others, *TOLD, *params)), rows)


def standings_document(standings: Standings) -> dict[str, Any]:
    """Return a leaderboard as a JSON document; values may be infinite."""
    head = (one.name for one in fields(Standings) if one.name not in ("others", "entries"))
    document = {name: getattr(standings, name) for name in head}
    shown = [one.name for one in fields(Entry) if one.name not in INTERNAL]
    document["entries"] = [
        {name: getattr(entry, name) for name in shown} | {"arrived": moment_text(entry.arrived)}
        for entry in standings.entries
    ]
    return document


def page_columns(standings: Standings) -> list[tuple[str, str, str]]:
    """Return the columns that a page shows beside place, submitter and score; columns.html writes their cells.

    Each is a class of the style sheet, how it is sorted, and its heading.
    """
    ladder = [("ladder", "text", "Ladder")] if any(entry.held for entry in standings.entries) else []
    columns = [*ladder, ("when", "text", "Arrived")]
    if not standings.digits:
        return columns
    others = [("other", "number", metric) for metric in standings.others]
    return [("range", "number", "Range"), *others, ("groups", "text", "Group"), *columns]


def place_text(entry: Entry) -> str:
    """Write a place: ``3=`` if others share it; ``baseline`` for a baseline."""
    if entry.baseline:
        return "baseline"
    if entry.place is None:
        return ""
    return f"{entry.place}{'=' if entry.shared else ''}"
