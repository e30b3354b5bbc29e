"""Many at once on a server in processes of its own: readers, uploaders at a deadline, slow connections at a proxy.

With ``--long``, a small load and a large one. No test asserts a time.
"""

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from deployed import ask, check_invariants, drained, send, serving, tokens, unused_port
from load import LARGE, SMALL, Outputs, put_load
from samples import on_both_with, output, write_challenge

pytestmark = [pytest.mark.no_cover, pytest.mark.long]


@pytest.fixture
def contents(size, tmp_path):
    """The output of each uploader."""
    write_challenge(tmp_path)
    made = Outputs(tmp_path) if size.is_large else lambda number: output("test-A", 0.5, number)
    return [made(number) for number in range(size.uploaders)]


@pytest.fixture
def challenge(contents, tmp_path):
    return tmp_path / "challenge"


@on_both_with("size", [SMALL, LARGE], quick=[])
def test_readers_and_uploaders_at_a_deadline(board, contents, size, tmp_path):
    """Each upload has a receipt, none is lost or double, and each page is the reader's own."""
    found = put_load(board, contents, size, tmp_path)
    assert found.states == ["scored"] * size.uploaders
    assert check_invariants(board, found.receipts) == {"scored": size.uploaders}
    assert found.pages["failed"] == 0


# Slow connections


def blocks(name):
    """Return the blocks of a language in the page about the server."""
    page = (Path(__file__).parents[3] / "docs/server.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{name}\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def proxy(port, folder):
    """Run nginx as the page about the server tells, but without TLS; yield its port."""
    server, top = blocks("nginx")
    own = unused_port()
    server = re.sub(r"^ *ssl_certificate.*\n", "", server, flags=re.MULTILINE)
    server = server.replace("443 ssl", f"127.0.0.1:{own}").replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    config = folder / "nginx.conf"
    config.write_text(f"pid {folder}/pid;\n{top}http {{\naccess_log off;\n{temporary}{server}}}\n")
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert nginx, "nginx is missing (on Debian: apt-get install nginx-light)"
    own_user = "daemon off; user root;" if os.getuid() == 0 else "daemon off;"
    words = [nginx, "-c", config, "-e", folder / "nginx.log", "-g", own_user]
    with subprocess.Popen(words) as running:
        while True:
            assert running.poll() is None
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", own)).close()
                break
        try:
            yield own
        finally:
            running.terminate()


class Slow:
    """Connections that send a byte a second: of a header, of the body of a stranger, and of one who is signed in."""

    def __init__(self, port, number, token):
        body = "PUT /upload/out.tsv?test=test-A HTTP/1.1\r\nHost: board\r\nContent-Length: 1000000\r\n"
        heads = ["GET / HTTP/1.1\r\nX-Slow: ", f"{body}\r\n", f"{body}Authorization: Bearer {token}\r\n\r\n"]
        self._heads = [heads[one % 3].encode() for one in range(number)]
        self._port, self._ended, self.begun, self.most = port, threading.Event(), threading.Event(), 0
        self._thread = threading.Thread(target=asyncio.run, args=[self._send()])
        self._thread.start()

    async def _send(self):
        alive = []
        for head in self._heads:
            with contextlib.suppress(OSError):
                alive.append((await asyncio.open_connection("127.0.0.1", self._port))[1])
                alive[-1].write(head)
        while not self._ended.is_set():
            for one in alive:
                one.write(b"x")
            await asyncio.sleep(1)
            alive = [one for one in alive if not one.transport.is_closing()]
            self.most = max(self.most, len(alive))
            self.begun.set()
        for one in alive:
            one.transport.abort()

    def stop(self):
        self._ended.set()
        self._thread.join()


@pytest.mark.parametrize("size", [SMALL], ids=["small"])
@pytest.mark.parametrize("number", [60, 5_000])
def test_slow_connections_do_not_stop_good_ones(sqlite_board, tmp_path, number):
    """Each sends a byte a second to the documented proxy; those of one account that are too many are refused."""
    (good, slow), times = tokens(sqlite_board, ["good", "slow"]), []
    with contextlib.ExitStack() as stack:
        port, process = stack.enter_context(serving(sqlite_board))
        own = stack.enter_context(proxy(port, tmp_path))
        connections = Slow(own, number, slow)
        stack.callback(connections.stop)
        assert connections.begun.wait(120)
        for one in range(20):
            started = time.monotonic()
            assert send(own, good, output("test-A", 0.5, one))[0] == 201
            assert ask(own, "GET", "/")[0] == 200
            times.append(time.monotonic() - started)
        assert send(own, slow, output("test-A", 0.5))[0] == 429
        files = len(os.listdir(f"/proc/{process.pid}/fd"))
        connections.stop()
        while send(own, slow, output("test-A", 0.5))[0] == 429:
            time.sleep(0.1)
        drained(sqlite_board)
    assert check_invariants(sqlite_board) == {"scored": 21}
    print(f"{connections.most} of {number} slow; an upload and a page: {max(times):.2f} s; open files: {files}")
