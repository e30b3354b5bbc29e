"""The lines of a file: all, in blocks of whole lines; those between two offsets; or those at some places.

Lines end in LF. A byte order mark at the start of a file is dropped, and so is a header line, if it is named.
Carriage returns stay in blocks; :func:`decode_lines` drops them.
"""

from __future__ import annotations

import codecs
import io
import os
import weakref
from array import array
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

from geval_py.errors import LineCountError, TooLargeError, UnsupportedEncodingError
from geval_py.reading.compression import READ_AHEAD_BYTES
from geval_py.reading.files import READ_ERRORS, File, changed, naming, unreadable

Bytes: TypeAlias = bytes | memoryview
ReadAt: TypeAlias = Callable[[int, int], Bytes]  # reads so many bytes from an offset on, or fewer

BLOCK_BYTES = 1 << 19
LF = 0x0A
DEFAULT_MAX_BYTES = 20 * 10**9  # that a file from a stranger may unpack to
MAX_LINE_BYTES = 256_000_000  # a decompression bomb of one line would otherwise fill the memory
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
IN_UTF_16 = "it is UTF-16 or UTF-32 text; write it as UTF-8 (in PowerShell, with `Out-File -Encoding utf8`)"
NUL_SHARE = 1 / 3  # of the first line: in UTF-16 and UTF-32, ASCII has a NUL before or after each character


