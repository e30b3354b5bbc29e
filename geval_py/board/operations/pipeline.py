"""The way of a submission into the board, the same for ``geval board add``, ``scan`` and the server's worker.

prepare (outside of any transaction)
    process_source       in a child process: copy the files, check all outputs, and score them
store (inside a transaction)
    find_same            the same submission may be stored already; else check the quota
    store_result         the files, outputs and scores

What is added or scanned gets its row now; an upload has waited in its own. Rescoring scores the files in the database
instead, and stores by the last step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select

from geval_py.board.database import schema
from geval_py.board.database import store as database
from geval_py.board.database.schema import (
    FAILED,
    REFUSED,
    REJECTED,
    SCORED,
    Evaluations,
    Files,
    Outputs,
    Scores,
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
from geval_py.board.intake.sandbox import process_source
from geval_py.board.operations import receipts
from geval_py.board.operations.receipts import (
    Receipt,
    change_submission,
    charge_of,
    check_quota,
    quota_used,
    receipt_of,
)
from geval_py.board.operations.teams import find_submitter, submitter_id, team_settings
from geval_py.board.references import References
from geval_py.board.settings import BoardSettings, moment_text
from geval_py.board.submission import Parcel, RejectedError, Result, Scored
from geval_py.errors import UsageError
from geval_py.text import shorten, visible, words
from geval_py.version import __version__

CODE_DIGITS = 12
MAX_SHOWN = 60  # characters of a name that cannot be a submitter's


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A submission on its way into the board; without a ``submitter`` its own name is the submitter's.

    ``arrived_by`` is what says when it arrived, one of receipts.WAYS. ``row_id`` is that of an upload that waits, or
    of a submission that is tried again. ``origin`` is where it came from, if not its source. For a scan,
    ``fingerprint`` is that of its path, and ``refusal`` why it is not stored.

    What follows is known once it is prepared: the submitter's ``name``; the digest of the source as it stands; the
    ``result``.
    """

    source: str
    submitter: str | None = None
    arrived: datetime
    added: datetime
    baseline: bool = False
    arrived_by: str = receipts.NOW
    row_id: int = 0
    origin: str = ""
    fingerprint: str = ""
    refusal: str = ""

    name: str = ""
    unopened: str = ""
    references: References = field(default_factory=dict)
    result: Result = field(default_factory=Result)

    @property
    def parcel(self) -> Parcel:
        """What was received; if it could not be, a parcel without files, with the digest of the unopened source."""
        name, source = own_name(self.source), shown_source(self.source)
        return self.result.parcel or Parcel(name=name, source=source, digest=self.unopened)

    @property
    def code(self) -> str:
        """The code of a new submission: of submitter, content and arrival, as on a rebuilt board."""
        moment = self.arrived.astimezone(UTC).isoformat(timespec="microseconds")
        told = f"{casefolded(self.name)}\n{self.parcel.digest}\n{moment}"
        return sha256(told.encode()).hexdigest()[:CODE_DIGITS]


