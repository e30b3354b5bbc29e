"""The lines of a file in another format than TSV, in the place of its path."""

from __future__ import annotations

from geval_py.reading.sources import Memory, absolute, is_address, parts_of, state_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from geval_py.reading.sources import FileState


class FileLines(Memory):
    """The lines of a file in another format, in the place of its path; ``options`` are what else they depend on.

    A subclass reads them in :meth:`pieces`.
    """

    options: tuple[str, ...]

    def __new__(cls, path: str, *options: str) -> Self:
        self = str.__new__(cls, path)
        self.options = options
        return self

    def read(self) -> Iterator[bytes]:
        return self.pieces(None)

    def pieces(self, max_bytes: int | None) -> Iterator[bytes]:
        raise NotImplementedError

    def absolute(self) -> Self:
        return type(self)(absolute(str(self)), *self.options)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files that are read, in order; raises as :func:`geval_py.reading.sources.parts_of`."""
        return parts_of(str(self))

    @property
    def state(self) -> FileState:
        if is_address(self):
            return (str(self), *self.options), None, 0, None
        states = tuple(map(state_at, self.files))
        if len(states) == 1 and not self.options:
            return states[0]
        return (states, *self.options), None, sum(state[2] for state in states), None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), *self.options)
