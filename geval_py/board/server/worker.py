"""``geval board work``: take jobs from the queue, check and score uploads, and store what came of them.

A worker prepares several jobs at once, as ``geval board scan`` does, and stores those that are finished in one
transaction with the ends of their leases. It may be killed at any moment: the leases of its jobs run out, and another
worker takes them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, union_all

from geval_py.board.database.schema import (
    DONE,
    FAILED,
    REFUSED,
    SCORED,
    WAITING,
    Blobs,
    Files,
    Submissions,
    blobs,
    rescorings,
    submissions,
)
from geval_py.board.database.store import Board, StoreError, boards_in, write_content
from geval_py.board.intake.sandbox import process_source
from geval_py.board.operations import scheduler
from geval_py.board.operations.notices import tell_of_upload
from geval_py.board.operations.pipeline import Attempt, end_upload, prepare, store
from geval_py.board.operations.receipts import SUBMISSIONS, QuotaError
from geval_py.board.operations.rescoring import rescore, score_again
from geval_py.board.operations.teams import team_settings
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.references import references_of
from geval_py.board.server import queue
from geval_py.board.server.delivery import THREADS, deliver_next
from geval_py.board.server.live import LiveBoard
from geval_py.board.server.queue import UPLOADED, Job
from geval_py.board.submission import Result, attributes
from geval_py.errors import GevalError
from geval_py.text import visible

IDLE_SECONDS = 0.5  # between two looks for notices
MAX_FAILED = 10  # failed uploads of a team whose contents are kept
AWAY_SECONDS = 5  # between two tries of a database that cannot be used


class Worker:
    """A worker on a board's queue or, of a folder of several boards, on theirs, in turn.

    ``at_once`` jobs are prepared at a time, by default one a core, and AHEAD times as many are leased.

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
        self._away = dict.fromkeys(self._boards, 0.0)  # until when a board is left alone, after an error
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

        While the database of its only board cannot be used, it waits, and keeps what it has done; with ``until_idle``
        it raises GevalError. Notices are delivered in a thread of their own, since a receiver may be slow.
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
            stop=self._stopping,
            is_endless=not until_idle,
        )
        for job in left:
            with suppress(StoreError), queue.locking(self._boards[job.board].board()) as connection:
                queue.put_back(connection, job, self._clock())
        for live in self._boards.values():
            while until_idle and deliver_next(live.board(), self._clock()):
                pass
        return self._done

    def _deliver(self, live: LiveBoard) -> None:
        while not self._stopping.is_set():
            try:
                seconds = 0 if deliver_next(live.board(), self._clock()) else IDLE_SECONDS
            except GevalError:  # the database is away
                seconds = AWAY_SECONDS
            self._stopping.wait(seconds)

    def _take(self, at_work: Sequence[Job]) -> Job | None:
        """Lease the next job, of a board that can be used."""
        for path in [path for path in self._turns if self._away[path] <= time.monotonic()]:
            with self._passing(path):
                job = queue.lease(self._boards[path].board(), self._clock(), at_work)
                if job:
                    self._turns.sort(key=lambda other: other == path)  # it is the others' turn
                    return job
        return None

    @contextmanager
    def _passing(self, path: str) -> Iterator[None]:
        """Leave a board with an error alone for a while; with ``until_idle``, raise the error."""
        try:
            yield
        except GevalError:
            if self._until_idle:
                raise
            self._away[path] = time.monotonic() + AWAY_SECONDS

    def _renew(self, at_work: Sequence[Job]) -> None:
        if at_work and time.monotonic() - self._renewed > queue.RENEW_SECONDS:
            self._renewed = time.monotonic()
            for path, live in self._boards.items():
                if own := [job for job in at_work if job.board == path]:
                    with self._passing(path), queue.locking(live.board()) as connection:
                        for job in own:
                            queue.update_held(connection, job, self._clock() + queue.LEASE)

    def _prepare(self, job: Job, place: str) -> Job:
        """Do a job, outside of any transaction; an error that is not the job's is noted, to try again."""
        board = self._boards[job.board].board()
        try:
            if job.tries > queue.MAX_TRIES:
                return replace(job, result=Result(state=FAILED, reason=queue.DIED))
            if job.table is submissions:
                return score_submission(board, job, place)
            with board.reading() as connection:
                asked = connection.execute(select(rescorings).where(rescorings.c.id == job.id)).one()
            rescored = rescore(board, now=self._clock(), dry_run=asked.dry, stop=self._stopping)
            told = "".join(f"{line}\n" for line in rescored.lines(dry_run=asked.dry))
            return replace(job, result=Result(state=DONE, reason=told))
        except (GevalError, OSError) as error:
            return replace(job, error=visible(str(error).partition("\n")[0]) or type(error).__name__)

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
                except StoreError:
                    if self._until_idle:
                        raise
                    if len(self._boards) > 1 or self._stopping.wait(AWAY_SECONDS):
                        break  # the other boards do not wait; its jobs are done again when their leases have run out
                except GevalError as error:  # the challenge is not there, say
                    message = visible(str(error).partition("\n")[0])
                    own = [replace(job, error=message) for job in own]


