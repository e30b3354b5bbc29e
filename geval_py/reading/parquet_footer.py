"""The footer of a Parquet file: its schema, and where the columns of its row groups are.

pyarrow, when it is asked for the place of a column, ends the process if the footer is damaged in some ways. So it is
read here first, strictly, as the format defines it
(https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from geval_py.errors import UnreadableFileError
from geval_py.reading.compression import compression_by_ending
from geval_py.reading.sources import is_regular, is_remote, unreadable
from geval_py.reading.thrift import I32, I64, TEXT, TooManyError, read_struct
from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from geval_py.reading.thrift import ReadStruct, Shape, Struct

# The fields of the footer that are asked for here, and all its lists, so that the kinds of their entries are checked.
VERSION, SCHEMA, ALL_ROWS, ROW_GROUPS, KEY_VALUE_METADATA, CREATED_BY, COLUMN_ORDERS = 1, 2, 3, 4, 5, 6, 7
TYPE, REPETITION, NAME, CHILDREN, CONVERTED_TYPE, LOGICAL_TYPE = 1, 3, 4, 5, 6, 10  # of an element of the schema
COLUMNS, ALL_UNPACKED, ROWS, SORTING_COLUMNS = 1, 2, 3, 4  # of a row group
FILE_PATH, FILE_OFFSET, COLUMN, CRYPTO_METADATA, ENCRYPTED = 1, 2, 3, 8, 9  # of a column in it
COLUMN_TYPE, CODEC, VALUES, UNPACKED, STORED = 1, 4, 5, 6, 7  # of the metadata of that
DATA_PAGES, DICTIONARY = 9, 11  # where they begin
ENCODINGS, PATH, COLUMN_KEY_VALUES, ENCODING_STATS = 2, 3, 8, 13  # its lists
SIZE_STATISTICS, GEOSPATIAL_STATISTICS = 16, 17  # have lists
OF_TEXT, OF_LIST = 1, 3  # the logical types that are known here
_COLUMN: Shape = {
    COLUMN_TYPE: I32, CODEC: I32, VALUES: I64, UNPACKED: I64, STORED: I64, DATA_PAGES: I64, DICTIONARY: I64,
    ENCODINGS: [I32], PATH: [TEXT], COLUMN_KEY_VALUES: [{}], ENCODING_STATS: [{}],
    SIZE_STATISTICS: {2: [I64], 3: [I64]}, GEOSPATIAL_STATISTICS: {2: [I32]},
}  # fmt: skip
_CHUNK: Shape = {
    FILE_PATH: TEXT, FILE_OFFSET: I64, COLUMN: _COLUMN, CRYPTO_METADATA: {2: {1: [TEXT]}}, ENCRYPTED: TEXT,
}  # fmt: skip
_ELEMENT: Shape = {
    TYPE: I32, REPETITION: I32, NAME: TEXT, CHILDREN: I32, CONVERTED_TYPE: I32,
    LOGICAL_TYPE: {OF_TEXT: {}, OF_LIST: {}},
}  # fmt: skip
_FOOTER: Mapping[int, Shape] = {
    VERSION: I32, SCHEMA: [_ELEMENT], ALL_ROWS: I64, KEY_VALUE_METADATA: [{}], CREATED_BY: TEXT,
    COLUMN_ORDERS: [{}],
    ROW_GROUPS: [{COLUMNS: [_CHUNK], ALL_UNPACKED: I64, ROWS: I64, SORTING_COLUMNS: [{}]}],
}  # fmt: skip
# The fields that have to be there.
_OF_FOOTER = {VERSION, SCHEMA, ALL_ROWS, ROW_GROUPS}
_OF_GROUP = {COLUMNS, ALL_UNPACKED, ROWS}
_OF_CHUNK = {FILE_OFFSET, COLUMN}
_OF_COLUMN = {COLUMN_TYPE, ENCODINGS, PATH, CODEC, VALUES, UNPACKED, STORED, DATA_PAGES}

MAGIC, ARROW_SCHEMA = b"PAR1", b"ARROW:schema"
MOST_FOOTER_BYTES = 1 << 24
MOST_ENTRIES = 1 << 21  # of all lists of the footer
MOST_COLUMNS = 1 << 18  # of all row groups; pyarrow takes a thousand bytes for each
MOST_DEPTH, MOST_PATH_BYTES = 64, 1 << 24  # of the schema; pyarrow writes the path of each column with all its names


class Chunk(NamedTuple):
    """A column in a row group: its codec and number of values, and the place and the size in bytes of its pages.

    ``is_readable`` is whether they are in this file, and not encrypted.
    """

    codec: int
    values: int
    start: int
    size: int
    is_readable: bool


class Group(NamedTuple):
    """A row group: its number of rows, and its columns."""

    rows: int
    columns: tuple[Chunk, ...]


class Footer(NamedTuple):
    """What wrote a file, its schema (a list of structures), its row groups, its size, and the bytes of the footer."""

    created_by: bytes
    schema: list[Struct]
    groups: list[Group]
    size: int
    data: bytes


@contextmanager
def opened_file(path: str) -> Iterator[BinaryIO]:
    """Open a Parquet file; raises UnreadableFileError for what is no file on this machine, or cannot be read."""
    if not is_regular(path) or is_remote(path):
        raise UnreadableFileError(path=path, reason="Parquet is read from one file on this machine")
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise unreadable(path, error) from error


def read_footer(path: str, file: BinaryIO, read: ReadStruct = read_struct) -> Footer:
    """Read the footer of a file; raises UnreadableFileError."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    ending = file.read(8)
    length = int.from_bytes(ending[:4], "little")
    if ending[4:] != MAGIC and compression_by_ending(path) is not None:
        raise UnreadableFileError(path=path, reason="Parquet is compressed inside: unpack it, and name it .parquet")
    if ending[4:] != MAGIC:
        raise damaged(path, f"it does not end with {MAGIC.decode()}")
    if length + 12 > size:
        raise damaged(path, "its beginning is missing")
    if length > MOST_FOOTER_BYTES:
        reason = f"its footer has {length} bytes, more than {MOST_FOOTER_BYTES}; write larger row groups"
        raise UnreadableFileError(path=path, reason=reason)
    file.seek(size - 8 - length)
    data = file.read(length)
    try:
        footer, _ = read(data, _FOOTER, MOST_ENTRIES)
        _check_fields(footer, _OF_FOOTER)
        _check_schema(footer[SCHEMA])
        groups = [_group(group) for group in footer[ROW_GROUPS]]
    except TooManyError:
        reason = f"its footer has more than {MOST_ENTRIES} entries; write larger row groups"
        raise UnreadableFileError(path=path, reason=reason) from None
    except (IndexError, KeyError, ValueError):
        raise damaged(path, "its footer cannot be read") from None
    if sum(len(group.columns) for group in groups) > MOST_COLUMNS:
        reason = f"its row groups have more than {MOST_COLUMNS} columns in all; write larger row groups"
        raise UnreadableFileError(path=path, reason=reason)
    if sum(column.size for group in groups for column in group.columns) > size - length:
        raise damaged(path, "its columns overlap")  # a few bytes could be read a hundred thousand times
    return Footer(footer.get(CREATED_BY, b""), footer[SCHEMA], groups, size, data)


