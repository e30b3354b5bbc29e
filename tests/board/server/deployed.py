"""A board's server and workers in processes of their own, programs that upload to it, and what must hold afterwards."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from samples import verified
from sqlalchemy import func, select, text

from geval_py.board.database.schema import FAILED, REJECTED, SCORED, WAITING, blobs, files, submissions, submitters
from geval_py.board.database.store import Board, write_content
from geval_py.board.operations.receipts import quota_used
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.store import accounts_of
from geval_py.board.server import signed_receipts
from geval_py.cli.board.server import PROGRAM

HOST = "127.0.0.1"
START_SECONDS = 120


def unused_port():
    with socket.socket() as one:
        one.bind((HOST, 0))
        return one.getsockname()[1]


class Process:
    """``geval board`` in a process of its own; ``first`` is code that it runs before."""

    def __init__(self, *words, first="", **environment):
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", f"{first}\n{PROGRAM}", "board", *map(str, words)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | environment,
        )
        self.pid = self._process.pid

    @property
    def is_running(self):
        return self._process.poll() is None

    def kill(self):
        self._end(signal.SIGKILL)

    def stop(self):
        self._end(signal.SIGTERM)

    def _end(self, number):
        self._process.send_signal(number)
        self.wait()

    def wait(self):
        """Wait until it has ended, with all its children; ``said`` is what was on standard error."""
        if self._process.stderr.closed:
            return
        self.said = self._process.stderr.read().decode()
        self._process.stderr.close()
        self._process.wait()


def serve(board, port, *words, **more):
    """Start a server, and wait until it answers."""
    process = Process("serve", board.folder, "--port", port, *words, **more)
    ends = time.monotonic() + START_SECONDS
    while True:
        assert process.is_running, process.stop() or process.said
        assert time.monotonic() < ends
        with suppress(OSError):
            socket.create_connection((HOST, port)).close()
            return process
        time.sleep(0.05)


@contextmanager
def serving(board, *words, **more):
    """Serve during the block; yield the port and the process."""
    port = unused_port()
    process = serve(board, port, *words, **more)
    try:
        yield port, process
    finally:
        process.stop()


def processes_of(pid):
    """Return the ids of a process and of all its descendants."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


# People


def now():
    return datetime.now(UTC)


def _secrets(board, names, make):
    """Make accounts, and a secret of each."""
    with accounts_of(board).writing() as people:
        links = [accounts.invite(people, name, now=now()).secret for name in names]
        return [make(people, one) for link in links for one in sign_in.accept(people, link, now())]


def sessions(board, names):
    """Sign people in; gives the cookie of each."""
    made = _secrets(board, names, lambda people, one: secrets.issue(people, secrets.SESSION, one.person, now()))
    return [f"geval={secret}" for secret in made]


def tokens(board, names):
    """Make accounts; gives a token of each."""
    return _secrets(board, names, lambda people, one: sign_in.make_token(people, one, now=now()))


def ask(port, method, path, body=None, *, timeout=60, **headers):
    """Send a request; gives the status of its answer, and the answer; raises OSError, HTTPException."""
    connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def send(port, token, content, name="out.tsv", **more):
    """Upload an output of test-A; gives the status, and the answer as a document."""
    path = f"/upload/{name}?test=test-A"
    status, answer = ask(port, "PUT", path, content, Authorization=f"Bearer {token}", **more)
    return status, json.loads(answer)


# What must hold


def check_invariants(board, given=(), *, is_idle=True):
    """Look whether nothing is lost, double or half there; ``given`` are the receipts that submitters have, as JSON.

    If ``is_idle``, nothing waits any more. Gives the number of uploads by state.
    """
    board, key = Board.open(board.folder), signed_receipts.public_text(signed_receipts.signing_key(board.folder))
    with board.reading() as connection:
        if connection.dialect.name == "sqlite":
            assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
        rows = connection.execute(select(submissions).order_by(submissions.c.id)).all()
        stored = {row.code: row for row in rows}
        for receipt in given:  # no receipt without its upload
            told = verified(receipt, key)
            assert stored[told["number"]].receipt == receipt
        for row in rows:
            _check_upload(connection, row, key)
        alive = [(row.submitter_id, row.sha256) for row in rows if row.state != FAILED and not row.trial]
        assert len(set(alive)) == len(alive)
        needed = {digest for (digest,) in connection.execute(select(files.c.sha256))}
        needed |= {row.sha256 for row in rows if row.state in (WAITING, FAILED) and not (row.trial and row.ended)}
        assert {digest for (digest,) in connection.execute(select(blobs.c.sha256))} == needed
        _check_quota(connection, board, rows)
    states = [row.state for row in rows]
    assert not (is_idle and WAITING in states)
    return {state: states.count(state) for state in sorted(set(states))}


def _check_upload(connection, row, key):
    """Look at one upload: its receipt, its content, and what it became."""
    if not row.trial:
        told = verified(row.receipt, key)
        assert (told["number"], told["sha256"], told["bytes"]) == (row.code, row.sha256, row.bytes)
        assert datetime.fromisoformat(told["arrived"]) == row.arrived
    if row.state == WAITING:
        assert content_of(connection, row.sha256) == row.bytes
    if row.state == SCORED:
        own = connection.execute(select(files.c.sha256).where(files.c.submission_id == row.id)).scalars().all()
        assert row.sha256 in own


def content_of(connection, digest):
    """Read a content, whose digest is verified; gives its size."""
    place = f"/dev/shm/geval-content-{os.getpid()}"
    try:
        write_content(connection, digest, place)
        return os.path.getsize(place)
    finally:
        os.unlink(place)


def _check_quota(connection, board, rows):
    """Look whether each team has spent its scored and rejected submissions, and what waits, and nothing else."""
    for (team,) in connection.execute(select(submitters.c.id)):
        days = {row.arrived.date(): row.arrived for row in rows if row.submitter_id == team}.values()
        used = [quota_used(connection, board.settings, team, moment, with_uploads=True) for moment in days]
        own = [row for row in rows if row.submitter_id == team and not row.trial]
        assert sum(used) == len([row for row in own if row.state in (WAITING, SCORED, REJECTED)])
        assert not board.settings.submissions_a_day or max(used, default=0) <= board.settings.submissions_a_day


def waiting(board):
    """Return how many uploads wait."""
    with board.reading() as connection:
        query = select(func.count()).where(submissions.c.state == WAITING)
        return connection.execute(query).scalar_one()


def drained(board, seconds=500):
    """Wait until no upload waits any more."""
    ends = time.monotonic() + seconds
    while waiting(board):
        assert time.monotonic() < ends
        time.sleep(0.1)
