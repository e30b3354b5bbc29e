"""The database of a board: connections, transactions, and the content of files.

SQLAlchemy takes longer to import than a leaderboard takes to show. So what only reads a file of SQLite does without:
:func:`rows` runs one text of SQL on a connection of either kind.

A content is stored once, under its sha256, compressed by Zstandard as one stream and cut into parts: a database wants
a value whole in memory, so the parts are small.
"""

from __future__ import annotations

import io
import os
import sqlite3
import time
from _thread import get_ident
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from geval_py.board.settings import Settings, read_settings
from geval_py.errors import CorruptFileError, DataError, MissingFileError, UsageError
from geval_py.reading.compression import COMPRESSIONS, Decompressed
from geval_py.text import named, visible
from geval_py.version import installs

if TYPE_CHECKING:
    import sqlalchemy as sa

    AnyConnection: TypeAlias = sqlite3.Connection | sa.Connection

SCHEMA_VERSION = "0001"  # the last of migrations/versions
SETTINGS_FILE = "board.yaml"
DATABASE_VARIABLE = "GEVAL_BOARD_DATABASE"
BUSY_SECONDS = 60  # that a writer waits for another
BUSY_MILLISECONDS = 200  # that SQLite waits at once
_WRITING: dict[tuple[str, int], sa.Connection] = {}  # open transactions, by place and thread
LOCK = 0x67657661_6C626F61  # of writers on PostgreSQL: "gevalboa", a number that nobody else uses by chance


class StoreError(DataError):
    """The database cannot be used, or is full; ``reason`` is its own error message."""

    reason: str

    def __str__(self) -> str:
        return f"Cannot use the board's database {named(self.path)}: {visible(self.reason)}"


@dataclass(frozen=True, slots=True)
class Board:
    """An open board: the folder with board.yaml, the settings, and the place of the database: a file or a URL."""

    folder: str
    settings: Settings
    place: str

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Board:
        """Open a board; raises MissingFileError, ConfigError, StoreError, UsageError for a newer schema."""
        folder = os.fspath(folder)
        settings = read_settings(settings_path(folder))
        board = cls(folder, settings, place_of(folder, settings))
        check_schema(board.place)
        return board

    @property
    def engine(self) -> sa.Engine:
        """SQLAlchemy's engine of the database."""
        return engine_at(self.place)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read one state of the database, whatever others write meanwhile; raises StoreError."""
        with _reading(self.engine) as connection:
            yield connection

    @contextmanager
    def reading_rows(self) -> Iterator[AnyConnection]:
        """Read one state of the database by :func:`rows` alone; raises StoreError."""
        with _reading_rows(self.place) as connection:
            yield connection

    @contextmanager
    def writing(self, seconds: float | None = None) -> Iterator[sa.Connection]:
        """Run the block as one transaction, which is undone if the block raises an error; raises StoreError.

        A block within another one is a part of its transaction. On SQLite another writer is waited for a minute or,
        if given, fewer seconds.
        """
        own = self.place, get_ident()
        if own in _WRITING:
            yield _WRITING[own]
            return
        engine = self.engine
        with store_errors(engine), engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("ROLLBACK")
                _begin_immediate(connection, BUSY_SECONDS if seconds is None else seconds)
            else:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
            _WRITING[own] = connection
            try:
                yield connection
            finally:
                del _WRITING[own]
            connection.commit()


@contextmanager
def _reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    with store_errors(engine), engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield connection


@contextmanager
def _reading_rows(place: str) -> Iterator[AnyConnection]:
    if _is_url(place):
        with _reading(engine_at(place)) as connection:
            yield connection
        return
    try:
        with closing(connect_to_sqlite(place)) as connected:
            connected.execute("BEGIN")
            yield connected
    except sqlite3.Error as error:
        raise _store_error(place, error) from error


def rows(connection: AnyConnection, sql: str, **parameters: object) -> Sequence[Sequence[Any]]:
    """Return the rows of a query with parameters such as ``:name``.

    What SQLAlchemy would convert comes as it is stored: a moment as text, a truth value in SQLite as 0 or 1. A column
    of JSON is to be cast to TEXT.
    """
    if isinstance(connection, sqlite3.Connection):
        return connection.execute(sql, parameters).fetchall()
    return _execute(connection, sql, **parameters).all()


def _execute(connection: sa.Connection, sql: str, **parameters: object) -> sa.CursorResult[Any]:
    from sqlalchemy import text

    return connection.execute(text(sql), parameters)


def is_postgresql(connection: AnyConnection) -> bool:
    """Whether a connection is to PostgreSQL, not to SQLite."""
    return not isinstance(connection, sqlite3.Connection) and connection.dialect.name == "postgresql"


def settings_path(folder: str) -> str:
    """Return the path of a board's settings; raises MissingFileError."""
    path = os.path.join(folder, SETTINGS_FILE)
    if not os.path.isfile(path):
        raise MissingFileError(what="No board", path=path, hint="geval board init BOARD --challenge DIR makes one")
    return path


