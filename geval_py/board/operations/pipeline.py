"""The way of a submission into the board, the same for ``geval board add``, ``scan`` and the server's worker.

prepare (outside of any transaction)
    process_source       in a child process: copy the files, check all outputs, and score them
    find_earlier         the same submission may be stored already; else check the quota
    pack_file            compress the files for the database
store (inside a transaction)
    store_evaluations    the scores, of contents
    store_scored         the outputs, each with its content

Rescoring takes the files from the database instead, and stores by the last two.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from geval_py.board.database import schema
from geval_py.board.database import store as database
from geval_py.board.database.schema import (
    FAILED,
    REJECTED,
    SCORED,
    Evaluations,
    Files,
    Outputs,
    Submissions,
    evaluations,
    files,
    outputs,
    pick,
    scores,
    submissions,
)
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import (
    casefolded,
    check_name,
    check_source,
    own_name,
    shown_source,
    submitter_of,
    unopened_digest,
)
from geval_py.board.intake.sandbox import process_parcel, process_source
from geval_py.board.operations import receipts
from geval_py.board.operations.receipts import (
    WITHDRAWN,
    Receipt,
    change_submission,
    charge_of,
    check_quota,
    quota_used,
    receipt_of,
)
from geval_py.board.operations.teams import find_submitter, submitter_id, team_settings
from geval_py.board.references import References
from geval_py.board.settings import BoardSettings
from geval_py.board.submission import Parcel, ReceivedOutput, RejectedError, Result, Scored
from geval_py.errors import UsageError
from geval_py.reading.files import naming
from geval_py.text import shorten, visible, words
from geval_py.version import __version__

CODE_DIGITS = 12
MAX_SHOWN = 60  # characters of a name that cannot be a submitter's
KNOWN = "the same content was added before: this is its receipt"
KNOWN_WITHDRAWN = "the same content was added before, and withdrawn by the organiser: it is not ranked"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A submission on its way into the board; without a ``submitter`` its own name is the submitter's.

    ``arrived_by`` is what says when it arrived, one of receipts.WAYS. Unless ``again``, a content that failed before
    counts as failed, and is not tried again. ``origin`` is where it came from, if not its source. The database holds
    the content whose digest is ``stored`` until the submission is. For a scan, ``fingerprint`` is that of its path
    ("" without any), and ``refusal`` why it is not stored.

    What follows is known once it is prepared: the submitter's ``name``; the digest of the source as it stands; the
    ``result``; the paths of the compressed files, by digest. ``same`` is the id of a stored submission with the same
    content; then it is not scored.
    """

    source: str
    submitter: str | None = None
    arrived: datetime
    added: datetime
    baseline: bool = False
    arrived_by: str = receipts.NOW
    again: bool = True
    origin: str = ""
    stored: str = ""
    fingerprint: str = ""
    refusal: str = ""

    name: str = ""
    unopened: str = ""
    references: References = field(default_factory=dict)
    result: Result = field(default_factory=Result)
    packed: Mapping[str, str] = field(default_factory=dict)
    same: int | None = None

    @property
    def parcel(self) -> Parcel:
        """What was received; if it could not be, a parcel without files, with the digest of the unopened source."""
        name, source = own_name(self.source), shown_source(self.source)
        return self.result.parcel or Parcel(name=name, source=source, digest=self.unopened)

    @property
    def code(self) -> str:
        """Its code, unless it replaces another one: of submitter, content and arrival, as on a rebuilt board."""
        moment = self.arrived.astimezone(UTC).isoformat(timespec="microseconds")
        told = f"{casefolded(self.name)}\n{self.parcel.digest}\n{moment}"
        return sha256(told.encode()).hexdigest()[:CODE_DIGITS]


