"""When submissions arrived: by ``arrivals.csv``, by the times of their files, or now.

This is an ``arrivals.csv``, which stands in the folder with the submissions::

    name,moment
    ann,2027-01-31 23:55 Europe/Warsaw
    bob.zip,2027-01-31T22:58:10Z
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from typing import TypeAlias

from sqlalchemy import select

from geval_py.board.database import schema
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import MAX_ENTRIES, own_name
from geval_py.board.operations.receipts import AT, MANIFEST, MTIME, NOW, WAYS
from geval_py.board.settings import moment_of, moment_text
from geval_py.errors import ConfigError, UnreadableFileError, UsageError
from geval_py.reading.files import naming
from geval_py.text import named, visible

COLUMNS = ["name", "moment"]
MomentOf: TypeAlias = "Callable[[str], tuple[datetime, str]]"  # of a path: when it arrived, and what says so


def past(at: datetime, now: datetime) -> datetime:
    """Return the moment ``at`` which something arrived; raises UsageError if it is in the future."""
    if at > now:
        raise UsageError(f"the arrival time {moment_text(at)} is in the future: it is {moment_text(now)}")
    return at


def arrivals_in(board: Board, folder: str, *, way: str, at: datetime | None, now: datetime) -> MomentOf:
    """Return a function that tells when a submission in a folder arrived, and by which of receipts.WAYS.

    ``at`` is one moment for all; without it the folder's ``arrivals.csv`` has moments by name, and ``way`` is used
    for the others. The function raises UsageError if a submission cannot have arrived when it is said to. Raises
    UsageError for a moment ``at`` in the future, and for a manifest that is a link; ConfigError with all errors of
    the manifest.
    """
    if at:
        moment = past(at, now)
        return lambda _: (moment, AT)
    with board.reading() as connection:
        created = connection.execute(select(schema.board.c.created)).scalar_one()
    manifest = read_manifest(os.path.join(folder, MANIFEST))

    def arrival_of(source: str) -> tuple[datetime, str]:
        name = os.path.basename(source)
        listed = manifest.get(name) or manifest.get(own_name(source))
        if listed:
            moment, by = listed, MANIFEST
        elif way == MTIME:
            walked = (os.path.join(top, name) for top, _, names in os.walk(source) for name in names)
            with naming(source):  # an archive, or a folder without files, has its own time
                times = [os.lstat(path).st_mtime_ns for path in islice(walked, MAX_ENTRIES)]
                latest = max(times or [os.lstat(source).st_mtime_ns])
            moment, by = datetime.fromtimestamp(latest / 1e9, tz=UTC), MTIME
        else:
            return now, NOW
        arrived = f"`{visible(name)}` arrived at {moment_text(moment)}, {WAYS[by]}"
        if moment > now:
            raise UsageError(f"{arrived}, but it is {moment_text(now)}")
        if moment < created:
            raise UsageError(
                f"{arrived}, before the board was made, at {moment_text(created)}"
                "\n  if that is right, add it with geval board add --at"
            )
        return moment, by

    return arrival_of


def read_manifest(path: str) -> dict[str, datetime]:
    """Read the moments of a manifest by names of folders and archives, with endings or without; {} if there is none.

    Raises UsageError for a link, UnreadableFileError, and ConfigError with all errors and their lines.
    """
    if os.path.islink(path):
        raise UsageError(f"{named(path)} is a link; links are not followed")
    if not os.path.exists(path):
        return {}
    problems: list[str] = []
    moments: dict[str, datetime] = {}
    try:
        with naming(path), open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                row, line = [cell.strip() for cell in cells], reader.line_num
                if row == COLUMNS or not row:
                    continue
                if len(row) != len(COLUMNS):
                    problems.append(f"line {line}: expected a name and a time, with a comma between them")
                elif row[0] in moments:
                    problems.append(f"line {line}: `{visible(row[0])}` is listed twice")
                else:
                    try:
                        moments[row[0]] = moment_of(row[1])
                    except ValueError as error:
                        problems.append(f"line {line}: {error}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFileError(path=path, reason="it is not CSV in UTF-8") from error
    if problems:
        raise ConfigError(path=path, message="\n".join(problems))
    return moments
