"""Faults at a server in processes of its own: no upload is lost, double, half there, or charged for what failed.

What must hold after each is :func:`deployed.check_invariants`. All but one kill are for ``--long``.
"""

import os
import random
import shutil
import signal
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException
from itertools import chain
from pathlib import Path

import pytest
from deployed import (
    HOST,
    Process,
    ask,
    check_invariants,
    drained,
    processes_of,
    send,
    serve,
    serving,
    tokens,
    unused_port,
)
from samples import on_both_with, output
from serving import set_keys
from sqlalchemy import select, update

from geval_py.board.database.schema import WAITING, submissions
from geval_py.board.operations import creation

pytestmark = pytest.mark.no_cover
TEAMS = 4
UNLIMITED = {"submissions_a_day": 0, "server": "{uploads_an_hour: 10_000}"}
OUT = "/upload/out.tsv?test=test-A"
PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def board(board):
    """A board that takes any number of uploads."""
    set_keys(board, **UNLIMITED)
    return board


class Senders:
    """Teams that upload at once, each an output of its own in each round, and try again until they have a receipt."""

    def __init__(self, board):
        self.tokens = tokens(board, [f"team {number}" for number in range(TEAMS)])
        self.receipts, self._left = [], []

    def send(self, ports, seeds):
        """Send an output a team, and what is left of earlier rounds."""
        self._left += [(secret, seed) for secret in self.tokens for seed in seeds]
        with ThreadPoolExecutor(8) as threads:
            ports = [random.Random(repr(one)).choice(ports) for one in self._left]
            found = list(threads.map(self._one, ports, self._left))
        self._left = [one for one, receipt in zip(self._left, found, strict=True) if receipt is None]
        self.receipts += [receipt for receipt in found if receipt is not None]

    @staticmethod
    def _one(port, one):
        """Return the receipt; None if there is no answer, or if the server says that it cannot now."""
        with suppress(OSError, HTTPException):
            status, told = send(port, one[0], output("test-A", 0.5, one[1]))
            assert status in (200, 201, 503), told
            return told.get("receipt")
        return None

    def finish(self, board, port, seeds):
        """Send all again until each has its receipt, and see that each output is one upload."""
        for _ in range(10):
            self.send([port], [])
        assert self._left == []
        assert len(self.receipts) == TEAMS * seeds
        time_goes_by(board)
        drained(board)
        with board.reading() as connection:
            assert len(connection.execute(select(submissions.c.id)).all()) == TEAMS * seeds


def time_goes_by(board):
    """Let the leases of killed workers be over, and what is to be tried again be due."""
    with board.writing() as connection:
        waits = submissions.c.state == WAITING
        connection.execute(update(submissions).where(waits).values(due=PAST, tries=0, leased_until=None))


def kill_workers(process):
    """Kill the workers of a server with their children, then stop the server."""
    for pid in processes_of(process.pid)[:0:-1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.stop()


def kill_all(process):
    """Kill a server with its worker and their children, in any order."""
    for pid in processes_of(process.pid)[::-1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


KILLS = {"server": Process.kill, "workers": kill_workers, "all": kill_all}


@pytest.mark.slow
@on_both_with("killed", KILLS, quick=[("sqlite", "server")])
@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.long)])
def test_a_killed_server_loses_nothing(board, times, killed):
    """After the kill of the server, its worker ends by itself; each sender without an answer sends again."""
    chance, senders = random.Random(times), Senders(board)
    for number in range(times):
        port = unused_port()
        process = serve(board, port, "--workers", 1)
        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(senders.send, [port], [number])
            time.sleep(chance.uniform(0, 0.4))
            KILLS[killed](process)
            sending.result()
        check_invariants(board, senders.receipts, is_idle=False)
        time_goes_by(board)
    with serving(board, "--workers", 2) as (port, _):
        senders.finish(board, port, times)
    print(f"{times} kills, {len(senders.receipts)} receipts: {check_invariants(board, senders.receipts)}")


