"""``geval board add`` and ``scan``, which add submissions, and ``withdraw`` and ``note``, which mark them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, takewhile
from tempfile import TemporaryDirectory
from typing import TypeAlias

from sqlalchemy import Connection, select, update

from geval_py.board.answers import References, references_of
from geval_py.board.database.schema import FAILED, submissions
from geval_py.board.database.store import Board, escape_unstorable, facts_about, remember
from geval_py.board.intake.identity import fingerprint, own_name, submissions_in
from geval_py.board.operations.arrivals import Arrivals, arrivals_in
from geval_py.board.operations.pipeline import PLACE_PREFIX, Arrival, Prepared, prepare, settings_digest, store
from geval_py.board.operations.receipts import AT, NOW, REFUSED, QuotaError, Receipt, id_of, receipt_of, written
from geval_py.board.ranking.disclosure import refresh
from geval_py.errors import DataError, GevalError, UsageError
from geval_py.reading.sources import naming
from geval_py.text import visible

Progress: TypeAlias = "Callable[[int, int], None]"
GROUP = 16  # submissions that are stored in one transaction
AHEAD = 4  # for each core, so many submissions are prepared before they are stored
SCANNED = "scanned "  # facts: the fingerprint of a path when it was stored, and
RECEIVED = "received"  # this or, if it could not be received, the digest of the settings


def add(
    board: Board,
    source: str,
    *,
    submitter: str | None = None,
    at: datetime | None = None,
    baseline: bool = False,
    now: datetime,
) -> Receipt:
    """Receive, check, score and store a submission: a folder, an archive, or ``git+URL@BRANCH``.

    ``submitter`` is by default the submission's name, for a branch its whole repository; ``at`` is when it arrived,
    by default now. If the submitter sent the same content before, that submission's receipt is returned; if it failed
    then, it is replaced. Rejected and failed submissions are stored as such.

    Raises QuotaError before anything is scored; RejectedError for a name that no submitter may have; UsageError for a
    time in the future; MissingFileError for a missing source; StoreError.
    """
    arrival = _arrival(source, submitter, at, now, baseline=baseline)
    references = references_of(board.settings)
    with TemporaryDirectory(prefix=PLACE_PREFIX) as place:
        prepared = prepare(board, arrival, references, place)
        with board.writing() as connection:
            receipt = store(connection, board, prepared)
            refresh(connection, board.settings, now)
    return receipt


def _arrival(
    source: str, submitter: str | None, at: datetime | None, now: datetime, *, baseline: bool = False
) -> Arrival:
    if at is not None and at > now:
        raise UsageError(message=f"no submission can have arrived at {written(at)}: it is {written(now)}")
    by = NOW if at is None else AT
    return Arrival(source=source, submitter=submitter, arrived=at or now, added=now, baseline=baseline, arrived_by=by)


# Scanning: submissions are prepared in threads, as many at once as there are cores, and stored in groups.


@dataclass(frozen=True, slots=True)
class _Scanned:
    """A path with its fingerprint, and the prepared submission or why it is refused."""

    source: str
    fingerprint: str
    arrival: Arrival
    prepared: Prepared | None = None
    refusal: GevalError | None = None


def scan(
    board: Board,
    folder: str,
    *,
    now: datetime,
    at: datetime | None = None,
    arrived: str = NOW,
    progress: Progress | None = None,
) -> list[Receipt]:
    """Add each sub-folder and archive of a folder that is new or has changed; its name is the submitter's.

    ``at`` is when all arrived; else ``arrivals.csv`` in the folder says when, and for submissions that are not in it
    ``arrived``, one of arrivals.OPTIONS. The first to arrive is stored first. ``progress`` is called with the number
    of submissions done and the number of all. Rejected and failed ones are stored as such. A submission is refused if
    a quota is used up, if it cannot be read, if it is a link, or if it cannot have arrived when it is said to: it is
    not stored, its receipt has no code, and the next scan tries again.

    Raises UnreadableFileError, UsageError for a time in the future, StoreError, and the DataErrors of the challenge
    and of :func:`arrivals_in`.
    """
    with naming(folder):
        sources = submissions_in(folder)
    arrivals = arrivals_in(board, folder, way=arrived, at=at, now=now)
    found = [_found(arrivals, source, fingerprint) for source, fingerprint in _new_sources(board, sources)]
    new = sorted(found, key=lambda one: one.arrival.arrived)
    references = references_of(board.settings)
    receipts: list[Receipt] = []
    for group in _prepared_groups(board, new, references):
        with board.writing() as connection:
            receipts += [_store_scanned(connection, board, scanned) for scanned in group]
            refresh(connection, board.settings, now)
        if progress is not None:
            progress(len(receipts), len(new))
    return receipts


def _found(arrivals: Arrivals, source: str, fingerprint: str) -> _Scanned:
    now = Arrival(source=source, submitter=None, arrived=arrivals.now, added=arrivals.now)
    try:
        _check_no_link(source)
        moment, way = arrivals.of(source)
    except (DataError, UsageError) as error:
        return _Scanned(source, fingerprint, now, refusal=error)
    return _Scanned(source, fingerprint, replace(now, arrived=moment, arrived_by=way))


def _check_no_link(source: str) -> None:
    if os.path.islink(source):
        raise UsageError(message=f"`{visible(os.path.basename(source))}` is a link; links are not followed")


def _new_sources(board: Board, sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the paths that are new or changed, with their fingerprints; always those of links.

    If a path could not be received, it counts as new once board.yaml has changed.
    """
    now = settings_digest(board.settings)
    with board.reading() as connection:
        known = facts_about(connection, SCANNED)
    for source in sources:
        if os.path.islink(source):
            yield source, ""
            continue
        with naming(source):
            found = fingerprint(source)
        if known.get(visible(os.path.abspath(source))) not in (f"{found} {RECEIVED}", f"{found} {now}"):
            yield source, found


