"""Which files of a challenge belong to a board that is to be rebuilt elsewhere."""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, cast

import sqlalchemy
import yaml
from sqlalchemy import String, delete, select, text, union, update

from geval_py.board.answers import expected_of
from geval_py.board.database.schema import disclosures, evaluations, files, outputs, scores, submissions, submitters
from geval_py.board.database.store import (
    DATABASE_VARIABLE,
    SETTINGS_FILE,
    Board,
    StoreError,
    copy_database,
    engine_at,
    settings_path,
    store_errors,
)
from geval_py.board.operations.creation import DATABASE_FILE, scalar
from geval_py.board.ranking.disclosure import ensure_disclosed
from geval_py.board.settings import read_settings, read_text
from geval_py.errors import CorruptFileError, UnreadableFileError, UsageError
from geval_py.reading.challenge import README_FILE
from geval_py.reading.compression import compression_by_ending
from geval_py.reading.config import CONFIG_FILE, config_task
from geval_py.reading.rewriting import written_whole
from geval_py.reading.sources import Source, find_file
from geval_py.reading.splits import EXPECTED_FILE, INPUT_FILE, TRAINING_SET
from geval_py.scoring.metrics import find_metric
from geval_py.tables.escapes import json_text
from geval_py.text import named, visible

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from geval_py.board.settings import Settings


CHALLENGE, ANSWERS = "challenge", "answers"


def files_of(settings: Settings, *, public: bool) -> dict[str, str]:
    """Give the names in an archive, in order, and the paths, of all that a board needs beside its database.

    What is for the ``public`` has the answers of visible tests alone, and nothing out of the folder of the answers.
    Raises DataError.
    """
    found = dict(_of_challenge(settings))
    for test in settings.tests:
        found |= dict(_of_test(settings, test.name))
        if test.visible or not public:
            own = find_file(os.path.join(settings.challenge, test.name, EXPECTED_FILE)) if public else None
            path = own or expected_of(settings.challenge, settings.answers, test.name)
            place = CHALLENGE if test.visible else ANSWERS
            found[f"{place}/{test.name}/{os.path.basename(path)}"] = path
    if public:
        found = {name: path for name, path in found.items() if not _is_hidden(settings, path)}
    return dict(sorted(found.items()))


def _of_challenge(settings: Settings) -> Iterator[tuple[str, str]]:
    task = config_task(settings.challenge)
    named = [name for name in (task.in_header, task.out_header) if name]
    for name in (README_FILE, CONFIG_FILE, *named):
        path = os.path.join(settings.challenge, name)
        if os.path.isfile(path):
            yield f"{CHALLENGE}/{_below(settings.challenge, path)}", path
    words = task.replace(alt_metrics=settings.metrics)
    if any(find_metric(scheme.metric).needs_vocabulary for scheme in words.schemes()):
        path = find_file(os.path.join(settings.challenge, TRAINING_SET, EXPECTED_FILE)) or ""
        if path:
            yield f"{CHALLENGE}/{TRAINING_SET}/{os.path.basename(path)}", path


def _of_test(settings: Settings, test: str) -> Iterator[tuple[str, str]]:
    for place, folder in ((CHALLENGE, settings.challenge), (ANSWERS, settings.answers)):
        path = find_file(os.path.join(folder, test, INPUT_FILE))
        if path is not None and (place == CHALLENGE or not _is_same(folder, settings.challenge)):
            yield f"{place}/{test}/{os.path.basename(path)}", path


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is_hidden(settings: Settings, path: str) -> bool:
    """Tell whether a file lies in the folder of the answers, unless it is of a challenge that lies in it too."""
    holds_challenge = _is_below(settings.answers, settings.challenge)
    return _is_below(settings.answers, path) and not (holds_challenge and _is_below(settings.challenge, path))


def _is_below(folder: str, path: str) -> bool:
    folder, path = os.path.realpath(folder), os.path.realpath(path)
    return os.path.commonpath([folder, path]) == folder


def _below(folder: str, path: str) -> str:
    """Name a file below a folder; raises UnreadableFileError for one that is elsewhere."""
    relative = os.path.relpath(path, folder)
    if relative.startswith(os.pardir):
        raise UnreadableFileError(path=path, reason="it is not in the challenge's folder, and cannot be exported")
    return relative.replace(os.sep, "/")


# A copy of a board's database for the public: what may be shown, and nothing else that was made from the answers.


# Not copied: the submitted files, what the comparisons say beyond the disclosed digits, what was before, and facts
# such as paths of this machine.
LEFT_OUT = ("blobs", "comparisons", "exchanges", "history", "facts")


