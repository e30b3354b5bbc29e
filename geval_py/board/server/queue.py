"""The queue of a board's server: what waits in the board's database, leased by workers on this machine or on others.

A worker leases an upload for :data:`LEASE`, and renews the lease while it works. An upload whose worker died
is leased again when its lease is over. All that a worker holds dies with it, so whatever is tried again is worked on
alone, and fails after :data:`MAX_TRIES`. What a worker does is stored in the transaction that ends the lease, so that
an upload that was leased twice is done once.

Turns are fair: the submitter who was served least recently comes first, with the oldest upload that is due; each has
one at a time. A rescoring that an organiser asked for comes before all uploads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, exists, func, insert, or_, select, union_all, update
from sqlalchemy.exc import IntegrityError

from geval_py.board.database.schema import WAITING, Blobs, Files, Notices, Submissions, rescorings, submissions
from geval_py.board.database.store import Board, transaction
from geval_py.board.operations.notices import SENT
from geval_py.board.operations.pipeline import Attempt
from geval_py.board.submission import Result
from geval_py.errors import UsageError

LEASE = timedelta(seconds=30)
RENEW_SECONDS = 10
MAX_TRIES = 6
PAUSE = timedelta(seconds=5)  # after the first error; twice as long after each further one
MAX_PAUSE = PAUSE * 2 ** (MAX_TRIES - 2)
DIED = f"its worker died {MAX_TRIES} times"
UPLOADED = Submissions.sha256 != ""


@dataclass(frozen=True)
class Job:
    """A leased submission or, in the ``table`` of these, a rescoring; ``tries`` counts its leases.

    What came of it is the ``attempt`` of a submission that is ready to be stored, or the ``result`` of anything else;
    ``error`` is why the job is to be tried again. ``board`` is the folder of its board.
    """

    table: Table
    id: int
    tries: int
    board: str
    attempt: Attempt | None = None
    result: Result | None = None
    error: str = ""


def ask_to_rescore(connection: Connection, who: str, now: datetime, *, dry: bool) -> int:
    """Ask for a rescoring, and return its id. Raises UsageError while another one is not done."""
    if connection.execute(select(rescorings.c.id).where(rescorings.c.state == WAITING)).first():
        raise UsageError("a rescoring is waiting or running already")
    new = insert(rescorings).values(who=who, dry=dry, state=WAITING, arrived=now, due=now)
    return int(connection.scalar(new.returning(rescorings.c.id)))


def try_again(connection: Connection, now: datetime, is_meant: ColumnElement[bool]) -> int:
    """Let submissions whose files the board has wait again, with their arrivals; return how many."""
    has_files = exists().where(Files.submission_id == Submissions.id)
    has_content = exists().where(Blobs.sha256 == Submissions.sha256)
    again = update(submissions).where(is_meant, ~Submissions.trial, has_files | has_content)
    return connection.execute(again.values(state=WAITING, due=now, tries=0, reason="")).rowcount


@contextmanager
def locking(board: Board) -> Iterator[Connection]:
    """Change the queue in a transaction: of all writers' lock on SQLite; on PostgreSQL rows are locked alone."""
    if board.engine.dialect.name == "sqlite":
        with board.writing() as connection:
            yield connection
    else:
        with transaction(board.engine) as connection:
            yield connection