def without_types(footer: bytes) -> bytes:
    """Return a file of a footer alone, for pyarrow, without the types that Arrow's writers note in it.

    They only change the form of columns. For a type with a dictionary, pyarrow adds the words to one of its own, and
    leaves out one that is there twice, so that the numbers of others are false.
    """
    renamed = footer.replace(ARROW_SCHEMA, ARROW_SCHEMA.lower())
    return MAGIC + renamed + len(renamed).to_bytes(4, "little") + MAGIC


def _check_fields(struct: Struct, wanted: set[int]) -> None:
    if not wanted <= struct.keys():
        raise ValueError


def _check_schema(elements: list[Struct]) -> None:
    """Raise ValueError for a schema that is nested too deeply, or whose columns have too long paths."""
    nested: list[list[int]] = []  # the groups around an element: how many children follow, and the size of the path
    total = 0
    for element in elements:
        size, children = len(element[NAME]), element.get(CHILDREN, 0)
        if nested:
            size += nested[-1][1] + 1
            nested[-1][0] -= 1
        total += size
        if children:
            nested.append([children, size])
        while nested and not nested[-1][0]:
            nested.pop()
        if children < 0 or len(nested) > MOST_DEPTH or total > MOST_PATH_BYTES:
            raise ValueError


def _group(group: Struct) -> Group:
    """Return a row group; raises ValueError for negative numbers and missing fields."""
    _check_fields(group, _OF_GROUP)
    if group[ROWS] < 0:
        raise ValueError
    return Group(rows=group[ROWS], columns=tuple(map(_chunk, group[COLUMNS])))


def _chunk(chunk: Struct) -> Chunk:
    """Return where a column is, as pyarrow reckons it; raises ValueError for negative numbers and missing fields."""
    _check_fields(chunk, _OF_CHUNK)
    column = chunk[COLUMN]
    _check_fields(column, _OF_COLUMN)
    start = column[DATA_PAGES]
    if 0 < column.get(DICTIONARY, 0) < start:
        start = column[DICTIONARY]
    if min(column[VALUES], start, column[STORED]) < 0:
        raise ValueError
    return Chunk(
        codec=column[CODEC],
        values=column[VALUES],
        start=start,
        size=column[STORED],
        is_readable=not {FILE_PATH, CRYPTO_METADATA, ENCRYPTED} & chunk.keys(),
    )


def damaged(path: str, reason: str) -> UnreadableFileError:
    """Return the error for a file that is not as Parquet's format says."""
    return UnreadableFileError(path=path, reason=f"it is not well-formed Parquet: {reason}")
