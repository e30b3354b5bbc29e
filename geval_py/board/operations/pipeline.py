"""The way of a submission into the board, the same for ``geval board add``, ``scan`` and the server's worker.

    prepare          outside of any transaction: a child process receives, checks and scores
    store            inside a transaction: unless the same is stored, and if there is quota, the row with its files
    store_result     its state, outputs and scores; a rescoring ends with this step, too

What is added or scanned gets its row now; an upload has waited in its own, as has what is tried again.
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
from geval_py.board.intake.sources import Parcel
from geval_py.board.operations import receipts
from geval_py.board.operations.receipts import Receipt, change_submission, charge_of, check_quota, receipt_of
from geval_py.board.operations.teams import find_submitter, submitter_id, team_id, team_settings
from geval_py.board.references import References
from geval_py.board.settings import AFTER, BoardSettings, moment_text
from geval_py.board.submission import Result, Scored, attributes
from geval_py.errors import RejectedError, UsageError
from geval_py.text import shorten, visible
from geval_py.version import __version__

CODE_DIGITS = 12
MAX_SHOWN = 60  # characters of a name that cannot be a submitter's
UNSCORED = REJECTED, FAILED  # states of submissions that are tried again if they are sent again


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A submission on its way into the board; without a ``submitter`` its own name is the submitter's.

    ``arrived_by`` is what says when it arrived, one of receipts.WAYS. ``row_id`` is that of an upload that waits, or
    of a submission that is tried again. For a scan, ``fingerprint`` is that of its path, and ``refusal`` is why it is
    not stored.

    What follows is known once it is prepared: the submitter's ``name``; the digest of the source as it stands; the
    ``result``.
    """

    source: str = ""
    submitter: str | None = None
    arrived: datetime
    baseline: bool = False
    arrived_by: str = receipts.NOW
    row_id: int = 0
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

    def code(self, settings: BoardSettings) -> str:
        """Return the code of a new submission: of submitter, content and arrival, as on a rebuilt board.

        The board's secret seed keeps anybody from finding the submitter behind a pseudonym.
        """
        secret = f"{settings.seed}\n" if settings.names == "pseudonyms" else ""
        moment = self.arrived.astimezone(UTC).isoformat(timespec="microseconds")
        told = f"{secret}{casefolded(self.name)}\n{self.parcel.digest}\n{moment}"
        return sha256(told.encode()).hexdigest()[:CODE_DIGITS]


def prepare(board: Board, attempt: Attempt, references: References, place: str) -> Attempt:
    """Receive, check and score a submission in an empty folder, which holds its files until it is stored.

    Raises RejectedError for a given submitter's name that is not allowed; and as :func:`check_source` for what is no
    source.
    """
    refusal = ""
    check_source(attempt.source, board.settings.transports)
    name = submitter_of(attempt.source) if attempt.submitter is None else attempt.submitter
    try:
        check_name(name)
    except RejectedError as error:
        if attempt.submitter is not None:
            raise
        name, refusal = shorten(visible(name), MAX_SHOWN), error.reason
    unopened = unopened_digest(attempt.source)
    with board.reading() as connection:
        settings = team_settings(connection, board.settings, team_id(connection, name))
    result = process_source(attempt.source, place, settings.at(attempt.arrived), settings.metrics)
    if refusal and result.state == SCORED:
        result = replace(result, state=REJECTED, reason=refusal)
    return replace(attempt, name=name, unopened=unopened, references=references, result=result)


def sent_before(
    connection: Connection,
    settings: BoardSettings,
    team_id: int | None,
    arrived: datetime,
    is_content: ColumnElement[bool],
) -> tuple[list[Row[Any]], str]:
    """Return the submissions of a team that are the same as one with a content, and what its sender is told.

    ``settings`` are the team's. In another phase the same content is another submission, since other tests or another
    table rank it. Those that are not tried again come first.
    """
    query = select(submissions).where(Submissions.submitter_id == team_id, ~Submissions.trial, is_content)
    query = query.where(Submissions.state != REFUSED).order_by(Submissions.state.in_(UNSCORED), Submissions.id)
    rows, phase = connection.execute(query).all(), settings.phase_of(arrived)
    same = [row for row in rows if settings.phase_of(row.arrived) == phase]
    if not same:
        note = f"the same was sent in another phase; it is entered in phase {visible(phase)}" if rows else ""
        late = "the last deadline has passed: it is ranked in a table of its own" if phase == AFTER else ""
        return [], note or late
    note = f"this is the submission {same[0].code} of {moment_text(same[0].arrived)} again"
    if same[0].withdrawn:
        note += ", which was withdrawn: it is not ranked"
    return same, f"{note}; it is tried again" if same[0].state in UNSCORED else note


# The storing of a submission that was prepared, inside a transaction.


