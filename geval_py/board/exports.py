"""``geval board export`` and ``import``: a board as one archive.

An export is a tar archive with all files that a board needs elsewhere. Its last member, ``SHA256SUMS``, has the
digests of the others in the form of ``sha256sum``. An import writes the archive of the unpacked files again, so one
flipped bit anywhere is found.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
from collections.abc import Mapping
from datetime import datetime
from hashlib import file_digest, sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import IO, cast

import yaml
from sqlalchemy import Connection, Engine, LargeBinary, delete, insert, select, text

from geval_py.board.database import schema, store
from geval_py.board.operations.creation import DATABASE_FILE, scalar
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.references import expected_of
from geval_py.board.settings import BoardSettings, read_settings, read_text
from geval_py.errors import CorruptFileError, UnreadableFileError, UsageError
from geval_py.reading import challenge, compression, config, rewriting, splits
from geval_py.reading.files import find_file
from geval_py.reading.splits import find_answers
from geval_py.scoring.evaluate import find_metric
from geval_py.text import named, visible

CHALLENGE, ANSWERS = "challenge", "answers"
DIGESTS_FILE = "SHA256SUMS"
PLACES = {"challenge": CHALLENGE, "answers": ANSWERS, "database": DATABASE_FILE}  # in an export's board.yaml
MEMBER = re.compile(rf"{store.SETTINGS_FILE}|{DATABASE_FILE}|(?:{CHALLENGE}|{ANSWERS})(?:/[^/.\0][^/\0]*)+")
ROWS, LARGE_ROWS = 500, 4  # of a table that are held in memory; large ones have bytes


def export(board: store.Board, file: str, *, now: datetime) -> None:
    """Write a board as one tar archive, compressed as its ending says (.zst, .xz, .gz); it appears when complete.

    Raises StoreError, UsageError, DataError.
    """
    members = files_of(board.settings)
    content = with_values(read_text(store.settings_path(board.folder)), PLACES)
    with TemporaryDirectory(prefix="geval-board-export-", ignore_cleanup_errors=True) as place:
        members |= {name: os.path.join(place, name) for name in (store.SETTINGS_FILE, DATABASE_FILE)}
        Path(members[store.SETTINGS_FILE]).write_text(content, encoding="utf-8")
        engine = store.engine_at(members[DATABASE_FILE])
        with disclosed(board, now) as source:
            _copy_rows(source, engine)
        with store.store_errors(engine), engine.connect() as connection:
            connection.execute(text("COMMIT"))
            for statement in ("PRAGMA journal_mode = DELETE", "VACUUM"):  # so that equal rows are equal bytes
                connection.execute(text(statement))
        with rewriting.written_whole(file, compression=compression.compression_by_ending(file)) as packed:
            write_archive(cast(IO[bytes], packed), members)


def files_of(settings: BoardSettings) -> dict[str, str]:
    """Return the files that a board needs beside its database: paths, by their names in the archive.

    Raises DataError.
    """
    members: dict[str, str] = {}

    def add(place: str, path: str) -> None:
        members[f"{place}/{os.path.basename(path)}"] = path

    task = config.config_task(settings.challenge)
    for name in (challenge.README_FILE, config.CONFIG_FILE, task.in_header, task.out_header):
        path = os.path.join(settings.challenge, name or "")
        if os.path.isfile(path):
            relative = os.path.relpath(path, settings.challenge)
            if relative.startswith(os.pardir):
                reason = "it is not in the challenge's folder, and cannot be exported"
                raise UnreadableFileError(path=path, reason=reason)
            members[f"{CHALLENGE}/{relative.replace(os.sep, '/')}"] = path
    schemes = task.replace(alt_metrics=settings.metrics).schemes()
    if any(find_metric(scheme.metric).needs_vocabulary for scheme in schemes):
        words = find_answers(os.path.join(settings.challenge, splits.TRAINING_SET, splits.EXPECTED_FILE))
        if words:
            add(f"{CHALLENGE}/{splits.TRAINING_SET}", words)
    are_apart = os.path.realpath(settings.answers) != os.path.realpath(settings.challenge)
    for test in settings.tests:
        for place, folder in ((CHALLENGE, settings.challenge), (ANSWERS, settings.answers)):
            inputs = find_file(os.path.join(folder, test.name, splits.INPUT_FILE))
            if inputs is not None and (place == CHALLENGE or are_apart):
                add(f"{place}/{test.name}", inputs)
        answers = expected_of(settings.challenge, settings.answers, test.name)
        add(f"{CHALLENGE if test.visible else ANSWERS}/{test.name}", answers)
    return members


def _copy_rows(source: Connection, target: Engine) -> None:
    """Copy all rows into a new database of either kind; ids stay the same.

    Raises StoreError if the target holds submissions.
    """
    store.create_tables(target)
    with store.store_errors(target), target.begin() as connection:
        connection.execute(delete(schema.board))  # the row that every new database has
        for table in schema.METADATA.sorted_tables:
            is_large = any(isinstance(column.type, LargeBinary) for column in table.c)
            query = select(table).order_by(*table.primary_key)
            query = query.execution_options(yield_per=LARGE_ROWS if is_large else ROWS)
            for rows in source.execute(query).mappings().partitions():
                connection.execute(insert(table), [dict(row) for row in rows])
            if connection.dialect.name == "postgresql" and "id" in table.c:
                following = f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) FROM {table.name}"
                connection.execute(text(following))


def with_values(content: str, values: Mapping[str, str]) -> str:
    r"""Replace the values of some keys in a board.yaml; all else, even comments, stays.

    Missing keys are added before the first key.

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


