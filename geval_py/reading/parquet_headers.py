"""What the columns of a Parquet file unpack to, from the headers of its pages, before they are unpacked.

A few bytes may stand for a row of a billion entries, and the sizes in the footer may be false. So the headers are
read here, as the format defines them
(https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from __future__ import annotations

import os

from geval_py.errors import TooLargeError, UnreadableFileError
from geval_py.reading.lines import DEFAULT_MAX_BYTES
from geval_py.reading.parquet_footer import damaged
from geval_py.reading.thrift import BOOL, I32, read_struct
from geval_py.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import BinaryIO

    from geval_py.reading.lines import Bytes
    from geval_py.reading.parquet_footer import Chunk
    from geval_py.reading.thrift import ReadStruct, Shape, Struct

# Of the header of a page.
PAGE_TYPE, UNPACKED_SIZE, STORED_SIZE, DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 1, 2, 3, 5, 7, 8
IS_DATA, IS_DICTIONARY, IS_DATA_V2 = 0, 2, 3  # the types of pages
NUMBER_OF_VALUES, ENCODING, ENCODING_V2 = 1, 2, 4  # in the structure of a page
OF_DEFINITION, OF_REPETITION = 3, 4  # the encodings of the levels of a data page
NULLS, DEFINITION_SIZE, REPETITION_SIZE, IS_PACKED = 2, 5, 6, 7  # of a data page of version 2
_PAGE: Mapping[int, Shape] = {
    PAGE_TYPE: I32, UNPACKED_SIZE: I32, STORED_SIZE: I32,
    DATA_PAGE: {NUMBER_OF_VALUES: I32, ENCODING: I32, OF_DEFINITION: I32, OF_REPETITION: I32},
    DICTIONARY_PAGE: {NUMBER_OF_VALUES: I32, ENCODING: I32},
    DATA_PAGE_V2: {
        NUMBER_OF_VALUES: I32, NULLS: I32, ENCODING_V2: I32, DEFINITION_SIZE: I32, REPETITION_SIZE: I32,
        IS_PACKED: BOOL,
    },
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
MOST_UNPACKED_BYTES, MOST_RATIO = 1 << 28, 256  # of a row group; a larger one may not be packed more tightly
MOST_PAGE_BYTES = 1 << 28  # a page is unpacked whole
MOST_PAGES = 1 << 16  # of a column in a row group that are remembered
MOST_USUAL_BYTES, MOST_USUAL_VALUES = 1 << 26, 1 << 23  # of a page of the usual form
ROWS_AT_ONCE, BYTES_AT_ONCE = 8192, 1 << 23  # of a batch
BYTES_OF_OBJECT = 32  # of Python's, for an entry of a list
BYTES_OF_VALUE = 12  # that a value takes, beside its page: a number or code, and its place in lists
SHORT_WORD = 2 * BYTES_OF_VALUE  # bytes that a word and its number are counted for anyway
HEADER_BYTES, MOST_HEADER_BYTES, MOST_HEADER_ENTRIES = 1 << 10, 1 << 20, 1 << 10
LEAST_VALUE_BYTES = 2  # of an entry of a dictionary: a Float16; other numbers, and lengths of words, have 4 or 8


class Page(NamedTuple):
    """A page of the usual form: where it is in the file, its sizes in bytes there and unpacked, and what it holds.

    In version 2, the first bytes are not compressed: the levels of repetition and of definition, with the sizes
    ``levels``. Otherwise that is None. The rest is compressed if it ``is_packed``, as the column is.
    """

    place: int
    stored: int
    unpacked: int
    values: int
    is_dictionary: bool
    is_coded: bool
    levels: tuple[int, int] | None
    is_packed: bool


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


def is_coded(pages: Pages) -> bool:
    """Whether all words are numbers of a dictionary, one that is small enough to look at for each batch."""
    return pages.coded == {True} and pages.dictionary <= BYTES_AT_ONCE


def size_of(pages: Iterable[Pages]) -> int:
    """Count the bytes that pages take, unpacked and as arrays, before their words are copied."""
    return sum(of.values * BYTES_OF_VALUE + of.unpacked for of in pages)


def size_of_objects(values: int, text: int) -> int:
    """Compute how many bytes Python's objects for some values take, at least, of which words have so many bytes."""
    return values * BYTES_OF_OBJECT + text


class Unpacked:
    """Counts the bytes that a file unpacks to, against its limit.

    That is ``most``, by default DEFAULT_MAX_BYTES, or MOST_RATIO times the file's ``size`` if that is more.
    """

    def __init__(self, path: str, size: int, most: int | None = None) -> None:
        self._path, self.size = path, 0
        self._most = max(DEFAULT_MAX_BYTES, MOST_RATIO * size) if most is None else most

    def add(self, size: int) -> None:
        """Count more bytes; raises TooLargeError."""
        self.size += size
        if self.size > self._most:
            raise TooLargeError(path=self._path, max_bytes=self._most)


