"""What the columns of a Parquet file unpack to, from its footer and the headers of its pages, before it is unpacked.

A few bytes may stand for a row of a billion entries, and the sizes in the footer may be false. pyarrow, when it is
asked for the place of a column, ends the process if the footer is damaged in some ways. So both are read here, as the
format defines them (https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from __future__ import annotations

import os

from geval_py.errors import UnreadableFileError
from geval_py.reading.thrift import I32, I64, TEXT, Reader, TooManyError
from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from geval_py.reading.thrift import Shape, Struct

# The fields of the footer that are asked for here, and all its lists, so that the kinds of their entries are checked.
SCHEMA, ROW_GROUPS, KEY_VALUE_METADATA, COLUMN_ORDERS = 2, 4, 5, 7
NAME, CHILDREN = 4, 5  # of an element of the schema
COLUMNS, ROWS, SORTING_COLUMNS = 1, 3, 4  # of a row group
COLUMN, CRYPTO_METADATA = 3, 8  # of a column in it
CODEC, VALUES, STORED, DATA_PAGES, DICTIONARY = 4, 5, 7, 9, 11  # of the metadata of that, and its lists:
ENCODINGS, PATH, COLUMN_KEY_VALUES, ENCODING_STATS, SIZE_STATISTICS, GEOSPATIAL_STATISTICS = 2, 3, 8, 13, 16, 17
_COLUMN: Shape = {
    CODEC: I32, VALUES: I64, STORED: I64, DATA_PAGES: I64, DICTIONARY: I64, ENCODINGS: [I32], PATH: [TEXT],
    COLUMN_KEY_VALUES: [{}], ENCODING_STATS: [{}], SIZE_STATISTICS: {2: [I64], 3: [I64]},
    GEOSPATIAL_STATISTICS: {2: [I32]},
}  # fmt: skip
_CHUNK: Shape = {COLUMN: _COLUMN, CRYPTO_METADATA: {2: {1: [TEXT]}}}
_FOOTER: Mapping[int, Shape] = {
    SCHEMA: [{NAME: TEXT, CHILDREN: I32}], KEY_VALUE_METADATA: [{}], COLUMN_ORDERS: [{}],
    ROW_GROUPS: [{COLUMNS: [_CHUNK], ROWS: I64, SORTING_COLUMNS: [{}]}],
}  # fmt: skip

# Of the header of a page.
PAGE_TYPE, UNPACKED_SIZE, STORED_SIZE, DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 1, 2, 3, 5, 7, 8
IS_DATA, IS_DICTIONARY, IS_DATA_V2 = 0, 2, 3  # the types of pages
NUMBER_OF_VALUES, ENCODING, ENCODING_V2 = 1, 2, 4  # in the structure of a page
OF_DEFINITION, OF_REPETITION = 3, 4  # the encodings of the levels of a data page
_PAGE: Mapping[int, Shape] = {
    PAGE_TYPE: I32, UNPACKED_SIZE: I32, STORED_SIZE: I32,
    DATA_PAGE: {NUMBER_OF_VALUES: I32, ENCODING: I32, OF_DEFINITION: I32, OF_REPETITION: I32},
    DICTIONARY_PAGE: {NUMBER_OF_VALUES: I32, ENCODING: I32},
    DATA_PAGE_V2: {NUMBER_OF_VALUES: I32, ENCODING_V2: I32},
}  # fmt: skip

PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8  # encodings
OF_DICTIONARY = {PLAIN_DICTIONARY, RLE_DICTIONARY}
USUAL, USUAL_OF_DICTIONARY = {PLAIN, *OF_DICTIONARY}, {PLAIN, PLAIN_DICTIONARY}  # of data pages, and of dictionaries
WANTED = {  # the structure of a page, and a number in it that has to be there
    IS_DATA: (DATA_PAGE, ENCODING),
    IS_DICTIONARY: (DICTIONARY_PAGE, NUMBER_OF_VALUES),
    IS_DATA_V2: (DATA_PAGE_V2, ENCODING_V2),
}
NOT_READ = {
    6: "DELTA_LENGTH_BYTE_ARRAY",  # a few bytes may stand for any number of lengths, whatever the header says
    7: "DELTA_BYTE_ARRAY",  # each word begins as the one before: a page may unpack to its size squared
}
MAGIC, ARROW_SCHEMA = b"PAR1", b"ARROW:schema"
MOST_FOOTER_BYTES = 1 << 24
MOST_ENTRIES = 1 << 21  # of all lists of the footer
MOST_COLUMNS = 1 << 18  # of all row groups; pyarrow takes a thousand bytes for each
MOST_DEPTH, MOST_PATH_BYTES = 64, 1 << 24  # of the schema; pyarrow writes the path of each column with all its names
MOST_PAGE_BYTES = 1 << 28  # a page is unpacked whole
MOST_PAGES = 1 << 16  # of a column in a row group that are remembered
MOST_USUAL_BYTES, MOST_USUAL_VALUES = 1 << 26, 1 << 23  # of a page of the usual form
HEADER_BYTES, MOST_HEADER_BYTES = 1 << 10, 1 << 20
LEAST_VALUE_BYTES = 2  # of an entry of a dictionary: a Float16; other numbers, and lengths of words, have 4 or 8


class Chunk(NamedTuple):
    """A column in a row group: its codec and number of values, and the place and the size in bytes of its pages."""

    codec: int
    values: int
    start: int
    size: int


class Group(NamedTuple):
    """A row group: its number of rows, and its columns."""

    rows: int
    columns: tuple[Chunk, ...]


class Page(NamedTuple):
    """A page of the usual form: where it is in the file, its sizes in bytes there and unpacked, and what it holds."""

    place: int
    stored: int
    unpacked: int
    values: int
    is_dictionary: bool
    is_coded: bool


class Pages(NamedTuple):
    """The pages of a column in a row group: how many values they have, and their sizes in bytes.

    ``dictionary`` is the size of the dictionary, and ``entries`` its number of values, 0 without one; ``coded`` tells
    for each kind of data pages that are there whether it refers to the dictionary. ``usual`` are the pages
    themselves, if all are of the usual form (:mod:`geval_py.reading.parquet_lists`) and no more than MOST_PAGES.
    """

    values: int
    unpacked: int
    stored: int
    dictionary: int
    entries: int
    coded: frozenset[bool]
    usual: list[Page] | None


class Footer(NamedTuple):
    """The row groups of a file, its size, and the bytes of the footer."""

    groups: list[Group]
    size: int
    data: bytes


def read_footer(path: str, file: BinaryIO) -> Footer:
    """Read the footer of a file; raises UnreadableFileError."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    ending = file.read(8)
    length = int.from_bytes(ending[:4], "little")
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
        footer = Reader(data, most=MOST_ENTRIES).struct(_FOOTER)
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
    return Footer(groups, size, data)


