"""A challenge's directory and its sets, such as train, as data: items one by one, without any output or score.

Nothing is read before it is needed, and little is kept: a set may be larger than the memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from geval_py.errors import DataError, MissingFileError, UsageError
from geval_py.reading import config, files, splits
from geval_py.reading.files import File
from geval_py.reading.items import Item, column_name, input_columns
from geval_py.reading.lines import check_line_count, count_lines, first_name, read_lines
from geval_py.reading.outputs import Output, find_outputs
from geval_py.reading.splits import answers_at, find_answers
from geval_py.text import some_of, suggestion, visible

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.reading.schemes import EvaluationScheme

README_FILE = "README.md"


@dataclass(frozen=True, kw_only=True)
class DataSet:
    r"""One set of a challenge: ``challenge["train"]``.

    ``input`` and ``expected`` are the files, None for a missing one: the answers of a test set may be hidden. The
    headers are the names of their columns, empty if the challenge gives none. ``directory`` contains the set's
    outputs. Iteration yields the items as they are in the files, where the two characters ``\n`` stand for a line end
    inside a text; :meth:`items` can turn them into line ends.
    """

    name: str
    directory: str
    input: File | None
    expected: File | None
    in_header: tuple[str, ...] = ()
    out_header: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the items, once: the lines of the answers or, if they are hidden, of the input."""
        file, header = (self.expected, self.out_header) if self.expected else (self.input, self.in_header)
        if file is None:
            raise self._without_files()
        return count_lines(file, header=first_name(header))

    def __repr__(self) -> str:
        files = [name for name, path in (("input", self.input), ("answers", self.expected)) if path is not None]
        outputs = [visible(output.name) for output in self.outputs]
        return f"<DataSet {visible(self.directory)}: {', '.join([*files, *outputs]) or 'no file'}>"

    def __iter__(self) -> Iterator[Item]:
        return self.items()

    def items(self, *, unescape: bool = False) -> Iterator[Item]:
        r"""Yield the items.

        With ``unescape`` the two characters ``\n`` in the input become a line end. Items of a set without an input
        have no columns. Raises MissingFileError if both input and answers are missing, other DataErrors if a file
        cannot be read, and LineCountError, at the end, if one file has more lines than the other.
        """
        if self.input is None and self.expected is None:
            raise self._without_files()
        inputs = read_lines(self.input, header=first_name(self.in_header)) if self.input else ()
        answers = read_lines(self.expected, header=first_name(self.out_header)) if self.expected else ()
        names: list[str] = []
        for line, (text, expected) in enumerate(zip_longest(inputs, answers), 1):
            if None in (text, expected) and self.input and self.expected:
                lines = count_lines(self.input, header=first_name(self.in_header))
                check_line_count("input", self.input.name, lines, self.expected.name, len(self))
            if text is None:
                yield Item(line, {}, expected)
                continue
            fields = (text.replace("\\n", "\n") if unescape else text).split("\t")
            names.extend(column_name(self.in_header, index) for index in range(len(names), len(fields)))
            yield Item(line, dict(zip(names, fields, strict=False)), expected)  # there may be fewer fields than names

    def to_frame(self, *, unescape: bool = False) -> pd.DataFrame:
        """Return all items as a table in memory: ``line``, the columns of the input, ``expected``.

        A column of the input with one of the other names is called ``in<name>``; missing fields are None.
        ``unescape`` and the errors are as in :meth:`items`.
        """
        import pandas as pd

        items = list(self.items(unescape=unescape))
        rows = [tuple(item.columns.values()) for item in items]
        width = max(len(self.in_header), *map(len, rows), 0)
        columns: dict[str, Any] = {"line": [item.line for item in items]}
        columns |= input_columns(rows, width, self.in_header, {"line", "expected"})
        return pd.DataFrame(columns | {"expected": [item.expected for item in items]})

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The present outputs, in natural order of their names; empty if their folder does not exist."""
        return find_outputs(self.directory)

    def _without_files(self) -> MissingFileError:
        return MissingFileError(what="No file with the input or the expected results", path=self.directory)


def sets_of_length(directory: str, lines: int, but: str) -> str:
    """Return a question about an output of so many lines, which other sets than ``but`` have; "" for none."""
    names = []
    with suppress(DataError, UsageError):
        challenge = Challenge.open(directory)
        for name in challenge:
            with suppress(DataError):
                if name != but and len(challenge[name]) == lines:
                    names.append(name)
    return f"the number of lines is that of {some_of(names)}: is this its output?" if names else ""


def _not_opened() -> config.Task:
    raise UsageError("a challenge is opened by Challenge.open(path)")


@dataclass(frozen=True)
class Challenge:
    """A challenge: its directory, and the task of its config.txt."""

    path: str
    task: config.Task = field(default_factory=_not_opened)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Challenge:
        """Open a challenge's directory; raises MissingFileError, ConfigError."""
        directory = os.fspath(path)
        splits.check_directory(directory, "the expected results")
        return cls(path=directory, task=config.config_task(directory))

    @property
    def title(self) -> str:
        """The first heading of README.md, ``# …`` or underlined as by ``--init``, else the directory's name."""
        path = os.path.join(self.path, README_FILE)
        text = "\n".join(read_lines(path)) if os.path.isfile(path) else ""
        heading = re.search(r"(?m)^#+(.*?)(?:\s#+)?\s*$|^(.*\S)[ \t]*\n(?:=+|-+)\s*$", text)
        title = "".join(filter(None, heading.groups())).strip() if heading else ""
        return title or os.path.basename(files.absolute(self.path))

    def __repr__(self) -> str:
        metrics = ", ".join(scheme.text for scheme in self.schemes()) or "no metric"
        return f"<Challenge {visible(self.path)}: {visible(', '.join(self))}; {visible(metrics)}>"

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the sets (train, dev-0, test-A …) in natural order; raises UnreadableFileError."""
        return iter(splits.sets_in(self.path))

    def __getitem__(self, name: str) -> DataSet:
        """Return a set, with or without outputs: train, dev-0, test-A …, or another sub-directory.

        Raises MissingFileError for an unknown name, and AmbiguousFileError.
        """
        task = self.task
        folder = os.path.join(task.directory, name)
        if not name.strip(".") or os.path.dirname(name) or not os.path.isdir(folder):
            sets = list(self)
            hint = suggestion(name, sets) + (f"there are {visible(', '.join(sets))}" if sets else "it has no sets")
            raise MissingFileError(what="No such set in the challenge", path=folder, hint=hint)
        input_path = files.find_file(os.path.join(folder, task.input_file or splits.INPUT_FILE))
        answers = find_answers(os.path.join(folder, task.expected_file or splits.EXPECTED_FILE))
        return DataSet(
            name=name,
            directory=os.path.join(task.out_directory, name),
            input=File(input_path) if input_path else None,
            expected=answers_at(answers) if answers else None,
            in_header=splits.read_header(task.directory, task.in_header),
            out_header=splits.read_header(task.directory, task.out_header),
        )

    def schemes(self) -> list[EvaluationScheme]:
        """Return the challenge's metrics, the main one first."""
        return self.task.schemes()
