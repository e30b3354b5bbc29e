"""The storing of a submission that was prepared, inside a transaction (:mod:`geval_py.board.operations.pipeline`).

store
    store_evaluations    the new scores, of contents
    store_outputs        the outputs, each with the evaluations of its content

Rescoring calls these two alone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from geval_py.board.database import schema
from geval_py.board.database import store as database
from geval_py.board.database.schema import FAILED, REJECTED, SCORED, files, outputs, scores, submissions, submitters
from geval_py.board.database.store import Board, escape_unstorable
from geval_py.board.intake.identity import own_name, shown_source
from geval_py.board.operations.pipeline import (
    Content,
    Outcome,
    Prepared,
    find_same,
    find_submitter,
    references_digest,
    settings_digest,
    stored_before,
    tried_with,
)
from geval_py.board.operations.receipts import WITHDRAWN, Receipt, charge_of, code_of, receipt_of
from geval_py.board.references import References
from geval_py.board.settings import Settings
from geval_py.board.submission import Details, Parcel
from geval_py.text import visible
from geval_py.version import __version__

KNOWN = "the same content was added before: this is its receipt"
KNOWN_WITHDRAWN = "the same content was added before, and withdrawn by the organiser: it is not ranked"
LOOKS_LIKE = "the name `{}` looks like `{}`, so it is the same submitter"


def store(connection: Connection, board: Board, prepared: Prepared) -> Receipt:
    """Store a submission with its files, outputs and scores, unless the same one is stored; return the receipt.

    Raises QuotaError, as another process may have used up the quota.
    """
    settings, parcel = board.settings, prepared.parcel
    checked_with = settings_digest(settings) if parcel is None else references_digest(settings, prepared.references)
    checked_with = tried_with(settings, prepared.references) if prepared.state == FAILED else checked_with
    same = find_same(connection, settings, prepared) if prepared.same is None else prepared.same
    if same is not None:
        receipt = receipt_of(connection, same, KNOWN)
        if prepared.state == REJECTED and receipt.digest == prepared.unopened:  # again, under the settings of now
            is_same = submissions.c.id == same
            connection.execute(update(submissions).where(is_same).values(checked_with=checked_with))
        return replace(receipt, note=KNOWN_WITHDRAWN) if receipt.state == WITHDRAWN else receipt
    submitter = find_submitter(connection, prepared.name, prepared.key)
    submission_id = _store_submission(connection, settings, prepared, submitter, checked_with)
    _store_files(connection, submission_id, prepared)
    if prepared.state == SCORED and parcel is not None:
        ids = store_evaluations(connection, prepared, prepared.references, prepared.arrival.added)
        of = store_outputs(connection, submission_id, parcel, prepared.references)
        for (output_id, metric), content in of.items():
            row = {"output_id": output_id, "metric": metric, "evaluation_id": ids[content]}
            connection.execute(insert(scores).values(row))
    note = ""
    if submitter is not None and submitter.key != prepared.key:
        note = LOOKS_LIKE.format(visible(prepared.name), visible(submitter.name))
    return receipt_of(connection, submission_id, note)


def _store_submission(
    connection: Connection, settings: Settings, prepared: Prepared, submitter: Row[Any] | None, checked_with: str
) -> int:
    """Store the row of a submission, replacing one that failed or was not received; return its id."""
    if submitter is None:
        new = {"key": prepared.key, "name": escape_unstorable(prepared.name)}
        submitter_id = connection.execute(insert(submitters).values(new).returning(submitters.c.id)).scalar_one()
    else:
        submitter_id = int(submitter.id)
    values = _columns(settings, prepared) | {"submitter_id": submitter_id, "checked_with": checked_with}
    before = stored_before(connection, settings, prepared, submitter_id)
    if before is None:
        inserted = connection.execute(insert(submissions).values(values).returning(submissions.c.id))
        return int(inserted.scalar_one())
    if before.digest != prepared.digest:
        of = select(outputs.c.id).where(outputs.c.submission_id == before.id)
        for table in (schema.history, scores, schema.disclosures):
            connection.execute(delete(table).where(table.c.output_id.in_(of)))
        for table in (outputs, files):
            connection.execute(delete(table).where(table.c.submission_id == before.id))
    # failing was not the submitter's fault
    kept = {"code": before.code, "arrived": before.arrived, "arrived_by": before.arrived_by}
    connection.execute(update(submissions).where(submissions.c.id == before.id).values(values | kept))
    return int(before.id)


def _columns(settings: Settings, prepared: Prepared) -> dict[str, Any]:
    arrival, parcel = prepared.arrival, prepared.parcel
    details = Details() if parcel is None else parcel.details
    outputs = () if parcel is None else parcel.outputs
    cost, charge = charge_of(settings.at(arrival.arrived), prepared.state, outputs, baseline=arrival.baseline)
    told = ("description", "author", "affiliation", "revision", "tags", "links")
    texts = {name: getattr(details, name) for name in told}
    texts |= {name: getattr(prepared, name) for name in ("digest", "state", "reason", "aside")}
    texts |= {
        "code": code_of(prepared.key, prepared.digest, arrival.arrived),
        "name": own_name(arrival.source) if parcel is None else parcel.name,
        "source": arrival.origin or (shown_source(arrival.source) if parcel is None else parcel.source),
        "params": dict(details.params),
        "problems": list(prepared.problems),
        "charge": charge,
        "scorer": __version__,
    }
    return {key: escape_unstorable(value) for key, value in texts.items()} | {
        "arrived": arrival.arrived.astimezone(UTC),
        "arrived_by": arrival.arrived_by,
        "added": arrival.added.astimezone(UTC),
        "charged": cost > 0,
        "cost": cost,
        "baseline": arrival.baseline,
    }


def _store_files(connection: Connection, submission_id: int, prepared: Prepared) -> None:
    """Store the files; if a submission with the same content failed before, they are there."""
    known = _file_ids(connection, submission_id)
    for file in () if prepared.parcel is None else prepared.parcel.files:
        name = escape_unstorable(file.name)
        if name not in known:
            database.store_content(connection, file.sha256, prepared.packed.get(file.sha256))
            values = {"submission_id": submission_id, "name": name, "sha256": file.sha256, "bytes": file.bytes}
            connection.execute(insert(files).values(values))


def _file_ids(connection: Connection, submission_id: int) -> dict[str, int]:
    stored = select(files.c.name, files.c.id).where(files.c.submission_id == submission_id)
    return {row.name: row.id for row in connection.execute(stored)}


def store_evaluations(
    connection: Connection, outcome: Outcome, references: References, now: datetime
) -> dict[Content, int]:
    """Store the new evaluations of an outcome; return the ids of all, by content."""
    ids = dict(outcome.evaluations)
    for content, one in outcome.scored.items():
        key = {
            "test": one.test,
            "output_sha256": one.output_sha256,
            "reference": references[one.test, one.metric],
            "metric": one.metric,
            "version": __version__,
        }
        is_same = (schema.evaluations.c[name] == value for name, value in key.items())
        found = connection.execute(select(schema.evaluations.c.id).where(*is_same)).scalar()
        if found is None:
            names = ("signature", "lines", "score", "low", "high", "losses")
            values = key | {name: getattr(one, name) for name in names} | {"made": now.astimezone(UTC)}
            new = insert(schema.evaluations).values(values).returning(schema.evaluations.c.id)
            found = connection.execute(new).scalar_one()
        ids[content] = int(found)
    return ids


def store_outputs(
    connection: Connection, submission_id: int, parcel: Parcel, references: References
) -> dict[tuple[int, str], Content]:
    """Store the outputs of a parcel that are not stored yet; return the content of each output id and metric."""
    file_ids = _file_ids(connection, submission_id)
    query = select(outputs.c.file_id, outputs.c.test, outputs.c.id).where(outputs.c.submission_id == submission_id)
    known = {(row.file_id, row.test): row.id for row in connection.execute(query)}
    digests = {file.name: file.sha256 for file in parcel.files}
    contents: dict[tuple[int, str], Content] = {}
    for output in parcel.outputs:
        key = file_ids[escape_unstorable(output.file)], output.test
        if key not in known:
            values = {"submission_id": submission_id, "file_id": key[0], "test": output.test}
            values |= {name: escape_unstorable(getattr(output, name)) for name in ("variant", "params")}
            known[key] = connection.execute(insert(outputs).values(values).returning(outputs.c.id)).scalar_one()
        for test, metric in references:
            if test == output.test:
                contents[known[key], metric] = (test, digests[output.file], metric)
    return contents
