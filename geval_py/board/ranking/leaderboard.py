"""Leaderboards: the entries of a test and phase in order, with the places that they might as well have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from geval_py.board.ranking import order
from geval_py.board.ranking.comparisons import MOST_COMPARED, are_compared, p_values
from geval_py.board.ranking.disclosure import ensure_disclosed
from geval_py.board.ranking.place_ranges import positions
from geval_py.board.settings import AFTER, Settings, measure_of, names_of
from geval_py.board.submission import Entry, Standings
from geval_py.errors import UsageError
from geval_py.explaining.significance import samples_needed
from geval_py.text import nearest, visible

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from geval_py.board.database.store import Board


NOTHING_LATER = f"nothing stands in {AFTER} yet; this is the table of the last phase, {{}}"
BY = (order.SUBMITTER, order.SUBMISSION, order.TAG)


def standings(
    board: Board, test: str | None = None, *, phase: str | None = None, by: str | None = None, now: datetime
) -> Standings:
    """Return the leaderboard of a test (default: the first) in a phase (default: the present one).

    After the last deadline the default is the last phase until something arrives later; a note says so.

    ``by`` is the unit of which only the best entry is shown: a submitter, a submission, or a submitter and tag
    (default: as board.yaml says). Ranges of places and groups exist for the default alone.

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
    """Return the leaderboard as a transaction sees it; its scores must be disclosed already."""
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
    entries = tuple(_entry(row, names[1:], shown=digits > 0) for row in rows)
    notes: tuple[str, ...] = ()
    if digits and by == order.GROUPINGS[settings.entries]:
        entries, notes = _with_ranges(connection, settings, entries)
    return Standings(
        test=of.name,
        phase=in_phase,
        metric=names[0],
        others=names[1:],
        unit=measure.unit,
        direction=measure.direction,
        digits=digits,
        by=by,
        entries=entries,
        notes=first_notes + notes,
    )


def _rows(connection: Connection, settings: Settings, test: str, phase: str, by: str) -> Sequence[Row[Any]]:
    return connection.execute(order.entries(settings, test, phase, by, connection.dialect.name)).all()


def _known(what: str, name: str | None, names: Sequence[str], default: str) -> str:
    """Return a name after checking that it is known, or the default for None; raises UsageError."""
    if name is None:
        return default
    if name in names:
        return name
    meant = nearest(name, names)
    there = ", ".join(names) if any(names) else "none"
    advice = f"did you mean {meant}?" if meant else f"there is {there}" if len(names) == 1 else f"there are {there}"
    raise UsageError(message=visible(f"the board has no {what} `{name}'") + f"\n  {visible(advice)}")


def _entry(row: Row[Any], others: Sequence[str], *, shown: bool) -> Entry:
    """Return an entry without its range; without any figure unless figures may be shown."""
    told = {name: getattr(row, name) for name in order.TOLD}
    return Entry(
        **told | {"tags": tuple(row.tags), "params": {**row.params, **row.variant_params}},
        place=row.place if shown else None,
        shared=bool(row.shared and shown),
        first=None,
        last=None,
        groups=(),
        submitter=row.submitter,
        variant=row.variant,
        score=row.value if shown else None,
        low=row.low if shown else None,
        high=row.high if shown else None,
        others={name: getattr(row, f"other{number}") if shown else None for number, name in enumerate(others)},
        baseline=row.baseline,
        arrived=row.arrived,
        output_id=row.output_id,
        evaluation_id=row.evaluation_id,
    )


def _with_ranges(
    connection: Connection, settings: Settings, entries: tuple[Entry, ...]
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Add the range and the groups of each entry that has a place; return the entries, and notes for people."""
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


# Places that differ between two states of a board


EntryKey: TypeAlias = "tuple[str, str, str, str]"  # test, phase, submitter, and the code if there may be several
Places: TypeAlias = "Mapping[EntryKey, int | None]"


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
    """Return all places in all tables, computed from what is disclosed."""
    found: dict[EntryKey, int | None] = {}
    for test in settings.tests:
        for phase in settings.phase_names:
            table = standings_on(connection, settings, test.name, phase=phase, now=now)
            for entry in table.entries:
                code = "" if table.by == order.SUBMITTER and not entry.baseline else entry.code
                found[test.name, phase, entry.submitter, code] = entry.place
    return found


def changed_places(before: Places, after: Places) -> Iterator[PlaceChange]:
    """Yield the places that differ, in the order of the tables after the change."""
    for key in dict.fromkeys((*after, *before)):
        old, new = before.get(key), after.get(key)
        if old != new:
            test, phase, submitter, entry = key
            yield PlaceChange(test=test, phase=phase, submitter=submitter, entry=entry, before=old, after=new)
