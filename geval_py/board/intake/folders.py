"""A folder as a source: its regular files; links are not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing

from geval_py.board.intake.members import MOST_NAMES, Commit, Readable, checked_name, refused
from geval_py.board.values import RejectedError
from geval_py.reading.sources import naming
from geval_py.text import natural_order


class Folder:
    """A folder with a submission in it; what begins with a dot, as .git, is left out, and links are refused."""

    strips = False
    commit: Commit | None = None

    def __init__(self, path: str) -> None:
        self.path = self.address = path
        self.name = os.path.basename(os.path.normpath(path))

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        seen = 0
        folders = [""]
        while folders:
            folder = folders.pop(0)
            for entry in self._entries(folder):
                seen += 1
                if seen > MOST_NAMES:
                    raise RejectedError(reason=f"its folder holds more than {MOST_NAMES} files")
                name = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{name}/")
                elif wanted(checked_name(name)):
                    with closing(_open(entry.path, name)) as file:
                        yield name, file

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        path = os.path.join(self.path, folder)
        with naming(path), os.scandir(path) as entries:
            shown = [entry for entry in entries if not entry.name.startswith(".")]
        return sorted(shown, key=lambda entry: natural_order(entry.name))


class _File:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, /) -> bytes:
        return os.read(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)


def _open(path: str, name: str) -> _File:
    """Open a regular file; raises RejectedError for anything else, without waiting for it."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if os.path.islink(path):
        raise refused(name, "is a link; links are not followed")
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise refused(name, f"cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise refused(name, "is not a regular file")
    return _File(descriptor)
