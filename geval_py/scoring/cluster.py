"""Score an output on the workers of a Dask cluster: the same losses, to the last bit, as on one machine.

    client:   cuts pieces ─────────────> numbers lines, takes expected ones ─────────────> losses, in order
    workers:             read, and count ─┘ (the text stays there)        └─> score the text that was read

The client sees no line of the output; a worker sees its pieces, and the expected words that go with them.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

from geval_py.errors import ClusterError, DataError, MalformedLineError, UsageError
from geval_py.reading.lines import LineReader
from geval_py.reading.places import absolute
from geval_py.reading.ranges import Range
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
    from typing import Any, TypeVar

    from geval_py.scoring.blocks import Block, Lines
    from geval_py.scoring.metrics import LineStatistics
    from geval_py.scoring.metrics.base import Column
    from geval_py.scoring.parallel import Progress

    Result = TypeVar("Result")

LOCAL = "local"
SECONDS_TO_ANSWER = 10
RETRIES = 2  # of a task that fails, on whichever worker
LEAST_RANGE_BYTES, MOST_RANGE_BYTES = 1 << 22, 1 << 26
MOST_RANGES = 40_000  # of an output so large that it has more, larger ranges: each costs the client its time
RANGES_A_THREAD = 8  # where the output is large enough: so that all threads end at about the same time
AHEAD_A_THREAD = 2  # pieces that are under way: what a worker keeps in memory


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

    def submit(self, function: Callable[..., object], *arguments: object) -> Any:
        """Let a worker call a function; gives a Future."""
        return self.client.submit(function, *arguments, pure=False, retries=RETRIES)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Make our errors of what goes wrong with the cluster."""
        distributed = import_module("distributed")
        gone = (distributed.client.FutureCancelledError, distributed.comm.CommClosedError, OSError)
        try:
            yield
        except distributed.KilledWorker as error:
            reason = f"a piece was given up, since {error.allowed_failures + 1} workers that had it died"
            raise ClusterError(address=self.address, reason=reason) from error
        except gone as error:
            raise ClusterError(address=self.address, reason="it went away while it was at work") from error


class PieceReader(BlockReader):
    """Numbers the lines of an output whose text is with workers; ``last`` is the last block's piece, and its lines.

    The output has files, here or elsewhere, which all workers can read under the same paths. Raises UsageError for
    one that can be read only once.
    """

    last: tuple[Piece, Any]

    def __init__(self, outputs: LineReader, expected: LineReader | None, cluster: Cluster) -> None:
        if outputs.size is None:
            raise UsageError(message=f"the workers of a cluster cannot read {named(outputs.path)}: give a file")
        super().__init__(outputs, expected)
        self._output, self._cluster, self._size = outputs, cluster, outputs.size
        self._paths = {absolute(part): part for part in outputs.parts} | {absolute(outputs.path): outputs.path}
        wanted = min(max(self._size // (RANGES_A_THREAD * cluster.threads), LEAST_RANGE_BYTES), MOST_RANGE_BYTES)
        self._range_bytes = max(wanted, self._size // MOST_RANGES)

    def map_pieces(
        self,
        task: Callable[..., Result | MalformedLineError],
        arguments: Callable[[], tuple[object, ...]],
        *,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Block, Result]]:
        """Give the blocks in order, without their texts, each with what a worker makes of it.

        That is ``task(piece, lines, block, *arguments())``, as :func:`geval_py.scoring.tasks.work_on`; the arguments
        are those of the moment when the block is numbered. ``progress`` is called after each block. Raises what a
        task gives as MalformedLineError where it belongs, DataError, and ClusterError.
        """

        def submit(block: Block) -> _Worked:
            piece, lines = self.last
            return _Worked(block, lines, self._cluster.submit(task, piece, lines, block, *arguments()))

        with self.watched(), Workers(0) as nobody:
            for block, found in in_order(submit, self.blocks(nobody), ahead=self._cluster.ahead):
                if isinstance(found, MalformedLineError):
                    raise found
                yield block, found
                if progress is not None:
                    progress(block.position or 0, self._size)

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
        for piece, position, lines, count in in_order(self._submit, self._pieces(), ahead=self._cluster.ahead):
            if count:
                self.last = piece, lines
                yield bytearray(), memoryview(b""), count, position, piece.path
        self._output.check_unchanged()

    def _submit(self, found: tuple[Piece, int]) -> _Counted:
        piece, position = found
        lines = self._cluster.submit(tasks.read, piece)
        return _Counted(piece, position, lines, self._cluster.submit(tasks.count, lines))

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
            )
            if source.compression is not None:
                yield whole, before + size
            else:
                for start in range(reader.offset, size, self._range_bytes):
                    wanted = Range(start=start, stop=min(start + self._range_bytes, size))
                    yield whole.replace(range=wanted, start=reader.offset), before + wanted.stop
            before += size
            if not reader.next_part():
                return


class MatchedPieceReader(PieceReader, MatchedBlockReader):
    """The same of an output that has to have as many lines as its expected file, and at least one."""

    def __init__(self, outputs: LineReader, expected: LineReader, cluster: Cluster) -> None:
        super().__init__(outputs, expected, cluster)


class _Worked:
    """A block, the lines that a worker keeps of it, and what is to be said of them.

    The lines are held until then: when their worker dies, Dask reads only those again that somebody still wants.
    """

    def __init__(self, block: Block, lines: Any, future: Any) -> None:
        self._block, self._lines, self._future = block, lines, future

    def result(self) -> tuple[Block, Any]:
        return self._block, self._future.result()


class _Counted:
    """A piece, the lines that a worker keeps of it, and how many they are."""

    def __init__(self, piece: Piece, position: int, lines: Any, count: Any) -> None:
        self._piece, self._position, self._lines, self._count = piece, position, lines, count

    def result(self) -> tuple[Piece, int, Any, int]:
        return self._piece, self._position, self._lines, self._count.result()


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
        return found

    def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        """Give the blocks in order, without their texts, each with the columns' losses.

        Raises as BlockScorer, and ClusterError.
        """
        columns = self._cluster.client.scatter(self._columns, broadcast=True, hash=False)
        return self._reader.map_pieces(tasks.score, lambda: (columns, self._expected_path), progress=progress)