class UnpackedGroups:
    """Counts the bytes that row groups which are read together unpack to, against the sum of their limits.

    ``number`` is that of the first one, from 0 on, and ``stored`` are the bytes that their pages take in the file.
    All are counted ``of_file``, too, if that is given.
    """

    def __init__(self, path: str, number: int, stored: Sequence[int], of_file: Unpacked | None) -> None:
        self._path, self._number, self._stored, self._of_file, self.size = path, number, sum(stored), of_file, 0
        self._most = sum(max(MOST_UNPACKED_BYTES, MOST_RATIO * of_group) for of_group in stored)

    def add(self, size: int) -> None:
        """Count more bytes; raises UnreadableFileError for too many in the row groups, TooLargeError in the file."""
        self.size += size
        if self.size > self._most:
            reason = f"row group {self._number + 1} would unpack to more than {self._most} bytes, from {self._stored}"
            raise UnreadableFileError(path=self._path, reason=f"{reason}; write smaller row groups, or TSV")
        if self._of_file is not None:
            self._of_file.add(size)

    def add_text(self, values: int, text: int) -> None:
        """Count the bytes of words that stand as codes, beyond those that values count for; raises as :meth:`add`."""
        self.add(max(0, text - values * BYTES_OF_VALUE))

    def rows_at_once(self, rows: int) -> int:
        """Return how many of all rows to read at once."""
        return max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * rows // max(1, self.size)))


class ReadAhead(NamedTuple):
    """An opened file, its size, and some bytes of it that were read ahead, from the place ``start`` on."""

    file: BinaryIO
    size: int
    start: int
    data: memoryview


def bytes_at(ahead: ReadAhead, place: int, size: int) -> Bytes:
    """Return the bytes at a place, fewer at the end of the file."""
    start = place - ahead.start
    if start >= 0 and start + size <= len(ahead.data):
        return ahead.data[start : start + size]
    return read_at(ahead.file, place, size)


def pages_of(path: str, ahead: ReadAhead, column: Chunk, read: ReadStruct = read_struct) -> Pages:
    """Read the headers of the pages of a column; raises UnreadableFileError. Threads may do so at once.

    As pyarrow does, it reads pages until they have as many values as the footer says.
    """
    place, end = column.start, min(column.start + column.size, ahead.size)
    values = unpacked = in_pages = dictionary = entries = 0
    coded: set[bool] = set()
    usual: list[Page] = []
    are_usual = True
    while values < column.values:
        if place >= end:
            raise damaged(path, "a column has fewer values than the footer says")
        header, size = _header(path, ahead, place, read)
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
        unpacked, in_pages = unpacked + whole, in_pages + in_file
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
    return Pages(values, unpacked, in_pages, dictionary, entries, frozenset(coded), usual if are_usual else None)


def _usual(header: Struct, place: int) -> Page | None:
    """Return a page whose content is at a place; None if it is not of the usual form."""
    kind, levels, is_packed = header[PAGE_TYPE], None, True
    if kind not in WANTED:
        return None
    name, encoding_name = WANTED[kind]
    page = header[name]
    encoding = page.get(ENCODING if kind == IS_DICTIONARY else encoding_name)
    if kind == IS_DICTIONARY:
        is_usual = encoding in USUAL_OF_DICTIONARY
    else:
        is_usual = encoding in USUAL and page[NUMBER_OF_VALUES] > 0  # pyarrow refuses some empty pages
    if kind == IS_DATA:
        is_usual = is_usual and page.get(OF_DEFINITION) == page.get(OF_REPETITION) == RLE
    if kind == IS_DATA_V2:
        levels, is_packed = (page.get(REPETITION_SIZE, -1), page.get(DEFINITION_SIZE, -1)), page.get(IS_PACKED, True)
        are_alike = page.get(NULLS) in (0, page[NUMBER_OF_VALUES])  # none or all lists are missing
        is_usual = is_usual and are_alike
        is_usual = is_usual and min(levels) >= 0 and sum(levels) <= min(header[STORED_SIZE], header[UNPACKED_SIZE])
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
        levels=levels,
        is_packed=is_packed,
    )


def read_at(file: BinaryIO, place: int, size: int) -> bytes:
    """Read the bytes at a place, fewer at the end of the file. Where there is pread, threads may do so at once."""
    if hasattr(os, "pread"):
        return os.pread(file.fileno(), size, place)
    file.seek(place)
    return file.read(size)


def _header(path: str, ahead: ReadAhead, place: int, read: ReadStruct) -> tuple[Struct, int]:
    """Read the header of the page at a place, and return it with its size."""
    size = HEADER_BYTES
    while True:
        data = bytes_at(ahead, place, size)
        try:
            header, of_header = read(data, _PAGE, MOST_HEADER_ENTRIES)
            _check(header)
            return header, of_header
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
