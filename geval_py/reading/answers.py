"""Expected answers in other formats than TSV: JSON lines, Parquet, and the folders of Hugging Face's ``datasets``.

A row is a line, and one column has the answers: the only one, or ``expected`` or ``answer``. Another one is named
after the path: ``expected.parquet#word``.
"""

from __future__ import annotations

import os
from functools import partial

from geval_py.errors import UsageError
from geval_py.reading.sources import Memory, absolute, find_file, is_address, is_remote, name_of, state_at
from geval_py.text import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from geval_py.reading.sources import FileState

EXPECTED = "expected.tsv"
OTHER_NAMES = (
    "expected.jsonl",
    "expected.parquet",
    "expected",
)  # where there is no expected.tsv; the last is a folder


OTHER_ENDINGS = (".jsonl", ".parquet")


class Answers(Memory):
    """The answers of a file or folder in another format, as lines, in the place of its path."""

    column: str

    def __new__(cls, path: str, column: str = "") -> Answers:
        self = str.__new__(cls, path)
        self.column, self.read = column, partial(_read, path, column)
        return self

    def absolute(self) -> Answers:
        return Answers(absolute(str(self)), self.column)

    @property
    def state(self) -> FileState:
        path = str(self)
        if is_address(path):
            return path, None, 0, None
        if not os.path.isdir(path):
            return state_at(path)
        files = [path, *(os.path.join(path, name) for name in sorted(os.listdir(path)))]
        states = tuple(map(state_at, files))
        return states, None, sum(state[2] for state in states), None

    def __reduce__(self) -> tuple[Any, ...]:
        return Answers, (str(self), self.column)


def find_answers(path: str) -> str | None:
    """Complete the path of a file with answers, as :func:`geval_py.reading.sources.find_file`; None for nothing.

    In the place of answers in another format are their lines. The path may end in ``#`` and a column. If there is no
    expected.tsv, a file with one of OTHER_NAMES is taken. Raises as find_file.
    """
    if is_address(path) or is_remote(path):
        found = path if is_address(path) else find_file(path)
        return Answers(found) if found is not None and name_of(found).endswith(OTHER_ENDINGS) else found
    folder, name = os.path.split(path)
    found = find_file(path)
    if found is None and "#" in name:
        place, _, column = path.rpartition("#")
        found = find_file(place)
        if found is not None and not _is_other(found):
            raise UsageError(message=f"{named(found)} has no columns: it is neither JSON lines nor Parquet")
        return None if found is None else Answers(found, column)
    if found is None and name == EXPECTED:
        places = (find_file(os.path.join(folder, other)) for other in OTHER_NAMES)
        found = next((place for place in places if place is not None and _is_other(place)), None)
    return Answers(found) if found is not None and _is_other(found) else found


def _is_other(path: str) -> bool:
    if os.path.isdir(path):
        from geval_py.reading.answer_files import SPLITS_FILE, STATE_FILE

        return any(os.path.exists(os.path.join(path, name)) for name in (STATE_FILE, SPLITS_FILE))
    return name_of(path).endswith(OTHER_ENDINGS)


def _read(path: str, column: str) -> Iterator[bytes]:
    from geval_py.reading.answer_files import encoded_answers

    return encoded_answers(path, column)
