"""Structures in Thrift's compact protocol, of which Parquet's footer and the headers of its pages are; read strictly.

The native twin is thrift.hpp.

The protocol: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from geval_py.reading.lines import Bytes

    # What a field holds: BOOL, a number (I16, I32, I64) or TEXT, a list of one shape, or some fields of a structure.
    Shape: TypeAlias = "int | list[Shape] | Mapping[int, Shape]"
    Struct: TypeAlias = dict[int, Any]
    # Reads the structure at the beginning of some bytes, with so many entries of lists; returns its size, too.
    ReadStruct: TypeAlias = Callable[[Bytes, Mapping[int, Shape], int], tuple[Struct, int]]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, TEXT, LIST, SET, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12  # kinds
BOOL = TRUE  # as a shape
BITS = {I16: 16, I32: 32, I64: 64}
SIZES = {BYTE: 1, DOUBLE: 8}
LONG_LIST = 15  # a size that stands in a number of its own
MOST_NESTED = 16
MOST_FIELDS = (1 << 15) - 1


class TooManyError(ValueError):
    """Lists have more entries than are read."""


class Reader:
    """Reads a structure at the beginning of some bytes, with ``most`` entries of lists in all.

    A field of the shape that is there twice, of another kind than it says, or with a number that is too large for its
    kind is an error, since readers differ in what they make of it. The shapes name every list that the format has:
    other readers ignore the kind that a list says its entries have. ``place`` is where the reader is.
    """

    def __init__(self, data: Bytes, most: int) -> None:
        self._data, self.place, self._most = data, 0, most

    def struct(self, shape: Mapping[int, Shape], depth: int = 0) -> Struct:
        """Read a structure: the fields in the shape by their numbers; a text is bytes.

        Raises IndexError at the end of the data, TooManyError, and ValueError for what is not in the protocol.
        """
        found: Struct = {}
        number = 0
        if depth > MOST_NESTED:
            raise ValueError
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._number(16)
            if not 0 < number <= MOST_FIELDS:
                raise ValueError
            kind, wanted = head & 15, shape.get(number)
            if wanted is None:
                if kind not in (TRUE, FALSE):  # which have no bytes of their own
                    self._skip(kind, depth)
                continue
            if number in found:
                raise ValueError
            if kind in BITS and kind == wanted:  # most fields
                found[number] = self._number(BITS[kind])
            elif wanted == BOOL and kind in (TRUE, FALSE):
                found[number] = kind == TRUE
            elif kind == _kind(wanted):
                found[number] = self._value(wanted, depth)
            else:
                raise ValueError
        return found

    def _value(self, shape: Shape, depth: int) -> Any:
        if isinstance(shape, list):
            count, kind = self._list()
            if count and kind != _kind(shape[0]):
                raise ValueError
            return [self._value(shape[0], depth + 1) for _ in range(count)]
        if shape == TEXT:
            size = self._jump(self._unsigned())
            return bytes(self._data[self.place - size : self.place])
        if isinstance(shape, int):
            return self._number(BITS[shape])
        return self.struct(shape, depth + 1)

    def _list(self) -> tuple[int, int]:
        """Read the beginning of a list: the number of its entries, and their kind."""
        head = self._byte()
        count = self._unsigned() if head >> 4 == LONG_LIST else head >> 4
        self._most -= count
        if self._most < 0:
            raise TooManyError
        return count, head & 15

    def _skip(self, kind: int, depth: int) -> None:
        """Skip a value."""
        if kind in BITS:
            self._unsigned()
        elif kind == TEXT:
            self._jump(self._unsigned())
        elif kind in SIZES:
            self._jump(SIZES[kind])
        elif kind in (LIST, SET):
            count, of = self._list()
            if depth > MOST_NESTED:
                raise ValueError
            for _ in range(count):
                self._skip(BYTE if of in (TRUE, FALSE) else of, depth + 1)
        elif kind == STRUCT:
            self.struct({}, depth + 1)
        else:
            raise ValueError

    def _byte(self) -> int:
        byte = self._data[self.place]
        self.place += 1
        return byte

    def _unsigned(self) -> int:
        value = self._byte()
        if value < 128:
            return value
        value &= 127
        for shift in range(7, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError

    def _number(self, bits: int) -> int:
        value = self._unsigned()
        if value >> bits:
            raise ValueError
        return value >> 1 ^ -(value & 1)

    def _jump(self, size: int) -> int:
        self.place += size
        if self.place > len(self._data):
            raise IndexError
        return size


def _kind(shape: Shape) -> int:
    return LIST if isinstance(shape, list) else shape if isinstance(shape, int) else STRUCT


def read_struct(data: Bytes, shape: Mapping[int, Shape], most: int) -> tuple[Struct, int]:
    """Read the structure at the beginning of some bytes, with at most so many entries of lists; see :class:`Reader`.

    Returns its size, too. Raises as :meth:`Reader.struct`.
    """
    reader = Reader(data, most)
    return reader.struct(shape), reader.place
