"""A board that is open for long: its settings follow board.yaml, and its pages are made when they are asked for."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from mimetypes import guess_type
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, select
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from geval_py.board.database import schema
from geval_py.board.database.store import SETTINGS_FILE, Board, StoreError
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.site.files import Frame, content_of
from geval_py.board.site.pages import Pages, pages
from geval_py.board.site.view import view_on
from geval_py.errors import ConfigError, GevalError, MissingFileError, UsageError
from geval_py.reading import challenge

RETRY_SECONDS = 1  # until a board that could not be opened is tried again
LOOK_SECONDS = 0.1  # between two looks for changes, as long as many ask
REST = 3  # times as long as a reading took, no other one is begun in the same phase
MAX_CACHED = 256  # pages, few of which have more than 100 kB
LOG = logging.getLogger("geval")


class Fault(NamedTuple):
    """What is wrong with a part of a board: the error, and a sentence for anybody."""

    error: str
    sentence: str


class Site(NamedTuple):
    """The pages of one state of a board, of which some were made, and are ``cached``."""

    state: SiteState
    pages: Pages
    cached: dict[str, Response]

    def answer(self, path: str) -> Response | None:
        """Make the answer with a page; None if there is no such page."""
        if path not in self.pages:
            return None
        content = content_of(self.pages[path]())
        headers = {"Cache-Control": "no-cache", "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
        if len(self.cached) >= MAX_CACHED:
            self.cached.clear()
        return self.cached.setdefault(
            path, Response(content, headers=headers, media_type=guess_type(path)[0] or "text/plain")
        )


class LiveBoard:
    """A board whose settings follow its board.yaml; while that has an error, the settings before hold.

    ``faults`` are those that last, by the name of the part.

    All pages are of one state of the board. When something has changed, it is read again for one of those who ask,
    a moment later; the others see the earlier state meanwhile, but never one of an earlier phase.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.faults: dict[str, Fault] = {}
        self._path = os.path.join(folder, SETTINGS_FILE)
        self._stamp: object = None  # of the settings that hold
        self._board: Board | None = None
        self._retry_at = self._rest_until = 0.0
        self._state: SiteState = ()
        self._look_at = 0.0  # when the state is looked at again
        self._site = Site((), {}, {})
        self._reading = asyncio.Lock()

    def board(self) -> Board:
        """Return the board with the settings of now; raises GevalError if it could not be opened yet."""
        stamp = _stamp(self._path)
        is_new = stamp != self._stamp or "settings" in self.faults
        if is_new and time.monotonic() >= self._retry_at:
            try:
                with self.watched("settings"):
                    self._board, self._stamp = Board.open(self.folder), stamp
            except GevalError:
                self._retry_at = time.monotonic() + RETRY_SECONDS
        if not self._board:
            raise UsageError(self.trouble)
        return self._board

    @property
    def trouble(self) -> str:
        """What is wrong with the board, for anybody; "" if nothing is."""
        return " ".join(fault.sentence for fault in self.faults.values())

    @contextmanager
    def watched(self, part: str) -> Iterator[None]:
        """Log the first error of a block, and that the block succeeds again."""
        try:
            yield
        except GevalError as error:
            sentence = next(sentence for kind, sentence in SENTENCES.items() if isinstance(error, kind))
            if part not in self.faults:
                LOG.error("geval: %s: %s", self.folder, error)
            self.faults[part] = Fault(str(error), sentence)
            raise
        if self.faults.pop(part, None):
            LOG.warning("geval: note: %s: its %s can be used again", self.folder, part)

    async def state(self, now: datetime) -> SiteState:
        """Return the state of now or, in the same phase, that of a moment ago; raises GevalError."""
        is_same = self._board and self._state[:1] == (self._board.settings.phase_of(now),)
        if not is_same or time.monotonic() >= self._look_at:
            self._state = await run_in_threadpool(self.look, now)
            self._look_at = time.monotonic() + LOOK_SECONDS
        return self._state

    def look(self, now: datetime) -> SiteState:
        """Return the state of now; raises GevalError."""
        board = self.board()
        with self.watched("database"), board.reading() as connection:
            return _state_on(connection, board, now)

    async def answer(self, path: str, clock: Callable[[], datetime], frame: Callable[..., Frame]) -> Response | None:
        """Return the answer with a page; None if there is no such page. Raises GevalError."""
        state = await self.state(clock())
        must_wait = state[:1] != self._site.state[:1]
        is_resting = self._reading.locked() or time.monotonic() < self._rest_until
        if must_wait or (state != self._site.state and not is_resting):
            async with self._reading:
                if state != self._site.state:
                    await run_in_threadpool(self._read, clock(), frame)
        return self._site.cached.get(path) or await run_in_threadpool(self._site.answer, path)

    def _read(self, now: datetime, frame: Callable[..., Frame]) -> None:
        """Read what the pages show, and forget the pages made before."""
        began, board = time.monotonic(), self.board()
        with self.watched("database"), disclosed(board, now) as connection:
            state = _state_on(connection, board, now)
            view = view_on(connection, board.settings, board.reading, now=now)
        self._site = Site(state, pages(view, frame(settings=view.settings, phase=view.phase, view=view)), {})
        self._rest_until = time.monotonic() + REST * (time.monotonic() - began)


SENTENCES = {
    MissingFileError: "The board is not where it was.",
    ConfigError: "The settings of the board have an error.",
    StoreError: "The database of the board cannot be used.",
    GevalError: "The board cannot be opened.",
}
SiteState: TypeAlias = tuple[Any, ...]  # on which pages depend: first the phase; () before the first reading


def _stamp(path: str) -> object:
    """Return when a file was changed, and its size."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size


def _state_on(connection: Connection, board: Board, now: datetime) -> SiteState:
    changed = connection.scalar(select(schema.board.c.changed))
    readme = os.path.join(board.settings.challenge, challenge.README_FILE)
    return board.settings.phase_of(now), changed, board, _stamp(readme)
