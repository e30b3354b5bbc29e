"""When submissions arrived: by ``arrivals.csv``, by the times of their files, by their last commits, or now.

This is an ``arrivals.csv``, which stands in the folder with the submissions::

    name,moment
    ann,2027-01-31 23:55 Europe/Warsaw
    bob.zip,2027-01-31T22:58:10Z
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from sqlalchemy import select

from geval_py.board.database.schema import board
from geval_py.board.database.store import Board
from geval_py.board.intake.git import run_git
from geval_py.board.intake.identity import MOST_ENTRIES, own_name
from geval_py.board.intake.sources import Budget
from geval_py.board.intake.workspace import workspace
from geval_py.board.operations.receipts import AT, GIT, MANIFEST, MTIME, NOW, WAYS, written
from geval_py.board.settings import moment_of
from geval_py.errors import ConfigError, DataError, UnreadableFileError, UsageError
from geval_py.reading.sources import naming
from geval_py.text import named, visible

COLUMNS = ["name", "moment"]
GIT_SECONDS = 60
MOST_LISTING = 32_000_000  # bytes of what git says


class ArrivalError(DataError):
    """A submission cannot have arrived at a moment, or there is none; it is not stored."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"`{visible(self.name)}` {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """The moments at which the submissions in a folder arrived; :meth:`of` finds out when, and by what.

    ``at`` is one moment for all; without it ``manifest`` has moments by name, and ``way`` is used for the others.
    ``created`` is when the board was made, None if that is not known.
    """

    way: str
    now: datetime
    at: datetime | None = None
    created: datetime | None = None
    manifest: Mapping[str, datetime] = field(default_factory=dict)
    repository: Repository | None = None

    def of(self, source: str) -> tuple[datetime, str]:
        """Return when a submission arrived and by what; raises ArrivalError."""
        if self.at is not None:
            return self.at, AT
        name = os.path.basename(source)
        listed = self.manifest.get(name) or self.manifest.get(own_name(source))
        if listed is not None:
            moment, way = listed, MANIFEST
        elif self.repository is not None:
            moment, way = self.repository.committed(name), GIT
        elif self.way == MTIME:
            moment, way = last_change(source), MTIME
        else:
            return self.now, NOW
        if moment > self.now:
            raise ArrivalError(name=name, reason=f"{_when(moment, way)}, but it is {written(self.now)}")
        if self.created is not None and moment < self.created:
            reason = f"{_when(moment, way)}, before the board was made, at {written(self.created)}"
            raise ArrivalError(name=name, reason=f"{reason}\n  if that is so: geval board add --at")
        return moment, way


def _when(moment: datetime, way: str) -> str:
    return f"arrived at {written(moment)}, {WAYS[way]}"


def arrivals_in(board: Board, folder: str, *, way: str, at: datetime | None, now: datetime) -> Arrivals:
    """Prepare to find out when the submissions in a folder arrived; reads its ``arrivals.csv``, if it has one.

    Raises UsageError for a moment ``at`` in the future, for a folder that is in no git repository or in an incomplete
    one, and for a manifest that is a link; ConfigError with all errors of the manifest.
    """
    if at is not None:
        if at > now:
            raise UsageError(message=f"no submission can have arrived at {written(at)}: it is {written(now)}")
        return Arrivals(way=way, now=now, at=at)
    return Arrivals(
        way=way,
        now=now,
        created=_created(board),
        manifest=read_manifest(os.path.join(folder, MANIFEST)),
        repository=Repository.around(folder) if way == GIT else None,
    )


def _created(opened: Board) -> datetime:
    with opened.reading() as connection:
        created: datetime = connection.execute(select(board.c.created)).scalar_one()
        return created


def read_manifest(path: str) -> dict[str, datetime]:
    """Read the moments of a manifest by names of folders and archives, with endings or without; {} if there is none.

    Raises UsageError for a link, UnreadableFileError, and ConfigError with all errors and their lines.
    """
    if os.path.islink(path):
        raise UsageError(message=f"{named(path)} is a link; links are not followed")
    if not os.path.exists(path):
        return {}
    problems: list[str] = []
    moments: dict[str, datetime] = {}
    for line, row in _rows(path):
        if row == COLUMNS or not row:
            continue
        if len(row) != len(COLUMNS):
            problems.append(f"line {line}: a line has a name and a moment, with a comma between them")
        elif row[0] in moments:
            problems.append(f"line {line}: `{visible(row[0])}` stands here twice")
        else:
            try:
                moments[row[0]] = moment_of(row[1])
            except ValueError as error:
                problems.append(f"line {line}: {error}")
    if problems:
        raise ConfigError(path=path, message="\n".join(problems))
    return moments


def _rows(path: str) -> Iterator[tuple[int, list[str]]]:
    try:
        with naming(path), open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                yield reader.line_num, [cell.strip() for cell in row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFileError(path=path, reason="it is no CSV in UTF-8") from error


def last_change(source: str) -> datetime:
    """Return the latest time of a submission's files; of an archive, or a folder without files, its own time."""
    walked = (os.path.join(top, name) for top, _, names in os.walk(source) for name in names)
    with naming(source):
        times = [os.lstat(path).st_mtime_ns for path in islice(walked, MOST_ENTRIES)]
        latest = max(times) if times else os.lstat(source).st_mtime_ns
    return datetime.fromtimestamp(latest / 1e9, tz=UTC)


@dataclass(frozen=True, slots=True)
class Repository:
    """The git repository around a folder.

    ``changed`` are the names in the folder with changes that are in no commit, None if nothing of it is in one.
    """

    folder: str
    changed: frozenset[str] | None

    @classmethod
    def around(cls, folder: str) -> Repository:
        """Find the repository; raises UsageError if there is none, or if its older commits are missing."""
        folder = os.path.abspath(folder)
        prefix, shallow = f"{_git(folder, 'rev-parse', '--show-prefix', '--is-shallow-repository')}\n".split("\n")[:2]
        if shallow == "true":
            message = f"the git repository of {named(folder)} has not all commits, so none says when a folder arrived"
            raise UsageError(message=f"{message}\n  git fetch --unshallow")
        listing = _git(folder, "status", "--porcelain", "-z", "--untracked-files=normal", "--", ".")
        paths = list(_changed(listing.split("\0")))
        if any(prefix.startswith(path) for path in paths):
            return cls(folder, None)
        return cls(folder, frozenset(path.removeprefix(prefix).partition("/")[0] for path in paths))

    def committed(self, name: str) -> datetime:
        """Return when the last commit that changed a folder or archive was made, by its committer's clock.

        Raises ArrivalError if it has changes that are in no commit.
        """
        if self.changed is None or name in self.changed:
            raise ArrivalError(name=name, reason="has changes that are in no commit, so git does not know its time")
        found = _git(self.folder, "log", "-1", "--format=%ct", "--no-show-signature", "--", name).strip()
        if not found:
            raise ArrivalError(name=name, reason="is in no commit, so git does not know its time")
        return datetime.fromtimestamp(int(found), tz=UTC)


def _changed(entries: Sequence[str]) -> Iterator[str]:
    """Yield the paths of ``git status --porcelain -z``; after a renamed one stands its old path."""
    following = iter(entries)
    for entry in following:
        if entry:
            yield entry[3:]
            if "R" in entry[:2] or "C" in entry[:2]:
                yield next(following, "")


def _git(folder: str, *words: str) -> str:
    budget = Budget(bytes=MOST_LISTING, files=0, ends=time.monotonic() + GIT_SECONDS)
    with workspace() as place:
        words = ("--literal-pathspecs", "-C", folder, *words)
        result = run_git(words, budget, folder=os.path.join(place, "git"), max_bytes=MOST_LISTING)
    if result.status:
        raise UsageError(message=f"git does not know {named(folder)}: {visible(result.error)}")
    return result.output.decode("utf-8", "surrogateescape")
