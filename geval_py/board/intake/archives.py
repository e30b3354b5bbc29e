"""Archives as sources: .zip, and .tar in all compressions.

zipfile and tarfile trust the headers of an archive; the streams here bound what a header may claim.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import IO, cast

from geval_py.board.intake.identity import ARCHIVES, bare_name
from geval_py.board.intake.members import Budget, Commit, Readable, checked_name, refused
from geval_py.board.submission import RejectedError
from geval_py.errors import CorruptFileError, GevalError, TooLargeError
from geval_py.reading.sources import Source
from geval_py.text import visible

NESTED = (*ARCHIVES, ".7z", ".rar", ".tar.bz2", ".tbz2", ".txz", ".tzst", ".jar", ".whl", ".cab", ".iso")


class Archive:
    """The common part of archives; sets ``packed`` of the budget."""

    strips = True
    commit: Commit | None = None

    def __init__(self, path: str, budget: Budget) -> None:
        self.path = self.address = path
        self.name, self._shown = bare_name(path), visible(os.path.basename(path))
        self._budget = budget
        budget.packed = os.path.getsize(path)
        if budget.packed > self._most:
            raise RejectedError(reason=f"`{self._shown}` has more than {self._most} bytes")

    @property
    def _most(self) -> int:
        """The most bytes of an archive, packed or not, its headers included."""
        return self._budget.bytes + (self._budget.files + 1) * (HEADER_BYTES + BLOCK)


def check_regular(name: str, seen: set[str]) -> None:
    """Add a name to ``seen``; raises RejectedError for a name seen before, and for a nested archive."""
    if name in seen:
        raise refused(name, "is in the archive twice")
    seen.add(name)
    if name.lower().endswith(NESTED):
        raise refused(name, "is an archive inside of the archive; pack its files themselves")


STEP = 1 << 16
REMEMBERED = 1 << 10  # last bytes that may be read again


class Forward:
    """A stream read forwards; the reader may skip, and go back by a few bytes.

    ``headers_left`` is how many bytes of headers may still be read, None for no bound: tarfile reads a header whole,
    whatever length it claims.
    """

    def __init__(self, raw: Readable, name: str, budget: Budget) -> None:
        self._raw, self._name, self._budget = raw, name, budget
        self._place = 0  # where the caller reads next
        self._end = 0  # how many bytes of the stream were read
        self.last = b""  # the last of them
        self.headers_left: int | None = None

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, fewer at the end; raises RejectedError beyond ``headers_left``."""
        if self.headers_left is not None:
            if not 0 <= size <= self.headers_left:
                raise RejectedError(reason=f"a header in `{self._name}` is larger than headers are")
            self.headers_left -= size
        again = self.last[len(self.last) - (self._end - self._place) :][:size] if self._place < self._end else b""
        parts, left = [again], size - len(again)
        while left > 0 and (data := self._next(left)):
            parts.append(data)
            left -= len(data)
        found = b"".join(parts)
        self._place += len(found)
        return found

    def _next(self, most: int) -> bytes:
        data = self._raw.read(min(most, STEP))
        self._budget.check_time()
        self._end += len(data)
        self.last = (self.last + data)[-REMEMBERED:]
        return data

    def seek(self, place: int, whence: int = os.SEEK_SET, /) -> int:
        """Skip to a place; raises RejectedError if that is too far back."""
        if whence != os.SEEK_SET or place < self._end - len(self.last):
            raise RejectedError(reason=f"the headers of `{self._name}` point backwards")
        while place > self._end and self._next(place - self._end):
            pass
        self._place = min(place, self._end)
        return self._place

    def tell(self) -> int:
        return self._place


