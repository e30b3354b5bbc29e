"""A run that is killed between two steps: at a statement, a commit, or a change of a file in some folder.

From then on nothing of the run has any effect, not even its cleaning up, as after SIGKILL; only what the kernel does
for a process that ended is done: its transactions are undone, and its locks are gone.
"""

import os
import shutil
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Engine, event, pool

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Killed(BaseException):
    """The run was killed."""


class Crashes:
    """Kill runs whose files are below a folder, which may be changed; one run at a time."""

    def __init__(self):
        self.folder = "/nowhere"
        self.left, self.is_dead, self.was_killed = -1, False, False
        sys.addaudithook(self._hook)
        event.listen(Engine, "before_cursor_execute", self._step)
        event.listen(Engine, "commit", self._step)
        event.listen(pool.Pool, "checkin", self._disconnect)

    def close(self):
        """Stop; the hook itself stays as long as Python runs."""
        self.left, self.is_dead = -1, False
        event.remove(Engine, "before_cursor_execute", self._step)
        event.remove(Engine, "commit", self._step)
        event.remove(pool.Pool, "checkin", self._disconnect)

    def _step(self, *_):
        if self.is_dead:
            raise Killed
        if self.left >= 0:
            self.left -= 1
            if self.left < 0:
                self.is_dead = self.was_killed = True
                raise Killed

    def _disconnect(self, _, record):
        """End the connections of a run that is dead, with their transactions, where they would be kept."""
        if self.is_dead:
            record.invalidate()

    def _hook(self, name, arguments):
        if self.left < 0 and not self.is_dead:
            return
        if name in CHANGES or (name == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            path = arguments[0]
            if isinstance(path, str) and path.startswith(self.folder):
                self._step()

    @contextmanager
    def killing(self, steps):
        """Kill the run in the block after so many steps; ``was_killed`` tells whether it had so many."""
        remove = shutil.rmtree

        def remove_unless_dead(*words, **more):
            if not self.is_dead:
                remove(*words, **more)

        self.left, self.was_killed, shutil.rmtree = steps, False, remove_unless_dead
        try:
            yield self
        except Killed:
            pass
        finally:
            self.left, self.is_dead, shutil.rmtree = -1, False, remove
            self._unlock()

    def _unlock(self):
        """Close the lock files that the run left open."""
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
                if path.name.startswith("lock") and path.is_relative_to(self.folder):
                    os.close(int(descriptor))
