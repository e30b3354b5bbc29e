"""Blocks of whole lines of an output, side by side with their expected lines, and the workers that work on them.

:class:`Workers` is the one seam between threads here (:class:`Threads`) and workers elsewhere
(:mod:`geval_py.scoring.cluster`). An output goes through three steps, each in the order of its lines:

    counted lines ──> blocks with line numbers and expected lines ──> results

The workers count and work; this process numbers. An error of any step is raised after the results before it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from geval_py.errors import EmptyFileError, GevalError
from geval_py.reading.lines import (
    Bytes,
    LineReader,
    check_line_count,
    end_of_lines,
    read_lines_between,
    whole_lines,
)
from geval_py.scoring.kernel import backends

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress: TypeAlias = Callable[[int, int], None]  # how much of long work is done, and how much there is
ProgressOf: TypeAlias = Callable[[str], AbstractContextManager[Progress | None]]  # by the name of the work
Submit: TypeAlias = Callable[[Item], Callable[[], Result]]  # starts work, and returns what waits for its result
RANGE_BYTES = 1 << 20  # that a thread reads at a time
STAND_IN = b"0\n"  # for a missing expected line; every metric takes it for a word, or a class


class Block(NamedTuple):
    """Some output lines, the first of which has the number ``first_line``, and as many expected lines.

    Workers make a block of the lines that they count; then this process numbers it and adds the ``expected`` lines.
    The first ``known`` of these are real, the others stand-ins. ``part`` is the path of the part of the output that
    holds the lines, or of the output; the parts before it have ``lines_before`` lines. ``position`` is the number of
    stored bytes up to their end, where that can be known. ``outputs`` is empty where workers elsewhere have the
    lines; ``where`` says how they find them. ``beside`` is what a caller added for the work.
    """

    part: str
    lines: int
    position: int | None
    outputs: Bytes = b""
    where: Any = None
    first_line: int = 1
    lines_before: int = 0
    expected: bytes = b""
    known: int = 0
    beside: Any = None


Number: TypeAlias = Callable[[Iterator[Block]], Iterator[Block]]
Work: TypeAlias = Callable[[Iterable[Block]], Result]  # on the parts, in order, of a block


class Workers(Protocol):
    """Where the blocks of an output are worked on: threads here, or workers elsewhere."""

    @property
    def is_local(self) -> bool:
        """Whether the workers are threads of this process, to which all texts come."""

    def map(self, outputs: LineReader, number: Number, work: Work[Result]) -> Iterator[tuple[Block, Result]]:
        """Yield each block that ``number`` makes of the lines of an output, with the result of the work on it.

        Raises UsageError for an output that workers elsewhere cannot read.
        """

    def digest(self, outputs: LineReader) -> Callable[[], str | None]:
        """Return a function that returns the SHA-256 of an output's decompressed bytes once all are read."""


def map_blocks(
    outputs: LineReader,
    expected: LineReader | None,
    work: Work[Result],
    workers: Workers,
    *,
    beside: Callable[[Block], object] | None = None,
    matched: bool = False,
    progress: Progress | None = None,
) -> Iterator[tuple[Block, Result]]:
    """Yield the blocks of an output in order, each with the result of ``work(parts of the block)``.

    Workers elsewhere work on the parts of a block one after the other, and the blocks that are yielded here have no
    texts. ``beside`` is called in the order of blocks; what it returns goes to the work with the block. ``progress``
    is called after each block, where the size of the output can be known.

    A ``matched`` output has to have as many lines as the expected file, and at least one. Raises EmptyFileError and,
    after the blocks that the two files have in common, LineCountError; UnreadableFileError if a file was changed.
    """
    size = outputs.size

    def number(counted: Iterator[Block]) -> Iterator[Block]:
        for block in _numbered(counted, outputs, expected, matched=matched):
            yield block if beside is None else block._replace(beside=beside(block))

    for block, result in workers.map(outputs, number, work):
        yield block, result
        if progress is not None and size is not None:
            progress(block.position or 0, size)


