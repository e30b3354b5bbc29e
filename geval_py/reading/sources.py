"""Open what a user names.

A source is a path, ``-`` (standard input) or an address: ``http(s)://``, or one that fsspec reads
(:mod:`geval_py.reading.remote`). What is compressed is decompressed (:mod:`geval_py.reading.compression`).
"""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import contextmanager

from geval_py.errors import AmbiguousFileError, UnreadableFileError
from geval_py.reading import remote
from geval_py.reading.compression import COMPRESSED_ENDINGS, MAGIC_BYTES, Decompressed, compression_of
from geval_py.reading.parts import is_whole, parts_among, wholes_among
from geval_py.reading.remote import HttpBody, RemoteFile, is_remote, kind_at, state_of
from geval_py.text import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    from geval_py.reading.compression import Readable
    from geval_py.reading.remote import Kind
    from geval_py.reading.unpacking import Threads

    # Device, inode, bytes, and when it was modified, in ns; what a driver tells of a file elsewhere.
    FileState: TypeAlias = tuple[object, object, int, object]


STANDARD_INPUT = "-"


class _Chained(io.RawIOBase):
    """A stream whose first bytes were read already, to look at them."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # a writable buffer; typeshed has no public name for it
        if self._head:
            n = min(len(buffer), len(self._head))
            buffer[:n], self._head = self._head[:n], self._head[n:]
            return n
        data = self._rest.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)


class Source:
    """One opened source: its name for messages, and its decompressed bytes as a raw stream.

    ``size`` is the number of bytes as stored and ``position`` how many of them have been read; both None where
    that cannot be known (a pipe, an address). ``state`` is another once a file was changed or replaced; None for
    what can be read only once.
    """

    def __init__(self, path: str, max_bytes: int | None = None) -> None:
        self.path = path
        self._file, regular = _open_raw(path)
        self.is_here = regular and not is_remote(path)
        self.state = self._state_now() if regular else None
        self.size = self.state[2] if self.state else None
        try:
            head = self._read_head()
        except BaseException:
            self.close()
            raise
        if regular:
            self._file.seek(0)
        raw = self._file if regular else _Chained(head, self._file)
        compression = compression_of(head)
        self.compression = compression.name if compression else None
        self.stream = Decompressed(raw, compression, path, max_bytes) if compression else raw

    def _read_head(self) -> bytes:
        head = b""
        with naming(self.path):
            while len(head) < MAGIC_BYTES and (more := self._file.read(MAGIC_BYTES - len(head))):
                head += more
        return head

    def unpack_by(self, threads: Threads) -> None:
        """Let threads unpack the rest of a compressed file on this machine, where it can be unpacked in parts."""
        if isinstance(self.stream, Decompressed) and self.is_here:
            from geval_py.reading.unpacking import unpack_in_threads

            unpack_in_threads(self.stream, self._file, threads)

    def check_unchanged(self) -> None:
        """Raise UnreadableFileError if the file has shrunk, grown or was written to since it was opened."""
        if self.state is not None and self._state_now() != self.state:
            raise changed(self.path)

    def _state_now(self) -> FileState:
        return _state_of(os.fstat(self._file.fileno())) if self.is_here else state_of(self.path)

    @property
    def descriptor(self) -> int:
        """The operating system's number of the opened file."""
        number: int = self._file.fileno()
        return number

    @property
    def position(self) -> int | None:
        return None if self.size is None else self._file.tell()

    def close(self) -> None:
        if self.path != STANDARD_INPUT:
            self._file.close()


def _state_of(found: os.stat_result) -> FileState:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def state_at(path: str) -> FileState:
    """Give what is another once a file was changed or replaced; raises UnreadableFileError."""
    if is_remote(path):
        return state_of(path)
    with naming(path):
        return _state_of(os.stat(path))


