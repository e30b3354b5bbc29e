"""The workers of a Dask cluster, which score an output to the same losses, to the last bit, as threads here do.

    client:   cuts shares ─────> numbers lines, takes expected ones ─────> results, in order
    workers:             count ─┘                                   └─> work

An output is cut into pieces, and each thread of a worker has a share of them or, in a small cluster, a few. A share
is two tasks: one counts the lines of each piece, one works on them. Tasks are sent, and their results fetched, in
batches, since each message costs the client and the scheduler milliseconds. The client sees no line of the output; a
worker sees its pieces, and the expected words that go with them. Each of the two tasks reads the pieces: a plain file
on the worker's machine comes from the system's cache the second time. So any worker can do any task, and Dask moves
no text.
"""

from __future__ import annotations

import operator
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import groupby
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar

from geval_py.errors import ClusterError, DataError, MalformedLineError, UsageError
from geval_py.reading.lines import LineReader, end_of_lines, opened_anywhere, read_lines_between, whole_lines
from geval_py.reading.sources import VirtualFile, absolute, changed, is_remote, state_at
from geval_py.scoring.blocks import Block, Number, Threads, Work, Workers, available_cores, in_order
from geval_py.scoring.kernel import backends
from geval_py.tables.sorting import grouped
from geval_py.text import named, without_credentials
from geval_py.version import __version__, installs

Item = TypeVar("Item")
Result = TypeVar("Result")
LOCAL = "local"
SECONDS_TO_ANSWER = 10
RETRIES = 2  # of a task that fails, on whichever worker
MIN_SHARE_BYTES, MAX_SHARE_BYTES = 1 << 22, 1 << 30  # more might not stay in the system's cache
SHARES_A_THREAD = 8  # of an output that is large enough, so that all threads end at about the same time
MAX_SHARES = 1000  # of a cluster whose threads have several each: shares cost the client time
MAX_LINES = 1 << 20  # of a task that works, whose expected words and losses the scheduler keeps in memory
MAX_PIECE_BYTES = 1 << 28
READ_BYTES, REMOTE_READ_BYTES = 1 << 21, 1 << 24  # that a worker reads at a time
AHEAD_A_THREAD = 2  # shares under way
MAX_BATCH = 100  # tasks that are sent together; in a small cluster fewer, an eighth of its threads
_NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # expected words may well be megabytes
_LOCAL_SETTINGS = {  # profiling costs processor time, and a piece that is stolen is read twice
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
}


