"""Leaderboards: what of each test and phase may be shown, in order."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from geval_py.board.ranking import order
from geval_py.board.ranking.comparisons import MOST_COMPARED, are_compared, p_values
from geval_py.board.ranking.disclosure import ensure_disclosed, figure
from geval_py.board.ranking.order import SUBMITTER
from geval_py.board.ranking.places import positions
from geval_py.board.settings import AFTER, measure_of, names_of
from geval_py.board.submission import Entry, Standings
from geval_py.errors import UsageError
from geval_py.explaining.significance import samples_needed
from geval_py.tables.table import Column, Table
from geval_py.text import nearest, visible

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from geval_py.board.database.store import Board
    from geval_py.board.settings import Settings
    from geval_py.tables.terminals import Alignment


NOTHING_LATER = f"nothing stands in {AFTER} yet; this is the table of the last phase, {{}}"
BY = (order.SUBMITTER, order.SUBMISSION, order.TAG)


def standings(
    board: Board, test: str | None = None, *, phase: str | None = None, by: str | None = None, now: datetime
) -> Standings:
    """Give the leaderboard of a test, by default the first one, in a phase, by default that of the moment.

    After the last deadline that is the last phase, as long as nothing came later; a note says so.

    ``by`` tells of whom one entry is shown, the best: a submitter, a submission, or a submitter and tag; by default
    what board.yaml says. Ranges of places and groups are of that ranking alone.

    Raises UsageError for an unknown test, phase or grouping, StoreError.
    """
    ensure_disclosed(board, now)
    with board.reading() as connection:
        return standings_on(connection, board.settings, test, phase=phase, by=by, now=now)


def standings_on(
    connection: Connection,
    settings: Settings,
    test: str | None = None,
    *,
    phase: str | None = None,
    by: str | None = None,
    now: datetime,
) -> Standings:
    """Give the leaderboard as a transaction sees it; what is scored in it was disclosed."""
    tests = {known.name: known for known in settings.tests}
    of = tests[_known("test", test, tuple(tests), settings.tests[0].name)]
    in_phase = _known("phase", phase, settings.phase_names, settings.phase_of(now))
    by = _known("grouping", by, BY, order.GROUPINGS[settings.entries])
    digits = settings.digits_of(of, now)
    rows = _rows(connection, settings, of.name, in_phase, by)
    first_notes: tuple[str, ...] = ()
    if phase is None and in_phase == AFTER and not rows:
        last = settings.phases[-1].name
        rows = _rows(connection, settings, of.name, last, by)
        if rows:
            in_phase, first_notes = last, (NOTHING_LATER.format(visible(last)),)
    names = names_of(settings.metrics)
    measure = measure_of(settings.metric)
    shown = tuple(_entry(row, names[1:], digits) for row in rows)
    notes: tuple[str, ...] = ()
    if digits and by == order.GROUPINGS[settings.entries]:
        shown, notes = _with_ranges(connection, settings, shown)
    return Standings(
        test=of.name,
        phase=in_phase,
        metric=names[0],
        others=names[1:],
        unit=measure.unit,
        direction=measure.direction,
        digits=digits,
        by=by,
        entries=shown,
        notes=first_notes + notes,
    )


def _rows(connection: Connection, settings: Settings, test: str, phase: str, by: str) -> Sequence[Row[Any]]:
    return connection.execute(order.entries(settings, test, phase, by, connection.dialect.name)).all()


def _known(what: str, name: str | None, names: Sequence[str], otherwise: str) -> str:
    """Give the name that is asked for, or another where none is; raises UsageError for an unknown one."""
    if name is None:
        return otherwise
    if name in names:
        return name
    meant = nearest(name, names)
    there = ", ".join(names) if any(names) else "none"
    advice = f"did you mean {meant}?" if meant else f"there is {there}" if len(names) == 1 else f"there are {there}"
    raise UsageError(message=visible(f"the board has no {what} `{name}'") + f"\n  {visible(advice)}")


def _entry(row: Row[Any], others: Sequence[str], digits: int) -> Entry:
    """Make an entry without its range; where no digit may be shown, without any figure."""
    values = [getattr(row, f"other{number}") for number in range(len(others))]
    return Entry(
        place=row.place if digits else None,
        shared=bool(row.shared and digits),
        first=None,
        last=None,
        groups=(),
        submitter=row.submitter,
        code=row.code,
        variant=row.variant,
        score=row.value if digits else None,
        low=row.low if digits else None,
        high=row.high if digits else None,
        others=dict(zip(others, values if digits else [None] * len(values), strict=True)),
        baseline=row.baseline,
        arrived=row.arrived,
        description=row.description,
        tags=tuple(row.tags),
        params={**row.params, **row.variant_params},
        remark=row.remark,
        output_id=row.output_id,
        evaluation_id=row.evaluation_id,
    )


def _with_ranges(
    connection: Connection, settings: Settings, entries: tuple[Entry, ...]
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Add to each entry that has a place its range and groups; gives notes too, on what could not be told."""
    ranked = [(number, entry) for number, entry in enumerate(entries) if entry.place is not None]
    compared = ranked[:MOST_COMPARED]
    if len(compared) < 2:
        return entries, ()
    ids = {entry.evaluation_id for _, entry in compared}
    if not are_compared(connection, settings, ids):
        return entries, ("the entries were not compared yet: no range of places is shown",)
    scores = [(entry.score, entry.evaluation_id) for _, entry in compared]
    found = positions(scores, p_values(connection, settings, ids), of=len(ranked))
    shown = list(entries)
    for (number, entry), at in zip(compared, found, strict=True):
        shown[number] = replace(entry, first=at.first, last=at.last, groups=at.groups)
    return tuple(shown), tuple(_notes(len(ranked), settings.samples))


