"""The queue of a board's server: what waits in the board's database, leased by workers on this machine or on others.

A worker leases an upload for :data:`LEASE_SECONDS`, and renews the lease while it works. An upload whose worker died
is leased again when its lease is over. All that a worker holds dies with it, so whatever is tried again is worked on
alone, and fails after :data:`MAX_TRIES`. What a worker does is stored in the transaction that ends the lease, so that
an upload that was leased twice is done once.

Turns are fair: the submitter who was served least recently comes first, with their oldest upload; each has one at a
time. A rescoring that an organiser asked for comes before all uploads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, exists, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from geval_py.board.database.schema import FAILED, WAITING, Blobs, Notices, Submissions, rescorings, submissions
from geval_py.board.database.store import Board, store_errors
from geval_py.board.operations.notices import SENT
from geval_py.board.operations.pipeline import Attempt
from geval_py.errors import UsageError

LEASE_SECONDS = 30
RENEW_SECONDS = 10
MAX_TRIES = 6
PAUSE_SECONDS = 5  # after the first error; twice as long after each further one
MAX_PAUSE_SECONDS = PAUSE_SECONDS * 2 ** (MAX_TRIES - 2)
DIED = f"its worker died {MAX_TRIES} times"
UPLOADED = Submissions.sha256 != ""


@dataclass(frozen=True)
class Job:
    """A leased upload or, in the ``table`` of these, a rescoring; ``tries`` counts its leases.

    What came of it stands in ``state``, ``reason`` and ``problems`` or, of a submission that is ready to be stored,
    in ``attempt``; ``error`` is why the job is to be tried again. ``board`` is the folder of its board.
    """

    table: Table
    id: int
    tries: int
    is_trial: bool = False
    attempt: Attempt | None = None
    state: str = ""
    reason: str = ""
    problems: Sequence[Mapping[str, Any]] = ()
    error: str = ""
    board: str = ""

    @property
    def is_dead(self) -> bool:
        """Whether its workers died too often: it is to fail."""
        return self.tries > MAX_TRIES

    @property
    def needs_alone(self) -> bool:
        """Whether it is an upload that may end its worker."""
        return self.table is submissions and 1 < self.tries <= MAX_TRIES


def ask_to_rescore(connection: Connection, who: str, now: datetime, *, dry: bool) -> int:
    """Ask for a rescoring, and return its id. Raises UsageError while another one is not done."""
    if connection.execute(select(rescorings.c.id).where(rescorings.c.state == WAITING)).first() is not None:
        raise UsageError(message="a rescoring is waiting or running already")
    new = insert(rescorings).values(who=who, dry=dry, state=WAITING, arrived=now, due=now)
    return int(connection.execute(new.returning(rescorings.c.id)).scalar_one())


def try_again(connection: Connection, now: datetime) -> int:
    """Let failed uploads whose content is kept wait again, with their arrivals; return their number."""
    has_content = exists().where(Blobs.sha256 == Submissions.sha256)
    failed = update(submissions).where(UPLOADED, Submissions.state == FAILED, ~Submissions.trial, has_content)
    return connection.execute(failed.values(state=WAITING, due=now, tries=0, reason="")).rowcount


@contextmanager
def changing(board: Board) -> Iterator[Connection]:
    """Change the queue in a transaction: of all writers' lock on SQLite; on PostgreSQL rows are locked alone."""
    engine = board.engine
    if engine.dialect.name == "sqlite":
        with board.writing() as connection:
            yield connection
    else:
        with store_errors(engine), engine.begin() as connection:
            yield connection


def lease(board: Board, now: datetime, *, alone: bool = True) -> Job | None:
    """Lease what is to be done next, for a worker that holds nothing else (``alone``) or that holds something.

    Returns None if nothing is to be done now, or if another worker was faster, and a job that is not leased, with 0
    ``tries``, if it needs a worker alone.
    """
    other, served = submissions.alias("other"), submissions.alias("served")
    same = and_(other.c.submitter_id == Submissions.submitter_id, other.c.id != Submissions.id)
    is_older = and_(other.c.id < Submissions.id, Submissions.leased_until.is_(None))
    is_open = other.c.state == WAITING, or_(other.c.leased_until.is_not(None), is_older)
    of_submitter = served.c.submitter_id == Submissions.submitter_id
    last = select(func.max(served.c.started)).where(of_submitter).scalar_subquery()
    uploads = select(submissions).where(is_free(submissions, now), ~exists().where(same, *is_open))
    uploads = uploads.order_by(last.is_not(None), last, Submissions.id)
    asked = select(rescorings).where(is_free(rescorings, now))
    try:
        with changing(board) as connection:
            for table, query in ((rescorings, asked), (submissions, uploads)):
                row = connection.execute(query.limit(1).with_for_update(skip_locked=True, of=table)).first()
                if row is not None:
                    break
            else:
                return None
            is_trial = table is submissions and row.trial
            job = Job(table, row.id, row.tries + 1, is_trial, board=board.folder)
            if job.needs_alone and not alone:
                return replace(job, tries=0)
            values = {"tries": job.tries, "started": now, "leased_until": now + timedelta(seconds=LEASE_SECONDS)}
            connection.execute(update(table).where(table.c.id == row.id).values(values))
    except IntegrityError:  # another worker leased an upload of the same submitter
        return None
    return job


