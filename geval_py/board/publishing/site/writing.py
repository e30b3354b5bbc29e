"""A folder that is written beside the one whose place it takes, which stands until the new one is whole."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from geval_py.errors import UsageError
from geval_py.text import named, visible

MARK = "site.json"  # in the folder of every site: only such a folder is replaced
Page: TypeAlias = tuple[str, str]  # path, with / between folders, and text
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux: renameat2(2)


def write_site(folder: str, pages: Iterable[Page]) -> int:
    """Write the files of a site, and give their number; then it takes the place of an earlier one at once.

    Raises UsageError for a folder that holds anything but a site, or into which another is being written.
    """
    target = os.path.abspath(folder)
    check_replaceable(target)
    beside = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.new")
    with _naming(folder), _own(beside):
        number = _write(beside, pages)
        if os.path.lexists(target):
            _exchange(beside, target)
        else:
            os.rename(beside, target)
    return number


def check_replaceable(folder: str) -> None:
    """Raise UsageError unless a folder is not there, is empty, or holds a site."""
    if not os.path.lexists(folder):
        return
    if os.path.islink(folder) or not os.path.isdir(folder):
        raise UsageError(message=f"Cannot write {named(folder)}: it is not a folder")
    if os.listdir(folder) and mark_of(folder) is None:
        message = f"Cannot write {named(folder)}: it holds something else than a site\n  name a new folder"
        raise UsageError(message=message)


def mark_of(folder: str) -> dict[str, object] | None:
    """Read what a site says of itself; None where there is none."""
    try:
        with open(os.path.join(folder, MARK), encoding="utf-8") as file:
            mark = json.load(file)
    except (OSError, ValueError):
        return None
    return mark if isinstance(mark, dict) and "generator" in mark else None


def _write(folder: str, pages: Iterable[Page]) -> int:
    number = 0
    for path, text in pages:
        place = os.path.join(folder, *path.split("/"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        number += 1
    return number


@contextmanager
def _own(folder: str) -> Iterator[None]:
    """Make an empty folder that is ours, in place of what a killed run left, and remove what is there in the end."""
    lock = _locked(folder)
    try:
        _empty(folder)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: str) -> int:
    """Lock a folder by its handle, which the system lets go when the process ends; raises UsageError."""
    import fcntl

    os.makedirs(folder, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise UsageError(message=f"Cannot write {named(folder)}: another run is writing this site") from error
    return lock


def _empty(folder: str) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _exchange(one: str, other: str) -> None:
    """Let two folders change places in one step; where the system cannot, in three."""
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    exchange = getattr(library, "renameat2", None)
    if exchange is not None and not exchange(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE):
        return
    away = f"{one}.old"
    os.rename(other, away)
    os.rename(one, other)
    os.rename(away, one)


@contextmanager
def _naming(folder: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(message=f"Cannot write {named(folder)}: {visible(reason)}") from error