def changed(path: str) -> UnreadableFileError:
    """Make the error of a file that is not what it was when it was opened."""
    return UnreadableFileError(path=path, reason="it was changed while it was read")


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in what goes wrong when it is opened or read."""
    try:
        yield
    except IsADirectoryError as error:
        raise UnreadableFileError(path=path, reason="it is a folder, not a file") from error
    except (OSError, ValueError) as error:
        raise UnreadableFileError(path=path, reason=getattr(error, "strerror", None) or str(error)) from error


def is_address(path: str) -> bool:
    """Tell whether a name is a web address rather than a path."""
    return path[:8].lower().startswith(("http://", "https://"))


def _open_raw(path: str) -> tuple[Any, bool]:
    """Open the stored bytes; the second value tells whether it is a regular file, which can be sought."""
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise UnreadableFileError(path=path, reason="it is closed")
        return sys.stdin.buffer, False
    if is_address(path):
        return HttpBody(path), False
    if is_remote(path):
        return RemoteFile(path), True
    with naming(path):
        file = open(path, "rb", buffering=0)
    return file, stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def can_be_reread(path: str) -> bool:
    """Tell whether a source can be read a second time: a file can; a pipe, or an address, cannot."""
    return path != STANDARD_INPUT and not is_address(path) and is_file(path)


def is_file(path: str) -> bool:
    """Tell whether a path is that of a regular file, or of one in parts."""
    return is_regular(path) or is_whole(path)


def find_file(path: str) -> str | None:
    """Complete a path: itself if it exists, else the one compressed file of that name, or the file in parts.

    None if there is none. Raises AmbiguousFileError if there are several, PartsError where parts do not make a whole,
    and UnreadableFileError for one that cannot be reached: in a folder that may not be entered, or behind a link that
    leads nowhere.
    """
    if _exists(path):
        return path
    candidates = tuple(path + ending for ending in COMPRESSED_ENDINGS if _exists(path + ending))
    folder, name = os.path.split(path)
    wholes = wholes_among(names_beside(path))
    pattern = name if name in wholes.values() else wholes.get(name)
    if pattern is not None:
        candidates = (*candidates, os.path.join(folder, pattern))
    if len(candidates) > 1:
        raise AmbiguousFileError(path=path, candidates=candidates)
    if pattern is not None:
        parts_of(candidates[0])
    return candidates[0] if candidates else None


def names_beside(path: str) -> list[str]:
    """Give the names in the folder of a path; none where it cannot be listed."""
    try:
        return names_in(os.path.dirname(path) or os.curdir)
    except (OSError, ValueError, UnreadableFileError):
        return []


def parts_of(path: str) -> tuple[str, ...]:
    """Give the paths of the parts of a file in parts, in order, and of another its own; raises PartsError."""
    if not is_whole(path) or _exists(path):
        return (path,)
    return parts_among(path, names_beside(path))


def _exists(path: str) -> bool:
    if is_remote(path):
        return kind_at(path) is not None
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            reason = f"it is a link to {named(os.readlink(path))}, which is not there"
            raise UnreadableFileError(path=path, reason=reason) from None
        return False
    except ValueError:  # a name that no file can have
        return False
    except OSError as error:
        raise UnreadableFileError(path=path, reason=error.strerror or str(error)) from error
    return True


# What is at a path: on this machine, or elsewhere by a scheme such as s3://.


def join(folder: str, path: str) -> str:
    """Give the path of what is called so from a folder: with a scheme, itself.

    >>> join("dev-0", "out.tsv"), join("dev-0", "s3://runs/out.tsv")
    ('dev-0/out.tsv', 's3://runs/out.tsv')
    """
    return path if is_remote(path) else os.path.join(folder, path)


def absolute(path: str) -> str:
    """Give a path that does not depend on the current folder."""
    return path if is_remote(path) else os.path.abspath(path)


def is_folder(path: str) -> bool:
    """Tell whether a folder is there; elsewhere, raises UnreadableFileError where that cannot be told."""
    return remote.kind_at(path) == "directory" if is_remote(path) else os.path.isdir(path)


def is_regular(path: str) -> bool:
    """Tell whether a regular file is there; elsewhere, raises UnreadableFileError where that cannot be told."""
    return remote.kind_at(path) == "file" if is_remote(path) else os.path.isfile(path)


def exists(path: str) -> bool:
    """Tell whether anything is there; elsewhere, raises UnreadableFileError where that cannot be told."""
    return remote.kind_at(path) is not None if is_remote(path) else os.path.exists(path)


def names_in(folder: str, kind: Kind | None = None) -> list[str]:
    """Give the names in a folder, of files or folders alone, or of all.

    Raises OSError where it cannot be listed; elsewhere, UnreadableFileError.
    """
    if is_remote(folder):
        return remote.names_in(folder, kind)
    if kind is None:
        return os.listdir(folder)
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if (entry.is_dir() if kind == "directory" else entry.is_file())]


def matching_files(folder: str, pattern: str) -> list[str]:
    """Give the files, from a folder, that a pattern such as ``runs/out-*.tsv`` matches.

    Elsewhere only the last part of a path is a pattern.
    """
    if not is_remote(join(folder, pattern)):
        from glob import escape, glob

        return [path for path in glob(os.path.join(escape(folder), pattern)) if os.path.isfile(path)]
    from fnmatch import filter as matching

    place, last = os.path.split(join(folder, pattern))
    if remote.kind_at(place) != "directory":
        return []
    return [os.path.join(place, name) for name in matching(remote.names_in(place, "file"), last)]
