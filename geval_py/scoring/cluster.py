"""The workers of a Dask cluster, which score an output to the same losses, to the last bit, as threads here do.

    client:   cuts pieces ─────> numbers lines, takes expected ones ─────> losses, in order
    workers:             count ─┘ (the text stays there)           └─> score the text that was read

The client sees no line of the output; a worker sees its pieces, and the expected words that go with them. Each of the
two tasks reads a piece: a plain file on the worker's machine comes from the system's cache the second time. A process
that read a remote or compressed file keeps the text, as far as memory allows; other processes read it again. So any
worker can do any task, and Dask moves no text.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Lock
from typing import Any, Generic, TypeVar
from uuid import uuid4

from geval_py.errors import ClusterError, DataError, MalformedLineError, UsageError
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, Range, RangeReader, end_of_lines, opened_anywhere
from geval_py.reading.sources import absolute, changed, is_remote, state_at
from geval_py.scoring.blocks import (
    RANGE_BYTES,
    Block,
    BlockReader,
    MatchedBlockReader,
    Progress,
    ThreadPool,
    Threads,
    available_cores,
    in_order,
    score_block,
)
from geval_py.scoring.kernel.backends import count_lines
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.text import named, without_credentials
from geval_py.values import Value
from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from geval_py.scoring.blocks import Lines, Workers
    from geval_py.scoring.metrics.base import Column

Result = TypeVar("Result")
LOCAL = "local"
SECONDS_TO_ANSWER = 10
RETRIES = 2  # of a task that fails, on whichever worker
LEAST_RANGE_BYTES, MOST_RANGE_BYTES = 1 << 22, 1 << 28
MOST_FAR_BYTES = 1 << 26  # of a range of a remote file, which workers keep in memory
MOST_RANGES = 40_000  # larger outputs have larger ranges, since each range costs the client time
RANGES_A_THREAD = 8  # of an output that is large enough, so that all threads end at about the same time
AHEAD_A_THREAD = 2  # pieces under way, which a worker may have to keep in memory
MOST_KEPT_BYTES = 1 << 29  # for each thread of a worker: more than the pieces that are under way
MOST_UNPACKED_BYTES = 1 << 28  # of a compressed file; a larger text is not kept, but unpacked again
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
        raise UsageError(message=f"a cluster needs {error.name}: pip install ./geval-py[cluster]") from error
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
        self, outputs: LineReader, expected: LineReader, columns: Sequence[Column], *, digest: bool, selects: bool
    ) -> ClusterScorer:
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


class _Pending(Generic[Result]):
    """A task's result that is under way, and the function that is applied to it."""

    def __init__(self, future: Any, make: Callable[[Any], Result]) -> None:
        self._future, self._make = future, make

    def result(self) -> Result:
        return self._make(self._future.result())


class PieceReader(BlockReader):
    """Numbers the lines of an output that workers count; ``last`` is the piece of the last block, and its worker.

    All workers can read the output's files under the same paths. Raises UsageError for an output that can be read
    only once, such as standard input.
    """

    last: tuple[Piece, str]

    def __init__(self, outputs: LineReader, expected: LineReader | None, cluster: Cluster) -> None:
        if outputs.size is None:
            raise UsageError(message=f"the workers of a cluster cannot read {named(outputs.path)}: give a file")
        super().__init__(outputs, expected)
        self._cluster, self._size = cluster, outputs.size
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

        def submit(block: Block) -> _Pending[tuple[Block, Result | MalformedLineError]]:
            piece, worker = self.last
            future = self._cluster.submit(work_on, piece, block, work, *arguments(block), near=worker)
            return _Pending(future, lambda found: (block, found))

        with self.watched(), self._forgotten(), ThreadPool(0) as nobody:
            for block, found in in_order(submit, self.blocks(nobody), ahead=self._cluster.at_once):
                if isinstance(found, MalformedLineError):
                    raise found
                yield block, found
                if progress is not None:
                    progress(block.position or 0, self._size)
            self.check_unchanged()

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
        for piece, position, (lines, worker) in in_order(self._submit, self._pieces(), ahead=self._cluster.at_once):
            if not piece.is_near:
                self._keepers.add(worker)
            if lines:
                self.last = piece, worker
                yield bytearray(), memoryview(b""), lines, position, piece.path
        self.check_unchanged()

    def _submit(self, found: tuple[Piece, int]) -> _Pending[tuple[Piece, int, tuple[int, str]]]:
        piece, position = found
        return _Pending(self._cluster.submit(count, piece), lambda counted: (piece, position, counted))

    def _pieces(self) -> Iterator[tuple[Piece, int]]:
        """Cut the output into pieces, part by part, each with the number of stored bytes up to its end."""
        reader, before = self._outputs, 0
        while True:
            source = reader.source
            size = source.size or 0
            whole = Piece(
                path=absolute(source.path), range=None, start=0, size=size, header=reader.header,
                max_bytes=reader.max_bytes, run=self._run,
            )  # fmt: skip
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
        with self._reader.watched():
            columns = self._cluster.client.scatter(self._columns, broadcast=True, hash=False)
        arguments = columns, self._expected_path
        return self._reader.map_pieces(score, lambda _: arguments, progress=progress)


# What a worker does with a piece: count its lines and, once they are numbered, work on them.


class Piece(Value):
    """Lines of an output: of a range of a plain file or, without a ``range``, all lines of a compressed file.

    ``start`` is where the file's first line starts, ``size`` the number of its bytes, ``header`` the first name of a
    header line to skip, ``max_bytes`` the most that it may unpack to. ``run`` differs between readings of an output,
    which may have been changed in the meantime.
    """

    path: str
    range: Range | None
    start: int
    size: int
    header: str | None
    max_bytes: int | None = None
    run: str = ""

    @property
    def is_near(self) -> bool:
        """Whether it costs next to nothing to read it again."""
        return self.range is not None and not is_remote(self.path)


