"""What the columns of a Parquet file unpack to, from the headers of their pages, before anything is unpacked.

A few bytes may stand for a row of a billion entries, and the sizes in the file's footer may be false. So the headers
are read, without the pages: Thrift structures in the compact protocol, as the format defines them
(https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO

from geval_py.errors import UnreadableFileError
from geval_py.values import NamedTuple

if TYPE_CHECKING:
    from typing import TypeAlias

    Struct: TypeAlias = dict[int, Any]

PAGE_TYPE, UNPACKED_SIZE, STORED_SIZE, DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 1, 2, 3, 5, 7, 8  # in a header
IS_DATA, IS_DICTIONARY, IS_DATA_V2 = 0, 2, 3  # the types of pages
NUMBER_OF_VALUES, ENCODING, ENCODING_V2 = 1, 2, 4  # in the struct of a page
OF_DICTIONARY = {2, 8}  # PLAIN_DICTIONARY, RLE_DICTIONARY
DELTA_BYTE_ARRAY = 7  # each word is the beginning of the one before and more: a page may unpack to its size squared
HEADER_BYTES, MOST_HEADER_BYTES = 1 << 10, 1 << 20
LEAST_VALUE_BYTES = 2  # of an entry of a dictionary: a Float16; other numbers, and lengths of words, have 4 or 8
MOST_NESTED = 8


class Pages(NamedTuple):
    """The pages of a column in a row group: how many values they have, and their sizes in bytes.

    ``dictionary`` is the size of the dictionary, 0 without one; ``coded`` tells for each kind of data pages that are
    there whether it refers to the dictionary.
    """

    values: int
    unpacked: int
    stored: int
    dictionary: int
    coded: frozenset[bool]


def pages_of(path: str, file: BinaryIO, column: Any) -> Pages:
    """Read the headers of the pages of a column in a row group, as its metadata place it; raises UnreadableFileError.

    As pyarrow does, it reads pages until they have as many values as the metadata say.
    """
    start = column.data_page_offset
    if column.has_dictionary_page and 0 < (column.dictionary_page_offset or 0) < start:
        start = column.dictionary_page_offset
    place, end = start, min(start + column.total_compressed_size, file.seek(0, os.SEEK_END))
    values = unpacked = stored = dictionary = 0
    coded: set[bool] = set()
    while values < column.num_values and place < end:
        header, size = _header(path, file, place)
        kind = _number(path, header, PAGE_TYPE)
        of_page, in_file = _number(path, header, UNPACKED_SIZE), _number(path, header, STORED_SIZE)
        if of_page < 0 or in_file < 0:
            raise damaged(path, "a page has no size")
        place += size + in_file
        if place > end:
            raise damaged(path, "a page ends behind its column")
        unpacked, stored = unpacked + of_page, stored + in_file
        if kind in (IS_DATA, IS_DATA_V2):
            page = _struct(path, header, DATA_PAGE if kind == IS_DATA else DATA_PAGE_V2)
            values += max(0, _number(path, page, NUMBER_OF_VALUES))
            encoding = _number(path, page, ENCODING if kind == IS_DATA else ENCODING_V2)
            if encoding == DELTA_BYTE_ARRAY:
                raise damaged(path, "the encoding DELTA_BYTE_ARRAY is not read")
            coded.add(encoding in OF_DICTIONARY)
        elif kind == IS_DICTIONARY:
            dictionary = max(dictionary, of_page)
            if LEAST_VALUE_BYTES * _number(path, _struct(path, header, DICTIONARY_PAGE), NUMBER_OF_VALUES) > of_page:
                raise damaged(path, "a dictionary has more values than bytes for them")
    return Pages(values=values, unpacked=unpacked, stored=stored, dictionary=dictionary, coded=frozenset(coded))


def damaged(path: str, reason: str) -> UnreadableFileError:
    """Return the error for a file that is not as Parquet's format says."""
    return UnreadableFileError(path=path, reason=f"it is not well-formed Parquet: {reason}")


def _number(path: str, struct: Struct, key: int) -> int:
    """Return a whole number of a structure, -1 for none; raises UnreadableFileError for anything else."""
    value = struct.get(key, -1)
    if type(value) is not int:
        raise damaged(path, "the header of a page has no number where one is wanted")
    return value


def _struct(path: str, struct: Struct, key: int) -> Struct:
    """Return a structure in another, an empty one for none; raises UnreadableFileError for anything else."""
    value = struct.get(key, {})
    if not isinstance(value, dict):
        raise damaged(path, "the header of a page has no structure where one is wanted")
    return value


def _header(path: str, file: BinaryIO, place: int) -> tuple[Struct, int]:
    """Read the header of the page at a place, and return it with its size."""
    size = HEADER_BYTES
    while True:
        file.seek(place)
        data = file.read(size)
        reader = _Compact(data)
        try:
            return reader.struct(), reader.place
        except IndexError:
            if size >= MOST_HEADER_BYTES or len(data) < size:
                raise damaged(path, "the header of a page does not end") from None
            size *= 32
        except ValueError:
            raise damaged(path, "the header of a page cannot be read") from None


class _Compact:
    """Reads a structure in Thrift's compact protocol: whole numbers, and structures of them; others are skipped.

    Raises IndexError at the end of the data, and ValueError for what is not in the protocol.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def struct(self, depth: int = 0) -> Struct:
        found: Struct = {}
        number = 0
        if depth > MOST_NESTED:
            raise ValueError
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            found[number] = self._value(head & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # true, false
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._skip(8)
        if kind == 8:  # bytes
            return self._skip(self._unsigned())
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError  # a list or a map, which no page has

    def _byte(self) -> int:
        byte = self._data[self.place]
        self.place += 1
        return byte

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _skip(self, size: int) -> None:
        self.place += size
        if self.place > len(self._data):
            raise IndexError