def prepare(board: Board, attempt: Attempt, references: References, place: str) -> Attempt:
    """Receive, check and score a submission in an empty folder, which holds its files until it is stored.

    Nothing is scored of a submission that is stored already, or that has no quota left. Raises RejectedError for a
    given submitter's name that is not allowed; and as :func:`check_source` for what is no source.
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
    unopened = unopened_digest(attempt.source)
    with board.reading() as connection:
        submitter = find_submitter(connection, name)
        if attempt.submitter is None and submitter is not None and submitter.name != name:
            similar = visible(submitter.name)
            raise UsageError(message=f"`{visible(name)}` is written like the submitter `{similar}`; rename it")
        team_id = submitter and int(submitter.id)
        team = team_settings(connection, settings, team_id)
        phase, left = team.at(attempt.arrived), None
        same = same_submissions(connection, team, team_id, attempt.arrived, Submissions.id != attempt.row_id)
        earlier = {row.digest for row in same if not is_unfinished(connection, row)}
        unfinished = {row.digest for row in same} - earlier
        is_again = attempt.baseline or unopened in unfinished or is_retry(connection, attempt.row_id)
        if refusal:
            left, unfinished = 0, set()
        elif phase.submissions_a_day and not is_again:  # what is tried again has its quota
            used = quota_used(connection, team, team_id, attempt.arrived, with_uploads=False)
            left = phase.submissions_a_day - used
    result = process_source(
        attempt.source, place, phase, settings.metrics, earlier=earlier, again=unfinished, left=left
    )
    if refusal and result.state == SCORED:
        result = replace(result, state=REJECTED, reason=refusal)
    return replace(attempt, name=name, unopened=unopened, references=references, result=result)


# What is the same submission


def same_submissions(
    connection: Connection,
    settings: BoardSettings,
    team_id: int | None,
    arrived: datetime,
    is_content: ColumnElement[bool],
) -> list[Row[Any]]:
    """Return the submissions of a team, with these ``settings``, that have a content; the first to come first.

    In another phase the same content is another submission, since other tests or another table rank it.
    """
    query = select(submissions).where(Submissions.submitter_id == team_id, Submissions.state != REFUSED)
    rows = connection.execute(query.where(~Submissions.trial, is_content).order_by(Submissions.id))
    phase = settings.phase_of(arrived)
    return [row for row in rows if settings.phase_of(row.arrived) == phase]


def is_unfinished(connection: Connection, row: Row[Any]) -> bool:
    """Return whether a submission is tried again if it is sent again: it failed, or could not be received.

    Its limits may have been raised since.
    """
    return row.state == FAILED or (row.state == REJECTED and not file_ids(connection, row.id))


def is_retry(connection: Connection, row_id: int) -> bool:
    """Return whether a row was worked on before: it has its quota."""
    query = select(Submissions.id).where(Submissions.id == row_id, Submissions.ended.is_not(None))
    return connection.execute(query).first() is not None


def note_on_same(row: Row[Any]) -> str:
    """Return the sentence that something was sent before."""
    withdrawn = ", which was withdrawn by the organiser: it is not ranked" if row.withdrawn else ""
    return f"this is the submission {row.code} of {moment_text(row.arrived)} again{withdrawn}"


def note_on_phase(
    connection: Connection, settings: BoardSettings, team_id: int | None, arrived: datetime, is_content: Any
) -> str:
    """Return in which phase a content is entered that was sent in another one; "" for a new content."""
    is_sent = Submissions.submitter_id == team_id, ~Submissions.trial, is_content
    rows = connection.execute(select(Submissions.arrived).where(*is_sent)).scalars()
    phase = settings.phase_of(arrived)
    is_elsewhere = any(settings.phase_of(moment) != phase for moment in rows)
    return f"the same was sent in another phase; it is entered in phase {visible(phase)}" if is_elsewhere else ""


# The storing of a submission that was prepared, inside a transaction.


def store(connection: Connection, board: Board, attempt: Attempt) -> Receipt:
    """Store a submission with its files, outputs and scores, unless the same one is stored; return the receipt.

    An upload that is the same as an earlier submission is refused. Raises QuotaError, as another process may have
    used up the quota.
    """
    settings, result, parcel = board.settings, attempt.result, attempt.parcel
    submitter = find_submitter(connection, attempt.name)
    team_id = submitter and int(submitter.id)
    team = team_settings(connection, settings, team_id)
    is_content = Submissions.digest.in_((parcel.digest, attempt.unopened)) | (Submissions.code == attempt.code)
    is_other = is_content & (Submissions.id != attempt.row_id)
    row_id, note = attempt.row_id, ""
    for row in same_submissions(connection, team, team_id, attempt.arrived, is_other):
        if not is_unfinished(connection, row):
            if row_id:
                end_upload(connection, row_id, REFUSED, note_on_same(row), attempt.added)
                return receipt_of(connection, row_id)
            if attempt.fingerprint not in row.fingerprint:
                change_submission(connection, row.id, fingerprint=f"{row.fingerprint} {attempt.fingerprint}".strip())
            return receipt_of(connection, row.id, note_on_same(row))
        if not row_id:
            row_id, note = row.id, "it was tried again"
    if not (attempt.baseline or note or is_retry(connection, row_id)):
        check_quota(connection, settings, team_id, attempt.name, attempt.arrived, parcel.outputs)
    note = note or note_on_phase(connection, team, team_id, attempt.arrived, is_other)
    own = submitter_id(connection, attempt.name)
    cost, charge = charge_of(team.at(attempt.arrived), result.state, parcel.outputs, baseline=attempt.baseline)
    values = {
        **asdict(parcel.details),
        **{name: getattr(result, name) for name in words("state reason aside problems")},
        **{name: getattr(attempt, name) for name in words("added baseline")},
        **({"fingerprint": attempt.fingerprint} if attempt.fingerprint else {}),
        "digest": parcel.digest,
        "name": parcel.name,
        "source": attempt.origin or parcel.source,
        "cost": cost,
        "charge": charge,
        "scorer": __version__,
        "ended": attempt.added,
        "leased_until": None,
        "submitter_id": own,
    }
    if row_id:  # its code and its arrival stay: that it failed was not the submitter's fault
        _clear(connection, row_id)
        change_submission(connection, row_id, **values)
    else:
        values |= {name: getattr(attempt, name) for name in words("code arrived arrived_by")}
        row_id = connection.execute(insert(submissions).values(values).returning(Submissions.id)).scalar_one()
    for file in parcel.files:
        database.store_content(connection, file.sha256, file.path)
        value = {"submission_id": row_id, "name": file.name, "sha256": file.sha256, "bytes": file.bytes}
        connection.execute(insert(files).values(value))
    if result.state == SCORED:
        store_result(connection, row_id, result, attempt.references, attempt.added)
    return receipt_of(connection, row_id, note)


def _clear(connection: Connection, row_id: int) -> None:
    """Delete what was stored of a submission when it was tried before."""
    own = select(Outputs.id).where(Outputs.submission_id == row_id)
    for table in (scores, schema.disclosures):
        connection.execute(delete(table).where(table.c.output_id.in_(own)))
    for table in (outputs, files):
        connection.execute(delete(table).where(table.c.submission_id == row_id))


def end_upload(connection: Connection, row_id: int, state: str, reason: str, now: datetime) -> None:
    """End the work on an upload that becomes no submission; it counts for no quota."""
    values = {"state": state, "reason": reason, "ended": now, "leased_until": None, "cost": 0}
    change_submission(connection, row_id, **values, charge=receipts.CHARGE_OF_FAILED if state == FAILED else "")


def file_ids(connection: Connection, submission_id: int) -> dict[str, int]:
    """Return the ids of a submission's stored files by their names."""
    query = select(Files.name, Files.id).where(Files.submission_id == submission_id)
    return {row.name: row.id for row in connection.execute(query)}


