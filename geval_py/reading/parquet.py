"""Outputs in Parquet, read by pyarrow: a row is a line.

An output has columns of lists, of words and of their numbers, or a column of maps, with the keys of JSON lines
(:mod:`geval_py.reading.formats`), and perhaps a column of ids; other columns are left out. The details that lighteval
logs (``details_TASK_DATE.parquet``) are outputs, too: the choices of its ``doc``, with the logarithms of its
``model_response``.

Before anything is unpacked, the sizes in the footer are checked. pyarrow trusts much else in a file: those of
strangers are read in a process of their own, with a limit of memory.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from geval_py.errors import MissingPackageError, TooLargeError, UnreadableFileError
from geval_py.reading import rows
from geval_py.reading.compression import compression_by_ending
from geval_py.reading.files import File, naming
from geval_py.reading.lines import DEFAULT_MAX_BYTES
from geval_py.reading.rows import ID, KEYS, LOGARITHMS, PROBABILITIES, UNITS, WORDS, Rows
from geval_py.text import some_of
from geval_py.version import installs

DOC, CHOICES, RESPONSE = "doc", "choices", "model_response"  # lighteval's columns, and a field of the first
MAX_FOOTER_TEXT, MAX_FOOTER_LIST = 1 << 24, 1 << 17  # bytes of a text, and entries of a list, in the footer
MAX_GROUP_BYTES, MAX_RATIO = 1 << 28, 256  # of a row group; a larger one may not be packed more tightly
BYTES_OF_VALUE = 12  # that a value takes, beside its page: a number, and its place in lists
ROWS_OF_BATCH, BYTES_OF_BATCH = 2048, 1 << 20  # of which few are Python's objects at once
BUFFER_BYTES = 1 << 18  # read at once of a column, which pyarrow would otherwise read whole
# Of columns with words and numbers, whose rows are joined by Arrow.
JOINED_TYPES = r"(large_)?list<\w+: (dictionary<values=)?(large_)?string.* (large_)?list<\w+: (u?int|.*float|double)"


def import_pyarrow() -> Any:
    """Import pyarrow; raises MissingPackageError with the command that installs it."""
    try:
        import pyarrow as pa
    except ImportError as error:
        message = f"Parquet is read by pyarrow, of the extra parquet: {installs('parquet')}"
        raise MissingPackageError(message, package="pyarrow") from error
    return pa


@contextmanager
def pyarrow_errors(path: str) -> Iterator[None]:
    """Turn pyarrow's errors into an UnreadableFileError."""
    pa = import_pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise UnreadableFileError(path=path, reason=f"it is not well-formed Parquet: {reason}") from error


def read_parquet(file: File) -> Rows:
    """Yield the ids and lines of an output; rows without ids are joined, a batch of them at a time.

    Raises UnreadableFileError, with the row and column; MissingPackageError without pyarrow; and TooLargeError for a
    file that unpacks to more than its ``max_bytes``, by default DEFAULT_MAX_BYTES, or MAX_RATIO times its size if
    that is more.
    """
    path, max_bytes = file.name, file.max_bytes
    with naming(path):
        if compression_by_ending(path) is not None:
            raise ValueError("Parquet is compressed inside: unpack it, and name it .parquet")
        source = File(path).admitted()
        raw = io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")
    with raw, pyarrow_errors(path):
        from pyarrow.parquet import ParquetFile

        parquet = ParquetFile(
            raw,
            buffer_size=BUFFER_BYTES,
            thrift_string_size_limit=MAX_FOOTER_TEXT,
            thrift_container_size_limit=MAX_FOOTER_LIST,
        )
        names = _columns_of(path, parquet.schema_arrow)
        file_size = raw.seek(0, io.SEEK_END)
        if max_bytes is None:
            max_bytes = max(DEFAULT_MAX_BYTES, MAX_RATIO * file_size)
        number = 1
        for batch in _batches(path, parquet, names, file_size, max_bytes):
            ids = batch.column(ID).to_pylist() if ID in names else None
            batch = batch.select([name for name in batch.schema.names if name != ID])
            lines = _joined_rows(batch) or lines_of_batch(file, batch, number)
            if ids is None:
                yield "", "\n".join(lines)
            else:
                yield from zip(map(rows.id_text, ids), lines, strict=True)
            number += batch.num_rows


