"""A board on a disk that cannot be written is shown, and nothing is written."""

import shutil
import subprocess

import pytest
from raising import refused
from samples import NOW, mount

from geval_py.board import site
from geval_py.board.database.store import Board, StoreError
from geval_py.board.operations.status import status_of
from geval_py.board.operations.submissions import add
from geval_py.board.ranking.leaderboard import standings


@pytest.fixture
def read_only(sqlite_board, submission, tmp_path):
    """Two submissions on a board whose folder is mounted for reading; it is edited before by the test."""
    for number, name in enumerate(("ann", "bob")):
        add(sqlite_board, str(submission(name, 0.3 + number / 10, seed=number)), now=NOW)
    folder, mounted = tmp_path / "board", []

    def opened():
        for words in (["--bind", str(folder), str(folder)], ["-o", "remount,ro,bind", str(folder)]):
            mount(*words)
            mounted[:] = [folder]
        with pytest.raises(OSError, match="Read-only"):
            (folder / "x").touch()
        return Board.open(folder)

    yield opened
    for path in mounted:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_what_is_shown_is_the_same(read_only, sqlite_board, submission, tmp_path, geval):
    before, status = standings(sqlite_board, now=NOW), status_of(sqlite_board, NOW)
    board = read_only()
    assert standings(board, now=NOW) == before
    assert status_of(board, NOW) == status
    assert site.build(board, str(tmp_path / "public"), now=NOW) > 10
    status, out, err = geval("board", "show", str(tmp_path / "board"))
    assert (status, err, out.splitlines()[1].split()[2]) == (0, "", "bob")
    reason = "it cannot be written, as its folder is read-only or the disk is full"
    with refused(f"Cannot use the board's database `{tmp_path}/board/board.sqlite`: {reason}", StoreError):
        add(board, str(submission("eve", 0.2)), now=NOW)


def test_what_board_yaml_says_anew_needs_a_copy(read_only, sqlite_board, tmp_path):
    path = tmp_path / "board" / "board.yaml"
    path.write_text(path.read_text().replace("disclosed: 4", "disclosed: 2").replace("samples: ", "samples: 1"))
    folder = tmp_path / "board"
    board = read_only()
    content = (folder / "board.sqlite").read_bytes()
    with pytest.raises(StoreError, match="it cannot be written"):
        standings(board, now=NOW)
    assert (folder / "board.sqlite").read_bytes() == content
    assert sorted(path.name for path in folder.iterdir()) == ["board.sqlite", "board.yaml"]
    shutil.copytree(folder, tmp_path / "copy")
    shown = standings(Board.open(tmp_path / "copy"), now=NOW)
    assert [entry.score for entry in shown.entries] == [float(f"{entry.score:.1e}") for entry in shown.entries]
    assert [entry.last for entry in shown.entries] == [1, 2]


def test_what_another_process_has_not_yet_moved_into_the_database_is_shown(read_only, sqlite_board):
    with sqlite_board.reading():  # so that the log stays
        with sqlite_board.writing() as connection:
            connection.exec_driver_sql("UPDATE submitters SET name = 'Bob' WHERE name = 'bob'")
        assert [entry.submitter for entry in standings(read_only(), now=NOW).entries] == ["Bob", "ann"]