def publish(connection: Connection) -> None:
    """Take away what was withdrawn, scores beyond what is disclosed, and where submissions came from."""
    hidden = select(submissions.c.id).where(submissions.c.withdrawn.is_not(None))
    of_hidden = select(outputs.c.id).where(outputs.c.submission_id.in_(hidden))
    for table in (disclosures, scores):
        connection.execute(delete(table).where(table.c.output_id.in_(of_hidden)))
    for table in (outputs, files):
        connection.execute(delete(table).where(table.c.submission_id.in_(hidden)))
    connection.execute(delete(submissions).where(submissions.c.withdrawn.is_not(None)))
    connection.execute(delete(submitters).where(submitters.c.id.not_in(select(submissions.c.submitter_id))))
    connection.execute(update(submissions).values(source="", charge="", charged=False))
    _blank_evaluations(connection)


def _blank_evaluations(connection: Connection) -> None:
    """Leave of the evaluations that they are there: neither figures nor digests of the answers."""
    used = union(select(scores.c.evaluation_id), select(disclosures.c.evaluation_id))
    connection.execute(delete(evaluations).where(evaluations.c.id.not_in(used)))
    blank = {"score": None, "low": None, "high": None, "losses": None, "signature": ""}
    connection.execute(update(evaluations).values(blank | {"reference": sqlalchemy.cast(evaluations.c.id, String)}))


def public_document(settings: Settings) -> dict[str, Any]:
    """Give what may be known of board.yaml."""
    tests = {
        test.name: {"visible": test.visible, "disclosed": test.disclosed, "disclosed_after": test.disclosed_after}
        for test in settings.tests
    }
    return {
        "title": settings.title,
        "metric": settings.metric,
        "also": settings.also,
        "tests": tests,
        "phases": [{"name": phase.name, "until": phase.until.isoformat()} for phase in settings.phases],
        "zone": str(settings.zone),
        "submissions_a_day": settings.submissions_a_day,
        "entries": settings.entries,
    }


# ``geval board export`` and ``import``: a board as one archive, with all that it takes to rebuild it elsewhere.


PUBLIC_FILE = "board.json"
PLACES = {"challenge": CHALLENGE, "answers": ANSWERS, "database": DATABASE_FILE}
PLACE_BEGINNING = "geval-board-"
_MEMBER = re.compile(rf"{SETTINGS_FILE}|{DATABASE_FILE}|(?:{CHALLENGE}|{ANSWERS})(?:/[^/.\0][^/\0]*)+")


def export(board: Board, file: str, *, now: datetime, public: bool = False) -> None:
    """Write a board as one tar archive, packed as its ending says (.zst, .xz, .gz); it is there when all is written.

    What is for the ``public`` has no answers, no submitted files, nothing of submissions that were withdrawn, and of
    scores and comparisons no more than what is disclosed now. Raises StoreError, UsageError, DataError.
    """
    ensure_disclosed(board, now)
    members = files_of(board.settings, public=public)
    with TemporaryDirectory(prefix=PLACE_BEGINNING) as place:
        members[DATABASE_FILE] = _copy(board, place, public=public)
        name, content = _settings(board, public=public)
        members[name] = os.path.join(place, name)
        with open(members[name], "w", encoding="utf-8") as written:
            written.write(content)
        with written_whole(file, compression=compression_by_ending(file)) as packed:
            _write_tar(cast(IO[bytes], packed), members)


def _copy(board: Board, place: str, *, public: bool) -> str:
    """Copy the database into a file of SQLite, whose path is given back."""
    engine = engine_at(place, DATABASE_FILE)
    with board.reading() as source:
        copy_database(source, engine, without=LEFT_OUT if public else ())
    if public:
        with store_errors(engine), engine.begin() as connection:
            publish(connection)
    with store_errors(engine), engine.connect() as connection:
        connection.execute(text("COMMIT"))
        for statement in ("PRAGMA journal_mode = DELETE", "VACUUM"):  # nothing of what was deleted is left in it
            connection.execute(text(statement))
    return os.path.join(place, DATABASE_FILE)


def _settings(board: Board, *, public: bool) -> tuple[str, str]:
    """Give the name and the content of what is said of the settings."""
    if public:
        return PUBLIC_FILE, json_text(public_document(board.settings))
    content = read_text(settings_path(board.folder))
    return SETTINGS_FILE, with_values(content, PLACES)


