"""A tar archive as a source, packed or not: its headers are read by tarfile, its members one after the other."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import IO, cast

from geval_py.board.intake.members import Readable, checked_name, refused
from geval_py.board.intake.nesting import Archive, check_regular
from geval_py.board.intake.streams import Forward, Guarded
from geval_py.board.values import RejectedError
from geval_py.errors import CorruptFileError, GevalError, TooLargeError
from geval_py.reading.sources import Source
from geval_py.text import visible

HEADER_BYTES = 1 << 16  # of one member: its own header, and those before it for its long name and the like
BLOCK = 512  # POSIX.1-2017, pax, "ustar Interchange Format"


class Tar(Archive):
    """A tar archive, packed or not."""

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        seen: set[str] = set()
        with self._said():
            source = Source(self.path, self._most)
        with closing(source):
            stream = Forward(cast(Readable, source.stream), self._shown, self._budget)
            stream.headers_left = HEADER_BYTES
            with self._said():
                archive = tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:", errorlevel=2)
            for count, member in enumerate(self._members(archive, stream), 1):
                if count > self._budget.files:
                    raise RejectedError(reason=f"the archive has more than {self._budget.files} members")
                name = checked_name(member.name)
                if member.isdir():
                    continue
                _check(member, name, seen)
                if wanted(name) and (data := archive.extractfile(member)) is not None:
                    with closing(data):
                        yield name, Guarded(data, self._said)

    @property
    def _most(self) -> int:
        """How many bytes the archive may unpack to, with all headers."""
        return self._budget.bytes + (self._budget.files + 1) * (HEADER_BYTES + BLOCK)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Raise RejectedError for what cannot be read of the archive."""
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
        """Give the members; tarfile takes a damaged header for the end, which is a block of zeros."""
        while True:
            stream.headers_left = HEADER_BYTES
            with self._said():
                member = archive.next()
            if member is None:
                break
            stream.headers_left = None
            yield member
        if stream.last[-BLOCK:].strip(b"\0") or not stream.last:
            raise self._damaged("it ends before its end mark")


def _check(member: tarfile.TarInfo, name: str, seen: set[str]) -> None:
    """Refuse what is no plain file."""
    if member.issym() or member.islnk():
        raise refused(name, "is a link; an archive with links is not taken")
    if member.issparse():
        raise refused(name, "is a sparse file; pack it as a plain one")
    if not member.isreg():
        raise refused(name, "is not a regular file but a device, a pipe or the like")
    check_regular(name, seen)
