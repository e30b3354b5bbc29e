"""``geval board backup`` and ``restore``: boards and their accounts as one archive.

A backup is a tar archive with all files that the boards need elsewhere: of each board its settings, its challenge
and answers, its database as a file of SQLite, and the key of its receipts; and the accounts. Its last member,
``SHA256SUMS``, has the digests of the others in the form of ``sha256sum``.
"""

from __future__ import annotations

import io
import os
import sqlite3
import tarfile
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

import yaml
from sqlalchemy import Connection, Engine, MetaData, delete, insert, select, text

from geval_py.board.database import schema, store
from geval_py.board.operations.creation import DATABASE_FILE, scalar
from geval_py.board.people import schema as people_schema
from geval_py.board.people.secrets import INVITATION
from geval_py.board.people.store import ACCOUNTS_FILE, AccountsDatabase, accounts_of, accounts_place
from geval_py.board.ranking.disclosure import disclosed
from geval_py.board.references import challenge_files, expected_of, public_files
from geval_py.board.settings import BoardSettings, read_settings, read_text
from geval_py.errors import CorruptFileError, UnreadableFileError, UsageError
from geval_py.reading import compression, rewriting, splits
from geval_py.reading.files import find_file
from geval_py.text import named, visible

CHALLENGE, ANSWERS = "challenge", "answers"
DIGESTS_FILE = "SHA256SUMS"
KEY_FILE = "receipt.key"  # that of board.server.signed_receipts, which needs more packages
PLACES = {"challenge": CHALLENGE, "answers": ANSWERS, "database": DATABASE_FILE}  # in a backup's board.yaml
ROWS = 20  # of a table that are held in memory, some of which have 4 MB