def is_free(table: Table, now: datetime) -> ColumnElement[bool]:
    """Return the condition that something waits and is due; what is due much later is of a clock set back."""
    c, latest = table.c, now + timedelta(seconds=MAX_PAUSE_SECONDS)
    is_due = and_(c.leased_until.is_(None), or_(c.due <= now, c.due > latest))
    return and_(c.state == WAITING, or_(is_due, is_over(table, now)))


def is_over(table: Table, now: datetime) -> ColumnElement[bool]:
    """Return the condition that a lease is over; also if it lasts too long, which a clock that was set back makes."""
    until = table.c.leased_until
    return or_(until < now, until > now + timedelta(seconds=2 * LEASE_SECONDS))


def renew(board: Board, held: Sequence[Job], now: datetime) -> None:
    """Renew leases; those that were lost meanwhile stay lost."""
    with changing(board) as connection:
        for job in held:
            _update_held(connection, job, leased_until=now + timedelta(seconds=LEASE_SECONDS))


def finish(connection: Connection, job: Job, **values: Any) -> bool:
    """End a lease, and change columns of what was leased; if the lease was lost, change nothing and return False."""
    return _update_held(connection, job, **values, leased_until=None)


def put_back(connection: Connection, job: Job, now: datetime, reason: str = "") -> None:
    """End the lease of what is to be done later: after an error, with its ``reason``, later each time."""
    due = now + timedelta(seconds=PAUSE_SECONDS * 2 ** (job.tries - 1) if reason else 0)
    tries = job.tries if reason else job.tries - 1
    _update_held(connection, job, leased_until=None, reason=reason, due=due, tries=tries)


def _update_held(connection: Connection, job: Job, **values: Any) -> bool:
    """Change what was leased, unless the lease was lost; return whether it was held."""
    c = job.table.c
    is_held = c.id == job.id, c.tries == job.tries, c.leased_until.is_not(None)
    return connection.execute(update(job.table).where(*is_held).values(values)).rowcount == 1


# What an organiser watches.


@dataclass(frozen=True, kw_only=True)
class QueueStatus:
    """The uploads by state; the age in seconds of the oldest that waits; leases that are over; failures by reason.

    ``undelivered`` are the notices that were tried, and did not arrive, by the reason of their last tries.
    """

    waiting: int
    leased: int
    done: int
    failed: int
    oldest_seconds: float
    expired: int
    failures: Mapping[str, int]
    undelivered: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        """Yield sentences about it for a terminal."""
        yield f"queue: {self.waiting} waiting, {self.leased} running, {self.done} done, {self.failed} failed"
        if self.waiting:
            yield f"the oldest job has waited for {self.oldest_seconds:.0f} seconds"
        if self.expired:
            yield f"expired leases: {self.expired}; if no worker is running, start geval board work"
        for reason, count in self.failures.items():
            yield f"failed jobs: {count}, because {reason}"
        for reason, count in self.undelivered.items():
            yield f"undelivered notices: {count}, because {reason}"


def queue_status(connection: Connection, now: datetime) -> QueueStatus:
    """Count what waits, and what was uploaded."""
    columns = Submissions.state, Submissions.leased_until.is_not(None)
    query = select(*columns, func.count(), func.min(Submissions.arrived)).where(UPLOADED).group_by(*columns)
    counts = {(row[0], bool(row[1])): row[2:] for row in connection.execute(query)}
    asked = select(func.count(), func.min(rescorings.c.arrived)).where(
        rescorings.c.state == WAITING, rescorings.c.leased_until.is_(None)
    )
    rescoring = connection.execute(asked).one()
    waiting, oldest = counts.pop((WAITING, False), (0, now))
    leased, failed = (counts.pop(key, (0, now))[0] for key in ((WAITING, True), (FAILED, False)))
    over = [select(func.count()).where(is_over(table, now)) for table in (submissions, rescorings)]
    reason = Submissions.reason
    failures = select(reason, func.count()).where(UPLOADED, Submissions.state == FAILED).group_by(reason)
    is_lost = Notices.state != SENT, Notices.tries > 0
    lost = select(Notices.reason, func.count()).where(*is_lost).group_by(Notices.reason).order_by(Notices.reason)
    return QueueStatus(
        waiting=waiting + rescoring[0],
        leased=leased,
        done=sum(count for count, _ in counts.values()),
        failed=failed,
        oldest_seconds=max(0.0, (now - min(oldest, rescoring[1] or now)).total_seconds()),
        expired=sum(connection.execute(query).scalar_one() for query in over),
        failures={row[0]: row[1] for row in connection.execute(failures.order_by(reason))},
        undelivered={row[0]: row[1] for row in connection.execute(lost)},
    )
