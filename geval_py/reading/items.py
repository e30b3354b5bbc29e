"""Items: the lines of a set with their input, expected answer and output, and the texts that are kept for later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, repeat
from typing import NamedTuple

from geval_py import errors
from geval_py.reading.lines import READ_AHEAD_BYTES, Bytes, LineReader, decode_lines
from geval_py.reading.splits import Split


class Item(NamedTuple):
    """One line of a set.

    ``line`` is its number, from 1, not counting a header; ``columns`` are the input's fields by the
    names of their columns, or their numbers, from 1; ``expected`` is the answer, None if it is hidden.
    """

    line: int
    columns: dict[str, str]
    expected: str | None


class ScoredItem(NamedTuple):
    """A line's texts: its input (the columns joined by TABs), the expected line, the output."""

    input: str
    expected: str
    output: str


class ItemColumns:
    """The texts of items as aligned lists, which are made sooner than so many items; an item is made if asked for.

    ``width`` is the number of columns of the widest input; 1 without any item.
    """

    def __init__(self, inputs: list[str], expected: list[str], outputs: list[str]) -> None:
        self.inputs, self.expected, self.outputs = inputs, expected, outputs
        self.width = 1 + max(map(str.count, inputs, repeat("\t")), default=0)

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, place: int) -> ScoredItem:
        return ScoredItem(self.inputs[place], self.expected[place], self.outputs[place])

    def __iter__(self) -> Iterator[ScoredItem]:
        return map(ScoredItem, self.inputs, self.expected, self.outputs)


def lines_of(texts: Sequence[str]) -> bytes:
    """Write texts as lines in UTF-8, each ended by LF."""
    return ("\n".join(texts) + "\n").encode() if texts else b""


def column_name(header: Sequence[str], index: int) -> str:
    """Return the name of an input column, counted from 0: from the header, or its number if that is not unique.

    >>> [column_name(("Year", "Text", "Text", "7"), index) for index in range(5)]
    ['Year', 'Text', '3', '4', '5']
    """
    return header[index] if has_name(header, index) else str(index + 1)


def has_name(header: Sequence[str], index: int) -> bool:
    """Whether the header gives a column a name that is unique and not the number of another column."""
    if index >= len(header) or header.index(header[index]) != index:
        return False
    name = header[index]
    return not name.isdigit() or name == str(index + 1)


def unused_name(column: int, header: Sequence[str], taken: Collection[str]) -> str:
    """Return a name for an input column, counted from 0, in a table with other columns.

    >>> unused_name(1, ("Year", "line"), {"line", "Year"})
    'in<line>'
    """
    name = header[column] if column < len(header) else str(column + 1)
    names = chain((name, f"in<{name}>"), (f"in<{column + 1}>{'′' * primes}" for primes in count()))
    return next(name for name in names if name not in taken)


def column_names(width: int, header: Sequence[str], taken: Collection[str]) -> list[str]:
    """Return unique names for all input columns of a table with other columns.

    >>> column_names(3, ["Year", "line"], {"line"})
    ['Year', 'in<line>', '3']
    """
    used = dict.fromkeys(taken)
    for column in range(width):
        used[unused_name(column, header, used)] = None
    return list(used)[len(used) - width :]


class Text:
    """The lines of a file, collected while a reader reads the file to its end, for reading them again.

    With ``reread``, the lines of a regular file are not kept in memory but read from the file again.
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
        """Yield the decoded lines; raises UnreadableFileError if the file was changed, and as LineReader."""
        if not self._reread:
            yield from chain.from_iterable(map(decode_lines, self._blocks))
            return
        with LineReader(self._path, header=self._header) as reader:
            reader.check_state(self._state)
            while block := reader.block(READ_AHEAD_BYTES):
                yield from decode_lines(block)

    def check(self, reader: LineReader) -> None:
        """Raise UnreadableFileError if the file that a reader opened was changed."""
        reader.check_state(self._state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The scored texts: the outputs and the expected answers."""

    outputs: Text
    expected: Text

    @classmethod
    def of(cls, outputs: LineReader, expected: LineReader, header: str | None, *, reread: bool) -> Texts:
        """Return empty texts for two readers; see :class:`Text`."""
        both = (Text(reader, header=header, reread=reread) for reader in (outputs, expected))
        return cls(outputs=next(both), expected=next(both))


class InputText:
    """The input of a split, a line per item. With ``keep`` it is read only once, since it may be a pipe.

    With ``digest``, ``sha256`` is the digest of the whole input.
    """

    def __init__(self, split: Split, *, keep: bool, digest: bool = False) -> None:
        self._split, self._keep, self._digest = split, keep, digest
        self._blocks: list[bytes] | None = None
        self._state: object = None
        self._count: int | None = None
        self.sha256: str | None = None

    def lines(self) -> Iterator[str]:
        """Yield the lines; without an input, empty lines forever."""
        if self._split.input is None:
            return repeat("")
        return (line for block in self.blocks() for line in decode_lines(block))

    def check_lines(self, expected: int) -> None:
        """Raise LineCountError if there is an input with another number of lines."""
        if self._split.input is not None:
            if self._count is None:
                self._count = sum(block.count(b"\n") for block in self.blocks())
            self.check_count(self._count, expected)

    def check_count(self, lines: int, expected: int) -> None:
        """Raise LineCountError if the numbers differ."""
        if lines != expected:
            raise errors.LineCountError(
                what="input",
                path=self._split.input or "",
                lines=lines,
                expected_path=self._split.expected,
                expected_lines=expected,
            )

    def blocks(self) -> Iterable[bytes]:
        """Return the bytes of an existing input as blocks of whole lines."""
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
    """Reads the input's lines in step with the output's."""

    def __init__(self, text: InputText) -> None:
        self._text = text
        self._lines = text.lines()
        self._taken = self._there = 0

    def take(self, lines: int) -> list[str]:
        """Return the next lines; missing lines are empty until :meth:`check_end` refuses them."""
        texts = list(islice(self._lines, lines))
        self._taken += lines
        self._there += len(texts)
        return texts + [""] * (lines - len(texts))

    def check_end(self) -> None:
        """Raise LineCountError unless the input has as many lines as were taken."""
        self._text.check_count(self._there + sum(1 for _ in self._lines), self._taken)