def back_up(folder: str | os.PathLike[str], file: str, *, now: datetime) -> None:
    """Write a board, or a folder of several, as one tar archive, compressed as its ending says (.zst, .xz, .gz).

    It appears when complete. Each database is in it as at one moment, whatever is written meanwhile. Raises
    StoreError, UsageError, DataError.
    """
    folder, members = os.fspath(folder), dict[str, str]()
    boards = store.boards_in(folder)
    with TemporaryDirectory(prefix="geval-board-backup-", ignore_cleanup_errors=True) as place:

        def add_rows(name: str, source: Connection, tables: MetaData) -> None:
            members[name] = os.path.join(place, f"{len(members)}.sqlite")
            _copy_rows(source, store.engine_at(members[name]), tables)
            with closing(sqlite3.connect(members[name], isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("VACUUM")  # so that equal rows are equal bytes

        accounts: dict[str, store.Board] = {}
        for path in boards or [folder]:
            board, below = store.Board.open(path), f"{os.path.basename(path)}/" if boards else ""
            content = with_values(read_text(store.settings_path(path)), PLACES)
            settings_file = members[below + store.SETTINGS_FILE] = os.path.join(place, f"{len(members)}.yaml")
            Path(settings_file).write_text(content, encoding="utf-8")
            members |= {below + name: source for name, source in files_of(board.settings).items()}
            if os.path.isfile(key := os.path.join(path, KEY_FILE)):
                members[below + KEY_FILE] = key
            with disclosed(board, now) as source:
                add_rows(below + DATABASE_FILE, source, schema.METADATA)
            accounts[accounts_place(path, board.settings)] = board
        for board in accounts.values():
            with accounts_of(board).reading() as people:
                below = f"{os.path.basename(board.folder)}/" if len(accounts) > 1 else ""
                add_rows(below + ACCOUNTS_FILE, people.connection, people_schema.METADATA)
        with rewriting.written_whole(file, compression=compression.compression_by_ending(file)) as packed:
            write_archive(cast(IO[bytes], packed), members)


def files_of(settings: BoardSettings) -> dict[str, str]:
    """Return the files that a board needs beside its database: paths, by their names in the archive.

    The input of the training set is among them only if the site offers it. Raises DataError.
    """
    folders = {CHALLENGE: settings.challenge}
    if os.path.realpath(settings.answers) != os.path.realpath(settings.challenge):
        folders[ANSWERS] = settings.answers
    training = find_file(os.path.join(settings.challenge, splits.TRAINING_SET, splits.INPUT_FILE))
    left_out = {training} - set(public_files(settings).values())
    members: dict[str, str] = {}
    for place, folder in folders.items():
        for path in challenge_files(settings, folder):
            name = os.path.relpath(path, folder)
            if name.startswith(os.pardir):
                raise UnreadableFileError(path=path, reason=f"it is not in {named(folder)}, and cannot be backed up")
            if path not in left_out:
                members[f"{place}/{name.replace(os.sep, '/')}"] = path
    for test in settings.tests:
        expected_of(settings.challenge, settings.answers, test.name)  # is an error if they are missing
    return members


def _copy_rows(source: Connection, target: Engine, tables: MetaData) -> None:
    """Copy all rows of some tables into a new database of either kind; ids stay the same.

    Links are left out: one that is used after a backup would work again. Raises StoreError if the target holds
    submissions.
    """
    if tables is schema.METADATA:
        store.create_tables(target)
    with store.transaction(target) as connection:
        if tables is schema.METADATA:
            connection.execute(delete(schema.board))  # the row that every new database has
        else:
            tables.create_all(connection)
        for table in tables.sorted_tables:
            query = select(table).order_by(*table.primary_key).execution_options(yield_per=ROWS)
            if table is people_schema.secrets:
                query = query.where(table.c.kind != INVITATION)
            for rows in source.execute(query).mappings().partitions():
                connection.execute(insert(table), [dict(row) for row in rows])
            has_numbers = "id" in table.c and table.c.id.type.python_type is int
            if connection.dialect.name == "postgresql" and has_numbers:
                connection.execute(
                    text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) FROM {table.name}")
                )


def with_values(content: str, values: Mapping[str, str]) -> str:
    r"""Replace the values of some keys in a board.yaml; all else, even comments, stays.

    Missing keys are added before the first key.

    >>> with_values("a: 1 # one\nb: x", {"a": "two", "c": "three"})
    'c: three\na: two # one\nb: x'
    """
    root: Any = yaml.compose(content, Loader=yaml.SafeLoader)
    missing = dict(values)
    for key, value in reversed(root.value):
        if key.value in values:
            start, end = value.start_mark.index, value.end_mark.index
            content = content[:start] + scalar(missing.pop(key.value)) + content[end:]
    first = root.start_mark.index
    new = "".join(f"{key}: {scalar(value)}\n" for key, value in missing.items())
    return content[:first] + new + content[first:]


# The archive


def write_archive(file: IO[bytes], members: Mapping[str, str]) -> None:
    """Write files, by their names in the archive, and their digests, as a tar archive that only its owner may read.

    The same files give the same bytes. Raises OSError.
    """
    digests = b""
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:

        def add(name: str, content: IO[bytes], size: int) -> None:
            member = tarfile.TarInfo(name)
            member.size, member.mode = size, 0o600
            archive.addfile(member, content)

        for name in sorted(members):
            with open(members[name], "rb") as content:
                digests += _digest_line(name, content)
                content.seek(0)
                add(name, content, os.fstat(content.fileno()).st_size)
        add(DIGESTS_FILE, io.BytesIO(digests), len(digests))


def _digest_line(name: str, content: IO[bytes]) -> bytes:
    """Return the line of ``sha256sum`` for a file."""
    digest = file_digest(cast(io.BufferedReader, content), "sha256").hexdigest()
    return f"{digest}  {name}\n".encode("utf-8", "surrogateescape")


# Restoring


def restore(file: str, folder: str, *, database: str | None = None) -> list[store.Board]:
    """Rebuild the boards of a backup, and their accounts, in a new folder, which appears only when it is complete.

    The rows of a single board stay in the SQLite files of the backup unless another ``database`` is given. Raises
    UsageError if the folder exists; UnreadableFileError and CorruptFileError if it is no backup; StoreError.
    """
    folder = os.path.abspath(folder)
    if os.path.lexists(folder):
        raise UsageError(f"{named(folder)} is there already, and is left as it is\n  name another")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with TemporaryDirectory(prefix=".geval-board-restore-", dir=os.path.dirname(folder)) as place:
        new = os.path.join(place, "new")
        _unpack(file, new)
        boards = store.boards_in(new)
        for path in boards or [new]:
            _check_board(file, path)
        target = database or os.environ.get(store.DATABASE_VARIABLE, "")
        if "://" in target and not boards:
            _move_rows(new, target)
        elif database:
            raise UsageError("--database needs the URL of a PostgreSQL database, and a backup of one board")
        if database:
            settings = Path(new, store.SETTINGS_FILE)
            settings.write_text(with_values(read_text(str(settings)), {"database": database}), encoding="utf-8")
        os.rename(new, folder)
    return [store.Board.open(path) for path in store.boards_in(folder) or [folder]]


def _unpack(file: str, folder: str) -> None:
    """Unpack a backup into a new folder, and compare the digests of its files."""
    try:
        with (
            compression.open_unpacked(file) as opened,
            io.BufferedReader(opened) as stream,
            tarfile.open(fileobj=stream, mode="r|") as archive,
        ):
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, ValueError) as error:
        raise CorruptFileError(path=file, compression="tar", reason=str(error)) from error
    digests = Path(folder, DIGESTS_FILE)
    listed = digests.read_bytes().splitlines(keepends=True) if digests.is_file() else []
    digests.unlink(missing_ok=True)
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    for path in paths:
        name = path.relative_to(folder).as_posix()
        with open(path, "rb") as content:
            if _digest_line(name, content) not in listed:
                raise CorruptFileError(
                    path=file,
                    compression="tar",
                    reason=f"`{visible(name)}` does not match its digest in {DIGESTS_FILE}",
                )
    if len(paths) < max(1, len(listed)):
        raise CorruptFileError(path=file, compression="tar", reason="files are missing")


def _check_board(file: str, folder: str) -> None:
    """Check that a board.yaml refers only to what is in its backup, and that there is a database."""
    if not {store.SETTINGS_FILE, DATABASE_FILE} <= set(os.listdir(folder)):
        raise UnreadableFileError(path=file, reason="it is not a complete backup of a board")
    settings = read_settings(os.path.join(folder, store.SETTINGS_FILE))
    own = (os.path.join(folder, CHALLENGE), os.path.join(folder, ANSWERS), DATABASE_FILE)
    if (settings.challenge, settings.answers, settings.database) != own:
        raise UnreadableFileError(path=file, reason="its board.yaml names folders or a database outside the backup")
    store.check_schema(store.engine_at(os.path.join(folder, DATABASE_FILE)))


def _move_rows(folder: str, target: str) -> None:
    """Move the rows of a board and its accounts into the database with a URL."""
    for file, tables in ((DATABASE_FILE, schema.METADATA), (ACCOUNTS_FILE, people_schema.METADATA)):
        path = os.path.join(folder, file)
        if os.path.isfile(path):
            with AccountsDatabase(path).reading() as connection:
                _copy_rows(connection, store.engine_at(target), tables)
            os.unlink(path)
