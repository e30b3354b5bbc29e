"""Open what a user names, and give its lines in blocks.

A source is a path, ``-`` (standard input) or an ``http(s)://`` address. What is compressed is decompressed
(:mod:`geval_py.reading.compression`).

Lines end in LF. A byte order mark at the start of a file is dropped, and so is a header line, if one is named.
Carriage returns stay in the bytes: who decodes a block drops them (:func:`decode_lines`).
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from geval_py.errors import UnreadableFileError
from geval_py.reading.compression import MAGIC_BYTES, Decompressed, Readable, compression_of

T = TypeVar("T")
Bytes: TypeAlias = bytes | memoryview

STANDARD_INPUT = "-"
BLOCK_BYTES = 1 << 21
HTTP_TIMEOUT_SECONDS = 30
HTTP_MAX_BYTES = 4 << 30
READ_AHEAD_BYTES = 1 << 16
LF = 0x0A
MOST_LINE_BYTES = 2 << 30  # a decompression bomb of one line would fill the memory before any other limit
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Chained(io.RawIOBase):
    """A stream whose first bytes were read already, to look at them."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # a writable buffer; typeshed has no public name for it
        if self._head:
            n = min(len(buffer), len(self._head))
            buffer[:n], self._head = self._head[:n], self._head[n:]
            return n
        data = self._rest.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)


class _HttpBody(io.RawIOBase):
    """The body of an HTTP answer, checked for its length and limited in size."""

    def __init__(self, url: str) -> None:
        self._url, self._received = url, 0
        self._answer = self._guarded(lambda: _http_opener().open(url, timeout=HTTP_TIMEOUT_SECONDS))
        length = self._answer.headers.get("Content-Length", "")
        self._length = int(length) if length.isdecimal() and len(length) < 19 else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data: bytes = self._guarded(lambda: self._answer.read(len(buffer)))
        self._received += len(data)
        if self._received > HTTP_MAX_BYTES:
            raise self._failed(f"the answer is larger than {HTTP_MAX_BYTES >> 30} GiB")
        if not data and self._length is not None and self._received < self._length:
            raise self._failed(f"the answer ended after {self._received} of {self._length} bytes")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._answer.close()
        super().close()

    def _guarded(self, ask: Callable[[], T]) -> T:
        """Ask the server; make one kind of error of all that can go wrong."""
        from http.client import HTTPException
        from urllib.error import HTTPError

        try:
            return ask()
        except HTTPError as error:
            error.close()
            raise self._failed(f"the server answered {error.code} {error.reason}") from error
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise self._failed(str(reason) or type(error).__name__) from error

    def _failed(self, reason: str) -> UnreadableFileError:
        return UnreadableFileError(path=self._url, reason=reason)


def _http_opener() -> Any:
    """Make an opener of http and https only, also after a redirection."""
    from urllib import request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPRedirectHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPErrorProcessor,
        request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


