"""The workers of a Dask cluster, which score an output to the same losses, to the last bit, as threads here do.

    client:   cuts shares ─────> numbers lines, takes expected ones ─────> losses, in order
    workers:             count ─┘ (the text stays there)           └─> score the text that was read

An output is cut into pieces, and each thread of a worker has a share of them or, in a small cluster, a few. A share
is two tasks, since a task costs the client and the scheduler milliseconds: one counts the lines of each piece, one
scores them. What workers do is in :mod:`geval_py.scoring.pieces`.

The client sees no line of the output; a worker sees its pieces, and the expected words that go with them. Each of the
two tasks reads the pieces: a plain file on the worker's machine comes from the system's cache the second time. A
process that read a remote or compressed file keeps the text, as far as memory allows; other processes read it again.
So any worker can do any task, and Dask moves no text.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

from geval_py.errors import ClusterError, DataError, GevalError, MalformedLineError, UsageError
from geval_py.reading.lines import LineReader, Range
from geval_py.reading.sources import Memory, absolute, state_at
from geval_py.scoring.blocks import (
    Block,
    BlockReader,
    MatchedBlockReader,
    Progress,
    ThreadPool,
    Threads,
    available_cores,
    until_error,
)
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.pieces import MOST_KEPT_BYTES, Job, Piece, count, digest_of, forget, score, work_on_all
from geval_py.text import named, without_credentials
from geval_py.values import Value
from geval_py.version import __version__, installs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from geval_py.scoring.blocks import Lines, Workers
    from geval_py.scoring.metrics.base import Column

    _Share: TypeAlias = "Sequence[tuple[Piece, int]]"  # each with the number of stored bytes up to its end

Item = TypeVar("Item")
Result = TypeVar("Result")
LOCAL = "local"
SECONDS_TO_ANSWER = 10
RETRIES = 2  # of a task that fails, on whichever worker
LEAST_SHARE_BYTES, MOST_SHARE_BYTES = 1 << 22, 1 << 30  # more might not stay in the system's cache
SHARES_A_THREAD = 8  # of an output that is large enough, so that all threads end at about the same time
MOST_SHARES = 1000  # of a cluster whose threads have several each: shares cost the client time
MOST_LINES = 1 << 20  # of a task that scores, whose expected words and losses the scheduler keeps in memory
MOST_RANGE_BYTES = 1 << 28
MOST_FAR_BYTES = 1 << 26  # of a range of a remote file, which workers keep in memory
AHEAD_A_THREAD = 2  # shares under way
MOST_AT_ONCE = 100  # tasks that are sent at once, with the expected words of their lines
MOST_FAR_SHARE_BYTES = MOST_KEPT_BYTES // AHEAD_A_THREAD  # of what workers keep in memory
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


class Cluster(Value):
    """Workers of a cluster that have this version of geval-py; ``threads`` is the number of threads of all."""

    are_here = False

    client: Any  # a distributed.Client
    address: str
    threads: int

    @classmethod
    def of(cls, client: Any) -> Cluster:
        """Ask a client's workers for their version; raises ClusterError without workers, or if a version differs."""
        address = without_credentials(str(client.scheduler.address))
        try:
            client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        except TimeoutError as error:
            raise ClusterError(address=address, reason=f"it has no worker for {SECONDS_TO_ANSWER} seconds") from error
        from pkgutil import resolve_name

        # By a function of Python's own: a worker without geval-py could not even be asked by one of ours.
        versions = client.run(resolve_name, "geval_py.version:__version__", on_error="return")
        others = {worker: found for worker, found in versions.items() if found != __version__}
        for worker, found in sorted(others.items()):
            what = f"has geval-py {found}" if isinstance(found, str) else f"has no geval-py ({found})"
            more = f", and {len(others) - 1} more differ" if len(others) > 1 else ""
            reason = f"the worker {worker} {what}, this is {__version__}{more}"
            raise ClusterError(address=address, reason=reason)
        return cls(client=client, address=address, threads=sum(client.nthreads().values()))

    @property
    def at_once(self) -> int:
        return AHEAD_A_THREAD * self.threads

    def scorer(
        self,
        outputs: LineReader,
        expected: LineReader,
        columns: Sequence[Column],
        *,
        digest: bool,
        selects: bool,
        listed: bool,
    ) -> ClusterScorer:
        del listed  # workers elsewhere have texts
        if selects:
            what = "metrics whose flags (f, p) select some, or that look at the input (CharMatch)"
            raise UsageError(message=f"a cluster scores all lines, and sees no input: leave out {what}")
        return ClusterScorer(outputs, expected, columns, self, digest=digest)

    def reader(
        self, outputs: LineReader, expected: LineReader | None = None, *, selects: bool = False
    ) -> PieceReader:
        if selects:
            what = "metrics whose flags (f, p) select some"
            raise UsageError(message=f"a cluster looks at all lines: leave out {what}")
        return PieceReader(outputs, expected, self)

    def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        with self.watched():
            result: Result = self.submit(function, *arguments).result()
        return result

    def submit(self, function: Callable[..., object], *arguments: object, near: str | None = None) -> Any:
        """Let a worker call a function, if possible the worker ``near``; returns a Future."""
        place = {} if near is None else {"workers": [near], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, retries=RETRIES, **place)

    def map_in_order(
        self, function: Callable[..., Result], items: Iterable[Item], arguments: Callable[[Item], tuple[object, ...]]
    ) -> Iterator[tuple[Item, Any, Result]]:
        """Yield each item, in order, with the Future and the result of ``function(*arguments(item))``.

        An error is raised after the results of all items before it. Many tasks are sent, and fetched, at once: that
        costs a third of the time of one by one.
        """
        errors: list[GevalError] = []
        made = until_error(items, errors)
        size = min(self.threads, MOST_AT_ONCE)
        under_way: deque[tuple[list[Item], list[Any]]] = deque()
        while batch := list(islice(made, size)):
            given = zip(*map(arguments, batch), strict=True)
            with import_module("dask").config.set(_NO_WARNING):
                sent = self.client.map(function, *given, pure=False, retries=RETRIES)
            under_way.append((batch, sent))
            if len(under_way) * size >= self.at_once:
                yield from self._fetched(*under_way.popleft())
        while under_way:
            yield from self._fetched(*under_way.popleft())
        if errors:
            raise errors[0]

    def _fetched(self, items: Sequence[Item], futures: Sequence[Any]) -> Iterator[tuple[Item, Any, Any]]:
        found = self.client.gather(dict(enumerate(futures)), errors="skip")
        for number, (item, future) in enumerate(zip(items, futures, strict=True)):
            result = found.pop(number)
            yield item, future, future.result() if result is None else result  # None stands for an error

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Turn errors of the cluster into ours."""
        distributed = import_module("distributed")
        gone = (distributed.client.FutureCancelledError, distributed.comm.CommClosedError, ConnectionError)
        try:
            yield
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


class PieceReader(BlockReader):
    """Numbers the lines of an output that workers count.

    ``last`` is the piece of the last block, with the Future of the task that counted it.

    All workers can read the output's files under the same paths. One worker reads all of an output in another format
    than TSV. Raises UsageError for an output that can be read only once, such as standard input.
    """

    last: tuple[Piece, Any]

    def __init__(self, outputs: LineReader, expected: LineReader | None, cluster: Cluster) -> None:
        size = _stored_size(outputs.path) if isinstance(outputs.path, Memory) else outputs.size
        if size is None:
            raise UsageError(message=f"the workers of a cluster cannot read {named(outputs.path)}: give a file")
        super().__init__(outputs, expected)
        self._cluster, self._size = cluster, size
        shares = cluster.threads * max(min(MOST_SHARES // cluster.threads, SHARES_A_THREAD), 1)
        self._share_bytes = min(max(_divided(size, shares), LEAST_SHARE_BYTES), MOST_SHARE_BYTES)
        self._far_share_bytes = min(self._share_bytes, MOST_FAR_SHARE_BYTES)
        self._run, self._keepers = uuid4().hex, set[str]()
        self._paths = {absolute(part): part for part in outputs.parts} | {absolute(outputs.path): outputs.path}

    def map_pieces(
        self,
        work: Callable[..., Result],
        arguments: Callable[[Block], tuple[object, ...]],
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Block, Result]]:
        """Yield the blocks in order, without their texts, each with the worker's ``work(blocks, *arguments(block))``.

        Raises DataError, a MalformedLineError after the blocks before it, and ClusterError.
        """
        del threads  # the workers are elsewhere

        def arguments_of(item: tuple[Job, Any]) -> tuple[object, ...]:
            # Dask chooses the worker that has what a task is given: the one that counted, and has read the pieces.
            return *item, work

        with self.watched(), self._forgotten():
            for (job, _), _, results in self._cluster.map_in_order(work_on_all, self._jobs(arguments), arguments_of):
                for block, found in zip(job.blocks, results, strict=False):
                    if isinstance(found, MalformedLineError):
                        raise found
                    yield block, found
                    if progress is not None:
                        progress(block.position or 0, self._size)
            self.check_unchanged()

    def _jobs(self, arguments: Callable[[Block], tuple[object, ...]]) -> Iterator[tuple[Job, Any]]:
        """Yield the blocks of each share, in order, as a job or, where lines are short and many, as several.

        With each is the Future of the task that counted the share.
        """
        errors: list[GevalError] = []
        job, counted, lines = Job(), None, 0
        with ThreadPool(0) as nobody:
            for block in until_error(self.blocks(nobody), errors):
                piece, counted_now = self.last
                lines += block.lines
                if job.pieces and (counted_now is not counted or lines > MOST_LINES):
                    yield job, counted
                    job, lines = Job(), block.lines
                counted = counted_now
                job.add(piece, block, arguments(block))
        if job.pieces:
            yield job, counted
        if errors:
            raise errors[0]

    def check_unchanged(self) -> None:
        """Raise UnreadableFileError if the output was changed: workers open it again by its path."""
        states = [state_at(part) for part in self._outputs.parts]
        self._outputs.check_state(states if len(states) > 1 else states[0])

    @contextmanager
    def _forgotten(self) -> Iterator[None]:
        """At the end let workers forget the texts that they still keep; do not wait for their answers."""
        try:
            yield
        finally:
            with suppress(Exception):  # an error on its way says more, and kept texts give way to others anyway
                for worker in sorted(self._keepers):
                    import_module("distributed").fire_and_forget(self._cluster.submit(forget, self._run, near=worker))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Turn errors of the cluster into ours, and name files in errors as they were named here."""
        try:
            with self._cluster.watched():
                yield
        except DataError as error:
            error.path = self._paths.get(error.path, error.path)
            raise

    def read(self, pool: ThreadPool) -> Iterator[Lines]:
        del pool  # the workers are elsewhere
        for share, counted, (counts, worker) in self._counted(self._shares()):
            while True:
                for (piece, position), lines in zip(share, counts, strict=False):
                    if not piece.is_near:
                        self._keepers.add(worker)
                    if lines:
                        self.last = piece, counted
                        yield bytearray(), memoryview(b""), lines, position, piece.path, None
                share = share[len(counts) :]
                if not share:
                    break
                ((_, counted, (counts, worker)),) = self._counted([share])
        self.check_unchanged()

    def _counted(self, shares: Iterable[_Share]) -> Iterator[tuple[_Share, Any, tuple[list[int], str]]]:
        return self._cluster.map_in_order(count, shares, lambda share: ([piece for piece, _ in share],))

    def _shares(self) -> Iterator[_Share]:
        """Yield the pieces of each share: one after the other, as many as are not too large together."""
        share: list[tuple[Piece, int]] = []
        size = 0
        for piece, position in self._pieces():
            size += piece.bytes
            if share and size > (self._share_bytes if piece.is_near else self._far_share_bytes):
                yield share
                share, size = [], piece.bytes
            share.append((piece, position))
        if share:
            yield share

    def _pieces(self) -> Iterator[tuple[Piece, int]]:
        """Cut the output into pieces, part by part, each with the number of stored bytes up to its end."""
        reader, before = self._outputs, 0
        while True:
            source = reader.source
            size = source.size or _stored_size(source.path) or 0
            whole = Piece(
                path=absolute(source.path), range=None, start=0, size=size, header=reader.header,
                max_bytes=reader.max_bytes, run=self._run,
            )  # fmt: skip
            if source.compression is not None or isinstance(source.path, Memory):
                yield whole, before + size
            else:
                near = source.is_here
                of_share, most = (
                    (self._share_bytes, MOST_RANGE_BYTES) if near else (self._far_share_bytes, MOST_FAR_BYTES)
                )
                length = _divided(of_share, _divided(of_share, most))
                for start in range(reader.offset, size, length):
                    wanted = Range(start=start, stop=min(start + length, size))
                    yield whole.replace(range=wanted, start=reader.offset), before + wanted.stop
            before += size
            if not reader.next_part():
                return


