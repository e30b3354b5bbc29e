"""Score an output on the workers of a Dask cluster: the same losses, to the last bit, as on one machine.

    client:   cuts pieces ─────> numbers lines, takes expected ones ─────> losses, in order
    workers:             count ─┘ (the text stays there)           └─> score the text that was read

The client sees no line of the output; a worker sees its pieces, and the expected words that go with them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Generic, TypeVar
from uuid import uuid4

from geval_py.errors import ClusterError, DataError, MalformedLineError, UsageError
from geval_py.reading.lines import LineReader, Range
from geval_py.reading.sources import absolute, state_at
from geval_py.scoring import tasks
from geval_py.scoring.blocks import BlockReader, MatchedBlockReader
from geval_py.scoring.parallel import Workers, available_cores, in_order
from geval_py.scoring.tasks import Piece
from geval_py.text import named, without_credentials
from geval_py.values import Value
from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from geval_py.scoring.blocks import Block, Lines
    from geval_py.scoring.metrics import LineStatistics
    from geval_py.scoring.metrics.base import Column
    from geval_py.scoring.parallel import Progress

Result = TypeVar("Result")
LOCAL = "local"
SECONDS_TO_ANSWER = 10
RETRIES = 2  # of a task that fails, on whichever worker
LEAST_RANGE_BYTES, MOST_RANGE_BYTES = 1 << 22, 1 << 28
MOST_FAR_BYTES = 1 << 26  # of a range that workers keep in memory, once they have it from elsewhere
MOST_RANGES = 40_000  # of an output so large that it has more, larger ranges: each costs the client its time
RANGES_A_THREAD = 8  # where the output is large enough: so that all threads end at about the same time
AHEAD_A_THREAD = 2  # pieces that are under way: what a worker may have to keep in memory
_OF_LOCAL = {  # what watches workers costs processor time, and a piece that is stolen is read twice
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
}


@contextmanager
def opened_cluster(address: str, threads: int | None = None) -> Iterator[Any]:
    """Connect to the scheduler at an address or, for ``local``, start workers on this machine; gives the client.

    Raises UsageError where Dask is not installed, and ClusterError where nobody answers in SECONDS_TO_ANSWER.
    """
    try:
        distributed = import_module("distributed")
    except ModuleNotFoundError as error:
        raise UsageError(message=f"a cluster needs {error.name}: pip install ./geval-py[cluster]") from error
    if address == LOCAL:
        with (
            import_module("dask").config.set(_OF_LOCAL),
            distributed.LocalCluster(
                n_workers=threads or available_cores(), threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
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
    """A cluster whose workers have this version of geval-py; ``threads`` is how many there are in all."""

    client: Any  # a distributed.Client
    address: str
    threads: int

    @classmethod
    def of(cls, client: Any) -> Cluster:
        """Look at a client's workers; raises ClusterError where there is none, or one with another version."""
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
    def ahead(self) -> int:
        """How many pieces should be under way: what workers keep in memory."""
        return AHEAD_A_THREAD * self.threads

    def submit(self, function: Callable[..., object], *arguments: object, near: str | None = None) -> Any:
        """Let a worker call a function, if possible the one that is ``near``; gives a Future."""
        place = {} if near is None else {"workers": [near], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, retries=RETRIES, **place)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Make our errors of what goes wrong with the cluster."""
        distributed = import_module("distributed")
        gone = (distributed.client.FutureCancelledError, distributed.comm.CommClosedError, ConnectionError)
        try:
            yield
        except distributed.KilledWorker as error:
            reason = f"a piece was given up, since {error.allowed_failures + 1} workers that had it died"
            raise ClusterError(address=self.address, reason=reason) from error
        except (*gone, OSError) as error:
            # Dask's own have no number: they are of connections. Others say what their machine lacks.
            number = None if isinstance(error, gone) else error.errno
            reason = "it went away while it was at work" if number is None else os.strerror(number)
            raise ClusterError(address=self.address, reason=reason) from error


class _Pending(Generic[Result]):
    """A task's result that is under way, and what is to be made of it."""

    def __init__(self, future: Any, make: Callable[[Any], Result]) -> None:
        self._future, self._make = future, make

    def result(self) -> Result:
        return self._make(self._future.result())


def cluster_of(client: Any | None) -> Cluster | None:
    """Give the cluster of a client; None where there is none. Raises as :meth:`Cluster.of`."""
    return None if client is None else Cluster.of(client)