class Source:
    """One opened source: its name for messages, and its decompressed bytes as a raw stream.

    ``size`` is the number of bytes as stored and ``position`` how many of them have been read; both None where
    that cannot be known (a pipe, an address).
    """

    def __init__(self, path: str, max_bytes: int | None = None) -> None:
        self.path = path
        self._file, regular = _open_raw(path)
        self.size = os.fstat(self._file.fileno()).st_size if regular else None
        try:
            head = self._read_head()
        except BaseException:
            self.close()
            raise
        if regular:
            self._file.seek(0)
        raw = self._file if regular else _Chained(head, self._file)
        compression = compression_of(head)
        self.compression = compression.name if compression else None
        self.stream = Decompressed(raw, compression, path, max_bytes) if compression else raw

    def _read_head(self) -> bytes:
        head = b""
        with naming(self.path):
            while len(head) < MAGIC_BYTES and (more := self._file.read(MAGIC_BYTES - len(head))):
                head += more
        return head

    @property
    def position(self) -> int | None:
        return None if self.size is None else self._file.tell()

    def close(self) -> None:
        if self.path != STANDARD_INPUT:
            self._file.close()


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in what goes wrong when it is opened or read."""
    try:
        yield
    except IsADirectoryError as error:
        raise UnreadableFileError(path=path, reason="it is a folder, not a file") from error
    except (OSError, ValueError) as error:
        raise UnreadableFileError(path=path, reason=getattr(error, "strerror", None) or str(error)) from error


def is_address(path: str) -> bool:
    """Tell whether a name is a web address rather than a path."""
    return path.startswith(("http://", "https://"))


def _open_raw(path: str) -> tuple[Any, bool]:
    """Open the stored bytes; the second value tells whether it is a regular file, which can be sought."""
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise UnreadableFileError(path=path, reason="it is closed")
        return sys.stdin.buffer, False
    if is_address(path):
        return _HttpBody(path), False
    with naming(path):
        file = open(path, "rb", buffering=0)
    return file, stat.S_ISREG(os.fstat(file.fileno()).st_mode)


class LineReader:
    """The lines of one source, in blocks of whole lines, each line ended by LF.

    ``header`` is the first name of the header line to skip, if the file begins with it. With ``digest``, ``sha256``
    is the digest of the decompressed bytes once all are read. A compressed file that unpacks to more than
    ``max_bytes`` is an error, and so is a line longer than MOST_LINE_BYTES.
    """

    def __init__(
        self, path: str, *, header: str | None = None, digest: bool = False, max_bytes: int | None = None
    ) -> None:
        self.source = Source(path, max_bytes)
        self.path = path
        self.has_byte_order_mark = False
        self._stream = io.BufferedReader(self.source.stream, READ_AHEAD_BYTES)
        self._digest = _new_sha256() if digest else None
        self._taking, self._taken = b"", 0
        try:
            self._first = self._skip_header(header)
        except BaseException:
            self.source.close()
            raise

    def __enter__(self) -> LineReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.source.close()

    def _skip_header(self, header: str | None) -> bytes:
        line = self._read_line()
        if line.startswith(BYTE_ORDER_MARK):
            self.has_byte_order_mark = True
            line = line[len(BYTE_ORDER_MARK) :]
        first_field = str(line.rstrip(b"\n").split(b"\t")[0], "utf-8", "replace").replace("\r", "")
        if line and first_field == header:
            return self._read_line()
        return line

    def block(self, size: int = BLOCK_BYTES) -> bytes:
        """Give the next whole lines, of about ``size`` bytes (more if a line is longer); b"" at the end."""
        buffer = bytearray()
        return bytes(buffer[: self.read_block(buffer, size)])

    def read_block(self, buffer: bytearray, size: int = BLOCK_BYTES) -> int:
        """Read the next block into a buffer, which grows if need be; gives the number of bytes, 0 at the end."""
        if len(buffer) < size:
            buffer.extend(bytes(size - len(buffer)))
        filled = len(self._first)
        if filled:
            buffer[:filled], self._first = self._first, b""
        with memoryview(buffer) as view:
            with naming(self.path):
                read = self._stream.readinto(view[filled:])
            self._hash(view[filled : filled + read])
        filled += read
        if filled and buffer[filled - 1] != LF:
            rest = self._read_line()
            buffer[filled : filled + len(rest)] = rest
            filled += len(rest)
            if not rest.endswith(b"\n"):
                filled = self._end_last_line(buffer, filled)
        return filled

    def _end_last_line(self, buffer: bytearray, filled: int) -> int:
        """Give the file's last line the line end that it lacks; carriage returns alone are no line."""
        start = buffer.rfind(b"\n", 0, filled) + 1
        if not buffer[start:filled].strip(b"\r"):
            return start
        buffer[filled : filled + 1] = b"\n"
        return filled + 1

    def take(self, lines: int) -> bytes:
        """Give the next ``lines`` lines, fewer at the end. It reads ahead: do not call block() after it."""
        parts = []
        while lines:
            if self._taken == len(self._taking):
                self._taking, self._taken = self.block(READ_AHEAD_BYTES), 0
                if not self._taking:
                    break
            end, found = _end_of_lines(self._taking, self._taken, lines)
            parts.append(self._taking[self._taken : end])
            self._taken = end
            lines -= found
        return b"".join(parts)

    def count_rest(self) -> int:
        """Read what is left and count its lines."""
        lines = self._taking.count(b"\n", self._taken)
        self._taking, self._taken = b"", 0
        buffer = bytearray()
        while filled := self.read_block(buffer):
            lines += buffer.count(b"\n", 0, filled)
        return lines

    @property
    def sha256(self) -> str | None:
        return self._digest.hexdigest() if self._digest else None

    def _read_line(self) -> bytes:
        with naming(self.path):
            line = self._stream.readline(MOST_LINE_BYTES)
        if len(line) == MOST_LINE_BYTES:
            raise UnreadableFileError(path=self.path, reason=f"a line is longer than {MOST_LINE_BYTES >> 30} GiB")
        self._hash(line)
        return line

    def _hash(self, data: Bytes) -> None:
        if self._digest:
            self._digest.update(data)


def _end_of_lines(data: bytes, start: int, lines: int) -> tuple[int, int]:
    """Find where the next ``lines`` lines end, or the data; gives the place, and how many lines there are."""
    found = data.count(b"\n", start)
    if found <= lines:
        return len(data), found
    low, high, left = start, len(data), lines
    while high - low > 1:  # the last of the lines ends after low, and not after high
        middle = (low + high) // 2
        before = data.count(b"\n", low, middle)
        if before >= left:
            high = middle
        else:
            low, left = middle, left - before
    return high, lines


def _new_sha256() -> Any:
    from hashlib import sha256

    return sha256()


def decode_lines(block: Bytes) -> list[str]:
    """Decode a block: carriage returns dropped, undecodable bytes as U+FFFD, a string a line."""
    lines = str(block, "utf-8", "replace").replace("\r", "").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def read_lines(path: str, *, header: str | None = None) -> Iterator[str]:
    """Give the decoded lines of a whole source."""
    with LineReader(path, header=header) as reader:
        while block := reader.block():
            yield from decode_lines(block)
