"""Many at once on a server in processes of its own: readers, uploaders at a deadline, slow connections at a proxy."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deployed import ask, check_invariants, drained, send, serving, sessions, tokens, unused_port
from samples import on_both_with, output

pytestmark = [pytest.mark.no_cover, pytest.mark.long]
PAGES = ("/", "/me", "/index.html", "/api/me")


@on_both_with("uploaders", [4, 40], quick=[])
def test_readers_and_uploaders_at_a_deadline(board, uploaders):
    names = [f"reader-{number}" for number in range(10)]
    cookies, secrets = sessions(board, names), tokens(board, [f"team-{number}" for number in range(uploaders)])
    deadline, ended = threading.Barrier(uploaders), threading.Event()
    with serving(board) as (port, _), ThreadPoolExecutor(uploaders + len(names)) as threads:
        reading = [threads.submit(read, port, *one, ended) for one in zip(names, cookies, strict=True)]
        sending = [threads.submit(upload, port, secret, n, deadline) for n, secret in enumerate(secrets)]
        try:
            receipts = [one.result() for one in sending]
        finally:
            ended.set()
        assert sum(one.result() for one in reading) == 0
    assert check_invariants(board, receipts) == {"scored": uploaders}


def read(port, name, cookie, ended):
    """Read pages one after the other until an event; gives how many failed or were another reader's."""
    failed = 0
    while not ended.is_set():
        for page in PAGES:
            status, text = ask(port, "GET", page, Cookie=cookie)
            mark = name if page.endswith("/me") else "My page"  # public pages are the same for everybody
            failed += status != 200 or mark not in text.decode()
    return failed


def upload(port, token, number, deadline):
    """Upload at the deadline, and follow the upload until it is scored; gives the receipt."""
    deadline.wait()
    status, answer = send(port, token, output("test-A", 0.5, number))
    assert status == 201, answer
    state = {"settled": False}
    while not state["settled"]:
        time.sleep(1)
        state = json.loads(ask(port, "GET", answer["state"], Authorization=f"Bearer {token}")[1])
    assert state["state"] == "scored"
    return answer["receipt"]


@contextlib.contextmanager
def proxy(port, folder):
    """Run nginx as the page about the server tells, but without TLS; yield its port."""
    page = (Path(__file__).parents[3] / "docs/server.md").read_text(encoding="utf-8")
    server, top = re.findall(r"^```nginx\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
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
        self._port, self._ended, self.begun = port, threading.Event(), threading.Event()
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
            self.begun.set()
        for one in alive:
            one.transport.abort()

    def stop(self):
        self._ended.set()
        self._thread.join()


@pytest.mark.parametrize("number", [60, 5_000])
def test_slow_connections_do_not_stop_good_ones(sqlite_board, tmp_path, number):
    good, slow = tokens(sqlite_board, ["good", "slow"])
    with contextlib.ExitStack() as stack:
        port, _ = stack.enter_context(serving(sqlite_board))
        own = stack.enter_context(proxy(port, tmp_path))
        connections = Slow(own, number, slow)
        stack.callback(connections.stop)
        assert connections.begun.wait(120)
        for one in range(20):
            assert send(own, good, output("test-A", 0.5, one))[0] == 201
            assert ask(own, "GET", "/")[0] == 200
        assert send(own, slow, output("test-A", 0.5))[0] == 429
        connections.stop()
        while send(own, slow, output("test-A", 0.5))[0] == 429:
            time.sleep(0.1)
        drained(sqlite_board)
    assert check_invariants(sqlite_board) == {"scored": 21}
