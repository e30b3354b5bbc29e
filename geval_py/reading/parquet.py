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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from geval_py.errors import MissingPackageError, TooLargeError, UnreadableFileError
from geval_py.reading import rows
from geval_py.reading.compression import compression_by_ending
from geval_py.reading.files import naming
from geval_py.reading.lines import DEFAULT_MAX_BYTES
from geval_py.reading.rows import BUCKETS, ID, KEYS, LOGARITHMS, PROBABILITIES, WORDS, Rows
from geval_py.reading.tool_files import ANSWERS_ALONE
from geval_py.text import shorten
from geval_py.version import installs

DOC, CHOICES, RESPONSE = "doc", "choices", "model_response"  # lighteval's columns, and a field of the first
MAX_FOOTER_TEXT, MAX_FOOTER_LIST = 1 << 24, 1 << 17  # bytes of a text, and entries of a list, in the footer
MAX_GROUP_BYTES, MAX_RATIO = 1 << 28, 256  # of a row group; a larger one may not be packed more tightly
BYTES_OF_VALUE = 12  # that a value takes, beside its page: a number, and its place in lists
ROWS_OF_BATCH, BYTES_OF_BATCH = 2048, 1 << 23
BUFFER_BYTES = 1 << 18  # read at once of a column, which pyarrow would otherwise read whole
ROWS_OF_TEXT = 64  # that are Python's objects at once


def import_pyarrow() -> Any:
    """Import pyarrow; raises MissingPackageError with the command that installs it."""
    try:
        import pyarrow as pa
    except ImportError as error:
        message = f"Parquet is read by pyarrow, of the extra parquet: {installs('parquet')}"
        raise MissingPackageError(message=message, package="pyarrow") from error
    return pa


@contextmanager
def pyarrow_errors(path: str, fault: str = "not well-formed Parquet") -> Iterator[None]:
    """Turn pyarrow's errors into an UnreadableFileError."""
    pa = import_pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise UnreadableFileError(path=path, reason=f"it is {fault}: {reason}") from error


def read_parquet(path: str, notes: list[str], max_bytes: int | None = None) -> Rows:
    """Yield the ids and lines of an output; rows without ids are joined, a batch of them at a time.

    Raises UnreadableFileError, with the row and column; MissingPackageError without pyarrow; and TooLargeError for a
    file that unpacks to more than ``max_bytes``, by default DEFAULT_MAX_BYTES, or MAX_RATIO times its size if that is
    more.
    """
    import_pyarrow()
    with naming(path):
        if compression_by_ending(path) is not None:
            raise ValueError("Parquet is compressed inside: unpack it, and name it .parquet")
        raw = open(path, "rb")
    with raw:
        with pyarrow_errors(path):
            from pyarrow.parquet import ParquetFile

            limits = {"thrift_string_size_limit": MAX_FOOTER_TEXT, "thrift_container_size_limit": MAX_FOOTER_LIST}
            file = ParquetFile(raw, buffer_size=BUFFER_BYTES, **limits)
        with naming(path):
            names = _output_columns(file.schema_arrow)
        file_size = raw.seek(0, io.SEEK_END)
        if max_bytes is None:
            max_bytes = max(DEFAULT_MAX_BYTES, MAX_RATIO * file_size)
        number = 1
        for batch in _batches(path, file, names, file_size, max_bytes):
            ids = batch.column(ID).to_pylist() if ID in names else None
            batch = batch.select([name for name in batch.schema.names if name != ID])
            if number == 1 and DOC in batch.schema.names and _lists_answer_alone(batch):
                notes.append(ANSWERS_ALONE)
            with pyarrow_errors(path):
                joined = _joined_rows(batch)
            if ids is None:
                yield "", "\n".join(lines_of_batches(path, [batch], number)) if joined is None else joined
            else:
                lines = lines_of_batches(path, [batch], number) if joined is None else joined.split("\n")
                yield from zip(map(rows.id_text, ids), lines, strict=True)
            number += batch.num_rows


def _lists_answer_alone(batch: Any) -> bool:
    """Whether the first row of lighteval's details has one choice."""
    doc = batch.column(DOC)[:1].to_pylist()
    return bool(doc and doc[0]) and len(doc[0][CHOICES] or ()) == 1


def _batches(path: str, file: Any, names: list[str], file_size: int, max_bytes: int) -> Iterator[Any]:
    """Yield the rows of each row group, once the sizes that the footer gives are known to be within the limits."""
    prefixes = tuple(f"{name}." for name in names)
    total = 0
    with pyarrow_errors(path):
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


def _is_text(kind: Any) -> bool:
    types = import_pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_id(kind: Any) -> bool:
    return _is_text(kind) or bool(import_pyarrow().types.is_integer(kind))


