r"""The items of a challenge as numbers: a number a word, block by block.

Words are compared without their capitals and the punctuation around them. A word's lowest bit tells that it ends a
sentence; what is above is the number of the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import TYPE_CHECKING

import numpy as np

from geval_py.errors import LineCountError
from geval_py.reading.lines import LineReader, decode_lines, read_lines
from geval_py.scoring.parallel import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

BYTES_AT_ONCE = 8_000_000
UNKNOWN = 0  # the word of a gap whose answer is not known
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")
_SENTENCE_END = re.compile(r"[.!?][^\w\s]*$")


class Vocabulary(dict[str, int]):
    """Gives each word as written its number, and the same to words that differ in capitals and punctuation only."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        plain = _AROUND.sub("", word).casefold() or word
        number = self._numbers.setdefault(plain, len(self._numbers) + 1)  # 0 is UNKNOWN
        self[word] = 2 * number + bool(_SENTENCE_END.search(word))
        return self[word]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where the texts of an item are: the columns left and right of the gap (the same where there is no gap)."""

    left: int
    right: int
    group: int | None

    @property
    def has_gap(self) -> bool:
        """Whether an item has a gap."""
        return self.left != self.right

    def cells(self, line: str) -> tuple[str, str, str]:
        """Give the texts on both sides of the gap, and the group, of a line; "" for what is not there."""
        cells = line.split("\t")
        left, right, group = (
            cells[n] if n is not None and n < len(cells) else "" for n in (self.left, self.right, self.group)
        )
        return left, right if self.has_gap else "", group


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The files of one part, and how they are read: the first names of their header lines, the columns."""

    part: str
    path: str
    expected: str | None
    header: str | None
    expected_header: str | None
    columns: Columns


@dataclass(slots=True)
class Block:
    """Some items: the words of all, one after another, and where each item begins (and the last ends).

    ``gaps`` are the places of the gaps among the words, -1 for an item without; ``groups`` number the documents;
    ``lines`` are the items' lines in their file, from 1; ``texts`` the lines, where they are kept.
    """

    words: Numbers
    starts: Numbers
    gaps: Numbers
    groups: Numbers
    lines: Numbers
    known: bool
    texts: list[str] = field(default_factory=list)

    @property
    def items(self) -> int:
        """The number of items."""
        return len(self.starts) - 1

    @property
    def item_of(self) -> Numbers:
        """The item of each word."""
        return np.repeat(np.arange(self.items), np.diff(self.starts))


class Reader:
    """Reads the items of parts; what is a word, or a group, in one is the same in all."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self.groups: dict[str, int] = {}

    def blocks(self, source: Source, progress: Progress | None = None) -> Iterator[Block]:
        """Read a part, block by block; raises DataError, also where there are more or fewer answers than items.

        ``progress`` is called after each block with the bytes read and the file's size.
        """
        answers, first = _answers(source), 1
        with LineReader(source.path, header=source.header) as reader:
            while data := reader.block(BYTES_AT_ONCE):
                texts = decode_lines(data)
                words = list(islice(answers, len(texts)))
                if len(words) < len(texts):
                    raise _uneven(source, first + len(words) - 1)
                yield self._block(source, texts, words, first)
                first += len(texts)
                if progress is not None and reader.source.size:
                    progress(reader.source.position or 0, reader.source.size)
        if source.expected is not None and (more := sum(1 for _ in answers)):
            raise _uneven(source, first + more - 1)

    def whole(self, source: Source) -> Block:
        """Read a part as one block, with its lines; raises as :meth:`blocks`."""
        texts = list(read_lines(source.path, header=source.header))
        answers = list(islice(_answers(source), len(texts) + (source.expected is not None)))
        if len(answers) != len(texts):
            raise _uneven(source, sum(1 for _ in _answers(source)))
        block = self._block(source, texts, answers, 1)
        block.texts = texts
        return block

    def _block(self, source: Source, texts: list[str], answers: Sequence[str], first: int) -> Block:
        numbers: list[int] = []
        starts, gaps, groups = [0], [], []
        number_of = self.vocabulary.__getitem__
        known = source.expected is not None
        for text, answer in zip(texts, answers, strict=True):
            left, right, group = source.columns.cells(text.replace("\\n", " "))
            numbers.extend(map(number_of, left.split()))
            gaps.append(len(numbers) if source.columns.has_gap else -1)
            if source.columns.has_gap:
                numbers.append(number_of(answer) if known and answer else UNKNOWN)
            numbers.extend(map(number_of, right.split()))
            starts.append(len(numbers))
            groups.append(self.groups.setdefault(group, len(self.groups)))
        return Block(
            words=np.array(numbers, dtype=np.int64),
            starts=np.array(starts, dtype=np.int64),
            gaps=np.array(gaps, dtype=np.int64),
            groups=np.array(groups, dtype=np.int64),
            lines=np.arange(first, first + len(texts), dtype=np.int64),
            known=known,
        )


def _answers(source: Source) -> Iterator[str]:
    """Give the answers of a part or, where they are not known, empty ones without end."""
    return repeat("") if source.expected is None else read_lines(source.expected, header=source.expected_header)


def _uneven(source: Source, answers: int) -> LineCountError:
    lines = sum(1 for _ in read_lines(source.path, header=source.header))
    return LineCountError(
        what="input",
        path=source.path,
        lines=lines,
        expected_path=source.expected or "",
        expected_lines=answers,
    )


def column_of(line: str, columns: Columns, word: int, *, gap: bool) -> int:
    r"""Give the column, from 1, at which a word of an item begins, counted from its first word, the gap included.

    ``gap`` tells that the gap itself is meant, which is where the right text begins.

    >>> column_of("x\tthe old\\nman\tthe sea", Columns(left=1, right=2, group=0), 2, gap=False)
    12
    """
    cells = line.split("\t")
    offsets = [sum(len(cell) + 1 for cell in cells[:n]) for n in range(len(cells))]
    if columns.right >= len(cells):
        return 1
    if gap:
        return offsets[columns.right] + 1
    places = _words_of(cells[columns.left], offsets[columns.left])
    if columns.has_gap:
        places += [offsets[columns.right], *_words_of(cells[columns.right], offsets[columns.right])]
    return places[word] + 1 if word < len(places) else 1


def _words_of(cell: str, offset: int) -> list[int]:
    matches = re.finditer(r"\\n|((?:(?!\\n)\S)+)", cell)
    return [offset + match.start() for match in matches if match[1]]
