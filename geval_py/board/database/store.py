"""The database of a board: connections, transactions, single facts, and the content of files.

A content is stored once, under its sha256, compressed by Zstandard as one stream and cut into parts: a database wants
a value whole in memory, so the parts are small.
"""

from __future__ import annotations

import io
import os
import pathlib
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from geval_py.board.database.schema import METADATA, SCHEMA_VERSION, blobs, facts
from geval_py.board.settings import Settings, read_settings
from geval_py.errors import CorruptFileError, DataError, MissingFileError, UsageError
from geval_py.reading.compression import COMPRESSIONS, Decompressed, compressor
from geval_py.text import named, visible
from geval_py.version import installs

SETTINGS_FILE = "board.yaml"
DATABASE_VARIABLE = "GEVAL_BOARD_DATABASE"
CREATED = "created"  # facts: when the board was made
AFFILIATION = "affiliation "  # facts: the affiliation in a gonito.yaml, by the id of a submission
BUSY_SECONDS = 60  # that a writer waits for another
BUSY_MILLISECONDS = 200  # that SQLite waits at once
LOCK = 0x67657661_6C626F61  # of writers on PostgreSQL: "gevalboa", a number that nobody else uses by chance


class StoreError(DataError):
    """The database cannot be used, or is full; ``reason`` is its own error message."""

    reason: str

    def __str__(self) -> str:
        return f"Cannot use the board's database {named(self.path)}: {visible(self.reason)}"


@dataclass(frozen=True, slots=True)
class Board:
    """An open board: the folder with board.yaml, the settings, and the database."""

    folder: str
    settings: Settings
    engine: sa.Engine

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Board:
        """Open a board; raises MissingFileError, ConfigError, StoreError, UsageError for a newer schema."""
        folder = os.fspath(folder)
        settings = read_settings(settings_path(folder))
        engine = engine_of(folder, settings)
        check_schema(engine)
        return cls(folder, settings, engine)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read one state of the database, whatever others write meanwhile; raises StoreError."""
        with store_errors(self.engine), self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
            yield connection

    @contextmanager
    def writing(self, seconds: float | None = None) -> Iterator[sa.Connection]:
        """Run the block as one transaction, which is undone if the block raises an error; raises StoreError.

        On SQLite another writer is waited for a minute or, if given, fewer seconds.
        """
        with store_errors(self.engine), self.engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.execute(sa.text("ROLLBACK"))
                _begin_immediate(connection, BUSY_SECONDS if seconds is None else seconds)
            else:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield connection
            connection.commit()


def settings_path(folder: str) -> str:
    """Return the path of a board's settings; raises MissingFileError."""
    path = os.path.join(folder, SETTINGS_FILE)
    if not os.path.isfile(path):
        raise MissingFileError(what="No board", path=path, hint="geval board init BOARD --challenge DIR makes one")
    return path


def engine_of(folder: str, settings: Settings) -> sa.Engine:
    """Make the engine of a board's database; raises as :func:`engine_at`."""
    return engine_at(folder, os.environ.get(DATABASE_VARIABLE) or settings.database)


def engine_at(folder: str, place: str) -> sa.Engine:
    """Make the engine of a database: a file, relative to a folder, or a URL.

    Raises UsageError for a malformed URL, and if the driver of the database is not installed.
    """
    url = place if "://" in place else f"sqlite:///{os.path.abspath(os.path.join(folder, place))}"
    if url.startswith(("postgresql://", "postgres://")):
        url = "postgresql+psycopg://" + url.partition("://")[2]
    try:
        return _engine(url)
    except ModuleNotFoundError as error:
        message = f"the board's database needs {error.name}: {installs('postgresql')}"
        raise UsageError(message=message) from error
    except (sa.exc.ArgumentError, ValueError):
        form = "the board's database is neither a file nor a URL such as postgresql://user@host/name"
        message = f"{form}: {_without_password(place)}"
        raise UsageError(message=visible(message)) from None


@lru_cache(maxsize=64)
def _engine(url: str) -> sa.Engine:
    """Make the engine of a URL. It is kept, with the statements it has compiled; connections are not."""
    arguments = {"timeout": BUSY_SECONDS} if url.startswith("sqlite") else {"connect_timeout": 10}
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args=arguments)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "do_connect", _connect_to_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _without_password(place: str) -> str:
    """Remove from a malformed URL the login, and the query, which may hold a password."""
    scheme, separator, rest = place.partition("://")
    login, at, address = rest.rpartition("@")
    known = "…" if "?" in login else ("…@" if at else "") + address.partition("?")[0]
    return scheme + separator + known


