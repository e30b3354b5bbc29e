"""Outputs in Parquet, a row a line: columns of lists, of words and of their numbers, or a column of maps.

The columns have the keys of JSON lines (:mod:`geval_py.reading.formats`); other columns are left out. pyarrow reads
and writes them, of the extra parquet.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from geval_py.errors import UnreadableFileError, UsageError
from geval_py.reading import rows
from geval_py.reading.sources import is_regular, is_remote, naming
from geval_py.version import installs

if TYPE_CHECKING:
    from geval_py.reading.rewriting import Writable

KEYS = (rows.WORDS, rows.PROBABILITIES, rows.LOGARITHMS, rows.BUCKETS)
ROWS_AT_ONCE = 16384
ROWS_OF_TEXT = 64


def pyarrow() -> Any:
    """Import pyarrow and its Parquet; raises UsageError with the command that installs it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            message=f"Parquet is read by pyarrow, of the extra parquet: {installs('parquet')}"
        ) from error
    return pa


@contextmanager
def opened(path: str) -> Iterator[tuple[Any, Any]]:
    """Open a Parquet file on this machine; raises UnreadableFileError.

    Yields two readers: the first keeps words as numbers of a dictionary, which is fast but not always possible.
    """
    pa = pyarrow()
    if not is_regular(path) or is_remote(path):
        raise UnreadableFileError(path=path, reason="Parquet is read from one file on this machine")
    with naming(path):
        raw = open(path, "rb")
    with raw:
        with reading(path):
            plain = pa.parquet.ParquetFile(raw)
            leaves = (plain.schema.column(n).path for n in range(len(plain.schema)))
            words = [leaf for leaf in leaves if leaf.startswith(f"{rows.WORDS}.")]
            coded = pa.parquet.ParquetFile(raw, read_dictionary=words)
        _check_types(path, plain.schema_arrow, pa.types)
        yield coded, plain


def _check_types(path: str, schema: Any, types: Any) -> None:
    """Raise UnreadableFileError unless the known columns are lists of words, and lists or maps of numbers."""
    for name in KEYS:
        if name not in schema.names:
            continue
        if schema.names.count(name) > 1:
            raise UnreadableFileError(path=path, reason=f"column {name}: there are two")
        found = schema.field(name).type
        is_map = types.is_map(found) and name != rows.WORDS
        is_list = types.is_list(found) or types.is_large_list(found)
        value = found.item_type if is_map else found.value_type if is_list else None
        value = value.value_type if value is not None and types.is_dictionary(value) else value
        if name == rows.WORDS:
            fits = value is not None and (types.is_string(value) or types.is_large_string(value))
        else:
            fits = value is not None and (types.is_floating(value) or types.is_integer(value))
            fits = fits and (not is_map or types.is_string(found.key_type) or types.is_large_string(found.key_type))
        if not fits:
            wanted = "a list of strings" if name == rows.WORDS else "a list or a map of numbers"
            raise UnreadableFileError(path=path, reason=f"column {name}: {wanted} is wanted, not {found}")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn pyarrow's errors into an UnreadableFileError."""
    pa = pyarrow()
    try:
        yield
    except pa.ArrowNotImplementedError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise UnreadableFileError(path=path, reason=f"it is not well-formed Parquet: {reason}") from error


def batches(path: str) -> Iterator[Any]:
    """Yield record batches with the known columns; raises UnreadableFileError."""
    pa = pyarrow()
    with opened(path) as (coded, plain):
        names = [name for name in KEYS if name in plain.schema_arrow.names]
        if not names:
            wanted = f"{rows.WORDS} and {rows.PROBABILITIES}, or {rows.LOGARITHMS}"
            found = ", ".join(plain.schema_arrow.names[:8])
            raise UnreadableFileError(path=path, reason=f"its columns are {found}; {wanted} are wanted")
        for group in range(plain.num_row_groups):
            given = 0
            try:
                for batch in _of_group(path, coded, group, names):
                    given += 1
                    yield batch
            except pa.ArrowNotImplementedError:  # the dictionary was too large for the whole group
                yield from islice(_of_group(path, plain, group, names), given, None)


def _of_group(path: str, file: Any, group: int, names: list[str]) -> Iterator[Any]:
    stream = file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=names, use_threads=False)
    while True:
        with reading(path):
            batch = next(stream, None)
        if batch is None:
            return
        yield batch


def read_parquet(path: str) -> Generator[str]:
    """Yield the lines of a Parquet file; raises UnreadableFileError, with the row and the column."""
    number = 1
    for batch in batches(path):
        yield from lines_of_batch(path, batch, number)
        number += batch.num_rows


def lines_of_batch(path: str, batch: Any, number: int) -> Iterator[str]:
    """Yield the lines of a batch, whose first row has a number; raises as :func:`read_parquet`."""
    for start in range(0, batch.num_rows, ROWS_OF_TEXT):
        with reading(path):
            found = batch.slice(start, ROWS_OF_TEXT).to_pylist()
        for values in found:
            row = rows.Row(path=path, number=number)
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
    types = {name: pa.list_(pa.string()) if name == rows.WORDS else numbers for name in KEYS}
    schema = pa.schema(list(types.items()))
    taking = iter(parsed)
    with pa.parquet.ParquetWriter(_Sink(file), schema) as writer:
        while some := list(islice(taking, ROWS_AT_ONCE)):
            values = [rows.values_of(one) for _, one in some]
            arrays = [pa.array([of.get(name) for of in values], types[name]) for name in types]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


class _Sink(io.RawIOBase):
    """A stream that pyarrow can write to."""

    def __init__(self, file: Writable) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(bytes(data))
        return len(data)
