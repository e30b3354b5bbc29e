"""The columns of a leaderboard, in one table: who reads each of them, and how it is written.

People read text, Markdown, LaTeX and the site's pages; programs read CSV and JSON. To add a column, add a field to
:class:`geval_py.board.submission.Entry` and an entry to :func:`columns_of` or, if it has no figures, to
``TOLD_COLUMNS``. A field named like a column of the table ``submissions`` is filled from there.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from geval_py.board.ranking.disclosure import figure
from geval_py.board.submission import Entry, Standings
from geval_py.tables.table import Column, Table

if TYPE_CHECKING:
    from geval_py.tables.terminals import Alignment


LETTERS = string.ascii_letters
INTERNAL = ("output_id", "evaluation_id")  # fields of an entry that only the database knows


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryColumn:
    """A column of a leaderboard.

    ``name`` is its heading for people, "" for what only programs read; ``text`` writes its cell. Without ``kept``, it
    is left out where all of its cells are empty. ``legend`` explains it below the table.

    ``record`` has the names and values of its columns in CSV.

    ``heading`` is its heading on pages, "" if pages show it elsewhere (with the submitter, with the score) or not at
    all; there, ``key`` gives the value that rows are sorted by, and ``style`` the class in the style sheet.
    """

    record: Mapping[str, Callable[[Entry], object]]
    name: str = ""
    text: Callable[[Entry], str] = str
    alignment: Alignment = "left"
    kept: bool = False
    legend: str = ""
    heading: str = ""
    key: Callable[[Entry], object] = str
    style: str = ""
    sorted_as: str = "text"


def columns_of(standings: Standings, ties: str = "shared") -> Iterator[EntryColumn]:
    """Yield the columns of a leaderboard. With ``ties`` shared, a place that several entries have is ``3=``."""
    digits = standings.digits
    yield EntryColumn(
        name="place",
        text=lambda entry: place_text(entry, ties),
        alignment="right",
        kept=digits > 0,
        record=_values("place", "shared"),
    )
    yield EntryColumn(
        name="range",
        text=range_text,
        alignment="centre",
        legend="range: the places that cannot be told apart from this one",
        record=_values("first", "last"),
        heading="Range",
        key=attrgetter("first"),
        style="range",
        sorted_as="number",
    )
    yield _text_column("submitter", "code", kept=True)
    yield _text_column("variant")
    yield EntryColumn(
        name=standings.metric,
        text=lambda entry: figure(entry.score, digits),
        alignment="right",
        record=_values("score"),
    )
    yield EntryColumn(
        name="95 % interval",
        text=lambda entry: interval_text(entry, digits),
        alignment="centre",
        record=_values("low", "high"),
    )
    for metric in standings.others:
        yield _other_metric(metric, digits)
    yield EntryColumn(
        name="group",
        text=groups_text,
        legend="group: entries that share a letter cannot be told apart "
        "(approximate randomisation of all pairs, Holm's correction, 5 %)",
        record={"groups": lambda entry: " ".join(map(str, entry.groups))},
        heading="Clusters",
        key=groups_text,
        style="groups",
    )
    yield from TOLD_COLUMNS
    params = sorted({key for entry in standings.entries for key in entry.params})
    yield EntryColumn(record={f"param {key}": _param(key) for key in params})


def _values(*names: str) -> dict[str, Callable[[Entry], object]]:
    return {name: attrgetter(name) for name in names}


def _param(key: str) -> Callable[[Entry], object]:
    return lambda entry: entry.params.get(key)


def _text_column(name: str, *others: str, kept: bool = False) -> EntryColumn:
    return EntryColumn(name=name, text=attrgetter(name), kept=kept, record=_values(name, *others))


def _other_metric(metric: str, digits: int) -> EntryColumn:
    def score(entry: Entry) -> float | None:
        return entry.others.get(metric)

    return EntryColumn(
        name=metric,
        text=lambda entry: figure(score(entry), digits),
        alignment="right",
        record={metric: score},
        heading=metric,
        key=score,
        style="other",
        sorted_as="number",
    )


TOLD_COLUMNS = (
    EntryColumn(record=_values("baseline")),
    EntryColumn(
        name="arrived",
        text=lambda entry: moment_text(entry.arrived),
        kept=True,
        record={"arrived": lambda entry: moment_text(entry.arrived)},
        heading="Arrived",
        key=attrgetter("arrived"),
        style="when",
    ),
    EntryColumn(
        name="tags", text=lambda entry: ", ".join(entry.tags), record={"tags": lambda entry: ",".join(entry.tags)}
    ),
    _text_column("description"),
    _text_column("remark"),
)  # without figures


def place_text(entry: Entry, ties: str = "shared") -> str:
    """Write a place: ``3=`` if others share it, unless ties are plain; ``baseline`` for a baseline."""
    if entry.baseline:
        return "baseline"
    if entry.place is None:
        return ""
    return f"{entry.place}{'=' if entry.shared and ties == 'shared' else ''}"


def range_text(entry: Entry) -> str:
    """Write the range of places; "" if it is unknown."""
    if entry.first is None:
        return ""
    return f"{entry.first}" if entry.first == entry.last else f"{entry.first}–{entry.last}"


def interval_text(entry: Entry, digits: int) -> str:
    """Write the ends of the interval; "" if there is none."""
    return "" if entry.low is None else f"[{figure(entry.low, digits)}, {figure(entry.high, digits)}]"


def groups_text(entry: Entry) -> str:
    """Write the groups as compact letters: two entries that share a letter cannot be told apart."""
    return "".join(map(group_label, entry.groups))


def group_label(number: int) -> str:
    """Write the letter of a group, counted from 0; its number after the last letter.

    >>> group_label(0), group_label(52)
    ('a', '(53)')
    """
    return LETTERS[number] if number < len(LETTERS) else f"({number + 1})"


def moment_text(moment: datetime) -> str:
    """Write a moment in UTC, to the second: 2027-01-31T22:59:00Z."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


