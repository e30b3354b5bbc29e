"""Bytes of an archive, read for a library that trusts its headers: what a header may claim is bounded here."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO

from geval_py.board.intake.budget import Budget
from geval_py.board.intake.members import Readable
from geval_py.board.values import RejectedError

STEP = 1 << 16
REMEMBERED = 1 << 10  # last bytes that may be read again


class Forward:
    """A stream that is read forwards, with a place in it; a library may go back by a few bytes, and skip.

    ``headers_left`` bounds what may still be read, None for no bound: a reader of archives reads a header whole,
    whatever length it claims.
    """

    def __init__(self, raw: Readable, name: str, budget: Budget) -> None:
        self._raw, self._name, self._budget = raw, name, budget
        self._place = 0  # of what is read next by the caller
        self._end = 0  # of what was read of the stream
        self._last = b""  # that end there
        self.headers_left: int | None = None

    def read(self, size: int = -1, /) -> bytes:
        """Give the next bytes, fewer at the end; raises RejectedError beyond ``headers_left``."""
        if self.headers_left is not None:
            if not 0 <= size <= self.headers_left:
                raise RejectedError(reason=f"a header in `{self._name}` is larger than headers are")
            self.headers_left -= size
        again = self._last[len(self._last) - (self._end - self._place) :][:size] if self._place < self._end else b""
        parts, left = [again], size - len(again)
        while left > 0 and (data := self._next(left)):
            parts.append(data)
            left -= len(data)
        found = b"".join(parts)
        self._place += len(found)
        return found

    def _next(self, most: int) -> bytes:
        data = self._raw.read(min(most, STEP))
        self._budget.check_time()
        self._end += len(data)
        self._last = (self._last + data)[-REMEMBERED:]
        return data

    def seek(self, place: int, whence: int = os.SEEK_SET, /) -> int:
        """Skip to a place; raises RejectedError for one that is behind what is remembered."""
        if whence != os.SEEK_SET or place < self._end - len(self._last):
            raise RejectedError(reason=f"the headers of `{self._name}` lead backwards")
        while place > self._end and self._next(place - self._end):
            pass
        self._place = min(place, self._end)
        return self._place

    def tell(self) -> int:
        """Give the place of the next byte."""
        return self._place

    @property
    def last(self) -> bytes:
        """The last bytes that were read of the stream."""
        return self._last


class Bounded(io.BufferedReader):
    """A file of which no more than some bytes are read at once."""

    def __init__(self, file: IO[bytes], name: str, most: int) -> None:
        super().__init__(io.FileIO(file.fileno(), closefd=False))
        self._shown, self._most = name, most

    def read(self, size: int | None = -1, /) -> bytes:
        """Give the next bytes, or all; raises RejectedError where these are more than a header can have."""
        most = self._most + 1 if size is None or size < 0 else size
        data = b"" if most > self._most + 1 else super().read(most)
        if most > self._most and (not data or len(data) > self._most):
            raise RejectedError(reason=f"a header in `{self._shown}` is larger than headers are")
        return data


class Guarded:
    """A member, whatever goes wrong while it is read said as that of its archive."""

    def __init__(self, data: IO[bytes], guard: Callable[[], AbstractContextManager[None]]) -> None:
        self._data, self._guard = data, guard

    def read(self, size: int, /) -> bytes:
        """Give the next bytes."""
        with self._guard():
            return self._data.read(size)
