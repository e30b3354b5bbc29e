"""``geval board work``: take jobs from the queue, check and score uploads, and store what came of them.

A worker prepares several jobs at once, as ``geval board scan`` does, and stores those that are finished in one
transaction with the ends of their leases. It may be killed at any moment: the leases of its jobs run out, and another
worker takes them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import Connection, select

from geval_py.board.database.schema import DONE, FAILED, REFUSED, SCORED, rescorings
from geval_py.board.database.store import Board, StoreError, boards_in
from geval_py.board.intake.sandbox import process_source
from geval_py.board.operations import scheduler
from geval_py.board.operations.notices import tell_of_upload
from geval_py.board.operations.pipeline import Attempt, end_upload, prepare, store
from geval_py.board.operations.receipts import QuotaError, change_submission
from geval_py.board.operations.rescoring import rescore
from geval_py.board.operations.teams import team_settings
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.references import references_of
from geval_py.board.server import queue, uploads
from geval_py.board.server.delivery import THREADS, deliver_next
from geval_py.board.server.live import LiveBoard
from geval_py.board.server.queue import Job
from geval_py.errors import GevalError
from geval_py.text import visible

IDLE_SECONDS = 0.5  # between two looks for notices
AWAY_SECONDS = 5  # between two tries of a database that cannot be used


class Worker:
    """A worker on a board's queue or, of a folder of several boards, on theirs, in turn.

    ``at_once`` jobs are prepared at a time, by default one a core, and AHEAD times as many are leased. ``clock``
    tells the moment.

    :meth:`run` works until :meth:`stop`, which another thread or a signal calls or, with ``until_idle``, until
    nothing is left to do.
    """

    def __init__(
        self,
        folder: str,
        *,
        at_once: int | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._boards = {path: LiveBoard(path) for path in boards_in(folder) or [folder]}
        self._turns = list(self._boards)
        self._at_once = at_once or os.cpu_count() or 1
        self._clock = clock or (lambda: datetime.now(UTC))
        self._stopping = threading.Event()
        self._renewed = time.monotonic()
        self._until_idle = False
        self._done = 0

    def stop(self) -> None:
        """Let :meth:`run` end: jobs at work are put back, and their children are killed."""
        self._stopping.set()

    def run(self, *, until_idle: bool = False) -> int:
        """Work, and return the number of jobs that were done.

        While the database cannot be used, it waits, and keeps what it has done; with ``until_idle`` it raises
        StoreError. Notices are delivered in a thread of their own, since a receiver may be slow.
        """
        self._until_idle, self._done = until_idle, 0
        if not until_idle:
            for live in [*self._boards.values()] * THREADS:  # one that hangs does not delay the others
                threading.Thread(target=self._deliver, args=(live,), daemon=True).start()
        left = scheduler.run(
            self._take,
            self._prepare,
            self._store,
            tick=self._renew,
            threads=self._at_once,
            ahead=scheduler.AHEAD * self._at_once,
            stop=self._stopping,
            is_endless=not until_idle,
        )
        if left:
            for job in left:
                with suppress(StoreError), queue.changing(self._board_of(job)) as connection:  # or its lease runs out
                    queue.put_back(connection, job, self._clock())
        for live in self._boards.values():
            while until_idle and deliver_next(live.board(), self._clock()):
                pass
        return self._done

    def _board_of(self, job: Job) -> Board:
        return self._boards[job.board].board()

    def _deliver(self, live: LiveBoard) -> None:
        while not self._stopping.is_set():
            try:
                seconds = 0 if deliver_next(live.board(), self._clock()) else IDLE_SECONDS
            except GevalError:  # the database is away
                seconds = AWAY_SECONDS
            self._stopping.wait(seconds)

    def _take(self, at_work: Sequence[Job]) -> Job | None:
        """Lease the next job, but none beside one that needs this worker alone."""
        if any(job.needs_alone for job in at_work):
            return None
        try:
            for path in self._turns:
                job = queue.lease(self._boards[path].board(), self._clock(), alone=not at_work)
                if job is not None:
                    self._turns.sort(key=lambda other: other == path)  # it is the others' turn
                    return job if job.tries else None
        except StoreError as error:
            self._wait_or_raise(error)
        return None

    def _renew(self, at_work: Sequence[Job]) -> None:
        if at_work and time.monotonic() - self._renewed > queue.RENEW_SECONDS:
            self._renewed = time.monotonic()
            try:
                for path, live in self._boards.items():
                    if own := [job for job in at_work if job.board == path]:
                        queue.renew(live.board(), own, self._clock())
            except StoreError as error:
                self._wait_or_raise(error)

    def _wait_or_raise(self, error: StoreError) -> None:
        """Wait for a database that cannot be used; with ``until_idle``, raise its error."""
        if self._until_idle:
            raise error
        self._stopping.wait(AWAY_SECONDS)

    def _prepare(self, job: Job, place: str) -> Job:
        """Do a job, outside of any transaction; an error that is not the job's is noted, to try again."""
        board = self._board_of(job)
        try:
            if job.is_dead:
                return replace(job, state=FAILED, reason=queue.DIED)
            if job.table is rescorings:
                return self._rescore(board, job)
            return score_upload(board, job, place)
        except (GevalError, OSError) as error:
            return replace(job, error=visible(str(error).partition("\n")[0]) or type(error).__name__)

    def _rescore(self, board: Board, job: Job) -> Job:
        """Rescore what is out of date, if the rescoring is still wanted, until this worker stops."""
        with board.reading() as connection:
            asked = connection.execute(select(rescorings).where(rescorings.c.id == job.id)).one()
        rescored = rescore(board, now=self._clock(), dry_run=asked.dry, stop=self._stopping)
        return replace(job, state=DONE, reason="".join(f"{line}\n" for line in rescored.lines(dry_run=asked.dry)))

    def _store(self, finished: Sequence[Job]) -> None:
        """Store what came of jobs, with the ends of their leases; if a board itself is at fault, put them back."""
        for path, live in self._boards.items():
            own = [job for job in finished if job.board == path]
            while own:
                now, board = self._clock(), live.board()
                try:
                    with board.writing() as connection:
                        if sum(_settle(connection, board, job, now) for job in own):
                            refresh(connection, board.settings, now)
                    self._done += len(own)
                    break
                except StoreError as error:
                    self._wait_or_raise(error)
                    if self._stopping.is_set():
                        break
                except GevalError as error:  # the challenge is not there, say
                    message = visible(str(error).partition("\n")[0])
                    own = [replace(job, error=message) for job in own]


