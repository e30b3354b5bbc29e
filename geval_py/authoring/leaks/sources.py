"""The files of a challenge in which leaks are looked for, and the columns of its items."""

from __future__ import annotations

import os
from collections.abc import Sequence

from geval_py.authoring.leaks.items import Columns, Source
from geval_py.authoring.parts import check_group
from geval_py.errors import MissingFileError
from geval_py.reading.challenge import Challenge
from geval_py.reading.lines import read_lines
from geval_py.reading.sources import find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET, read_header
from geval_py.reading.task import Task

LEFT, RIGHT = "LeftContext", "RightContext"


def find_sources(directory: str, answers: str | None, group: str | None) -> list[Source]:
    """Find the parts of a challenge that have an input, train first, then in natural order.

    The answers are looked for in the folder of the answers first, if there is one. Raises MissingFileError where
    there is no part, other DataErrors for what cannot be read, and UsageError for a column that there is not.
    """
    challenge = Challenge.open(directory)
    task = challenge.task
    header = read_header(directory, task.in_header)
    expected_header = read_header(directory, task.out_header)
    wanted = (name for name in challenge.split_names if name == TRAINING_SET or name.startswith(("dev", "test")))
    names = sorted(wanted, key=lambda name: name != TRAINING_SET)
    sources = []
    for name in names:
        path = find_file(os.path.join(directory, name, INPUT_FILE))
        if path is None:
            continue
        sources.append(
            Source(
                part=name,
                path=path,
                expected=_expected(directory, answers, name, task),
                header=header[0] if header else None,
                expected_header=expected_header[0] if expected_header else None,
                columns=columns_of(header or _numbered(path), group),
            )
        )
    if not sources:
        place = os.path.join(directory, TRAINING_SET, INPUT_FILE)
        raise MissingFileError(
            what="No file with the input", path=place, hint="train, dev-0 or test-A should have one"
        )
    return sources


def _expected(directory: str, answers: str | None, name: str, task: Task) -> str | None:
    file = task.expected_file or EXPECTED_FILE
    folders = (directory,) if answers is None else (answers, directory)
    return next(filter(None, (find_file(os.path.join(folder, name, file)) for folder in folders)), None)


def _numbered(path: str) -> tuple[str, ...]:
    """Name the columns of an input without a header by their numbers."""
    first = next(read_lines(path), "")
    return tuple(str(number + 1) for number in range(first.count("\t") + 1))


def columns_of(names: Sequence[str], group: str | None) -> Columns:
    """Tell which columns are the texts and the group: by their names, or else the last two and the first.

    Raises UsageError for a group that there is not.

    >>> columns_of(["FileId", "Year", "LeftContext", "RightContext"], None)
    Columns(left=2, right=3, group=0)
    """
    left, right = len(names) - 2, len(names) - 1
    if LEFT in names and RIGHT in names:
        left, right = names.index(LEFT), names.index(RIGHT)
    left = max(left, 0)
    if group is not None:
        check_group(group, names)
        return Columns(left=left, right=right, group=names.index(group))
    return Columns(left=left, right=right, group=0 if 0 not in (left, right) else None)