class Bounded(io.BufferedReader):
    """A file of which one read returns at most ``most`` bytes."""

    def __init__(self, file: IO[bytes], name: str, most: int) -> None:
        super().__init__(io.FileIO(file.fileno(), closefd=False))
        self._shown, self._most = name, most

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes, or all; raises RejectedError if they are more than a header may have."""
        most = self._most + 1 if size is None or size < 0 else size
        data = b"" if most > self._most + 1 else super().read(most)
        if most > self._most and (not data or len(data) > self._most):
            raise RejectedError(reason=f"a header in `{self._shown}` is larger than headers are")
        return data


class Guarded:
    """A member whose errors are raised as errors of its archive."""

    def __init__(self, data: IO[bytes], guard: Callable[[], AbstractContextManager[None]]) -> None:
        self._data, self._guard = data, guard

    def read(self, size: int, /) -> bytes:
        with self._guard():
            return self._data.read(size)


DIRECTORY_BYTES = 1 << 22  # of the list of members, which is read whole
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # with others zipfile unpacks any number of bytes at once
ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13  # APPNOTE.TXT 6.3.10, section 4.4.4: encryption, a strong one, a hidden list


class Zip(Archive):
    """A .zip archive."""

    def __init__(self, path: str, budget: Budget) -> None:
        super().__init__(path, budget)
        self._file = open(path, "rb", buffering=0)

    def __enter__(self) -> Zip:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        seen: set[str] = set()
        with self._errors_translated():
            archive = zipfile.ZipFile(Bounded(self._file, self._shown, DIRECTORY_BYTES))
        with archive:
            members = archive.infolist()
            if len(members) > self._budget.files:
                raise RejectedError(reason=f"the archive has more than {self._budget.files} members")
            for member in members:
                name = checked_name(member.filename.replace("\\", "/"))
                if member.is_dir() or member.filename.endswith("\\"):
                    continue
                _check_zip(member, name, seen)
                if wanted(name):
                    with self._errors_translated():
                        data = archive.open(member)
                    with data:
                        yield name, Guarded(data, self._errors_translated)

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        try:
            yield
        except GevalError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, OverflowError) as error:
            reason = f"`{self._shown}` is no zip archive, or is damaged: {visible(str(error))}"
            raise RejectedError(reason=reason) from error


def _check_zip(member: zipfile.ZipInfo, name: str, seen: set[str]) -> None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise refused(name, "is a link; an archive with links is not taken")
    if kind not in (0, stat.S_IFREG):
        raise refused(name, "is not a regular file but a device, a pipe or the like")
    if "\0" in member.orig_filename:
        raise refused(member.orig_filename, "has a name with a NUL")
    if member.flag_bits & ENCRYPTED:
        raise refused(name, "is encrypted")
    if member.compress_type not in METHODS:
        raise refused(name, "is packed by another method than deflate")
    check_regular(name, seen)


HEADER_BYTES = 1 << 16  # of one member: its own header, and those before it for a long name and so on
BLOCK = 512  # POSIX.1-2017, pax, "ustar Interchange Format"


class Tar(Archive):
    """A tar archive, compressed or not, whose members are read one after the other."""

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        seen: set[str] = set()
        with self._errors_translated():
            source = Source(self.path, self._most)
        with closing(source):
            stream = Forward(cast(Readable, source.stream), self._shown, self._budget)
            stream.headers_left = HEADER_BYTES
            with self._errors_translated():
                archive = tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:", errorlevel=2)
            for count, member in enumerate(self._members(archive, stream), 1):
                if count > self._budget.files:
                    raise RejectedError(reason=f"the archive has more than {self._budget.files} members")
                name = checked_name(member.name)
                if member.isdir():
                    continue
                _check_tar(member, name, seen)
                if wanted(name) and (data := archive.extractfile(member)) is not None:
                    with closing(data):
                        yield name, Guarded(data, self._errors_translated)

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        try:
            yield
        except TooLargeError as error:
            raise RejectedError(reason=f"`{self._shown}` unpacks to more than {error.max_bytes} bytes") from None
        except CorruptFileError as error:
            raise self._damaged(error.reason) from error
        except GevalError:
            raise
        except (tarfile.TarError, EOFError, OSError, ValueError, RecursionError, OverflowError) as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, why: str) -> RejectedError:
        return RejectedError(reason=f"`{self._shown}` is no tar archive, or is damaged: {visible(why)}")

    def _members(self, archive: tarfile.TarFile, stream: Forward) -> Iterator[tarfile.TarInfo]:
        """Yield the members. tarfile takes a damaged header for the end, but the end is a block of zeros."""
        while True:
            stream.headers_left = HEADER_BYTES
            with self._errors_translated():
                member = archive.next()
            if member is None:
                break
            stream.headers_left = None
            yield member
        if stream.last[-BLOCK:].strip(b"\0") or not stream.last:
            raise self._damaged("it ends before its end mark")


def _check_tar(member: tarfile.TarInfo, name: str, seen: set[str]) -> None:
    if member.issym() or member.islnk():
        raise refused(name, "is a link; an archive with links is not taken")
    if member.issparse():
        raise refused(name, "is a sparse file; pack it as a plain one")
    if not member.isreg():
        raise refused(name, "is not a regular file but a device, a pipe or the like")
    check_regular(name, seen)
