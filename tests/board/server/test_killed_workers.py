"""Workers that are killed at random moments: no upload is lost, done twice, or charged for what failed."""

import random
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from samples import ON_BOTH, output
from sqlalchemy import func, select, update

from geval_py.board.database.schema import blobs, jobs, submissions
from geval_py.board.server import queue
from geval_py.board.server.live import PROGRAM

pytestmark = pytest.mark.no_cover
TEAMS = 4
MAX_SECONDS = 3  # of a worker's life: it starts in about a second, and scores in 0.1
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def is_kept(board):
    """Whether what must always hold does: each upload has its content until it is settled."""
    with board.reading() as connection:
        rows = connection.execute(select(jobs)).all()
        kept = set(connection.execute(select(blobs.c.sha256)).scalars())
        ours = select(jobs.c.submission_id).where(jobs.c.submission_id.is_not(None))
        made = connection.execute(select(func.count()).select_from(submissions)).scalar_one()
        settled = connection.execute(ours).scalars().all()
        charged = (
            select(func.count())
            .select_from(submissions)
            .where(submissions.c.cost > 0, submissions.c.state != "scored")
        )
        costs = connection.execute(charged).scalar_one()
    for row in rows:
        assert row.receipt
        if row.state in (queue.WAITING, queue.LEASED):
            assert row.sha256 in kept, "an upload that waits has its content"
        else:
            assert (row.submission_id is not None) == (row.state == "done")
    assert len(settled) == len(set(settled)) == made, "each submission is of one upload"
    assert costs == 0, "what failed costs nothing"
    return [row.state for row in rows]


def worker(board, *more):
    """Start a worker in a process of its own."""
    words = [sys.executable, "-I", "-c", PROGRAM, "board", "work", board.folder, "--workers", "2", *more]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@ON_BOTH
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.long)])
def test_workers_that_are_killed_lose_nothing_and_do_nothing_twice(served, kills):
    served.clock.now = datetime.now(UTC)
    chance, board, sent = random.Random(kills), served.board, 0
    teams = [served.token(f"team {number}") for number in range(TEAMS)]
    for _ in range(kills):
        for team in teams:
            sent += team.put("/upload/out.tsv?test=test-A", output("test-A", 0.5, sent)).status_code == 201
        dying = worker(board)
        try:
            dying.wait(chance.uniform(0, MAX_SECONDS))
        except subprocess.TimeoutExpired:
            dying.kill()
        dying.wait()
        assert len(is_kept(board)) == sent
        with board.writing() as connection:  # half a minute goes by
            connection.execute(update(jobs).where(jobs.c.state == queue.LEASED).values(leased_until=PAST))
    assert sent == kills * TEAMS
    assert worker(board, "--once").wait(120) == 0
    states = is_kept(board)
    assert set(states) <= {"done", "failed"}
    with board.reading() as connection:
        reasons = set(connection.execute(select(jobs.c.reason).where(jobs.c.state == queue.FAILED)).scalars())
        twice = connection.execute(select(func.count()).where(jobs.c.deaths >= queue.MAX_DEATHS)).scalar_one()
        deaths = connection.execute(select(func.sum(jobs.c.deaths))).scalar_one()
    print(f"{kills} workers killed, {deaths} leases ended by it, {twice} jobs failed of {sent}")
    assert reasons <= {queue.DIED}
    assert states.count("failed") == twice