def place_of(folder: str, settings: Settings) -> str:
    """Return the place of a board's database: the path of a file, or a URL."""
    return place_in(folder, os.environ.get(DATABASE_VARIABLE) or settings.database)


def place_in(folder: str, name: str) -> str:
    """Return the path of a file in a folder; a URL as it is."""
    return name if _is_url(name) else os.path.abspath(os.path.join(folder, name))


def _is_url(place: str) -> bool:
    return "://" in place


def engine_at(place: str) -> sa.Engine:
    """Make the engine of a database: a file or a URL.

    Raises UsageError for a malformed URL, and if the driver of the database is not installed.
    """
    from sqlalchemy import URL
    from sqlalchemy.exc import ArgumentError

    scheme, separator, rest = place.partition("://")
    url: URL | str = place if separator else URL.create("sqlite", database=place)
    if separator and scheme in ("postgresql", "postgres"):
        url = f"postgresql+psycopg://{rest}"
    try:
        return _engine(url)
    except ModuleNotFoundError as error:
        message = f"the board's database needs {error.name}, of the extra postgresql: {installs('postgresql')}"
        raise UsageError(message=message) from error
    except (ArgumentError, ValueError):
        form = "the board's database is neither a file nor a URL such as postgresql://user@host/name"
        message = f"{form}: {_without_password(place)}"
        raise UsageError(message=visible(message)) from None


@lru_cache(maxsize=64)
def _engine(url: sa.URL | str) -> sa.Engine:
    """Make the engine of a URL. It is kept, with the statements it has compiled; connections are not."""
    import sqlalchemy as sa

    url = sa.make_url(url)
    arguments = {"timeout": BUSY_SECONDS} if url.drivername.startswith("sqlite") else {"connect_timeout": 10}
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args=arguments)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "do_connect", lambda _dialect, _record, where, how: connect_to_sqlite(*where, **how))
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _without_password(place: str) -> str:
    """Remove from a malformed URL the login, and the query, which may hold a password."""
    scheme, separator, rest = place.partition("://")
    login, at, address = rest.rpartition("@")
    known = "…" if "?" in login else ("…@" if at else "") + address.partition("?")[0]
    return scheme + separator + known


def connect_to_sqlite(path: str, *, timeout: float = BUSY_SECONDS, **how: Any) -> sqlite3.Connection:
    """Connect; if a full disk has no room for the memory that connections share, connect without it.

    If the database cannot be written, connect for reading.
    """
    try:
        return _prepared(sqlite3.connect(path, timeout, **how), "NORMAL")
    except sqlite3.OperationalError as error:
        code = error.sqlite_errorcode & 0xFF
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) and os.path.isfile(path):
            return _for_reading(path, timeout=timeout, **how)
        if code not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
            raise
        return _prepared(sqlite3.connect(path, timeout, **how), "EXCLUSIVE")


class ReadOnlyConnection(sqlite3.Connection):
    """A connection to a database that cannot be written; only temporary tables can be made, in memory."""


def _for_reading(path: str, **how: Any) -> sqlite3.Connection:
    """Connect for reading; raises the error of SQLite if another process had not finished writing.

    SQLite wants to write the memory that connections share, unless nobody writes: then there is no log beside the
    database.
    """
    from pathlib import Path

    log = f"{path}-wal"
    nobody_writes = not os.path.exists(log) or os.path.getsize(log) == 0
    name = f"{Path(path).as_uri()}?mode=ro{'&immutable=1' if nobody_writes else ''}"
    connection = sqlite3.connect(name, **how, uri=True, factory=ReadOnlyConnection)
    connection.isolation_level = None
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def is_read_only(connection: sa.Connection) -> bool:
    """Whether the database of a connection is SQLite's and cannot be written."""
    return isinstance(connection.connection.dbapi_connection, ReadOnlyConnection)


def shadow(connection: sa.Connection, tables: Iterable[str]) -> None:
    """Put copies in memory in the place of some tables, for this connection to a read-only database."""
    for table in tables:
        ((created,),) = rows(connection, "SELECT sql FROM main.sqlite_master WHERE name = :name", name=table)
        connection.exec_driver_sql(created.replace("CREATE TABLE", "CREATE TEMPORARY TABLE", 1))
        connection.exec_driver_sql(f"INSERT INTO temp.{table} SELECT * FROM main.{table}")


