"""Parquet scored from buffers, a batch of rows at a time, without writing the rows as lines.

A batch that cannot be scored so is scored as lines: one with maps or buckets, with rows of several kinds, or with a
row that is not in the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from geval_py.reading.arrow import import_pyarrow_alone, in_command
from geval_py.reading.lines import BYTE_ORDER_MARK, LineReader
from geval_py.reading.listed import ListedRows, listed_rows
from geval_py.reading.parquet_lists import Decoding
from geval_py.reading.parquet_rows import read_rows
from geval_py.reading.sources import state_at
from geval_py.scoring.blocks import Block, MatchedBlockReader, Progress, ThreadPool, score_block
from geval_py.scoring.kernel.backends import parquet_kernel, row_losses
from geval_py.scoring.metrics.base import HashedColumn, LineStatistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from geval_py.scoring.blocks import Lines


class UnreadRows(LineReader):
    """A file whose rows are read in batches, in the place of a reader of its lines, which would read the first."""

    def __init__(self, path: str) -> None:
        self.path, self.parts = path, (path,)
        self._states = [state_at(path)]

    def __exit__(self, *exc: object) -> None:
        pass


class BatchScorer(MatchedBlockReader):
    """Scores the rows of a Parquet file by metrics on hashed words; see :class:`geval_py.scoring.blocks.Scorer`."""

    sha256 = None

    def __init__(
        self, outputs: LineReader, expected: LineReader, columns: Sequence[HashedColumn], threads: int | None
    ) -> None:
        super().__init__(outputs, expected, threads)
        self._path, self._columns = str(outputs.path), columns

    def read(self, pool: ThreadPool) -> Iterator[Lines]:
        """Read batches; the lines have no text."""
        for batch in self._batches(pool):
            lines = len(batch.offsets) - 1 if isinstance(batch, ListedRows) else batch.num_rows
            if lines:
                self._batch = batch
                yield bytearray(), memoryview(b""), lines, None, self._path
        self._outputs.check_unchanged()

    def _batches(self, pool: ThreadPool) -> Iterator[ListedRows | Any]:
        kernel = parquet_kernel()
        if kernel:
            if in_command():
                from geval_py.scoring.kernel.native import keep_freed_memory

                keep_freed_memory()
            return read_rows(self._path, Decoding(*kernel, pool))
        from geval_py.reading.parquet import batches

        import_pyarrow_alone()
        return batches(self._path)

    def _count_threads(self, wanted: int | None) -> int:
        return wanted if wanted is not None and wanted > 1 else 0

    def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        return self.map_pieces(self._score, lambda _: (self._batch,), progress=progress)

    def _score(self, blocks: Sequence[Block], batch: ListedRows | Any) -> list[LineStatistics]:
        (block,) = blocks
        listed: ListedRows | None
        if isinstance(batch, ListedRows):
            batch = listed = batch._replace(offsets=batch.offsets[: block.lines + 1])
        else:
            batch = batch.slice(0, block.lines)
            listed = listed_rows(batch)
        mark = BYTE_ORDER_MARK if block.first_line == 1 else b""  # which a file loses, whatever its format
        if listed is not None and not (mark and _first_word(listed).startswith(mark)):
            found = [row_losses(listed, block.expected, column.bits, block.first_line) for column in self._columns]
            if all(fault < 0 for _, _, fault in found):
                return [LineStatistics(columns=(losses,), bound=bound) for losses, bound, _ in found]
        from geval_py.reading.parquet import lines_of_batch

        lines = lines_of_batch(self._path, batch, block.first_line)
        text = "".join([f"{line}\n" for line in lines]).encode().removeprefix(mark)
        return score_block(block.replace(outputs=memoryview(text)), self._columns, self._expected_path)


def _first_word(listed: ListedRows) -> bytes:
    """Return the first word of rows, which may be no UTF-8; an empty one if there is none."""
    place, end = listed.offsets[:2]
    if place == end:
        return b""
    number = place if listed.codes is None else listed.codes[place]
    start, end = listed.starts[number : number + 2] if 0 <= number < len(listed.starts) - 1 else (0, 0)
    return bytes(listed.text[start:end])
