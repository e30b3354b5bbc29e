"""``geval board add``: one submission, stored whole in one transaction, or not at all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, takewhile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import delete, insert, select, update

from geval_py.board.answers import References, references_of
from geval_py.board.database import blobs
from geval_py.board.database.blobs import storable
from geval_py.board.database.schema import (
    FAILED,
    SCORED,
    disclosures,
    files,
    history,
    outputs,
    scores,
    submissions,
    submitters,
)
from geval_py.board.database.store import facts_about, forget, remember
from geval_py.board.intake.identity import fingerprint, own_name, shown_source, submissions_in
from geval_py.board.operations.outdated import CHECKED, checked_with, received_with
from geval_py.board.operations.pipeline import (
    PLACE_BEGINNING,
    Arrival,
    Prepared,
    _inserted,
    evaluation_of,
    look_up,
    prepare,
    stored_as,
)
from geval_py.board.operations.quota import QuotaError, charge_of, written
from geval_py.board.operations.receipts import REFUSED, WITHDRAWN, Receipt, code_of, id_of, receipt_of
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.submission import Details
from geval_py.errors import DataError, GevalError, UsageError
from geval_py.reading.sources import naming
from geval_py.text import visible
from geval_py.version import __version__

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Connection

    from geval_py.board.database.store import Board
    from geval_py.board.submission import Parcel, ReceivedOutput


ASIDE = "aside "  # what the names of facts begin with that tell more of a reason, to the organiser alone
KNOWN = "the same content was added before: this is its receipt"
KNOWN_WITHDRAWN = "the same content was added before, and withdrawn by the organiser: it is not ranked"


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

    ``submitter`` is by default its name, for a branch its whole repository; ``at`` is when it arrived, by default
    now. A content that the submitter sent before is not stored again: the first receipt is given, or that it was
    withdrawn. One that failed before takes the place of that.

    Raises QuotaError before anything is scored; RejectedError for a name that cannot be a submitter's; UsageError for
    a time to come; MissingFileError for a source that is not there; StoreError. What is rejected, or failed, is
    stored as such.
    """
    arrival = arrival_of(source, submitter, at, now, baseline=baseline)
    references = references_of(board.settings)
    with TemporaryDirectory(prefix=PLACE_BEGINNING) as place:
        prepared = prepare(board, arrival, references, place)
        with board.writing() as connection:
            receipt = store(connection, board, prepared)
            refresh(connection, board.settings, now)
    return receipt


def arrival_of(
    source: str, submitter: str | None, at: datetime | None, now: datetime, *, baseline: bool = False
) -> Arrival:
    """Say what arrives, and when; raises UsageError for a time to come."""
    if at is not None and at > now:
        raise UsageError(message=f"no submission can have arrived at {written(at)}: it is {written(now)}")
    return Arrival(source=source, submitter=submitter, arrived=at or now, added=now, baseline=baseline)


def store(connection: Connection, board: Board, prepared: Prepared) -> Receipt:
    """Store a submission with all that belongs to it; raises QuotaError, as another process may have used it up."""
    same = look_up(connection, board, prepared) if prepared.same is None else prepared.same
    if same is not None:
        if prepared.parcel is None:  # it was not let in again, by what board.yaml says now
            remember(connection, f"{CHECKED}{same}", received_with(board.settings))
        return _known_receipt(connection, same)
    submission_id = _submission(connection, prepared)
    _files(connection, submission_id, prepared)
    forget(connection, f"{ASIDE}{submission_id}")
    if prepared.aside:
        remember(connection, f"{ASIDE}{submission_id}", storable(prepared.aside))
    if prepared.state == SCORED and prepared.parcel is not None:
        _outputs(connection, submission_id, prepared, prepared.parcel)
    received = prepared.parcel is not None
    with_what = checked_with(prepared.references) if received else received_with(board.settings)
    remember(connection, f"{CHECKED}{submission_id}", with_what)
    return receipt_of(connection, submission_id)


