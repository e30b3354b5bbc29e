"""Leaderboards as tables for people, tables for programs, and JSON; what they show is disclosed already."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from geval_py.board.figures import figure
from geval_py.showing.tables import Column, Table

if TYPE_CHECKING:
    from geval_py.board.values import Entry, Standings
    from geval_py.showing.terminals import Alignment

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
