"""What the workers of a cluster do with a piece of an output: read it, and score it once its first line is numbered.

A piece is read once where memory allows: what was read is kept by the worker until it is scored.
"""

from __future__ import annotations

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import LineReader, end_of_lines
from geval_py.reading.ranges import Range, RangeReader, opened_anywhere
from geval_py.scoring.blocks import Block, score_block
from geval_py.scoring.kernel import count_lines
from geval_py.scoring.metrics import LineStatistics
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from geval_py.scoring.metrics.base import Column

MOST_KEPT_BYTES = 1 << 28  # of a compressed file: what unpacks to more is unpacked again when it is scored


class Piece(Value):
    """Lines of an output: those of a range of a plain file or, without a ``range``, all of a compressed one.

    ``start`` is where the file's first line starts, ``size`` the number of its bytes, ``header`` the first name of
    the header line to skip, if it begins with it.
    """

    path: str
    range: Range | None
    start: int
    size: int
    header: str | None


class Lines(Value):
    """What was read of a piece: how many lines, and their text, each ended by LF; None where it was not kept."""

    count: int
    text: bytes | None


def read(piece: Piece) -> Lines:
    """Read a piece; raises DataError."""
    if piece.range is None:
        return _unpack(piece)
    buffer = bytearray()
    with opened_anywhere(piece.path) as read_at:
        ranges = RangeReader(piece.path, read_at, start=piece.start, size=piece.size)
        found = ranges.read(piece.range, buffer)
    text = bytes(memoryview(buffer)[found.start : found.stop])
    return Lines(count=count_lines(text), text=text)


def _unpack(piece: Piece) -> Lines:
    kept: list[bytes] = []
    count = size = 0
    with LineReader(piece.path, header=piece.header) as reader:
        while block := reader.block():
            count, size = count + count_lines(block), size + len(block)
            if size <= MOST_KEPT_BYTES:
                kept.append(block)
    return Lines(count=count, text=b"".join(kept) if size <= MOST_KEPT_BYTES else None)


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


def _blocks(piece: Piece, lines: Lines, numbers: Block) -> Iterator[Block]:
    line, place = 0, 0
    for text in [lines.text] if lines.text is not None else _read_again(piece):
        left = numbers.lines - line
        end, found = end_of_lines(text, 0, left)
        expected_end, _ = end_of_lines(numbers.expected, place, found)
        yield numbers.replace(
            first_line=numbers.first_line + line,
            lines=found,
            outputs=memoryview(text)[:end],
            expected=numbers.expected[place:expected_end],
        )
        line, place = line + found, expected_end
        if line == numbers.lines:
            return


def _read_again(piece: Piece) -> Iterator[bytes]:
    with LineReader(piece.path, header=piece.header) as reader:
        while block := reader.block():
            yield block


def digest(path: str, header: str | None) -> str | None:
    """Read an output from its beginning to its end, for the digest of its bytes; raises DataError."""
    with LineReader(path, header=header, digest=True) as reader:
        reader.count_rest()
        return reader.sha256
