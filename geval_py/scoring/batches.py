"""Parquet scored as arrays, a batch of rows at a time, without writing the rows as lines.

A batch that the arrays cannot score with the same digits as its lines is scored as lines: one with logarithms, with
buckets, with a rest that is not the last entry of every row or of none, or with a row that is not in the format.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.reading import parquet, rows
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.wordprobs import REST
from geval_py.scoring.arrays import numbers_of_lines
from geval_py.scoring.blocks import Block, MatchedBlockReader, Progress, ThreadPool, score_block
from geval_py.scoring.kernel.backends import array_losses, pack_words
from geval_py.scoring.kernel.packed_words import Unit
from geval_py.scoring.metrics.base import HashedColumn, LineStatistics

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from geval_py.scoring.blocks import Lines

    Losses: TypeAlias = Callable[[bytes, Any, int], tuple[array[float], float, int]]

_UNWRITABLE = " \n\r"


class BatchScorer(MatchedBlockReader):
    """Scores the rows of a Parquet file by metrics on hashed words; see :class:`geval_py.scoring.blocks.Scorer`."""

    sha256 = None

    def __init__(self, outputs: LineReader, expected: LineReader, columns: Sequence[HashedColumn]) -> None:
        super().__init__(outputs, expected)
        self._path, self._columns = str(outputs.path), columns

    def read(self, pool: ThreadPool) -> Iterator[Lines]:
        """Read batches; the lines have no text."""
        del pool  # pyarrow decodes in the thread that numbers the rows
        for batch in parquet.batches(self._path):
            if batch.num_rows:
                self._batch = batch
                yield bytearray(), memoryview(b""), batch.num_rows, None, self._path
        self._outputs.check_unchanged()

    def scored(self, progress: Progress | None) -> Iterator[tuple[Block, list[LineStatistics]]]:
        return self.map_pieces(self._score, lambda _: (self._batch,), progress=progress)

    def _score(self, blocks: Sequence[Block], batch: Any) -> list[LineStatistics]:
        (block,) = blocks
        batch = batch.slice(0, block.lines)
        losses = arrays_of(batch)
        if losses is not None:
            expected = "".join([f"{word}\n" for word in decode_lines(block.expected)]).encode()
            seeds = numbers_of_lines(None, block.first_line, block.lines)
            found = [losses(expected, seeds, column.bits) for column in self._columns]
            if all(fault < 0 for _, _, fault in found):
                return [LineStatistics(columns=(array("d", of),), bound=bound) for of, bound, _ in found]
        lines = parquet.lines_of_batch(self._path, batch, block.first_line)
        text = "".join([f"{line}\n" for line in lines]).encode()
        return score_block(block.replace(outputs=memoryview(text)), self._columns, self._expected_path)


def arrays_of(batch: Any) -> Losses | None:
    """Return what scores a batch as arrays; None if it has to be scored as lines."""
    filled = [name for name in batch.schema.names if batch.column(name).null_count < batch.num_rows]
    if filled != [rows.WORDS, rows.PROBABILITIES]:
        return None
    words, numbers = map(batch.column, filled)
    if any(column.null_count or column.flatten().null_count for column in (words, numbers)):
        return None
    if not str(numbers.type).startswith(("list", "large_list")) or not _is_double(numbers.flatten()):
        return None
    offsets = _offsets(words)
    values = _numbers(numbers.flatten(), np.float64)
    if not np.array_equal(offsets, _offsets(numbers)) or not (np.diff(offsets) > 0).all() or len(values) == 0:
        return None
    if not (0.0 <= values.min() <= values.max() <= 1.0 and np.maximum.reduceat(values, offsets[:-1]).all()):
        return None
    coded = words.flatten() if hasattr(words.flatten(), "dictionary") else words.flatten().dictionary_encode()
    if coded.dictionary.null_count:
        return None
    ids, known = _numbers(coded.indices, np.int32).astype(np.int64), _texts(coded.dictionary)
    if known is None:
        return None
    rests = None
    if REST in known:
        is_rest, last = ids == known.index(REST), offsets[1:] - 1
        if is_rest.any():
            if is_rest.sum() != len(last) or not is_rest[last].all():
                return None
            rests, kept = values[last], ~is_rest
            ids, values, offsets = ids[kept], values[kept], offsets - np.arange(len(offsets))
    packed = pack_words("".join([f"{word}\n" for word in known]).encode())

    def losses(expected: bytes, seeds: Any, bits: int) -> tuple[array[float], float, int]:
        return array_losses(packed, values, ids, offsets, rests, expected, seeds, bits, Unit.PROBABILITIES)

    return losses


def _is_double(values: Any) -> bool:
    return str(values.type) == "double"


def _numbers(numbers: Any, kind: type) -> Any:
    """Return the numbers of an array without nulls; ``to_numpy`` would import pandas."""
    return np.frombuffer(numbers.buffers()[1], kind, len(numbers), numbers.offset * np.dtype(kind).itemsize)


def _offsets(column: Any) -> Any:
    """Return where the rows of a column of lists begin and end in its values."""
    is_large = str(column.type).startswith("large")
    offsets = _numbers(column.offsets, np.int64 if is_large else np.int32).astype(np.int64)
    return offsets - offsets[0]


def _texts(dictionary: Any) -> list[str] | None:
    """Return the words of a dictionary; None if a line cannot hold one of them."""
    try:
        known: list[str] = dictionary.to_pylist()
    except ValueError:  # it is not UTF-8
        return None
    text = "\0".join(known)
    return None if any(mark in text for mark in _UNWRITABLE) else known
