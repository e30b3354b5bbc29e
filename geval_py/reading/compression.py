"""What a file is by its first bytes: compressed (.xz, .gz, .bz2 or .zst), or something else than lines of text.

A compression is recognised by its magic number when read, by the ending when written. All members or frames of a file
are read; truncated or damaged data is an error. (The file readers in Python's ``lzma`` and ``bz2`` silently drop
damaged trailing data, so this module calls the decompressors itself.)
"""

from __future__ import annotations

import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any, NamedTuple

from geval_py.errors import CorruptFileError, TooLargeError

COMPRESSED_CHUNK = 1 << 18
READ_AHEAD_BYTES = 1 << 16
XZ_MEMORY_LIMIT = 1 << 30  # bytes: a stranger's .xz may ask for 4 GiB of dictionary


ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"  # Python's own, or its backport


def zstd_module() -> Any:
    """Import the library of Zstandard."""
    return import_module(ZSTD)


class _Gunzip:
    """One member of a .gz file, with the interface of the other decompressors."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self.needs_input, self.eof, self.unused_data = True, False, b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        inflate = self._inflate
        out = inflate.decompress(inflate.unconsumed_tail + data, max_length)
        self.needs_input = not inflate.unconsumed_tail and len(out) < max_length
        self.eof, self.unused_data = inflate.eof, inflate.unused_data
        return out


class Compression(NamedTuple):
    """A compression: its name in messages, the ending of file names, and the possible beginnings of a file.

    ``padding`` is allowed between and after members. The ``module`` is the library's name: to import all of them
    would take a twentieth of the command's start. With the library, ``decompressor`` returns a decompressor of one
    member, and the error that it raises; ``compressor`` returns a writer that compresses into an open file, and
    leaves that open.
    """

    name: str
    ending: str
    magic: tuple[bytes, ...]
    module: str
    decompressor: Callable[[Any], tuple[Any, type[Exception]]]
    compressor: Callable[[Any, IO[bytes]], io.BufferedIOBase] = lambda library, file: library.open(file, "wb")
    padding: bytes = b""


def _open_zstd(zstd: Any, file: IO[bytes]) -> io.BufferedIOBase:
    stream: io.BufferedIOBase = zstd.ZstdFile(file, "wb", options={zstd.CompressionParameter.checksum_flag: 1})
    stream.write(b"")  # or a file of no bytes would have no frame, and be damaged
    return stream


# Magic numbers: the xz file format 1.2.1, section 2.1.1.1; RFC 1952; bzip2 ("BZh", a level, and the digits of pi or,
# in an empty file, of its square root); RFC 8878, sections 3.1.1 and 3.1.2.
COMPRESSIONS = (
    Compression(
        name="xz",
        ending=".xz",
        magic=(b"\xfd7zXZ\0",),
        padding=b"\0",
        module="lzma",
        decompressor=lambda lzma: (lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_LIMIT), lzma.LZMAError),
    ),
    Compression(
        name="gzip",
        ending=".gz",
        magic=(b"\x1f\x8b\x08",),
        padding=b"\0",
        module="gzip",
        decompressor=lambda _: (_Gunzip(), zlib.error),
        compressor=lambda gzip, file: gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0),
    ),
    Compression(
        name="bzip2",
        ending=".bz2",
        magic=tuple(b"BZh%d" % n + end for n in range(1, 10) for end in (b"1AY&SY", b"\x17rE8P\x90")),
        module="bz2",
        decompressor=lambda bz2: (bz2.BZ2Decompressor(), OSError),
    ),
    Compression(
        name="zstd",
        ending=".zst",
        magic=(b"\x28\xb5\x2f\xfd", *(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))),
        module=ZSTD,
        decompressor=lambda zstd: (zstd.ZstdDecompressor(), zstd.ZstdError),
        compressor=_open_zstd,
    ),
)
COMPRESSED_ENDINGS = tuple(compression.ending for compression in COMPRESSIONS)
MAGIC_BYTES = max(len(magic) for compression in COMPRESSIONS for magic in compression.magic)


def compression_of(head: bytes) -> Compression | None:
    """Return the compression with a file's first bytes, None if it is not compressed."""
    return next((one for one in COMPRESSIONS if head.startswith(one.magic)), None)


def compression_by_ending(path: str) -> str | None:
    """Return the name of the compression with a path's ending, None if it has no such ending.

    >>> compression_by_ending("out.tsv.xz"), compression_by_ending("out.tsv")
    ('xz', None)
    """
    return next((one.name for one in COMPRESSIONS if path.endswith(one.ending)), None)