def lease(board: Board, now: datetime, at_work: Sequence[Job] = ()) -> Job | None:
    """Lease what is to be done next, for a worker that holds the jobs ``at_work``.

    Returns None if nothing is to be done now, or if another worker was faster. What is tried again waits until the
    worker holds nothing else, and meanwhile it takes nothing new.
    """
    if any(job.tries > 1 for job in at_work):
        return None
    c = submissions.alias("other").c
    is_same_team = c.submitter_id == Submissions.submitter_id
    is_busy = exists().where(is_same_team, c.id != Submissions.id, c.leased_until.is_not(None))
    last = select(func.max(c.started)).where(is_same_team).scalar_subquery()
    uploads = select(submissions).where(is_free(submissions, now), ~is_busy)
    uploads = uploads.order_by(last.is_not(None), last, Submissions.id)
    asked = select(rescorings).where(is_free(rescorings, now))
    try:
        with locking(board) as connection:
            for table, query in ((rescorings, asked), (submissions, uploads)):
                row = connection.execute(query.limit(1).with_for_update(skip_locked=True, of=table)).first()
                if row:
                    break
            if not row or (row.tries and at_work):
                return None
            job = Job(table, row.id, row.tries + 1, board.folder)
            values = {"tries": job.tries, "started": now, "leased_until": now + LEASE}
            connection.execute(update(table).where(table.c.id == row.id).values(values))
    except IntegrityError:  # another worker leased an upload of the same submitter
        return None
    return job


def is_free(table: Table, now: datetime) -> ColumnElement[bool]:
    """Return the condition that something waits and is due; what is due much later is of a clock set back."""
    c, latest = table.c, now + MAX_PAUSE
    is_due = and_(c.leased_until.is_(None), or_(c.due <= now, c.due > latest))
    return and_(c.state == WAITING, or_(is_due, is_over(table, now)))


def is_over(table: Table, now: datetime) -> ColumnElement[bool]:
    """Return the condition that a lease is over; also if it lasts too long, which a clock that was set back makes."""
    until = table.c.leased_until
    return or_(until < now, until > now + 2 * LEASE)


def update_held(connection: Connection, job: Job, until: datetime | None, **values: Any) -> bool:
    """Renew a lease or end it, and change columns of what was leased; return False if the lease was lost."""
    c = job.table.c
    is_held = c.id == job.id, c.tries == job.tries, c.leased_until.is_not(None)
    new = update(job.table).where(*is_held).values(values | {"leased_until": until})
    return connection.execute(new).rowcount == 1


def put_back(connection: Connection, job: Job, now: datetime, reason: str = "") -> None:
    """End the lease of what is to be done later: after an error, with its ``reason``, later each time."""
    due, tries = (now + PAUSE * 2 ** (job.tries - 1), job.tries) if reason else (now, job.tries - 1)
    update_held(connection, job, None, reason=reason, due=due, tries=tries)


# What an organiser watches.


@dataclass(frozen=True, kw_only=True)
class QueueStatus:
    """How many jobs wait, are leased, and have a lease that is over; the age in seconds of the oldest that waits.

    ``undelivered`` are the notices that were tried, and did not arrive, by the reason of their last tries.
    """

    waiting: int
    leased: int
    expired: int
    oldest_seconds: float
    undelivered: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        """Yield sentences about it for a terminal."""
        yield f"queue: {self.waiting} waiting, {self.leased} running"
        if self.waiting:
            yield f"the oldest job has waited for {self.oldest_seconds:.0f} seconds"
        if self.expired:
            yield f"expired leases: {self.expired}; if no worker is running, start geval board work"
        for reason, count in self.undelivered.items():
            yield f"undelivered notices: {count}, because {reason}"


def queue_status(connection: Connection, now: datetime) -> QueueStatus:
    """Count what waits and what is leased."""
    queries = (
        select(table.c.arrived, table.c.leased_until, is_over(table, now).label("is_over")).where(
            table.c.state == WAITING
        )
        for table in (submissions, rescorings)
    )
    rows = connection.execute(union_all(*queries)).all()
    arrivals = [row.arrived for row in rows if row.leased_until is None]
    is_lost = Notices.state != SENT, Notices.tries > 0
    lost = select(Notices.reason, func.count()).where(*is_lost).group_by(Notices.reason).order_by(Notices.reason)
    return QueueStatus(
        waiting=len(arrivals),
        leased=len(rows) - len(arrivals),
        expired=sum(bool(row.is_over) for row in rows),
        oldest_seconds=max(0.0, (now - min(arrivals, default=now)).total_seconds()),
        undelivered={row[0]: row[1] for row in connection.execute(lost)},
    )
