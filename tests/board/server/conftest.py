"""A board that is served in this process."""

import shutil
import socket

import pytest
from samples import write_challenge
from serving import Served, listening

from geval_py.board.database.store import Board
from geval_py.board.server import live


@pytest.fixture(autouse=True)
def no_rest(monkeypatch):
    """Pages follow each change, however slow this machine is."""
    monkeypatch.setattr(live, "REST", 0)


@pytest.fixture
def served(board, new_board, tmp_path, monkeypatch):
    """A board and its server, which have one clock with the commands."""
    (tmp_path / "place").mkdir()
    if board.engine.dialect.name == "sqlite":
        shutil.copy(new_board / "accounts.sqlite", board.folder)
    made = Served(board, tmp_path / "place")
    for module in ("boards", "server"):
        monkeypatch.setattr(f"geval_py.cli.board.{module}.now", made.clock)
    return made


@pytest.fixture(scope="module")
def shared(new_board, tmp_path_factory):
    """A served board for tests that change nothing on it."""
    folder = tmp_path_factory.mktemp("shared")
    write_challenge(folder)
    shutil.copytree(new_board / "board", folder / "board")
    (folder / "place").mkdir()
    return Served(Board.open(folder / "board"), folder / "place")


@pytest.fixture
def address(served, unused_port):
    """The address at which the server listens, in a thread; a worker works beside it."""
    served.server.url = f"http://127.0.0.1:{unused_port}"
    with listening(served.app, served.board.folder, served.clock, unused_port):
        yield served.server.url


@pytest.fixture
def unused_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
