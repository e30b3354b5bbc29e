"""The database of a board: its connections and transactions, and the content of files.

A content is stored once, under its sha256, in parts, since a database wants a value whole in memory. Each part is a
frame of Zstandard.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from pathlib import Path

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    pool,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from geval_py.board.database import schema
from geval_py.board.database.schema import Blobs, Submissions
from geval_py.board.settings import BoardSettings, read_settings
from geval_py.errors import DataError, MissingFileError, UsageError
from geval_py.reading.compression import zstd_module
from geval_py.text import named, visible
from geval_py.version import installs

SCHEMA_VERSION = "0002"  # the last of migrations/versions
LAST_COMMIT = "c68d85bd"  # that reads the schema before
SETTINGS_FILE = "board.yaml"
DATABASE_VARIABLE = "GEVAL_BOARD_DATABASE"
READ_ONLY = "attempt to write a readonly database"  # SQLite's message
BUSY_SECONDS = 60  # that a writer waits for another
LOCK = 0x67657661_6C626F61  # of writers on PostgreSQL: "gevalboa", a number that nobody else uses by chance


class StoreError(DataError):
    """The database cannot be used, or is full; ``reason`` is its own error message."""

    reason: str

    def __str__(self) -> str:
        return f"Cannot use the board's database {named(self.path)}: {visible(self.reason)}"


class Database:
    """A database at a ``place``, a file or a URL; ``lock`` is that of its writers on PostgreSQL."""

    place: str
    lock = LOCK

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine of the database."""
        return engine_at(self.place)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read one state of the database, whatever others write meanwhile; raises StoreError."""
        with transaction(self.engine) as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Run the block as one transaction, which is undone if the block raises an error; raises StoreError."""
        with transaction(self.engine) as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("ROLLBACK")
                connection.exec_driver_sql("PRAGMA busy_timeout = 1000")  # no signal is handled while SQLite waits
                for _ in range(BUSY_SECONDS - 1):
                    with suppress(OperationalError):
                        connection.exec_driver_sql("BEGIN IMMEDIATE")
                        break
                else:
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({self.lock})")
            yield connection


@dataclass(frozen=True)
class Board(Database):
    """An open board: the folder with board.yaml, the settings, and the place of the database: a file or a URL."""

    folder: str
    settings: BoardSettings
    place: str

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Board:
        """Open a board; raises MissingFileError, ConfigError, StoreError, UsageError for a newer schema."""
        folder = os.fspath(folder)
        settings = read_settings(settings_path(folder))
        board = cls(folder, settings, place_of(folder, settings.database))
        check_schema(board.engine)
        return board

    @cached_property
    def key(self) -> str:
        """The key of the board, which its accounts have; raises StoreError."""
        with self.reading() as connection:
            return str(connection.scalar(select(schema.board.c.key)))


def boards_in(folder: str) -> list[str]:
    """Return the folders of the boards in a folder of several, by name; [] for any other folder."""
    if os.path.isfile(os.path.join(folder, SETTINGS_FILE)):
        return []
    return sorted(os.path.join(folder, path.parent.name) for path in Path(folder).glob(f"*/{SETTINGS_FILE}"))


def settings_path(folder: str) -> str:
    """Return the path of a board's settings; raises MissingFileError."""
    path = os.path.join(folder, SETTINGS_FILE)
    if not os.path.isfile(path):
        raise MissingFileError(
            what="No board", path=path, hint="create one with geval board init BOARD --challenge DIR"
        )
    return path


def place_of(folder: str, name: str) -> str:
    """Return the place of the database that board.yaml or, first, the environment names: a file's path, or a URL."""
    name = os.environ.get(DATABASE_VARIABLE) or name
    return name if "://" in name else os.path.abspath(os.path.join(folder, name))


