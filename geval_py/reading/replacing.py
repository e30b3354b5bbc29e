"""Write a file whole or not at all: beside its place first, compressed where that is asked for, then renamed."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from typing import IO

from geval_py.errors import UsageError
from geval_py.reading.sources import STANDARD_INPUT, is_address
from geval_py.text import named, visible

_ENDINGS = {".xz": "xz", ".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}


def compression_for(path: str) -> str | None:
    """Give the compression that a file's ending names; None for any other ending.

    >>> compression_for("out.tsv.zst"), compression_for("out.tsv")
    ('zstd', None)
    """
    return _ENDINGS.get(os.path.splitext(path)[1])


@contextmanager
def replacing(path: str, compression: str | None = None) -> Iterator[IO[bytes] | BufferedIOBase]:
    """Give a file to write to, which takes the place of ``path`` at the end; where an error ends it, nothing stays.

    The permissions of a file that is replaced are kept; a symbolic link is followed. Raises UsageError for what is no
    file, and where it cannot be written.
    """
    place = os.path.realpath(path)
    permissions = _permissions(path, place)
    with _temporary_beside(path, place) as (file, temporary):
        compressed = _COMPRESSORS[compression](file) if compression else file
        try:
            yield compressed
        except BaseException:
            with suppress(OSError):  # the file goes anyway
                compressed.close()
            raise
        with writing(path):
            compressed.close()
            file.close()
            os.chmod(temporary, permissions)
            os.replace(temporary, place)


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Name the file in what goes wrong when it is written."""
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _unwritable(path: str, reason: str) -> UsageError:
    return UsageError(message=f"Cannot write {named(path)}: {visible(reason)}")


def _permissions(path: str, place: str) -> int:
    """Give the permission bits of the file to replace, or of a new one; refuse what is no regular file."""
    if path == STANDARD_INPUT or is_address(path):
        raise UsageError(message=f"Cannot write `{visible(path)}`: it is not a file")
    try:
        mode = os.stat(place).st_mode
    except OSError:  # what is wrong with it, if anything, is met again when the new file is made
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
    if not stat.S_ISREG(mode):
        raise _unwritable(path, "it is a folder, not a file" if stat.S_ISDIR(mode) else "it is not a regular file")
    return stat.S_IMODE(mode)


@contextmanager
def _temporary_beside(path: str, place: str) -> Iterator[tuple[IO[bytes], str]]:
    """Make a file in the same folder, and remove it unless it was renamed."""
    with writing(path):
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(place), prefix=".geval-write-")
    file = os.fdopen(descriptor, "wb")
    try:
        yield file, temporary
    finally:
        with suppress(OSError):
            file.close()
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _gzip(file: IO[bytes]) -> BufferedIOBase:
    import gzip

    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)


def _xz(file: IO[bytes]) -> BufferedIOBase:
    import lzma

    return lzma.LZMAFile(file, "wb")


def _bzip2(file: IO[bytes]) -> BufferedIOBase:
    import bz2

    return bz2.BZ2File(file, "wb")


def _zstd(file: IO[bytes]) -> BufferedIOBase:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdFile(file, "wb", options={zstd.CompressionParameter.checksum_flag: 1})


_COMPRESSORS: dict[str, Callable[[IO[bytes]], BufferedIOBase]] = {
    "gzip": _gzip,
    "xz": _xz,
    "bzip2": _bzip2,
    "zstd": _zstd,
}
