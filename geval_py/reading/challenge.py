"""A set of a challenge, such as train, as data: its items one by one, without any output or score.

Nothing is read before it is asked for, and little is held at a time: a set may be larger than the memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, zip_longest

from geval_py.errors import LineCountError, MissingFileError
from geval_py.reading.config import config_task
from geval_py.reading.items import Item, column_name, unused_name
from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, decode_lines, read_lines
from geval_py.reading.outputs import Output, find_outputs
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.sources import absolute, find_file, is_folder, is_regular
from geval_py.reading.splits import (
    EXPECTED_FILE,
    INPUT_FILE,
    Split,
    Task,
    check_directory,
    locate,
    names_in,
    read_header,
)
from geval_py.text import natural_order, nearest, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas as pd


UNPACKED_BYTES = 1 << 20  # at a time: the thread that unpacks then seldom waits for Python's lock


@dataclass(frozen=True, kw_only=True)
class DataSet:
    r"""One set of a challenge: ``challenge["train"]``.

    ``input`` and ``expected`` are the files, None where there is none: the answers of a test set may be hidden.
    The headers are the names of their columns, empty where the challenge gives none. ``directory`` is where the
    set's outputs are. Iteration gives the items as they stand in the files, the two characters ``\n`` for a line end
    inside a text included; :meth:`items` can turn them into line ends.
    """

    name: str
    directory: str
    input: str | None
    expected: str | None
    in_header: tuple[str, ...] = ()
    out_header: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the items: the lines of the answers or, where they are hidden, of the input. It is counted once."""
        return self._lines

    def __iter__(self) -> Iterator[Item]:
        return self.items()

    def items(self, *, unescape: bool = False) -> Iterator[Item]:
        r"""Give the items, one by one.

        With ``unescape`` the two characters ``\n`` in the input become a line end. Items of a set without an input
        have no columns. Raises MissingFileError where there is neither input nor answers, other DataErrors where a
        file cannot be read, and LineCountError, at the end, where one file has more lines than the other.
        """
        names = [column_name(self.in_header, index) for index in range(len(self.in_header))]
        for line, (text, expected) in enumerate(self._pairs(), 1):
            if text is None:
                yield Item(line, {}, expected)
                continue
            fields = (text.replace("\\n", "\n") if unescape else text).split("\t")
            names.extend(column_name(self.in_header, index) for index in range(len(names), len(fields)))
            yield Item(line, dict(zip(names, fields, strict=False)), expected)  # there may be fewer fields than names

    def to_frame(self, *, unescape: bool = False) -> pd.DataFrame:
        """Give all items as a table: ``line``, a column for each of the input's, ``expected``.

        A column of the input with one of the other names is called ``in<name>``; what a line lacks is None.
        ``unescape`` and what is raised are as in :meth:`items`. All texts are in memory then.
        """
        import pandas as pd

        items = list(self.items(unescape=unescape))
        rows = [tuple(item.columns.values()) for item in items]
        columns: dict[str, list[object]] = {"line": [item.line for item in items]}
        for column in range(max(len(self.in_header), *map(len, rows), 0)):
            name = unused_name(column, self.in_header, {*columns, "expected"})
            columns[name] = [row[column] if column < len(row) else None for row in rows]
        return pd.DataFrame(columns | {"expected": [item.expected for item in items]})

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs that are there now, in natural order of their names; none where there is no folder for them."""
        return find_outputs(self.directory) if is_folder(self.directory) else ()

    @cached_property
    def _lines(self) -> int:
        path, header = (self.expected, self.out_header) if self.expected else (self.input, self.in_header)
        if path is None:
            raise self._without_files()
        with LineReader(path, header=next(iter(header), None)) as reader:
            return reader.count_rest()

    def _pairs(self) -> Iterator[tuple[str | None, str | None]]:
        """Give each line of the input with the answer; None for those of a file that is not there."""
        with ExitStack() as stack:
            inputs = _lines_of(self.input, self.in_header, stack)
            expected = _lines_of(self.expected, self.out_header, stack)
            if inputs is not None and expected is not None:
                yield from self._pairs_of(inputs, expected)
            elif inputs is not None:
                yield from ((text, None) for text in inputs)
            elif expected is not None:
                yield from ((None, word) for word in expected)
            else:
                raise self._without_files()

    def _pairs_of(self, inputs: Iterator[str], expected: Iterator[str]) -> Iterator[tuple[str, str]]:
        for lines, (text, word) in enumerate(zip_longest(inputs, expected)):
            if text is None or word is None:
                of_input = lines if text is None else lines + 1 + sum(1 for _ in inputs)
                of_expected = lines if word is None else lines + 1 + sum(1 for _ in expected)
                raise LineCountError(
                    what="input",
                    path=self.input or "",
                    lines=of_input,
                    expected_path=self.expected or "",
                    expected_lines=of_expected,
                )
            yield text, word

    def _without_files(self) -> MissingFileError:
        return MissingFileError(what="No file with the input or the expected results", path=self.directory)


def _lines_of(path: str | None, header: Sequence[str], stack: ExitStack) -> Iterator[str] | None:
    """Give the decoded lines of a file, which is closed with the stack; None for no file."""
    if path is None:
        return None
    reader = stack.enter_context(LineReader(path, header=next(iter(header), None)))
    if reader.source.compression is None:
        blocks = iter(partial(reader.block, READ_AHEAD_BYTES), b"")
    else:
        pool = stack.enter_context(ThreadPoolExecutor(1))
        blocks = _ahead(partial(reader.block, UNPACKED_BYTES), pool)
    return chain.from_iterable(map(decode_lines, blocks))


def _ahead(read: Callable[[], bytes], pool: Executor) -> Iterator[bytes]:
    """Give blocks until one is empty, each read while the one before it is worked on."""
    next_block = pool.submit(read)
    while block := next_block.result():
        next_block = pool.submit(read)
        yield block


# A challenge's directory: where its answers, inputs and outputs are.


README_FILE = "README.md"


class Challenge(Value):
    """A challenge: its directory, and what its config.txt says is scored."""

    path: str
    task: Task

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Challenge:
        """Open a challenge's directory; raises MissingFileError, ConfigError."""
        directory = os.fspath(path)
        check_directory(directory, "the expected results")
        return cls(path=directory, task=config_task(directory))

    @property
    def title(self) -> str:
        """The first heading of README.md; the directory's name if there is none."""
        return self._readme()[0] or os.path.basename(absolute(self.path))

    @property
    def description(self) -> str:
        """The first paragraph below the title in README.md; may be empty."""
        return self._readme()[1]

    @property
    def split_names(self) -> tuple[str, ...]:
        """The names of the sub-directories with data: train, dev-0, test-A …, in natural order.

        Raises UnreadableFileError.
        """
        entries = names_in(self.path, "directory")
        return tuple(sorted((n for n in entries if re.match(r"train|dev|test", n)), key=natural_order))

    def __iter__(self) -> Iterator[str]:
        """Give the names of the sets."""
        return iter(self.split_names)

    def __getitem__(self, name: str) -> DataSet:
        """Give a set, which needs no output: train, dev-0, test-A …, or another sub-directory.

        Raises MissingFileError where there is none of that name, and AmbiguousFileError.
        """
        task = self.task
        if name not in names_in(task.directory, "directory"):
            place = os.path.join(task.directory, name)
            raise MissingFileError(what="No such set in the challenge", path=place, hint=self._near(name))
        folder = os.path.join(task.directory, name)
        return DataSet(
            name=name,
            directory=os.path.join(task.out_directory, name),
            input=find_file(os.path.join(folder, task.input_file or INPUT_FILE)),
            expected=find_file(os.path.join(folder, task.expected_file or EXPECTED_FILE)),
            in_header=read_header(task.directory, task.in_header),
            out_header=read_header(task.directory, task.out_header),
        )

    def _near(self, name: str) -> str:
        """Say which set might have been meant, and which there are."""
        names = self.split_names
        close = nearest(name, names)
        guess = f"did you mean {visible(close)}? " if close else ""
        return guess + (f"there are {visible(', '.join(names))}" if names else "it has no sets")

    def schemes(self) -> list[EvaluationScheme]:
        """Give the challenge's metrics, the main one first."""
        return self.task.schemes()

    def split(self, test_name: str, out: str | None = None) -> Split:
        """Resolve one test set's files; ``out`` names the output, by default out.tsv and all out-*.tsv.

        Raises MissingFileError, AmbiguousFileError.
        """
        return locate(self.task.replace(test_name=test_name, out_files=() if out is None else (out,)))

    def _readme(self) -> tuple[str, str]:
        path = os.path.join(self.path, README_FILE)
        return _title_and_paragraph(list(read_lines(path))) if is_regular(path) else ("", "")


def _title_and_paragraph(lines: list[str]) -> tuple[str, str]:
    """Read the first heading (# or underlined) and the first paragraph after it."""
    title, body = "", lines
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("#"):
            title, body = re.sub(r"^#+\s*|\s+#*\s*$", "", line), lines[number + 1 :]
            break
        if line.strip() and re.fullmatch(r"(=+|-+)\s*", below):
            title, body = line.strip(), lines[number + 2 :]
            break
    paragraph: list[str] = []
    for line in body:
        if line.strip() and not line.startswith("#"):
            paragraph.append(line.strip())
        elif paragraph:
            break
    return title, " ".join(paragraph)