@contextmanager
def opened_cluster(address: str, threads: int | None = None) -> Iterator[Any]:
    """Connect to the scheduler at an address or, for ``local``, start workers on this machine; yield the client.

    Raises UsageError without Dask, and ClusterError where nobody answers within SECONDS_TO_ANSWER.
    """
    try:
        distributed = import_module("distributed")
    except ModuleNotFoundError as error:
        raise UsageError(
            message=f"a cluster needs {error.name}, of the extra cluster: {installs('cluster')}"
        ) from error
    if address == LOCAL:
        with (
            import_module("dask").config.set(_LOCAL_SETTINGS),
            distributed.LocalCluster(
                n_workers=threads or available_cores(), threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            try:
                yield client
            except KeyboardInterrupt:
                for pid in filter(None, (nanny.pid for nanny in cluster.workers.values())):
                    os.kill(pid, signal.SIGKILL)  # it would be waited for until its task is done
                raise
        return
    try:
        import_module("distributed.comm").resolve_address(address)
        client = distributed.Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except ValueError as error:
        raise UsageError(message=f"{named(address)} is no address of a cluster: {error}") from error
    except OSError as error:
        raise ClusterError(address=address, reason=f"nobody answers for {SECONDS_TO_ANSWER} seconds") from error
    with client:
        yield client


class Cluster:
    """Workers of a cluster that have this version of geval-py; ``threads`` is the number of threads of all.

    All workers can read an output's files under the same paths. One worker reads all of an output in another format
    than TSV.
    """

    is_local = False

    def __init__(self, client: Any) -> None:
        """Ask a client's workers for their version; raises ClusterError without workers, or if a version differs."""
        self.client = client
        self.address = address = without_credentials(str(client.scheduler.address))
        try:
            client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        except TimeoutError as error:
            raise ClusterError(address=address, reason=f"it has no worker for {SECONDS_TO_ANSWER} seconds") from error
        # By a function of Python's own: a worker without geval-py could not even be asked by one of ours.
        versions = client.run(resolve_name, "geval_py.version:__version__", on_error="return")
        others = {worker: version for worker, version in versions.items() if version != __version__}
        for worker, version in sorted(others.items()):
            what = f"has geval-py {version}" if isinstance(version, str) else f"has no geval-py ({version})"
            more = f", and {len(others) - 1} more differ" if len(others) > 1 else ""
            reason = f"the worker {worker} {what}, this is {__version__}{more}"
            raise ClusterError(address=address, reason=reason)
        self.threads = sum(client.nthreads().values())

    def map(self, outputs: LineReader, number: Number, work: Work[Result]) -> Iterator[tuple[Block, Result]]:
        """Yield the blocks in order, without their texts, each with the result of the work on its parts.

        Raises DataError, a MalformedLineError after the blocks before it, and ClusterError.
        """

        def task_of(job: Sequence[Block]) -> tuple[Callable[..., Any], Any]:
            pieces, blocks = [block.where[0] for block in job], [block._replace(where=None) for block in job]
            return partial(work_on, pieces, blocks, work), job[0].where[1]

        shares = groupby(number(self._counted(outputs)), lambda block: block.where[1])
        # Where lines are short and many, a share is several jobs.
        jobs = (job for _, share in shares for job in grouped(share, lambda block: block.lines, MAX_LINES))
        with self._watched(outputs):
            for job, _, results in self._batched(jobs, task_of, lambda job: sum(block.lines for block in job)):
                for block, result in zip(job, results, strict=False):
                    if isinstance(result, MalformedLineError):
                        raise result
                    yield block, result
            _check_unchanged(outputs)

    def digest(self, outputs: LineReader) -> Callable[[], str | None]:
        """Let a worker read the output from its beginning to its end: a digest cannot be put together from parts."""
        future = self.client.submit(digest_of, absolute(outputs.path), outputs.header, pure=False, retries=RETRIES)

        def wait() -> str | None:
            with self._watched(outputs):
                sha256: str | None = future.result()
                _check_unchanged(outputs)
            return sha256

        return wait

    def _batched(
        self,
        items: Iterable[Item],
        task_of: Callable[[Item], tuple[Any, ...]],
        lines_of: Callable[[Item], int] = lambda _: 0,
    ) -> Iterator[tuple[Item, Any, Any]]:
        """Yield each item, in order, with the Future and the result of its task.

        ``task_of`` returns a function to call without arguments or, so that Dask chooses the worker that has counted
        and read the pieces, with the result of a Future, and this Future. Dask looks for Futures in lists, item by
        item, but not in what a partial function holds.
        """
        most = min(-(-self.threads // 8), MAX_BATCH)

        def submit(batch: Sequence[Item]) -> Callable[[], Iterator[tuple[Item, Any, Any]]]:
            with import_module("dask").config.set(_NO_WARNING):
                tasks = zip(*map(task_of, batch), strict=True)
                futures = self.client.map(operator.call, *tasks, pure=False, retries=RETRIES)

            def wait() -> Iterator[tuple[Item, Any, Any]]:
                results = self.client.gather(dict(enumerate(futures)), errors="skip")
                for place, (item, future) in enumerate(zip(batch, futures, strict=True)):
                    result = results.get(place)
                    yield item, future, future.result() if result is None else result  # or raise its error

            return wait

        batches = grouped(items, lambda item: max(lines_of(item) / MAX_LINES, 1 / most), 1)
        for _, rows in in_order(submit, batches, ahead=AHEAD_A_THREAD * self.threads // most):
            yield from rows

    def _counted(self, outputs: LineReader) -> Iterator[Block]:
        """Yield the lines of an output that workers count, each with their piece and the Future that counted it."""
        size = state_at(outputs.path)[2] or None if isinstance(outputs.path, VirtualFile) else outputs.size
        if size is None:
            raise UsageError(message=f"the workers of a cluster cannot read {named(outputs.path)}: give a file")
        shares = self.threads * max(min(MAX_SHARES // self.threads, SHARES_A_THREAD), 1)
        share_bytes = min(max(-(-size // shares), MIN_SHARE_BYTES), MAX_SHARE_BYTES)

        def task_of(share: Sequence[Piece]) -> tuple[Callable[[], list[int]]]:
            return (partial(count, share),)

        pieces = _pieces(outputs, min(share_bytes, MAX_PIECE_BYTES))
        for share, future, counts in self._batched(
            grouped(pieces, lambda piece: (piece.stop or piece.size) - piece.start, share_bytes), task_of
        ):
            while True:
                for piece, lines in zip(share, counts, strict=False):
                    if lines:
                        yield Block(piece.path, lines, piece.position, where=(piece, future))
                share = share[len(counts) :]
                if not share:
                    break
                # What could not be read raises its error, after the lines before it.
                ((_, future, counts),) = self._batched([share], task_of)
        _check_unchanged(outputs)

    @contextmanager
    def _watched(self, outputs: LineReader) -> Iterator[None]:
        """Turn errors of the cluster into ours, and name files in errors as they were named here."""
        distributed = import_module("distributed")
        gone = (distributed.client.FutureCancelledError, distributed.comm.CommClosedError, ConnectionError)
        try:
            yield
        except DataError as error:
            paths = {absolute(path): path for path in (*outputs.parts, outputs.path)}
            error.path = paths.get(error.path, error.path)
            raise
        except distributed.KilledWorker as error:
            reason = f"a piece was given up, since {error.allowed_failures + 1} workers that had it died"
            raise ClusterError(address=self.address, reason=reason) from error
        except (*gone, OSError) as error:
            # Dask's own errors are about connections and have no number. Others say what their machine lacks.
            number = None if isinstance(error, gone) else error.errno
            reason = "it went away while it was at work" if number is None else os.strerror(number)
            raise ClusterError(address=self.address, reason=reason) from error


def workers_of(client: Any | None) -> Workers:
    """Return a client's workers, or threads here without a client. Raises as :class:`Cluster`."""
    return Threads() if client is None else Cluster(client)


def _check_unchanged(outputs: LineReader) -> None:
    """Raise UnreadableFileError if the output was changed: workers open it again by its path."""
    states = [state_at(part) for part in outputs.parts]
    outputs.check_state(states if len(states) > 1 else states[0])


class Piece(NamedTuple):
    """Lines of an output: those that start between two bytes of a plain file or, without ``stop``, a whole file.

    ``size`` is the number of the file's bytes, ``header`` the first name of a header line to skip, ``first`` where
    the first line after it starts, and ``max_bytes`` the most that the file may unpack to. ``position`` is the number
    of the output's stored bytes up to the end of the piece.
    """

    path: str
    start: int
    stop: int | None
    first: int
    size: int
    header: str | None
    position: int
    max_bytes: int | None = None


def _pieces(outputs: LineReader, piece_bytes: int) -> Iterator[Piece]:
    """Yield the pieces of an output."""
    before = 0
    while True:
        source = outputs.source
        file_size = source.size or state_at(source.path)[2]
        is_whole = source.compression is not None or isinstance(source.path, VirtualFile)
        first = 0 if is_whole else outputs.offset
        for start in (0,) if is_whole else range(first, file_size, piece_bytes):
            stop = file_size if is_whole else min(start + piece_bytes, file_size)
            yield Piece(
                path=absolute(source.path), start=start, stop=None if is_whole else stop,
                first=first, size=file_size, header=outputs.header, position=before + stop,
                max_bytes=outputs.max_bytes,
            )  # fmt: skip
        before += file_size
        if not outputs.next_part():
            break


# What a worker does


def count(pieces: Sequence[Piece]) -> list[int]:
    """Count the lines of each piece.

    Raises DataError, but only of the first piece: an error of another one is raised after the lines before it were
    worked on, so only the pieces before that one are counted.
    """
    counts: list[int] = []
    for piece in pieces:
        try:
            counts.append(sum(map(backends.count_lines, _read(piece))))
        except DataError:
            if not counts:
                raise
            break
    return counts


def work_on(
    pieces: Sequence[Piece], blocks: Sequence[Block], work: Work[Result], _: object
) -> list[Result | MalformedLineError]:
    """Work on pieces until one has a malformed line; the last argument is what was counted.

    The blocks are those of the pieces, without the text. A MalformedLineError is returned, not raised, since trying
    again would not help. Raises DataError, also where a piece has fewer lines than were counted.
    """
    results: list[Result | MalformedLineError] = []
    for piece, block in zip(pieces, blocks, strict=True):
        try:
            results.append(work(_parts(_read(piece), block)))
        except MalformedLineError as error:
            return [*results, error]
    return results


def digest_of(path: str, header: str | None) -> str | None:
    """Read an output from its beginning to its end and return the SHA-256 of its bytes; raises DataError."""
    with LineReader(path, header=header, digest=True) as reader:
        reader.count_rest()
        return reader.sha256


def _read(piece: Piece) -> Iterator[memoryview]:
    """Yield the lines of a piece in blocks; raises DataError."""
    if piece.stop is None:
        with LineReader(piece.path, header=piece.header, max_bytes=piece.max_bytes) as lines:
            while text := lines.block():
                yield memoryview(text)
        return
    step = REMOTE_READ_BYTES if is_remote(piece.path) else READ_BYTES
    with opened_anywhere(piece.path) as read_at:
        for start in range(piece.start, piece.stop, step):
            stop = min(start + step, piece.stop)
            stored = read_lines_between(piece.path, read_at, start, stop, first=piece.first, size=piece.size)
            view = memoryview(whole_lines(stored))
            if view:  # otherwise it is inside of a line
                yield view


def _parts(texts: Iterable[memoryview], block: Block) -> Iterator[Block]:
    """Put the texts of a piece, which may have more lines, beside the block's expected lines."""
    line, place = 0, 0
    for text in texts:
        lines = backends.count_lines(text)
        if lines > block.lines - line:
            end, lines = end_of_lines(bytes(text), 0, block.lines - line)
            text = text[:end]
        expected_end, _ = end_of_lines(block.expected, place, lines)
        yield block._replace(
            first_line=block.first_line + line,
            lines=lines,
            outputs=text,
            expected=block.expected[place:expected_end],
            known=min(max(block.known - line, 0), lines),
        )
        line, place = line + lines, expected_end
        if line == block.lines:
            return
    raise changed(block.part)