def _numbered(
    counted: Iterator[Block], outputs: LineReader, expected: LineReader | None, *, matched: bool
) -> Iterator[Block]:
    """Yield the counted blocks with their numbers and expected lines; raises as :func:`map_blocks`."""
    first_line, expected_lines, part, lines_before = 1, 0, "", 0
    for block in counted:
        if part != block.part:
            lines_before, part = first_line - 1, block.part
        answers = expected.take(block.lines) if expected is not None else b""
        known, lines = backends.count_lines(answers), block.lines
        first_line, expected_lines = first_line + lines, expected_lines + known
        block = block._replace(
            first_line=first_line - lines,
            lines_before=lines_before,
            expected=answers + STAND_IN * (lines - known),
            known=known,
        )
        if matched and known < lines:
            # The first line beyond the expected ones is worked on too: its own error says more.
            lines = known + 1
            whole = bytes(block.outputs)
            text = whole[: end_of_lines(whole, 0, lines)[0]]
            yield block._replace(lines=lines, outputs=text, expected=answers + STAND_IN)
            break
        yield block
    if not matched or expected is None:
        return
    output_lines = first_line - 1 + sum(block.lines for block in counted)
    if not output_lines:
        raise EmptyFileError(what="output", path=outputs.path)
    expected_lines += expected.count_rest()
    expected.check_unchanged()
    check_line_count("output", outputs.path, output_lines, expected.path, expected_lines)


class Threads:
    """Workers that are threads of this process: so many, by default one a core, but no more than there are ranges."""

    is_local = True

    def __init__(self, count: int | None = None) -> None:
        self.concurrency = count or available_cores()

    def map(self, outputs: LineReader, number: Number, work: Work[Result]) -> Iterator[tuple[Block, Result]]:
        threads = self.concurrency if outputs.size is None else min(self.concurrency, outputs.size // RANGE_BYTES)
        is_idle = threads < (2 if outputs.source.compression is None else 1)  # this thread unpacks
        if is_idle or backends.choose_backend() == "python":  # which holds the GIL
            for block in number(_read(outputs)):
                yield block, work((block,))
            return
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(threads)

        def in_pool(function: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[Item, Any]]:
            return in_order(lambda item: pool.submit(function, item).result, items, ahead=threads)

        try:
            yield from in_pool(lambda block: work((block,)), number(_read(outputs, in_pool)))
        finally:
            pool.shutdown(cancel_futures=True)

    def digest(self, outputs: LineReader) -> Callable[[], str | None]:
        return lambda: outputs.sha256


def _read(outputs: LineReader, map_in_pool: Callable[..., Iterator[Any]] | None = None) -> Iterator[Block]:
    """Read the lines of an output, in order; a pool's threads read what follows the first lines of a plain file."""
    while text := outputs.block():
        path, read_at = outputs.source.path, outputs.source.read_at
        lines, view = backends.count_lines(text), memoryview(text)
        yield Block(path, lines, outputs.position, view)
        if read_at is None or map_in_pool is None:
            continue
        first, size = outputs.offset, outputs.source.size or 0
        before = (outputs.position or 0) - (outputs.source.position or 0)
        read = partial(read_lines_between, path, read_at, first=first, size=size)

        def read_range(start: int, read: Callable[[int, int], Bytes] = read) -> tuple[Bytes, memoryview, int]:
            stored = read(start, start + RANGE_BYTES)
            text = memoryview(whole_lines(stored))
            return stored, text, backends.count_lines(text)

        for start, (stored, view, lines) in map_in_pool(read_range, range(first, size, RANGE_BYTES)):
            outputs.digest(stored)
            if lines:  # otherwise the range is inside of a line
                position = before + min(start + RANGE_BYTES, size)
                yield Block(path, lines, position, view)
        if not outputs.next_part():
            break
    outputs.check_unchanged()


def in_order(submit: Submit[Item, Result], items: Iterable[Item], *, ahead: int) -> Iterator[tuple[Item, Result]]:
    """Submit items and yield each with its result, in order, while as many as ``ahead`` more are under way.

    An error in the making of an item is raised after the results of all items before it.
    """
    under_way: deque[tuple[Item, Callable[[], Result]]] = deque()
    making, failure = iter(items), None
    while failure is None:
        try:
            item = next(making)
        except StopIteration:
            break
        except GevalError as error:
            failure = error
            break
        under_way.append((item, submit(item)))
        if len(under_way) > ahead:
            first, wait = under_way.popleft()
            yield first, wait()
    for first, wait in under_way:
        yield first, wait()
    if failure is not None:
        raise failure


def no_progress(_: str) -> AbstractContextManager[None]:
    """Report no progress."""
    return nullcontext()


def available_cores() -> int:
    """Count the processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
