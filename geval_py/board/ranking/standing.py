"""Whose place differs between two states of a board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from geval_py.board.ranking.order import SUBMITTER
from geval_py.board.ranking.standings import standings_on

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from geval_py.board.settings import Settings
    from geval_py.board.values import Entry

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
