"""Items: the lines of a set with their input, expected answer and output, and the texts that are kept for later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, count, repeat
from typing import NamedTuple

from geval_py.errors import LineCountError
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
    name, number = header[index] if index < len(header) else "", str(index + 1)
    is_own = index < len(header) and header.index(name) == index and (not name.isdigit() or name == number)
    return name if is_own else number


def column_names(width: int, header: Sequence[str], taken: Collection[str]) -> list[str]:
    """Return unique names for all input columns of a table with other columns.

    >>> column_names(3, ["Year", "line"], {"line"}), column_names(1, ["line"], {"line", "in<line>"})
    (['Year', 'in<line>', '3'], ['in<1>'])
    """
    used = dict.fromkeys(taken)
    for column in range(width):
        name = header[column] if column < len(header) else str(column + 1)
        names = chain((name, f"in<{name}>"), (f"in<{column + 1}>{'′' * primes}" for primes in count()))
        used[next(name for name in names if name not in used)] = None
    return list(used)[len(used) - width :]


class Text:
    """The lines of a file that are read several times: kept in memory, or read from the file again, if it may be.

    They are those that :meth:`add` took from another reader, or else the file is read when they are first needed.
    ``state`` is that of the file, once it was opened. Without a ``path`` there is an empty line for every item. With
    ``digest``, ``sha256`` is the digest of the whole file, once it was read. ``expected_path`` is that of the
    answers, for errors.
    """

    def __init__(
        self, path: str | None, header: str | None, *, keep: bool, digest: bool = False, expected_path: str = ""
    ) -> None:
        self.path = path
        self.sha256: str | None = None
        self._header, self._keep, self._digest, self._expected_path = header, keep, digest, expected_path
        self._blocks: list[bytes] = []
        self.state: object = None
        self._count: int | None = None

    @classmethod
    def of(cls, reader: LineReader, *, reread: bool) -> Text:
        """Return the text whose blocks a reader reads; with ``reread``, a regular file is read again later."""
        text = cls(reader.path, reader.header, keep=not reread or reader.state is None)
        text.state = reader.state
        return text

    def add(self, block: Bytes) -> None:
        """Take the next block, of whole lines."""
        if self._keep:
            self._blocks.append(bytes(block))

    def lines(self) -> Iterator[str]:
        """Yield the decoded lines; raises UnreadableFileError if the file was changed, and as LineReader."""
        if self.path is None:
            return repeat("")
        return (line for block in self.blocks() for line in decode_lines(block))

    def blocks(self) -> Iterable[bytes]:
        """Return the bytes of an existing file as blocks of whole lines; raises as :meth:`lines`."""
        if not self._keep:
            return self._read()
        self._blocks = self._blocks or list(self._read())
        return self._blocks

    def _read(self) -> Iterator[bytes]:
        with LineReader(self.path or "", header=self._header, digest=self._digest) as reader:
            self.state = self.state or reader.state
            reader.check_state(self.state)
            while block := reader.block(READ_AHEAD_BYTES):
                yield block
            reader.check_unchanged()
            self.sha256 = reader.sha256

    def check_lines(self, expected: int, lines: int | None = None) -> None:
        """Raise LineCountError if there is an input that has not as many ``lines`` as the answers."""
        if self.path is None:
            return
        if lines is None:
            lines = self._count = self._count or sum(block.count(b"\n") for block in self.blocks())
        if lines != expected:
            raise LineCountError(
                what="input",
                path=self.path,
                lines=lines,
                expected_path=self._expected_path,
                expected_lines=expected,
            )


class Texts(NamedTuple):
    """The scored texts: the outputs and the expected answers."""

    outputs: Text
    expected: Text


def input_text(split: Split, *, keep: bool, digest: bool = False) -> Text:
    """Return the input of a split, a line per item; with ``keep`` it is read only once, since it may be a pipe."""
    return Text(split.input, split.input_header, keep=keep, digest=digest, expected_path=split.expected)
