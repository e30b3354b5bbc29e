"""``geval board serve`` in a process of its own: whom it believes, how it stops, and who can read a board's files."""

import http.client
import os
import signal
import stat
import threading
import time
from contextlib import closing

import pytest
from deployed import HOST, ask, processes_of, serving, tokens, unused_port
from samples import GOOD, OUT, rows_of
from sqlalchemy import select

from geval_py.board.database.schema import submissions

pytestmark = pytest.mark.no_cover


@pytest.mark.slow
@pytest.mark.parametrize(("proxies", "sender"), [
    ([], HOST), pytest.param(["--proxies", "127.0.0.0/8"], "203.0.113.9", marks=pytest.mark.long),
])  # fmt: skip
def test_the_address_of_a_sender_is_believed_of_declared_proxies_alone(sqlite_board, proxies, sender):
    os.chmod(sqlite_board.folder, 0o755)
    with serving(sqlite_board, "--workers", 0, "--shared", *proxies) as (port, process):
        headers = {"Authorization": "Bearer wrong", "X-Forwarded-For": "203.0.113.9"}
        assert [ask(port, "GET", "/api/me", **headers)[0] for _ in range(101)] == [401] * 100 + [429]
    assert f"more than 100 failures from {sender} in one hour" in process.said
    told = "a proxy at 127.0.0.1 is not declared, so all its users share one limit; start with --proxies 127.0.0.1"
    assert process.said.count(told) == (0 if proxies else 1)


def test_a_wrong_proxy_or_a_folder_that_others_can_read_is_not_served(sqlite_board, geval):
    words = "board", "serve", sqlite_board.folder, "--port", str(unused_port())
    status, _, err = geval(*words, "--proxies", "the proxy")
    assert status == 2
    assert "argument --proxies: 'the proxy' does not appear to be an IPv4 or IPv6 network" in err
    os.chmod(sqlite_board.folder, 0o755)
    hint = f"  chmod 700 {sqlite_board.folder}, or allow it with --shared\n"
    assert geval(*words)[2] == f"geval: others can read the board in `{sqlite_board.folder}`\n{hint}"


@pytest.mark.long
def test_an_upload_finishes_while_the_server_stops(sqlite_board):
    """It has thirty seconds for that; the worker waits, too."""
    secret, content = tokens(sqlite_board, ["anna"])[0], GOOD.encode()
    connection = http.client.HTTPConnection(HOST)
    with serving(sqlite_board, "--workers", 0) as (connection.port, process), closing(connection):
        connection.putrequest("PUT", OUT)
        connection.putheader("Authorization", f"Bearer {secret}")
        connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content[:100])
        time.sleep(1)
        stopping = threading.Thread(target=process.stop)
        stopping.start()
        time.sleep(7)
        connection.send(content[100:])
        assert connection.getresponse().status == 201
        stopping.join(60)
    assert rows_of(sqlite_board, select(submissions.c.state)) == ["waiting"]


@pytest.mark.slow
def test_a_worker_ends_in_peace_if_it_gets_the_signal_too(sqlite_board):
    """systemd sends it to all processes of a service."""
    with serving(sqlite_board) as (_, process):
        time.sleep(2)
        for pid in processes_of(process.pid):
            os.kill(pid, signal.SIGTERM)
        process.wait()
    assert process.said.count("\n") == 1  # that it serves


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_nobody_else_can_read_a_board_or_its_export(challenge, tmp_path, geval):
    before = os.umask(0o022)
    try:
        folder, answers = tmp_path / "board", tmp_path / "answers"
        for words in (
            ["init", folder, "--challenge", challenge, "--answers", answers],
            ["init", tmp_path / "boards" / "gap", "--challenge", challenge, "--answers", answers],
            ["invite", tmp_path / "boards", "anna", "--url", "https://board.test"],
            ["backup", folder, tmp_path / "whole.tar"],
            ["restore", tmp_path / "copy", tmp_path / "whole.tar"],
            ["site", folder, "-o", tmp_path / "site"],
        ):
            assert geval("board", *map(str, words))[0] == 0
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in ("board", "copy", "site")] == [0o700, 0o700, 0o755]
    assert {mode(path) for path in (*folder.iterdir(), *(tmp_path / "copy").rglob("*.*"))} == {0o600}
    files = ("boards/accounts.sqlite", "whole.tar", "site/index.html")
    assert [mode(tmp_path / name) for name in files] == [0o600, 0o600, 0o644]
