"""Blocks of whole lines of an output, side by side with their expected lines, and the workers that work on them.

:class:`Workers` is the one seam between threads here (:class:`Threads`) and workers elsewhere. The ranges of a plain
file are read by the threads that work; other sources by one thread, in the order of lines. One thread numbers the
blocks and gives them their expected lines, and any thread works on them. A block's buffer is used again once the next
block is asked for. Scoring wants as many output lines as expected ones (:class:`MatchedBlockReader`); checking takes
any number (:class:`BlockReader`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, islice

from geval_py.errors import EmptyFileError, GevalError, LineCountError, MalformedLineError
from geval_py.reading.lines import LineReader, Range, RangeReader, rest_in_ranges
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Any, Protocol, TypeAlias, TypeVar

    from geval_py.reading.sources import ListedRows
    from geval_py.scoring.metrics.base import Column

    Item = TypeVar("Item")
    Result = TypeVar("Result")
    Given = TypeVar("Given", covariant=True)
    # A buffer, its part with the lines, their number, the stored bytes read so far, and the path of the part; and the
    # rows, if the lines are in these instead.
    Lines: TypeAlias = tuple[bytearray, memoryview, int, int | None, str, ListedRows | None]

    class Awaited(Protocol[Given]):
        """A result that is under way."""

        def result(self) -> Given:
            """Wait for the result; raises what the work raised."""

    class Scorer(Protocol):
        """Scores an output against its expected file, for each of some columns."""

        @property
        def sha256(self) -> str | None:
            """The digest of the output's decompressed bytes once all are read, if one was asked for."""

        def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
            """Yield the blocks in order, each with the columns' statistics.

            Raises EmptyFileError, MalformedLineError and LineCountError, the first in the order of lines.
            """

    class Workers(Protocol):
        """Where the blocks of an output are worked on: threads here, or workers elsewhere."""

        @property
        def are_here(self) -> bool:
            """Whether the workers are threads of this process, to which all texts come."""

        @property
        def address(self) -> str:
            """Where the workers are, for messages."""

        @property
        def at_once(self) -> int:
            """How many calls should be under way so that no worker waits."""

        def scorer(
            self,
            outputs: LineReader,
            expected: LineReader,
            columns: Sequence[Column],
            *,
            digest: bool,
            selects: bool,
            listed: bool,
        ) -> Scorer:
            """Return a scorer of an output; with ``digest``, workers elsewhere compute the SHA-256.

            With ``listed``, the columns take rows in buffers where the output has them, and blocks have no texts.

            Raises UsageError where texts of single lines are needed (``selects``) and do not come to this process.
            """

        def reader(
            self, outputs: LineReader, expected: LineReader | None = None, *, selects: bool = False
        ) -> BlockReader:
            """Return a reader of an output, whose blocks the workers work on; raises as :meth:`scorer`."""

        def call(self, function: Callable[..., Result], *arguments: object) -> Result:
            """Let a worker call a function, and wait for the result; several threads may do so at once."""


Progress: TypeAlias = Callable[[int, int], None]  # how much of long work is done, and how much there is
ProgressOf: TypeAlias = Callable[[str], AbstractContextManager[Progress | None]]  # by the name of the work
RANGE_BYTES = 1 << 21
STAND_IN = b"0\n"  # for a missing expected line; every metric takes it for a word, or a class


