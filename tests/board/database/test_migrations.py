"""The database of a board: migrations make what the tables say, and a board of each earlier schema goes on."""

import hashlib
from array import array
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from samples import NOW, ON_BOTH
from sqlalchemy import delete, insert, inspect, select, text

from geval_py.board import submission as columns
from geval_py.board.database import migrations
from geval_py.board.database import store as blobs
from geval_py.board.database.schema import METADATA
from geval_py.board.database.schema import blobs as stored_blobs
from geval_py.board.database.store import DATABASE_VARIABLE, SCHEMA_VERSION, Board, StoreError
from geval_py.board.operations.status import status_of
from geval_py.board.operations.submissions import add
from geval_py.board.ranking.leaderboard import standings
from geval_py.errors import UsageError

VERSIONS = sorted(path.name[:4] for path in Path(migrations.__file__).parent.glob("versions/[0-9]*.py"))
EARLIER = VERSIONS[:-1]


def version_of(board):
    with board.reading() as connection:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


@ON_BOTH
def test_the_last_migration_is_that_of_the_tables(board):
    assert VERSIONS[-1] == SCHEMA_VERSION == version_of(board)
    with board.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, {"render_as_batch": True}), METADATA) == []


def at_version(board, version):
    """Take a board's tables away, make those of an earlier version, and put back what they had rows for."""
    with board.reading() as connection:
        rows = {
            table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in METADATA.sorted_tables
        }
    with board.engine.begin() as connection:
        METADATA.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
        migrations.upgrade(connection, version)
        there = inspect(connection).get_table_names()
        for table in METADATA.sorted_tables:
            if table.name in there and rows[table.name]:
                names = {column["name"] for column in inspect(connection).get_columns(table.name)}
                known = [{name: row[name] for name in row if name in names} for row in rows[table.name]]
                connection.execute(insert(table), known)
                if connection.dialect.name == "postgresql" and "id" in names:
                    of = f"pg_get_serial_sequence('{table.name}', 'id')"
                    connection.execute(text(f"SELECT setval({of}, max(id)) FROM {table.name}"))


@pytest.mark.parametrize(
    ("database", "version"),
    [
        *(("sqlite", version) for version in EARLIER),
        ("postgresql", EARLIER[0]),
        *(pytest.param("postgresql", version, marks=pytest.mark.long) for version in EARLIER[1:]),
    ],
    indirect=["database"],
)
def test_a_board_of_an_earlier_schema_goes_on(version, board, submission):
    for number, name in enumerate(("ann", "bob")):
        add(board, str(submission(name, 0.3 + 0.1 * number, seed=number)), now=NOW)
    before, status = standings(board, now=NOW), status_of(board, NOW)
    at_version(board, version)
    assert version_of(board) == version
    opened = Board.open(board.folder)
    assert version_of(opened) == SCHEMA_VERSION
    with opened.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, {"render_as_batch": True}), METADATA) == []
    assert standings(opened, now=NOW) == before
    assert status_of(opened, NOW) == status
    assert add(opened, str(submission("eve", 0.2, seed=7)), now=NOW).state == "scored"
    assert [entry.submitter for entry in standings(opened, now=NOW).entries] == ["bob", "ann", "eve"]


def test_a_board_of_a_later_schema_is_not_touched(board):
    with board.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(UsageError) as caught:
        Board.open(board.folder)
    assert str(caught.value) == (
        "the board's database was made by a newer geval-py (schema 9999)\n  upgrade geval-py"
    )
    assert version_of(board) == "9999"


def test_a_database_without_a_board(sqlite_board):
    (Path(sqlite_board.folder) / "board.sqlite").unlink()
    with pytest.raises(StoreError) as caught:
        Board.open(sqlite_board.folder)
    database = f"{sqlite_board.folder}/board.sqlite"
    assert str(caught.value) == f"Cannot use the board's database `{database}`: it holds no board"


def test_an_empty_database_of_postgresql(sqlite_board, postgresql, monkeypatch):
    url = postgresql.new_database()
    monkeypatch.setenv(DATABASE_VARIABLE, url.replace("geval@", "geval:secret@"))
    with pytest.raises(StoreError) as caught:
        Board.open(sqlite_board.folder)
    name = url.partition("?")[0].rpartition("/")[2]
    assert str(caught.value).partition("://")[0] == "Cannot use the board's database `postgresql+psycopg"
    assert str(caught.value).endswith(f"/{name}`: it holds no board")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("damage", ["changed", "cut"])
def test_a_content_that_is_damaged(damage, board, tmp_path):
    path, digest = tmp_path / "content", "0" * 64
    path.write_bytes(b"a" * 100)
    with board.writing() as connection:
        blobs.store_content(connection, digest, blobs.pack_file(str(path)))
        if damage == "cut":
            connection.execute(delete(stored_blobs))
    with board.reading() as connection, pytest.raises(StoreError) as caught:
        blobs.write_content(connection, digest, str(tmp_path / "again"))
    assert str(caught.value).endswith(f": the content {digest} is damaged in it")


def test_a_content_of_no_bytes_comes_back(board, tmp_path):
    path, digest = tmp_path / "content", hashlib.sha256().hexdigest()
    path.write_bytes(b"")
    with board.writing() as connection:
        blobs.store_content(connection, digest, blobs.pack_file(str(path)))
        assert blobs.is_stored(connection, digest)
    with board.reading() as connection:
        blobs.write_content(connection, digest, str(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == b""


def test_columns_of_losses_come_back():
    stored = columns.pack([array("d", [0.5, float("inf")]), array("d", [1.0, 2.0])])
    assert columns.unpack(stored, 2) == (array("d", [0.5, float("inf")]), array("d", [1.0, 2.0]))
    with pytest.raises(ValueError, match="4 values are no columns of 3 lines"):
        columns.unpack(stored, 3)
    with pytest.raises(ValueError, match="Zstandard"):
        columns.unpack(b"no", 1)
