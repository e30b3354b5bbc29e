"""A .zip archive as a source."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from geval_py.board.intake.budget import Budget
from geval_py.board.intake.members import Readable, checked_name, refused
from geval_py.board.intake.nesting import Archive, check_regular
from geval_py.board.intake.streams import Bounded, Guarded
from geval_py.board.values import RejectedError
from geval_py.errors import GevalError
from geval_py.text import visible

DIRECTORY_BYTES = 1 << 22  # of the list of members, which is read whole
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of the others zipfile unpacks any number of bytes at once
ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13  # APPNOTE.TXT 6.3.10, section 4.4.4: encryption, a strong one, a hidden list


class Zip(Archive):
    """A .zip archive."""

    def __init__(self, path: str, budget: Budget) -> None:
        super().__init__(path, budget)
        self._file = open(path, "rb", buffering=0)

    def __enter__(self) -> Zip:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        seen: set[str] = set()
        with self._said():
            archive = zipfile.ZipFile(Bounded(self._file, self._shown, DIRECTORY_BYTES))
        with archive:
            members = archive.infolist()
            if len(members) > self._budget.files:
                raise RejectedError(reason=f"the archive has more than {self._budget.files} members")
            for member in members:
                name = checked_name(member.filename.replace("\\", "/"))
                if member.is_dir() or member.filename.endswith("\\"):
                    continue
                _check(member, name, seen)
                if wanted(name):
                    with self._said():
                        data = archive.open(member)
                    with data:
                        yield name, Guarded(data, self._said)

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except GevalError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, OverflowError) as error:
            reason = f"`{self._shown}` is no zip archive, or is damaged: {visible(str(error))}"
            raise RejectedError(reason=reason) from error


def _check(member: zipfile.ZipInfo, name: str, seen: set[str]) -> None:
    """Refuse what is no plain file that can be unpacked."""
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