def _output_columns(schema: Any) -> list[str]:
    """Return the columns of an output; raises ValueError unless they can make a line."""
    types = import_pyarrow().types

    def entries(kind: Any) -> Any:
        """Return the type of the entries of lists; None for another type."""
        value = kind.value_type if types.is_list(kind) or types.is_large_list(kind) else None
        return value.value_type if value is not None and types.is_dictionary(value) else value

    names = [name for name in KEYS if name in schema.names]
    if not names and {DOC, RESPONSE} <= {*schema.names}:
        for column, key in ((DOC, CHOICES), (RESPONSE, LOGARITHMS)):
            kind: Any = schema.field(column).type if schema.names.count(column) == 1 else None
            place = kind.get_field_index(key) if kind is not None and types.is_struct(kind) else -1
            value = entries(kind.field(place).type) if place >= 0 else None
            if value is None or not (_is_text(value) if key == CHOICES else types.is_float64(value)):
                raise ValueError(
                    f"column {column}.{key}: lighteval's details of a multiple-choice task have a list there"
                )
        return [f"{DOC}.{CHOICES}", f"{RESPONSE}.{LOGARITHMS}"]
    has_map, has_ids = False, schema.names.count(ID) == 1 and _is_id(schema.field(ID).type)
    for name in names:
        if schema.names.count(name) > 1:
            raise ValueError(f"column {name}: there are two")
        kind = schema.field(name).type
        is_map = name != WORDS and types.is_map(kind) and _is_text(kind.key_type)
        value = kind.item_type if is_map else entries(kind)
        is_number = value is not None and (types.is_floating(value) or types.is_integer(value))
        if not (value is not None and _is_text(value) if name == WORDS else is_number):
            lists = "a list of strings" if name == WORDS else "a list or a map of numbers"
            raise ValueError(f"column {name}: {lists} is wanted, not {shorten(str(kind))}")
        has_map = has_map or is_map
    if not {*names} - {WORDS} or not ({WORDS, BUCKETS} & {*names} or has_map):
        keys = f"{WORDS} and {PROBABILITIES}, or {LOGARITHMS}"
        columns = ", ".join(schema.names[:8])
        raise ValueError(f"its columns are {columns}; {keys} are wanted")
    return [ID, *names] if has_ids else names


def _joined_rows(batch: Any) -> str | None:
    """Write the rows of a batch as lines, by Arrow's own functions, with numbers that read back the same.

    Returns None if a row may be no line, or if rows have several forms: :func:`lines_of_batches` takes all of them.
    """
    import numpy as np
    from pyarrow import ListArray, array, compute, float64, int32, string, types

    names = [name for name in batch.schema.names if batch.column(name).null_count < batch.num_rows]
    units = [name for name in names if name != WORDS]
    if len(units) != 1 or any(batch.column(name).null_count for name in names):
        return None
    lists, words = batch.column(units[0]), batch.column(WORDS) if WORDS in names else None
    is_map, is_vector = types.is_map(lists.type), units[0] == BUCKETS
    if is_map + is_vector + (words is not None) != 1:
        return None
    offsets = np.from_dlpack(lists.offsets)
    sizes, total = np.diff(offsets), int(offsets[-1] - offsets[0])
    starts = offsets[:-1] - offsets[0]
    if not sizes.all() or (words is not None and not np.array_equal(np.diff(np.from_dlpack(words.offsets)), sizes)):
        return None
    if is_map:
        columns = [child.slice(offsets[0], total) for child in (lists.keys, lists.items)]
    else:
        columns = [column.flatten() for column in (words, lists) if column is not None]
    numbers = columns.pop().cast(float64(), safe=False)
    texts = [column.cast(string()) for column in columns]
    if any(column.null_count for column in (numbers, *texts)):
        return None
    values = np.from_dlpack(numbers)
    least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    are_probabilities = (least >= 0) & (most > 0) & (most <= 1)
    if not np.isfinite(values).all() or (not is_vector and (are_probabilities != (units[0] == PROBABILITIES)).any()):
        return None
    entries = numbers.cast(string())
    for words in texts:
        if any(mark in bytes(words.buffers()[2] or b"") for mark in (b" ", b"\n", b"\r")):
            return None
        entries = compute.binary_join_element_wise(words, entries, ":")
    if is_map:
        ids = np.asarray(np.from_dlpack(texts[0].dictionary_encode().indices), np.int64)
        if compute.count_distinct(array(np.repeat(starts, sizes) + ids * total)).as_py() < total:
            return None  # a word is twice in a map
    lines = compute.binary_join(ListArray.from_arrays(array(np.append(starts, total), int32()), entries), " ")
    return "\n".join(lines.to_pylist())


def lines_of_batches(path: str, batches: Iterable[Any], first: int = 1) -> Iterator[str]:
    """Yield the lines of batches, whose first row has a number; raises as :func:`read_parquet`."""
    for number, values in enumerate(python_values(path, batches), first):
        row = rows.Row(path, number)
        if DOC in values:
            choices = values[DOC] and values[DOC][CHOICES]
            words = rows.words_of_choices(row, f"{DOC}.{CHOICES}", choices or ())
            values = {WORDS: words, LOGARITHMS: values[RESPONSE] and values[RESPONSE][LOGARITHMS]}
        for name, value in values.items():
            if isinstance(value, list) and value and isinstance(value[0], tuple):
                values[name] = dict(value)
                if len(values[name]) < len(value):
                    raise row.error("a word is twice in the map")
        yield rows.line_of(row, values)


def python_values(path: str, arrays: Iterable[Any]) -> Iterator[Any]:
    """Yield the values of arrays, or the rows of batches, of which few are Python's objects at once."""
    for array in arrays:
        for start in range(0, len(array), ROWS_OF_TEXT):
            with pyarrow_errors(path):
                yield from array.slice(start, ROWS_OF_TEXT).to_pylist()