def score_upload(board: Board, job: Job, place: str) -> Job:
    """Receive, check and score an upload or, if it is a trial, check it alone; nothing is scored then."""
    with board.reading() as connection:
        upload = uploads.upload(connection, job.id)
        settings = team_settings(connection, board.settings, upload.submitter_id)
        source = uploads.place_of(connection, upload, place)
    received = os.path.join(place, "files")
    os.mkdir(received)
    if job.is_trial:
        result = process_source(source, received, settings.at(upload.arrived), ())
        state = DONE if result.state == SCORED else result.state
        return replace(job, state=state, reason=result.reason, problems=result.problems)
    attempt = Attempt(
        source=source,
        submitter=upload.team,
        arrived=upload.arrived,
        added=upload.arrived,
        row_id=upload.id,
        origin=upload.source,
    )
    return replace(job, attempt=prepare(board, attempt, references_of(board.settings), received))


def _settle(connection: Connection, board: Board, job: Job, now: datetime) -> bool:
    """End the lease of a job, and store what came of it; return whether that is a submission.

    Nothing is stored if the lease was lost, or if the job is to be tried again.
    """
    if job.error and job.tries < queue.MAX_TRIES:
        queue.put_back(connection, job, now, job.error)
        return False
    if job.error:
        job = replace(job, state=FAILED, reason=job.error, attempt=None)
    if job.table is rescorings:
        queue.finish(connection, job, state=job.state, reason=job.reason, ended=now)
        return False
    if not queue.finish(connection, job):
        return False
    try:
        if job.attempt is not None:
            store(connection, board, replace(job.attempt, added=max(now, job.attempt.arrived)))
        else:
            end_upload(connection, job.id, job.state, job.reason, now)
            change_submission(connection, job.id, problems=job.problems)
    except QuotaError as error:
        end_upload(connection, job.id, REFUSED, str(error).replace("\n ", ";"), now)
    upload = uploads.upload(connection, job.id)
    tell_of_upload(connection, board.settings, upload, now)
    uploads.remove_content(connection, upload)
    return job.attempt is not None
