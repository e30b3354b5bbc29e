"""All rows of a database copied into another, be it SQLite or PostgreSQL; numbers stay as they are."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sqlalchemy import LargeBinary, insert, select, text

from geval_py.board.storing.schema import METADATA
from geval_py.board.storing.store import StoreError, migrate, said

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

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