def without_types(footer: bytes) -> bytes:
    """Return a file of a footer alone, for pyarrow, without the types that Arrow's writers note in it.

    They only change the form of columns. For a type with a dictionary, pyarrow adds the words to one of its own, and
    leaves out one that is there twice, so that the numbers of others are false.
    """
    renamed = footer.replace(ARROW_SCHEMA, ARROW_SCHEMA.lower())
    return MAGIC + renamed + len(renamed).to_bytes(4, "little") + MAGIC


def _check_schema(elements: list[Struct]) -> None:
    """Raise ValueError for a schema that is nested too deeply, or whose columns have too long paths."""
    nested: list[list[int]] = []  # the groups around an element: how many children follow, and the size of the path
    total = 0
    for element in elements:
        size, children = element[NAME], element.get(CHILDREN, 0)
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
    """Return a row group; raises ValueError for negative numbers."""
    if group[ROWS] < 0:
        raise ValueError
    return Group(rows=group[ROWS], columns=tuple(_chunk(chunk[COLUMN]) for chunk in group[COLUMNS]))


def _chunk(column: Struct) -> Chunk:
    """Return where a column is, as pyarrow reckons it; raises ValueError for negative numbers."""
    start = column[DATA_PAGES]
    if 0 < column.get(DICTIONARY, 0) < start:
        start = column[DICTIONARY]
    if min(column[VALUES], start, column[STORED]) < 0:
        raise ValueError
    return Chunk(codec=column[CODEC], values=column[VALUES], start=start, size=column[STORED])


