"""``geval board work``: take jobs from the queue, check and score uploads, and store what came of them.

A worker prepares several jobs at once, in threads whose work is done by children, as ``geval board scan`` does, and
stores those that are finished in one transaction with the ends of their leases. It may be killed at any moment: the
leases of its jobs run out, and another worker takes them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, select

from geval_py.board.database.schema import FAILED, rescorings, submissions
from geval_py.board.database.store import Board, StoreError
from geval_py.board.intake.sandbox import end_children, receive_in_sandbox
from geval_py.board.intake.workspace import workspace
from geval_py.board.operations import pipeline, storing
from geval_py.board.operations.notices import tell_of_upload
from geval_py.board.operations.receipts import REFUSED, UPLOAD, QuotaError
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.references import references_of
from geval_py.board.server import queue, uploads
from geval_py.board.server.delivery import deliver_next
from geval_py.board.server.live import PROGRAM, LiveBoard
from geval_py.board.submission import SCORED, RejectedError, SubmissionError
from geval_py.errors import GevalError
from geval_py.text import visible

IDLE_SECONDS = 0.5  # between two looks at an empty queue
AWAY_SECONDS = 5  # between two tries of a database that cannot be used
RESCORING_SECONDS = 0.2  # between two looks at a rescoring
GROUP = 16  # jobs that are stored in one transaction, at most, and
AHEAD = 4  # jobs that are leased for each thread, so that none is idle while finished ones are stored
GATHER_SECONDS = 0.5  # for which a finished job waits for others that are at work


@dataclass(slots=True, kw_only=True)
class Work:
    """A job at work, and what came of it.

    ``prepared`` is a submission that is ready to be stored; ``state``, ``reason`` and ``problems`` are of an upload
    that becomes none. ``error`` is why the job is to be tried again. ``finished`` is a moment of the monotonic clock.
    """

    job: queue.Job
    board: Board
    upload: Row[Any] | None = None
    prepared: pipeline.Prepared | None = None
    state: str = uploads.DONE
    reason: str = ""
    problems: Sequence[Any] = ()
    error: str = ""
    finished: float = 0.0


Running: TypeAlias = "dict[Future[Work], tuple[Work, TemporaryDirectory[str]]]"  # each with its place


class Worker:
    """A worker on a board's queue.

    ``at_once`` jobs are prepared at a time, by default one a core, and ``leased`` are leased, by default AHEAD times
    as many. ``clock`` tells the moment.

    :meth:`run` works until :meth:`stop`, which another thread or a signal calls or, with ``until_idle``, until
    nothing is left to do.
    """

    def __init__(
        self,
        folder: str,
        *,
        at_once: int | None = None,
        leased: int | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._live = LiveBoard(folder)
        self._at_once = at_once or os.cpu_count() or 1
        self._leased = leased or AHEAD * self._at_once
        self._clock = clock or (lambda: datetime.now(UTC))
        self._stopping = threading.Event()
        self._renewed = time.monotonic()
        self._telling: tuple[Future[bool] | None, int] = None, 0

    def stop(self) -> None:
        """Let :meth:`run` end: jobs at work are put back, and their children are killed."""
        self._stopping.set()

    def run(self, *, until_idle: bool = False) -> int:
        """Work, and return the number of jobs that were done.

        While the database cannot be used, it waits, and keeps what it has done; with ``until_idle`` it raises
        StoreError.
        """
        done = 0
        running: Running = {}
        threads, told = ThreadPoolExecutor(self._at_once), ThreadPoolExecutor(1)
        with workspace() as places:
            try:
                while not self._stopping.is_set():
                    try:
                        is_idle = not self._start(threads, running, places) and not self._tell(told, done)
                        if not running and is_idle and until_idle:
                            break
                        done += self._settle(running, self._finished(running))
                        self._renew([work.job for work, _ in running.values()])
                    except StoreError:
                        if until_idle:
                            raise
                        self._stopping.wait(AWAY_SECONDS)
            finally:
                threads.shutdown(wait=False, cancel_futures=True)
                told.shutdown(wait=False, cancel_futures=True)
                end_children(places, running)
                with suppress(StoreError):  # or their leases run out
                    self._put_back([work.job for work, _ in running.values()])
        return done

    def _tell(self, thread: ThreadPoolExecutor, done: int) -> bool:
        """Deliver notices in a thread of their own, since a receiver may be slow; return whether there may be one.

        There is none if the thread found none since the last of ``done`` jobs was.
        """
        looking, after = self._telling
        if looking is not None and not looking.done():
            return True
        self._telling = None, done
        if looking is not None and not looking.result() and after == done:
            return False
        self._telling = thread.submit(deliver_next, self._live.board(), self._clock()), done
        return True

    def _finished(self, running: Running) -> list[Future[Work]]:
        """Return the finished jobs, as they were leased; none, after a little while, if others may join them."""
        if not running:
            self._stopping.wait(IDLE_SECONDS)
            return []
        finished = [one for one in running if one.done()]
        at_work = running.keys() - finished
        left = min((running[one][0].finished for one in finished), default=time.monotonic()) + GATHER_SECONDS
        left -= time.monotonic()
        if not at_work or left <= 0 or len(finished) >= GROUP:
            return finished[:GROUP]
        wait(at_work, timeout=left, return_when=FIRST_COMPLETED)
        return []

    def _start(self, threads: ThreadPoolExecutor, running: Running, places: str) -> bool:
        """Lease jobs as long as there is room, and none beside one that needs this worker alone.

        Returns whether there was one, or no room.
        """
        started = False
        while len(running) < self._leased and not any(work.job.needs_alone for work, _ in running.values()):
            board = self._live.board()
            job = queue.lease(board, self._clock(), alone=not running)
            if job is None:
                return started
            place = TemporaryDirectory(dir=places)
            work = Work(job=job, board=board)
            running[threads.submit(self._do, work, place.name)] = work, place
            started = True
        return True

    def _do(self, work: Work, place: str) -> Work:
        """Do a job, outside of any transaction; an error that is not the job's is noted, to try again."""
        try:
            if work.job.is_dead:
                work.state, work.reason = FAILED, queue.DIED
            elif work.job.rescoring_id is not None:
                self._rescore(work, work.job.rescoring_id)
            elif work.job.upload_id is not None:
                _score(work, work.job.upload_id, place, self._clock())
        except (GevalError, OSError) as error:
            work.error = visible(str(error).partition("\n")[0]) or type(error).__name__
        work.finished = time.monotonic()
        return work

    def _rescore(self, work: Work, number: int) -> None:
        """Rescore what is out of date by the command, in a process of its own, which ends with this worker."""
        with work.board.reading() as connection:
            dry = connection.execute(select(rescorings.c.dry).where(rescorings.c.id == number)).scalar_one()
        words = [sys.executable, "-I", "-c", PROGRAM, "board", "rescore", work.board.folder]
        with TemporaryFile("w+") as told, TemporaryFile("w+") as errors:
            run = subprocess.Popen(
                [*words, *(["--dry-run"] if dry else [])], stdin=subprocess.DEVNULL, stdout=told, stderr=errors
            )
            while run.poll() is None:
                if self._stopping.wait(RESCORING_SECONDS):
                    run.terminate()
                    run.wait()
            told.seek(0)
            errors.seek(0)
            work.reason, error = told.read(), errors.read()
        if run.returncode:
            work.error = visible(error.strip().partition("\n")[0]) or f"it ended with status {run.returncode}"

    def _settle(self, running: Running, finished: Sequence[Future[Work]]) -> int:
        """Store what came of finished jobs; if the board itself is at fault, put them back."""
        works = [one.result() for one in finished]
        if works:
            try:
                self._store(works)
            except StoreError:
                raise
            except GevalError as error:  # the challenge is not there, say
                for work in works:
                    work.error = visible(str(error).partition("\n")[0])
                self._store(works)
        for one in finished:
            running.pop(one)[1].cleanup()
        return len(works)

    def _store(self, works: Sequence[Work]) -> None:
        """Store what came of some jobs, with the ends of their leases; jobs whose leases were lost are left out."""
        now, board = self._clock(), self._live.board()
        with board.writing() as connection:
            ours = [work for work in works if _end(connection, work, now)]
            for work in ours:
                if work.job.rescoring_id is not None:
                    queue.settle_rescoring(connection, work.job.rescoring_id, work.state, work.reason)
                elif work.upload is not None and not work.error:
                    _settle_upload(connection, board, work, now)
            if any(work.prepared is not None and not work.error for work in ours):
                refresh(connection, board.settings, now)

    def _renew(self, held: list[queue.Job]) -> None:
        if held and time.monotonic() - self._renewed > queue.RENEW_SECONDS:
            queue.renew(self._live.board(), held, self._clock())
            self._renewed = time.monotonic()

    def _put_back(self, held: Sequence[queue.Job]) -> None:
        if held:
            with queue.changing(self._live.board()) as connection:
                for job in held:
                    queue.put_back(connection, job, self._clock())