class _Kept:
    """The lines, block by block, that this process has read and has still to work on."""

    def __init__(self) -> None:
        self._blocks: dict[Piece, Sequence[memoryview]] = {}
        self._lock = Lock()

    def put(self, piece: Piece, blocks: Sequence[memoryview], threads: int) -> None:
        """Keep lines until they are taken, unless each of the threads would keep more than MOST_KEPT_BYTES.

        Lines that another run has left here give way.
        """

        def fits(kept: Mapping[Piece, Sequence[memoryview]]) -> bool:
            return sum(len(block) for its in kept.values() for block in its) <= threads * MOST_KEPT_BYTES

        with self._lock:
            kept = self._blocks | {piece: blocks}
            if not fits(kept):
                kept = {other: its for other, its in kept.items() if other.run == piece.run}
            if fits(kept):
                self._blocks = kept

    def take(self, piece: Piece) -> Sequence[memoryview] | None:
        """Return a piece's lines and keep them no longer; None if they are not kept."""
        with self._lock:
            return self._blocks.pop(piece, None)

    def drop(self, run: str) -> None:
        """Keep no lines of a run any longer."""
        with self._lock:
            self._blocks = {piece: blocks for piece, blocks in self._blocks.items() if piece.run != run}


_kept = _Kept()


def count(piece: Piece) -> tuple[int, str]:
    """Count the lines of a piece, and return the address of this worker, which may keep them; raises DataError."""
    worker = import_module("distributed").get_worker()
    return count_here(piece, worker.state.nthreads), worker.address


def count_here(piece: Piece, threads: int = 1) -> int:
    """Count the lines of a piece, which this process, with so many threads, may keep. Raises DataError."""
    blocks: list[memoryview] = []
    lines = size = 0
    for block in _read(piece):
        lines, size = lines + count_lines(block), size + len(block)
        if not piece.is_near and size <= MOST_UNPACKED_BYTES:
            blocks.append(block)
        else:
            blocks.clear()
    if not piece.is_near and size <= MOST_UNPACKED_BYTES:
        _kept.put(piece, blocks, threads)
    return lines


def forget(run: str) -> None:
    """Keep no lines of a run any longer: nobody will work on them."""
    _kept.drop(run)


def work_on(
    piece: Piece, numbers: Block, work: Callable[..., Result], *arguments: object
) -> Result | MalformedLineError:
    """Work on the lines of a piece: ``work(blocks, *arguments)``; each block lasts until the next one.

    ``numbers`` is the block without the text: its first line, its number of lines (the piece may have more) and the
    expected lines. Returns the first MalformedLineError instead of raising it, since trying again would not help.
    Raises DataError, also where the piece has fewer lines than were counted.
    """
    kept = _kept.take(piece)
    try:
        return work(_blocks(_read(piece) if kept is None else kept, numbers), *arguments)
    except MalformedLineError as error:
        return error


def _blocks(texts: Iterable[memoryview], numbers: Block) -> Iterator[Block]:
    line, place = 0, 0
    for text in texts:
        end, found = _head(text, numbers.lines - line)
        expected_end, _ = end_of_lines(numbers.expected, place, found)
        with text[:end] as outputs:
            yield numbers.replace(
                first_line=numbers.first_line + line,
                lines=found,
                outputs=outputs,
                expected=numbers.expected[place:expected_end],
                known=min(max(numbers.known - line, 0), found),
            )
        line, place = line + found, expected_end
        if line == numbers.lines:
            return
    raise changed(numbers.part)


def _read(piece: Piece) -> Iterator[memoryview]:
    """Yield the lines of a piece in blocks, each of which lasts until the next one; raises DataError."""
    if piece.range is None:
        with LineReader(piece.path, header=piece.header, max_bytes=piece.max_bytes) as lines:
            while block := lines.block():
                yield memoryview(block)
        return
    length = RANGE_BYTES if piece.is_near else piece.range.stop - piece.range.start
    buffer = bytearray(RANGE_BYTES + READ_AHEAD_BYTES + 2 if piece.is_near else 0)
    with opened_anywhere(piece.path) as read_at:
        reader = RangeReader(piece.path, read_at, start=piece.start, size=piece.size)
        for start in range(piece.range.start, piece.range.stop, length):
            found = reader.read(Range(start=start, stop=min(start + length, piece.range.stop)), buffer)
            text = memoryview(buffer)[found.start : found.stop]
            if text:  # otherwise the range is inside of a line
                yield text
            if piece.is_near:
                text.release()


def _head(text: memoryview, lines: int) -> tuple[int, int]:
    """Find where so many lines end, or the text; returns the place and the number of lines before it."""
    found = count_lines(text)
    return (len(text), found) if found <= lines else end_of_lines(bytes(text), 0, lines)


def score(blocks: Iterable[Block], columns: Sequence[Column], expected_path: str) -> list[LineStatistics]:
    """Score blocks for each of some columns; raises MalformedLineError, the first in the order of lines."""
    scored = [LineStatistics() for _ in columns]
    for block in blocks:
        for of_all, of_block in zip(scored, score_block(block, columns, expected_path), strict=True):
            of_all.extend(of_block)
    return scored


def digest_of(path: str, header: str | None) -> str | None:
    """Read an output from its beginning to its end and return the SHA-256 of its bytes; raises DataError."""
    with LineReader(path, header=header, digest=True) as reader:
        reader.count_rest()
        return reader.sha256