class PieceReader(BlockReader):
    """Numbers the lines of an output that workers count; ``last`` is the piece of the last block, and its worker.

    The output has files, here or elsewhere, which all workers can read under the same paths. Raises UsageError for
    one that can be read only once.
    """

    last: tuple[Piece, str]

    def __init__(self, outputs: LineReader, expected: LineReader | None, cluster: Cluster) -> None:
        if outputs.size is None:
            raise UsageError(message=f"the workers of a cluster cannot read {named(outputs.path)}: give a file")
        super().__init__(outputs, expected)
        self._output, self._cluster, self._size = outputs, cluster, outputs.size
        self._run, self._keepers = uuid4().hex, set[str]()
        self._paths = {absolute(part): part for part in outputs.parts} | {absolute(outputs.path): outputs.path}

    def map_pieces(
        self,
        work: Callable[..., Result],
        arguments: Callable[[Block], tuple[object, ...]],
        *,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Block, Result]]:
        """Give the blocks in order, without their texts, each with what a worker makes of it.

        That is ``work(blocks, *arguments(block))``, where the worker has the block's lines in one block or more; the
        arguments are asked for when it is numbered.
        ``progress`` is called after each block. Raises DataError, a MalformedLineError where it belongs, and
        ClusterError.
        """

        def submit(block: Block) -> _Pending[tuple[Block, Result | MalformedLineError]]:
            piece, worker = self.last
            future = self._cluster.submit(tasks.work_on, piece, block, work, *arguments(block), near=worker)
            return _Pending(future, lambda found: (block, found))

        with self.watched(), self._forgotten(), Workers(0) as nobody:
            for block, found in in_order(submit, self.blocks(nobody), ahead=self._cluster.ahead):
                if isinstance(found, MalformedLineError):
                    raise found
                yield block, found
                if progress is not None:
                    progress(block.position or 0, self._size)
            self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise UnreadableFileError where the output is not what was opened: workers open it again by its path."""
        states = [state_at(part) for part in self._output.parts]
        self._output.check_state(states if len(states) > 1 else states[0])

    @contextmanager
    def _forgotten(self) -> Iterator[None]:
        """Let workers forget what they still keep at the end; nobody waits for one that does not answer."""
        try:
            yield
        finally:
            with suppress(Exception):  # an error that is on its way says more, and what is kept gives way to others
                for worker in sorted(self._keepers):
                    import_module("distributed").fire_and_forget(
                        self._cluster.submit(tasks.forget, self._run, near=worker)
                    )

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Make our errors of what goes wrong with the cluster, and call files in errors as they were called here."""
        try:
            with self._cluster.watched():
                yield
        except DataError as error:
            error.path = self._paths.get(error.path, error.path)
            raise

    def read(self, workers: Workers) -> Iterator[Lines]:
        del workers  # they are elsewhere
        for piece, position, (lines, worker) in in_order(self._submit, self._pieces(), ahead=self._cluster.ahead):
            if not piece.is_near:
                self._keepers.add(worker)
            if lines:
                self.last = piece, worker
                yield bytearray(), memoryview(b""), lines, position, piece.path
        self.check_unchanged()

    def _submit(self, found: tuple[Piece, int]) -> _Pending[tuple[Piece, int, tuple[int, str]]]:
        piece, position = found
        return _Pending(self._cluster.submit(tasks.count, piece), lambda counted: (piece, position, counted))

    def _pieces(self) -> Iterator[tuple[Piece, int]]:
        """Cut the output, part by part; each piece with the stored bytes up to its end."""
        reader, before = self._output, 0
        while True:
            source = reader.source
            size = source.size or 0
            whole = Piece(
                path=absolute(source.path),
                range=None,
                start=0,
                size=size,
                header=reader.header,
                max_bytes=reader.max_bytes,
                run=self._run,
            )
            if source.compression is not None:
                yield whole, before + size
            else:
                length = self._range_bytes(MOST_RANGE_BYTES if source.is_here else MOST_FAR_BYTES)
                for start in range(reader.offset, size, length):
                    wanted = Range(start=start, stop=min(start + length, size))
                    yield whole.replace(range=wanted, start=reader.offset), before + wanted.stop
            before += size
            if not reader.next_part():
                return

    def _range_bytes(self, most: int) -> int:
        wanted = min(max(self._size // (RANGES_A_THREAD * self._cluster.threads), LEAST_RANGE_BYTES), most)
        return max(wanted, self._size // MOST_RANGES)


class MatchedPieceReader(PieceReader, MatchedBlockReader):
    """The same of an output that has to have as many lines as its expected file, and at least one."""

    def __init__(self, outputs: LineReader, expected: LineReader, cluster: Cluster) -> None:
        super().__init__(outputs, expected, cluster)


class ClusterScorer:
    """Scores an output that workers can read, as :class:`PieceReader` says.

    The first arguments are those of :class:`geval_py.scoring.blocks.BlockScorer`. With ``digest``, a worker reads the
    output from its beginning to its end for :attr:`sha256`: a digest cannot be put together from parts.
    """

    def __init__(
        self, outputs: LineReader, expected: LineReader, columns: Sequence[Column], cluster: Cluster, *, digest: bool
    ) -> None:
        self._reader = MatchedPieceReader(outputs, expected, cluster)
        self._cluster, self._columns, self._expected_path = cluster, tuple(columns), expected.path
        self._digest = cluster.submit(tasks.digest, absolute(outputs.path), outputs.header) if digest else None

    @property
    def sha256(self) -> str | None:
        """The digest of the output's decompressed bytes; waits for it."""
        if self._digest is None:
            return None
        with self._reader.watched():
            found: str = self._digest.result()
            self._reader.check_unchanged()
        return found

    def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        """Give the blocks in order, without their texts, each with the columns' losses.

        Raises as BlockScorer, and ClusterError.
        """
        with self._reader.watched():
            columns = self._cluster.client.scatter(self._columns, broadcast=True, hash=False)
        arguments = columns, self._expected_path
        return self._reader.map_pieces(tasks.score, lambda _: arguments, progress=progress)