def _prepared_groups(board: Board, new: Sequence[_Scanned], references: References) -> Iterator[list[_Scanned]]:
    """Prepare submissions in threads, and yield groups in order; their files stay until the next group."""
    cores = os.cpu_count() or 1
    waiting = deque(new)
    started = deque[tuple[Future[_Scanned], TemporaryDirectory[str]]]()
    threads = ThreadPoolExecutor(cores)
    try:
        while waiting or started:
            while waiting and len(started) < cores * AHEAD + GROUP:
                place = TemporaryDirectory(prefix=PLACE_PREFIX)
                future = threads.submit(_prepare_scanned, board, waiting.popleft(), references, place.name)
                started.append((future, place))
            started[0][0].result()
            ready = list(takewhile(lambda one: one[0].done(), islice(started, GROUP)))
            yield [future.result() for future, _ in ready]
            for _, place in ready:
                started.popleft()
                place.cleanup()
    finally:
        threads.shutdown(cancel_futures=True)
        for _, place in started:
            place.cleanup()


def _prepare_scanned(board: Board, scanned: _Scanned, references: References, place: str) -> _Scanned:
    if scanned.refusal is not None:
        return scanned
    try:
        prepared = prepare(board, scanned.arrival, references, place)
        _check_no_link(scanned.source)  # it may have become one since it was found
        return replace(scanned, prepared=prepared)
    except (DataError, UsageError) as error:  # one that cannot be read does not stop the others
        return replace(scanned, refusal=error)


def _store_scanned(connection: Connection, board: Board, scanned: _Scanned) -> Receipt:
    source, refusal = scanned.source, scanned.refusal
    if scanned.prepared is not None:
        try:
            receipt = store(connection, board, scanned.prepared)
        except QuotaError as error:  # another submission of this scan used up the quota
            refusal = error
        else:
            if receipt.state != FAILED:
                how = settings_digest(board.settings) if scanned.prepared.parcel is None else RECEIVED
                remember(connection, SCANNED + visible(os.path.abspath(source)), f"{scanned.fingerprint} {how}")
            return receipt
    name, reason = own_name(source), str(refusal).replace("\n ", ";")
    arrived, by = scanned.arrival.arrived, scanned.arrival.arrived_by
    return Receipt(
        code="",
        submitter=name,
        name=name,
        source=source,
        digest="",
        arrived=arrived,
        arrived_by=by,
        state=REFUSED,
        reason=reason,
    )


# Marks of the organiser on a submission, which stays stored.


def withdraw(board: Board, code: str, reason: str, now: datetime) -> Receipt:
    """Hide a submission from all rankings and pages; it still counts for the quota.

    Raises UnknownCodeError, and UsageError without a reason, and for a submission that is withdrawn already.
    """
    if not reason.strip():
        raise UsageError(message="a submission is withdrawn with a reason, which `geval board status` shows")
    with board.writing() as connection:
        number = id_of(connection, code)
        moment = connection.execute(select(submissions.c.withdrawn).where(submissions.c.id == number)).scalar()
        if moment is not None:
            raise UsageError(message=f"`{visible(code)}` was withdrawn already, at {written(moment)}")
        values = {"withdrawn": now.astimezone(UTC), "withdrawal": escape_unstorable(reason)}
        connection.execute(update(submissions).where(submissions.c.id == number).values(values))
        refresh(connection, board.settings, now)
        return receipt_of(connection, number, f"withdrawn: {visible(reason)}")


def note(board: Board, code: str, remark: str) -> Receipt:
    """Put a public remark on a submission, in place of an earlier one; "" removes it. Raises UnknownCodeError."""
    remark = remark.strip()
    with board.writing() as connection:
        number = id_of(connection, code)
        values = {"remark": escape_unstorable(remark)}
        connection.execute(update(submissions).where(submissions.c.id == number).values(values))
        return receipt_of(connection, number, f"remark: {visible(remark)}" if remark else "without a remark")
