"""The workers of a Dask cluster, which score an output to the same losses, to the last bit, as threads here do.

    client:   cuts shares ─────> numbers lines, takes expected ones ─────> results, in order
    workers:             count ─┘                                   └─> work

An output is cut into pieces, and each thread of a worker has a share of them or, in a small cluster, a few. A share
is two tasks, since a task costs the client and the scheduler milliseconds: one counts the lines of each piece, one
works on them. The client sees no line of the output; a worker sees its pieces, and the expected words that go with
them. Each of the two tasks reads the pieces: a plain file on the worker's machine comes from the system's cache the
second time. So any worker can do any task, and Dask moves no text.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, ClassVar, NamedTuple, TypeVar

from geval_py.errors import ClusterError, DataError, GevalError, MalformedLineError, UsageError
from geval_py.reading.lines import LineReader, end_of_lines, opened_anywhere, read_lines_between, whole_lines
from geval_py.reading.sources import VirtualFile, absolute, changed, is_remote, state_at
from geval_py.scoring.blocks import Block, Number, Threads, Work, Workers, available_cores, in_order
from geval_py.scoring.kernel import backends
from geval_py.text import named, without_credentials
from geval_py.version import __version__, installs

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Workers of a cluster that have this version of geval-py; ``threads`` is the number of threads of all.

    All workers can read an output's files under the same paths. One worker reads all of an output in another format
    than TSV.
    """

    client: Any  # a distributed.Client
    address: str
    threads: int

    is_local: ClassVar[bool] = False

    @classmethod
    def of(cls, client: Any) -> Cluster:
        """Ask a client's workers for their version; raises ClusterError without workers, or if a version differs."""
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
            more = f", and {len(others) - 1} more differ" if len(others) > 1 else ""
            reason = f"the worker {worker} {what}, this is {__version__}{more}"
            raise ClusterError(address=address, reason=reason)
        return cls(client=client, address=address, threads=sum(client.nthreads().values()))

    def map(self, outputs: LineReader, number: Number, work: Work[Result]) -> Iterator[tuple[Block, Result]]:
        """Yield the blocks in order, without their texts, each with the result of the work on its parts.

        Raises DataError, a MalformedLineError after the blocks before it, and ClusterError.
        """

        def submit(job: Sequence[Block]) -> Callable[[], list[Result | MalformedLineError]]:
            # Dask chooses the worker that has what a task is given: the one that counted, and has read the pieces.
            _, counted = job[0].where
            pieces = [block.where[0] for block in job]
            blocks = [block._replace(where=None) for block in job]
            wait: Callable[[], Any] = self._submit(partial(work_on, pieces, blocks, work), counted).result
            return wait

        jobs, ahead = _jobs(number(self._counted(outputs))), AHEAD_A_THREAD * self.threads
        with self._watched(outputs):
            for job, results in in_order(submit, jobs, ahead=ahead):
                for block, result in zip(job, results, strict=False):
                    if isinstance(result, MalformedLineError):
                        raise result
                    yield block, result
            _check_unchanged(outputs)

    def digest(self, outputs: LineReader) -> Callable[[], str | None]:
        """Let a worker read the output from its beginning to its end: a digest cannot be put together from parts."""
        future = self._submit(digest_of, absolute(outputs.path), outputs.header)

        def wait() -> str | None:
            with self._watched(outputs):
                sha256: str | None = future.result()
                _check_unchanged(outputs)
            return sha256

        return wait

    def _submit(self, function: Callable[..., object], *arguments: object) -> Any:
        """Send a task. Dask looks for Futures in lists, item by item, but not in what a partial function holds."""
        with import_module("dask").config.set(_NO_WARNING):
            return self.client.submit(function, *arguments, pure=False, retries=RETRIES)

    def _counted(self, outputs: LineReader) -> Iterator[Block]:
        """Yield the lines of an output that workers count, each with their piece and the Future that counted it."""
        size = state_at(outputs.path)[2] or None if isinstance(outputs.path, VirtualFile) else outputs.size
        if size is None:
            raise UsageError(message=f"the workers of a cluster cannot read {named(outputs.path)}: give a file")
        shares = self.threads * max(min(MAX_SHARES // self.threads, SHARES_A_THREAD), 1)
        share_bytes = min(max(-(-size // shares), MIN_SHARE_BYTES), MAX_SHARE_BYTES)

        def submit(share: Sequence[Piece]) -> Callable[[], tuple[Any, list[int]]]:
            future = self._submit(partial(count, share))
            return lambda: (future, future.result())

        ahead = AHEAD_A_THREAD * self.threads
        for share, (future, counts) in in_order(submit, _shares(outputs, share_bytes), ahead=ahead):
            while True:
                for piece, lines in zip(share, counts, strict=False):
                    if lines:
                        yield Block(part=piece.name, lines=lines, position=piece.position, where=(piece, future))
                share = share[len(counts) :]
                if not share:
                    break
                future, counts = submit(share)()  # what could not be read raises its error, after the lines before it
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
    """Return a client's workers, or threads here without a client. Raises as :meth:`Cluster.of`."""
    return Threads() if client is None else Cluster.of(client)


def _check_unchanged(outputs: LineReader) -> None:
    """Raise UnreadableFileError if the output was changed: workers open it again by its path."""
    states = [state_at(part) for part in outputs.parts]
    outputs.check_state(states if len(states) > 1 else states[0])


class Piece(NamedTuple):
    """Lines of an output: those that start between two bytes of a plain file or, without ``stop``, a whole file.

    ``name`` is the file's path as it was given, ``size`` the number of its bytes, ``header`` the first name of a
    header line to skip, ``first`` where the first line after it starts, and ``max_bytes`` the most that the file may
    unpack to. ``position`` is the number of the output's stored bytes up to the end of the piece.
    """

    path: str
    name: str
    start: int
    stop: int | None
    first: int
    size: int
    header: str | None
    position: int
    max_bytes: int | None = None


def _shares(outputs: LineReader, share_bytes: int) -> Iterator[list[Piece]]:
    """Yield the pieces of each share: one after the other, as many as are not too large together."""
    share: list[Piece] = []
    size = before = 0
    while True:
        source = outputs.source
        file_size = source.size or state_at(source.path)[2]
        is_whole = source.compression is not None or isinstance(source.path, VirtualFile)
        first = 0 if is_whole else outputs.offset
        step = max(file_size, 1) if is_whole else min(share_bytes, MAX_PIECE_BYTES)
        for start in range(first, max(file_size, 1) if is_whole else file_size, step):
            stop = min(start + step, file_size)
            if share and size + stop - start > share_bytes:
                yield share
                share, size = [], 0
            size += stop - start
            share.append(
                Piece(
                    path=absolute(source.path), name=source.path, start=start, stop=None if is_whole else stop,
                    first=first, size=file_size, header=outputs.header, position=before + stop,
                    max_bytes=outputs.max_bytes,
                )
            )  # fmt: skip
        before += file_size
        if not outputs.next_part():
            break
    if share:
        yield share


def _jobs(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    """Yield the blocks of each share or, where lines are short and many, of parts of it."""
    job: list[Block] = []
    try:
        for block in blocks:
            is_full = job and sum(one.lines for one in job) + block.lines > MAX_LINES
            if job and (is_full or block.where[1] is not job[0].where[1]):
                yield job
                job = []
            job.append(block)
    except GevalError:
        if job:
            yield job
        raise
    if job:
        yield job


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
