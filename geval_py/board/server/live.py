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
from functools import lru_cache, partial
from mimetypes import guess_type
from typing import NamedTuple, TypeAlias

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
from geval_py.tables.numbers import counted

RETRY_SECONDS = 1  # until a board that could not be opened is tried again
REST = 3  # times as long as a slow reading took, no other one is begun in the same phase
SLOW_SECONDS = 0.5
MAX_CACHED = 256  # pages, few of which have more than 100 kB
LOG = logging.getLogger("geval")


class Fault(NamedTuple):
    """What is wrong with a part of a board: the error, a sentence for anybody, and how often it came."""

    error: str
    sentence: str
    failures: int


class LiveBoard:
    """A board whose settings follow its board.yaml; while that has an error, the settings before hold.

    ``faults`` are those that last, by the name of the part.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.faults: dict[str, Fault] = {}
        self._path = os.path.join(folder, SETTINGS_FILE)
        self._stamp: Stamp | None = None
        self._board: Board | None = None
        self._retry_at = 0.0

    def board(self) -> Board:
        """Return the board with the settings of now; raises GevalError if it could not be opened yet."""
        stamp = _stamp(self._path)
        if stamp != self._stamp and time.monotonic() >= self._retry_at:
            try:
                with self.watched("settings"):
                    self._board, self._stamp = Board.open(self.folder), stamp
            except GevalError:
                self._retry_at = time.monotonic() + RETRY_SECONDS
        if self._board is None:
            raise UsageError(message=self.trouble)
        return self._board

    @contextmanager
    def reading(self) -> Iterator[tuple[Board, Connection]]:
        """Read one state of the board; raises GevalError."""
        board = self.board()
        with self.watched("database"), board.reading() as connection:
            yield board, connection

    @property
    def trouble(self) -> str:
        """What is wrong with the board, for anybody; "" if nothing is."""
        return " ".join(fault.sentence for fault in self.faults.values())

    @contextmanager
    def watched(self, part: str) -> Iterator[None]:
        """Log the first error of a block, and count those that follow until the block succeeds again."""
        try:
            yield
        except GevalError as error:
            sentence = next(sentence for kind, sentence in SENTENCES.items() if isinstance(error, kind))
            failures = self.faults[part].failures + 1 if part in self.faults else 1
            self.faults[part] = Fault(str(error), sentence, failures)
            if failures == 1:
                LOG.error("geval: %s: %s", self.folder, error)
            raise
        if fault := self.faults.pop(part, None):
            again = f"its {part} can be used again, after {counted(fault.failures, 'failure')}"
            LOG.warning("geval: note: %s: %s", self.folder, again)


SENTENCES = {
    MissingFileError: "The board is not where it was.",
    ConfigError: "The settings of the board have an error.",
    StoreError: "The database of the board cannot be used.",
    GevalError: "The board cannot be opened.",
}
Stamp: TypeAlias = tuple[int, int]  # when a file was changed, and its size


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


SiteState: TypeAlias = tuple[object, ...]  # on which pages depend: first the phase; () before the first reading


class LiveSite:
    """The pages of a live board, each of which is made when it is asked for.

    All are of one state of the board. When something has changed, it is read again for one of those who ask; the
    others see the earlier state meanwhile, but never one of an earlier phase.
    """

    def __init__(self, live: LiveBoard, clock: Callable[[], datetime], frame: Callable[..., Frame]) -> None:
        self._live, self._clock, self._frame = live, clock, frame
        self._site: tuple[SiteState, Callable[[str], Response | None]] = (), lambda _: None
        self._rest_until = 0.0
        self._reading = asyncio.Lock()

    async def answer(self, path: str) -> Response | None:
        """Return the answer with a page; None if there is no such page. Raises GevalError."""
        state = await run_in_threadpool(self._current)
        must_wait = state[:1] != self._site[0][:1]
        is_resting = self._reading.locked() or time.monotonic() < self._rest_until
        if must_wait or (state != self._site[0] and not is_resting):
            async with self._reading:
                if state != self._site[0]:
                    await run_in_threadpool(self._read)
        return await run_in_threadpool(self._site[1], path)

    def _current(self) -> SiteState:
        """Return the state of now."""
        with self._live.reading() as (board, connection):
            return self._state_on(connection, board)

    def _state_on(self, connection: Connection, board: Board) -> SiteState:
        changed = connection.execute(select(schema.board.c.changed)).scalar_one()
        readme = os.path.join(board.settings.challenge, challenge.README_FILE)
        return board.settings.phase_of(self._clock()), changed, board, _stamp(readme)

    def _read(self) -> None:
        """Read what the pages show, and forget those that were made before."""
        began, board = time.monotonic(), self._live.board()
        with self._live.watched("database"), disclosed(board, self._clock()) as connection:
            state = self._state_on(connection, board)
            view = view_on(connection, board.settings, board.reading, now=self._clock())
        made = pages(view, self._frame(view.settings, view.phase, view=view))
        answer = lru_cache(MAX_CACHED)(partial(_answer, made))
        self._site = state, lambda path: answer(path) if path in made else None
        seconds = time.monotonic() - began
        self._rest_until = time.monotonic() + REST * seconds if seconds > SLOW_SECONDS else 0.0


def _answer(made: Pages, path: str) -> Response:
    content = content_of(made[path]())
    headers = {"Cache-Control": "no-cache", "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
    return Response(content, headers=headers, media_type=guess_type(path)[0] or "text/plain")