def _stored_size(path: str) -> int | None:
    """Return the number of bytes of the file of an output; None for lines in memory."""
    return state_at(path)[2] or None


def _divided(whole: int, parts: int) -> int:
    """Divide, and round up."""
    return -(-whole // parts)


class MatchedPieceReader(PieceReader, MatchedBlockReader):
    """A PieceReader of an output that has to have as many lines as its expected file, and at least one."""


class ClusterScorer:
    """Scores an output that workers can read, as :class:`PieceReader` says.

    With ``digest``, a worker reads the output from its beginning to its end for the SHA-256, since a digest cannot be
    put together from parts.
    """

    def __init__(
        self, outputs: LineReader, expected: LineReader, columns: Sequence[Column], cluster: Cluster, *, digest: bool
    ) -> None:
        self._reader = MatchedPieceReader(outputs, expected, cluster)
        self._cluster, self._columns, self._expected_path = cluster, tuple(columns), expected.path
        self._digest = cluster.submit(digest_of, absolute(outputs.path), outputs.header) if digest else None

    @property
    def sha256(self) -> str | None:
        if self._digest is None:
            return None
        with self._reader.watched():
            found: str = self._digest.result()
            self._reader.check_unchanged()
        return found

    def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        # Not scattered: Dask may lose such data with the last worker that has them, and cannot make them again.
        arguments = self._columns, self._expected_path
        return self._reader.map_pieces(score, lambda _: arguments, progress=progress)