def store(connection: Connection, board: Board, attempt: Attempt, now: datetime) -> Receipt:
    """Store a submission with its files, outputs and scores, unless the same one is stored; return the receipt.

    An upload that is the same as an earlier submission is refused. Raises QuotaError, and UsageError for a source
    whose name differs from its submitter's in its letter case alone.
    """
    result, parcel, row_id, arrived = attempt.result, attempt.parcel, attempt.row_id, attempt.arrived
    submitter = find_submitter(connection, attempt.name)
    if attempt.submitter is None and submitter and submitter.name != attempt.name:
        raise UsageError(
            f"`{visible(attempt.name)}` is written like the submitter `{visible(submitter.name)}`; rename it"
        )
    team = submitter and submitter.id
    settings = team_settings(connection, board.settings, team)
    code = attempt.code(board.settings)
    is_content = Submissions.digest.in_((parcel.digest, attempt.unopened)) | (Submissions.code == code)
    same, note = sent_before(connection, settings, team, arrived, is_content & (Submissions.id != row_id))
    if same and same[0].state not in UNSCORED:
        if row_id:
            end_upload(connection, row_id, Result(state=REFUSED, reason=note), now)
            return receipt_of(connection, row_id)
        if attempt.fingerprint not in same[0].fingerprint:
            marks = f"{same[0].fingerprint} {attempt.fingerprint}".strip()
            change_submission(connection, same[0].id, fingerprint=marks)
        return receipt_of(connection, same[0].id, note)
    if same and not row_id:
        row_id, arrived = same[0].id, same[0].arrived
    if not attempt.baseline:
        check_quota(connection, board.settings, team, attempt.name, arrived, parcel.outputs, row_id=row_id)
    cost, charge = charge_of(settings.at(arrived), result.state, parcel.outputs, baseline=attempt.baseline)
    values = {
        "added": max(now, attempt.arrived),
        "baseline": attempt.baseline,
        "cost": cost,
        "charge": charge,
        "digest": parcel.digest,
        "ended": now,
        "leased_until": None,
        "problems": result.problems,
    }
    if attempt.fingerprint:
        values["fingerprint"] = attempt.fingerprint
    details = asdict(parcel.details)
    if row_id:  # its code and its arrival stay: that it failed was not the submitter's fault
        values |= {name: value for name, value in details.items() if value}
        if parcel.files:
            outputs_of_row = select(Outputs.id).where(Outputs.submission_id == row_id)
            for table in (scores, schema.disclosures):
                connection.execute(delete(table).where(table.c.output_id.in_(outputs_of_row)))
            for table in (outputs, files):
                connection.execute(delete(table).where(table.c.submission_id == row_id))
        else:  # what was received before stays
            known = connection.scalar(select(Submissions.digest).where(Submissions.id == row_id))
            values["digest"] = known or parcel.digest
    else:
        values |= details | attributes(parcel, "name source") | {"code": code, "arrived": arrived}
        values |= {"arrived_by": attempt.arrived_by, "state": result.state, "scorer": __version__}
        values["submitter_id"] = submitter_id(connection, attempt.name)
        row_id = connection.scalar(insert(submissions).values(values).returning(Submissions.id))
    for file in parcel.files:
        database.store_content(connection, file.sha256, file.path)
        value = attributes(file, "name sha256 bytes")
        connection.execute(insert(files).values(**value, submission_id=row_id))
    store_result(connection, row_id, result, attempt.references, now, **values)
    return receipt_of(connection, row_id, note)


def end_upload(connection: Connection, row_id: int, result: Result, now: datetime) -> None:
    """End the work on an upload that becomes no submission; it counts for no quota."""
    values = attributes(result, "state reason problems")
    charge = receipts.CHARGES[FAILED][1] if result.state == FAILED else ""
    change_submission(connection, row_id, **values, ended=now, leased_until=None, cost=0, charge=charge)


def store_result(
    connection: Connection, submission_id: int, result: Result, references: References, now: datetime, **values: Any
) -> None:
    """Store the state of a result, with other ``values``, and the scores by the current evaluations of a submission.

    If it is rejected or failed, all of its scores are taken away.
    """
    values |= attributes(result, "state reason aside") | {"scorer": __version__}
    change_submission(connection, submission_id, **values)
    if result.state != SCORED:
        outputs_of_row = select(Outputs.id).where(Outputs.submission_id == submission_id)
        connection.execute(delete(scores).where(Scores.output_id.in_(outputs_of_row)))
        return
    if result.parcel:
        query = select(Files.name, Files.id).where(Files.submission_id == submission_id)
        ids = {row.name: row.id for row in connection.execute(query)}
        digests = {file.name: file.sha256 for file in result.parcel.files}
        query = select(Outputs.file_id).where(Outputs.submission_id == submission_id)
        stored = set(connection.scalars(query))
        for output in result.parcel.outputs:
            if ids[output.file] not in stored:
                values = attributes(output, "test variant params")
                values |= {"submission_id": submission_id, "file_id": ids[output.file]}
                connection.execute(insert(outputs).values(**values, output_sha256=digests[output.file]))
        store_evaluations(connection, result.parcel, result.scored, references, now)
    for row in current_evaluations(connection, submission_id, references):
        connection.execute(delete(scores).where(Scores.output_id == row.output_id, Scores.metric == row.metric))
        values = attributes(row, "output_id metric")
        connection.execute(insert(scores).values(**values, evaluation_id=row.id))


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
            values = attributes(one, "signature lines score low high losses documents")
            connection.execute(insert(evaluations).values(**key, **values, made=now))


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
