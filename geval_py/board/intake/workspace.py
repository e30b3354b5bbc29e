"""The temporary folder of a run, locked as long as the run lives; the next run removes those that killed runs left.

A lock ends with its process, however that ends, and it holds between containers and machines that share a folder; an
id of a process does neither.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

if sys.platform != "win32":
    import fcntl

CAN_LOCK = sys.platform != "win32"  # not on Windows, where killed runs leave their folders
PREFIX = "geval-board-"
LOCK_FILE = "lock"
PLACES = "places"
ABANDONED_SECONDS = 24 * 60 * 60  # of a folder without a lock: an earlier version made it, or its run was just begun


@contextmanager
def workspace(parent: str | None = None) -> Iterator[str]:
    """Make an empty temporary folder, which is removed at the end; first remove what killed runs have left.

    In a ``parent`` of the user's it is hidden.
    """
    prefix = PREFIX if parent is None else f".{PREFIX}"
    parent = tempfile.gettempdir() if parent is None else parent
    _remove_abandoned(parent, prefix)
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    lock = None
    try:
        lock = _lock(folder)
        places = os.path.join(folder, PLACES)
        os.mkdir(places)
        yield places
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _lock(folder: str) -> int | None:
    """Lock a folder; return the descriptor that holds the lock, None where files cannot be locked.

    The file gets its name once it is locked, so that no other run ever finds it unlocked.
    """
    if not CAN_LOCK:
        return None
    path = os.path.join(folder, LOCK_FILE)
    descriptor = os.open(f"{path}.new", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks
        os.close(descriptor)
        return None
    os.rename(f"{path}.new", path)
    return descriptor


def _remove_abandoned(parent: str, prefix: str) -> None:
    """Remove this user's folders whose runs were killed; folders that cannot be looked at are left."""
    if not CAN_LOCK:
        return
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix):
                continue
            with suppress(OSError):
                status = os.lstat(entry.path)
                if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                    continue
                try:
                    descriptor = os.open(os.path.join(entry.path, LOCK_FILE), os.O_RDWR | os.O_NOFOLLOW)
                except FileNotFoundError:
                    if time.time() - status.st_mtime > ABANDONED_SECONDS:
                        shutil.rmtree(entry.path, ignore_errors=True)
                    continue
                try:
                    # This raises BlockingIOError while its run lives.
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(entry.path, ignore_errors=True)
                finally:
                    os.close(descriptor)
