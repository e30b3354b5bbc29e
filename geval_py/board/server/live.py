"""A board that is open for long: board.yaml is read again when it has changed; and the site that is built of it.

The pages that everyone may see are those of ``geval board site``, built in a process of its own whenever the
database, board.yaml or the challenge's README has changed, or a deadline has passed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeAlias

from sqlalchemy import select

from geval_py.board.database import schema
from geval_py.board.database.store import SETTINGS_FILE, SHARED_FILE, Board, boards_in, settings_path
from geval_py.errors import GevalError, UsageError
from geval_py.reading import challenge

PROGRAM = "import sys; from geval_py.__main__ import main; sys.exit(main())"
BUILDER = """\
import sys
from datetime import datetime
from geval_py.board.database.store import Board
from geval_py.board.site import build
from geval_py.errors import GevalError
board, folder, now, address = sys.argv[1:]
try:
    build(Board.open(board), folder, now=datetime.fromisoformat(now), served=address)
except GevalError as error:
    sys.exit(f"geval: {error}")
"""
LOOK_SECONDS = 1  # between two looks whether the site is out of date
REST = 3  # times as long as a site took to build, no other one is built, unless a reader waits for one
FAILED_SECONDS = 30  # until a site that could not be built is tried again
BUILD_SECONDS = 30  # that a reader waits for a site after a deadline
WAITED_SECONDS = 0.2  # between two looks of a reader who waits


class LiveBoard:
    """A board whose settings follow its board.yaml; while that has an error, the settings before hold.

    Of a folder of several boards it is the one of their accounts, with boards.yaml.
    """

    def __init__(self, folder: str) -> None:
        is_several = boards_in(folder) != []
        self._open = partial(Board.open_accounts if is_several else Board.open, folder)
        self._path = os.path.join(folder, SHARED_FILE if is_several else SETTINGS_FILE)
        self._stamp = _stamp(self._path)
        self._board = self._open()
        self.error = ""

    def board(self) -> Board:
        """Return the board with the settings of now."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._board, self.error = self._open(), ""
            except GevalError as error:
                self.error = str(error)
        return self._board


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


# What the pages depend on, with which they are the same: the phase, the number of changes, and the stamps of files.
SiteState: TypeAlias = "tuple[str, int, tuple[int, int], tuple[int, int]]"


class LiveSite:
    """The site of a live board, in a folder: a thread builds it again, in another folder, whenever it is out of date.

    ``address`` is the public one.

    A site of an earlier phase is never shown: who asks after a deadline waits for the new one.
    """

    def __init__(self, live: LiveBoard, place: str, clock: Callable[[], datetime], *, address: str) -> None:
        self.folder = os.path.join(place, "site")
        self.error = ""
        self._live, self._place, self._clock = live, place, clock
        self._address = address
        self._built: SiteState | None = None
        self._number, self._before = 0, ""  # of the sites that were built; the folder that readers may still read
        self._seconds = 0.0  # that the last look took, if it built one
        self._asked, self._ending = threading.Event(), False
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._building: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Build the site, and keep it up to date from now on; raises GevalError if it cannot be built at all."""
        self._build()
        if self._built is None:
            raise UsageError(message=f"the site of the board cannot be built\n  {self.error}")
        self._keeper.start()

    def stop(self) -> None:
        """Build no more; one that is being built is given up, or it would be written after its folder is removed."""
        self._ending = True
        self._asked.set()
        while self._keeper.is_alive():  # it may be starting one
            if self._building is not None:
                self._building.terminate()
            self._keeper.join(0.2)

    def is_current(self) -> bool:
        """Return whether the site is of the present phase."""
        return self._built is not None and self._built[0] == self._live.board().settings.phase_of(self._clock())

    async def wait(self) -> bool:
        """Wait until the site is of the present phase, at most :data:`BUILD_SECONDS`; return whether it is.

        No thread waits: at a deadline many readers come, and uploads need the threads.
        """
        self._asked.set()
        ends = time.monotonic() + BUILD_SECONDS
        while not self.is_current() and time.monotonic() < ends:
            await asyncio.sleep(WAITED_SECONDS)
        return self.is_current()

    def _keep(self) -> None:
        """Build the site when it is out of date; in between, leave the cores to those that score."""
        while not self._ending:
            self._asked.wait(FAILED_SECONDS if self.error else max(LOOK_SECONDS, REST * self._seconds))
            self._asked.clear()
            try:
                self._build()
            except GevalError as error:  # the database may be back in a moment
                self.error = str(error)

    def _build(self) -> None:
        """Build a site, unless the last one is of this state and was built without an error."""
        began, now, board = time.monotonic(), self._clock(), self._live.board()
        with board.reading() as connection:
            changed = connection.execute(select(schema.board.c.changed)).scalar_one()
        readme = os.path.join(board.settings.challenge, challenge.README_FILE)
        state = board.settings.phase_of(now), changed, _stamp(settings_path(board.folder)), _stamp(readme)
        if state == self._built and not self.error:
            self._seconds = 0.0
            return
        self._number += 1
        folder = os.path.join(self._place, f"site-{self._number}")
        words = [sys.executable, "-I", "-c", BUILDER, board.folder, folder, now.isoformat(), self._address]
        quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=pipe, text=True) as run:
            self._building = run
            errors = run.communicate()[1]
        self._seconds = time.monotonic() - began
        self.error = errors.strip() if run.returncode else ""
        if not run.returncode:
            shutil.rmtree(self._before, ignore_errors=True)
            self._before, self.folder, self._built = self.folder, folder, state
