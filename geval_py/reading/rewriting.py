r"""Write a file whole or not at all: beside the file whose place it takes, which is there at every moment.

    with written_whole("out.tsv.xz", compression="xz") as file:
        file.write(b"the:0.5 :0.5\n")

Whatever goes wrong before the end, the file is as it was, or is not there, and nothing is left beside it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from typing import IO, Protocol

from geval_py.errors import UsageError
from geval_py.reading.compression import compressor
from geval_py.reading.sources import STANDARD_INPUT, is_address, naming
from geval_py.text import named, visible

BACKUP_ENDING = ".orig"
TEMPORARY_BEGINNING = ".geval-"


class Writable(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> object: ...


@contextmanager
def written_whole(path: str, *, compression: str | None = None) -> Iterator[Writable]:
    """Write a new file, or the new content of one, by the compression of that name; it is there when all is written.

    A file that is there keeps its permissions; where a symbolic link leads to it, the link stays. Raises UsageError
    for standard input, an address, what is no regular file, and what cannot be written.
    """
    if path == STANDARD_INPUT:  # which "-" would name in a message
        raise UsageError(message="Cannot write `-`: it is not a file")
    _check_is_path(path, "write")
    with _naming(path, "write"):
        target = os.path.realpath(path) if os.path.islink(path) else path
    permissions = check_replaceable(target) if os.path.lexists(target) else _permissions_of_new_files()
    with replacement(target, permissions) as new:
        with new.writer(compression) as file:
            yield file
        new.take_place()


def check_replaceable(path: str, *, verb: str = "write") -> int:
    """Give the permission bits of a regular file, and refuse anything else: a symbolic link leads to another file.

    ``verb`` says in the message what cannot be done. Raises UsageError, and UnreadableFileError where nothing is.
    """
    _check_is_path(path, verb)
    with naming(path):
        mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        raise _refusal(path, verb, "it is a symbolic link; name the file that it leads to")
    if not stat.S_ISREG(mode):
        what = "it is a folder, not a file" if stat.S_ISDIR(mode) else "it is not a regular file"
        raise _refusal(path, verb, what)
    return stat.S_IMODE(mode)


def _check_is_path(path: str, verb: str) -> None:
    if path == STANDARD_INPUT or is_address(path):
        raise _refusal(path, verb, "it is not a file")


def _permissions_of_new_files() -> int:
    mask = os.umask(0o077)  # it can be read only by setting it
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def replacement(
    path: str, permissions: int, *, verb: str = "write", beginning: str = TEMPORARY_BEGINNING
) -> Iterator[Replacement]:
    """Make a file in the same folder, its name with such a beginning, and remove it unless it took its place.

    ``verb`` says in messages what cannot be done. Raises UsageError for what cannot be written.
    """
    with _naming(path, verb):
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or os.curdir, prefix=beginning)
    try:
        file = os.fdopen(descriptor, "wb")
        try:
            yield Replacement(path, permissions, verb, temporary, file)
        finally:
            with suppress(OSError):
                file.close()
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


class Replacement:
    """A file in the making, which is to take the place of the one at ``path``."""

    def __init__(self, path: str, permissions: int, verb: str, temporary: str, file: IO[bytes]) -> None:
        self.path = path
        self._permissions, self._verb, self._temporary, self._file = permissions, verb, temporary, file

    @contextmanager
    def writer(self, compression: str | None) -> Iterator[Writable]:
        """Write all of the file, by the compression of that name; raises UsageError."""
        with _naming(self.path, self._verb):
            stream = compressor(self._file, compression)
        try:
            yield _NamingWriter(stream, self.path, self._verb)
        except BaseException:
            with suppress(OSError):
                stream.close()
            raise
        with _naming(self.path, self._verb):
            stream.close()
            self._file.close()

    def take_place(self, *, backup: bool = False) -> str | None:
        """Put the file, written and closed, in its place; raises UsageError.

        With ``backup`` the original gets another name, which is given back: ``PATH.orig``, or ``.orig.1`` ….
        """
        with _naming(self.path, self._verb):
            os.chmod(self._temporary, self._permissions)
            if not backup:
                os.replace(self._temporary, self.path)
                return None
            backup_path = _back_up(self.path)
            try:
                os.replace(self._temporary, self.path)
            except BaseException:
                os.unlink(backup_path)
                raise
            return backup_path


class _NamingWriter:
    """Names the file in what goes wrong when it is written."""

    def __init__(self, stream: IO[bytes] | BufferedIOBase, path: str, verb: str) -> None:
        self._write, self._path, self._verb = stream.write, path, verb

    def write(self, data: bytes, /) -> None:
        try:
            self._write(data)
        except OSError as error:
            raise _refusal(self._path, self._verb, error.strerror or str(error)) from error


def _refusal(path: str, verb: str, reason: str) -> UsageError:
    return UsageError(message=f"Cannot {verb} {named(path)}: {visible(reason)}")


@contextmanager
def _naming(path: str, verb: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise _refusal(path, verb, getattr(error, "strerror", None) or str(error)) from error


def _back_up(path: str) -> str:
    """Give the file a second name, one that is free."""
    number = 0
    while True:
        backup_path = f"{path}{BACKUP_ENDING}" + (f".{number}" if number else "")
        try:
            _link_or_copy(path, backup_path)
        except FileExistsError:
            number += 1
        else:
            return backup_path


def _link_or_copy(path: str, backup_path: str) -> None:
    """Link a new name to a file or, where the file system has no links, copy it."""
    try:
        os.link(path, backup_path)
    except FileExistsError:
        raise
    except OSError:
        _copy(path, backup_path)


def _copy(path: str, backup_path: str) -> None:
    import shutil

    with open(path, "rb") as original, open(backup_path, "xb") as copy:
        try:
            shutil.copyfileobj(original, copy)
            shutil.copystat(path, backup_path)
        except BaseException:
            os.unlink(backup_path)
            raise