def prepare(board: Board, attempt: Attempt, references: References, place: str) -> Attempt:
    """Receive, check and score a submission in an empty folder, which holds its files until it is stored.

    Raises QuotaError before anything is scored; RejectedError for a given submitter's name that is not allowed; and
    as :func:`check_source` for what is no source.
    """
    settings, refusal = board.settings, ""
    check_source(attempt.source, settings.transports)
    name = submitter_of(attempt.source) if attempt.submitter is None else attempt.submitter
    try:
        check_name(name)
    except RejectedError as error:
        if attempt.submitter is not None:
            raise
        name, refusal = shorten(visible(name), MAX_SHOWN), error.reason
    with naming(attempt.source):
        unopened = unopened_digest(attempt.source)
    attempt = replace(attempt, name=name, unopened=unopened, references=references)
    left = None
    with board.reading() as connection:
        submitter = find_submitter(connection, name)
        if attempt.submitter is None and submitter is not None and submitter.name != name:
            similar = visible(submitter.name)
            raise UsageError(message=f"`{visible(name)}` is written like the submitter `{similar}`; rename it")
        own = submitter and int(submitter.id)
        team = team_settings(connection, settings, own)
        phase = team.at(attempt.arrived)
        has_failed = Submissions.state == FAILED, Submissions.checked_with == check_digest(settings, references)
        query = select(*pick(Submissions, "digest submitter_id reason")).where(*has_failed)
        query = query.limit(0 if attempt.again else None)
        failures = connection.execute(query).all()
        rows = connection.execute(
            select(Submissions.digest, Submissions.arrived).where(
                Submissions.submitter_id == own, Submissions.state != FAILED
            )
        )
        earlier = {row.digest for row in rows if team.at(row.arrived).tests == phase.tests}
        if refusal:
            left = 0
        elif phase.submissions_a_day and not attempt.baseline:
            used = quota_used(connection, team, own, attempt.arrived, with_uploads=False)
            left = phase.submissions_a_day - used
    # A folder or a branch may have changed since: before it is received, only failures of its submitter count.
    theirs = (row for row in failures if row.submitter_id == own or os.path.isfile(attempt.source))
    failure = None if refusal else {row.digest: row.reason for row in theirs}.get(unopened)
    if failure:
        result = Result(state=FAILED, reason=failure)
    else:
        earlier |= {row.digest for row in failures}
        result = process_source(attempt.source, place, phase, settings.metrics, earlier=earlier, left=left)
    if refusal and result.state == SCORED:
        result = replace(result, state=REJECTED, reason=refusal)
    attempt = replace(attempt, result=result)
    with board.reading() as connection:
        other, is_same = find_earlier(connection, settings, attempt)
        reasons = {row.digest: row.reason for row in connection.execute(query)}  # perhaps fewer by now
    if is_same or result.parcel is None:
        return replace(attempt, same=other.id if is_same else None)
    if result.state == SCORED and not result.scored:
        failure = reasons.get(attempt.parcel.digest)
        if failure:
            result = replace(result, state=FAILED, reason=failure)
        else:  # what failed before is tried again even if the quota is used up by now
            missing = [(output.test, output.file, settings.metrics) for output in attempt.parcel.outputs]
            result = process_parcel(attempt.parcel, place, phase, missing)
        attempt = replace(attempt, result=result)
    new = [file for file in attempt.parcel.files if file.sha256 != attempt.stored]
    return replace(attempt, packed={file.sha256: database.pack_file(file.path) for file in new})