def store_result(
    connection: Connection, submission_id: int, result: Result, references: References, now: datetime
) -> None:
    """Store the outputs of a submission that are not stored yet, and make their current evaluations their scores."""
    parcel = result.parcel
    if parcel is not None:
        ids, digests = file_ids(connection, submission_id), {file.name: file.sha256 for file in parcel.files}
        query = select(Outputs.file_id, Outputs.test).where(Outputs.submission_id == submission_id)
        stored = {(row.file_id, row.test) for row in connection.execute(query)}
        for output in parcel.outputs:
            values = {"submission_id": submission_id, "file_id": ids[output.file], "test": output.test}
            if (ids[output.file], output.test) not in stored:
                values |= {name: getattr(output, name) for name in ("variant", "params")}
                connection.execute(insert(outputs).values(**values, output_sha256=digests[output.file]))
        store_evaluations(connection, parcel, result.scored, references, now)
    for row in current_evaluations(connection, submission_id, references):
        own = Scores.output_id == row.output_id, Scores.metric == row.metric
        evaluation = connection.execute(select(Scores.evaluation_id).where(*own)).scalar()
        if evaluation not in (None, row.id):
            connection.execute(delete(scores).where(*own))
        if evaluation != row.id:
            values = {"output_id": row.output_id, "metric": row.metric, "evaluation_id": row.id}
            connection.execute(insert(scores).values(values))


def store_evaluations(
    connection: Connection, parcel: Parcel, scored: Iterable[Scored], references: References, now: datetime
) -> None:
    """Store the evaluations that are not stored yet."""
    digests = {file.name: file.sha256 for file in parcel.files}
    for one in scored:
        key = {
            "test": one.test,
            "output_sha256": digests[one.file],
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
