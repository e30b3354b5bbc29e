"""The lines of a source, read in blocks of whole lines, or between two offsets by several threads or machines.

Lines end in LF. A byte order mark at the start of a file is dropped, and so is a header line, if it is named.
Carriage returns stay in blocks; :func:`decode_lines` drops them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, compress, repeat
from typing import Any, NamedTuple, TypeAlias

from geval_py.errors import LineCountError, TooLargeError, UnsupportedEncodingError
from geval_py.reading.remote import read_bytes
from geval_py.reading.sources import (
    Source,
    changed,
    is_remote,
    naming,
    parts_of,
    state_at,
    unreadable,
)

Bytes: TypeAlias = bytes | memoryview
ReadAt: TypeAlias = Callable[[int, int], bytes]  # reads so many bytes from an offset on, or fewer

BLOCK_BYTES = 1 << 19
READ_AHEAD_BYTES = 1 << 16
LF = 0x0A
DEFAULT_MAX_BYTES = 20 * 10**9  # that a file from a stranger may unpack to
MAX_LINE_BYTES = 256_000_000  # a decompression bomb of one line would otherwise fill the memory
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
IN_UTF_16 = "it is UTF-16 or UTF-32 text; write it as UTF-8 (in PowerShell, with `Out-File -Encoding utf8`)"
ZIP_MARK = b"PK\x03\x04"
IN_ZIP = "it is a zip archive or a spreadsheet; unpack it, or save it as text (gzip may compress it)"
NUL_SHARE = 1 / 3  # of the first line: in UTF-16 and UTF-32, ASCII has a NUL before or after each character


class LineReader(AbstractContextManager["LineReader"]):
    """Reads one file, or its parts one after another, in blocks of whole lines, each ended by LF.

    ``header`` is the first name of the header line to skip, if the file, or a part, begins with it. With ``digest``,
    ``sha256`` is the digest of all decompressed bytes. ``source`` is the part that is being read. Raises
    TooLargeError for a compressed file that unpacks to more than ``max_bytes``, and for a line longer than
    MAX_LINE_BYTES, and UnsupportedEncodingError.
    """

    source: Source

    def __init__(
        self, path: str, *, header: str | None = None, digest: bool = False, max_bytes: int | None = None
    ) -> None:
        self.path = path
        self.parts = parts_of(path)
        self._waiting = iter(self.parts)
        self._states = [state_at(part) for part in self.parts] if len(self.parts) > 1 else None
        self.has_byte_order_mark = False
        self.header, self.max_bytes = header, max_bytes
        self._digest: Any = None
        if digest:
            from hashlib import sha256  # which loads OpenSSL

            self._digest = sha256()
        self._lines, self._taken = b"", 0  # what take() has read, and how much of it was taken
        self._read_before = 0
        self._start(Source(next(self._waiting), max_bytes))

    def _start(self, source: Source) -> None:
        """Begin a part: skip its byte order mark and its header line."""
        self.source = source
        self._stream = io.BufferedReader(source.stream, READ_AHEAD_BYTES)
        try:
            line = self._read_line()
            head = line[:READ_AHEAD_BYTES]
            if head.startswith(UTF_16_MARKS):
                head += self._stream.peek(1)  # the first NUL may be in the line end
                has_nuls = b"\0" in head
            else:
                has_nuls = b"\0" in head and head.count(b"\0") >= NUL_SHARE * len(head)
            is_zip = head.startswith(ZIP_MARK)
            if has_nuls or is_zip:
                what, reason = "Line 1: Unexpected data in", IN_ZIP if is_zip else IN_UTF_16
                raise UnsupportedEncodingError(path=self.path, what=what, reason=reason)
            if line.startswith(BYTE_ORDER_MARK):
                self.has_byte_order_mark = True
                line = line[len(BYTE_ORDER_MARK) :]
            first_field = str(line.rstrip(b"\n").split(b"\t")[0], "utf-8", "replace").replace("\r", "")
            self._first = self._read_line() if line and first_field == self.header else line
        except BaseException:
            source.close()
            raise

    def next_part(self) -> bool:
        """Skip to the next part; False if there is none."""
        part = next(self._waiting, None)
        if part is None:
            return False
        self._read_before += self.source.size or 0
        self.source.close()
        self._start(Source(part, self.max_bytes))
        return True

    @property
    def size(self) -> int | None:
        """The number of stored bytes; None if unknown."""
        return self.source.size if self._states is None else sum(state[2] for state in self._states)

    @property
    def position(self) -> int | None:
        """How many of the stored bytes have been read; None if unknown."""
        return None if self.source.position is None else self._read_before + self.source.position

    @property
    def offset(self) -> int:
        """Where the next line starts in a plain file; wrong after take(), which reads ahead."""
        return self._stream.tell() - len(self._first)

    @property
    def state(self) -> object:
        """A value that differs once the file, or a part, was changed; None if it can be read only once."""
        return self.source.state if self._states is None else self._states

    def check_state(self, state: object) -> None:
        """Raise UnreadableFileError if the file's state differs."""
        if self.state != state:
            raise changed(self.path)

    def check_unchanged(self) -> None:
        """Raise UnreadableFileError if the file, or a part, was changed since it was opened."""
        if self._states is None:
            self.source.check_unchanged()
        else:
            self.check_state([state_at(part) for part in self.parts])

    def __exit__(self, *exc: object) -> None:
        self.source.close()

    def block(self, size: int | None = None) -> bytes:
        """Return the next whole lines, of about ``size`` bytes (more if a line is longer); b"" at the end.

        By default the size is BLOCK_BYTES.
        """
        size = size or BLOCK_BYTES
        while True:
            block, self._first = self._first, b""
            block += self._read(self._stream.read, max(size - len(block), 0))
            if block and block[-1] != LF:
                block = bytes(whole_lines(block + self._read_line()))
            if block or not self.next_part():
                return block

    def take(self, lines: int) -> bytes:
        """Return the next ``lines`` lines, fewer at the end. It reads ahead: do not call block() after it."""
        parts = []
        while lines:
            if self._taken == len(self._lines):
                self._lines, self._taken = self.block(READ_AHEAD_BYTES), 0
                if not self._lines:
                    break
            end, count = end_of_lines(self._lines, self._taken, lines)
            parts.append(self._lines[self._taken : end])
            self._taken = end
            lines -= count
        return b"".join(parts)

    def count_rest(self) -> int:
        """Read the rest and count its lines."""
        lines = self._lines.count(b"\n", self._taken)
        self._lines, self._taken = b"", 0
        while block := self.block():
            lines += block.count(b"\n")
        return lines

    @property
    def sha256(self) -> str | None:
        return self._digest.hexdigest() if self._digest else None

    def digest(self, data: Bytes) -> None:
        """Add the next bytes to the digest, if there is one; a caller that reads past this reader calls it."""
        if self._digest:
            self._digest.update(data)

    def _read_line(self) -> bytes:
        line = self._read(self._stream.readline, MAX_LINE_BYTES)
        if len(line) == MAX_LINE_BYTES:
            raise TooLargeError(path=self.path, max_bytes=MAX_LINE_BYTES, what="line")
        return line

    def _read(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            data = read(size)
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error
        self.digest(data)
        return data


def end_of_lines(data: bytes, start: int, lines: int) -> tuple[int, int]:
    """Return where the next ``lines`` lines end, or the data, and how many lines there are."""
    low, left, step = start, lines, 64 * lines
    while (count := data.count(b"\n", low, low + step)) < left:  # in steps, since there may be many more lines
        low, left = min(low + step, len(data)), left - count
        if low == len(data):
            return low, lines - left
    high = min(low + step, len(data))
    while high - low > 1:  # the last of the lines ends after low, and not after high
        middle = (low + high) // 2
        before = data.count(b"\n", low, middle)
        if before >= left:
            high = middle
        else:
            low, left = middle, left - before
    return high, lines


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


def read_lines(path: str, *, header: str | None = None, max_bytes: int | None = None) -> Generator[str]:
    """Yield the decoded lines of a whole source."""
    with LineReader(path, header=header, max_bytes=max_bytes) as reader:
        while block := reader.block():
            yield from decode_lines(block)


# Lines between two offsets of a plain file


def read_lines_between(path: str, read_at: ReadAt, start: int, stop: int, *, first: int, size: int) -> Bytes:
    """Read the lines that begin between two offsets of a plain file, perhaps none, as they are stored.

    The last line of the file may lack its LF (:func:`whole_lines`). ``first`` is where the first line begins, and
    ``size`` the size of the file; several threads may call ``read_at`` at once. Raises UnreadableFileError, also if
    the file has shrunk, and TooLargeError for a line that goes on for more than MAX_LINE_BYTES after ``stop``.
    """
    stop = min(stop, size)
    offset = start - (start > first)  # a line begins at ``start`` if an LF precedes it
    data = b""

    def read(more: int) -> None:
        nonlocal data
        end = min(len(data) + more, size - offset)
        with naming(path):
            while len(data) < end:
                part = read_at(end - len(data), offset + len(data))
                if not part:
                    raise changed(path)
                data += part

    last = stop - 1 - offset  # the first place of an LF that ends the last line
    read(last + 1 + READ_AHEAD_BYTES)
    begin = 0 if offset == start else data.find(b"\n", 0, last) + 1
    if not begin and offset < start:
        return b""  # it is inside of a line
    searched = last
    while not (end := data.find(b"\n", searched) + 1):
        if len(data) - last > MAX_LINE_BYTES:
            raise TooLargeError(path=path, max_bytes=MAX_LINE_BYTES, what="line")
        if offset + len(data) == size:
            end = size - offset
            break
        searched = len(data)
        read(max(len(data), READ_AHEAD_BYTES))
    return memoryview(data)[begin:end]


@contextmanager
def opened_anywhere(path: str) -> Iterator[ReadAt]:
    """Open a plain local or remote file for reads at any offset, by one thread at a time."""
    if is_remote(path):
        yield lambda size, offset: read_bytes(path, offset, offset + size)
        return
    with naming(path):
        file = open(path, "rb", buffering=0)
    with file:

        def read_at(size: int, offset: int) -> bytes:
            file.seek(offset)
            return file.read(size)

        yield read_at


# Texts that are read several times


class Text:
    """The lines of a file that are read several times: kept in memory, or read from the file again, if it may be.

    They are those that :meth:`add` took from another reader, or else the file is read when they are first needed.
    ``state`` is that of the file, once it was opened. Without a ``path`` there is an empty line for every item. With
    ``digest``, ``sha256`` is the digest of the whole file, once it was read. ``expected_path`` is that of the
    answers, for errors.
    """

    def __init__(
        self, path: str | None, header: str | None, *, keep: bool, digest: bool = False, expected_path: str = ""
    ) -> None:
        self.path = path
        self.sha256: str | None = None
        self._header, self._keep, self._digest, self._expected_path = header, keep, digest, expected_path
        self._blocks: list[bytes] = []
        self.state: object = None
        self._count: int | None = None

    @classmethod
    def of(cls, reader: LineReader, *, reread: bool) -> Text:
        """Return the text whose blocks a reader reads; with ``reread``, a regular file is read again later."""
        text = cls(reader.path, reader.header, keep=not reread or reader.state is None)
        text.state = reader.state
        return text

    def add(self, block: Bytes) -> None:
        """Take the next block, of whole lines."""
        if self._keep:
            self._blocks.append(bytes(block))

    def lines(self, chosen: Sequence[int] | None = None) -> Iterator[str]:
        """Yield the decoded lines, or those whose flag in ``chosen``, a number for each line, is not 0.

        Raises UnreadableFileError if the file was changed, and as LineReader.
        """
        if self.path is None:
            return repeat("")
        if chosen is None:
            return chain.from_iterable(map(decode_lines, self.blocks()))
        return self._chosen_lines(chosen)

    def _chosen_lines(self, chosen: Sequence[int]) -> Iterator[str]:
        stop = 0
        for block in self.blocks():
            start, stop = stop, stop + block.count(b"\n")
            if any(chosen[start:stop]):
                yield from compress(decode_lines(block), chosen[start:stop])

    def blocks(self) -> Iterable[bytes]:
        """Return the bytes of an existing file as blocks of whole lines; raises as :meth:`lines`."""
        if not self._keep:
            return self._read()
        self._blocks = self._blocks or list(self._read())
        return self._blocks

    def _read(self) -> Iterator[bytes]:
        with LineReader(self.path or "", header=self._header, digest=self._digest) as reader:
            self.state = self.state or reader.state
            reader.check_state(self.state)
            while block := reader.block(READ_AHEAD_BYTES):
                yield block
            reader.check_unchanged()
            self.sha256 = reader.sha256

    def check_lines(self, expected: int, lines: int | None = None) -> None:
        """Raise LineCountError if there is an input that has not as many ``lines`` as the answers."""
        if self.path is None:
            return
        if lines is None:
            lines = self._count = self._count or sum(block.count(b"\n") for block in self.blocks())
        check_line_count("input", self.path, lines, self._expected_path, expected)


def check_line_count(what: str, path: str, lines: int, expected_path: str, expected_lines: int) -> None:
    """Raise LineCountError unless a file has as many lines as the expected one."""
    if lines != expected_lines:
        raise LineCountError(
            what=what, path=path, lines=lines, expected_path=expected_path, expected_lines=expected_lines
        )


class Texts(NamedTuple):
    """The scored texts: the outputs and the expected answers."""

    outputs: Text
    expected: Text