@pytest.mark.long
@pytest.mark.parametrize("times", [50])
def test_a_killed_database_loses_nothing(postgresql, challenge, tmp_path, times):
    """PostgreSQL with all its connections; SQLite has no process but the server's and the worker's: see above."""
    url = postgresql.new_database()
    board = creation.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers", database=url)
    set_keys(board, **UNLIMITED)
    chance, senders = random.Random(times), Senders(board)
    with serving(board, "--workers", 1) as (port, process):
        for number in range(times):
            with ThreadPoolExecutor(1) as thread:
                sending = thread.submit(senders.send, [port], [number])
                time.sleep(chance.uniform(0, 0.4))
                postgresql.crash()
                assert ask(port, "GET", "/healthz")[0] == 503
                sending.result()
            postgresql.start()
            check_invariants(board, senders.receipts, is_idle=False)
            time_goes_by(board)
        senders.finish(board, port, times)
        assert process.is_running
    print(f"{times} kills, {len(senders.receipts)} receipts: {check_invariants(board, senders.receipts)}")


@pytest.mark.slow
@on_both_with("times", [50], quick=[])
def test_a_connection_that_is_cut_leaves_nothing(board, times, tmp_path):
    """At any byte of the head, of the body or after it, by a close or a reset, with a length or in chunks."""
    chance, secret = random.Random(times), tokens(board, ["anna"])[0]
    place = tmp_path / "place"
    place.mkdir()
    whole = []
    with serving(board, "--workers", 1, TMPDIR=str(place)) as (port, process):
        for number in range(times):
            body = output("test-A", 0.5, number).encode()
            head = f"PUT {OUT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n".encode()
            if chance.random() < 0.5:
                request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
            else:
                request = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
            cut = chance.choice([chance.randrange(len(request)), len(request) - 1, len(request)])
            if cut == len(request):
                whole.append(number)
            with socket.create_connection((HOST, port)) as connection:
                if chance.random() < 0.5:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(request[:cut])
                time.sleep(chance.choice([0, 0.05]))
        ends = time.monotonic() + 20
        while any(name.startswith("upload-") for _, *names in os.walk(place) for name in chain(*names)):
            assert time.monotonic() < ends
            time.sleep(0.1)
        drained(board)
        found = check_invariants(board).get("scored", 0)
        assert found <= len(whole)  # the server may see that it is cut before it has read it
        given = [send(port, secret, output("test-A", 0.5, number))[1]["receipt"] for number in range(times)]
        drained(board)
    assert process.said == f"geval: note: serving `{board.folder}` at http://{HOST}:{port}; press Ctrl-C to stop\n"
    assert check_invariants(board, given) == {"scored": times}
    print(f"{times} connections cut, {len(whole)} of them after the last byte, {found} of which were accepted")


@pytest.mark.slow
@on_both_with("times", [50], quick=[])
def test_two_servers_on_one_database(board, times):
    """The same file at both at once is one upload, and a quota holds for both; one is killed meanwhile."""
    senders = Senders(board)
    secret = tokens(board, ["limited"])[0]
    with serving(board, "--workers", 1) as (one, _), serving(board, "--workers", 1) as (two, second):
        ports = [one, two]
        for number in range(times):
            with ThreadPoolExecutor(2) as threads:
                told = list(threads.map(partial(send_number, senders.tokens[0], number), ports))
            assert told[0] == told[1]
            senders.send(ports, [number])
            if number == times // 2:
                second.kill()
                ports = [one, one]
                time_goes_by(board)
        senders.finish(board, one, times)
        check_invariants(board, senders.receipts)
    set_keys(board, submissions_a_day=3)
    with serving(board, "--workers", 1) as (one, _), serving(board, "--workers", 1) as (two, _):
        with ThreadPoolExecutor(8) as threads:
            ports = [(one, two)[number % 2] for number in range(8)]
            contents = [output("test-A", 0.5, number) for number in range(8)]
            statuses = [status for status, _ in threads.map(send, ports, [secret] * 8, contents)]
        assert sorted(statuses) == [201] * 3 + [429] * 5
        drained(board)
    set_keys(board, submissions_a_day=0)  # the other teams had sent more
    assert check_invariants(board, senders.receipts) == {"scored": TEAMS * times + 3}