def with_values(content: str, values: dict[str, str]) -> str:
    r"""Give a board.yaml other values for some of its keys; all else, comments too, stays as it is.

    What is missing is put before the first key.

    >>> with_values("a: 1 # one\nb: x", {"a": "two", "c": "three"})
    'c: three\na: two # one\nb: x'
    """
    root = yaml.compose(content, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return content
    pairs = [(str(key.value), value) for key, value in root.value]
    for key, value in reversed(pairs):
        if key in values:
            start, end = value.start_mark.index, value.end_mark.index
            content = content[:start] + scalar(values[key]) + content[end:]
    between = ", " if root.flow_style else "\n" + " " * root.start_mark.column
    missing = values.keys() - dict(pairs).keys()
    new = "".join(f"{key}: {scalar(values[key])}{between}" for key in sorted(missing))
    first = root.start_mark.index + bool(root.flow_style)
    return content[:first] + new + content[first:]


def _write_tar(file: IO[bytes], members: dict[str, str]) -> None:
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(members):
            with open(members[name], "rb") as content:
                member = tarfile.TarInfo(name)
                member.size = os.fstat(content.fileno()).st_size
                archive.addfile(member, content)


def import_board(file: str, folder: str, *, database: str | None = None) -> Board:
    """Make a board of an export, in a new folder, and in a database: by default the file that came with it.

    The folder is there when all is done. Raises UsageError where there is something of its name, or where the archive
    is for the public; UnreadableFileError and CorruptFileError for what is no export; StoreError.
    """
    folder = os.path.abspath(folder)
    if os.path.lexists(folder):
        raise UsageError(message=f"{named(folder)} is there already, and is left as it is\n  name another")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with TemporaryDirectory(prefix=".geval-", dir=os.path.dirname(folder)) as place:
        new = os.path.join(place, "board")
        _read_tar(file, new)
        _use_own_places(new, file)
        _check_database(engine_at(new, DATABASE_FILE), file)
        place_of_rows = os.environ.get(DATABASE_VARIABLE) or database
        if place_of_rows is not None:
            _move_database(new, place_of_rows, database)
        os.rename(new, folder)
    return Board.open(folder)


def _read_tar(file: str, folder: str) -> None:
    """Copy the members of an archive, which must be regular files of known names, into a new folder."""
    seen: set[str] = set()
    source = Source(file, None)
    try:
        with tarfile.open(fileobj=io.BufferedReader(source.stream), mode="r|") as archive:
            for member in archive:
                _check_member(file, member, seen)
                content = archive.extractfile(member)
                path = os.path.join(folder, *member.name.split("/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "xb") as copy:
                    shutil.copyfileobj(cast(IO[bytes], content), copy)
    except tarfile.TarError as error:
        raise CorruptFileError(path=file, compression="tar", reason=str(error)) from error
    finally:
        source.close()
    if not {SETTINGS_FILE, DATABASE_FILE} <= seen:
        raise UnreadableFileError(path=file, reason="it is no export of a board, or not all of one")


def _check_member(file: str, member: tarfile.TarInfo, seen: set[str]) -> None:
    if member.name == PUBLIC_FILE:
        raise UsageError(
            message=f"{named(file)} is for the public: it has neither answers nor files to make a board of"
        )
    if not member.isreg() or member.name in seen or not _MEMBER.fullmatch(member.name):
        raise UnreadableFileError(path=file, reason=f"it holds `{visible(member.name)}`, and no export does")
    seen.add(member.name)


def _use_own_places(folder: str, file: str) -> None:
    """Let a board.yaml that came with an archive name nothing but what came with it too."""
    path = os.path.join(folder, SETTINGS_FILE)
    read_settings(path)
    content = with_values(read_text(path), PLACES)
    with open(path, "w", encoding="utf-8") as written:
        written.write(content)
    settings = read_settings(path)
    found = [getattr(settings, key) for key in PLACES]
    if found != [os.path.join(folder, CHALLENGE), os.path.join(folder, ANSWERS), DATABASE_FILE]:
        raise UnreadableFileError(path=file, reason="its board.yaml names folders or a database that are not its own")


def _check_database(engine: Engine, file: str) -> None:
    with store_errors(engine), engine.connect() as connection:
        found = [row[0] for row in connection.execute(text("PRAGMA integrity_check"))]
        broken = connection.execute(text("PRAGMA foreign_key_check")).all()
    if found != ["ok"] or broken:
        raise StoreError(path=file, reason=f"its database is damaged: {found[0]}")


def _move_database(folder: str, place: str, written: str | None) -> None:
    """Copy the rows into another database, which board.yaml names from then on if it was asked for."""
    here = engine_at(folder, DATABASE_FILE)
    with store_errors(here), here.connect() as connection:
        copy_database(connection, engine_at(folder, place))
    for ending in ("", "-wal", "-shm"):
        path = os.path.join(folder, DATABASE_FILE + ending)
        if os.path.exists(path) and place != DATABASE_FILE:
            os.unlink(path)
    if written is not None:
        path = os.path.join(folder, SETTINGS_FILE)
        content = with_values(read_text(path), {"database": written})
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
