"""``geval board export`` and ``import``: a board as one archive, with all that it takes to rebuild it elsewhere.

    board.yaml      its folders and its database named as they are in the archive
    board.sqlite    the database, also where it was PostgreSQL
    challenge/…     README.md, config.txt, headers, and of each test set its input, and its answers if it is visible
    answers/…       the hidden answers

What is for the public has board.json in place of board.yaml, and no answers. Equal boards give equal archives: names
are in order, and members have no time, user or mode of their own.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, cast

import yaml
from sqlalchemy import text

from geval_py.board.keeping.creating import DATABASE_FILE, scalar
from geval_py.board.publishing.contents import ANSWERS, CHALLENGE, files_of
from geval_py.board.publishing.public import LEFT_OUT, public_document, publish
from geval_py.board.ranking.disclosing import ensure_disclosed
from geval_py.board.settings import read_settings, read_text
from geval_py.board.storing.copying import copy_database
from geval_py.board.storing.store import (
    DATABASE_VARIABLE,
    SETTINGS_FILE,
    Board,
    StoreError,
    engine_at,
    said,
    settings_path,
)
from geval_py.errors import CorruptFileError, UnreadableFileError, UsageError
from geval_py.reading.compression import compression_by_ending
from geval_py.reading.rewriting import written_whole
from geval_py.reading.sources import Source
from geval_py.showing.json import json_text
from geval_py.text import named, visible

if TYPE_CHECKING:
    from sqlalchemy import Engine

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
        with said(engine), engine.begin() as connection:
            publish(connection)
    with said(engine), engine.connect() as connection:
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
    with said(engine), engine.connect() as connection:
        found = [row[0] for row in connection.execute(text("PRAGMA integrity_check"))]
        broken = connection.execute(text("PRAGMA foreign_key_check")).all()
    if found != ["ok"] or broken:
        raise StoreError(path=file, reason=f"its database is damaged: {found[0]}")


def _move_database(folder: str, place: str, written: str | None) -> None:
    """Copy the rows into another database, which board.yaml names from then on if it was asked for."""
    here = engine_at(folder, DATABASE_FILE)
    with said(here), here.connect() as connection:
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
