"""What a worker of a cluster does with its share of an output: count the lines of each piece, then work on them.

A process keeps the text of a remote or compressed piece between the two, as far as memory allows.
"""

from __future__ import annotations

from importlib import import_module
from threading import Lock

from geval_py.errors import DataError, MalformedLineError
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, Range, RangeReader, end_of_lines, opened_anywhere
from geval_py.reading.sources import changed, is_remote
from geval_py.scoring.blocks import RANGE_BYTES, Block, score_block
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from geval_py.scoring.metrics.base import Column

    Result = TypeVar("Result")

MOST_KEPT_BYTES = 1 << 29  # for each thread of a worker
MOST_UNPACKED_BYTES = 1 << 28  # of a compressed file; a larger text is not kept, but unpacked again


class Piece(Value):
    """Lines of an output: of a range of a plain file or, without a ``range``, all lines of a compressed file.

    ``start`` is where the file's first line starts, ``size`` the number of its bytes, ``header`` the first name of a
    header line to skip, ``max_bytes`` the most that it may unpack to. ``run`` differs between readings of an output,
    which may have been changed in the meantime.
    """

    path: str
    range: Range | None
    start: int
    size: int
    header: str | None
    max_bytes: int | None = None
    run: str = ""

    @property
    def bytes(self) -> int:
        """The number of stored bytes."""
        return self.size if self.range is None else self.range.stop - self.range.start

    @property
    def is_near(self) -> bool:
        """Whether it costs next to nothing to read it again."""
        return self.range is not None and not is_remote(self.path)


class _Kept:
    """The lines, block by block, that this process has read and has still to work on."""

    def __init__(self) -> None:
        self._blocks: dict[Piece, Sequence[memoryview]] = {}
        self._lock = Lock()

    def put(self, piece: Piece, blocks: Sequence[memoryview], threads: int) -> None:
        """Keep lines until they are taken, unless each of the threads would keep more than MOST_KEPT_BYTES.

        Lines that another run has left here give way.
        """

        def fits(kept: Mapping[Piece, Sequence[memoryview]]) -> bool:
            return sum(len(block) for its in kept.values() for block in its) <= threads * MOST_KEPT_BYTES

        with self._lock:
            kept = self._blocks | {piece: blocks}
            if not fits(kept):
                kept = {other: its for other, its in kept.items() if other.run == piece.run}
            if fits(kept):
                self._blocks = kept

    def take(self, piece: Piece) -> Sequence[memoryview] | None:
        """Return a piece's lines and keep them no longer; None if they are not kept."""
        with self._lock:
            return self._blocks.pop(piece, None)

    def drop(self, run: str) -> None:
        """Keep no lines of a run any longer."""
        with self._lock:
            self._blocks = {piece: blocks for piece, blocks in self._blocks.items() if piece.run != run}


_kept = _Kept()


def count(pieces: Sequence[Piece]) -> tuple[list[int], str]:
    """Count the lines of each piece, and return the address of this worker, which may keep them.

    Raises DataError, but only of the first piece: an error of another one is raised after the lines before it were
    worked on, so only the pieces before that one are counted.
    """
    worker = import_module("distributed").get_worker()
    counts: list[int] = []
    for piece in pieces:
        try:
            counts.append(count_here(piece, worker.state.nthreads))
        except DataError:
            if not counts:
                raise
            break
    return counts, worker.address


def count_here(piece: Piece, threads: int = 1) -> int:
    """Count the lines of a piece, which this process, with so many threads, may keep. Raises DataError."""
    blocks: list[memoryview] = []
    lines = size = 0
    for block in _read(piece):
        lines, size = lines + backends.count_lines(block), size + len(block)
        if not piece.is_near and size <= MOST_UNPACKED_BYTES:
            blocks.append(block)
        else:
            blocks.clear()
    if not piece.is_near and size <= MOST_UNPACKED_BYTES:
        _kept.put(piece, blocks, threads)
    return lines


def forget(run: str) -> None:
    """Keep no lines of a run any longer: nobody will work on them."""
    _kept.drop(run)


class Job:
    """What one task works on: pieces, the block of each without the text, and arguments of the work on each.

    Dask looks for Futures in lists, which takes milliseconds for each; it does not look into a Job.
    """

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.blocks: list[Block] = []
        self.arguments: list[tuple[object, ...]] = []

    def add(self, piece: Piece, numbers: Block, arguments: tuple[object, ...]) -> None:
        """Add a piece."""
        self.pieces.append(piece)
        self.blocks.append(numbers)
        self.arguments.append(arguments)


def work_on_all(job: Job, _: object, work: Callable[..., Result]) -> list[Result | MalformedLineError]:
    """Work on pieces as :func:`work_on`, until one has a malformed line; the second argument is what was counted."""
    found: list[Result | MalformedLineError] = []
    for piece, numbers, arguments in zip(job.pieces, job.blocks, job.arguments, strict=True):
        found.append(work_on(piece, numbers, work, *arguments))
        if isinstance(found[-1], MalformedLineError):
            break
    return found


def work_on(
    piece: Piece, numbers: Block, work: Callable[..., Result], *arguments: object
) -> Result | MalformedLineError:
    """Work on the lines of a piece: ``work(blocks, *arguments)``; each block lasts until the next one.

    ``numbers`` is the block without the text: its first line, its number of lines (the piece may have more) and the
    expected lines. Returns the first MalformedLineError instead of raising it, since trying again would not help.
    Raises DataError, also where the piece has fewer lines than were counted.
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
    """Yield the lines of a piece in blocks, each of which lasts until the next one; raises DataError."""
    if piece.range is None:
        with LineReader(piece.path, header=piece.header, max_bytes=piece.max_bytes) as lines:
            while block := lines.block():
                yield memoryview(block)
        return
    length = RANGE_BYTES if piece.is_near else piece.range.stop - piece.range.start
    buffer = bytearray(min(RANGE_BYTES, piece.bytes) + READ_AHEAD_BYTES + 2 if piece.is_near else 0)
    with opened_anywhere(piece.path) as read_at:
        reader = RangeReader(piece.path, read_at, start=piece.start, size=piece.size)
        for start in range(piece.range.start, piece.range.stop, length):
            found = reader.read(Range(start=start, stop=min(start + length, piece.range.stop)), buffer)
            text = memoryview(buffer)[found.start : found.stop]
            if text:  # otherwise the range is inside of a line
                yield text
            if piece.is_near:
                text.release()


def _head(text: memoryview, lines: int) -> tuple[int, int]:
    """Find where so many lines end, or the text; returns the place and the number of lines before it."""
    found = backends.count_lines(text)
    return (len(text), found) if found <= lines else end_of_lines(bytes(text), 0, lines)


def score(blocks: Iterable[Block], columns: Sequence[Column], expected_path: str) -> list[LineStatistics]:
    """Score blocks for each of some columns; raises MalformedLineError, the first in the order of lines."""
    scored = [LineStatistics() for _ in columns]
    for block in blocks:
        for of_all, of_block in zip(scored, score_block(block, columns, expected_path), strict=True):
            of_all.extend(of_block)
    return scored


def digest_of(path: str, header: str | None) -> str | None:
    """Read an output from its beginning to its end and return the SHA-256 of its bytes; raises DataError."""
    with LineReader(path, header=header, digest=True) as reader:
        reader.count_rest()
        return reader.sha256
