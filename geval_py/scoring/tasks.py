"""What the workers of a cluster do with a piece of an output: read it, and score it once its first line is numbered.

A piece is read once where memory allows: what was read is kept by the worker until it is scored.
"""

from __future__ import annotations

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, end_of_lines
from geval_py.reading.ranges import Range, RangeReader, opened_anywhere
from geval_py.scoring.blocks import Block, score_block
from geval_py.scoring.kernel import count_lines
from geval_py.scoring.metrics import LineStatistics
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from geval_py.scoring.metrics.base import Column

    Result = TypeVar("Result")

MOST_KEPT_BYTES = 1 << 28  # of a compressed file: what unpacks to more is unpacked again when it is scored


MOST_FREE = 4
_free: list[bytearray] = []  # buffers that were scored, to be read into again: new memory costs as much as reading


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


class Lines(Value):
    """What was read of a piece: how many lines, and their text, each ended by LF; None where it was not kept.

    The text is a part of a buffer, from ``start`` to before ``stop``: to copy it would take as long as to read it.
    """

    count: int
    buffer: bytes | bytearray | None
    start: int = 0
    stop: int = 0

    def __del__(self) -> None:
        if isinstance(self.buffer, bytearray) and len(_free) < MOST_FREE:
            _free.append(self.buffer)

    def __sizeof__(self) -> int:
        """Tell Dask what it would cost to move them: they are scored where they are."""
        return object.__sizeof__(self) + len(self.buffer or b"")

    @property
    def text(self) -> memoryview | None:
        """The lines."""
        return None if self.buffer is None else memoryview(self.buffer)[self.start : self.stop]


def read(piece: Piece) -> Lines:
    """Read a piece; raises DataError."""
    if piece.range is None:
        return _unpack(piece)
    try:
        buffer = _free.pop()
    except IndexError:
        buffer = bytearray(piece.range.stop - piece.range.start + READ_AHEAD_BYTES + 2)
    with opened_anywhere(piece.path) as read_at:
        ranges = RangeReader(piece.path, read_at, start=piece.start, size=piece.size)
        found = ranges.read(piece.range, buffer)
    text = memoryview(buffer)[found.start : found.stop]
    return Lines(count=count_lines(text), buffer=buffer, start=found.start, stop=found.stop)


def _unpack(piece: Piece) -> Lines:
    kept: list[bytes] = []
    count = size = 0
    with LineReader(piece.path, header=piece.header, max_bytes=piece.max_bytes) as reader:
        while block := reader.block():
            count, size = count + count_lines(block), size + len(block)
            if size <= MOST_KEPT_BYTES:
                kept.append(block)
    return Lines(count=count, buffer=b"".join(kept) if size <= MOST_KEPT_BYTES else None, stop=size)


def count(lines: Lines) -> int:
    """Tell how many lines there are."""
    return lines.count


def score(
    piece: Piece, lines: Lines, numbers: Block, columns: Sequence[Column], expected_path: str
) -> list[LineStatistics] | MalformedLineError:
    """Score lines that were read for each of some columns.

    ``numbers`` is the block without the text: its first line, its number of lines, which may be less than were read,
    and the expected ones. Gives the first MalformedLineError, rather than raising it: trying again would not help.
    """
    statistics = [LineStatistics() for _ in columns]
    try:
        for block in _blocks(piece, lines, numbers):
            for of_piece, of_block in zip(statistics, score_block(block, columns, expected_path), strict=True):
                of_piece.extend(of_block)
    except MalformedLineError as error:
        return error
    return statistics


def work_on(piece: Piece, lines: Lines, numbers: Block, work: Callable[..., Result], *arguments: object) -> Result:
    """Give ``work(blocks, *arguments)``: of the blocks of lines that were read, as :func:`score` has them."""
    return work(_blocks(piece, lines, numbers), *arguments)


def _blocks(piece: Piece, lines: Lines, numbers: Block) -> Iterator[Block]:
    line, place = 0, 0
    for text in [lines.text] if lines.text is not None else _read_again(piece):
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


def _head(text: memoryview, lines: int) -> tuple[int, int]:
    """Find where so many lines end, or the text; gives the place, and how many lines there are."""
    found = count_lines(text)
    return (len(text), found) if found <= lines else end_of_lines(bytes(text), 0, lines)


def _read_again(piece: Piece) -> Iterator[memoryview]:
    with LineReader(piece.path, header=piece.header) as reader:
        while block := reader.block():
            yield memoryview(block)


def digest(path: str, header: str | None) -> str | None:
    """Read an output from its beginning to its end, for the digest of its bytes; raises DataError."""
    with LineReader(path, header=header, digest=True) as reader:
        reader.count_rest()
        return reader.sha256