@lru_cache(maxsize=64)
def engine_at(place: str) -> Engine:
    """Make the engine of a database: a file or a URL. It is kept, with the statements it has compiled.

    Raises UsageError for a malformed URL, and if the driver of the database is not installed.
    """
    try:
        url = make_url(place) if "://" in place else URL.create("sqlite", database=place)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        if not url.drivername.startswith("sqlite"):
            return create_engine(url, poolclass=pool.NullPool, connect_args={"connect_timeout": 10})
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the board's database needs {error.name} from the extra postgresql: {installs('postgresql')}"
        ) from error
    except (ArgumentError, ValueError):  # it is not shown, as it may hold a password
        raise UsageError(
            "the board's database is neither a file nor a URL such as postgresql://user@host/name"
        ) from None
    engine = create_engine(url, poolclass=pool.NullPool, creator=partial(connect_to_sqlite, url.database or ""))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def connect_to_sqlite(path: str) -> sqlite3.Connection:
    """Connect; only to read if the folder cannot be written or the disk is full. We begin transactions ourselves."""
    connect = partial(sqlite3.connect, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    with suppress(OSError):  # it is there; one that SQLite makes could be read by others
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))  # to close one that is there would end SQLite's locks
    connection = connect(path)
    try:
        for pragma in ("journal_mode = WAL", "foreign_keys = ON", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.DatabaseError:
        connection.close()
        if not os.path.isfile(path):
            raise
        # SQLite wants to write the memory that connections share, unless nobody writes: then there is no log
        log = Path(f"{path}-wal")
        is_immutable = not log.exists() or log.stat().st_size == 0
        return connect(f"{Path(path).as_uri()}?mode=ro{'&immutable=1' if is_immutable else ''}", uri=True)
    return connection


def check_schema(engine: Engine) -> None:
    """Raise UsageError for a database of another geval-py, StoreError for one that holds no board."""
    with transaction(engine) as connection:
        version = None
        if inspect(connection).has_table("alembic_version"):
            version = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if version is None:
        raise StoreError(path=_shown(engine.url), reason="it contains no board")
    if version > SCHEMA_VERSION:
        raise UsageError(
            f"the board's database was made by a newer geval-py (schema {visible(version)})\n  upgrade geval-py"
        )
    if version < SCHEMA_VERSION:
        message = f"the board's database was made by an older geval-py (schema {visible(version)})"
        raise UsageError(
            f"{message}\n  the commit {LAST_COMMIT} of geval-py can show it, and write its tables as CSV"
        )


def create_tables(engine: Engine) -> None:
    """Make the tables of a board, unless they are there; raises StoreError if they hold submissions."""
    from geval_py.board.database.migrations import upgrade

    with transaction(engine) as connection:
        upgrade(connection)
        if connection.execute(select(Submissions.id).limit(1)).first():
            raise StoreError(path=_shown(engine.url), reason="it already contains the submissions of a board")


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Run the block as one transaction; raises StoreError, which names the database without its password."""
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        reason = str(error.orig).partition("\n")[0]
        if reason == READ_ONLY:
            reason = "it cannot be written, as its folder is read-only or the disk is full"
        raise StoreError(path=_shown(engine.url), reason=reason) from error


def _shown(url: URL) -> str:
    """Return the path or URL of a database, without its password and query, which may hold one."""
    if url.drivername.startswith("sqlite"):
        return str(url.database)
    return url.set(query={}).render_as_string(hide_password=True)


# The content of files.


PART_BYTES = 4_000_000  # of a content; of a compressed one, hardly more
PACKED_LEVEL = 1  # on outputs it takes half the time of level 3, and their numbers become smaller by a tenth


def store_content(connection: Connection, digest: str, path: str) -> None:
    """Store a file as the content with a digest, unless the content is there; raises OSError."""
    query = select(Blobs.part).where(Blobs.sha256 == digest).limit(1)
    if connection.execute(query).first():
        return
    with open(path, "rb") as file:
        for number, part in enumerate(iter(partial(file.read, PART_BYTES), b"")):
            row = {"sha256": digest, "part": number, "data": zstd_module().compress(part, PACKED_LEVEL)}
            connection.execute(insert(schema.blobs).values(row))


def write_content(connection: Connection, digest: str, path: str) -> None:
    """Write a content, decompressed, into a new file; raises StoreError if it is damaged, OSError."""
    hashed = sha256()
    query = select(Blobs.data).where(Blobs.sha256 == digest).order_by(Blobs.part)
    with open(path, "xb") as file, suppress(zstd_module().ZstdError):  # then the digest is another one, too
        for frame in connection.scalars(query.execution_options(yield_per=1)):
            part = zstd_module().decompress(frame)
            hashed.update(part)
            file.write(part)
    if hashed.hexdigest() != digest:
        place = connection.engine.url.database or ""
        raise StoreError(path=place, reason=f"the content {digest} is damaged in it")