def _known_receipt(connection: Connection, submission_id: int) -> Receipt:
    receipt = receipt_of(connection, submission_id, KNOWN)
    return replace(receipt, note=KNOWN_WITHDRAWN) if receipt.state == WITHDRAWN else receipt


def _submission(connection: Connection, prepared: Prepared) -> int:
    """Store what is said of a submission, in the place of one that could not be taken before; gives its id."""
    values = _values(prepared) | {"submitter_id": _submitter(connection, prepared)}
    failed = stored_as(connection, prepared)
    if failed is not None:  # it keeps its code and its arrival: that it was not taken was no fault of its submitter's
        if failed.digest != prepared.digest:
            _forget(connection, failed.id)
        kept = {"code": failed.code, "arrived": failed.arrived}
        connection.execute(update(submissions).where(submissions.c.id == failed.id).values(values | kept))
        return int(failed.id)
    return _inserted(connection, insert(submissions).values(values).returning(submissions.c.id))


def _forget(connection: Connection, submission_id: int) -> None:
    """Forget the files and outputs of a submission, and all that was made of them."""
    of = select(outputs.c.id).where(outputs.c.submission_id == submission_id)
    for table in (history, scores, disclosures):
        connection.execute(delete(table).where(table.c.output_id.in_(of)))
    for table in (outputs, files):
        connection.execute(delete(table).where(table.c.submission_id == submission_id))


def _submitter(connection: Connection, prepared: Prepared) -> int:
    found = connection.execute(select(submitters.c.id).where(submitters.c.key == prepared.key)).scalar()
    if found is not None:
        return int(found)
    values = {"key": prepared.key, "name": storable(prepared.name)}
    return _inserted(connection, insert(submitters).values(values).returning(submitters.c.id))


def _values(prepared: Prepared) -> dict[str, Any]:
    """Give the columns of a submission."""
    arrival, parcel = prepared.arrival, prepared.parcel
    details = Details() if parcel is None else parcel.details
    charged, charge = charge_of(prepared.state, baseline=arrival.baseline)
    said = {name: getattr(details, name) for name in ("description", "author", "revision", "tags", "links")}
    values = said | {
        "code": code_of(prepared.key, prepared.digest, arrival.arrived),
        "name": own_name(arrival.source) if parcel is None else parcel.name,
        "source": shown_source(arrival.source) if parcel is None else parcel.source,
        "digest": prepared.digest,
        "state": prepared.state,
        "reason": prepared.reason,
        "params": dict(details.params),
        "problems": list(prepared.problems),
        "charge": charge,
        "scorer": __version__,
    }
    moments = {"arrived": arrival.arrived.astimezone(UTC), "added": arrival.added.astimezone(UTC)}
    return (
        {key: storable(value) for key, value in values.items()}
        | moments
        | {
            "charged": charged,
            "baseline": arrival.baseline,
        }
    )


def _files(connection: Connection, submission_id: int, prepared: Prepared) -> None:
    """Store the files; those of one that failed, with the same content, are there."""
    known = _numbers(connection, submission_id)
    for file in () if prepared.parcel is None else prepared.parcel.files:
        if storable(file.name) not in known:
            blobs.store(connection, file.sha256, prepared.packed[file.sha256])
            values = {"name": storable(file.name), "sha256": file.sha256, "bytes": file.bytes}
            connection.execute(insert(files).values(values | {"submission_id": submission_id}))


def _numbers(connection: Connection, submission_id: int) -> dict[str, int]:
    stored = select(files.c.name, files.c.id).where(files.c.submission_id == submission_id)
    return {row.name: row.id for row in connection.execute(stored)}


def _outputs(connection: Connection, submission_id: int, prepared: Prepared, parcel: Parcel) -> None:
    """Store the outputs, but those that are there, and the scores of all."""
    numbers = _numbers(connection, submission_id)
    digests = {file.name: file.sha256 for file in parcel.files}
    for output in parcel.outputs:
        output_id = _output(connection, submission_id, numbers[storable(output.file)], output)
        for test, metric in prepared.references:
            if test == output.test:
                number = _evaluation(connection, prepared, (test, digests[output.file], metric))
                row = {"output_id": output_id, "metric": metric, "evaluation_id": number}
                connection.execute(insert(scores).values(row))


