"""The columns of line statistics as they are stored: little-endian doubles, one column after the other, packed."""

from __future__ import annotations

import os
import sqlite3
import sys
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import delete, event, insert, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from geval_py.board.database.schema import facts
from geval_py.board.settings import Settings, read_settings
from geval_py.errors import DataError, MissingFileError, UsageError
from geval_py.text import named, visible

if TYPE_CHECKING:
    from sqlalchemy import Connection, Dialect, Engine


def pack(columns: Iterable[array[float]]) -> bytes:
    """Pack columns of one length by Zstandard."""
    return bytes(_zstd().compress(b"".join(_ordered(array("d", column)).tobytes() for column in columns)))


def unpack(data: bytes, lines: int) -> tuple[array[float], ...]:
    """Give back the columns, each of as many lines; raises ValueError for what is not packed so."""
    try:
        values = array("d", _zstd().decompress(data))
    except _zstd().ZstdError as error:
        raise ValueError(str(error)) from error
    if not lines or not values or len(values) % lines:
        raise ValueError(f"{len(values)} values are no columns of {lines} lines")
    values = _ordered(values)
    return tuple(values[start : start + lines] for start in range(0, len(values), lines))


def _ordered(values: array[float]) -> array[float]:
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


# A board that is opened: its folder, its settings, and its database.


SETTINGS_FILE = "board.yaml"
DATABASE_VARIABLE = "GEVAL_BOARD_DATABASE"
SCHEMA_VERSION = "0002"  # the last of migrations/versions
BUSY_SECONDS = 60  # that a writer waits for another
LOCK = 0x67657661_6C626F61  # of writers on PostgreSQL: a number that no one else takes by chance ("gevalboa")


class StoreError(DataError):
    """The database cannot be used, or is full; ``reason`` says what it answered."""

    reason: str

    def __str__(self) -> str:
        return f"Cannot use the board's database {named(self.path)}: {visible(self.reason)}"


@dataclass(frozen=True, slots=True)
class Board:
    """A board: the folder with board.yaml, what it says, and the database."""

    folder: str
    settings: Settings
    engine: Engine

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Board:
        """Open a board; raises MissingFileError, ConfigError, StoreError, UsageError for another schema."""
        folder = os.fspath(folder)
        settings = read_settings(settings_path(folder))
        engine = engine_of(folder, settings)
        check_schema(engine)
        return cls(folder, settings, engine)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Look at one state of the database, whatever others write meanwhile; raises StoreError."""
        with said(self.engine), self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Do all of what is in the block or, where it raises, nothing; raises StoreError."""
        with said(self.engine), self.engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.execute(text("ROLLBACK"))
                connection.execute(text("BEGIN IMMEDIATE"))
            else:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield connection
            connection.commit()


def settings_path(folder: str) -> str:
    """Give the path of a board's settings; raises MissingFileError where there is none."""
    path = os.path.join(folder, SETTINGS_FILE)
    if not os.path.isfile(path):
        raise MissingFileError(what="No board", path=path, hint="geval board init BOARD --challenge DIR makes one")
    return path


def engine_of(folder: str, settings: Settings) -> Engine:
    """Make the engine of a board's database: a file beside board.yaml, or the URL of a server.

    Raises as :func:`engine_at`.
    """
    return engine_at(folder, os.environ.get(DATABASE_VARIABLE) or settings.database)


def engine_at(folder: str, place: str) -> Engine:
    """Make the engine of a database: a file, relative to a folder, or a URL.

    Raises UsageError for a URL that cannot be read, and where the driver of its database is not installed.
    """
    url = place if "://" in place else f"sqlite:///{os.path.abspath(os.path.join(folder, place))}"
    if url.startswith(("postgresql://", "postgres://")):
        url = "postgresql+psycopg://" + url.partition("://")[2]
    try:
        engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args=_arguments(url))
    except ModuleNotFoundError as error:
        message = f"the board's database needs {error.name}: pip install ./geval-py[board,postgresql]"
        raise UsageError(message=message) from error
    except (sqlalchemy.exc.ArgumentError, ValueError):
        form = "the board's database is neither a file nor a URL such as postgresql://user@host/name"
        message = f"{form}: {_without_password(place)}"
        raise UsageError(message=visible(message)) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "do_connect", _connect_to_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _without_password(place: str) -> str:
    """Leave out of what should be a URL who logs in, and what stands behind ``?``, as a password may."""
    scheme, separator, rest = place.partition("://")
    login, at, address = rest.rpartition("@")
    known = "…" if "?" in login else ("…@" if at else "") + address.partition("?")[0]
    return scheme + separator + known


def _arguments(url: str) -> dict[str, object]:
    return {"timeout": BUSY_SECONDS} if url.startswith("sqlite") else {"connect_timeout": 10}


def _connect_to_sqlite(dialect: Dialect, _: object, where: Any, how: Any) -> sqlite3.Connection:
    """Connect; where a full disk has no room for the memory that connections share, without sharing any."""
    try:
        return _prepared(dialect.connect(*where, **how), "NORMAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
            raise
        return _prepared(dialect.connect(*where, **how), "EXCLUSIVE")


def _prepared(connected: Any, locking: str) -> sqlite3.Connection:
    connection: sqlite3.Connection = connected
    connection.isolation_level = None  # transactions are begun by us, not by the driver
    try:
        connection.execute(f"PRAGMA locking_mode = {locking}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def check_schema(engine: Engine) -> None:
    """Raise UsageError where the database was made by another version, StoreError where it is none."""
    with said(engine), engine.connect() as connection:
        tables = sqlalchemy.inspect(connection).get_table_names()
        version = None
        if "alembic_version" in tables:
            version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if version is None:
        raise StoreError(path=shown(engine), reason="it holds no board")
    if version > SCHEMA_VERSION:
        message = f"the board's database was made by a newer geval-py (schema {visible(version)})\n  upgrade geval-py"
        raise UsageError(message=message)
    if version < SCHEMA_VERSION:
        migrate(engine)


def migrate(engine: Engine) -> None:
    """Bring an empty database, or one of an earlier version, to the schema of this version; raises StoreError."""
    from geval_py.board.database.migrations import upgrade

    with said(engine), engine.begin() as connection:
        upgrade(connection)


@contextmanager
def said(engine: Engine) -> Iterator[None]:
    """Say what goes wrong in a database: raises StoreError, which names it without its password."""
    try:
        yield
    except DBAPIError as error:
        reason = str(error.orig).partition("\n")[0]
        raise StoreError(path=shown(engine), reason=reason) from error


def shown(engine: Engine) -> str:
    """Name a database without its password, which may stand behind ``?`` too."""
    url = engine.url.set(query={})
    return str(url.database) if url.drivername.startswith("sqlite") else url.render_as_string(hide_password=True)


# Single facts that a board keeps, by their names.


def remember(connection: Connection, name: str, value: str) -> None:
    """Keep a fact, in place of what was known."""
    forget(connection, name)
    connection.execute(insert(facts).values(name=name, value=value))


def forget(connection: Connection, name: str) -> None:
    """Keep a fact no longer, if it was kept."""
    connection.execute(delete(facts).where(facts.c.name == name))


def facts_about(connection: Connection, beginning: str) -> dict[str, str]:
    """Give the facts whose names begin so, by the rest of their names."""
    rows = connection.execute(select(facts.c.name, facts.c.value).where(facts.c.name.startswith(beginning)))
    return {name.removeprefix(beginning): value for name, value in rows}
