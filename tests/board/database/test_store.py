"""The database of a board: its schema, what cannot be opened, and the contents of files."""

import os
import subprocess
import sys
from array import array
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from raising import refused
from rows import START
from samples import NOW, without_limits
from sqlalchemy import delete, text

from geval_py.board import submission as columns
from geval_py.board.database import schema
from geval_py.board.database import store as blobs
from geval_py.board.database.schema import Moment, submissions
from geval_py.board.database.store import DATABASE_VARIABLE, Board, StoreError
from geval_py.board.operations import creation
from geval_py.board.ranking import leaderboard
from geval_py.reading.compression import zstd_module


@pytest.mark.parametrize(("version", "reason"), [
    ("9999", "a newer geval-py (schema 9999)\n  upgrade geval-py"), ("0001", "an older geval-py (schema 0001)\n"
     "  the commit c68d85bd of geval-py can show it, and write its tables as CSV"),
])  # fmt: skip
def test_a_board_of_another_schema_is_not_touched(board, version, reason):
    with board.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})
    with refused(f"the board's database was made by {reason}"):
        Board.open(board.folder)
    with board.reading() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == version


def test_an_empty_database_of_postgresql(sqlite_board, postgresql, monkeypatch):
    url = postgresql.new_database()
    monkeypatch.setenv(DATABASE_VARIABLE, url.replace("geval@", "geval:secret@"))
    with pytest.raises(StoreError) as caught:
        Board.open(sqlite_board.folder)
    message, name = str(caught.value), url.partition("?")[0].rpartition("/")[2]
    assert message.partition("://")[0] == "Cannot use the board's database `postgresql+psycopg"
    assert (message.endswith(f"/{name}`: {EMPTY}"), "secret" in message) == (True, False)


@pytest.mark.parametrize("damage", ["changed", "cut"])
def test_a_content_that_is_damaged(damage, board, tmp_path):
    path, digest = tmp_path / "content", "0" * 64
    path.write_bytes(b"a" * 100)
    with board.writing() as connection:
        blobs.store_content(connection, digest, str(path))
        if damage == "cut":
            connection.execute(delete(schema.blobs))
    with board.reading() as connection, pytest.raises(StoreError) as caught:
        blobs.write_content(connection, digest, str(tmp_path / "again"))
    assert str(caught.value).endswith(f": the content {digest} is damaged in it")


def test_columns_of_losses_come_back():
    stored = columns.pack([array("d", [0.5, float("inf")]), array("d", [1.0, 2.0])])
    assert columns.unpack(stored, 2) == (array("d", [0.5, float("inf")]), array("d", [1.0, 2.0]))
    with pytest.raises(ValueError, match="4 values are no columns of 3 lines"):
        columns.unpack(stored, 3)
    with pytest.raises(zstd_module().ZstdError, match="Zstandard"):
        columns.unpack(b"no", 1)


@pytest.mark.parametrize("moment", [START, START.replace(microsecond=7), datetime.max.replace(tzinfo=UTC)])
def test_a_moment_comes_back(moment):
    stored = Moment().process_bind_param(moment, None)
    assert Moment().process_result_value(stored, None) == moment
    assert len(stored) == Moment().impl.length


def test_a_moment_needs_a_zone():
    with pytest.raises(ValueError, match="has no zone"):
        Moment().process_bind_param(datetime(2027, 1, 1), None)


EMPTY = "it contains no board"


@pytest.mark.parametrize(("content", "reason"), [(b"x" * 9, "file is not a database"), (b"", EMPTY), (None, EMPTY)])
def test_a_file_that_is_no_board(content, reason, sqlite_board):
    path = Path(sqlite_board.folder) / "board.sqlite"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with refused(f"Cannot use the board's database `{path}`: {reason}", StoreError):
        Board.open(sqlite_board.folder)


def test_a_table_that_is_missing(sqlite_board):
    with sqlite_board.writing() as connection:
        connection.execute(sa.text("DROP TABLE disclosures"))
    with pytest.raises(StoreError) as caught:
        leaderboard.standings(sqlite_board, now=NOW)
    assert str(caught.value).endswith("board.sqlite`: no such table: disclosures")


def test_a_folder_whose_name_looks_like_a_query(challenge, tmp_path):
    """SQLAlchemy's URL of a file would end at the question mark."""
    folder = tmp_path / "a?b=c%20d#e"
    creation.create(folder, challenge=challenge, answers=tmp_path / "answers")
    assert sorted(path.name for path in folder.iterdir()) == ["board.sqlite", "board.yaml"]
    assert leaderboard.standings(without_limits(folder), now=NOW).entries == ()


def test_opening_a_database_again_ends_no_lock_of_it(sqlite_board):
    """Closing any file of a database ends the locks that the process has on it; then others delete its log."""
    path = sqlite_board.engine.url.database
    code = f"import sqlite3; c = sqlite3.connect({path!r}); c.execute('SELECT * FROM board').fetchall(); c.close()"
    with sqlite_board.reading() as connection:
        connection.execute(sa.select(submissions)).all()
        with sqlite_board.reading():
            pass
        subprocess.run([sys.executable, "-c", code], check=True)
        assert os.path.exists(f"{path}-wal")