def _connect_to_sqlite(dialect: sa.Dialect, _: object, where: Any, how: Any) -> sqlite3.Connection:
    """Connect; if a full disk has no room for the memory that connections share, connect without it.

    If the database cannot be written, connect for reading.
    """
    try:
        return _prepared(dialect.connect(*where, **how), "NORMAL")
    except sqlite3.OperationalError as error:
        code = error.sqlite_errorcode & 0xFF
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) and os.path.isfile(where[0]):
            return _for_reading(where[0], how)
        if code not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
            raise
        return _prepared(dialect.connect(*where, **how), "EXCLUSIVE")


class ReadOnlyConnection(sqlite3.Connection):
    """A connection to a database that cannot be written; only temporary tables can be made, in memory."""


def _for_reading(path: str, how: Mapping[str, Any]) -> sqlite3.Connection:
    """Connect for reading; raises the error of SQLite if another process had not finished writing.

    SQLite wants to write the memory that connections share, unless nobody writes: then there is no log beside the
    database.
    """
    log = f"{path}-wal"
    nobody_writes = not os.path.exists(log) or os.path.getsize(log) == 0
    name = f"{pathlib.Path(path).as_uri()}?mode=ro{'&immutable=1' if nobody_writes else ''}"
    connection = sqlite3.connect(name, **how, uri=True, factory=ReadOnlyConnection)
    connection.isolation_level = None
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def is_read_only(connection: sa.Connection) -> bool:
    """Whether the database of a connection is SQLite's and cannot be written."""
    return isinstance(connection.connection.dbapi_connection, ReadOnlyConnection)


