"""Decompress what is compressed, told by its magic number: .xz, .gz, .bz2 and .zst.

Files of several members or frames are read whole; a truncated or damaged one is an error. (The readers in Python's
own ``lzma`` and ``bz2`` drop damaged trailing data without a word, so the decompressors are driven here.)
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from geval_py.errors import CorruptFileError, TooLargeError

COMPRESSED_ENDINGS = (".xz", ".gz", ".bz2", ".zst")
COMPRESSED_CHUNK = 1 << 18
XZ_MEMORY_LIMIT = 1 << 30  # bytes: a stranger's .xz may ask for 4 GiB of dictionary


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int = -1, /) -> bytes | None: ...


class Decompressor(Protocol):
    """What Python's incremental decompressors have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Decompress some bytes of one member."""


class _Gunzip:
    """One member of a .gz file, with the interface of the other decompressors."""

    def __init__(self) -> None:
        import zlib

        self._inflate = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        out = self._inflate.decompress(self._inflate.unconsumed_tail + data, max(max_length, 0))
        self.needs_input = not self._inflate.unconsumed_tail and len(out) < max_length
        return out


def _gunzip() -> tuple[Decompressor, type[Exception]]:
    import zlib

    return _Gunzip(), zlib.error


def _unxz() -> tuple[Decompressor, type[Exception]]:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_LIMIT), lzma.LZMAError


def _bunzip2() -> tuple[Decompressor, type[Exception]]:
    import bz2

    return bz2.BZ2Decompressor(), OSError


def _unzstd() -> tuple[Decompressor, type[Exception]]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdDecompressor(), zstd.ZstdError


class Compression(NamedTuple):
    """A compression: its name in messages, the bytes that a file begins with, and how to undo it."""

    name: str
    magic: tuple[bytes, ...]
    decompressor: Callable[[], tuple[Decompressor, type[Exception]]]  # of one member, and its error
    padding: bytes  # what may stand between and after members


# Magic numbers: RFC 1952; the xz file format 1.2.1, section 2.1.1.1; bzip2 ("BZh", a level, and the digits of
# pi or, in a file of nothing, of its square root); RFC 8878, sections 3.1.1 and 3.1.2.
COMPRESSIONS = (
    Compression("gzip", (b"\x1f\x8b\x08",), _gunzip, b"\0"),
    Compression("xz", (b"\xfd7zXZ\0",), _unxz, b"\0"),
    Compression(
        "bzip2",
        tuple(b"BZh%d" % n + end for n in range(1, 10) for end in (b"1AY&SY", b"\x17rE8P\x90")),
        _bunzip2,
        b"",
    ),
    Compression(
        "zstd", (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))), _unzstd, b""
    ),
)
MAGIC_BYTES = max(len(m) for c in COMPRESSIONS for m in c.magic)


def compression_of(head: bytes) -> Compression | None:
    """Tell a compression by a file's first bytes; None if there is none."""
    return next((c for c in COMPRESSIONS if head.startswith(c.magic)), None)


class Decompressed(io.RawIOBase):
    """The bytes of all members of a compressed stream; raises CorruptFileError where it is damaged."""

    def __init__(self, compressed: Readable, compression: Compression, path: str, max_bytes: int | None) -> None:
        self._compressed, self._compression, self._path = compressed, compression, path
        self._max_bytes, self._given = max_bytes, 0
        self._member, self._error = compression.decompressor()
        self._pending = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ended:
            if not self._pending and self._member.needs_input:
                self._pending = self._compressed.read(COMPRESSED_CHUNK) or b""
                if not self._pending:
                    raise self._corrupt("it ends before its end mark")
            data = self._decompress(len(buffer))
            if self._member.eof:
                self._start_next_member(self._member.unused_data)
            if data:
                self._given += len(data)
                if self._max_bytes is not None and self._given > self._max_bytes:
                    raise TooLargeError(path=self._path, max_bytes=self._max_bytes)
                buffer[: len(data)] = data
                return len(data)
        return 0

    def _decompress(self, limit: int) -> bytes:
        pending, self._pending = self._pending, b""
        try:
            return self._member.decompress(pending, limit)
        except self._error as error:
            raise self._corrupt(str(error)) from error

    def _start_next_member(self, following: bytes) -> None:
        """After one member: padding is skipped, another member begins, anything else is damage."""
        while not (following := following.lstrip(self._compression.padding)):
            following = self._compressed.read(COMPRESSED_CHUNK) or b""
            if not following:
                self._ended = True
                return
        while len(following) < MAGIC_BYTES and (more := self._compressed.read(COMPRESSED_CHUNK)):
            following += more
        if compression_of(following) is not self._compression:
            raise self._corrupt("something else follows its end mark")
        self._member, self._error = self._compression.decompressor()
        self._pending = following

    def _corrupt(self, reason: str) -> CorruptFileError:
        return CorruptFileError(path=self._path, compression=self._compression.name, reason=reason)