def _score(work: Work, upload_id: int, place: str, now: datetime) -> None:
    """Receive, check and score an upload or, if it is dry, check it alone."""
    board = work.board
    with board.reading() as connection:
        work.upload = row = uploads.upload(connection, upload_id)
        source = uploads.place_of(connection, row, place)
    files = os.path.join(place, "files")
    os.mkdir(files)
    arrival = pipeline.Arrival(
        source=source,
        submitter=row.team,
        arrived=row.arrived,
        added=max(now, row.arrived),
        arrived_by=UPLOAD,
        origin=f"upload {row.number}: {row.name}",
        stored=row.sha256,
    )
    if row.dry:
        _check(work, row, source, files)
        return
    try:
        work.prepared = pipeline.prepare(board, arrival, references_of(board.settings), files)
        if work.prepared.state == FAILED:
            work.state, work.reason = FAILED, work.prepared.reason
    except QuotaError as error:
        work.state, work.reason = REFUSED, str(error).replace("\n ", ";")
    except RejectedError as error:
        work.state, work.reason = REFUSED, error.reason


def _check(work: Work, row: Row[Any], source: str, place: str) -> None:
    """Check an upload by the rules that need no answers; nothing is scored."""
    outcome = pipeline.Outcome()
    try:
        parcel = receive_in_sandbox(source, place, work.board.settings.at(row.arrived))
        outcome = pipeline.check_and_score(work.board, outcome, parcel, place, {})
    except SubmissionError as error:
        outcome = pipeline.after_error(outcome, error)
    work.state = uploads.DONE if outcome.state == SCORED else outcome.state
    work.reason, work.problems = outcome.reason, outcome.problems