def _output(connection: Connection, submission_id: int, file_id: int, output: ReceivedOutput) -> int:
    """Give the output of a file for a test, which is stored if it is new."""
    is_this = (outputs.c.file_id == file_id) & (outputs.c.test == output.test)
    found = connection.execute(select(outputs.c.id).where(is_this)).scalar()
    if found is not None:
        return int(found)
    values = {"submission_id": submission_id, "file_id": file_id, "test": output.test}
    values |= {"variant": storable(output.variant), "params": storable(dict(output.params))}
    return _inserted(connection, insert(outputs).values(values).returning(outputs.c.id))


def _evaluation(connection: Connection, prepared: Prepared, of: tuple[str, str, str]) -> int:
    """Give the evaluation of a content, which is stored if it is new."""
    if of in prepared.known:
        return prepared.known[of]
    test, _, metric = of
    return evaluation_of(connection, prepared.scored[of], prepared.references[test, metric], prepared.arrival.added)


# ``geval board scan``: each submission of a folder that is new is added, as many at once as there are cores.


Progress: TypeAlias = "Callable[[int, int], None]"
GROUP = 16  # submissions that are stored in one transaction
AHEAD = 4  # times as many as there are cores are looked into before they are stored
SCANNED = "scanned "  # what the names of facts begin with that tell what a path was like when it was stored
RECEIVED = "received"  # what such a fact ends with; else with what board.yaml said when the path was not let in


@dataclass(frozen=True, slots=True)
class _Ready:
    """A submission that was looked into, or why it is refused, and what its path was like before that."""

    source: str
    fingerprint: str
    prepared: Prepared | None
    refusal: GevalError | None = None


def scan(
    board: Board,
    folder: str,
    *,
    now: datetime,
    at: datetime | None = None,
    progress: Progress | None = None,
) -> list[Receipt]:
    """Add each sub-folder and archive of a folder that is new, or is not as it was; its name is its submitter's.

    ``at`` is when they arrived, by default now; ``progress`` is called with how many are done, and how many there are
    to do. What is rejected or failed is stored as such, and does not stop the others. What is refused, since a quota
    is used up, or it is neither a folder nor an archive that can be read, is not stored: its receipt has no code, and
    the next scan tries again.

    Raises UnreadableFileError, UsageError for a time to come, StoreError, and the DataErrors of the challenge.
    """
    arrival_of(folder, None, at, now)
    with naming(folder):
        sources = submissions_in(folder)
    new = list(_new(board, sources))
    references = references_of(board.settings)
    receipts: list[Receipt] = []
    for group in _groups(board, new, references, at, now):
        receipts += _store(board, group, at or now, now)
        if progress is not None:
            progress(len(receipts), len(new))
    return receipts


