"""New folders with files: written whole, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from geval_py.errors import ExistingFileError, MissingFileError, UsageError
from geval_py.text import named, visible

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
