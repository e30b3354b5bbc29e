"""The lines of a plain file in byte ranges, which several threads, or machines, may read at once.

A range has the lines that start in it: so each line is in one range, however the ranges are cut.
"""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from functools import partial

from geval_py.errors import TooLargeError
from geval_py.reading import lines
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, end_last_line
from geval_py.reading.remote import is_remote, read_bytes
from geval_py.reading.sources import changed, naming
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    ReadAt: TypeAlias = Callable[[memoryview, int], int]  # fill a buffer from an offset on; how many bytes there were


class Range(Value):
    """The bytes from ``start`` to before ``stop``."""

    start: int
    stop: int


class RangeLines(Value):
    """The lines of a range: they stand in ``buffer`` from ``start`` to before ``stop``, each ended by LF.

    ``stored`` is where the file's bytes end that they are made of: the last line may lack its LF there, or be no
    more than carriage returns, which are no line.
    """

    buffer: bytearray
    start: int
    stop: int
    stored: int


class RangeReader:
    """Reads ranges of the lines of a plain file of ``size`` bytes, the first of which starts at ``start``.

    ``read_at`` fills a buffer from an offset on and tells how many bytes it got; it may be called by several threads
    at once.
    """

    def __init__(self, path: str, read_at: ReadAt, *, start: int, size: int) -> None:
        self.path, self._read_at = path, read_at
        self._start, self._size = start, size

    def ranges(self, size: int) -> Iterator[Range]:
        """Cut what there is into ranges of so many bytes, in order."""
        for start in range(self._start, self._size, size):
            yield Range(start=start, stop=min(start + size, self._size))

    def read(self, wanted: Range, buffer: bytearray) -> RangeLines:
        """Read the lines that start in a range into a buffer, which grows if need be; there may be none.

        Raises UnreadableFileError, also where the file is shorter than it was, and TooLargeError for a line that
        goes on for more than MOST_LINE_BYTES after the range.
        """
        # A line starts in the range where an LF stands before it: so look from one byte before the range.
        offset = wanted.start - (wanted.start > self._start)
        end = wanted.stop - 1 - offset  # the first place where an LF may stand that ends the last line
        filled = self._fill(buffer, 0, offset, end + 1 + READ_AHEAD_BYTES)
        start = 0 if offset == wanted.start else buffer.find(b"\n", 0, end) + 1
        if not start and offset < wanted.start:
            return RangeLines(buffer=buffer, start=0, stop=0, stored=0)
        searched = end
        while not (stop := buffer.find(b"\n", searched, filled) + 1):
            if filled - end > lines.MOST_LINE_BYTES:
                raise TooLargeError(path=self.path, max_bytes=lines.MOST_LINE_BYTES, what="line")
            if offset + filled == self._size:
                stop = end_last_line(buffer, start, filled)
                return RangeLines(buffer=buffer, start=start, stop=stop, stored=filled)
            searched, filled = filled, self._fill(buffer, filled, offset + filled, max(filled, READ_AHEAD_BYTES))
        return RangeLines(buffer=buffer, start=start, stop=stop, stored=stop)

    def _fill(self, buffer: bytearray, filled: int, offset: int, size: int) -> int:
        """Read so many bytes of the file, or to its end, behind those that fill a buffer; gives how many it has."""
        wanted = filled + min(size, self._size - offset)
        if len(buffer) < wanted:
            buffer.extend(bytes(wanted - len(buffer)))
        with memoryview(buffer) as view, naming(self.path):
            while filled < wanted:
                got = self._read_at(view[filled:wanted], offset)
                if not got:
                    raise changed(self.path)
                filled, offset = filled + got, offset + got
        return filled


@contextmanager
def opened_anywhere(path: str) -> Iterator[ReadAt]:
    """Open a plain file, on this machine or elsewhere, to be read from anywhere by one thread at a time."""
    if is_remote(path):
        yield partial(_read_elsewhere, path)
        return
    with naming(path):
        file = open(path, "rb", buffering=0)
    with file:
        yield partial(_read_here, file)


def _read_elsewhere(path: str, view: memoryview, offset: int) -> int:
    data = read_bytes(path, offset, offset + len(view))
    view[: len(data)] = data
    return len(data)


def _read_here(file: io.FileIO, view: memoryview, offset: int) -> int:
    file.seek(offset)
    return file.readinto(view) or 0


def rest_in_ranges(reader: LineReader) -> RangeReader | None:
    """Give what reads the lines that a reader has not read yet, of the part that it is in.

    None where they cannot be read from anywhere; they can of a plain file, on a system that has ``preadv``.
    """
    source = reader.source
    if not source.is_here or source.size is None or source.compression is not None or not hasattr(os, "preadv"):
        return None
    descriptor = source.descriptor
    return RangeReader(
        source.path,
        lambda view, offset: os.preadv(descriptor, [view], offset),
        start=reader.offset,
        size=source.size,
    )