class Block(Value):
    """Some output lines, the first of which has the number ``first_line``, and as many expected lines.

    The first ``known`` expected lines are real, the others stand-ins. ``outputs`` is a part of ``buffer``, which is
    used again. ``position`` is the number of stored bytes read so far, where that can be known. ``part`` is the path
    of the part of the output that holds the lines, or of the output; the parts before it have ``lines_before`` lines.
    ``rows`` are the lines of an output whose format has them in buffers; ``outputs`` is empty then.
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
    rows: ListedRows | None = None

    def head(self, lines: int) -> Block:
        """Copy the first lines."""
        text = bytes(self.outputs) if self.rows is None else self.rows.lines(lines)
        outputs, expected = (_head(text, lines) for text in (text, self.expected))
        return self.replace(
            rows=None,
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

    def __init__(
        self,
        outputs: LineReader,
        expected: LineReader | None = None,
        threads: int | None = None,
        *,
        listed: bool = False,
    ) -> None:
        self._outputs, self._expected, self._threads, self._listed = outputs, expected, threads, listed
        self._known = 0
        self._free: list[bytearray] = []

    def map(
        self, work: Callable[[Block], Result], *, threads: int | None = None, progress: Progress | None = None
    ) -> Iterator[tuple[Block, Result]]:
        """Yield the blocks in order, each with ``work(block)``; a block lasts until the next one is asked for.

        ``threads`` is the number of threads that work (by default the reader's or one a core) beside the one that
        numbers the blocks; ``progress`` is called after each block, where the size of the output can be known. An
        error of the work or the reading is raised after the blocks before it.
        """
        return self.map_pieces(lambda blocks: work(*blocks), lambda _: (), threads=threads, progress=progress)

    def map_pieces(
        self,
        work: Callable[..., Result],
        arguments: Callable[[Block], tuple[object, ...]],
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Block, Result]]:
        """Yield the blocks in order, each with ``work(blocks, *arguments(block))``; ``blocks`` are the block's parts.

        ``arguments`` is called in the order of the blocks. Workers elsewhere have the texts of ``blocks``, and the
        blocks that are yielded here have none. Otherwise as :meth:`map`.
        """
        size = self._outputs.size

        def work_on(item: tuple[Block, tuple[object, ...]]) -> tuple[Block, Result]:
            block, more = item
            return block, work((block,), *more)

        with ThreadPool(self._count_threads(self._threads if threads is None else threads)) as pool:
            numbered = ((block, arguments(block)) for block in self.blocks(pool))
            for block, result in pool.map_in_order(work_on, numbered):
                yield block, result
                self._let_go(block)
                if progress is not None and size is not None:
                    progress(block.position or 0, size)

    def blocks(self, pool: ThreadPool) -> Iterator[Block]:
        """Yield the blocks in order; the pool's threads read ranges."""
        first_line, lines_before, part = 1, 0, ""
        for buffer, outputs, lines, position, of_part, rows in self.read(pool):
            if part != of_part:
                lines_before, part = first_line - 1, of_part
            expected = self._expected.take(lines) if self._expected is not None else b""
            known = backends.count_lines(expected)
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
                rows=rows,
            )
            first_line += lines

    def read(self, pool: ThreadPool) -> Iterator[Lines]:
        """Read the lines of the output, in order.

        The pool's threads read what follows the first lines of a plain file, in ranges.
        """
        reader = self._outputs
        rows = reader.rows() if self._listed else None
        for some in rows or ():
            text, listed = (some, None) if isinstance(some, bytes) else (b"", some)
            lines = backends.count_lines(text) if listed is None else len(listed.offsets) - 1
            if lines:
                yield bytearray(), memoryview(text), lines, None, str(reader.path), listed
        if rows is not None:
            reader.check_unchanged()
            return
        while size := reader.read_block(buffer := self._buffer()):
            outputs = memoryview(buffer)[:size]
            yield buffer, outputs, backends.count_lines(outputs), reader.position, reader.source.path, None
            ranges = rest_in_ranges(reader) if pool.threads > 1 else None
            if ranges is not None:
                yield from self._read_ranges(ranges, pool)
                if not reader.next_part():
                    break
        reader.check_unchanged()

    def _read_ranges(self, ranges: RangeReader, pool: ThreadPool) -> Iterator[Lines]:
        before, part = (self._outputs.position or 0) - (self._outputs.source.position or 0), ranges.path

        def read(wanted: Range) -> tuple[Lines, memoryview]:
            found = ranges.read(wanted, self._buffer())
            view = memoryview(found.buffer)
            outputs = view[found.start : found.stop]
            lines = found.buffer, outputs, backends.count_lines(outputs), before + wanted.stop, part, None
            return lines, view[found.start : found.stored]

        for found, stored in pool.map_in_order(read, ranges.ranges(RANGE_BYTES)):
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
        """Read the expected file to its end and count its lines; 0 without an expected file.

        Raises UnreadableFileError if it was changed while it was read.
        """
        if self._expected is not None:
            self._known += self._expected.count_rest()
            self._expected.check_unchanged()
        return self._known

    def _count_threads(self, wanted: int | None) -> int:
        """Count the threads that should work beside the one that numbers: 0 where more would not help."""
        if backends.choose_backend() == "python":
            return 0
        threads = wanted or available_cores()
        return threads if threads > 1 or self._outputs.source.compression else 0


