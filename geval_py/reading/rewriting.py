r"""Write files and folders whole or not at all.

    with written_whole("out.tsv.xz", compression="xz") as file:
        file.write(b"the:0.5 :0.5\n")

A new file is written beside the one that it replaces, which exists at every moment. If an error comes before the end,
the old file is unchanged, and nothing is left beside it. A signal may come between any two steps of Python, also
during the cleaning up: a program that ends by a signal calls :func:`geval_py.reading.files.remove_unfinished`. After
SIGKILL or a power cut a file may be left whose name begins with TEMPORARY_BEGINNING.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from io import BufferedIOBase
from itertools import count
from typing import IO

from geval_py.errors import ExistingFileError, UsageError
from geval_py.reading.compression import COMPRESSIONS
from geval_py.reading.files import is_path, naming, remove_unfinished, state_of, unfinished
from geval_py.text import visible, without_credentials

BACKUP_ENDING = ".orig"
TEMPORARY_BEGINNING = ".geval-unfinished-"
GITIGNORE_FILE = ".gitignore"
GITIGNORE = "\n*~\n*.swp\n*.bak\n*.pyc\n*.o\n.DS_Store\n.token\n"
Files = Mapping[str, bytes]  # contents, by the path inside a folder, with slashes
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


class Draft:
    """A file that is being written; it takes its place at the end if it ``is_wanted``.

    ``backup_path`` is then where the file that it replaced is kept, if it is.
    """

    def __init__(self, stream: IO[bytes] | BufferedIOBase) -> None:
        self.stream, self.write = stream, stream.write
        self.is_wanted = True
        self.backup_path: str | None = None


@contextmanager
def written_whole(
    path: str,
    *,
    compression: str | None = None,
    original: os.stat_result | None = None,
    backup: bool = False,
    verb: str = "write",
) -> Iterator[Draft]:
    """Write a file, new or replaced, by the compression of that name; it appears when all is written.

    A replaced file keeps its permissions, and a symbolic link to it stays. With its status as ``original``, it is
    replaced only if it is unchanged; with ``backup``, it is kept as ``PATH.orig``, or ``PATH.orig.1`` …. ``verb`` is
    for messages. Raises UsageError for standard input, an address, anything but a regular file, and a file that
    cannot be written.
    """
    _check_is_path(path, verb)
    with _refusing(path, verb):
        target = os.path.realpath(path) if os.path.islink(path) else path
    if os.path.lexists(target):
        permissions = stat.S_IMODE(check_replaceable(target, verb=verb).st_mode)
    else:
        mask = os.umask(0o077)  # reading it needs setting it
        os.umask(mask)
        permissions = 0o666 & ~mask
    temporary = unfinished(os.path.join(os.path.dirname(target), f"{TEMPORARY_BEGINNING}{os.urandom(8).hex()}"))
    file = None
    try:
        with _refusing(target, verb):
            file = os.fdopen(os.open(temporary, _NEW_FILE, 0o600), "wb")
            stream = next(
                (one.compressor(import_module(one.module), file) for one in COMPRESSIONS if one.name == compression),
                file,
            )
        draft = Draft(stream)
        try:
            yield draft
        except BaseException as error:
            with suppress(OSError):
                stream.close()
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise _refusal(target, verb, str(error.strerror)) from error
            raise
        with _refusing(target, verb):
            stream.close()
            file.close()
            os.chmod(temporary, permissions)
            if draft.is_wanted:
                _take_place(temporary, target, draft, original, verb, backup=backup)
    finally:
        with suppress(OSError):
            if file is not None:
                file.close()
        remove_unfinished(temporary)


def _take_place(
    temporary: str, path: str, draft: Draft, original: os.stat_result | None, verb: str, *, backup: bool
) -> None:
    """Move a file to its place; raises OSError, and UsageError if the original was changed."""
    backup_path = _back_up(path) if backup else None
    try:
        if original is not None and state_of(os.lstat(path)) != state_of(original):
            raise _refusal(path, verb, "it was changed meanwhile; run it again")
        os.replace(temporary, path)
    except BaseException:
        if backup_path is not None and os.path.lexists(temporary):  # a signal may also come when all is done
            os.unlink(backup_path)
        raise
    draft.backup_path = backup_path


def _back_up(path: str) -> str:
    """Link a second, unused name to a file; copy it if the file system has no links."""
    names = (f"{path}{BACKUP_ENDING}" + (f".{number}" if number else "") for number in count())
    backup_path = next(name for name in names if not os.path.lexists(name))
    try:
        os.link(path, backup_path)
    except OSError:
        try:
            shutil.copy2(path, backup_path)
        except BaseException:
            remove_unfinished(backup_path)
            raise
    return backup_path


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
    if not is_path(path):
        raise _refusal(path, verb, "it is not a file")


def _refusal(path: str, verb: str, reason: str) -> UsageError:
    written = visible(without_credentials(path))  # unlike named(path) for `-`, which is not read here
    return UsageError(f"Cannot {verb} `{written}`: {visible(reason)}")


@contextmanager
def _refusing(path: str, verb: str = "write", *, several: bool = False) -> Iterator[None]:
    """Turn an error of the file system into a UsageError about a path, or the one of ``several`` that failed."""
    try:
        yield
    except (OSError, ValueError) as error:
        at_fault = str(getattr(error, "filename", None) or path) if several else path
        raise _refusal(at_fault, verb, getattr(error, "strerror", None) or str(error)) from error


def write_files(folder: str, files: Files) -> None:
    """Write new files into a folder and folders below it, which are created if only their last part is missing.

    Raises ExistingFileError if one of the files exists, and UsageError for a file that cannot be written. After an
    error, nothing new is left.
    """
    paths = {os.path.join(folder, *name.split("/")): content for name, content in files.items()}
    existing = [path for path in paths if os.path.lexists(path)]
    if existing:
        raise ExistingFileError(path=existing[0], others=tuple(existing[1:]))
    with _refusing(folder, several=True), ExitStack() as undo:
        for path, content in paths.items():
            for above in (folder, os.path.dirname(path)):
                if not os.path.isdir(above):
                    os.mkdir(above)
                    undo.callback(shutil.rmtree, above, ignore_errors=True)
            with open(path, "xb") as file:
                undo.callback(remove_unfinished, path)
                file.write(content)
        undo.pop_all()


def check_new_folder(folder: str) -> None:
    """Raise ExistingFileError unless nothing, or an empty folder, is at a path."""
    if os.path.lexists(folder) and not (os.path.isdir(folder) and not os.listdir(folder)):
        raise ExistingFileError(path=folder)


@contextmanager
def new_folder(folder: str) -> Iterator[None]:
    """Write into a new folder, which is removed with its files if anything is raised, also KeyboardInterrupt.

    Raises ExistingFileError, and UsageError for a file that cannot be written.
    """
    check_new_folder(folder)
    was_there = os.path.isdir(folder)
    with _refusing(folder, several=True):
        os.makedirs(folder, exist_ok=True)
        try:
            yield
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            if was_there:
                os.mkdir(folder)
            raise
