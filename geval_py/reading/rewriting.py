r"""Write a file whole or not at all: beside the file whose place it takes, which is there at every moment.

    with written_whole("out.tsv.xz", compression="xz") as file:
        file.write(b"the:0.5 :0.5\n")

Whatever goes wrong before the end, the file is as it was, or is not there, and nothing is left beside it. A signal
may come between any two steps of Python, also of those that clean up: who ends by one calls
:func:`remove_unfinished`.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from typing import IO, Protocol

from geval_py.errors import ExistingFileError, MissingFileError, UsageError
from geval_py.reading.compression import compressor
from geval_py.reading.remote import is_remote
from geval_py.reading.sources import STANDARD_INPUT, is_address, naming
from geval_py.text import named, visible

BACKUP_ENDING = ".orig"
TEMPORARY_BEGINNING = ".geval-"
_unfinished: set[str] = set()  # the temporary files that may be there


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
    known = os.path.lexists(target)
    permissions = stat.S_IMODE(check_replaceable(target).st_mode) if known else _permissions_of_new_files()
    with replacement(target, permissions) as new:
        with new.writer(compression) as file:
            yield file
        new.take_place()


def check_replaceable(path: str, *, verb: str = "write") -> os.stat_result:
    """Give what is known of a regular file, and refuse anything else: a symbolic link leads to another file.

    ``verb`` says in the message what cannot be done. Raises UsageError, and UnreadableFileError where nothing is.
    """
    _check_is_path(path, verb)
    with naming(path):
        status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        raise _refusal(path, verb, "it is a symbolic link; name the file that it leads to")
    if not stat.S_ISREG(status.st_mode):
        what = "it is a folder, not a file" if stat.S_ISDIR(status.st_mode) else "it is not a regular file"
        raise _refusal(path, verb, what)
    return status


def _check_is_path(path: str, verb: str) -> None:
    if path == STANDARD_INPUT or is_address(path) or is_remote(path):
        raise _refusal(path, verb, "it is not a file")


def _permissions_of_new_files() -> int:
    mask = os.umask(0o077)  # it can be read only by setting it
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def replacement(
    path: str,
    permissions: int,
    *,
    original: os.stat_result | None = None,
    verb: str = "write",
    beginning: str = TEMPORARY_BEGINNING,
) -> Iterator[Replacement]:
    """Make a file in the same folder, its name with such a beginning, and remove it unless it took its place.

    If there is an ``original``, the new file takes its place only if it is still there, as it was. ``verb`` says in
    messages what cannot be done. Raises UsageError for what cannot be written.
    """
    temporary = os.path.join(os.path.dirname(path), f"{beginning}{os.urandom(8).hex()}")
    _unfinished.add(temporary)
    try:
        with _naming(path, verb):
            file = os.fdopen(os.open(temporary, _NEW_FILE, 0o600), "wb")
        try:
            yield Replacement(path, permissions, original, verb, temporary, file)
        finally:
            with suppress(OSError):
                file.close()
    finally:
        _remove(temporary)


_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def _remove(temporary: str) -> None:
    with suppress(OSError):  # it took its place, or was never made
        os.unlink(temporary)
    _unfinished.discard(temporary)


def remove_unfinished() -> None:
    """Remove the files in the making that are left, as where a signal came while one was removed."""
    for temporary in tuple(_unfinished):
        _remove(temporary)


class Replacement:
    """A file in the making, which is to take the place of the one at ``path``."""

    def __init__(
        self,
        path: str,
        permissions: int,
        original: os.stat_result | None,
        verb: str,
        temporary: str,
        file: IO[bytes],
    ) -> None:
        self.path = path
        self._permissions, self._original, self._verb = permissions, original, verb
        self._temporary, self._file = temporary, file

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
                self._replace()
                return None
            backup_path = _back_up(self.path)
            try:
                self._replace()
            except BaseException:
                if os.path.lexists(self._temporary):  # a signal may also come when all is done
                    os.unlink(backup_path)
                raise
            return backup_path

    def _replace(self) -> None:
        if self._original is not None and not _is_same(os.lstat(self.path), self._original):
            raise _refusal(self.path, self._verb, "it was changed meanwhile; run it again")
        os.replace(self._temporary, self.path)


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    """Tell whether two looks found the same file, with the same content as far as its size and time tell."""
    return os.path.samestat(one, other) and (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


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


# New folders with files: written whole, or not at all.


GITIGNORE_FILE, CONFIG_FILE, README_FILE = ".gitignore", "config.txt", "README.md"
IN_HEADER_FILE, OUT_HEADER_FILE = "in-header.tsv", "out-header.tsv"
DEV_SET, HIDDEN_SET = "dev-0", "test-A"
GITIGNORE = "\n*~\n*.swp\n*.bak\n*.pyc\n*.o\n.DS_Store\n.token\n"
Files = Mapping[str, bytes]  # contents, by a path inside a folder with slashes


def write_files(folder: str, files: Files) -> None:
    """Write new files into a folder, which is made if only it is missing, and into folders below it.

    Raises ExistingFileError if one of the files is there, MissingFileError if the folder's parent is not, and
    UsageError for what cannot be written. Whatever is raised, nothing new is left.
    """
    there = [path for name in files if os.path.lexists(path := _path_in(folder, name))]
    if there:
        raise ExistingFileError(path=there[0], others=tuple(there[1:]))
    made: list[str] = []
    with _writing(folder), _undoing(made):
        _make_folder(folder, made)
        for name, content in files.items():
            path = _path_in(folder, name)
            _make_folder(os.path.dirname(path), made)
            with open(path, "xb") as file:
                made.append(path)
                file.write(content)


def _path_in(folder: str, name: str) -> str:
    return os.path.join(folder, *name.split("/"))


def _make_folder(folder: str, made: list[str]) -> None:
    if os.path.isdir(folder):
        return
    if not os.path.isdir(os.path.dirname(os.path.abspath(folder))):
        raise MissingFileError(what="No folder to make it in", path=os.path.dirname(folder))
    os.mkdir(folder)
    made.append(folder)


@contextmanager
def _writing(folder: str) -> Iterator[None]:
    """Name what could not be written."""
    try:
        yield
    except (OSError, ValueError) as error:
        path = getattr(error, "filename", None) or folder
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(message=f"Cannot write {named(str(path))}: {visible(reason)}") from error


@contextmanager
def _undoing(made: list[str]) -> Iterator[None]:
    """Remove what was made, the last first, if something is raised, an interrupt too."""
    try:
        yield
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
        raise


def check_new_folder(folder: str) -> None:
    """Raise ExistingFileError if a folder is there with something in it, or if there is another thing of its name."""
    if os.path.lexists(folder) and not (os.path.isdir(folder) and not os.listdir(folder)):
        raise ExistingFileError(path=folder)


@contextmanager
def new_folder(folder: str) -> Iterator[None]:
    """Write into a new folder, which is removed with all that is in it if something is raised, an interrupt too.

    Raises ExistingFileError, and UsageError for what cannot be written.
    """
    check_new_folder(folder)
    known = os.path.isdir(folder)
    with _writing(folder):
        os.makedirs(folder, exist_ok=True)
        try:
            yield
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            if known:
                os.mkdir(folder)
            raise
