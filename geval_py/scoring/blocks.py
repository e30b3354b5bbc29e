"""Read an output and its expected file side by side, in blocks of whole lines, and score the blocks.

A block is read by one thread and may be scored by another; its buffer is used again when its statistics are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from geval_py.errors import EmptyFileError, LineCountError, MalformedLineError
from geval_py.reading.lines import LineReader
from geval_py.scoring.kernel import choose_backend, count_lines
from geval_py.scoring.metrics import Column, LineStatistics
from geval_py.scoring.parallel import available_cores


@dataclass(frozen=True, slots=True)
class Block:
    """Some output lines and as many expected lines. ``outputs`` is a part of ``buffer``, which is used again."""

    first_line: int
    outputs: memoryview
    expected: bytes
    buffer: bytearray


class BlockScorer:
    """The blocks of two files, read side by side, and how they are scored."""

    def __init__(self, outputs: LineReader, expected: LineReader, columns: Sequence[Column]) -> None:
        self._outputs, self._expected, self._columns = outputs, expected, columns
        self._free: list[bytearray] = []

    def threads(self, wanted: int | None) -> int:
        """Tell how many threads should score beside the one that reads: none where that would not help."""
        if not choose_backend().parallel:
            return 0
        threads = wanted or available_cores()
        return threads if threads > 1 or self._outputs.source.compression else 0

    def blocks(self) -> Iterator[Block]:
        """Give the blocks in order.

        Raises EmptyFileError and, after the blocks that the two files have in common, LineCountError; an output
        line beyond the last expected one is looked at first, since a malformed one (a blank line at the end) says
        more.
        """
        first_line = 1
        buffer = bytearray()
        while size := self._outputs.read_block(buffer):
            outputs = memoryview(buffer)[:size]
            lines = count_lines(outputs)
            words = self._expected.take(lines)
            matched = words.count(b"\n")
            if matched < lines:
                yield from self._last_block(buffer, size, words, first_line)
                raise self._line_count(first_line - 1 + lines, first_line - 1 + matched)
            yield Block(first_line, outputs, words, buffer)
            first_line += lines
            buffer = self._free.pop() if self._free else bytearray()
        if first_line == 1:
            raise EmptyFileError(what="output", path=self._outputs.path)
        if rest := self._expected.count_rest():
            raise self._line_count(first_line - 1, first_line - 1 + rest)

    def _last_block(self, buffer: bytearray, size: int, words: bytes, first_line: int) -> Iterator[Block]:
        """Give the lines that have an expected word, and the line after them with a stand-in for one."""
        parts = bytes(buffer[:size]).split(b"\n", words.count(b"\n") + 1)[:-1]
        text = b"".join(part + b"\n" for part in parts)
        yield Block(first_line, memoryview(text), words + b"0\n", bytearray())

    def score(self, block: Block) -> tuple[Block, list[LineStatistics]]:
        """Score a block for each column; raises MalformedLineError."""
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
        return block, scored

    def release(self, block: Block) -> None:
        """Let a block's buffer be used again."""
        block.outputs.release()
        self._free.append(block.buffer)

    def _line_count(self, lines: int, expected_lines: int) -> LineCountError:
        return LineCountError(
            what="output",
            path=self._outputs.path,
            lines=lines + self._outputs.count_rest(),
            expected_path=self._expected.path,
            expected_lines=expected_lines,
        )
