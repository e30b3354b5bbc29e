"""Blocks of whole lines of an output, side by side with their expected lines, and the threads that work on them.

An output goes through three steps, each in the order of its lines:

    lines, counted ──> blocks with line numbers and expected lines ──> results

Threads read and work; this thread numbers. An error of any step is raised after the results before it.
:mod:`geval_py.scoring.cluster` has the workers of a cluster in the place of threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeAlias, TypeVar

from geval_py.errors import EmptyFileError, GevalError
from geval_py.reading.lines import (
    LineReader,
    ReadAt,
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


class Counted(NamedTuple):
    """Some lines of an output, how many stored bytes there are up to their end, and their number.

    ``text`` is where a worker finds them, if they are read elsewhere.
    """

    text: Any
    position: int
    lines: int


class Block(NamedTuple):
    """Lines from the number ``first_line`` on, and as many expected lines, of which the first ``known`` are real.

    The others are stand-ins. The ``outputs`` are lines or, if they are read elsewhere, where a worker finds them.
    """

    outputs: Any
    lines: int
    first_line: int
    expected: bytes
    known: int
    position: int


def map_blocks(
    outputs: LineReader,
    expected: LineReader | None,
    work: Callable[[Block], Result],
    *,
    threads: int | None = None,
    matched: bool = False,
    progress: Progress | None = None,
) -> Iterator[tuple[Block, Result]]:
    """Yield the blocks of an output in order, each with the result of the work on it, by default by a thread a core.

    ``progress`` is called after each block. A ``matched`` output has to have as many lines as the expected file, and
    at least one. Raises EmptyFileError and, after the blocks that the two files have in common, LineCountError;
    UnreadableFileError if a file was changed.
    """
    threads = min(threads or available_cores(), outputs.size // RANGE_BYTES)
    is_idle = threads < (2 if outputs.compression is None else 1)  # this thread unpacks
    if is_idle or backends.choose_backend() == "python":  # which holds the GIL
        blocks = numbered(_counted_lines(outputs), outputs, expected, matched=matched)
        results: Iterator[tuple[Block, Result]] = ((block, work(block)) for block in blocks)
    else:
        results = _in_threads(threads, outputs, expected, work, matched=matched)
    for block, result in results:
        yield block, result
        if progress is not None:
            progress(block.position, outputs.size)


def _in_threads(
    threads: int, outputs: LineReader, expected: LineReader | None, work: Callable[[Block], Result], *, matched: bool
) -> Iterator[tuple[Block, Result]]:
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(threads)

    def in_pool(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        return in_order(lambda item: pool.submit(function, item).result, items, ahead=threads)

    is_interrupted = False
    try:
        yield from in_pool(work, numbered(_counted_lines(outputs, in_pool), outputs, expected, matched=matched))
    except KeyboardInterrupt:
        is_interrupted = True
        raise
    finally:
        pool.shutdown(wait=not is_interrupted, cancel_futures=True)  # a block of long lines may take half a minute


def _counted_lines(outputs: LineReader, in_pool: Callable[..., Iterator[Any]] | None = None) -> Iterator[Counted]:
    """Read the lines of an output, in order; a pool's threads read what follows the first lines of a plain file."""
    if in_pool is None or outputs.read_at is None:
        while text := outputs.block():
            yield Counted(memoryview(text), outputs.position, backends.count_lines(text))
    else:
        first, read_at = outputs.offset, outputs.read_at

        def counted_from(start: int) -> Counted:
            return read_range(outputs, read_at, first, start, min(start + RANGE_BYTES, outputs.size))

        for _, counted in in_pool(counted_from, range(first, outputs.size, RANGE_BYTES)):
            if counted.lines:  # otherwise the range is inside of a line
                yield counted
    outputs.check_unchanged()


def read_range(outputs: LineReader, read_at: ReadAt, first: int, start: int, stop: int) -> Counted:
    """Read the lines of a plain file that begin in a range of its bytes; ``first`` is where the first line begins."""
    stored = read_lines_between(outputs.path, read_at, start, stop, first=first, size=outputs.size)
    text = whole_lines(stored)
    if len(text) > len(stored):
        outputs.file.ends_in_newline = False
    return Counted(memoryview(text), stop, backends.count_lines(text))


def numbered(
    counted: Iterable[Counted], outputs: LineReader, expected: LineReader | None, *, matched: bool
) -> Iterator[Block]:
    """Yield blocks of counted lines with their numbers and expected lines; raises as :func:`map_blocks`."""
    answers = b"" if expected is None else expected.rest()
    first_line, place, rest = 1, 0, iter(counted)
    for text, position, lines in rest:
        end, known = end_of_lines(answers, place, lines)
        is_short = matched and known < lines
        # The first line beyond the expected ones is worked on too: its own error says more.
        worked_on = known + 1 if is_short else lines
        block_answers = answers[place:end] + STAND_IN * (worked_on - known)
        if isinstance(text, memoryview) and worked_on < lines:
            text = text[: end_of_lines(text, 0, worked_on)[0]]
        yield Block(text, worked_on, first_line, block_answers, known, position)
        first_line, place = first_line + lines, end
        if is_short:
            break
    if expected is not None:
        expected.check_unchanged()
    if not matched or expected is None:
        return
    output_lines = first_line - 1 + sum(more.lines for more in rest)
    if not output_lines:
        raise EmptyFileError(what="output", path=outputs.path)
    check_line_count("output", outputs.path, output_lines, expected.path, answers.count(b"\n"))


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
