"""Outputs in Parquet, a row a line: columns of lists, of words and of their numbers, or a column of maps.

The columns have the keys of JSON lines (:mod:`geval_py.reading.other_formats`); other columns are left out. pyarrow,
of the extra parquet, reads and writes them; for a score see :mod:`geval_py.reading.parquet_rows`. The details that
lighteval logs (``details_TASK_DATE.parquet``) are read, too: the choices of its ``doc``, with the logarithms of its
``model_response``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from geval_py.reading import rows
from geval_py.reading.arrow import compute, leaves_in, lengths, pyarrow, reading, text_size
from geval_py.reading.listed import WORDS, ListedRows, batch_of
from geval_py.reading.parquet_batches import CHOICES, DOC, ParquetFile, count_in, pieces_of, size_in
from geval_py.reading.parquet_footer import opened_file, read_footer
from geval_py.reading.parquet_headers import BYTES_AT_ONCE, BYTES_OF_OBJECT, ROWS_AT_ONCE, Unpacked
from geval_py.reading.parquet_schema import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from geval_py.reading.rewriting import Writable

ROWS_OF_TEXT = 64
ROWS_OF_GROUP, BYTES_OF_GROUP = 1 << 20, 1 << 26  # that are written


@contextmanager
def opened(
    path: str, choose: Callable[[list[str]], str] | None = None, max_bytes: int | None = None
) -> Iterator[ParquetFile]:
    """Open a Parquet file, for its known columns or a chosen one.

    Raises UnreadableFileError, and UsageError without pyarrow. The file may unpack to ``max_bytes``; see
    :class:`Unpacked` for the default.
    """
    pyarrow()
    with opened_file(path) as file:
        footer = read_footer(path, file)
        yield ParquetFile(path, file, footer, Unpacked(path, footer.size, max_bytes), choose)


def batches(path: str, max_bytes: int | None = None) -> Iterator[Any]:
    """Yield record batches with the known columns; raises as :func:`opened`, and TooLargeError."""
    with opened(path, max_bytes=max_bytes) as file:
        yield from file.batches()


def read_parquet(path: str, max_bytes: int | None = None) -> Generator[str]:
    """Yield the lines of a Parquet file; raises UnreadableFileError, with row and column, and TooLargeError."""
    yield from lines_of_batches(path, batches(path, max_bytes))


def lines_of_batches(path: str, found: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of all batches of a file; raises as :func:`read_parquet`."""
    number = 1
    for batch in found:
        yield from lines_of_batch(path, batch, number)
        number += batch.num_rows


def lines_of_batch(path: str, batch: ListedRows | Any, number: int) -> Iterator[str]:
    """Yield the lines of a batch, whose first row has a number; raises as :func:`read_parquet`."""
    if isinstance(batch, ListedRows):
        batch = batch_of(batch)
    with reading(path):
        coded = [leaf for leaf in leaves_in(batch) if hasattr(leaf, "dictionary")]
        for leaf in coded:  # an error for a code without a word: asked for that word, pyarrow may end the process
            text_size(leaf)
        longest = max((compute("max", lengths(leaf.dictionary)).as_py() or 0 for leaf in coded), default=0)
    for start in range(0, batch.num_rows, ROWS_OF_TEXT):
        with reading(path):
            some = batch.slice(start, ROWS_OF_TEXT)
            entries, text = count_in(some, are_short=True)
            are_few = entries * (BYTES_OF_OBJECT + longest) + text <= BYTES_AT_ONCE
            pieces = [(some, 0)] if are_few else list(pieces_of(some, size_in(some), BYTES_AT_ONCE))
        for piece, _ in pieces:
            with reading(path):
                found = piece.to_pylist()
            for values in found:
                row = rows.Row(path=path, number=number)
                if CHOICES in values:
                    words = rows.words_of_choices(row, f"{DOC}.{CHOICES}", values.pop(CHOICES) or ())
                    values = {WORDS: words, **values}
                yield rows.line_of(row, {name: _as_map(value, row) for name, value in values.items()})
                number += 1


def _as_map(value: Any, row: rows.Row) -> Any:
    """Turn the pairs of a map into one; raises UnreadableFileError for a word that is there twice."""
    if not (isinstance(value, list) and value and isinstance(value[0], tuple)):
        return value
    found: dict[Any, Any] = dict(value)
    if len(found) < len(value):
        raise row.error("", "a word is twice in the map")
    return found


def write_parquet(parsed: rows.Parsed, file: Writable) -> None:
    """Write rows, with a column for each key."""
    pa = pyarrow()
    numbers = pa.list_(pa.float64())
    types = {name: pa.list_(pa.string()) if name == WORDS else numbers for name in KEYS}
    schema = pa.schema(list(types.items()))
    taking = iter(parsed)
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(_Sink(file), schema) as writer:
        group, size = [], 0
        while some := list(islice(taking, ROWS_AT_ONCE)):
            values = [rows.values_of(one) for _, one in some]
            arrays = [pa.array([of.get(name) for of in values], types[name]) for name in types]
            group.append(pa.record_batch(arrays, schema=schema))
            size += group[-1].nbytes
            if size >= BYTES_OF_GROUP or len(group) * ROWS_AT_ONCE >= ROWS_OF_GROUP:
                writer.write_table(pa.Table.from_batches(group), ROWS_OF_GROUP)
                group, size = [], 0
        if group:
            writer.write_table(pa.Table.from_batches(group), ROWS_OF_GROUP)


class _Sink(io.RawIOBase):
    """A stream that pyarrow can write to."""

    def __init__(self, file: Writable) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(bytes(data))
        return len(data)