def _batches(path: str, file: Any, names: list[str], file_size: int, max_bytes: int) -> Iterator[Any]:
    """Yield the rows of each row group, once the sizes that the footer gives are known to be within the limits."""
    prefixes = tuple(f"{name}." for name in names)
    total = 0
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        chunks = [group.column(n) for n in range(group.num_columns)]
        chunks = [chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(prefixes)]
        sizes = [chunk.total_uncompressed_size + BYTES_OF_VALUE * chunk.num_values for chunk in chunks]
        stored = min(file_size, sum(chunk.total_compressed_size for chunk in chunks))
        if min(group.num_rows, stored, *sizes) < 0:
            raise ValueError("a size in its footer is negative")
        size, most = sum(sizes), max(MAX_GROUP_BYTES, MAX_RATIO * stored)
        total += size
        if size > most:
            reason = f"row group {number + 1} would unpack to more than {most} bytes, from {stored}"
            raise UnreadableFileError(path=path, reason=f"{reason}; write smaller row groups, or TSV")
        if total > max_bytes:
            raise TooLargeError(path=path, max_bytes=max_bytes)
        at_once = max(1, min(ROWS_OF_BATCH, BYTES_OF_BATCH * group.num_rows // max(1, size)))
        for batch in file.iter_batches(at_once, row_groups=[number], columns=names, use_threads=False):
            batch.validate(full=True)
            yield batch


def _columns_of(path: str, schema: Any) -> list[str]:
    """Return the columns of an output that a schema has; raises UnreadableFileError for none and for equal names."""
    names = [name for name in (ID, *KEYS) if name in schema.names]
    if {DOC, RESPONSE} <= {*schema.names} and not {*names} - {ID}:
        names = [f"{DOC}.{CHOICES}", f"{RESPONSE}.{LOGARITHMS}"]
    elif not {*names} - {ID, WORDS}:
        wanted = f"{WORDS} and {PROBABILITIES}, or {LOGARITHMS} are wanted"
        raise UnreadableFileError(path=path, reason=f"its columns are {some_of(schema.names)}; {wanted}")
    for name in names:
        column = name.partition(".")[0]
        if schema.names.count(column) > 1:
            raise UnreadableFileError(path=path, reason=f"column {column}: there are two")
    return names


def _joined_rows(batch: Any) -> list[str] | None:
    """Write rows of words and as many numbers as lines, by Arrow's own functions; the numbers read back the same.

    Returns None for rows of another form, or if one may be no line: :func:`lines_of_batch` takes all of them.
    """
    import numpy as np
    from pyarrow import ListArray, array, compute, float64, int32, list_, string

    names = {name for name in batch.schema.names if batch.column(name).null_count < batch.num_rows}
    unit = next((unit for unit in UNITS if names == {WORDS, unit}), None)
    if unit is None:
        return None
    words, numbers = batch.column(WORDS), batch.column(unit)
    if not re.match(JOINED_TYPES, f"{words.type} {numbers.type}"):
        return None
    lists = [words.cast(list_(string())), numbers.cast(list_(float64()), safe=False)]
    word_offsets, offsets = (np.from_dlpack(column.offsets) for column in lists)
    sizes, places = np.diff(offsets), offsets - offsets[0]
    if not sizes.all() or not np.array_equal(np.diff(word_offsets), sizes):
        return None
    words, numbers = (column.flatten() for column in lists)
    if any(part.null_count for part in (*lists, words, numbers)):
        return None
    values = np.from_dlpack(numbers)
    least, most = np.minimum.reduceat(values, places[:-1]), np.maximum.reduceat(values, places[:-1])
    are_probabilities = (least >= 0) & (most > 0) & (most <= 1)
    if not np.isfinite(values).all() or (are_probabilities != (unit == PROBABILITIES)).any():
        return None
    text = bytes(words.buffers()[2] or b"")
    if text != text.translate(None, b" \n\r"):
        return None
    entries = compute.binary_join_element_wise(words, numbers.cast(string()), ":")
    lines = compute.binary_join(ListArray.from_arrays(array(places, int32()), entries), " ")
    return list(lines.to_pylist())


def lines_of_batch(file: File, batch: Any, first: int) -> Iterator[str]:
    """Yield the lines of a batch, whose first row has a number; raises as :func:`read_parquet`."""
    for number, values in enumerate(batch.to_pylist(), first):
        row = rows.Row(file.name, number)
        if DOC in values:
            choices: Any = (values[DOC] or {}).get(CHOICES)
            logarithms: Any = (values[RESPONSE] or {}).get(LOGARITHMS)
            for key, value in ((f"{DOC}.{CHOICES}", choices), (f"{RESPONSE}.{LOGARITHMS}", logarithms)):
                if not isinstance(value, list):
                    raise row.error("lighteval's details of a multiple-choice task have a list there", key)
            if number == 1 and len(choices) == 1:
                file.lists_answers_alone = True
            words = rows.words_of_choices(row, f"{DOC}.{CHOICES}", choices)
            values = {WORDS: words, LOGARITHMS: logarithms}
        for name, value in values.items():
            if isinstance(value, list) and value and isinstance(value[0], tuple):
                values[name] = dict(value)
                if len(values[name]) < len(value):
                    raise row.error("a word is twice in the map")
        yield rows.line_of(row, values)