# The archive


def write_archive(file: IO[bytes], members: Mapping[str, str]) -> dict[str, bytes]:
    """Write files, by their names in the archive, and their digests, as a tar archive; return the lines of digests.

    The same files give the same bytes. Raises OSError.
    """
    lines: dict[str, bytes] = {}
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(members):
            with open(members[name], "rb") as content:
                member = tarfile.TarInfo(name)
                member.size = os.fstat(content.fileno()).st_size
                escaped = name.replace("\\", r"\\").replace("\n", r"\n").replace("\r", r"\r")  # as sha256sum does
                mark = "" if escaped == name else "\\"
                line = f"{mark}{file_digest(content, 'sha256').hexdigest()}  {escaped}\n"
                lines[name] = line.encode("utf-8", "surrogateescape")
                content.seek(0)
                archive.addfile(member, content)
        digests = b"".join(lines.values())
        member = tarfile.TarInfo(DIGESTS_FILE)
        member.size = len(digests)
        archive.addfile(member, io.BytesIO(digests))
    return lines


def read_archive(file: str, place: str) -> str:
    """Unpack an export of a board, whose members must have known names, below an empty place; return the new folder.

    Raises UnreadableFileError and CorruptFileError for a file that is no whole export, or in which anything differs
    from what :func:`write_archive` writes.
    """
    unpacked, folder = os.path.join(place, "export.tar"), os.path.join(place, "board")
    with compression.open_unpacked(file) as opened, io.BufferedReader(opened) as stream, open(unpacked, "xb") as copy:
        shutil.copyfileobj(stream, copy)
    members: dict[str, str] = {}
    digests: bytes | None = None
    try:
        with tarfile.open(unpacked, "r:") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if member.name == DIGESTS_FILE and content is not None:
                    digests = content.read()
                    break
                if content is None or member.name in members or not MEMBER.fullmatch(member.name):
                    reason = f"it holds `{visible(member.name)}`, which an export of a board never contains"
                    raise UnreadableFileError(path=file, reason=reason)
                path = members[member.name] = os.path.join(folder, *member.name.split("/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "xb") as written:
                    shutil.copyfileobj(content, written)
    except (tarfile.TarError, ValueError) as error:
        raise CorruptFileError(path=file, compression="tar", reason=str(error)) from error
    if digests is None or not {store.SETTINGS_FILE, DATABASE_FILE} <= members.keys():
        raise UnreadableFileError(path=file, reason="it is not a complete export of a board")
    again = sha256()
    lines = write_archive(cast(IO[bytes], SimpleNamespace(write=again.update)), members)
    listed = digests.splitlines(keepends=True)
    wrong = next((name for name, line in lines.items() if line not in listed), None)
    if wrong is not None:
        reason = f"`{visible(wrong)}` does not match its digest in {DIGESTS_FILE}"
        raise CorruptFileError(path=file, compression="tar", reason=reason)
    with open(unpacked, "rb") as copy:
        if file_digest(copy, "sha256").digest() != again.digest():
            raise CorruptFileError(path=file, compression="tar", reason="it was changed after it was written")
    os.unlink(unpacked)
    return folder


# Importing


def import_board(file: str, folder: str, *, database: str | None = None) -> store.Board:
    """Rebuild a board from an export in a new folder, which appears only when it is complete.

    The rows stay in the SQLite file of the export unless another ``database`` is given. Raises UsageError if the
    folder exists; UnreadableFileError and CorruptFileError if it is not an export; StoreError.
    """
    folder = os.path.abspath(folder)
    if os.path.lexists(folder):
        raise UsageError(message=f"{named(folder)} is there already, and is left as it is\n  name another")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with TemporaryDirectory(prefix=".geval-board-import-", dir=os.path.dirname(folder)) as place:
        board = _unpacked_board(file, place)
        name = os.environ.get(store.DATABASE_VARIABLE) or database
        if name is not None:
            with board.reading() as connection:
                _copy_rows(connection, store.engine_at(store.place_of(board.folder, name)))
            for ending in ("", "-wal", "-shm"):
                if os.path.exists(board.place + ending) and name != DATABASE_FILE:
                    os.unlink(board.place + ending)
            if database is not None:
                path = Path(board.folder, store.SETTINGS_FILE)
                path.write_text(with_values(read_text(str(path)), {"database": database}), encoding="utf-8")
        os.rename(board.folder, folder)
    return store.Board.open(folder)


def _unpacked_board(file: str, place: str) -> store.Board:
    """Unpack an export, whose board.yaml must refer only to folders and a database from it."""
    folder = read_archive(file, place)
    settings = read_settings(os.path.join(folder, store.SETTINGS_FILE))
    own = (os.path.join(folder, CHALLENGE), os.path.join(folder, ANSWERS), DATABASE_FILE)
    if (settings.challenge, settings.answers, settings.database) != own:
        raise UnreadableFileError(path=file, reason="its board.yaml names folders or a database outside the export")
    board = store.Board(folder, settings, os.path.join(folder, DATABASE_FILE))
    with store.store_errors(board.engine), board.engine.connect() as connection:
        first = connection.execute(text("PRAGMA integrity_check")).scalar()
        if first != "ok" or connection.execute(text("PRAGMA foreign_key_check")).all():
            raise store.StoreError(path=file, reason=f"its database is damaged: {first}")
    store.check_schema(board.engine)
    return board
