"""Faults at a server in processes of its own: no upload is lost, double, half there, or charged for what failed.

What must hold after each is :func:`deployed.check_invariants`. All but one kill are for ``--long``.
"""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException

import pytest
from deployed import Process, ask, check_invariants, drained, processes_of, send, serve, serving, tokens, unused_port
from samples import on_both_with, output
from serving import set_keys
from sqlalchemy import update

from geval_py.board.database.schema import WAITING, submissions
from geval_py.board.operations import creation

pytestmark = pytest.mark.no_cover
TEAMS = 4
UNLIMITED = {"submissions_a_day": 0, "server": "{uploads_an_hour: 10_000}"}
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

    def send(self, port, seeds):
        """Send an output a team, and what is left of earlier rounds."""
        self._left += [(secret, seed) for secret in self.tokens for seed in seeds]
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(partial(self._receipt, port), self._left))
        self._left = [one for one, receipt in zip(self._left, found, strict=True) if receipt is None]
        self.receipts += [receipt for receipt in found if receipt is not None]

    @staticmethod
    def _receipt(port, sent):
        """Upload; gives the receipt, None if there is no answer, or if the server says that it cannot now."""
        secret, seed = sent
        with suppress(OSError, HTTPException):
            status, told = send(port, secret, output("test-A", 0.5, seed))
            assert status in (200, 201, 503), told
            return told.get("receipt")
        return None

    def finish(self, board, port, seeds):
        """Send all again until each has its receipt, and see that each output is one upload, and scored."""
        for _ in range(10):
            self.send(port, [])
        assert self._left == []
        assert len(self.receipts) == TEAMS * seeds
        time_goes_by(board)
        drained(board)
        assert check_invariants(board, self.receipts) == {"scored": TEAMS * seeds}


def time_goes_by(board):
    """Let the leases of killed workers be over, and what is to be tried again be due."""
    with board.writing() as connection:
        waits = submissions.c.state == WAITING
        connection.execute(update(submissions).where(waits).values(due=PAST, tries=0, leased_until=None))


def kill_workers(process):
    for pid in processes_of(process.pid)[:0:-1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.stop()


def kill_all(process):
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
            sending = thread.submit(senders.send, port, [number])
            time.sleep(chance.uniform(0, 0.4))
            KILLS[killed](process)
            sending.result()
        check_invariants(board, senders.receipts, is_idle=False)
        time_goes_by(board)
    with serving(board, "--workers", 2) as (port, _):
        senders.finish(board, port, times)


@pytest.mark.long
def test_a_killed_database_loses_nothing(postgresql, challenge, tmp_path):
    """PostgreSQL with all its connections; SQLite has no process but the server's and the worker's: see above."""
    times = 50
    url = postgresql.new_database()
    board = creation.create(tmp_path / "board", challenge=challenge, answers=tmp_path / "answers", database=url)
    set_keys(board, **UNLIMITED)
    chance, senders = random.Random(times), Senders(board)
    with serving(board, "--workers", 1) as (port, process):
        for number in range(times):
            with ThreadPoolExecutor(1) as thread:
                sending = thread.submit(senders.send, port, [number])
                time.sleep(chance.uniform(0, 0.4))
                postgresql.crash()
                assert ask(port, "GET", "/healthz")[0] == 503
                sending.result()
            postgresql.start()
            check_invariants(board, senders.receipts, is_idle=False)
            time_goes_by(board)
        senders.finish(board, port, times)
        assert process.is_running