def find_earlier(connection: Connection, settings: BoardSettings, attempt: Attempt) -> tuple[Any, bool]:
    """Return the row of an earlier submission, and whether it is the same; else this one takes its place.

    It has the same submitter and content; one that arrived in a phase with other tests is another one. A failed one
    is replaced. So is one that was not received and is received now; the bytes of an archive identify it even if it
    was rejected, but a folder or a branch may have changed since. One that cannot be received any more is known by
    its code, which is from before it was received.

    Without any, the row is None, and the quota is checked; raises QuotaError.
    """
    submitter = find_submitter(connection, attempt.name)
    own, digest = submitter and int(submitter.id), attempt.parcel.digest
    is_same, other = Submissions.digest == digest, Submissions.code == attempt.code
    if attempt.result.parcel is not None:
        retried = (FAILED, REJECTED) if os.path.isfile(attempt.source) else (FAILED,)
        other = Submissions.state.in_(retried) & (Submissions.digest == attempt.unopened)
    query = select(submissions).where(Submissions.submitter_id == own, is_same | other).order_by(is_same.desc())
    team = team_settings(connection, settings, own)
    tests = team.at(attempt.arrived).tests
    for row in connection.execute(query):
        if team.at(row.arrived).tests == tests:
            return row, row.state != FAILED if row.digest == digest else attempt.result.parcel is None
    if not attempt.baseline:
        check_quota(connection, settings, own, attempt.name, attempt.arrived, attempt.parcel.outputs)
    return None, False


# The storing of a submission that was prepared, inside a transaction.


def store(connection: Connection, board: Board, attempt: Attempt) -> Receipt:
    """Store a submission with its files, outputs and scores, unless the same one is stored; return the receipt.

    Raises QuotaError, as another process may have used up the quota.
    """
    settings, result, parcel = board.settings, attempt.result, attempt.parcel
    checked_with = check_digest(settings, attempt.references)
    if result.parcel is None and result.state != FAILED:
        checked_with = settings_digest(settings)
    same, earlier = attempt.same, None
    if same is None:
        earlier, is_same = find_earlier(connection, settings, attempt)
        same = earlier.id if is_same else None
    if same is not None:
        receipt = receipt_of(connection, same, KNOWN)
        if result.state == REJECTED and receipt.digest == attempt.unopened:  # again, under the settings of now
            change_submission(connection, same, checked_with=checked_with)
        return replace(receipt, note=KNOWN_WITHDRAWN) if receipt.state == WITHDRAWN else receipt
    submission_id = _store_submission(connection, settings, attempt, earlier, checked_with)
    stored = file_ids(connection, submission_id)  # of one with the same content that failed before
    for file in parcel.files:
        if file.name not in stored:
            database.store_content(connection, file.sha256, attempt.packed.get(file.sha256))
            values = {"submission_id": submission_id, "name": file.name, "sha256": file.sha256, "bytes": file.bytes}
            connection.execute(insert(files).values(values))
    if result.state == SCORED:
        store_evaluations(connection, result.scored, attempt.references, attempt.added)
        store_scored(connection, submission_id, parcel.outputs, result.scored)
        for row in current_evaluations(connection, submission_id, attempt.references):
            values = {"output_id": row.output_id, "metric": row.metric, "evaluation_id": row.id}
            connection.execute(insert(scores).values(values))
    return receipt_of(connection, submission_id)


def _store_submission(
    connection: Connection, settings: BoardSettings, attempt: Attempt, earlier: Any, checked_with: str
) -> int:
    """Store the row of a submission, replacing one that failed or was not received; return its id."""
    result, parcel = attempt.result, attempt.parcel
    own = submitter_id(connection, attempt.name)
    phase = team_settings(connection, settings, own).at(attempt.arrived)
    cost, charge = charge_of(phase, result.state, parcel.outputs, baseline=attempt.baseline)
    values = {
        **asdict(parcel.details),
        **{name: getattr(result, name) for name in words("state reason aside problems")},
        "digest": parcel.digest,
        "code": attempt.code,
        "name": parcel.name,
        "source": attempt.origin or parcel.source,
        "charge": charge,
        "scorer": __version__,
        "arrived": attempt.arrived,
        "arrived_by": attempt.arrived_by,
        "added": attempt.added,
        "cost": cost,
        "baseline": attempt.baseline,
        "submitter_id": own,
        "checked_with": checked_with,
    }
    if earlier is None:
        return int(connection.execute(insert(submissions).values(values).returning(Submissions.id)).scalar_one())
    if earlier.digest != parcel.digest:
        old_outputs = select(Outputs.id).where(Outputs.submission_id == earlier.id)
        for table in (schema.history, scores, schema.disclosures):
            connection.execute(delete(table).where(table.c.output_id.in_(old_outputs)))
        for table in (outputs, files):
            connection.execute(delete(table).where(table.c.submission_id == earlier.id))
    # failing was not the submitter's fault
    kept = {"code": earlier.code, "arrived": earlier.arrived, "arrived_by": earlier.arrived_by}
    change_submission(connection, earlier.id, **values | kept)
    return int(earlier.id)