def pages_of(path: str, file: BinaryIO, column: Chunk) -> Pages:
    """Read the headers of the pages of a column; raises UnreadableFileError. Threads may do so at once.

    As pyarrow does, it reads pages until they have as many values as the footer says.
    """
    place, end = column.start, min(column.start + column.size, os.fstat(file.fileno()).st_size)
    values = unpacked = stored = dictionary = entries = 0
    coded: set[bool] = set()
    usual: list[Page] = []
    are_usual = True
    while values < column.values:
        if place >= end:
            raise damaged(path, "a column has fewer values than the footer says")
        header, size = _header(path, file, place)
        kind, of_page, in_file = header[PAGE_TYPE], header[UNPACKED_SIZE], header[STORED_SIZE]
        usual_page = _usual(header, place + size) if are_usual and len(usual) < MOST_PAGES else None
        if usual_page is None or (usual_page.is_dictionary and usual):
            are_usual = False
        else:
            usual.append(usual_page)
        place += size + in_file
        if place > end:
            raise damaged(path, "a page ends behind its column")
        if of_page > MOST_PAGE_BYTES:
            reason = f"a page unpacks to {of_page} bytes, more than {MOST_PAGE_BYTES}; write smaller pages"
            raise UnreadableFileError(path=path, reason=reason)
        whole = max(of_page, in_file)  # one that is not compressed may have a false size
        unpacked, stored = unpacked + whole, stored + in_file
        if kind in (IS_DATA, IS_DATA_V2):
            page = header[DATA_PAGE if kind == IS_DATA else DATA_PAGE_V2]
            values += page[NUMBER_OF_VALUES]
            encoding = page[ENCODING if kind == IS_DATA else ENCODING_V2]
            if encoding in NOT_READ:
                reason = f"columns in the encoding {NOT_READ[encoding]} are not read; write them in PLAIN"
                raise UnreadableFileError(path=path, reason=reason)
            if encoding in OF_DICTIONARY and False in coded:
                raise damaged(path, "a page with a dictionary follows one without")
            coded.add(encoding in OF_DICTIONARY)
        elif kind == IS_DICTIONARY:
            if dictionary or coded:
                raise damaged(path, "a dictionary is not the first page")
            dictionary, entries = whole, header[DICTIONARY_PAGE][NUMBER_OF_VALUES]
            if LEAST_VALUE_BYTES * entries > of_page:
                raise damaged(path, "a dictionary has more values than bytes for them")
    return Pages(values, unpacked, stored, dictionary, entries, frozenset(coded), usual if are_usual else None)


def _usual(header: Struct, place: int) -> Page | None:
    """Return a page whose content is at a place; None if it is not of the usual form."""
    kind = header[PAGE_TYPE]
    if kind not in (IS_DATA, IS_DICTIONARY):
        return None
    page = header[DATA_PAGE if kind == IS_DATA else DICTIONARY_PAGE]
    encoding = page.get(ENCODING)
    if kind == IS_DATA:
        is_usual = encoding in USUAL and page.get(OF_DEFINITION) == page.get(OF_REPETITION) == RLE
        is_usual = is_usual and page[NUMBER_OF_VALUES] > 0  # pyarrow refuses some empty pages
    else:
        is_usual = encoding in USUAL_OF_DICTIONARY
    is_large = max(header[STORED_SIZE], header[UNPACKED_SIZE]) > MOST_USUAL_BYTES
    if not is_usual or is_large or page[NUMBER_OF_VALUES] > MOST_USUAL_VALUES:
        return None
    return Page(
        place=place,
        stored=header[STORED_SIZE],
        unpacked=header[UNPACKED_SIZE],
        values=page[NUMBER_OF_VALUES],
        is_dictionary=kind == IS_DICTIONARY,
        is_coded=encoding in OF_DICTIONARY,
    )


def read_at(file: BinaryIO, place: int, size: int) -> bytes:
    """Read the bytes at a place, fewer at the end of the file. Where there is pread, threads may do so at once."""
    if hasattr(os, "pread"):
        return os.pread(file.fileno(), size, place)
    file.seek(place)
    return file.read(size)


def damaged(path: str, reason: str) -> UnreadableFileError:
    """Return the error for a file that is not as Parquet's format says."""
    return UnreadableFileError(path=path, reason=f"it is not well-formed Parquet: {reason}")


def _header(path: str, file: BinaryIO, place: int) -> tuple[Struct, int]:
    """Read the header of the page at a place, and return it with its size."""
    size = HEADER_BYTES
    while True:
        data = read_at(file, place, size)
        reader = Reader(data)
        try:
            header = reader.struct(_PAGE)
            _check(header)
            return header, reader.place
        except IndexError:
            if size >= MOST_HEADER_BYTES or len(data) < size:
                raise damaged(path, "the header of a page does not end") from None
            size *= 32
        except (KeyError, ValueError):
            raise damaged(path, "the header of a page cannot be read") from None


def _check(header: Struct) -> None:
    """Raise KeyError where a number that is wanted is missing, and ValueError for a negative one."""
    wanted = WANTED.get(header[PAGE_TYPE])
    numbers = [header[UNPACKED_SIZE], header[STORED_SIZE]]
    if wanted is not None:
        numbers += [header[wanted[0]][NUMBER_OF_VALUES], header[wanted[0]][wanted[1]]]
    if min(numbers) < 0:
        raise ValueError
