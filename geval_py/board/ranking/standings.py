"""Leaderboards: what of each test and phase may be shown, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from geval_py.board.ranking import order
from geval_py.board.ranking.comparing import MOST_COMPARED, are_compared, p_values
from geval_py.board.ranking.disclosing import ensure_disclosed
from geval_py.board.ranking.places import positions
from geval_py.board.settings import AFTER
from geval_py.board.units import measure_of, names_of
from geval_py.board.values import Entry, Standings
from geval_py.errors import UsageError
from geval_py.explaining.statistics.groups import samples_needed
from geval_py.text import nearest, visible

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from geval_py.board.settings import Settings
    from geval_py.board.storing.store import Board

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