def _new(board: Board, sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give the paths that are not as they were when they were stored, and what they are like.

    What could not be received is looked at again once board.yaml lets other things in.
    """
    of_now = received_with(board.settings)
    with board.reading() as connection:
        known = facts_about(connection, SCANNED)
    for source in sources:
        with naming(source):
            found = fingerprint(source)
        if known.get(_place(source)) not in (f"{found} {RECEIVED}", f"{found} {of_now}"):
            yield source, found


def _place(source: str) -> str:
    return visible(os.path.abspath(source))


@dataclass(slots=True)
class _Looking:
    """One submission that is looked into, and the place where its files stay until it is stored."""

    future: Future[_Ready]
    place: TemporaryDirectory[str]


def _groups(
    board: Board, new: Sequence[tuple[str, str]], references: References, at: datetime | None, now: datetime
) -> Iterator[list[_Ready]]:
    """Look into submissions, some at once; give those that are ready, in order. Their files stay until the next."""
    cores = os.cpu_count() or 1
    waiting, running = deque(new), deque[_Looking]()
    threads = ThreadPoolExecutor(cores)
    try:
        while waiting or running:
            while waiting and len(running) < cores * AHEAD + GROUP:
                place = TemporaryDirectory(prefix=PLACE_BEGINNING)
                source, found = waiting.popleft()
                future = threads.submit(_look, board, source, found, references, place.name, at, now)
                running.append(_Looking(future, place))
            running[0].future.result()
            ready = list(takewhile(lambda one: one.future.done(), islice(running, GROUP)))
            yield [one.future.result() for one in ready]
            for one in ready:
                running.popleft()
                one.place.cleanup()
    finally:
        threads.shutdown(cancel_futures=True)
        for one in running:
            one.place.cleanup()


def _look(
    board: Board, source: str, found: str, references: References, place: str, at: datetime | None, now: datetime
) -> _Ready:
    try:
        return _Ready(source, found, prepare(board, arrival_of(source, None, at, now), references, place))
    except (DataError, UsageError) as error:  # a pipe, or what cannot be read, does not stop the others
        return _Ready(source, found, None, error)


def _store(board: Board, group: Sequence[_Ready], arrived: datetime, now: datetime) -> list[Receipt]:
    """Store some submissions in one transaction."""
    with board.writing() as connection:
        receipts = [_store_one(connection, board, ready, arrived) for ready in group]
        refresh(connection, board.settings, now)
    return receipts


def _store_one(connection: Connection, board: Board, ready: _Ready, arrived: datetime) -> Receipt:
    if ready.prepared is None:
        return _refused(ready.source, ready.refusal, arrived)
    try:
        receipt = store(connection, board, ready.prepared)
    except QuotaError as error:  # one of the same submitter came before it in this scan
        return _refused(ready.source, error, arrived)
    if receipt.state != FAILED:
        how = received_with(board.settings) if ready.prepared.parcel is None else RECEIVED
        remember(connection, SCANNED + _place(ready.source), f"{ready.fingerprint} {how}")
    return receipt


def _refused(source: str, error: GevalError | None, arrived: datetime) -> Receipt:
    name = own_name(source)
    reason = str(error).replace("\n ", ";")
    return Receipt(
        code="", submitter=name, name=name, source=source, digest="", arrived=arrived, state=REFUSED, reason=reason
    )


# ``geval board withdraw`` and ``note``: what the organiser says of a submission, which stays stored.


def withdraw(board: Board, code: str, reason: str, now: datetime) -> Receipt:
    """Hide a submission from all rankings and pages, and keep it; what it was charged stays.

    Raises UnknownCodeError, and UsageError for one that is withdrawn already, or without a reason.
    """
    if not reason.strip():
        raise UsageError(message="a submission is withdrawn with a reason, which `geval board status` shows")
    with board.writing() as connection:
        number = id_of(connection, code)
        moment = connection.execute(select(submissions.c.withdrawn).where(submissions.c.id == number)).scalar()
        if moment is not None:
            raise UsageError(message=f"`{visible(code)}` was withdrawn already, at {written(moment)}")
        values = {"withdrawn": now.astimezone(UTC), "withdrawal": storable(reason)}
        connection.execute(update(submissions).where(submissions.c.id == number).values(values))
        refresh(connection, board.settings, now)
        return receipt_of(connection, number, f"withdrawn: {visible(reason)}")


def note(board: Board, code: str, remark: str) -> Receipt:
    """Put a public remark on a submission, in place of an earlier one; "" takes it away. Raises UnknownCodeError."""
    remark = remark.strip()
    with board.writing() as connection:
        number = id_of(connection, code)
        values = {"remark": storable(remark)}
        connection.execute(update(submissions).where(submissions.c.id == number).values(values))
        return receipt_of(connection, number, f"remark: {visible(remark)}" if remark else "without a remark")