class LineReader(AbstractContextManager["LineReader"]):
    """Reads a file, or the file at a path, in blocks of whole lines, each ended by LF.

    ``header`` is the first name of the header line to skip, if the file begins with it. ``size`` is the number of
    stored bytes. Raises UnreadableFileError, TooLargeError for a compressed file that unpacks to more than
    ``max_bytes``, and for a line longer than MAX_LINE_BYTES, and UnsupportedEncodingError.
    """

    def __init__(self, file: File | str, *, header: str | None = None, max_bytes: int | None = None) -> None:
        self.file = file if isinstance(file, File) else File(file)
        if max_bytes is not None:
            self.file.max_bytes = max_bytes
        self.path, self.header = self.file.name, header
        self._stream, self._stored, self.size, self.compression = self.file.open()
        try:
            self._start()
        except BaseException:
            self._stored.close()
            raise

    def _start(self) -> None:
        """Skip the byte order mark and the header line."""
        line = self._read_line()
        head = line[:READ_AHEAD_BYTES]
        following = self._stream.peek(1)
        least = 1 if head.startswith(UTF_16_MARKS) else NUL_SHARE * len(head)
        nuls = (head + following[:1]).count(b"\0")  # the first NUL may be in the line end
        if nuls and nuls >= least:
            raise UnsupportedEncodingError(path=self.path, reason=IN_UTF_16)
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head + following)
        except UnicodeDecodeError:
            self.file.is_utf8 = False
        self.has_byte_order_mark = line.startswith(BYTE_ORDER_MARK)
        line = line.removeprefix(BYTE_ORDER_MARK)
        first_field = str(line.rstrip(b"\n").split(b"\t")[0], "utf-8", "replace").replace("\r", "")
        if line and first_field == self.header:
            line = self._read_line()
        self._first = line

    @property
    def position(self) -> int:
        """How many of the stored bytes have been read."""
        return self._stored.tell()

    @property
    def offset(self) -> int:
        """Where the next line starts in a plain file."""
        return self._stream.tell() - len(self._first)

    @property
    def read_at(self) -> ReadAt | None:
        """A function that reads so many bytes from an offset on, in any thread; None for a compressed file.

        Systems without ``pread`` have none for files.
        """
        if self.compression is not None:
            return None
        if isinstance(self._stored, io.BytesIO):
            view = memoryview(self._stored.getvalue())
            return lambda size, offset: view[offset : offset + size]
        return partial(os.pread, self._stored.fileno()) if hasattr(os, "pread") else None

    def check_unchanged(self) -> None:
        """Raise UnreadableFileError if the file was changed since it was opened."""
        self.file.check_state(self._stored)

    def __exit__(self, *exc: object) -> None:
        self._stored.close()

    def block(self, size: int | None = None) -> bytes:
        """Return the next whole lines, of about ``size`` bytes (more if a line is longer); b"" at the end.

        By default the size is BLOCK_BYTES.
        """
        size = size or BLOCK_BYTES
        block, self._first = self._first, b""
        block += self._read(self._stream.read, max(size - len(block), 0))
        if block and block[-1] != LF:
            block += self._read_line()
            if block[-1] != LF:
                self.file.ends_in_newline = False
            block = bytes(whole_lines(block))
        return block

    def rest(self) -> bytes:
        """Return all lines that are left."""
        return b"".join(iter(self.block, b""))

    def _read_line(self) -> bytes:
        line = self._read(self._stream.readline, MAX_LINE_BYTES)
        if len(line) == MAX_LINE_BYTES:
            raise TooLargeError(path=self.path, max_bytes=MAX_LINE_BYTES, what="line")
        return line

    def _read(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except READ_ERRORS as error:
            raise unreadable(self.path, error) from error


def end_of_lines(data: Bytes, start: int, lines: int) -> tuple[int, int]:
    """Return where the next ``lines`` lines end, or the data, and how many lines there are."""
    data, end, left = bytes(data), start, lines
    while left:
        # Each line has a byte or more: here, or at the next line end, are not more lines than are left.
        stop = data.find(b"\n", end + left - 1) + 1 or len(data)
        count = data.count(b"\n", end, stop)
        if not count:
            break
        end, left = stop, left - count
    return end, lines - left


def whole_lines(data: Bytes) -> Bytes:
    """End the last line of a file, which may lack its LF; carriage returns alone are no line."""
    if not data or data[-1] == LF:
        return data
    data = bytes(data)
    last = data.rfind(b"\n") + 1
    return data + b"\n" if data[last:].strip(b"\r") else data[:last]


def decode_lines(block: Bytes) -> list[str]:
    """Decode a block into a string per line, without carriage returns; undecodable bytes become U+FFFD."""
    lines = str(block, "utf-8", "replace").replace("\r", "").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def is_utf8(data: Bytes) -> bool:
    """Whether bytes can be decoded."""
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def first_name(header: Sequence[str]) -> str | None:
    """Return the first name of a header, by which its line is known; None without names."""
    return next(iter(header), None)


def read_lines(file: File | str, *, header: str | None = None) -> Generator[str]:
    """Yield the decoded lines of a file."""
    with LineReader(file, header=header) as reader:
        while block := reader.block(READ_AHEAD_BYTES):
            yield from decode_lines(block)
        reader.check_unchanged()


def count_lines(file: File, *, header: str | None = None) -> int:
    """Count the lines of a file, once."""
    if file.lines is None:
        with LineReader(file, header=header) as reader:
            file.lines = sum(block.count(b"\n") for block in iter(reader.block, b""))
    return file.lines


def sha256_of(content: File | str) -> str:
    """Return the SHA-256, in hexadecimal, of a text, or of a file's decompressed bytes."""
    from hashlib import file_digest, sha256  # OpenSSL's, which takes long to load; most runs sign nothing

    if isinstance(content, str):
        return sha256(content.encode()).hexdigest()
    if content.sha256 is None:
        opened = content.open()
        with opened.stored, naming(content.name):
            digest = file_digest(opened.stream, sha256)
            content.check_state(opened.stored)
        content.sha256 = digest.hexdigest()
    return content.sha256


def check_line_count(what: str, path: str, lines: int, expected_path: str, expected_lines: int) -> None:
    """Raise LineCountError unless a file has as many lines as the expected one."""
    if lines != expected_lines:
        raise LineCountError(
            what=what, path=path, lines=lines, expected_path=expected_path, expected_lines=expected_lines
        )


# Lines between two offsets of a plain file


def read_lines_between(path: str, read_at: ReadAt, start: int, stop: int, *, first: int, size: int) -> Bytes:
    """Read the lines that begin between two offsets of a plain file, perhaps none, as they are stored.

    The last line of the file may lack its LF (:func:`whole_lines`). ``first`` is where the first line begins, and
    ``size`` the size of the file; several threads may call ``read_at`` at once. Raises UnreadableFileError, also if
    the file has shrunk, and TooLargeError for a line that goes on for more than MAX_LINE_BYTES after ``stop``.
    """
    offset = start - (start > first)  # a line begins at ``start`` if an LF precedes it
    last = min(stop, size) - 1 - offset  # the first place of an LF that ends the last line
    data, wanted = b"", last + READ_AHEAD_BYTES
    while True:
        with naming(path):
            part = read_at(min(wanted, size - offset) - len(data), offset + len(data))
        if not part:
            raise changed(path)
        data += part
        if len(data) <= last:  # the system reads less than it is asked for
            continue
        begin = 0 if offset == start else data.find(b"\n", 0, last) + 1
        if not begin and offset < start:
            return b""  # it is inside of a line
        end = data.find(b"\n", last) + 1
        if end or offset + len(data) == size:
            return memoryview(data)[begin : end or len(data)]
        if len(data) - last > MAX_LINE_BYTES:
            raise TooLargeError(path=path, max_bytes=MAX_LINE_BYTES, what="line")
        wanted = 2 * len(data)


# Lines by their places


class LinesByPlace:
    """The decoded lines of a file by their places, from 0; of a large file only where they end is held in memory."""

    def __init__(self, file: File | str, header: str | None = None) -> None:
        reader = LineReader(file, header=header)
        if reader.read_at is None:  # it is compressed, and too large for the memory
            with reader:
                reader = LineReader(File.of_pieces(reader.path, iter(reader.block, b"")))
        lengths = (len(line) for block in iter(reader.block, b"") for line in io.BytesIO(block))
        self._ends = array("q", accumulate(lengths, initial=reader.offset))
        self._read_at: Any = reader.read_at
        weakref.finalize(self, reader.__exit__)  # which has the file open

    def __len__(self) -> int:
        return len(self._ends) - 1

    def line(self, place: int) -> str:
        """Return the line at a place."""
        start, stop = self._ends[place], self._ends[place + 1]
        return str(self._read_at(stop - start, start), "utf-8", "replace").replace("\r", "").removesuffix("\n")
