"""What the workers of a cluster do with a piece of an output: count its lines, then work on them, once numbered.

A piece is read for each of the two: a plain file that is near comes from the system's cache the second time. What is
far, or was unpacked, is kept by the process that read it, as far as memory allows; one that has not kept it reads it
again. So any worker can do any task, and Dask moves no text.
"""

from __future__ import annotations

from importlib import import_module
from threading import Lock

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, Range, RangeReader, end_of_lines, opened_anywhere
from geval_py.reading.remote import is_remote
from geval_py.reading.sources import changed
from geval_py.scoring.blocks import RANGE_BYTES, Block, score_block
from geval_py.scoring.kernel.backends import count_lines
from geval_py.scoring.metrics import LineStatistics
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from geval_py.reading.lines import ReadAt
    from geval_py.scoring.metrics.base import Column

    Result = TypeVar("Result")

MOST_KEPT_BYTES = 1 << 29  # for each thread of a worker: more than the pieces that are under way
MOST_UNPACKED_BYTES = 1 << 28  # of a compressed file: what unpacks to more is not kept, but unpacked again


class Piece(Value):
    """Lines of an output: those of a range of a plain file or, without a ``range``, all of a compressed one.

    ``start`` is where the file's first line starts, ``size`` the number of its bytes, ``header`` the first name of
    the header line to skip, if it begins with it, ``max_bytes`` what it may unpack to. ``run`` is another for each
    reading of an output, which may have been changed since.
    """

    path: str
    range: Range | None
    start: int
    size: int
    header: str | None
    max_bytes: int | None = None
    run: str = ""

    @property
    def is_near(self) -> bool:
        """Whether reading it again costs next to nothing."""
        return self.range is not None and not is_remote(self.path)

    def reader(self, read_at: ReadAt) -> RangeReader:
        """Give what reads ranges of the plain file."""
        return RangeReader(self.path, read_at, start=self.start, size=self.size)


class _Kept:
    """The lines, block by block, that this process has read and not worked on yet."""

    def __init__(self) -> None:
        self._blocks: dict[Piece, Sequence[memoryview]] = {}
        self._lock = Lock()

    def put(self, piece: Piece, blocks: Sequence[memoryview], threads: int) -> None:
        """Keep lines until they are taken, unless so many threads would each keep more than MOST_KEPT_BYTES.

        What another run has left here gives way.
        """
        with self._lock:
            kept = self._blocks | {piece: blocks}
            if _size(kept) > threads * MOST_KEPT_BYTES:
                kept = {other: its for other, its in kept.items() if other.run == piece.run}
            if _size(kept) <= threads * MOST_KEPT_BYTES:
                self._blocks = kept

    def take(self, piece: Piece) -> Sequence[memoryview] | None:
        """Give lines away; None where they are not kept."""
        with self._lock:
            return self._blocks.pop(piece, None)

    def drop(self, run: str) -> None:
        """Keep no lines of a run any longer."""
        with self._lock:
            self._blocks = {piece: blocks for piece, blocks in self._blocks.items() if piece.run != run}


def _size(kept: Mapping[Piece, Sequence[memoryview]]) -> int:
    return sum(len(block) for blocks in kept.values() for block in blocks)


_kept = _Kept()


def count(piece: Piece) -> tuple[int, str]:
    """Tell how many lines a piece has, and the address of this worker, which may keep them; raises DataError."""
    worker = import_module("distributed").get_worker()
    return count_here(piece, worker.state.nthreads), worker.address


def count_here(piece: Piece, threads: int = 1) -> int:
    """Tell how many lines a piece has; this process, with so many threads, may keep them. Raises DataError."""
    blocks: list[memoryview] = []
    lines = size = 0
    for block in _read(piece):
        lines, size = lines + count_lines(block), size + len(block)
        if not piece.is_near and size <= MOST_UNPACKED_BYTES:
            blocks.append(block)
        else:
            blocks.clear()
    if not piece.is_near and size <= MOST_UNPACKED_BYTES:
        _kept.put(piece, blocks, threads)
    return lines


def forget(run: str) -> None:
    """Let go what is kept of a run: nobody will work on it."""
    _kept.drop(run)


def work_on(
    piece: Piece, numbers: Block, work: Callable[..., Result], *arguments: object
) -> Result | MalformedLineError:
    """Work on the lines of a piece: ``work(blocks, *arguments)``, each block lasts until the next one.

    ``numbers`` is the block without the text: its first line, its number of lines, which may be less than the piece
    has, and the expected ones. Gives the first MalformedLineError, rather than raising it: trying again would not
    help. Raises DataError, also where the piece has fewer lines than were counted.
    """
    kept = _kept.take(piece)
    try:
        return work(_blocks(_read(piece) if kept is None else kept, numbers), *arguments)
    except MalformedLineError as error:
        return error


def _blocks(texts: Iterable[memoryview], numbers: Block) -> Iterator[Block]:
    line, place = 0, 0
    for text in texts:
        end, found = _head(text, numbers.lines - line)
        expected_end, _ = end_of_lines(numbers.expected, place, found)
        with text[:end] as outputs:
            yield numbers.replace(
                first_line=numbers.first_line + line,
                lines=found,
                outputs=outputs,
                expected=numbers.expected[place:expected_end],
                known=min(max(numbers.known - line, 0), found),
            )
        line, place = line + found, expected_end
        if line == numbers.lines:
            return
    raise changed(numbers.part)


def _read(piece: Piece) -> Iterator[memoryview]:
    """Give the lines of a piece, block by block; one of a piece that is near lasts until the next one.

    Raises DataError.
    """
    if piece.range is None:
        yield from _unpacked(piece)
    elif piece.is_near:
        yield from _read_in_blocks(piece, piece.range)
    else:
        buffer = bytearray()
        with opened_anywhere(piece.path) as read_at:
            found = piece.reader(read_at).read(piece.range, buffer)
        yield memoryview(buffer)[found.start : found.stop]


def _unpacked(piece: Piece) -> Iterator[memoryview]:
    with LineReader(piece.path, header=piece.header, max_bytes=piece.max_bytes) as reader:
        while block := reader.block():
            yield memoryview(block)


def _read_in_blocks(piece: Piece, wanted: Range) -> Iterator[memoryview]:
    buffer = bytearray(RANGE_BYTES + READ_AHEAD_BYTES + 2)
    with opened_anywhere(piece.path) as read_at:
        reader = piece.reader(read_at)
        for start in range(wanted.start, wanted.stop, RANGE_BYTES):
            found = reader.read(Range(start=start, stop=min(start + RANGE_BYTES, wanted.stop)), buffer)
            with memoryview(buffer)[found.start : found.stop] as lines:
                if lines:  # else they are inside of a line
                    yield lines


def _head(text: memoryview, lines: int) -> tuple[int, int]:
    """Find where so many lines end, or the text; gives the place, and how many lines there are."""
    found = count_lines(text)
    return (len(text), found) if found <= lines else end_of_lines(bytes(text), 0, lines)


def score(blocks: Iterable[Block], columns: Sequence[Column], expected_path: str) -> list[LineStatistics]:
    """Score blocks for each of some columns; raises MalformedLineError, the first in the order of lines."""
    scored = [LineStatistics() for _ in columns]
    for block in blocks:
        for of_all, of_block in zip(scored, score_block(block, columns, expected_path), strict=True):
            of_all.extend(of_block)
    return scored


def digest(path: str, header: str | None) -> str | None:
    """Read an output from its beginning to its end, for the digest of its bytes; raises DataError."""
    with LineReader(path, header=header, digest=True) as reader:
        reader.count_rest()
        return reader.sha256
