"""The database of a board: its schema, what cannot be opened, and the contents of files."""

import hashlib
from array import array
from pathlib import Path

import pytest
from sqlalchemy import delete, text

from geval_py.board import submission as columns
from geval_py.board.database import store as blobs
from geval_py.board.database.schema import blobs as stored_blobs
from geval_py.board.database.store import DATABASE_VARIABLE, Board, StoreError
from geval_py.errors import UsageError


def version_of(board):
    with board.reading() as connection:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


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
