"""Workers that are killed at random moments: no upload is lost, done twice, or charged for what failed."""

import random
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from deployed import check_invariants
from samples import ON_BOTH, output
from sqlalchemy import func, select, update

from geval_py.board.database.schema import jobs
from geval_py.board.server import queue
from geval_py.board.server.live import PROGRAM

pytestmark = pytest.mark.no_cover
TEAMS = 4
MAX_SECONDS = 3  # of a worker's life: it starts in about a second, and scores in 0.1
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def worker(board, *more):
    """Start a worker in a process of its own."""
    words = [sys.executable, "-I", "-c", PROGRAM, "board", "work", board.folder, "--workers", "2", *more]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@ON_BOTH
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.long)])
def test_workers_that_are_killed_lose_nothing_and_do_nothing_twice(served, kills):
    served.clock.now = datetime.now(UTC)
    chance, board, receipts = random.Random(kills), served.board, []
    teams = [served.token(f"team {number}") for number in range(TEAMS)]
    for _ in range(kills):
        for team in teams:
            answer = team.put("/upload/out.tsv?test=test-A", output("test-A", 0.5, len(receipts)))
            receipts.append(answer.json()["receipt"])
        dying = worker(board)
        try:
            dying.wait(chance.uniform(0, MAX_SECONDS))
        except subprocess.TimeoutExpired:
            dying.kill()
        dying.wait()
        check_invariants(board, receipts, is_idle=False)
        with board.writing() as connection:  # half a minute goes by
            connection.execute(update(jobs).where(jobs.c.state == queue.LEASED).values(leased_until=PAST))
    assert worker(board, "--once").wait(120) == 0
    states = check_invariants(board, receipts)
    assert (set(states) <= {"done", "failed"}, sum(states.values())) == (True, kills * TEAMS)
    with board.reading() as connection:
        reasons = set(connection.execute(select(jobs.c.reason).where(jobs.c.state == queue.FAILED)).scalars())
        twice = connection.execute(select(func.count()).where(jobs.c.deaths >= queue.MAX_DEATHS)).scalar_one()
        deaths = connection.execute(select(func.sum(jobs.c.deaths))).scalar_one()
    print(f"{kills} workers killed, {deaths} leases ended by it, {twice} jobs failed of {len(receipts)}")
    assert reasons <= {queue.DIED}
    assert states.get("failed", 0) == twice
