"""How far entries moved since the last published site.

The database keeps, as a fact, the places on the last site that was made for the public, and those on the last one
before it with other places. So a site that is made twice shows the same, wherever it is written, and a site can be
rebuilt from an export, whether that was made before the site or after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from geval_py.board.database.schema import facts
from geval_py.board.database.store import Board, is_read_only, remember
from geval_py.board.ranking.leaderboard import EntryKey, entry_key
from geval_py.board.submission import Standings

PUBLISHED = "published"  # facts: the places on the last two published sites that differ
NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The places on a published site, whose last submission arrived (or was withdrawn) at the moment ``until``."""

    until: datetime | None
    places: Mapping[EntryKey, int]

    def changes(self, table: Standings) -> dict[int, int | str]:
        """Return by how many places each entry moved up since then, or that it is ``new``, by the ids of outputs.

        Empty for a table that had no places then.
        """
        if not any(key[:2] == (table.test, table.phase) for key in self.places):
            return {}
        before = {entry.output_id: self.places.get(entry_key(table, entry)) for entry in table.entries}
        return {
            entry.output_id: NEW if (place := before[entry.output_id]) is None else place - entry.place
            for entry in table.entries
            if entry.place is not None
        }


def published_of(tables: Iterable[Standings], updated: datetime | None) -> Published:
    """Return the places that are published with some tables."""
    places = {
        entry_key(table, entry): entry.place for table in tables for entry in table.entries if entry.place is not None
    }
    return Published(until=updated, places=places)


def last_published(connection: Connection, now: Published) -> Published | None:
    """Return the last published places that differ from those of now; None if there are none."""
    last, before = _stored(connection)
    return before if last is not None and last.places == now.places else last


def remember_published(board: Board, now: Published) -> None:
    """Store the places of a site that was made, unless the database cannot be written; raises StoreError."""
    with board.reading() as connection:
        last, _ = _stored(connection)
        if is_read_only(connection) or (last is not None and last.places == now.places):
            return
    value = json.dumps([None if one is None else _document(one) for one in (now, last)])
    with board.writing() as connection:
        remember(connection, PUBLISHED, value)


def _stored(connection: Connection) -> tuple[Published | None, Published | None]:
    value = connection.execute(select(facts.c.value).where(facts.c.name == PUBLISHED)).scalar()
    last, before = json.loads(value) if value else (None, None)
    return _published(last), _published(before)


def _document(one: Published) -> dict[str, Any]:
    return {
        "until": one.until and one.until.isoformat(),
        "places": [[*key, place] for key, place in one.places.items()],
    }


def _published(document: Mapping[str, Any] | None) -> Published | None:
    if document is None:
        return None
    places = {(test, phase, who, code): int(place) for test, phase, who, code, place in document["places"]}
    until = document["until"] and datetime.fromisoformat(document["until"])
    return Published(until=until, places=places)
