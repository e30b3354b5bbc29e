"""The queue: leases, deaths, fairness; an upload is done once, whoever dies."""

import itertools
import json
import os
import threading
import time
from datetime import UTC, datetime

import pytest
from samples import NOW, ON_BOTH, OUT, output
from serving import Clock, set_keys
from sqlalchemy import func, insert, select, update

from geval_py.board.database.schema import WAITING, blobs, submissions, submitters
from geval_py.board.database.store import Board, StoreError
from geval_py.board.intake import sandbox
from geval_py.board.operations import scheduler
from geval_py.board.server import queue, worker
from geval_py.board.server.worker import Worker


def teams(board, *names):
    with board.writing() as connection:
        values = [{"key": name, "name": name} for name in names]
        return connection.execute(insert(submitters).values(values).returning(submitters.c.id)).scalars().all()


@pytest.fixture
def team(board):
    return teams(board, "team")[0]


def end_lease(clock):
    clock.wait(seconds=queue.LEASE.total_seconds() + 1)


def enqueue(board, submitter_id, now=NOW):
    values = dict.fromkeys(("name", "source", "charge", "scorer", "digest"), "")
    values |= {"tags": [], "params": {}, "links": [], "problems": [], "sha256": "0" * 64, "state": WAITING}
    values |= dict.fromkeys(("arrived", "added", "due"), now) | {"code": os.urandom(6).hex()}
    with board.writing() as connection:
        new = insert(submissions).values(values | {"submitter_id": submitter_id})
        return connection.execute(new.returning(submissions.c.id)).scalar_one()


def finish(board, job):
    with board.writing() as connection:
        return queue.update_held(connection, job, None, state="done")


def test_nobody_waits_for_the_hundred_jobs_of_another(board):
    many, one = teams(board, "many", "one")
    for _ in range(100):
        enqueue(board, many)
    own = enqueue(board, one)
    clock, order = Clock(), []
    for _ in range(2):
        order.append(queue.lease(board, clock()))
        finish(board, order[-1])
        clock.wait(seconds=1)
    assert order[1].id == own


@ON_BOTH
def test_a_team_has_one_job_at_a_time_in_its_order(board, team):
    first, second = enqueue(board, team), enqueue(board, team)
    job = queue.lease(board, NOW)
    assert (job.id, queue.lease(board, NOW)) == (first, None)
    with queue.locking(board) as connection:
        queue.put_back(connection, job, NOW, "the database was away")
    job, clock = queue.lease(board, NOW), Clock()  # while the first pauses
    assert job.id == second
    clock.wait(seconds=queue.PAUSE.total_seconds())
    assert queue.lease(board, clock()) is None
    assert finish(board, job)
    again = queue.lease(board, clock())
    assert (again.id, again.tries) == (first, 2)


@ON_BOTH
def test_a_job_whose_worker_died_is_leased_again_and_then_fails(board, team):
    enqueue(board, team)
    clock, leases = Clock(), []
    for _ in range(queue.MAX_TRIES + 1):
        leases.append(queue.lease(board, clock()))
        assert queue.lease(board, clock()) is None
        end_lease(clock)
    assert [job.tries for job in leases] == [*range(1, queue.MAX_TRIES + 2)]
    assert not finish(board, leases[0])  # it comes back from the dead, and has lost its lease
    assert finish(board, leases[-1])


def test_a_job_whose_worker_died_does_not_wait_for_an_older_one_that_is_tried_again(board, team):
    older, newer = enqueue(board, team), enqueue(board, team)
    clock = Clock()
    failed = queue.lease(board, clock())
    with board.writing() as connection:
        queue.update_held(connection, failed, None, state="failed")
    assert queue.lease(board, clock()).id == newer
    with board.writing() as connection:
        connection.execute(update(submissions).where(submissions.c.id == older).values(state=WAITING))
    assert queue.lease(board, clock()) is None
    end_lease(clock)
    again = queue.lease(board, clock())
    assert (again.id, again.tries) == (newer, 2)
    assert finish(board, again)
    assert queue.lease(board, clock()).id == older


def test_an_upload_with_which_a_worker_died_is_leased_alone(board):
    first, second, third = teams(board, "first", "second", "third")
    old, clock = enqueue(board, first), Clock()
    queue.lease(board, clock())
    end_lease(clock)
    new = enqueue(board, second, clock())
    job = queue.lease(board, clock())
    assert job.id == new
    assert queue.lease(board, clock(), [job]) is None
    again = queue.lease(board, clock())
    assert (again.id, again.tries) == (old, 2)
    enqueue(board, third, clock())
    assert queue.lease(board, clock(), [again]) is None


