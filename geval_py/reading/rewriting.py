r"""Write files and folders whole or not at all.

    with written_whole("out.tsv.xz", compression="xz") as file:
        file.write(b"the:0.5 :0.5\n")

A new file is written beside the one that it replaces, which exists at every moment. If an error comes before the end,
the old file is unchanged, and nothing is left beside it. A signal may come between any two steps of Python, also
during the cleaning up: a program that ends by a signal calls :func:`remove_unfinished`. Nothing can clean up after
SIGKILL or a power cut: the next file that is written into the folder removes what was left, see
:func:`remove_leftovers`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from io import BufferedIOBase

from geval_py.errors import ExistingFileError, MissingFileError, UsageError
from geval_py.reading.compression import compressor
from geval_py.reading.sources import STANDARD_INPUT, is_address, is_remote, naming
from geval_py.text import named, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Protocol

    class Writable(Protocol):
        """A stream that takes bytes."""

        def write(self, data: bytes, /) -> object: ...


BACKUP_ENDING = ".orig"
TEMPORARY_BEGINNING = ".geval-"
LEFT_AFTER, SURELY_LEFT_AFTER = 60, 24 * 60 * 60  # seconds without a change, of a temporary file
GITIGNORE_FILE = ".gitignore"
GITIGNORE = "\n*~\n*.swp\n*.bak\n*.pyc\n*.o\n.DS_Store\n.token\n"
Files = Mapping[str, bytes]  # contents, by the path inside a folder, with slashes
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_unfinished: set[str] = set()  # temporary files that may exist


@contextmanager
def written_whole(path: str, *, compression: str | None = None) -> Iterator[Writable]:
    """Write a file, new or replaced, by the compression of that name; it appears when all is written.

    A replaced file keeps its permissions, and a symbolic link to it stays. Raises UsageError for standard input, an
    address, anything but a regular file, and a file that cannot be written.
    """
    if path == STANDARD_INPUT:  # a message would call it "standard input"
        raise UsageError(message="Cannot write `-`: it is not a file")
    _check_is_path(path, "write")
    with _refusing(path, "write"):
        target = os.path.realpath(path) if os.path.islink(path) else path
    if os.path.lexists(target):
        permissions = stat.S_IMODE(check_replaceable(target).st_mode)
    else:
        mask = os.umask(0o077)  # reading it needs setting it
        os.umask(mask)
        permissions = 0o666 & ~mask
    with replacement(target, permissions) as new:
        with new.writer(compression) as file:
            yield file
        new.take_place()


def check_replaceable(path: str, *, verb: str = "write") -> os.stat_result:
    """Return the status of a regular file; raises UsageError for anything else, symbolic links too.

    ``verb`` is for the message. Raises UnreadableFileError if nothing is at the path.
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


def _refusal(path: str, verb: str, reason: str) -> UsageError:
    return UsageError(message=f"Cannot {verb} {named(path)}: {visible(reason)}")


@contextmanager
def _refusing(path: str, verb: str = "write", *, several: bool = False) -> Iterator[None]:
    """Turn an error of the file system into a UsageError about a path, or the one of ``several`` that failed."""
    try:
        yield
    except (OSError, ValueError) as error:
        at_fault = str(getattr(error, "filename", None) or path) if several else path
        raise _refusal(at_fault, verb, getattr(error, "strerror", None) or str(error)) from error


@contextmanager
def replacement(
    path: str,
    permissions: int,
    *,
    original: os.stat_result | None = None,
    verb: str = "write",
    beginning: str = TEMPORARY_BEGINNING,
) -> Iterator[Replacement]:
    """Create a file in the same folder whose name has a certain beginning; remove it unless it took its place.

    With the status of an ``original``, the file at ``path`` is replaced only if it is unchanged. ``verb`` is for the
    message. Raises UsageError for a file that cannot be written.
    """
    remove_leftovers(os.path.dirname(path), beginning)
    temporary = os.path.join(os.path.dirname(path), f"{beginning}{os.urandom(8).hex()}")
    _unfinished.add(temporary)
    try:
        with _refusing(path, verb):
            file = os.fdopen(os.open(temporary, _NEW_FILE, 0o600), "wb")
            with suppress(OSError):
                _lock(file.fileno())
        try:
            yield Replacement(path, permissions, original, verb, temporary, file)
        finally:
            with suppress(OSError):
                file.close()
    finally:
        _remove(temporary)


def _remove(temporary: str) -> None:
    with suppress(OSError):  # it took its place, or was never created
        os.unlink(temporary)
    _unfinished.discard(temporary)


def remove_unfinished() -> None:
    """Remove the temporary files that are left when a signal interrupts their removal."""
    for temporary in tuple(_unfinished):
        _remove(temporary)