def _prepared(connection: sqlite3.Connection, locking: str) -> sqlite3.Connection:
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


def _begin_immediate(connection: sa.Connection, seconds: float) -> None:
    """Begin to write; SQLite itself waits only for moments, as no signal is handled meanwhile."""
    from sqlalchemy.exc import OperationalError

    ends = time.monotonic() + seconds
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    while True:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except OperationalError as error:
            if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
        else:
            break
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")


SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
POSTGRESQL_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"


def tables_in(connection: AnyConnection) -> set[str]:
    """Return the names of the tables in a database."""
    return {name for (name,) in rows(connection, POSTGRESQL_TABLES if is_postgresql(connection) else SQLITE_TABLES)}


def check_schema(place: str) -> None:
    """Raise UsageError for a database of a newer geval-py, StoreError for one that holds no board."""
    version = None
    with _reading_rows(place) as connection:
        if "alembic_version" in tables_in(connection):
            version = next((found for (found,) in rows(connection, "SELECT version_num FROM alembic_version")), None)
    if version is None:
        raise StoreError(path=shown(place), reason="it holds no board")
    if version > SCHEMA_VERSION:
        message = f"the board's database was made by a newer geval-py (schema {visible(version)})\n  upgrade geval-py"
        raise UsageError(message=message)


def migrate(engine: sa.Engine) -> None:
    """Make the tables of this version in an empty database; raises StoreError."""
    from geval_py.board.database.migrations import upgrade

    with store_errors(engine), engine.begin() as connection:
        upgrade(connection)


@contextmanager
def store_errors(engine: sa.Engine) -> Iterator[None]:
    """Raise the errors of a database as StoreError, which names it without its password."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        raise _store_error(engine.url, error.orig) from error


def _store_error(place: str | sa.URL, error: BaseException | None) -> StoreError:
    return StoreError(path=shown(place), reason=str(error).partition("\n")[0])


def shown(place: str | sa.URL) -> str:
    """Return the path or URL of a database, without its password and query, which may hold one."""
    if isinstance(place, str) and not _is_url(place):
        return place
    url = (engine_at(place).url if isinstance(place, str) else place).set(query={})
    return str(url.database) if url.drivername.startswith("sqlite") else url.render_as_string(hide_password=True)


# Moments, as they are stored: in UTC, as text of fixed length, which sorts by time.


def stored_moment(moment: datetime) -> str:
    """Convert a moment to text; raises ValueError for one without a zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_stored_as(text: str) -> datetime:
    """Convert stored text to a moment in UTC."""
    return datetime.fromisoformat(text)


def mark_changed(connection: sa.Connection) -> None:
    """Note that what the pages show may have changed, for a server that keeps them."""
    _execute(connection, "UPDATE board SET changed = changed + 1")


# The content of files.


PART_BYTES = 4_000_000
CHUNK_BYTES = 1 << 20
PACKED_ENDING = ".packed"
PACKED_LEVEL = 1  # on outputs it takes half the time of level 3, and their numbers become smaller by a tenth
STORE_PART = "INSERT INTO blobs (sha256, part, data) VALUES (:digest, :part, :data)"
READ_PART = "SELECT data FROM blobs WHERE sha256 = :digest AND part = :part"
(ZSTD,) = (compression for compression in COMPRESSIONS if compression.name == "zstd")


def pack_file(path: str) -> str:
    """Compress a file into one beside it, and return its path; raises OSError."""
    packed = path + PACKED_ENDING
    with open(path, "rb") as file, open(packed, "wb") as new, ZSTD.compressor(new, PACKED_LEVEL) as stream:
        while chunk := file.read(CHUNK_BYTES):
            stream.write(chunk)
    return packed


def store_content(connection: sa.Connection, digest: str, packed: str | None) -> None:
    """Store a compressed file as the content with a digest, unless the content is there: then it needs no file."""
    if is_stored(connection, digest):
        return
    if packed is None:
        raise AssertionError("a content without a compressed file is stored before")
    with open(packed, "rb") as file:
        for part, data in enumerate(iter(lambda: file.read(PART_BYTES), b"")):
            _execute(connection, STORE_PART, digest=digest, part=part, data=data)


def is_stored(connection: sa.Connection, digest: str) -> bool:
    """Whether the content with a digest is stored."""
    return bool(rows(connection, "SELECT part FROM blobs WHERE sha256 = :digest LIMIT 1", digest=digest))


def write_content(connection: sa.Connection, digest: str, path: str) -> None:
    """Write a content, decompressed, into a new file; raises StoreError if it is damaged, OSError."""
    from hashlib import sha256

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
        while found := rows(connection, READ_PART, digest=digest, part=part):
            yield bytes(found[0][0])
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
