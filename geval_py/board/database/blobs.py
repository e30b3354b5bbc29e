"""The content of files in the database: by its digest, packed by Zstandard as one stream, cut into parts.

The parts are small, since a database wants a value whole in memory; each content is there once.
"""

from __future__ import annotations

import io
from collections.abc import Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import LargeBinary, insert, select, text

from geval_py.board.database.schema import METADATA, blobs
from geval_py.board.database.store import StoreError, migrate, said
from geval_py.errors import CorruptFileError
from geval_py.reading.compression import COMPRESSIONS, Decompressed, compressor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine, Table


PART_BYTES = 4_000_000
CHUNK_BYTES = 1 << 20
PACKED_ENDING = ".packed"
(ZSTD,) = (compression for compression in COMPRESSIONS if compression.name == "zstd")


def pack(path: str) -> str:
    """Pack a file into one beside it, whose path is given back; raises OSError."""
    packed = path + PACKED_ENDING
    with open(path, "rb") as file, open(packed, "wb") as new, compressor(new, ZSTD.name) as stream:
        while chunk := file.read(CHUNK_BYTES):
            stream.write(chunk)
    return packed


def store(connection: Connection, digest: str, packed: str) -> None:
    """Store a packed file as the content with a digest, unless that is there."""
    if is_stored(connection, digest):
        return
    with open(packed, "rb") as file:
        for part, data in enumerate(iter(lambda: file.read(PART_BYTES), b"")):
            connection.execute(insert(blobs).values(sha256=digest, part=part, data=data))


def is_stored(connection: Connection, digest: str) -> bool:
    """Tell whether a content is there."""
    return connection.execute(select(blobs.c.part).where(blobs.c.sha256 == digest).limit(1)).first() is not None


def write(connection: Connection, digest: str, path: str) -> None:
    """Write a content into a new file, unpacked; raises StoreError where it is not what it was, OSError."""
    found = sha256()
    stream = Decompressed(_Parts(connection, digest), ZSTD, path, None)
    with open(path, "xb") as file, io.BufferedReader(stream, CHUNK_BYTES) as reader:
        try:
            while chunk := reader.read(CHUNK_BYTES):
                found.update(chunk)
                file.write(chunk)
        except CorruptFileError as error:
            raise _damaged(connection, digest) from error
    if found.hexdigest() != digest:
        raise _damaged(connection, digest)


def _damaged(connection: Connection, digest: str) -> StoreError:
    return StoreError(path=connection.engine.url.database or "", reason=f"the content {digest} is damaged in it")


class _Parts:
    """The parts of a content, read as one stream."""

    def __init__(self, connection: Connection, digest: str) -> None:
        self._parts = self._read(connection, digest)
        self._left = b""

    @staticmethod
    def _read(connection: Connection, digest: str) -> Iterator[bytes]:
        part = 0
        while found := connection.execute(
            select(blobs.c.data).where(blobs.c.sha256 == digest, blobs.c.part == part)
        ).first():
            yield bytes(found[0])
            part += 1

    def read(self, size: int = -1, /) -> bytes:
        """Give the next bytes; b"" at the end."""
        if not self._left:
            self._left = next(self._parts, b"")
        taken = self._left if size < 0 else self._left[:size]
        self._left = self._left[len(taken) :]
        return taken


def storable(value: Any) -> Any:
    r"""Make what a stranger wrote such that any database takes it: no NUL, no lone surrogate, in texts at any depth.

    >>> storable({"a\0": ["\udc80", 1]})
    {'a\\x00': ['\\udc80', 1]}
    """
    if isinstance(value, str):
        return value.replace("\0", r"\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


# All rows of a database copied into another, be it SQLite or PostgreSQL; numbers stay as they are.


ROWS, LARGE_ROWS = 500, 4  # that are held in memory


def copy_database(source: Connection, target: Engine, *, without: Collection[str] = ()) -> None:
    """Copy what a transaction sees into a new database, but for some tables; raises StoreError for an old one."""
    migrate(target)
    with said(target), target.begin() as connection:
        if connection.execute(select(METADATA.tables["submissions"].c.id).limit(1)).first() is not None:
            raise StoreError(path=str(target.url.database), reason="it holds the submissions of a board already")
        for table in METADATA.sorted_tables:
            if table.name not in without:
                _copy_table(source, connection, table)


def _copy_table(source: Connection, target: Connection, table: Table) -> None:
    is_large = any(isinstance(column.type, LargeBinary) for column in table.c)
    query = select(table).order_by(*table.primary_key).execution_options(yield_per=LARGE_ROWS if is_large else ROWS)
    for rows in source.execute(query).mappings().partitions():
        target.execute(insert(table), [dict(row) for row in rows])
    if target.dialect.name == "postgresql" and "id" in table.c:
        following = f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) FROM {table.name}"
        target.execute(text(following))
