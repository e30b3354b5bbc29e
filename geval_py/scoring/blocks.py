"""Read an output and its expected file side by side, in blocks of whole lines, and work on the blocks in threads.

A block is read by one thread and may be worked on by another; its buffer is read into again once the block was taken.
Who scores wants as many output lines as expected ones (:class:`BlockScorer`); who looks takes what there is
(:class:`BlockReader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from geval_py.errors import EmptyFileError, LineCountError, MalformedLineError
from geval_py.reading.lines import LineReader
from geval_py.scoring.kernel import choose_backend, count_lines
from geval_py.scoring.metrics import LineStatistics
from geval_py.scoring.parallel import Progress, available_cores, map_in_order
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from geval_py.scoring.metrics.base import Column

    Result = TypeVar("Result")

STAND_IN = b"0\n"  # for an expected line that is not there; every metric takes it for a word, or a class


class Block(Value):
    """Some output lines, the first of which has the number ``first_line``, and as many expected lines.

    Of the expected lines ``known`` are real, those after them stand-ins. ``outputs`` is a part of ``buffer``, which
    is used again.
    """

    first_line: int
    lines: int
    outputs: memoryview
    expected: bytes
    known: int
    buffer: bytearray

    def head(self, lines: int) -> Block:
        """Copy the first lines."""
        outputs, expected = (_head(text, lines) for text in (bytes(self.outputs), self.expected))
        return Block(
            first_line=self.first_line,
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
        reads; ``progress`` is called after each block, where the size of the output can be known. An error of the
        work or the reading is raised where it belongs: after the blocks before it.
        """
        source = self._outputs.source
        for block, result in map_in_order(lambda block: (block, work(block)), self.blocks(), self._threads(threads)):
            yield block, result
            block.outputs.release()
            self._free.append(block.buffer)
            if progress is not None and source.size is not None:
                progress(source.position or 0, source.size)

    def blocks(self) -> Iterator[Block]:
        """Read the blocks in order."""
        first_line, buffer = 1, bytearray()
        while size := self._outputs.read_block(buffer):
            outputs = memoryview(buffer)[:size]
            lines = count_lines(outputs)
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
            )
            first_line += lines
            buffer = self._free.pop() if self._free else bytearray()

    def count_expected(self) -> int:
        """Read the expected file to its end and count its lines; 0 where there is none."""
        if self._expected is not None:
            self._known += self._expected.count_rest()
        return self._known

    def _threads(self, wanted: int | None) -> int:
        """Tell how many threads should work beside the one that reads: none where that would not help."""
        if not choose_backend().parallel:
            return 0
        threads = wanted or available_cores()
        return threads if threads > 1 or self._outputs.source.compression else 0


class MatchedBlockReader(BlockReader):
    """Reads an output that has to have as many lines as its expected file, and at least one."""

    def __init__(self, outputs: LineReader, expected: LineReader) -> None:
        super().__init__(outputs, expected)
        self._expected_path = expected.path

    def blocks(self) -> Iterator[Block]:
        """Read the blocks in order.

        Raises EmptyFileError and, after the blocks that the two files have in common, LineCountError; an output
        line beyond the last expected one is looked at first, since a malformed one (a blank line at the end) says
        more.
        """
        lines = 0
        for block in super().blocks():
            lines += block.lines
            if block.known < block.lines:
                yield block.head(block.known + 1)
                raise self._line_count(lines + self._outputs.count_rest(), lines - block.lines + block.known)
            yield block
        if not lines:
            raise EmptyFileError(what="output", path=self._outputs.path)
        expected = self.count_expected()
        if expected > lines:
            raise self._line_count(lines, expected)

    def _line_count(self, lines: int, expected_lines: int) -> LineCountError:
        return LineCountError(
            what="output",
            path=self._outputs.path,
            lines=lines,
            expected_path=self._expected_path,
            expected_lines=expected_lines,
        )


class BlockScorer:
    """Scores an output against its expected file, block by block, for each of some columns."""

    def __init__(self, outputs: LineReader, expected: LineReader, columns: Sequence[Column]) -> None:
        self._outputs, self._expected, self._columns = outputs, expected, columns

    def scored(self, threads: int | None, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        """Give the blocks in order, each with the columns' losses, as :meth:`BlockReader.map` does.

        Raises EmptyFileError, MalformedLineError and LineCountError, of several the first in the order of lines.
        """
        reader = MatchedBlockReader(self._outputs, self._expected)
        return reader.map(self._score, threads=threads, progress=progress)

    def _score(self, block: Block) -> list[LineStatistics]:
        scored: list[LineStatistics] = []
        errors: list[MalformedLineError] = []
        for column in self._columns:
            try:
                scored.append(column.statistics(block.outputs, block.expected, block.first_line))
            except MalformedLineError as error:
                error.path = (self._outputs if error.role == "output" else self._expected).path
                errors.append(error)
        if errors:
            raise min(errors, key=lambda error: error.line)
        return scored
