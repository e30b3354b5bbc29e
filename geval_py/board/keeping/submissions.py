"""``geval board add``: one submission, stored whole in one transaction, or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from geval_py.board.intake.doors import own_name, shown_source
from geval_py.board.keeping.outdating import CHECKED, checked_with, received_with
from geval_py.board.keeping.preparing import Arrival, Prepared, look_up, prepare, stored_as
from geval_py.board.keeping.quota import charge_of, written
from geval_py.board.keeping.receipts import WITHDRAWN, Receipt, code_of, receipt_of
from geval_py.board.ranking.refreshing import refresh
from geval_py.board.references import references_of
from geval_py.board.storing import blobs
from geval_py.board.storing.blobs import storable
from geval_py.board.storing.facts import forget, remember
from geval_py.board.storing.schema import (
    SCORED,
    disclosures,
    evaluations,
    files,
    history,
    outputs,
    scores,
    submissions,
    submitters,
)
from geval_py.board.values import Details
from geval_py.errors import UsageError
from geval_py.version import __version__

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Connection

    from geval_py.board.storing.store import Board
    from geval_py.board.values import Parcel, ReceivedOutput, Scored

PLACE_BEGINNING = "geval-board-"
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

    ``submitter`` is by default its name; ``at`` is when it arrived, by default now. A content that the submitter sent
    before is not stored again: the first receipt is given, or that it was withdrawn. One that failed before takes the
    place of that.

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


def _inserted(connection: Connection, statement: Any) -> int:
    return int(connection.execute(statement).scalar_one())


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


def evaluation_of(connection: Connection, scored: Scored, reference: str, now: datetime) -> int:
    """Store an evaluation, unless that content was scored already; gives its id."""
    key = {
        "test": scored.test,
        "output_sha256": scored.output_sha256,
        "reference": reference,
        "metric": scored.metric,
        "version": __version__,
    }
    found = connection.execute(
        select(evaluations.c.id).where(*(evaluations.c[name] == value for name, value in key.items()))
    ).scalar()
    if found is not None:
        return int(found)
    names = ("signature", "lines", "score", "low", "high", "losses")
    values = key | {name: getattr(scored, name) for name in names} | {"made": now.astimezone(UTC)}
    return _inserted(connection, insert(evaluations).values(values).returning(evaluations.c.id))
