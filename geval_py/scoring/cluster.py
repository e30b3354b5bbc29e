"""The workers of a Dask cluster, which score a file to the same losses, to the last bit, as threads here do.

A worker gets a path, a range of bytes and the number of the first line in it, and returns statistics:

    client:   cuts ranges ─────> numbers lines, takes expected ones ─────> results, in order
    workers:             count ─┘                                   └─> work

Each range is read twice by a worker, the second time from the cache of its system.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, NamedTuple

from geval_py.errors import ClusterError, DataError, MalformedLineError, UsageError
from geval_py.reading.files import changed
from geval_py.reading.lines import LineReader, end_of_lines
from geval_py.scoring.blocks import Block, Counted, Progress, in_order, numbered, read_range
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.text import named, without_credentials
from geval_py.version import __version__, installs

SECONDS_TO_ANSWER = 10
RETRIES = 2  # of a task that fails, on whichever worker
MIN_RANGE_BYTES, MAX_RANGE_BYTES = 1 << 22, 1 << 28  # that a task reads at once
RANGES_A_THREAD = 8  # of a file that is large enough, so that all threads end at about the same time
AHEAD_A_THREAD = 2  # tasks under way
_NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # expected words may well be megabytes


@contextmanager
def opened_cluster(address: str) -> Iterator[Any]:
    """Connect to the scheduler at an address, and yield the client.

    Raises UsageError without Dask, and ClusterError where nobody answers within SECONDS_TO_ANSWER.
    """
    try:
        distributed = import_module("distributed")
    except ModuleNotFoundError as error:
        raise UsageError(f"a cluster needs {error.name}, of the extra cluster: {installs('cluster')}") from error
    try:
        import_module("distributed.comm").resolve_address(address)
        client = distributed.Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except ValueError as error:
        raise UsageError(f"{named(address)} is no address of a cluster: {error}") from error
    except OSError as error:
        raise ClusterError(address=address, reason=f"nobody answers for {SECONDS_TO_ANSWER} seconds") from error
    with client:
        yield client


class Range(NamedTuple):
    """The lines of a file that start between two bytes; ``first`` is where its first line starts."""

    path: str
    start: int
    stop: int
    first: int
    size: int


ScoreBlock = Callable[[Block], list[LineStatistics]]


def map_on(
    client: Any,
    outputs: LineReader,
    expected: LineReader,
    work: ScoreBlock,
    progress: Progress | None = None,
) -> Iterator[tuple[Block, list[LineStatistics]]]:
    """Yield blocks of an output in order, each with the statistics that a worker of a client's cluster made.

    All workers read the output under the same path. Raises UsageError for an output that is no plain file of lines,
    DataError, and ClusterError without workers, or if one has another version of geval-py.
    """
    path = outputs.file.path
    if path is None or outputs.compression is not None:
        advice = "unpack it" if outputs.compression else "write it to a file of lines (geval convert)"
        raise UsageError(f"the workers of a cluster cannot read {named(outputs.path)}: {advice}")
    path = os.path.abspath(path)
    threads = worker_threads(client)
    size = outputs.size
    step = min(max(-(-size // (threads * RANGES_A_THREAD)), MIN_RANGE_BYTES), MAX_RANGE_BYTES)
    first = outputs.offset
    ranges = [Range(path, start, min(start + step, size), first, size) for start in range(first, size, step)]

    def submitted(function: Callable[..., Any], *arguments: Any) -> Any:
        return client.submit(function, *arguments, pure=False, retries=RETRIES)

    def counted() -> Iterator[Counted]:
        counts = [submitted(count, one) for one in ranges]
        for place, future in zip(ranges, counts, strict=True):
            if lines := future.result():
                yield Counted(place, place.stop, lines)

    with _watched(client, outputs), import_module("dask").config.set(_NO_WARNING):
        blocks = numbered(counted(), outputs, expected, matched=True)
        ahead = AHEAD_A_THREAD * threads
        for block, result in in_order(lambda block: submitted(work_on, block, work).result, blocks, ahead=ahead):
            if isinstance(result, MalformedLineError):
                raise result
            yield block, result
            if progress is not None:
                progress(block.position, size)
        outputs.check_unchanged()


def worker_threads(client: Any) -> int:
    """Return the number of threads of a client's workers; raises ClusterError."""
    address = without_credentials(str(client.scheduler.address))
    try:
        client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
    except TimeoutError as error:
        raise ClusterError(address=address, reason=f"it has no worker for {SECONDS_TO_ANSWER} seconds") from error
    # By a function of Python's own: a worker without geval-py could not even be asked by one of ours.
    versions = client.run(resolve_name, "geval_py.version:__version__", on_error="return")
    others = {worker: version for worker, version in versions.items() if version != __version__}
    for worker, version in sorted(others.items()):
        what = f"has geval-py {version}" if isinstance(version, str) else f"has no geval-py ({version})"
        raise ClusterError(address=address, reason=f"the worker {worker} {what}, this is {__version__}")
    return sum(client.nthreads().values())


@contextmanager
def _watched(client: Any, outputs: LineReader) -> Iterator[None]:
    """Turn errors of the cluster into ours, and name the file in errors as it was named here."""
    distributed = import_module("distributed")
    gone = (distributed.client.FutureCancelledError, distributed.comm.CommClosedError, ConnectionError)
    address = without_credentials(str(client.scheduler.address))
    try:
        yield
    except DataError as error:
        if error.path == os.path.abspath(outputs.path):
            error.path = outputs.path
        raise
    except distributed.KilledWorker as error:
        reason = f"a range was given up, since {error.allowed_failures + 1} workers that had it died"
        raise ClusterError(address=address, reason=reason) from error
    except (*gone, OSError) as error:
        # Dask's own errors are about connections and have no number. Others say what their machine lacks.
        number = None if isinstance(error, gone) else error.errno
        reason = "it went away while it was at work" if number is None else os.strerror(number)
        raise ClusterError(address=address, reason=reason) from error


# What a worker does


def count(place: Range) -> int:
    """Count the lines of a range; raises DataError."""
    return _read(place).lines


def work_on(block: Block, work: ScoreBlock) -> list[LineStatistics] | MalformedLineError:
    """Work on the lines of a block, whose text is a range; return a malformed line's error, which is not tried again.

    Raises DataError, also if there are fewer lines than were counted.
    """
    text, _, lines = _read(block.outputs)
    if lines < block.lines:
        raise changed(block.outputs.path)
    try:
        return work(block._replace(outputs=text[: end_of_lines(text, 0, block.lines)[0]]))
    except MalformedLineError as error:
        return error


def _read(place: Range) -> Counted:
    """Return the lines of a range; raises DataError."""
    with LineReader(place.path) as reader:
        if reader.read_at is None or reader.size != place.size:
            raise changed(place.path)
        return read_range(reader, reader.read_at, place.first, place.start, place.stop)
