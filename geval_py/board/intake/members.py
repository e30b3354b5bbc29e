"""Members of a submission: read from a source within a budget, checked, and copied; a folder as a source."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Protocol

from geval_py.board.submission import FailedError, ReceivedFile, RejectedError
from geval_py.reading.other_formats import format_ending
from geval_py.text import natural_order, shorten, visible

MOST_NAME = 500  # characters
MOST_DEPTH = 32  # folders in folders
FREE_BYTES = 100_000_000  # unpacked; MOST_RATIO holds only beyond them
MOST_RATIO = 1000  # unpacked bytes for each packed one; deflate reaches 1032 at most
CHUNK_BYTES = 1 << 20
LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # of the specification of Git LFS, "The pointer"


class Readable(Protocol):
    """The bytes of a member."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, b"" at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The last commit of a branch: its id, author's name and message."""

    revision: str
    author: str
    message: str


class Source(Protocol):
    """A folder, an archive or a git branch with members.

    If ``strips``, all members may lie in one more folder. Only a branch has a ``commit``.
    """

    name: str
    address: str
    strips: bool
    commit: Commit | None

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        """Yield the names and bytes of the regular files that are wanted; may be called again.

        Raises RejectedError for a member that no submission may have.
        """


def refused(name: str, why: str) -> RejectedError:
    """Return the error for a member, such as "`out.tsv` is a link"."""
    return RejectedError(reason=f"`{visible(shorten(name, 200))}` {why}")


def checked_name(name: str) -> str:
    """Return the name of a member without ``./``; raises RejectedError if it leads out of its folder."""
    parts = [part for part in name.split("/") if part != "."]
    if name.startswith("/") or ".." in parts or name[1:2] == ":":
        raise refused(name, "leads out of its folder")
    if len(name) > MOST_NAME:
        raise refused(name, f"has a name of more than {MOST_NAME} characters")
    if len(parts) > MOST_DEPTH + 1:
        raise refused(name, f"is in more than {MOST_DEPTH} folders")
    return "/".join(part for part in parts if part)


# The budget of a submission: bytes and seconds are counted while it is read, whatever its headers claim.


@dataclass(slots=True, kw_only=True)
class Budget:
    """The most bytes of all files, unpacked, and members of an archive, and the end in monotonic seconds.

    ``listed`` is the most entries of a folder or a git tree. ``packed`` is the size of the archive in bytes, 0 for
    other sources.
    """

    bytes: int
    files: int
    listed: int = 10_000
    ends: float
    packed: int = 0
    taken: int = 0

    def take(self, count: int, name: str) -> None:
        """Count bytes of a member; raises RejectedError for too many, FailedError when the time is over."""
        self.taken += count
        if self.taken > self.bytes:
            raise RejectedError(reason=f"its files have more than {self.bytes} bytes, unpacked: `{visible(name)}`")
        if self.packed and self.taken > FREE_BYTES + MOST_RATIO * self.packed:
            raise RejectedError(reason=f"`{visible(name)}` unpacks to more than {MOST_RATIO} times its packed bytes")
        self.check_time()

    def check_time(self) -> None:
        """Raise FailedError once the time is over."""
        if time.monotonic() > self.ends:
            raise FailedError(reason="it took more time than is allowed")


# Copies of members, with their digests.


def copy_members(
    source: Source, names: Mapping[str, str], place: str, budget: Budget, most: Mapping[str, int]
) -> list[ReceivedFile]:
    """Copy some members to 000, 001.jsonl … in a place; return them sorted by the names that they are stored under.

    ``most`` has the most bytes of some members. Raises RejectedError, FailedError.
    """
    return sorted(_copies(source, names, place, budget, 0, most), key=lambda file: file.name)


def copy_if_possible(
    source: Source, names: Mapping[str, str], place: str, budget: Budget, start: int
) -> list[ReceivedFile]:
    """Copy more members, numbered from ``start``, and stop at the first that cannot be copied."""
    files: list[ReceivedFile] = []
    if names:
        with suppress(RejectedError, FailedError):
            files.extend(_copies(source, names, place, budget, start, {}))
    return sorted(files, key=lambda file: file.name)


def numbered_path(place: str, number: int, name: str) -> str:
    """Return where the file with a name is copied to: its number, and the ending of its format."""
    return os.path.join(place, f"{number:03}{format_ending(name)}")


def _copies(
    source: Source, names: Mapping[str, str], place: str, budget: Budget, start: int, most: Mapping[str, int]
) -> Iterator[ReceivedFile]:
    for number, (name, member) in enumerate(source.walk(names.__contains__), start):
        path = numbered_path(place, number, names[name])
        digest, size = _copy(name, member, path, budget, most.get(name))
        yield ReceivedFile(name=names[name], path=path, sha256=digest, bytes=size)


def _copy(name: str, member: Readable, path: str, budget: Budget, most: int | None) -> tuple[str, int]:
    digest, size = sha256(), 0
    with open(path, "xb") as file:
        while data := member.read(CHUNK_BYTES):
            if not size and data.startswith(LFS_POINTER):
                raise refused(name, "is a pointer of Git LFS, not the file itself: add that to the submission")
            budget.take(len(data), name)
            digest.update(data)
            file.write(data)
            size += len(data)
            if most is not None and size > most:
                raise refused(name, f"is larger than {most} bytes")
    return digest.hexdigest(), size


class Folder:
    """A folder as a source: names that begin with a dot, as .git, are left out, and links are refused."""

    strips = False
    commit: Commit | None = None

    def __init__(self, path: str, budget: Budget) -> None:
        self.path = self.address = path
        self.name = os.path.basename(os.path.normpath(path))
        self._budget = budget

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        left = self._budget.listed
        folders = deque([""])
        while folders:
            folder = folders.popleft()
            entries = self._entries(folder, left)
            left -= len(entries)
            shown = (entry for entry in entries if not entry.name.startswith("."))
            for entry in sorted(shown, key=lambda entry: natural_order(entry.name)):
                name = checked_name(f"{folder}{entry.name}")
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{name}/")
                elif wanted(name):
                    with closing(_open(entry.path, name)) as file:
                        yield name, file

    def _entries(self, folder: str, most: int) -> list[os.DirEntry[str]]:
        """List one folder, hidden entries too, and no further than allowed."""
        try:
            with os.scandir(os.path.join(self.path, folder)) as found:
                entries = list(islice(found, most + 1))
        except OSError as error:
            raise refused(folder or self.name, f"cannot be read: {error.strerror}") from error
        self._budget.check_time()
        if len(entries) > most:
            raise RejectedError(reason=f"its folder holds more than {self._budget.listed} files and folders")
        return entries


class _File:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, /) -> bytes:
        return os.read(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)


def _open(path: str, name: str) -> _File:
    """Open a regular file; raises RejectedError for anything else, and never waits, as for a pipe."""
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
