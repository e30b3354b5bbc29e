"""The lines of a source, read in blocks of whole lines, or in byte ranges by several threads or machines.

Lines end in LF. A byte order mark at the start of a file is dropped, and so is a header line, if it is named.
Carriage returns stay in blocks; :func:`decode_lines` drops them.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import contextmanager
from itertools import islice

from geval_py.errors import EmptyFileError, TooLargeError, UnreadableFileError, UsageError
from geval_py.reading.sources import Source, VirtualFile, changed, is_remote, naming, parts_of, state_at, unreadable
from geval_py.text import visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from typing import Any, TypeAlias

    from geval_py.reading.sources import ListedRows

    TextBlock: TypeAlias = tuple[str, int, bytes]
    TextSource: TypeAlias = str | os.PathLike[str] | Iterable[str | Iterable[str]]
    ReadAt: TypeAlias = Callable[[memoryview, int], int]  # fills a buffer from an offset, returns the bytes read

Bytes: TypeAlias = bytes | memoryview
BLOCK_BYTES = 1 << 21
READ_AHEAD_BYTES = 1 << 16
TEXT_BLOCK_BYTES = 1 << 20
SENTENCES_AT_A_TIME = 10_000
_WHITE_SPACE = re.compile(rb"[\0\t-\r ]")  # of KenLM: lmplz and query differ in it
LF = 0x0A
DEFAULT_MAX_BYTES = 20 * 10**9  # that a file from a stranger may unpack to
MOST_LINE_BYTES = 256_000_000  # a decompression bomb of one line would otherwise fill the memory
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class LineReader:
    """Reads one file, or its parts one after another, in blocks of whole lines, each ended by LF.

    ``header`` is the first name of the header line to skip, if the file, or a part, begins with it. With ``digest``,
    ``sha256`` is the digest of all decompressed bytes. Raises TooLargeError for a compressed file that unpacks to
    more than ``max_bytes``, and for a line longer than MOST_LINE_BYTES. ``source`` is the part that is being read.
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
            from hashlib import sha256

            self._digest = sha256()
        self._taking, self._taken = b"", 0
        self._read_before = 0
        self._start(Source(next(self._waiting), max_bytes))

    def _start(self, source: Source) -> None:
        self.source = source
        self._stream = io.BufferedReader(self.source.stream, READ_AHEAD_BYTES)
        try:
            self._first = self._skip_header(self.header)
        except BaseException:
            self.source.close()
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

    def block(self, size: int | None = None) -> bytes:
        """Return the next whole lines, of about ``size`` bytes (more if a line is longer); b"" at the end.

        By default the size is BLOCK_BYTES.
        """
        buffer = bytearray()
        return bytes(buffer[: self.read_block(buffer, size)])

    def read_block(self, buffer: bytearray, size: int | None = None) -> int:
        """Read the next block into a buffer, which may grow; return the number of bytes, 0 at the end."""
        size = size or BLOCK_BYTES
        while not (filled := self._read_block_of_part(buffer, size)) and self.next_part():
            pass
        return filled

    def _read_block_of_part(self, buffer: bytearray, size: int) -> int:
        filled = len(self._first)
        if filled:
            buffer[:filled], self._first = self._first, b""
        if len(buffer) < size:  # for a small file, memory for a whole block would take longer than reading
            filled = self._fill(buffer, filled, min(size, READ_AHEAD_BYTES))
        if len(buffer) >= size or filled >= READ_AHEAD_BYTES:
            filled = self._fill(buffer, filled, size)
        if filled and buffer[filled - 1] != LF:
            rest = self._read_line()
            buffer[filled : filled + len(rest)] = rest
            filled += len(rest)
            if not rest.endswith(b"\n"):
                return end_last_line(buffer, 0, filled)
        return filled

    def _fill(self, buffer: bytearray, filled: int, size: int) -> int:
        """Read into a buffer from a place, up to a size, to which the buffer grows; return where the bytes end."""
        if len(buffer) < size:
            buffer.extend(bytes(size - len(buffer)))
        with memoryview(buffer) as view:
            try:
                read = self._stream.readinto(view[filled:size])
            except (OSError, ValueError) as error:
                raise unreadable(self.path, error) from error
            if self._digest:
                self._digest.update(view[filled : filled + read])
        return filled + read

    def rows(self) -> Iterator[ListedRows | bytes] | None:
        """Read the whole file as rows in buffers, or as text where they are in another form.

        None for a file that is read as lines alone. A byte order mark at the start of the first word is dropped.
        """
        read_rows = self.path.read_rows if isinstance(self.path, VirtualFile) else None
        return None if read_rows is None else without_byte_order_mark(read_rows(str(self.path)))

    def take(self, lines: int) -> bytes:
        """Return the next ``lines`` lines, fewer at the end. It reads ahead: do not call block() after it."""
        parts = []
        while lines:
            if self._taken == len(self._taking):
                self._taking, self._taken = self.block(READ_AHEAD_BYTES), 0
                if not self._taking:
                    break
            end, found = end_of_lines(self._taking, self._taken, lines)
            parts.append(self._taking[self._taken : end])
            self._taken = end
            lines -= found
        return b"".join(parts)

    def count_rest(self) -> int:
        """Read the rest and count its lines."""
        lines = self._taking.count(b"\n", self._taken)
        self._taking, self._taken = b"", 0
        buffer = bytearray()
        while filled := self.read_block(buffer):
            lines += buffer.count(b"\n", 0, filled)
        return lines

    @property
    def offset(self) -> int:
        """Where the next line starts in a plain file; wrong after take(), which reads ahead."""
        return self._stream.tell() - len(self._first)

    @property
    def sha256(self) -> str | None:
        return self._digest.hexdigest() if self._digest else None

    def _read_line(self) -> bytes:
        try:
            line = self._stream.readline(MOST_LINE_BYTES)
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error
        if len(line) == MOST_LINE_BYTES:
            raise TooLargeError(path=self.path, max_bytes=MOST_LINE_BYTES, what="line")
        if self._digest:
            self._digest.update(line)
        return line

    def digest(self, data: Bytes) -> None:
        """Add the next bytes to the digest, if there is one; a caller that reads past this reader calls it."""
        if self._digest:
            self._digest.update(data)


