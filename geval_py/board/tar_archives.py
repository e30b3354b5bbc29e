"""Tar archives with a digest of each member: every damage of one that is not compressed is found, to the bit.

The last member, ``SHA256SUMS``, has the digests in the form of ``sha256sum``, which can check an unpacked archive.
The bytes between the contents have only one form: a reader makes them again from the names and sizes, and compares.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import IO, Protocol, cast

from geval_py.errors import CorruptFileError
from geval_py.text import visible

DIGESTS_FILE = "SHA256SUMS"
CHUNK_BYTES = 1 << 20
MOST_DIGESTS = 64_000_000  # bytes of SHA256SUMS


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Hashed:
    """A stream that hashes the bytes that are read from it."""

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream
        self.found = sha256()

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self.found.update(data)
        return data


def write_tar(file: IO[bytes], members: Mapping[str, str]) -> None:
    """Write files, by their names in the archive, and their digests, as a tar archive; raises OSError."""
    lines = []
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(members):
            with open(members[name], "rb") as opened:
                content = _Hashed(opened)
                archive.addfile(_member(name, os.fstat(opened.fileno()).st_size), cast(IO[bytes], content))
            lines.append(_line(name, content))
        digests = b"".join(lines)
        archive.addfile(_member(DIGESTS_FILE, len(digests)), io.BytesIO(digests))


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def _line(name: str, content: _Hashed) -> bytes:
    r"""Write a line as sha256sum does: one with a line end or a backslash in its name begins with a backslash."""
    escaped = name.replace("\\", r"\\").replace("\n", r"\n").replace("\r", r"\r")
    mark = "" if escaped == name else "\\"
    line = f"{mark}{content.found.hexdigest()}  {escaped}\n"
    return line.encode("utf-8", "surrogateescape")


def read_tar(stream: IO[bytes], path: str, folder: str, check: Callable[[tarfile.TarInfo], None]) -> None:
    """Unpack an archive into a new folder; ``check`` raises an error for a member that is not to be unpacked.

    An archive of an earlier version may have no digests. Raises CorruptFileError, which names the archive by its
    ``path``, for a digest that is wrong, and for any byte outside of the contents that :func:`write_tar` would not
    have written.
    """
    raw, form = _Hashed(stream), _Form()
    lines: dict[bytes, str] = {}
    digests: bytes | None = None
    try:
        with tarfile.open(fileobj=cast(IO[bytes], raw), mode="r|") as archive:
            for member in archive:
                content = _Hashed(cast(IO[bytes], archive.extractfile(member)) if member.isreg() else io.BytesIO())
                if member.name == DIGESTS_FILE and digests is None:
                    digests = content.read(MOST_DIGESTS)
                    form.add(member, io.BytesIO(digests), io.BytesIO())
                    continue
                check(member)
                place = os.path.join(folder, *member.name.split("/"))
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "xb") as copy:
                    form.add(member, content, copy)
                lines[_line(member.name, content)] = member.name
        while raw.read(CHUNK_BYTES):
            pass
    except tarfile.TarError as error:
        raise CorruptFileError(path=path, compression="tar", reason=str(error)) from error
    known = set(lines) if digests is None else set(digests.splitlines(keepends=True))
    wrong = next((name for line, name in lines.items() if line not in known), None)
    if wrong is not None:
        reason = f"`{visible(wrong)}` does not have the digest that {DIGESTS_FILE} says"
        raise CorruptFileError(path=path, compression="tar", reason=reason)
    if known != set(lines) or raw.found.digest() != form.digest():
        raise CorruptFileError(path=path, compression="tar", reason="it was changed after it was written")


class _Form:
    """The bytes of an archive with some members, hashed."""

    def __init__(self) -> None:
        self._found = sha256()
        self._bytes = 0

    def add(self, member: tarfile.TarInfo, content: _Readable, copy: IO[bytes]) -> None:
        """Add a member, and copy its content."""
        form = _member(member.name, member.size).tobuf(tarfile.PAX_FORMAT, tarfile.ENCODING, "surrogateescape")
        self._add(form)
        while chunk := content.read(CHUNK_BYTES):
            copy.write(chunk)
            self._add(chunk)
        self._fill(tarfile.BLOCKSIZE)

    def digest(self) -> bytes:
        """End the archive, and return the digest of all."""
        self._add(bytes(2 * tarfile.BLOCKSIZE))
        self._fill(tarfile.RECORDSIZE)
        return self._found.digest()

    def _add(self, data: bytes) -> None:
        self._found.update(data)
        self._bytes += len(data)

    def _fill(self, size: int) -> None:
        self._add(bytes(-self._bytes % size))