def remove_leftovers(folder: str, beginning: str) -> None:
    """Remove the temporary files that killed programs left in a folder.

    A program locks its temporary file as long as it lives. One that was changed in the last minute stays: its writer
    may be about to lock it, or to move it. Where there are no locks, one that was changed in the last day stays.
    """
    with suppress(OSError), os.scandir(folder or os.curdir) as entries:
        for entry in entries:
            if re.fullmatch(f"{re.escape(beginning)}[0-9a-f]{{16}}", entry.name):
                with suppress(OSError):
                    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                    if entry.is_file(follow_symlinks=False) and age > LEFT_AFTER and _is_left(entry.path, age):
                        os.unlink(entry.path)


def _is_left(path: str, age: float) -> bool:
    """Whether no living program holds the lock of a file, changed so many seconds ago; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        _lock(descriptor)
    except BlockingIOError:
        return False
    except OSError:  # no locks here
        return age > SURELY_LEFT_AFTER
    finally:
        os.close(descriptor)
    return True


def _lock(descriptor: int) -> None:
    """Lock an open file until it is closed; raises BlockingIOError if it is locked, OSError if there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        raise OSError(errno.ENOTSUP, "no locks") from None
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Replacement:
    """A temporary file that is to replace the one at ``path``."""

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
        """Write the whole file by the compression of that name; raises UsageError."""
        with _refusing(self.path, self._verb):
            stream = compressor(self._file, compression)
        try:
            yield _RefusingWriter(stream, self.path, self._verb)
        except BaseException:
            with suppress(OSError):
                stream.close()
            raise
        with _refusing(self.path, self._verb):
            stream.close()
            self._file.close()

    def take_place(self, *, backup: bool = False) -> str | None:
        """Move the file, written and closed, to its place; raises UsageError.

        With ``backup``, keep the original and return its new name: ``PATH.orig``, or ``PATH.orig.1`` ….
        """
        with _refusing(self.path, self._verb):
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
        old = self._original
        if old is not None:
            new = os.lstat(self.path)
            if not os.path.samestat(new, old) or (new.st_size, new.st_mtime_ns) != (old.st_size, old.st_mtime_ns):
                raise _refusal(self.path, self._verb, "it was changed meanwhile; run it again")
        os.replace(self._temporary, self.path)


class _RefusingWriter:
    """Writes to a stream; raises UsageError with the path."""

    def __init__(self, stream: IO[bytes] | BufferedIOBase, path: str, verb: str) -> None:
        self._write, self._path, self._verb = stream.write, path, verb

    def write(self, data: bytes, /) -> None:
        try:
            self._write(data)
        except OSError as error:
            raise _refusal(self._path, self._verb, error.strerror or str(error)) from error


def _back_up(path: str) -> str:
    """Link a second, unused name to a file; copy it if the file system has no links."""
    number = 0
    while True:
        backup_path = f"{path}{BACKUP_ENDING}" + (f".{number}" if number else "")
        try:
            try:
                os.link(path, backup_path)
            except FileExistsError:
                raise
            except OSError:
                _copy(path, backup_path)
        except FileExistsError:
            number += 1
        else:
            return backup_path


def _copy(path: str, backup_path: str) -> None:
    import shutil

    with open(path, "rb") as original, open(backup_path, "xb") as copy:
        try:
            shutil.copyfileobj(original, copy)
            shutil.copystat(path, backup_path)
        except BaseException:
            os.unlink(backup_path)
            raise


def write_files(folder: str, files: Files) -> None:
    """Write new files into a folder and folders below it, which are created if only their last part is missing.

    Raises ExistingFileError if one of the files exists, MissingFileError if the folder's parent does not, and
    UsageError for a file that cannot be written. After an error, nothing new is left.
    """
    paths = {os.path.join(folder, *name.split("/")): content for name, content in files.items()}
    existing = [path for path in paths if os.path.lexists(path)]
    if existing:
        raise ExistingFileError(path=existing[0], others=tuple(existing[1:]))
    made: list[str] = []
    with _refusing(folder, several=True):
        try:
            _make_folder(folder, made)
            for path, content in paths.items():
                _make_folder(os.path.dirname(path), made)
                with open(path, "xb") as file:
                    made.append(path)
                    file.write(content)
        except BaseException:
            for path in reversed(made):
                with suppress(OSError):
                    os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
            raise


def _make_folder(folder: str, made: list[str]) -> None:
    if os.path.isdir(folder):
        return
    if not os.path.isdir(os.path.dirname(os.path.abspath(folder))):
        raise MissingFileError(what="No folder to make it in", path=os.path.dirname(folder))
    os.mkdir(folder)
    made.append(folder)


def check_new_folder(folder: str) -> None:
    """Raise ExistingFileError unless nothing, or an empty folder, is at a path."""
    if os.path.lexists(folder) and not (os.path.isdir(folder) and not os.listdir(folder)):
        raise ExistingFileError(path=folder)


@contextmanager
def new_folder(folder: str) -> Iterator[None]:
    """Write into a new folder, which is removed with its files if anything is raised, also KeyboardInterrupt.

    Raises ExistingFileError, and UsageError for a file that cannot be written.
    """
    import shutil

    check_new_folder(folder)
    known = os.path.isdir(folder)
    with _refusing(folder, several=True):
        os.makedirs(folder, exist_ok=True)
        try:
            yield
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            if known:
                os.mkdir(folder)
            raise