def _notes(ranked: int, samples: int) -> Iterator[str]:
    compared = min(ranked, MOST_COMPARED)
    needed = samples_needed(compared * (compared - 1) // 2)
    if ranked > compared:
        yield f"only the first {compared} of {ranked} entries are compared with each other"
    if samples < needed:
        yield (
            f"{samples} samples are too few for all of {compared} entries to be told apart: "
            f"`samples: {needed}` in board.yaml would do"
        )


# Whose place differs between two states of a board.


Whose: TypeAlias = (
    "tuple[str, str, str, str]"  # the test, the phase, the submitter, and the entry if there are several
)
Places: TypeAlias = "Mapping[Whose, int | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceChange:
    """A place in the table of a test and phase before and after; None for an entry that has none there."""

    test: str
    phase: str
    submitter: str
    entry: str
    before: int | None
    after: int | None


def places(connection: Connection, settings: Settings, now: datetime) -> Places:
    """Give all places in all tables, as what is disclosed makes them."""
    found: dict[Whose, int | None] = {}
    for test in settings.tests:
        for phase in settings.phase_names:
            standings = standings_on(connection, settings, test.name, phase=phase, now=now)
            for entry in standings.entries:
                found[test.name, phase, entry.submitter, _name(entry, standings.by)] = entry.place
    return found


def _name(entry: Entry, by: str) -> str:
    return "" if by == SUBMITTER and not entry.baseline else entry.code


def changed_places(before: Places, after: Places) -> Iterator[PlaceChange]:
    """Give what differs, in the order of the tables after the change."""
    for whose in dict.fromkeys((*after, *before)):
        if before.get(whose) != after.get(whose):
            test, phase, submitter, entry = whose
            yield PlaceChange(
                test=test,
                phase=phase,
                submitter=submitter,
                entry=entry,
                before=before.get(whose),
                after=after.get(whose),
            )


# Leaderboards as tables for people, tables for programs, and JSON; what they show is disclosed already.


_LETTERS = string.ascii_letters


def standings_table(standings: Standings, ties: str = "shared") -> Table:
    """Make the table for people: a row an entry; columns that would be empty are left out.

    With ``ties`` shared, a place that several have is written ``3=``.
    """
    columns = list(_columns(standings, ties))
    rows = [[column.cell(entry) for column in columns] for entry in standings.entries]
    kept = [n for n, column in enumerate(columns) if column.always or any(row[n] for row in rows)]
    return Table(
        [Column(name=columns[n].name, alignment=columns[n].alignment) for n in kept],
        [[row[n] for n in kept] for row in rows],
    )


@dataclass(frozen=True, slots=True)
class _Column:
    """A column for people: its name, its alignment, its cells, whether it is there even if all of them are empty."""

    name: str
    alignment: Alignment
    cell: Callable[[Entry], str]
    always: bool = False


def _columns(standings: Standings, ties: str) -> Iterator[_Column]:
    digits = standings.digits
    yield _Column("place", "right", lambda entry: place_text(entry, ties), digits > 0)
    yield _Column("range", "centre", range_text)
    yield _Column("submitter", "left", lambda entry: entry.submitter, True)
    yield _Column("variant", "left", lambda entry: entry.variant)
    yield _Column(standings.metric, "right", lambda entry: figure(entry.score, digits))
    yield _Column("95 % interval", "centre", lambda entry: interval_text(entry, digits))
    for other in standings.others:
        yield _Column(other, "right", partial(_other_text, other, digits))
    yield _Column("group", "left", lambda entry: "".join(map(group_label, entry.groups)))
    yield _Column("arrived", "left", lambda entry: moment_text(entry.arrived), True)
    yield _Column("tags", "left", lambda entry: ", ".join(entry.tags))
    yield _Column("description", "left", lambda entry: entry.description)
    yield _Column("remark", "left", lambda entry: entry.remark)


def _other_text(metric: str, digits: int, entry: Entry) -> str:
    return figure(entry.others[metric], digits)


def place_text(entry: Entry, ties: str = "shared") -> str:
    """Write a place: ``3=`` where others have it too, unless ties are plain; a baseline is called so."""
    if entry.baseline:
        return "baseline"
    if entry.place is None:
        return ""
    return f"{entry.place}{'=' if entry.shared and ties == 'shared' else ''}"


def range_text(entry: Entry) -> str:
    """Write the range of places; "" where none is known."""
    if entry.first is None:
        return ""
    return f"{entry.first}" if entry.first == entry.last else f"{entry.first}–{entry.last}"


def interval_text(entry: Entry, digits: int) -> str:
    """Write the ends of the interval; "" where nothing is shown."""
    return "" if entry.low is None else f"[{figure(entry.low, digits)}, {figure(entry.high, digits)}]"


def group_label(number: int) -> str:
    """Write the letter of a group, from 0; its number where there are no more.

    >>> group_label(0), group_label(52)
    ('a', '(53)')
    """
    return _LETTERS[number] if number < len(_LETTERS) else f"({number + 1})"


def moment_text(moment: datetime) -> str:
    """Write a moment, which is in UTC, to the second: 2027-01-31T22:59:00Z."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


_OWN = ("place", "shared", "first", "last", "submitter", "code", "variant", "score", "low", "high")


def standings_records(standings: Standings) -> Table:
    """Make the table for programs: a row an entry; groups are numbers from 0, parted by spaces, tags by commas."""
    params = sorted({key for entry in standings.entries for key in entry.params})
    head = [*_OWN, *standings.others, "groups", "baseline", "arrived", "tags", "description", "remark"]
    rows = [_record(entry, standings.others, params) for entry in standings.entries]
    return Table([Column(name=name) for name in (*head, *(f"param {key}" for key in params))], rows)


def _record(entry: Entry, others: tuple[str, ...], params: list[str]) -> list[object]:
    return [
        *(getattr(entry, name) for name in _OWN),
        *(entry.others[name] for name in others),
        " ".join(map(str, entry.groups)),
        entry.baseline,
        moment_text(entry.arrived),
        ",".join(entry.tags),
        entry.description,
        entry.remark,
        *(entry.params.get(key) for key in params),
    ]


_SHOWN = (*_OWN, "groups", "others", "baseline", "description", "tags", "params", "remark")


def standings_document(standings: Standings) -> dict[str, Any]:
    """Give what JSON shows; values may be inf."""
    head = ("test", "phase", "metric", "unit", "direction", "digits", "by", "notes")
    return {name: getattr(standings, name) for name in head} | {
        "entries": [
            {**{name: getattr(entry, name) for name in _SHOWN}, "arrived": moment_text(entry.arrived)}
            for entry in standings.entries
        ]
    }


def legend(standings: Standings) -> Iterator[str]:
    """Say what the table shows, in sentences."""
    phase = f", {standings.phase}" if standings.phase else ""
    of = {"submitter": "a submitter", "submission": "a submission", "tag": "a submitter and tag"}[standings.by]
    yield (
        f"{standings.metric} ({standings.unit}, {standings.direction} is better) of {standings.test}{phase}; "
        f"the best of {of}."
    )
    if not standings.digits:
        yield "No score is shown before the last deadline."
    elif any(entry.first is not None for entry in standings.entries):
        yield (
            "range: the places that cannot be told apart from this one, group: so do entries that share a letter "
            "(approximate randomisation of all pairs, Holm's correction, 5 %)."
        )
    yield from (f"Note: {note}." for note in standings.notes)
