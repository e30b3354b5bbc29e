"""The input that goes with an output: a line an item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice, repeat

from geval_py.errors import LineCountError
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, decode_lines
from geval_py.reading.splits import Split


class InputText:
    """The input of a split. With ``keep`` it is read once, however often it is asked for: it may be a pipe.

    ``sha256`` is the digest of what was read, where a ``digest`` is wanted.
    """

    def __init__(self, split: Split, *, keep: bool, digest: bool = False) -> None:
        self._split, self._keep, self._digest = split, keep, digest
        self._blocks: list[bytes] | None = None
        self._state: object = None
        self._count: int | None = None
        self.sha256: str | None = None

    def lines(self) -> Iterator[str]:
        """Give the lines; empty ones without end if there is no input."""
        if self._split.input is None:
            return repeat("")
        return (line for block in self.blocks() for line in decode_lines(block))

    def check_lines(self, expected: int) -> None:
        """Raise LineCountError if there is an input, and its number of lines is another."""
        if self._split.input is not None:
            if self._count is None:
                self._count = sum(block.count(b"\n") for block in self.blocks())
            self.check_count(self._count, expected)

    def check_count(self, lines: int, expected: int) -> None:
        """Raise LineCountError for another number of lines than expected."""
        if lines != expected:
            raise LineCountError(
                what="input",
                path=self._split.input or "",
                lines=lines,
                expected_path=self._split.expected,
                expected_lines=expected,
            )

    def blocks(self) -> Iterable[bytes]:
        """Give the bytes of an input that is there, as blocks of whole lines."""
        if not self._keep:
            return self._read()
        if self._blocks is None:
            self._blocks = list(self._read())
        return self._blocks

    def _read(self) -> Iterator[bytes]:
        with LineReader(self._split.input or "", header=self._split.input_header, digest=self._digest) as reader:
            self._state = self._state or reader.state
            reader.check_state(self._state)
            while block := reader.block(READ_AHEAD_BYTES):
                yield block
            reader.check_unchanged()
            self.sha256 = reader.sha256


class InputReader:
    """Takes the input's lines as those of the output are read."""

    def __init__(self, text: InputText) -> None:
        self._text = text
        self._lines = text.lines()
        self._taken = self._found = 0

    def take(self, lines: int) -> list[str]:
        """Give the next lines; those that are not there are empty, until :meth:`check_end`."""
        texts = list(islice(self._lines, lines))
        self._taken += lines
        self._found += len(texts)
        return texts + [""] * (lines - len(texts))

    def check_end(self) -> None:
        """Raise LineCountError if the input has not as many lines as were taken."""
        self._text.check_count(self._found + sum(1 for _ in self._lines), self._taken)


def column_names(width: int, header: Sequence[str], taken: set[str]) -> list[str]:
    """Name the columns of an input: as its header says, or by their numbers, from 1; one whose name is taken anew.

    >>> column_names(3, ["Year", "line"], {"line"})
    ['Year', 'in<line>', '3']
    """
    names: list[str] = []
    for column in range(width):
        name = header[column] if column < len(header) else str(column + 1)
        candidates = chain((name, f"in<{name}>"), (f"in<{column + 1}>{'′' * primes}" for primes in count()))
        names.append(next(new for new in candidates if new not in taken and new not in names))
    return names
