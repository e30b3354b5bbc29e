"""Verification: rebuild a published site from an export of its board, and find what differs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from tempfile import TemporaryDirectory

from geval_py.board.database.store import DATABASE_VARIABLE, Board
from geval_py.board.exports import PLACE_BEGINNING, import_board
from geval_py.board.settings import AFTER, Settings
from geval_py.board.site.files import mark_of
from geval_py.board.site.pages import pages
from geval_py.board.site.view import loaded
from geval_py.errors import UsageError
from geval_py.text import named, visible

CHANGED, MISSING, EXTRA = "differs", "is missing", "is not of this board"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file that differs from the rebuilt one; ``line`` is the first line that differs, from 1."""

    path: str
    kind: str
    line: int = 0
    published: str = ""
    rebuilt: str = ""

    def __str__(self) -> str:
        where = f", from line {self.line} on" if self.line else ""
        return visible(f"{self.path} {self.kind}{where}")


def verify(site: str, file: str) -> list[Difference]:
    """Rebuild a published site from an export of its board, in a temporary folder, and return what differs.

    Raises UsageError for a folder that holds no site, or a site of a phase that the board does not have, and the
    errors of :func:`import_board`.
    """
    _mark_of(site)
    with TemporaryDirectory(prefix=PLACE_BEGINNING) as place, _no_other_database():
        return list(differences(import_board(file, os.path.join(place, "board")), site))


@contextmanager
def _no_other_database() -> Iterator[None]:
    """Hide the environment's database: it is the board's own, and must not be used for the copy."""
    named = os.environ.pop(DATABASE_VARIABLE, None)
    try:
        yield
    finally:
        if named is not None:
            os.environ[DATABASE_VARIABLE] = named


def differences(board: Board, site: str) -> Iterator[Difference]:
    """Compare a published site, file by file, with the site of its board in the same phase.

    Raises UsageError for a folder that holds no site, or a site of a phase that the board does not have; StoreError.
    """
    mark = _mark_of(site)
    now = moment_in(board.settings, str(mark.get("phase")))
    built: set[str] = set()
    with loaded(board, now=now, organiser=mark.get("organiser") is True) as view:
        for path, text in pages(view):
            built.add(path)
            found = _difference(path, os.path.join(site, *path.split("/")), text)
            if found is not None:
                yield found
    yield from (Difference(path=path, kind=EXTRA) for path in sorted(_files(site) - built))


def _mark_of(site: str) -> dict[str, object]:
    mark = mark_of(site)
    if mark is None:
        raise UsageError(message=f"{named(site)} holds no site that geval board has made")
    return mark


def moment_in(settings: Settings, phase: str) -> datetime:
    """Return a moment in a phase; raises UsageError for an unknown phase."""
    if phase not in settings.phase_names:
        message = f"the site shows the phase `{visible(phase)}`, which the board does not have"
        raise UsageError(message=message)
    if phase == AFTER and settings.phases:
        return settings.phases[-1].until + timedelta(seconds=1)
    return next((one.until for one in settings.phases if one.name == phase), datetime.now(UTC))


def _difference(path: str, place: str, text: str) -> Difference | None:
    try:
        with open(place, encoding="utf-8", errors="surrogateescape", newline="") as file:
            published = file.read()
    except OSError:
        return Difference(path=path, kind=MISSING)
    if published == text:
        return None
    pairs = enumerate(zip_longest(published.split("\n"), text.split("\n"), fillvalue=""), start=1)
    line, (one, other) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
    return Difference(path=path, kind=CHANGED, line=line, published=one, rebuilt=other)


def _files(site: str) -> set[str]:
    found = ((folder, name) for folder, _, names in os.walk(site) for name in names)
    return {os.path.relpath(os.path.join(*place), site).replace(os.sep, "/") for place in found}
