"""Expected answers in other formats than TSV: JSON lines, Parquet, and the folders of Hugging Face's ``datasets``.

A row is a line, and one column has the answers: the only one, or ``expected`` or ``answer``. Another one is named
after the path: ``expected.parquet#word``.
"""

from __future__ import annotations

import os

from geval_py.errors import UsageError
from geval_py.reading.file_lines import FileLines
from geval_py.reading.sources import find_file, is_address, is_remote, name_of, names_in, part_of
from geval_py.text import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

EXPECTED = "expected.tsv"
OTHER_FILES, FOLDER = ("expected.jsonl", "expected.parquet"), "expected"
OTHER_NAMES = (*OTHER_FILES, FOLDER)  # where there is no expected.tsv
OTHER_ENDINGS = (".jsonl", ".parquet")


class Answers(FileLines):
    """The answers of a file or folder in another format, in the place of its path; a column is the only option."""

    def pieces(self, max_bytes: int | None) -> Iterator[bytes]:
        from geval_py.reading.answer_files import encoded_answers

        return encoded_answers(str(self), *self.options, max_bytes=max_bytes)

    @property
    def files(self) -> tuple[str, ...]:
        if not os.path.isdir(self):
            return super().files
        from geval_py.reading.answer_files import files_of_dataset

        return files_of_dataset(str(self))


def find_answers(path: str) -> str | None:
    """Complete the path of a file with answers, as :func:`geval_py.reading.sources.find_file`; None for nothing.

    In the place of answers in another format are their lines. The path may end in ``#`` and a column. If there is no
    expected.tsv, a file with one of OTHER_NAMES is taken. Raises as find_file, and UsageError for CSV.
    """
    found = _found(path)
    if found is not None and name_of(found).endswith(".csv"):
        raise UsageError(
            message=f"{named(found)}: answers are not read from CSV, but from lines, JSON lines or Parquet"
        )
    return found


def _found(path: str) -> str | None:
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


def answers_in(folder: str) -> list[str]:
    """Return the paths of all answers in a folder with usual names: of all formats, compressed or in parts."""
    names = [name for name in names_in(folder, "file") if is_usual_name(name)]
    if FOLDER in names_in(folder, "directory") and _is_other(os.path.join(folder, FOLDER)):
        names.append(FOLDER)
    return [os.path.join(folder, name) for name in sorted(names)]


def is_usual_name(name: str) -> bool:
    """Whether a file's name is a usual one of answers, in any format, compressed or in parts.

    >>> [is_usual_name(name) for name in ("expected.jsonl.xz", "expected-0-of-2.tsv", "out.tsv")]
    [True, True, False]
    """
    part = part_of(name)
    return (name_of(name) if part is None else part.whole) in (EXPECTED, *OTHER_FILES)


def _is_other(path: str) -> bool:
    if os.path.isdir(path):
        from geval_py.reading.answer_files import SPLITS_FILE, STATE_FILE

        return any(os.path.exists(os.path.join(path, name)) for name in (STATE_FILE, SPLITS_FILE))
    return name_of(path).endswith(OTHER_ENDINGS)
