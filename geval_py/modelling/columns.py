"""Columns of numbers that need not fit into memory: appended, and read a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DEFAULT_MEMORY = 1 << 31
MIN_MEMORY = 1 << 28
MAX_ROWS = 1 << 20  # more at a time are not faster
MAX_SPOOLED = 1 << 20  # bytes of a column that stay in memory


class Sizes(NamedTuple):
    """How much is in memory at a time, and the ``folder`` for the rest (None: the temporary one).

    ``tokens`` of a chunk of the text, ``rows`` of a block, and ``picked``: the rows that are picked from at a time.
    """

    tokens: int
    rows: int
    picked: int
    folder: str | None = None

    @classmethod
    def of_memory(cls, memory: int, folder: str | None = None) -> Sizes:
        """Return the sizes for so many bytes, at least MIN_MEMORY: half of that is for the rest of the process.

        A token takes up to 112 bytes while it is sorted, and a row that is picked from up to 24.
        """
        left = memory - MIN_MEMORY // 2
        return cls(tokens=left // 112, rows=min(left // 256, MAX_ROWS), picked=left // 32, folder=folder)

    def column(self, kind: type[np.generic]) -> NumberColumn:
        """Return a new column."""
        return NumberColumn(kind, self.folder)


class NumberColumn:
    """Numbers of one type, in memory at first, then in a temporary file, which goes however the process ends."""

    def __init__(self, kind: type[np.generic], folder: str | None = None) -> None:
        self._kind = np.dtype(kind)
        self._file = SpooledTemporaryFile(MAX_SPOOLED, dir=folder)
        self._length = 0

    def __del__(self) -> None:
        if "_file" in vars(self):  # it could be made
            self._file.close()

    def __len__(self) -> int:
        return self._length

    def append(self, values: Array, start: int | None = None) -> None:
        """Write numbers behind the others, or from a row on; rows in front of that may be written later."""
        start = self._length if start is None else start
        self._file.seek(start * self._kind.itemsize)
        self._file.write(np.ascontiguousarray(values, self._kind).data)
        self._length = max(self._length, start + len(values))

    def read(self, start: int = 0, stop: int | None = None) -> Any:
        """Return the rows from ``start`` to before ``stop``, by default all."""
        stop = self._length if stop is None else min(stop, self._length)
        values = np.empty(max(stop - start, 0), self._kind)
        self._file.seek(start * self._kind.itemsize)
        self._file.readinto(values.data)
        return values

    def blocks(self, size: int) -> Iterator[Array]:
        """Yield all rows, so many at a time; if there is none, an empty block."""
        for start in range(0, max(len(self), 1), size):
            yield self.read(start, start + size)

    def pick(self, rows: Array, size: int) -> Array:
        """Return the numbers of some rows in any order, looked up in parts of a size."""
        picked = np.empty(len(rows), self._kind)
        for start in range(0, len(self), size):
            part = self.read(start, start + size)
            inside = np.flatnonzero((rows >= start) & (rows < start + len(part)))
            picked[inside] = part[rows[inside] - start]
        return picked