class MatchedBlockReader(BlockReader):
    """Reads an output that has to have as many lines as its expected file, and at least one."""

    def __init__(
        self, outputs: LineReader, expected: LineReader, threads: int | None = None, *, listed: bool = False
    ) -> None:
        super().__init__(outputs, expected, threads, listed=listed)
        self._expected_path = expected.path

    def blocks(self, pool: ThreadPool) -> Iterator[Block]:
        """Yield the blocks in order, as :meth:`BlockReader.blocks`.

        Raises UnreadableFileError if a file was changed while it was read, EmptyFileError and, after the blocks that
        the two files have in common, LineCountError. The first output line beyond the last expected one is still
        worked on, since its own error (a blank line at the end) says more.
        """
        lines = 0
        blocks = super().blocks(pool)
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
        self,
        outputs: LineReader,
        expected: LineReader,
        columns: Sequence[Column],
        threads: int | None,
        *,
        listed: bool = False,
    ) -> None:
        self._outputs, self._expected_path, self._columns = outputs, expected.path, columns
        self._reader = MatchedBlockReader(outputs, expected, threads, listed=listed)

    @property
    def sha256(self) -> str | None:
        return self._outputs.sha256

    def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        return self._reader.map(
            lambda block: score_block(block, self._columns, self._expected_path), progress=progress
        )


class Threads:
    """Workers that are so many threads of this process, by default one a core."""

    are_here = True
    address = "this machine"

    def __init__(self, count: int | None = None) -> None:
        self._count = count

    @property
    def at_once(self) -> int:
        return self._count or available_cores()

    def scorer(
        self,
        outputs: LineReader,
        expected: LineReader,
        columns: Sequence[Column],
        *,
        digest: bool,
        selects: bool,
        listed: bool,
    ) -> BlockScorer:
        del digest, selects  # the reader of the output makes a digest, and all texts come here
        return BlockScorer(outputs, expected, columns, self._count, listed=listed)

    def reader(
        self, outputs: LineReader, expected: LineReader | None = None, *, selects: bool = False
    ) -> BlockReader:
        del selects
        return BlockReader(outputs, expected, self._count)

    def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        return function(*arguments)


def score_block(block: Block, columns: Sequence[Column], expected_path: str) -> list[LineStatistics]:
    """Score a block for each of some columns; raises MalformedLineError, the first in the order of lines.

    The error names the metrics of the columns with the same error, unless these are all of several columns. For an
    output in parts, it names the part and the line's number in it.
    """
    scored: list[LineStatistics] = []
    errors: list[MalformedLineError] = []
    outputs: Any = block.outputs if block.rows is None else block.rows  # which only some columns take
    for column in columns:
        try:
            scored.append(column.statistics(outputs, block.expected, block.first_line))
        except MalformedLineError as error:
            errors.append(error)
    if not errors:
        return scored
    first = min(errors, key=lambda error: error.line)
    same = [error for error in errors if (error.line, error.hint) == (first.line, first.hint)]
    is_of_all = len(same) == len(columns) > 1
    first.metrics = () if is_of_all else tuple(name for error in same for name in error.metrics)
    if first.role == "output":
        first.path, first.line = block.part, first.line - block.lines_before
    else:
        first.path = expected_path
    raise first


def no_progress(_: str) -> AbstractContextManager[None]:
    """Report no progress."""
    return nullcontext()


def available_cores() -> int:
    """Count the processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ThreadPool:
    """Threads that start when there is work for a second one; without threads (0) the caller does all the work.

    Several maps may share them, and one map may take what another yields: what is submitted first is done first.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> ThreadPool:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map_in_order(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield ``function(item)`` of each item, in order, computed in threads while the next item is made.

        At most one item more than there are threads is under way. An error is raised after the results of all items
        before it, whether the function or the making of an item raised it. The caller works on a single item itself.
        """
        if self.threads == 0:
            yield from map(function, items)
            return
        errors: list[GevalError] = []
        made = until_error(items, errors)
        beginning = list(islice(made, 2))
        if len(beginning) == 2:
            yield from in_order(partial(self._submit, function), chain(beginning, made), ahead=self.threads)
        else:
            yield from map(function, beginning)
        if errors:
            raise errors[0]

    def _submit(self, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = self._pool or ThreadPoolExecutor(self.threads)
        return self._pool.submit(function, item)


def in_order(submit: Callable[[Item], Awaited[Result]], items: Iterable[Item], *, ahead: int) -> Iterator[Result]:
    """Submit items and yield their results in order, while as many as ``ahead`` more are under way.

    An error in the making of an item is raised after the results of all items before it.
    """
    errors: list[GevalError] = []
    under_way: deque[Awaited[Result]] = deque()
    for item in until_error(items, errors):
        under_way.append(submit(item))
        if len(under_way) > ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
    if errors:
        raise errors[0]


def until_error(items: Iterable[Item], errors: list[GevalError]) -> Iterator[Item]:
    """Yield the items until one cannot be made; then keep the error."""
    try:
        yield from items
    except GevalError as error:
        errors.append(error)
