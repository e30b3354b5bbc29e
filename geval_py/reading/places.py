"""What is at a path: on this machine, or elsewhere by a scheme such as s3://."""

from __future__ import annotations

import os

from geval_py.reading import remote
from geval_py.reading.remote import is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.remote import Kind


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