class Decompressed(io.RawIOBase):
    """The decompressed bytes of all members of a stream; raises CorruptFileError if it is damaged.

    Raises TooLargeError if there are more than ``max_bytes``.
    """

    def __init__(
        self, compressed: io.RawIOBase | io.BytesIO, compression: Compression, path: str, max_bytes: int | None
    ) -> None:
        self._compressed, self._compression, self._path, self._max_bytes = compressed, compression, path, max_bytes
        self._size = 0
        self._library = import_module(compression.module)
        self._member, self._error = compression.decompressor(self._library)
        self._pending = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data and not self._ended:
            if self._member.eof:  # only now: an error must not come before the bytes of a whole member
                self._start_next_member(self._member.unused_data)
                continue
            if not self._pending and self._member.needs_input:
                self._pending = self._compressed.read(COMPRESSED_CHUNK) or b""
                if not self._pending:
                    raise self._corrupt("it ends before its end mark")
            pending, self._pending = self._pending, b""
            try:
                data = self._member.decompress(pending, len(buffer))
            except self._error as error:
                raise self._corrupt(str(error)) from error
        self._size += len(data)
        if self._max_bytes is not None and self._size > self._max_bytes:
            raise TooLargeError(path=self._path, max_bytes=self._max_bytes)
        buffer[: len(data)] = data
        return len(data)

    def _start_next_member(self, following: bytes) -> None:
        """Skip padding and begin another member; anything else is damage."""
        while not (following := following.lstrip(self._compression.padding)):
            following = self._compressed.read(COMPRESSED_CHUNK) or b""
            if not following:
                self._ended = True
                return
        while len(following) < MAGIC_BYTES and (more := self._compressed.read(COMPRESSED_CHUNK)):
            following += more
        if compression_of(following) is not self._compression:
            raise self._corrupt("something else follows its end mark")
        self._member, self._error = self._compression.decompressor(self._library)
        self._pending = following

    def _corrupt(self, reason: str) -> CorruptFileError:
        return CorruptFileError(path=self._path, compression=self._compression.name, reason=reason)


def unpacked(
    stored: io.FileIO | io.BytesIO, path: str, max_bytes: int | None
) -> tuple[io.BufferedReader, str | None]:
    """Return a stream of the decompressed bytes of an open file, whose first bytes say how; and the compression.

    Raises OSError; reading raises as :class:`Decompressed`.
    """
    compression = compression_of(stored.read(MAGIC_BYTES))
    stored.seek(0)
    raw: Any = Decompressed(stored, compression, path, max_bytes) if compression else stored
    return io.BufferedReader(raw, READ_AHEAD_BYTES), compression and compression.name


@contextmanager
def open_unpacked(path: str, max_bytes: int | None = None) -> Iterator[io.BufferedReader]:
    """Open a file for its bytes, decompressed if it is compressed; raises as :func:`unpacked`."""
    with open(path, "rb", buffering=0) as file:
        yield unpacked(file, path, max_bytes)[0]


# Other contents than lines of text

_ZIP = rb"PK\x03\x04.{26}"  # up to the name of the first member
_ARRAYS = "write its rows with geval_py.write_output('out.tsv', probabilities, vocabulary=words)"
CONTENTS = (  # how a file begins, what it is, and what to do; the first that fits
    (rb"version https://git-lfs\.github\.com/spec/", "a git-lfs pointer", "run git lfs pull"),
    (rb"[./]*(\.git)?/annex/objects/", "a git-annex pointer", "run git annex get"),
    (rb".{257}ustar(\x00|  \x00)", "a tar archive", "unpack it with tar -xf"),
    (_ZIP + rb"(\[Content_Types\]\.xml|docProps/|_rels/|xl/)", "an Excel workbook", "save it as text or CSV"),
    (_ZIP + rb"[^/]+\.npy", "a file of numpy arrays (.npz)", _ARRAYS),
    (_ZIP + rb"[^/]+/data\.pkl", "a file of PyTorch", f"load it with torch.load, and {_ARRAYS}"),
    (rb"PK(\x03\x04|\x05\x06)", "a zip archive", "unpack it"),
    (rb".{6}\x00\x00\{\"", "a file of safetensors", f"it has numbers without words: {_ARRAYS}"),
    (rb"\x80[\x02-\x05]", "a pickle of Python or PyTorch", f"load it, and {_ARRAYS}"),
    (rb"\x93NUMPY", "a numpy array (.npy)", _ARRAYS),
    (rb"\x1f\x8b\x08|BZh[1-9]|\xfd7zXZ\x00|\x28\xb5\x2f\xfd", "compressed twice", "decompress it once"),
    (rb"PAR1\x15", "Parquet", "name it .parquet"),
    (rb"SQLite format 3\x00", "an SQLite database", "export the table as CSV"),
    (rb"%PDF-", "a PDF document", "export the text"),
    (rb"\s*(?i:<!doctype html)", "an HTML page", "download the file itself, perhaps by its raw link"),
)
NO_LINES = re.compile(  # how a file begins that is compressed, or has another content than lines
    b"|".join(
        [re.escape(magic) for one in COMPRESSIONS for magic in one.magic] + [start for start, _, _ in CONTENTS]
    ),
    re.DOTALL,
)


def foreign_content(head: bytes) -> str | None:
    """Return what a file is that begins with these bytes, and what to do; None for lines of text.

    ``head`` are the first 512 bytes or more; of a compressed file, those inside.

    >>> foreign_content(b"%PDF-1.7"), foreign_content(b"the:0.5 :0.5")
    ('a PDF document: export the text', None)
    """
    matches = (f"{what}: {advice}" for start, what, advice in CONTENTS if re.match(start, head, re.DOTALL))
    return next(matches, None)