def test_a_renewed_lease_lasts(board, team):
    enqueue(board, team)
    clock = Clock()
    job = queue.lease(board, clock())
    for _ in range(10):
        clock.wait(seconds=queue.RENEW_SECONDS)
        with queue.locking(board) as connection:
            assert queue.update_held(connection, job, clock() + queue.LEASE)
        assert queue.lease(board, clock()) is None
    assert finish(board, job)


def test_a_clock_that_is_set_back_holds_up_no_job(board, team):
    enqueue(board, team)
    clock = Clock()
    clock.wait(hours=1)
    dead = queue.lease(board, clock())
    assert queue.lease(board, NOW).id == dead.id
    made = enqueue(board, *teams(board, "other"), clock())
    assert queue.lease(board, NOW).id == made


def test_the_longest_pause_after_an_error_is_kept(board, team):
    enqueue(board, team)
    clock = Clock()
    for lease in range(1, queue.MAX_TRIES):
        job = queue.lease(board, clock())
        with queue.locking(board) as connection:
            queue.put_back(connection, job, clock(), "the disk is full")
        clock.wait(seconds=queue.PAUSE.total_seconds() * 2 ** (lease - 1) - 1)
        assert queue.lease(board, clock()) is None
        clock.wait(seconds=1)
    assert queue.lease(board, clock()).tries == queue.MAX_TRIES


def sent(served, number=1, name="anna"):
    program = served.token(name)
    return program, [program.put(OUT, output("test-A", 0.5, seed)).json()["number"] for seed in range(number)]


def states(served):
    return served.rows(select(submissions.c.state).order_by(submissions.c.id))


def let_workers_die(served):
    for _ in range(queue.MAX_TRIES):
        queue.lease(served.board, served.clock())
        end_lease(served.clock)
    served.work()


def test_a_worker_that_loses_its_lease_stores_nothing(served, monkeypatch):
    sent(served)
    run = sandbox.run_in_sandbox

    def slow(*words, **more):
        with served.board.writing() as connection:  # another worker took the job meanwhile
            connection.execute(update(submissions).values(tries=submissions.c.tries + 1))
        return run(*words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "run_in_sandbox", slow)
        Worker(served.board.folder, at_once=1, clock=served.clock).run(until_idle=True)
    assert states(served) == ["waiting"]  # leased by the other
    end_lease(served.clock)
    assert served.work() == 1
    assert states(served) == ["scored"]


def test_an_upload_whose_workers_died_fails_and_costs_nothing(served):
    program, (number,) = sent(served)
    let_workers_die(served)
    told = program.get(f"/api/uploads/{number}").json()
    assert (told["state"], told["reason"], told["cost"]) == ("failed", "its worker died 6 times", 0)
    again = program.put(OUT, output("test-A", 0.5, 0))  # it may be sent again, and keeps its place
    assert (again.status_code, again.json()["number"], states(served)) == (200, number, ["waiting"])
    served.work()
    assert states(served) == ["scored"]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["command", "button"])
def test_an_upload_that_failed_is_tried_again_with_its_arrival(served, geval, way):
    program, (number,) = sent(served)
    before = program.get(f"/api/uploads/{number}").json()
    let_workers_die(served)
    assert states(served) == ["failed"]
    if way == "button":
        organiser = served.signed_in("olga", role="organiser")
        assert "Try failed uploads again" in organiser.get("/organiser").text
        assert organiser.post("/organiser/try-again").status_code == 303
    else:
        words = "board", "rescore", served.board.folder, "--again"
        assert geval(*words, "--dry-run") == (0, "nothing is out of date\n", "")
        assert states(served) == ["failed"]
        assert geval(*words) == (0, "nothing is out of date\ntried again: 1 submission\n", "")
        assert states(served) == ["scored"]
    served.work()
    told = program.get(f"/api/uploads/{number}").json()
    assert (told["state"], told["arrived"], told["cost"]) == ("scored", before["arrived"], 1)
    assert geval("board", "rescore", served.board.folder, "--again")[1] == "nothing is out of date\n"


@pytest.mark.slow
def test_the_contents_of_ten_failed_uploads_of_a_team_are_kept(served):
    for number in range(12):
        served.token("anna").put(OUT, output("test-A", 0.5, number))
        let_workers_die(served)
    assert states(served) == ["failed"] * 12
    kept = served.rows(select(submissions.c.sha256).order_by(submissions.c.id))[2:]
    assert set(served.rows(select(blobs.c.sha256))) == set(kept)


def test_an_error_is_tried_again_later_and_at_last_fails(served, monkeypatch):
    program, (number,) = sent(served)

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker, "unpacked", broken)
    for lease in range(1, queue.MAX_TRIES + 1):
        assert served.work() == 1
        assert states(served) == (["waiting"] if lease < queue.MAX_TRIES else ["failed"])
        served.clock.wait(seconds=queue.PAUSE.total_seconds() * 2**lease)
    told = program.get(f"/api/uploads/{number}").json()
    assert (told["state"], told["reason"]) == ("failed", "[Errno 28] No space left on device")