def file_ids(connection: Connection, submission_id: int) -> dict[str, int]:
    """Return the ids of a submission's stored files by their names."""
    query = select(Files.name, Files.id).where(Files.submission_id == submission_id)
    return {row.name: row.id for row in connection.execute(query)}


def store_scored(
    connection: Connection, submission_id: int, own: Iterable[ReceivedOutput], scored: Iterable[Scored]
) -> None:
    """Store the outputs of a submission that are not stored yet, and which content each has that was scored."""
    ids = file_ids(connection, submission_id)
    query = select(Outputs.file_id, Outputs.test).where(Outputs.submission_id == submission_id)
    stored = {(row.file_id, row.test) for row in connection.execute(query)}
    contents = {(ids[one.file], one.test): one.output_sha256 for one in scored}
    for output in own:
        key = ids[output.file], output.test
        if key not in stored:
            values = {"submission_id": submission_id, "file_id": key[0], "test": output.test}
            values |= {name: getattr(output, name) for name in ("variant", "params")}
            connection.execute(insert(outputs).values(**values, output_sha256=contents[key]))
        elif key in contents:
            own_row = Outputs.file_id == key[0], Outputs.test == output.test
            connection.execute(update(outputs).where(*own_row).values(output_sha256=contents[key]))


def store_evaluations(
    connection: Connection, scored: Iterable[Scored], references: References, now: datetime
) -> None:
    """Store the evaluations that are not stored yet."""
    for one in scored:
        key = {
            "test": one.test,
            "output_sha256": one.output_sha256,
            "reference": references[one.test, one.metric],
            "metric": one.metric,
            "version": __version__,
        }
        is_same = (Evaluations[name] == value for name, value in key.items())
        if connection.execute(select(Evaluations.id).where(*is_same)).first() is None:
            names = words("signature lines score low high losses documents")
            values = key | {name: getattr(one, name) for name in names} | {"made": now}
            connection.execute(insert(evaluations).values(values))


def current_evaluations(connection: Connection, submission_id: int, references: References) -> list[Row[Any]]:
    """Return the evaluations of a submission's outputs by this version and with these references.

    They include those that are no scores yet: after an interruption, or a dry run. A row has the ``output_id``, the
    ``test``, the name of the ``file``, the ``metric``, and the ``id`` of the evaluation.
    """
    rows = connection.execute(
        select(Outputs.id.label("output_id"), Outputs.test, Files.name.label("file"))
        .add_columns(*pick(Evaluations, "metric reference id"))
        .join_from(outputs, files, Files.id == Outputs.file_id)
        .join(evaluations, (Evaluations.test == Outputs.test) & (Evaluations.output_sha256 == Outputs.output_sha256))
        .where(Outputs.submission_id == submission_id, Evaluations.version == __version__)
    )
    return [row for row in rows if references.get((row.test, row.metric)) == row.reference]


# What a check depends on.


def settings_digest(settings: BoardSettings) -> str:
    """Digest the part of board.yaml that decides which submissions can be received."""
    own = [([test.name for test in phase.tests], phase.variants) for phase in settings.by_phase.values()]
    return sha256(repr((__version__, own, settings.limits, settings.transports)).encode()).hexdigest()


def check_digest(settings: BoardSettings, references: References) -> str:
    """Digest all that the check of a submission depends on, besides the machine: with the same it is not repeated."""
    return sha256(repr((settings_digest(settings), sorted(references.items()))).encode()).hexdigest()
