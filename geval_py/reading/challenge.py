"""A challenge's directory: where its answers, inputs and outputs are.

    my-challenge/
      README.md      first heading = title, first paragraph = short description
      config.txt     options, as on the command line
      train/  dev-0/  test-A/ …
        in.tsv       one item a line, columns split by TAB
        expected.tsv the missing word, a line an item
        out.tsv      an answer; or several: out-epochs=10,lr=0.01.tsv

Any data file may be stored compressed: ``in.tsv`` is asked for, ``in.tsv.xz`` is found. Paths are strings, since
they are shown as they were given.
"""

from __future__ import annotations

import os
import re

from geval_py.errors import MissingFileError
from geval_py.reading.config import config_task
from geval_py.reading.lines import read_lines
from geval_py.reading.places import absolute, is_regular
from geval_py.reading.schemes import EvaluationScheme
from geval_py.reading.sources import find_file
from geval_py.reading.splits import (
    EXPECTED_FILE,
    INPUT_FILE,
    Split,
    check_directory,
    locate,
    names_in,
    read_header,
)
from geval_py.reading.task import Task
from geval_py.text import natural_order, nearest, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from geval_py.reading.dataset import DataSet

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
        from geval_py.reading.dataset import DataSet

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