def _end(connection: Connection, work: Work, now: datetime) -> bool:
    """End the lease of a job; return whether it is this worker's to store."""
    job = work.job
    if work.error and job.lease < queue.MOST_LEASES:
        queue.put_back(connection, job, now, work.error)
        return False
    if work.error:
        work.state, work.reason, work.error = FAILED, work.error, ""
        work.prepared = None
    if work.upload is None and job.upload_id is not None:
        work.upload = uploads.upload(connection, job.upload_id)
    state, reason = (queue.FAILED, work.reason) if work.state == FAILED else (queue.DONE, "")
    return queue.finish(connection, job, now, state=state, reason=reason)


def _settle_upload(connection: Connection, board: Board, work: Work, now: datetime) -> None:
    """Store a submission with its upload's state, or that the upload becomes none."""
    row = work.upload
    if row is None:
        raise AssertionError("a job of an upload has one")
    submission_id = None
    if work.prepared is not None:
        try:
            receipt = storing.store(connection, board, work.prepared)
        except QuotaError as error:
            work.state, work.reason = REFUSED, str(error).replace("\n ", ";")
        else:
            by_code = select(submissions.c.id).where(submissions.c.code == receipt.code)
            submission_id = connection.execute(by_code).scalar_one()
            work.reason = receipt.reason
    tell_of_upload(connection, board.settings, row, work.state, submission_id, now)
    uploads.settle(
        connection,
        row,
        now,
        state=work.state,
        reason=work.reason,
        submission_id=submission_id,
        problems=work.problems,
    )
