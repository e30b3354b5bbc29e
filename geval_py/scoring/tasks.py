"""What the workers of a cluster do with a piece of an output: count its lines, then work on them, once numbered.

What was read to be counted is kept by the process that read it, as far as its memory allows; one that has not kept a
piece reads it again. So any worker can do any task, and Dask moves no text.
"""

from __future__ import annotations

from importlib import import_module
from threading import Lock

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, end_of_lines
from geval_py.reading.ranges import Range, RangeReader, opened_anywhere
from geval_py.scoring.blocks import Block
from geval_py.scoring.kernel import count_lines
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import TypeVar

    Result = TypeVar("Result")

MOST_KEPT_BYTES = 1 << 29  # for each thread of a worker: more than the pieces that are under way
MOST_UNPACKED_BYTES = 1 << 28  # of a compressed file: what unpacks to more is not kept, but unpacked again
MOST_FREE = 4


class Piece(Value):
    """Lines of an output: those of a range of a plain file or, without a ``range``, all of a compressed one.

    ``start`` is where the file's first line starts, ``size`` the number of its bytes, ``header`` the first name of
    the header line to skip, if it begins with it, ``max_bytes`` what it may unpack to.
    """

    path: str
    range: Range | None
    start: int
    size: int
    header: str | None
    max_bytes: int | None = None


class _Buffers:
    """Buffers that can be read into again: new memory costs as much as reading."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        """Give a buffer, of about so many bytes."""
        try:
            return self._free.pop()
        except IndexError:
            return bytearray(size)

    def give_back(self, buffer: bytearray) -> None:
        """Take a buffer that nobody looks into any more."""
        if len(self._free) < MOST_FREE:
            self._free.append(buffer)


class _Text(Value):
    """The lines of a piece, each ended by LF: a part of a buffer, since to copy them takes as long as to read."""

    lines: memoryview
    buffer: bytearray


class _Kept:
    """The texts that this process has read and not worked on yet; when they are too many, the oldest go."""

    def __init__(self) -> None:
        self._texts: dict[Piece, _Text] = {}
        self._lock = Lock()

    def put(self, piece: Piece, text: _Text, threads: int) -> None:
        """Keep a text until it is taken; so many threads may each keep MOST_KEPT_BYTES."""
        with self._lock:
            self._texts[piece] = text
            while sum(len(text.buffer) for text in self._texts.values()) > threads * MOST_KEPT_BYTES:
                del self._texts[next(iter(self._texts))]

    def take(self, piece: Piece) -> _Text | None:
        """Give a text away; None where it is not kept."""
        with self._lock:
            return self._texts.pop(piece, None)

    def drop(self, paths: Collection[str]) -> None:
        """Keep no text of some files any longer."""
        with self._lock:
            self._texts = {piece: text for piece, text in self._texts.items() if piece.path not in paths}


_buffers, _kept = _Buffers(), _Kept()


def count(piece: Piece) -> tuple[int, str]:
    """Read a piece, and keep it; tell how many lines it has, and the address of this worker. Raises DataError."""
    worker = import_module("distributed").get_worker()
    return count_here(piece, worker.state.nthreads), worker.address


def count_here(piece: Piece, threads: int = 1) -> int:
    """Read a piece, and keep it in this process, which has so many threads; tell how many lines it has.

    Raises DataError.
    """
    if piece.range is None:
        return _count_unpacked(piece, threads)
    text = _read(piece, piece.range)
    _kept.put(piece, text, threads)
    return count_lines(text.lines)


def forget(paths: Collection[str]) -> None:
    """Let go what is kept of some files: nobody will work on it."""
    _kept.drop(paths)


def _read(piece: Piece, wanted: Range) -> _Text:
    buffer = _buffers.take(wanted.stop - wanted.start + READ_AHEAD_BYTES + 2)
    with opened_anywhere(piece.path) as read_at:
        found = RangeReader(piece.path, read_at, start=piece.start, size=piece.size).read(wanted, buffer)
    return _Text(lines=memoryview(buffer)[found.start : found.stop], buffer=buffer)


def _count_unpacked(piece: Piece, threads: int) -> int:
    kept, lines, size = bytearray(), 0, 0
    with LineReader(piece.path, header=piece.header, max_bytes=piece.max_bytes) as reader:
        while block := reader.block():
            lines, size = lines + count_lines(block), size + len(block)
            if size <= MOST_UNPACKED_BYTES:
                kept += block
    if size <= MOST_UNPACKED_BYTES:
        _kept.put(piece, _Text(lines=memoryview(kept), buffer=kept), threads)
    return lines


def work_on(
    piece: Piece, numbers: Block, work: Callable[..., Result], *arguments: object
) -> list[Result] | MalformedLineError:
    """Work on the lines of a piece, block by block: ``work(block, *arguments)``.

    ``numbers`` is the block without the text: its first line, its number of lines, which may be less than the piece
    has, and the expected ones. Gives the first MalformedLineError, rather than raising it: trying again would not
    help. Raises DataError.
    """
    done: list[Result] = []
    try:
        for block in _blocks(piece, numbers):
            with block.outputs:
                done.append(work(block, *arguments))
    except MalformedLineError as error:
        return error
    return done


def _blocks(piece: Piece, numbers: Block) -> Iterator[Block]:
    line, place = 0, 0
    for text in _texts(piece):
        end, found = _head(text, numbers.lines - line)
        expected_end, _ = end_of_lines(numbers.expected, place, found)
        yield numbers.replace(
            first_line=numbers.first_line + line,
            lines=found,
            outputs=text[:end],
            expected=numbers.expected[place:expected_end],
        )
        line, place = line + found, expected_end
        if line == numbers.lines:
            return


def _texts(piece: Piece) -> Iterator[memoryview]:
    """Give the lines of a piece as they were kept, or read them again: all at once, or as they are unpacked."""
    text = _kept.take(piece)
    if text is None and piece.range is not None:
        text = _read(piece, piece.range)
    if text is not None:
        try:
            with text.lines as lines:
                yield lines
        finally:
            if piece.range is not None:
                _buffers.give_back(text.buffer)
        return
    with LineReader(piece.path, header=piece.header) as reader:
        while block := reader.block():
            yield memoryview(block)


def _head(text: memoryview, lines: int) -> tuple[int, int]:
    """Find where so many lines end, or the text; gives the place, and how many lines there are."""
    found = count_lines(text)
    return (len(text), found) if found <= lines else end_of_lines(bytes(text), 0, lines)


def digest(path: str, header: str | None) -> str | None:
    """Read an output from its beginning to its end, for the digest of its bytes; raises DataError."""
    with LineReader(path, header=header, digest=True) as reader:
        reader.count_rest()
        return reader.sha256
