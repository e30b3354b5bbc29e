"""Read an output and its expected file side by side, in blocks of whole lines, and work on the blocks in threads.

The ranges of a plain file are read by the threads that work; other sources by one thread, in the order of lines. One
thread numbers the blocks and gives them their expected lines, and any works on them; a block's buffer is read into
again once the block was taken.
Who scores wants as many output lines as expected ones (:class:`BlockScorer`); who looks takes what there is
(:class:`BlockReader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from geval_py.errors import EmptyFileError, LineCountError, MalformedLineError
from geval_py.reading.lines import LineReader, Range, RangeReader, rest_in_ranges
from geval_py.scoring.kernel.backends import choose_backend, count_lines
from geval_py.scoring.metrics import LineStatistics
from geval_py.scoring.parallel import Progress, Workers, available_cores
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    from geval_py.scoring.metrics.base import Column

    Result = TypeVar("Result")
    # A buffer, its part with the lines, how many they are, the bytes read then, and the part of the output.
    Lines: TypeAlias = tuple[bytearray, memoryview, int, int | None, str]

RANGE_BYTES = 1 << 21
STAND_IN = b"0\n"  # for an expected line that is not there; every metric takes it for a word, or a class


class Block(Value):
    """Some output lines, the first of which has the number ``first_line``, and as many expected lines.

    Of the expected lines ``known`` are real, those after them stand-ins. ``outputs`` is a part of ``buffer``, which
    is used again. ``position`` is how many of the stored bytes were read then, where that can be known. ``part`` is
    the path of the part of the output that the lines are in, or of the output, and ``lines_before`` are in the parts
    before it.
    """

    first_line: int
    lines: int
    outputs: memoryview
    expected: bytes
    known: int
    buffer: bytearray
    position: int | None
    part: str
    lines_before: int

    def head(self, lines: int) -> Block:
        """Copy the first lines."""
        outputs, expected = (_head(text, lines) for text in (bytes(self.outputs), self.expected))
        return self.replace(
            lines=lines,
            outputs=memoryview(outputs),
            expected=expected,
            known=min(self.known, lines),
            buffer=bytearray(),
        )


def _head(text: bytes, lines: int) -> bytes:
    return b"".join(line + b"\n" for line in text.split(b"\n", lines)[:lines])


class BlockReader:
    """Reads an output and, side by side with it, its expected file, if there is one."""

    def __init__(self, outputs: LineReader, expected: LineReader | None = None) -> None:
        self._outputs, self._expected = outputs, expected
        self._known = 0
        self._free: list[bytearray] = []

    def map(
        self, work: Callable[[Block], Result], *, threads: int | None = None, progress: Progress | None = None
    ) -> Iterator[tuple[Block, Result]]:
        """Give the blocks in order, each with ``work(block)``; a block lasts until the next one is asked for.

        ``threads`` is the number of threads that work (by default, as many as there are cores) beside the one that
        numbers the blocks; ``progress`` is called after each block, where the size of the output can be known. An
        error of the work or the reading is raised where it belongs: after the blocks before it.
        """
        size = self._outputs.size
        with Workers(self._threads(threads)) as workers:
            for block, result in workers.map_in_order(lambda block: (block, work(block)), self.blocks(workers)):
                yield block, result
                self._let_go(block)
                if progress is not None and size is not None:
                    progress(block.position or 0, size)

    def blocks(self, workers: Workers) -> Iterator[Block]:
        """Give the blocks in order, those of ranges read by the workers."""
        first_line, lines_before, part = 1, 0, ""
        for buffer, outputs, lines, position, of_part in self.read(workers):
            if part != of_part:
                lines_before, part = first_line - 1, of_part
            expected = self._expected.take(lines) if self._expected is not None else b""
            known = expected.count(b"\n")
            self._known += known
            yield Block(
                first_line=first_line,
                lines=lines,
                outputs=outputs,
                expected=expected + STAND_IN * (lines - known),
                known=known,
                buffer=buffer,
                position=position,
                part=part,
                lines_before=lines_before,
            )
            first_line += lines

    def read(self, workers: Workers) -> Iterator[Lines]:
        """Read the lines of the output, in order.

        What follows the first lines of a plain file is read in ranges, by the workers; they unpack the independent
        parts of a compressed one.
        """
        reader = self._outputs
        if workers.threads > 1:
            reader.unpack_by(workers)
        while size := reader.read_block(buffer := self._buffer()):
            outputs = memoryview(buffer)[:size]
            yield buffer, outputs, count_lines(outputs), reader.position, reader.source.path
            ranges = rest_in_ranges(reader) if workers.threads > 1 else None
            if ranges is not None:
                yield from self._read_ranges(ranges, workers)
                if not reader.next_part():
                    break
        reader.check_unchanged()

    def _read_ranges(self, ranges: RangeReader, workers: Workers) -> Iterator[Lines]:
        before, part = (self._outputs.position or 0) - (self._outputs.source.position or 0), ranges.path

        def read(wanted: Range) -> tuple[Lines, memoryview]:
            found = ranges.read(wanted, self._buffer())
            view = memoryview(found.buffer)
            outputs = view[found.start : found.stop]
            lines = found.buffer, outputs, count_lines(outputs), before + wanted.stop, part
            return lines, view[found.start : found.stored]

        for found, stored in workers.map_in_order(read, ranges.ranges(RANGE_BYTES)):
            buffer, outputs, lines, *_ = found
            self._outputs.digest(stored)
            stored.release()
            if lines:
                yield found
            else:  # the range is inside of a line
                outputs.release()
                self._free.append(buffer)

    def _buffer(self) -> bytearray:
        try:
            return self._free.pop()
        except IndexError:
            return bytearray()

    def _let_go(self, block: Block) -> None:
        """Let the buffer of a block be read into again."""
        block.outputs.release()
        self._free.append(block.buffer)

    def count_expected(self) -> int:
        """Read the expected file to its end and count its lines; 0 where there is none.

        Raises UnreadableFileError if it was changed while it was read.
        """
        if self._expected is not None:
            self._known += self._expected.count_rest()
            self._expected.check_unchanged()
        return self._known

    def _threads(self, wanted: int | None) -> int:
        """Tell how many threads should work beside the one that numbers: none where that would not help."""
        if not choose_backend().parallel:
            return 0
        threads = wanted or available_cores()
        return threads if threads > 1 or self._outputs.source.compression else 0


class MatchedBlockReader(BlockReader):
    """Reads an output that has to have as many lines as its expected file, and at least one."""

    def __init__(self, outputs: LineReader, expected: LineReader) -> None:
        super().__init__(outputs, expected)
        self._expected_path = expected.path

    def blocks(self, workers: Workers) -> Iterator[Block]:
        """Give the blocks in order, as :meth:`BlockReader.blocks`.

        Raises UnreadableFileError if a file was changed while it was read, EmptyFileError and, after the blocks that
        the two files have in common, LineCountError; an output line beyond the last expected one is looked at first,
        since a malformed one (a blank line at the end) says more.
        """
        lines = 0
        blocks = super().blocks(workers)
        for block in blocks:
            lines += block.lines
            if block.known < block.lines:
                yield block.head(block.known + 1)
                raise self._line_count(lines + self._count(blocks), self.count_expected())
            yield block
        if not lines:
            raise EmptyFileError(what="output", path=self._outputs.path)
        expected = self.count_expected()
        if expected > lines:
            raise self._line_count(lines, expected)

    def _count(self, blocks: Iterable[Block]) -> int:
        lines = 0
        for block in blocks:
            lines += block.lines
            self._let_go(block)
        return lines

    def _line_count(self, lines: int, expected_lines: int) -> LineCountError:
        return LineCountError(
            what="output",
            path=self._outputs.path,
            lines=lines,
            expected_path=self._expected_path,
            expected_lines=expected_lines,
        )


class BlockScorer:
    """Scores an output against its expected file, block by block, for each of some columns, in threads."""

    def __init__(
        self, outputs: LineReader, expected: LineReader, columns: Sequence[Column], threads: int | None
    ) -> None:
        self._outputs, self._expected, self._columns, self._threads = outputs, expected, columns, threads

    @property
    def sha256(self) -> str | None:
        """The digest of the output's decompressed bytes, once all are read; None unless its reader makes one."""
        return self._outputs.sha256

    def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        """Give the blocks in order, each with the columns' losses, as :meth:`BlockReader.map` does.

        Raises EmptyFileError, MalformedLineError and LineCountError, of several the first in the order of lines.
        """
        reader = MatchedBlockReader(self._outputs, self._expected)
        return reader.map(self._score, threads=self._threads, progress=progress)

    def _score(self, block: Block) -> list[LineStatistics]:
        return score_block(block, self._columns, self._expected.path)


def score_block(block: Block, columns: Sequence[Column], expected_path: str) -> list[LineStatistics]:
    """Score a block for each of some columns; raises MalformedLineError, the first in the order of lines.

    Of an output in parts it says in which the line is, and its number there.
    """
    scored: list[LineStatistics] = []
    errors: list[MalformedLineError] = []
    for column in columns:
        try:
            scored.append(column.statistics(block.outputs, block.expected, block.first_line))
        except MalformedLineError as error:
            errors.append(error)
    if not errors:
        return scored
    first = min(errors, key=lambda error: error.line)
    if first.role == "output":
        first.path, first.line = block.part, first.line - block.lines_before
    else:
        first.path = expected_path
    raise first
