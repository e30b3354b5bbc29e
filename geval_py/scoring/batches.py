"""Parquet scored from Arrow's buffers, a batch of rows at a time, without writing the rows as lines.

A batch that cannot be scored so is scored as lines: one with maps or buckets, with rows of several kinds, or with a
row that is not in the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from geval_py.reading import parquet, rows
from geval_py.reading.arrow import entries_of, import_pyarrow_alone, numbers_in, starts_in
from geval_py.reading.lines import BYTE_ORDER_MARK, LineReader
from geval_py.reading.parquet_lists import Decoding
from geval_py.reading.sources import state_at
from geval_py.scoring.blocks import Block, MatchedBlockReader, Progress, ThreadPool, score_block
from geval_py.scoring.kernel.backends import parquet_decoder, row_losses
from geval_py.scoring.kernel.listed_rows import ListedRows
from geval_py.scoring.metrics.base import HashedColumn, LineStatistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from geval_py.scoring.blocks import Lines

_NUMBERS = ("float", "double")


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
        import_pyarrow_alone()

    def read(self, pool: ThreadPool) -> Iterator[Lines]:
        """Read batches; the lines have no text."""
        decoder = parquet_decoder()
        decoding = Decoding(decoder, pool) if decoder else None  # in the thread that numbers the rows
        for batch in parquet.batches(self._path, decoding=decoding):
            if batch.num_rows:
                self._batch = batch
                yield bytearray(), memoryview(b""), batch.num_rows, None, self._path
        self._outputs.check_unchanged()

    def _count_threads(self, wanted: int | None) -> int:
        return wanted if wanted is not None and wanted > 1 else 0

    def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        return self.map_pieces(self._score, lambda _: (self._batch,), progress=progress)

    def _score(self, blocks: Sequence[Block], batch: Any) -> list[LineStatistics]:
        (block,) = blocks
        batch = batch.slice(0, block.lines)
        mark = BYTE_ORDER_MARK if block.first_line == 1 else b""  # which a file loses, whatever its format
        listed = listed_rows(batch)
        if listed is not None and not (mark and _first_word(batch).startswith(mark)):
            found = [row_losses(listed, block.expected, column.bits, block.first_line) for column in self._columns]
            if all(fault < 0 for _, _, fault in found):
                return [LineStatistics(columns=(losses,), bound=bound) for losses, bound, _ in found]
        lines = parquet.lines_of_batch(self._path, batch, block.first_line)
        text = "".join([f"{line}\n" for line in lines]).encode().removeprefix(mark)
        return score_block(block.replace(outputs=memoryview(text)), self._columns, self._expected_path)


def _first_word(batch: Any) -> bytes:
    """Return the first word of rows with lists of words, which may be no UTF-8; an empty one if there is none."""
    words = entries_of(batch.column(rows.WORDS).slice(0, 1))
    if hasattr(words, "dictionary") and len(words):  # for some codes without a word, pyarrow ends the process
        code, words = words.indices[0].as_py(), words.dictionary
        words = words.slice(code, 1) if code >= 0 else ()
    found: bytes = words[0].as_buffer().to_pybytes() if len(words) else b""
    return found


def listed_rows(batch: Any) -> ListedRows | None:
    """Return the rows of a batch in its buffers; None for another form than lists of words and of their numbers."""
    names = [name for name in parquet.KEYS if name in batch.schema.names]
    filled = [name for name in names if batch.column(name).null_count < batch.num_rows]
    if filled not in parquet.PAIRS:
        return None
    words, numbers = map(batch.column, filled)
    if hasattr(numbers, "keys") or words.null_count or numbers.null_count:
        return None
    items, values = words.values, numbers.values
    if items.null_count or values.null_count or str(values.type) not in _NUMBERS:
        return None
    if not words.offsets.equals(numbers.offsets):
        return None
    codes = None
    if hasattr(items, "dictionary"):
        codes, items = items.indices, items.dictionary
        if items.null_count or str(codes.type) not in ("int32", "int64"):
            return None
    return ListedRows(
        offsets=numbers_in(words.offsets),
        starts=starts_in(items),
        text=memoryview(items.buffers()[2] or b""),
        codes=None if codes is None else numbers_in(codes),
        values=numbers_in(values),
        probabilities=filled[1] == rows.PROBABILITIES,
    )
