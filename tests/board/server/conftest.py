"""A board that is served in this process."""

import socket
import threading

import pytest
import uvicorn
from serving import Served

from geval_py.board.server.worker import Worker


@pytest.fixture
def served(board, tmp_path):
    (tmp_path / "place").mkdir()
    return Served(board, tmp_path / "place")


@pytest.fixture
def address(served, unused_port):
    """The address at which the server listens, in a thread; a worker works beside it."""
    served.server.url = f"http://127.0.0.1:{unused_port}"
    config = uvicorn.Config(served.app, port=unused_port, http="h11", lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    worker = Worker(served.board.folder, at_once=1, clock=served.clock)
    threads = [threading.Thread(target=one, daemon=True) for one in (server.run, worker.run)]
    for one in threads:
        one.start()
    while not server.started:
        threads[0].join(0.05)
    yield served.server.url
    server.should_exit = True
    worker.stop()
    for one in threads:
        one.join(20)


@pytest.fixture
def unused_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
