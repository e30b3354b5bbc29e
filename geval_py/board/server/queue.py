"""The queue of a board's server: jobs in the board's database, leased by workers on this machine or on others.

A worker leases a job for :data:`LEASE_SECONDS`, and renews the lease while it works. A job whose worker died is
leased again when its lease is over; the second death fails it. All jobs that a worker holds die with it. So an upload
with which a worker died is worked on alone, and fails only if it ends a second worker by itself. What a worker does
is stored in the transaction that ends its lease, so that a job that was leased twice is done once.

A job is an upload, or a rescoring that an organiser asked for. Turns are fair: rescorings come first, then the
submitter who was served least recently, with their oldest job; each has one at a time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from geval_py.board.database.schema import Blobs, Jobs, jobs
from geval_py.board.database.store import Board, store_errors
from geval_py.board.operations.pipeline import Attempt
from geval_py.board.operations.receipts import LEASED, OPEN, WAITING
from geval_py.errors import UsageError

UPLOAD, RESCORING = "upload", "rescoring"  # the kinds
DONE, FAILED = "done", "failed"  # states; an upload may also be refused and, if it is dry, rejected
NUMBER_BYTES = 8
LEASE_SECONDS = 30
RENEW_SECONDS = 10
MAX_DEATHS = 2  # leases of a job that may end by the death of their worker
MAX_LEASES = 6  # after which an error fails a job
PAUSE_SECONDS = 5  # after the first error; twice as long after each further one
MAX_PAUSE_SECONDS = PAUSE_SECONDS * 2 ** (MAX_LEASES - 2)
DIED = "its worker died twice"


@dataclass(frozen=True)
class Job:
    """A leased job; ``lease`` counts its leases, and ``deaths`` those in which its worker died.

    What came of it stands in ``state``, ``reason`` and ``problems`` or, of a submission that is ready to be stored,
    in ``attempt``; ``error`` is why the job is to be tried again. ``board`` is the folder of its board.
    """

    id: int
    kind: str
    submitter_id: int | None
    dry: bool
    lease: int
    deaths: int
    attempt: Attempt | None = None
    state: str = DONE
    reason: str = ""
    problems: Sequence[Mapping[str, Any]] = ()
    error: str = ""
    board: str = ""

    @property
    def is_dead(self) -> bool:
        """Whether its workers died too often: it is to fail."""
        return self.deaths >= MAX_DEATHS

    @property
    def needs_alone(self) -> bool:
        """Whether it is an upload that may end its worker; a rescoring runs in a process of its own."""
        return self.kind == UPLOAD and 0 < self.deaths < MAX_DEATHS


def enqueue(connection: Connection, kind: str, now: datetime, **values: Any) -> int:
    """Add a job with some values of its columns, and return its id."""
    values = {"number": secrets.token_hex(NUMBER_BYTES), "arrived": now, "due": now, "state": WAITING} | values
    return int(connection.execute(insert(jobs).values(kind=kind, **values).returning(Jobs.id)).scalar_one())


def ask_to_rescore(connection: Connection, who: str, now: datetime, *, dry: bool) -> int:
    """Add the job of a rescoring, and return its id. Raises UsageError while another one is not done."""
    if connection.execute(select(Jobs.id).where(Jobs.kind == RESCORING, Jobs.state.in_(OPEN))).first() is not None:
        raise UsageError(message="a rescoring is waiting or running already")
    return enqueue(connection, RESCORING, now, who=who, dry=dry)


def try_again(connection: Connection, now: datetime) -> int:
    """Put failed uploads whose content is kept back into the queue, with their arrivals; return their number."""
    has_content = exists().where(Blobs.sha256 == Jobs.sha256)
    failed = update(jobs).where(Jobs.kind == UPLOAD, Jobs.state == FAILED, ~Jobs.dry, has_content)
    values = {"state": WAITING, "due": now, "ended": None, "lease": 0, "deaths": 0, "reason": ""}
    return connection.execute(failed.values(values)).rowcount


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
    """Lease the next job, for a worker that holds no other (``alone``) or that holds some.

    It is the oldest one of the submitter who was served least recently. Returns None if nothing is to be done now, or
    if another worker was faster, and a job that is not leased, with ``lease`` 0, if it needs a worker alone.
    """
    other, served = jobs.alias("other"), jobs.alias("served")
    latest = now + timedelta(seconds=MAX_PAUSE_SECONDS)  # what is due later still is of a clock that went back
    is_due = or_(Jobs.due <= now, Jobs.due > latest)
    is_free = or_(and_(Jobs.state == WAITING, is_due), and_(Jobs.state == LEASED, is_over(now)))
    same = and_(other.c.submitter_id == Jobs.submitter_id, other.c.id != Jobs.id)
    busy = exists().where(same, other.c.state == LEASED)
    earlier = exists().where(same, other.c.state == WAITING, other.c.id < Jobs.id)
    last = select(func.max(served.c.started)).where(served.c.submitter_id == Jobs.submitter_id).scalar_subquery()
    query = select(jobs).where(is_free, ~busy, ~earlier).order_by(last.is_not(None), last, Jobs.id).limit(1)
    try:
        with changing(board) as connection:
            row = connection.execute(query.with_for_update(skip_locked=True, of=jobs)).first()
            if row is None:
                return None
            deaths = row.deaths + (row.state == LEASED)
            job = Job(row.id, row.kind, row.submitter_id, row.dry, row.lease + 1, deaths, board=board.folder)
            if job.needs_alone and not alone:
                return replace(job, lease=0)
            values = {"state": LEASED, "lease": job.lease, "deaths": deaths, "started": now}
            values["leased_until"] = now + timedelta(seconds=LEASE_SECONDS)
            connection.execute(update(jobs).where(Jobs.id == row.id).values(values))
    except IntegrityError:  # another worker leased a job of the same submitter
        return None
    return job


def is_over(now: datetime) -> ColumnElement[bool]:
    """Return the condition that a lease is over; also if it lasts too long, which a clock that was set back makes."""
    return or_(Jobs.leased_until < now, Jobs.leased_until > now + timedelta(seconds=2 * LEASE_SECONDS))


def renew(board: Board, held: Sequence[Job], now: datetime) -> None:
    """Renew the leases of jobs; those that were lost meanwhile stay lost."""
    with changing(board) as connection:
        for job in held:
            _update_held(connection, job, leased_until=now + timedelta(seconds=LEASE_SECONDS))


def finish(connection: Connection, job: Job, now: datetime) -> bool:
    """End the lease of a job that was done; if it was lost, change nothing and return False."""
    values = {"reason": job.reason, "problems": job.problems, "state": job.state}
    return _update_held(connection, job, **values, ended=now, leased_until=None)


def put_back(connection: Connection, job: Job, now: datetime, reason: str = "") -> None:
    """End the lease of a job that is to be done later: after an error, with its ``reason``, later each time."""
    due = now + timedelta(seconds=PAUSE_SECONDS * 2 ** (job.lease - 1) if reason else 0)
    _update_held(connection, job, state=WAITING, leased_until=None, reason=reason, due=due)


def _update_held(connection: Connection, job: Job, **values: Any) -> bool:
    """Change a job, unless its lease was lost; return whether it was held."""
    is_held = Jobs.id == job.id, Jobs.lease == job.lease, Jobs.state == LEASED
    return connection.execute(update(jobs).where(*is_held).values(values)).rowcount == 1


# What an organiser watches.


@dataclass(frozen=True, kw_only=True)
class QueueStatus:
    """The jobs by state; the age in seconds of the oldest that waits; leases that are over; failures by reason."""

    waiting: int
    leased: int
    done: int
    failed: int
    oldest_seconds: float
    expired: int
    failures: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        """Yield sentences about it for a terminal."""
        yield f"queue: {self.waiting} waiting, {self.leased} running, {self.done} done, {self.failed} failed"
        if self.waiting:
            yield f"the oldest job has waited for {self.oldest_seconds:.0f} seconds"
        if self.expired:
            yield f"expired leases: {self.expired}; if no worker is running, start geval board work"
        for reason, count in self.failures.items():
            yield f"failed jobs: {count}, because {reason}"


def queue_status(connection: Connection, now: datetime) -> QueueStatus:
    """Count the jobs."""
    by_state = connection.execute(select(Jobs.state, func.count(), func.min(Jobs.arrived)).group_by(Jobs.state))
    states = {state: (count, first) for state, count, first in by_state}
    waiting, oldest = states.pop(WAITING, (0, now))
    leased, failed = (states.pop(state, (0, now))[0] for state in (LEASED, FAILED))
    expired = select(func.count()).where(Jobs.state == LEASED, is_over(now))
    failures = (
        select(Jobs.reason, func.count()).where(Jobs.state == FAILED).group_by(Jobs.reason).order_by(Jobs.reason)
    )
    return QueueStatus(
        waiting=waiting,
        leased=leased,
        done=sum(count for count, _ in states.values()),
        failed=failed,
        oldest_seconds=max(0.0, (now - oldest).total_seconds()),
        expired=connection.execute(expired).scalar_one(),
        failures={row[0]: row[1] for row in connection.execute(failures)},
    )
