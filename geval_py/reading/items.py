"""One line of a set: what a model is given, what it should answer, and what it answered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, count, islice, repeat
from typing import NamedTuple

from geval_py.errors import LineCountError
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, decode_lines
from geval_py.reading.splits import Split
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.lines import Bytes


class Item(NamedTuple):
    """One line of a set.

    ``line`` is its number, from 1, not counting a header; ``columns`` are those of the input, by their names in order
    (:func:`column_name`), without any that the line lacks; ``expected`` is the answer, None where it is hidden.
    """

    line: int
    columns: dict[str, str]
    expected: str | None


class ScoredItem(NamedTuple):
    """A line's texts: its input (the columns joined by TABs), the expected line, the output."""

    input: str
    expected: str
    output: str


def column_name(header: Sequence[str], index: int) -> str:
    """Name a column of the input, counted from 0: as the header says or, if it has no name of its own, by its number.

    >>> [column_name(("Year", "Text", "Text", "7"), index) for index in range(5)]
    ['Year', 'Text', '3', '4', '5']
    """
    return header[index] if has_name(header, index) else str(index + 1)


def has_name(header: Sequence[str], index: int) -> bool:
    """Tell whether a column's name is no other's, and not the number of another."""
    if index >= len(header) or header.index(header[index]) != index:
        return False
    name = header[index]
    return not name.isdigit() or name == str(index + 1)


def unused_name(column: int, header: Sequence[str], taken: Collection[str]) -> str:
    """Name a column of the input, counted from 0, in a table that has other columns too.

    >>> unused_name(1, ("Year", "line"), {"line", "Year"})
    'in<line>'
    """
    name = header[column] if column < len(header) else str(column + 1)
    names = chain((name, f"in<{name}>"), (f"in<{column + 1}>{'′' * primes}" for primes in count()))
    return next(name for name in names if name not in taken)


# The lines of a file that are asked for again: kept in memory or, where that can be, read again.


class Text:
    """The lines of a file, taken as a reader reads them; it has to be read to its end.

    With ``reread``, those of a regular file are not kept, but read again.
    """

    def __init__(self, reader: LineReader, *, header: str | None, reread: bool) -> None:
        self._path, self._header = reader.path, header
        self._state = reader.state
        self._reread = reread and self._state is not None
        self._blocks: list[bytes] = []

    def add(self, block: Bytes) -> None:
        """Take the next block, of whole lines."""
        if not self._reread:
            self._blocks.append(bytes(block))

    def read(self) -> Iterator[str]:
        """Give the lines, decoded; raises UnreadableFileError if the file was changed since, and as LineReader."""
        blocks = self._read_again() if self._reread else self._blocks
        return (line for block in blocks for line in decode_lines(block))

    def check(self, reader: LineReader) -> None:
        """Raise UnreadableFileError if a reader of the file finds it changed since."""
        reader.check_state(self._state)

    def _read_again(self) -> Iterator[bytes]:
        with LineReader(self._path, header=self._header) as reader:
            reader.check_state(self._state)
            while block := reader.block(READ_AHEAD_BYTES):
                yield block


class Texts(Value):
    """The texts that were scored."""

    outputs: Text
    expected: Text

    @classmethod
    def of(cls, outputs: LineReader, expected: LineReader, header: str | None, *, reread: bool) -> Texts:
        """Take the texts as they are read; see :class:`Text`."""
        both = (Text(reader, header=header, reread=reread) for reader in (outputs, expected))
        return cls(outputs=next(both), expected=next(both))


# The input that goes with an output: a line an item.


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