def score_submission(board: Board, job: Job, place: str) -> Job:
    """Receive, check and score what was uploaded, or score the files of what is tried again; only check a trial."""
    with board.reading() as connection:
        row = connection.execute(SUBMISSIONS.where(Submissions.id == job.id)).one()
        settings = team_settings(connection, board.settings, row.submitter_id).at(row.arrived)
        has_files = connection.execute(select(Files.id).where(Files.submission_id == row.id)).first()
        source = "" if has_files else unpacked(connection, row, place)
    received = os.path.join(place, "files")
    os.mkdir(received)
    if row.trial:
        result = process_source(source, received, settings, ())
        return replace(job, result=replace(result, state=DONE) if result.state == SCORED else result)
    references = references_of(board.settings)
    attempt = Attempt(
        source=source,
        row_id=row.id,
        name=row.submitter,
        unopened=row.digest,
        references=references,
        **attributes(row, "submitter arrived baseline"),
    )
    if has_files:
        return replace(job, attempt=replace(attempt, result=score_again(board, row.id, references, received)))
    return replace(job, attempt=prepare(board, attempt, references, received))


def unpacked(connection: Connection, row: Row[Any], folder: str) -> str:
    """Write an upload's content into an empty folder; return the path of the archive, or of the submission's folder.

    Raises StoreError if it is damaged, OSError.
    """
    top = os.path.join(folder, "upload")
    path = os.path.join(top, row.test, row.sent_name)
    os.makedirs(os.path.dirname(path))
    write_content(connection, row.sha256, path)
    return top if row.test else path


def remove_content(connection: Connection, row: Row[Any]) -> None:
    """Delete the contents of a team's uploads, unless they wait, or a submission or a failed upload needs them.

    Of each team, the contents of the last MAX_FAILED failed uploads are kept.
    """
    position = func.row_number().over(partition_by=Submissions.submitter_id, order_by=Submissions.id.desc())
    query = select(Submissions.sha256, position.label("position"))
    failed = query.where(Submissions.state == FAILED, UPLOADED, ~Submissions.trial).subquery()
    needed = union_all(
        select(Files.sha256),
        select(Submissions.sha256).where(Submissions.state == WAITING),
        select(failed.c.sha256).where(failed.c.position <= MAX_FAILED),
    )
    uploaded = select(Submissions.sha256).where(Submissions.submitter_id == row.submitter_id)
    connection.execute(delete(blobs).where(Blobs.sha256.in_(uploaded), Blobs.sha256.not_in(needed)))


def _settle(connection: Connection, board: Board, job: Job, now: datetime) -> bool:
    """End the lease of a job, and store what came of it; return whether that is a submission.

    Nothing is stored if the lease was lost, or if the job is to be tried again.
    """
    if job.error and job.tries < queue.MAX_TRIES:
        queue.put_back(connection, job, now, job.error)
        return False
    result = job.result or Result(state=FAILED, reason=job.error)
    if job.table is rescorings:
        queue.update_held(connection, job, None, state=result.state, reason=result.reason, ended=now)
        return False
    if not queue.update_held(connection, job, None):
        return False
    try:
        if job.attempt is None or job.error:
            end_upload(connection, job.id, result, now)
        else:
            store(connection, board, job.attempt, now)
    except QuotaError as error:
        refusal = Result(state=REFUSED, reason=str(error).replace("\n ", ";"))
        end_upload(connection, job.id, refusal, now)
    row = connection.execute(select(submissions).where(Submissions.id == job.id)).one()
    tell_of_upload(connection, board.settings, row, now)
    remove_content(connection, row)
    return job.attempt is not None