def send_number(secret, number, port):
    """Upload an output; gives the number of the upload."""
    return send(port, secret, output("test-A", 0.5, number))[1]["number"]


# A full disk


@pytest.fixture
def filling(small_disk, full, challenge, database, tmp_path):
    """A board whose database, or contents in PostgreSQL, stand on a small disk."""
    is_small, is_file = full == "the database", database == "board.sqlite"
    where = str(small_disk / database) if is_small and is_file else database
    board = creation.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers", database=where)
    set_keys(board, **UNLIMITED)
    if not is_small or is_file:
        yield board
        return
    (small_disk / "space").mkdir()
    shutil.chown(small_disk / "space", Path(board.engine.url.query["host"]).owner())
    change(board, f"CREATE TABLESPACE small LOCATION '{small_disk}/space'", "ALTER TABLE blobs SET TABLESPACE small")
    yield board
    change(board, "ALTER TABLE blobs SET TABLESPACE pg_default", "DROP TABLESPACE small")


def change(board, *statements):
    """Run statements outside of any transaction."""
    with board.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


ON_DISK = ["the database", "temporary files"]  # what stands on the disk that is full


@pytest.mark.slow
@on_both_with("full", ON_DISK, quick=[])
@pytest.mark.parametrize("times", [50])
def test_a_full_disk_in_the_middle_of_an_upload(filling, full, small_disk, times):
    """It is refused with a reason that a program can read, nothing of it stays, and afterwards it is taken."""
    board, more = filling, {"TMPDIR": str(small_disk)} if full == "temporary files" else {}
    chance, secret = random.Random(times), tokens(board, ["anna"])[0]
    given, refused = [], 0
    with serving(board, "--workers", 0, **more) as (port, process):
        for number in range(times):
            content = padded(number, chance.randrange(1, 400_000))
            fill(small_disk, chance.randrange(0, len(content)) if number else 0)
            status, told = send(port, secret, content)
            assert status in (201, 503), told
            refused += status == 503
            assert (told.get("receipt") is None) == (status == 503)
            assert ask(port, "GET", "/receipt-key")[0] == 200
            (small_disk / "filler").unlink()
            check_invariants(board, given, is_idle=False)
            status, told = send(port, secret, content)
            assert status in (200, 201), told
            given.append(told["receipt"])
            assert list(small_disk.glob("**/upload-*")) == []
            worker = Process("work", board.folder, "--workers", "1", "--once", **more)
            worker.wait()
        assert process.is_running
    assert not list(small_disk.glob("geval-*"))  # a site that was being built is given up with its server
    assert refused
    assert check_invariants(board, given) == {"scored": times}
    print(f"{refused} of {times} uploads refused for a full disk of {full}, and accepted afterwards")


def padded(seed, size):
    """An output whose last line is long and cannot be compressed."""
    text = output("test-A", 0.5, seed).rstrip("\n")
    chance = random.Random(seed)
    words = "".join(f" {chance.getrandbits(80):x}:0.0000001" for _ in range(size // 32))
    last = text.rpartition("\n")[2]
    return f"{text[: -len(last)]}{last.split(' ')[0]}{words} :0.1\n"


def fill(folder, left):
    """Fill a disk but for about so many bytes."""
    with open(folder / "filler", "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1 << 16)):
            pass
    with suppress(OSError), open(folder / "filler", "ab", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    size = Path(folder / "filler").stat().st_size
    os.truncate(folder / "filler", max(0, size - left // 4096 * 4096))