# Whole leaderboards, for people and for programs


def standings_table(standings: Standings, ties: str = "shared") -> Table:
    """Return the table for people, a row per entry, without empty columns."""
    shown = _shown_columns(standings, ties)
    return Table(
        [Column(name=column.name, alignment=column.alignment) for column in shown],
        [[column.text(entry) for column in shown] for entry in standings.entries],
    )


def _shown_columns(standings: Standings, ties: str = "shared") -> list[EntryColumn]:
    named = (column for column in columns_of(standings, ties) if column.name)
    return [column for column in named if column.kept or any(map(column.text, standings.entries))]


def standings_records(standings: Standings) -> Table:
    """Return the table for programs, a row per entry: groups are numbers from 0, joined by spaces, tags by commas."""
    record = {name: value for column in columns_of(standings) for name, value in column.record.items()}
    rows = [[value(entry) for value in record.values()] for entry in standings.entries]
    return Table([Column(name=name) for name in record], rows)


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


def page_columns(standings: Standings) -> list[EntryColumn]:
    """Return the columns that a page shows beside place, submitter and score."""
    return [column for column in columns_of(standings) if column.heading and (standings.digits or column.kept)]


def legend(standings: Standings) -> Iterator[str]:
    """Explain a leaderboard in sentences."""
    phase = f", {standings.phase}" if standings.phase else ""
    of = {"submitter": "a submitter", "submission": "a submission", "tag": "a submitter and tag"}[standings.by]
    yield (
        f"{standings.metric} ({standings.unit}, {standings.direction} is better) of {standings.test}{phase}; "
        f"the best of {of}."
    )
    if not standings.digits:
        yield "No score is shown before the last deadline."
    legends = [column.legend for column in _shown_columns(standings) if column.legend]
    if legends:
        yield f"{'; '.join(legends)}."
    yield from (f"Note: {note}." for note in standings.notes)