def shadow(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    """Put copies in memory in the place of some tables, for this connection to a read-only database."""
    written = sa.text("SELECT sql FROM main.sqlite_master WHERE name = :name")
    for table in tables:
        created = connection.execute(written, {"name": table.name}).scalar_one()
        connection.exec_driver_sql(created.replace("CREATE TABLE", "CREATE TEMPORARY TABLE", 1))
        connection.execute(sa.text(f"INSERT INTO temp.{table.name} SELECT * FROM main.{table.name}"))


def _prepared(connected: Any, locking: str) -> sqlite3.Connection:
    connection: sqlite3.Connection = connected
    connection.isolation_level = None  # we begin transactions, not the driver
    try:
        connection.execute(f"PRAGMA locking_mode = {locking}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_immediate(connection: sa.Connection, seconds: float) -> None:
    """Begin to write; SQLite itself waits only for moments, as no signal is handled meanwhile."""
    ends = time.monotonic() + seconds
    connection.execute(sa.text(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}"))
    while True:
        try:
            connection.execute(sa.text("BEGIN IMMEDIATE"))
        except sa.exc.OperationalError as error:
            if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
        else:
            break
    connection.execute(sa.text(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}"))


def check_schema(engine: sa.Engine) -> None:
    """Migrate an older database; raises UsageError for a newer one, StoreError for another."""
    with store_errors(engine), engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        version = None
        if "alembic_version" in tables:
            version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    if version is None:
        raise StoreError(path=shown(engine), reason="it holds no board")
    if version > SCHEMA_VERSION:
        message = f"the board's database was made by a newer geval-py (schema {visible(version)})\n  upgrade geval-py"
        raise UsageError(message=message)
    if version < SCHEMA_VERSION:
        migrate(engine)


def migrate(engine: sa.Engine) -> None:
    """Bring an empty database, or one of an earlier version, to the schema of this version; raises StoreError."""
    from geval_py.board.database.migrations import upgrade

    with store_errors(engine), engine.begin() as connection:
        upgrade(connection)


@contextmanager
def store_errors(engine: sa.Engine) -> Iterator[None]:
    """Raise the errors of a database as StoreError, which names it without its password."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        reason = str(error.orig).partition("\n")[0]
        raise StoreError(path=shown(engine), reason=reason) from error


def shown(engine: sa.Engine) -> str:
    """Return the path or URL of a database, without its password and query, which may hold one."""
    url = engine.url.set(query={})
    return str(url.database) if url.drivername.startswith("sqlite") else url.render_as_string(hide_password=True)


# Single facts, by their names.


def remember(connection: sa.Connection, name: str, value: str) -> None:
    """Store a fact; replace an earlier value."""
    forget(connection, name)
    connection.execute(sa.insert(facts).values(name=name, value=value))


def forget(connection: sa.Connection, name: str) -> None:
    """Delete a fact, if it is there."""
    connection.execute(sa.delete(facts).where(facts.c.name == name))


def facts_about(connection: sa.Connection, beginning: str) -> dict[str, str]:
    """Return the facts whose names have this beginning, by the rest of their names."""
    rows = connection.execute(sa.select(facts.c.name, facts.c.value).where(facts.c.name.startswith(beginning)))
    return {name.removeprefix(beginning): value for name, value in rows}


# The content of files.


PART_BYTES = 4_000_000
CHUNK_BYTES = 1 << 20
PACKED_ENDING = ".packed"
(ZSTD,) = (compression for compression in COMPRESSIONS if compression.name == "zstd")


def pack_file(path: str) -> str:
    """Compress a file into one beside it, and return its path; raises OSError."""
    packed = path + PACKED_ENDING
    with open(path, "rb") as file, open(packed, "wb") as new, compressor(new, ZSTD.name) as stream:
        while chunk := file.read(CHUNK_BYTES):
            stream.write(chunk)
    return packed


def store_content(connection: sa.Connection, digest: str, packed: str) -> None:
    """Store a compressed file as the content with a digest, unless the content is there."""
    if is_stored(connection, digest):
        return
    with open(packed, "rb") as file:
        for part, data in enumerate(iter(lambda: file.read(PART_BYTES), b"")):
            connection.execute(sa.insert(blobs).values(sha256=digest, part=part, data=data))


def is_stored(connection: sa.Connection, digest: str) -> bool:
    """Whether the content with a digest is stored."""
    return connection.execute(sa.select(blobs.c.part).where(blobs.c.sha256 == digest).limit(1)).first() is not None


def write_content(connection: sa.Connection, digest: str, path: str) -> None:
    """Write a content, decompressed, into a new file; raises StoreError if it is damaged, OSError."""
    damaged = StoreError(path=connection.engine.url.database or "", reason=f"the content {digest} is damaged in it")
    found = sha256()
    stream = Decompressed(_Parts(connection, digest), ZSTD, path, None)
    with open(path, "xb") as file, io.BufferedReader(stream, CHUNK_BYTES) as reader:
        try:
            while chunk := reader.read(CHUNK_BYTES):
                found.update(chunk)
                file.write(chunk)
        except CorruptFileError as error:
            raise damaged from error
    if found.hexdigest() != digest:
        raise damaged


class _Parts:
    """The parts of a content as one stream."""

    def __init__(self, connection: sa.Connection, digest: str) -> None:
        self._parts = self._read(connection, digest)
        self._left = b""

    @staticmethod
    def _read(connection: sa.Connection, digest: str) -> Iterator[bytes]:
        part = 0
        while found := connection.execute(
            sa.select(blobs.c.data).where(blobs.c.sha256 == digest, blobs.c.part == part)
        ).first():
            yield bytes(found[0])
            part += 1

    def read(self, size: int = -1, /) -> bytes:
        if not self._left:
            self._left = next(self._parts, b"")
        taken = self._left if size < 0 else self._left[:size]
        self._left = self._left[len(taken) :]
        return taken


def escape_unstorable(value: Any) -> Any:
    r"""Escape NUL and lone surrogates, which no database stores, in strangers' texts at any depth.

    >>> escape_unstorable({"a\0": ["\udc80", 1]})
    {'a\\x00': ['\\udc80', 1]}
    """
    if isinstance(value, str):
        return value.replace("\0", r"\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {escape_unstorable(key): escape_unstorable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [escape_unstorable(item) for item in value]
    return value


ROWS, LARGE_ROWS = 500, 4  # held in memory by copy_database


def copy_database(source: sa.Connection, target: sa.Engine, *, without: Collection[str] = ()) -> None:
    """Copy all rows, but for some tables, into a new database of either kind; ids stay the same.

    Raises StoreError if the target holds submissions.
    """
    migrate(target)
    with store_errors(target), target.begin() as connection:
        if connection.execute(sa.select(METADATA.tables["submissions"].c.id).limit(1)).first() is not None:
            raise StoreError(path=str(target.url.database), reason="it holds the submissions of a board already")
        for table in METADATA.sorted_tables:
            if table.name not in without:
                _copy_table(source, connection, table)


def _copy_table(source: sa.Connection, target: sa.Connection, table: sa.Table) -> None:
    is_large = any(isinstance(column.type, sa.LargeBinary) for column in table.c)
    query = (
        sa.select(table).order_by(*table.primary_key).execution_options(yield_per=LARGE_ROWS if is_large else ROWS)
    )
    for rows in source.execute(query).mappings().partitions():
        target.execute(sa.insert(table), [dict(row) for row in rows])
    if target.dialect.name == "postgresql" and "id" in table.c:
        following = f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) FROM {table.name}"
        target.execute(sa.text(following))