def without_byte_order_mark(rows: Iterator[ListedRows | bytes]) -> Iterator[ListedRows | bytes]:
    """Yield rows without the byte order mark of the first word, which a file loses, whatever its format."""
    first = next(rows, b"")
    if not isinstance(first, bytes) and bytes(first.text[first.starts[first.offsets[0]] :][:3]) == BYTE_ORDER_MARK:
        first = first.lines(len(first.offsets) - 1)
    yield first.removeprefix(BYTE_ORDER_MARK) if isinstance(first, bytes) else first
    yield from rows


def end_of_lines(data: bytes, start: int, lines: int) -> tuple[int, int]:
    """Return where the next ``lines`` lines end, or the data, and how many lines there are."""
    low, left, size = start, lines, 64 * lines
    while True:  # in steps, since the data may have many more lines
        high = min(low + size, len(data))
        found = data.count(b"\n", low, high)
        if found >= left:
            break
        low, left = high, left - found
        if low == len(data):
            return low, lines - left
    guesses = 4  # as if all lines were as long
    while high - low > 1:  # the last of the lines ends after low, and not after high
        width = high - low
        middle = low + min(max(1, width * left // found if guesses else width // 2), width - 1)
        guesses -= bool(guesses)
        before = data.count(b"\n", low, middle)
        if before >= left:
            high, found = middle, before
        else:
            low, left, found = middle, left - before, found - before
    return high, lines


def end_last_line(buffer: bytearray, start: int, filled: int) -> int:
    """End a file's last line, which lacks LF; return where the lines that fill the buffer from ``start`` end.

    Carriage returns alone are no line.
    """
    last = max(buffer.rfind(b"\n", start, filled) + 1, start)
    if not buffer[last:filled].strip(b"\r"):
        return last
    buffer[filled : filled + 1] = b"\n"
    return filled + 1


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


def read_lines(path: str, *, header: str | None = None) -> Generator[str, None, None]:
    """Yield the decoded lines of a whole source."""
    with LineReader(path, header=header) as reader:
        while block := reader.block():
            yield from decode_lines(block)


def text_blocks(path: str) -> Iterator[TextBlock]:
    """Yield a text in blocks of whole lines, each with the path and the number of its first line.

    A byte order mark is dropped, and a missing last line end added. Raises UnreadableFileError, also for UTF-16.
    """
    line = 1
    with LineReader(path) as reader:
        while block := reader.block(TEXT_BLOCK_BYTES):
            if line == 1 and block.startswith(UTF_16):
                raise UnreadableFileError(path=path, reason="it is UTF-16; write it as UTF-8")
            yield path, line, block
            line += block.count(b"\n")


def blocks_of_files(paths: Sequence[str]) -> Iterator[TextBlock]:
    """Yield several texts as :func:`text_blocks` does; raises EmptyFileError if there is no line."""
    empty = True
    for path in paths:
        for block in text_blocks(path):
            yield block
            empty = False
    if empty:
        raise EmptyFileError(what="text", path=paths[0])


def blocks_of(texts: TextSource) -> Iterator[TextBlock]:
    """Yield sentences, or the lines of the file at a path, in the same form as :func:`text_blocks`.

    Raises UsageError if there is no sentence, and as :func:`line_of`.
    """
    if isinstance(texts, (str, os.PathLike)):
        yield from blocks_of_files([os.fspath(texts)])
        return
    line, lines = 1, map(line_of, texts)
    while block := b"".join(islice(lines, SENTENCES_AT_A_TIME)):
        yield "", line, block
        line += SENTENCES_AT_A_TIME
    if line == 1:
        raise UsageError(message="there is no text: give its sentences, or the path of a file")


def line_of(sentence: str | Iterable[str]) -> bytes:
    """Encode a sentence as a line: a string, in which line ends are white space, or words.

    Surrogates stand for bytes that are not UTF-8. Raises UsageError for a word that is empty, or has white space.
    """
    if isinstance(sentence, str):
        return _encoded(sentence).replace(b"\n", b" ") + b"\n"
    words = list(map(_encoded, sentence))
    if not all(words) or _WHITE_SPACE.search(b"".join(words)):
        wrong = next(word for word in words if not word or _WHITE_SPACE.search(word))
        raise UsageError(
            message=f"`{visible(wrong.decode(errors='replace'))}` is no word: it is empty or has white space in it"
        )
    return b" ".join(words) + b"\n"


def _encoded(text: str) -> bytes:
    if not isinstance(text, str):
        raise UsageError(message=f"a sentence is a string or a list of strings, and has no {type(text).__name__}")
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


# Byte ranges of a plain file.


class Range(Value):
    """The bytes from ``start`` to before ``stop``."""

    start: int
    stop: int


class RangeLines(Value):
    """The lines of a range: ``buffer`` from ``start`` to before ``stop``, each line ended by LF.

    ``stored`` is where the file's own bytes end: the file's last line may lack its LF, or be only carriage returns,
    which are no line.
    """

    buffer: bytearray
    start: int
    stop: int
    stored: int


class RangeReader:
    """Reads ranges of the lines of a plain file of ``size`` bytes, from the line at ``start`` on.

    ``read_at`` fills a buffer from an offset and returns the number of bytes; several threads may call it at once.
    """

    def __init__(self, path: str, read_at: ReadAt, *, start: int, size: int) -> None:
        self.path, self._read_at = path, read_at
        self._start, self._size = start, size

    def ranges(self, size: int) -> Iterator[Range]:
        """Yield consecutive ranges of ``size`` bytes."""
        for start in range(self._start, self._size, size):
            yield Range(start=start, stop=min(start + size, self._size))

    def read(self, wanted: Range, buffer: bytearray) -> RangeLines:
        """Read the lines that start in a range, perhaps none, into a buffer, which may grow.

        Raises UnreadableFileError, also if the file has shrunk, and TooLargeError for a line that continues for more
        than MOST_LINE_BYTES after the range.
        """
        # A line starts in the range if an LF precedes it, so search from one byte before the range.
        offset = wanted.start - (wanted.start > self._start)
        end = wanted.stop - 1 - offset  # the first place of an LF that ends the last line
        filled = self._fill(buffer, 0, offset, end + 1 + READ_AHEAD_BYTES)
        start = 0 if offset == wanted.start else buffer.find(b"\n", 0, end) + 1
        if not start and offset < wanted.start:
            return RangeLines(buffer=buffer, start=0, stop=0, stored=0)
        searched = end
        while not (stop := buffer.find(b"\n", searched, filled) + 1):
            if filled - end > MOST_LINE_BYTES:
                raise TooLargeError(path=self.path, max_bytes=MOST_LINE_BYTES, what="line")
            if offset + filled == self._size:
                stop = end_last_line(buffer, start, filled)
                return RangeLines(buffer=buffer, start=start, stop=stop, stored=filled)
            searched, filled = filled, self._fill(buffer, filled, offset + filled, max(filled, READ_AHEAD_BYTES))
        return RangeLines(buffer=buffer, start=start, stop=stop, stored=stop)

    def _fill(self, buffer: bytearray, filled: int, offset: int, size: int) -> int:
        """Append ``size`` bytes of the file, or those to its end; return the number of bytes in the buffer."""
        wanted = filled + min(size, self._size - offset)
        if len(buffer) < wanted:
            buffer.extend(bytes(wanted - len(buffer)))
        with memoryview(buffer) as view, naming(self.path):
            while filled < wanted:
                got = self._read_at(view[filled:wanted], offset)
                if not got:
                    raise changed(self.path)
                filled, offset = filled + got, offset + got
        return filled


@contextmanager
def opened_anywhere(path: str) -> Iterator[ReadAt]:
    """Open a plain local or remote file for reads at any offset, by one thread at a time."""

    def read_remote(view: memoryview, offset: int) -> int:
        from geval_py.reading.remote import read_bytes

        data = read_bytes(path, offset, offset + len(view))
        view[: len(data)] = data
        return len(data)

    def read_local(view: memoryview, offset: int) -> int:
        file.seek(offset)
        return file.readinto(view) or 0

    if is_remote(path):
        yield read_remote
        return
    with naming(path):
        file = open(path, "rb", buffering=0)
    with file:
        yield read_local


def rest_in_ranges(reader: LineReader) -> RangeReader | None:
    """Return a reader of ranges for the unread lines of a reader's present part.

    None unless it is a plain file, on a system with ``preadv``.
    """
    source = reader.source
    if not source.is_here or source.size is None or source.compression is not None or not hasattr(os, "preadv"):
        return None
    descriptor = source.descriptor
    return RangeReader(
        source.path,
        lambda view, offset: os.preadv(descriptor, [view], offset),
        start=reader.offset,
        size=source.size,
    )