def test_an_upload_of_the_same_file_as_a_trial_before_it_has_its_content(served):
    for more in ("&dry=yes", ""):
        served.token("anna").put(f"{OUT}{more}", output("test-A", 0.5))
    assert (served.work(), states(served)) == (2, ["done", "scored"])


def test_the_content_of_an_upload_stays_as_long_as_it_is_needed(served):
    sent(served, 2)
    sent(served, 1, "bob")  # the same file as anna's first
    served.work()
    assert states(served) == ["scored"] * 3
    assert len(set(served.rows(select(blobs.c.sha256)))) == 2  # the files of the submissions


def test_a_submission_that_failed_is_tried_again_from_its_upload(served, geval, sandbox_jobs):
    """It failed before its files were received; so the board has only the upload."""
    sandbox_jobs.unopened.add("upload")
    sent(served)
    served.work()
    assert states(served) == ["failed"]
    sandbox_jobs.unopened.clear()
    geval("board", "rescore", served.board.folder, "--again")
    served.work()
    assert states(served) == ["scored"]


def test_a_worker_waits_for_a_database_that_is_away(served, monkeypatch, sandbox_jobs):
    """What it has done is not done again, and its lease is still its own."""
    sent(served)
    own = Worker(served.board.folder, at_once=1, clock=served.clock)
    writing, tried = Board.writing, []

    def sometimes(board, *seconds):
        if sandbox_jobs.scored:
            tried.append("to store")
            if len(tried) < 3:
                raise StoreError(path="board", reason="the server closed the connection")
            own.stop()
        return writing(board, *seconds)

    monkeypatch.setattr(Board, "writing", sometimes)
    monkeypatch.setattr(worker, "AWAY_SECONDS", 0.01)
    thread = threading.Thread(target=own.run)
    thread.start()
    thread.join(30)
    assert (len(tried), len(sandbox_jobs.scored)) == (3, 1)
    assert states(served) == ["scored"]
    assert served.rows(select(submissions.c.tries)) == [1]


def stored_together(served, monkeypatch, wait):
    """Let four teams upload and a worker score, which calls ``wait`` before; gives how many jobs ended at a time."""
    for name in ("anna", "bob", "cleo", "dan"):
        sent(served, 1, name)
    run = sandbox.run_in_sandbox
    monkeypatch.setattr(sandbox, "run_in_sandbox", lambda *words, **more: wait() or run(*words, **more))
    ticks = map(datetime.fromtimestamp, itertools.count(NOW.timestamp()), itertools.repeat(UTC))
    assert Worker(served.board.folder, at_once=4, clock=lambda: next(ticks)).run(until_idle=True) == 4
    assert states(served) == ["scored"] * 4
    ended = submissions.c.ended
    return served.rows(select(func.count()).select_from(submissions).group_by(ended).order_by(ended))


def test_jobs_that_finish_together_are_stored_together(served, monkeypatch):
    monkeypatch.setattr(scheduler, "GATHER_SECONDS", 30)  # however busy the machine is
    together = threading.Barrier(4)
    assert stored_together(served, monkeypatch, lambda: together.wait(30) and None) == [4]


@pytest.mark.slow
def test_no_finished_job_waits_for_one_that_takes_long(served, monkeypatch):
    first = iter([True])

    def wait():
        ends = time.monotonic() + 30
        if next(first, False):
            while states(served).count("scored") < 3 and time.monotonic() < ends:
                time.sleep(0.01)

    *others, last = stored_together(served, monkeypatch, wait)
    assert (sum(others), last) == (3, 1)


def test_a_trial_is_checked_as_in_its_phase(served):
    """An output for a test set that the phase does not rank is no output."""
    set_keys(served.board, phases="[{name: dev, until: 2027-01-31T00:00:00Z, tests: [dev-0]}]")
    told = served.send("anna", output("test-A", 0.5), f"{OUT}&dry=yes")
    assert (told["state"], "dev-0" in told["reason"]) == ("rejected", True)


def test_the_status_of_a_board_tells_of_its_queue(served, geval):
    assert "queue:" not in geval("board", "status", served.board.folder)[1]
    sent(served, 2)
    queue.lease(served.board, served.clock())
    end_lease(served.clock)
    assert served.browser().get("/healthz").json() == {"status": "fine", "waiting": 1}
    out = geval("board", "status", served.board.folder)[1]
    assert "queue: 1 waiting, 1 running\n" in out
    assert "the oldest job has waited for 31 seconds\n" in out
    assert "expired leases: 1; if no worker is running, start geval board work\n" in out
    document = json.loads(geval("board", "status", served.board.folder, "--format", "json")[1])
    counts = {"waiting": 1, "leased": 1, "oldest_seconds": 31.0, "expired": 1}
    assert document["queue"] == {**counts, "undelivered": {}}
