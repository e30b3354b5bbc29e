"""The pipeline of a submission, shared by ``geval board add``, ``scan`` and ``rescore``.

prepare (outside of any transaction)
    receive_in_sandbox   copy the files, or note why they cannot be copied
    find_same            the same submission may be stored already; else check the quota
    pack_file            compress the files for the database
    check_and_score      check all outputs, and score the contents that were not scored before
store (inside a transaction; see storing.py)

Rescoring takes the files from the database instead, and begins at check_and_score.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Connection, Row, select

from geval_py.board.database import schema
from geval_py.board.database import store as database
from geval_py.board.database.schema import FAILED, REJECTED, SCORED, files, outputs, scores, submissions, submitters
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import check_name, folded, looks, submitter_of, unopened_digest
from geval_py.board.intake.sandbox import Scorer, receive_in_sandbox, score_in_sandbox
from geval_py.board.operations import receipts
from geval_py.board.operations.receipts import check_quota, code_of
from geval_py.board.references import References
from geval_py.board.settings import Settings
from geval_py.board.submission import FailedError, Parcel, RejectedError, Scored, SubmissionError
from geval_py.reading.sources import naming
from geval_py.text import shorten, visible
from geval_py.version import __version__

Content: TypeAlias = tuple[str, str, str]  # a test, the sha256 of an output's file, a metric
MOST_OF_A_NAME = 60  # characters shown of a name that cannot be a submitter's


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The state of a submission in the pipeline.

    ``evaluations`` are the ids of stored evaluations, ``scored`` the scores that are not stored yet. ``aside``
    explains the reason to the organiser alone.
    """

    state: str = SCORED
    reason: str = ""
    aside: str = ""
    problems: tuple[Mapping[str, Any], ...] = ()
    evaluations: Mapping[Content, int] = field(default_factory=dict)
    scored: Mapping[Content, Scored] = field(default_factory=dict)


SomeOutcome = TypeVar("SomeOutcome", bound=Outcome)


def after_error(outcome: SomeOutcome, error: SubmissionError) -> SomeOutcome:
    """Return an outcome as rejected or failed, for the reason of the error."""
    state = REJECTED if isinstance(error, RejectedError) else FAILED
    return replace(outcome, state=state, reason=error.reason, aside=error.aside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A submission before it is received; without a ``submitter`` its own name is the submitter's.

    ``arrived_by`` is what says when it arrived, one of receipts.WAYS. Unless ``again``, a content that failed before
    counts as failed, and is not tried again. ``seconds`` may be fewer than board.yaml allows. ``origin`` is where it
    came from, if not its source. The database holds the content whose digest is ``stored`` until the submission is.
    """

    source: str
    submitter: str | None
    arrived: datetime
    added: datetime
    baseline: bool = False
    arrived_by: str = receipts.NOW
    again: bool = True
    seconds: int | None = None
    origin: str = ""
    stored: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Outcome):
    """A submission that is ready to be stored.

    ``key`` is the folded name of the submitter. ``unopened`` is the digest of the source as it stands, ``digest`` the
    digest of the files or, if they could not be received, ``unopened`` again. ``packed`` are the paths of the
    compressed files, by digest. ``same`` is the id of a stored submission with the same content; then all later steps
    were left out.
    """

    arrival: Arrival
    name: str
    key: str
    digest: str
    unopened: str
    parcel: Parcel | None = None
    references: References = field(default_factory=dict)
    packed: Mapping[str, str] = field(default_factory=dict)
    same: int | None = None


def prepare(board: Board, arrival: Arrival, references: References, place: str) -> Prepared:
    """Receive, check and score a submission in an empty folder, which holds its files until it is stored.

    Raises QuotaError; RejectedError for a given submitter's name that is not allowed; and as
    :func:`receive_in_sandbox` for a missing source.
    """
    if arrival.submitter is not None:
        check_name(arrival.submitter)
    parcel, limited = None, _with_less_time(board, arrival)
    prepared = replace(_identify(arrival), references=references)
    failure = _failure_before(board, prepared)
    try:
        if failure is not None:
            raise failure
        parcel = receive_in_sandbox(arrival.source, place, limited.settings.at(arrival.arrived))
        prepared = replace(prepared, digest=parcel.digest, parcel=parcel)
        failure = _failure_before(board, prepared)
    except SubmissionError as error:
        prepared = after_error(prepared, error)
    with board.reading() as connection:
        same = find_same(connection, board.settings, prepared)
    if same is not None or parcel is None:
        return replace(prepared, same=same)
    new = [file for file in parcel.files if file.sha256 != arrival.stored]
    prepared = replace(prepared, packed={file.sha256: database.pack_file(file.path) for file in new})
    if failure is not None:
        return after_error(prepared, failure)
    return check_and_score(limited, prepared, parcel, place, references) if prepared.state == SCORED else prepared


def _with_less_time(board: Board, arrival: Arrival) -> Board:
    limits = board.settings.limits
    seconds = limits.seconds if arrival.seconds is None else min(limits.seconds, arrival.seconds)
    return replace(board, settings=replace(board.settings, limits=replace(limits, seconds=seconds)))


def _failure_before(board: Board, prepared: Prepared) -> FailedError | None:
    """Return why the same content failed before, unless it is to be tried again or what that depends on has changed.

    The content may be another submitter's. A source that is no archive is not known by its digest until it is
    received, so that only its own submitter's failures count before.
    """
    arrival = prepared.arrival
    if arrival.again or prepared.state != SCORED:
        return None
    query = select(submissions.c.checked_with, submissions.c.reason, submitters.c.key)
    query = query.join_from(submissions, submitters).where(
        submissions.c.state == FAILED, submissions.c.digest == prepared.digest
    )
    is_exact = prepared.parcel is not None or os.path.isfile(arrival.source)
    tried = tried_with(board.settings, prepared.references)
    with board.reading() as connection:
        rows = [row for row in connection.execute(query) if is_exact or row.key == prepared.key]
    return next((FailedError(reason=row.reason) for row in rows if row.checked_with == tried), None)


def _identify(arrival: Arrival) -> Prepared:
    """Find out who submits; if that name is not allowed, reject the submission under the visible part of it."""
    name = submitter_of(arrival.source) if arrival.submitter is None else arrival.submitter
    with naming(arrival.source):
        digest = unopened_digest(arrival.source)
    try:
        check_name(name)
        return Prepared(arrival=arrival, name=name, key=folded(name), digest=digest, unopened=digest)
    except RejectedError as error:
        name = shorten(visible(name), MOST_OF_A_NAME)
        prepared = Prepared(arrival=arrival, name=name, key=folded(name), digest=digest, unopened=digest)
        return after_error(prepared, error)


def find_submitter(connection: Connection, name: str, key: str) -> Row[Any] | None:
    """Find the submitter with a name, whose folded form is ``key``; without any, the first whose name looks like it.

    Looks are not stored but made from the stored names, so that those of an older board count too.
    """
    found = connection.execute(select(submitters).where(submitters.c.key == key)).first()
    if found is not None:
        return found
    own = looks(name)
    rows = connection.execute(select(submitters).order_by(submitters.c.id))
    return next((row for row in rows if not own.isdisjoint(looks(row.name))), None)


def find_same(connection: Connection, settings: Settings, prepared: Prepared) -> int | None:
    """Return the id of the same submission, unless it failed, or was not received before and is now.

    Without any, check the quota; raises QuotaError.
    """
    submitter = find_submitter(connection, prepared.name, prepared.key)
    submitter_id = None if submitter is None else int(submitter.id)
    same = stored_before(connection, settings, prepared, submitter_id)
    if same is not None:
        return None if same.state == FAILED or same.digest != prepared.digest else int(same.id)
    if prepared.parcel is None:  # it may have been received before: the code stayed, the digest is another one
        code = code_of(prepared.key, prepared.unopened, prepared.arrival.arrived)
        known: int | None = connection.execute(select(submissions.c.id).where(submissions.c.code == code)).scalar()
        if known is not None:
            return known
    if not prepared.arrival.baseline:
        outputs = () if prepared.parcel is None else prepared.parcel.outputs
        check_quota(connection, settings, submitter_id, prepared.name, prepared.arrival.arrived, outputs)
    return None


def stored_before(
    connection: Connection, settings: Settings, prepared: Prepared, submitter_id: int | None
) -> Row[Any] | None:
    """Find the submission of the same submitter with the same content, or with the same source if not received.

    One that arrived in a phase with other tests is another one. The bytes of an archive identify it even if it was
    rejected; a folder or a branch may have changed since, so a rejected one does not count.
    """
    is_same = submissions.c.digest == prepared.digest
    retried = (FAILED, REJECTED) if os.path.isfile(prepared.arrival.source) else (FAILED,)
    not_received = submissions.c.state.in_(retried) & (submissions.c.digest == prepared.unopened)
    rows = connection.execute(
        select(submissions)
        .where(submissions.c.submitter_id == submitter_id, is_same | not_received)
        .order_by(is_same.desc())
    )
    tests = settings.at(prepared.arrival.arrived).tests
    return next((row for row in rows if settings.at(row.arrived).tests == tests), None)


# The step that rescoring shares: check and score.


def check_and_score(
    board: Board,
    outcome: SomeOutcome,
    parcel: Parcel,
    place: str,
    references: References,
    *,
    scorer: Scorer | None = None,
    from_database: bool = False,
) -> SomeOutcome:
    """Check all outputs of a parcel, and score the contents that have no evaluation with these references.

    ``scorer`` is by default the sandbox on this machine. If ``from_database``, the files of the outputs are written
    to their paths first, and if all is scored already, nothing is checked again.
    """
    with board.reading() as connection:
        known = dict(_known_evaluations(connection, parcel, references))
        outcome = replace(outcome, evaluations=known)
        wanted = list(_wanted(parcel, references, known))
        if from_database and not wanted:
            return outcome
        names = {output.file for output in parcel.outputs} if from_database else ()
        for file in parcel.files:
            if file.name in names:
                database.write_content(connection, file.sha256, file.path)
    try:
        findings = (scorer or score_in_sandbox)(parcel, place, board.settings, wanted)
    except SubmissionError as error:
        return after_error(outcome, error)
    state = REJECTED if findings.reason else SCORED
    scored = dict(by_file_digest(parcel, findings.digests, findings.scored))
    return replace(outcome, state=state, reason=findings.reason, problems=findings.problems, scored=scored)


def _known_evaluations(
    connection: Connection, parcel: Parcel, references: References
) -> Iterator[tuple[Content, int]]:
    """Yield the stored evaluations, by this version and with these references, of the parcel's contents.

    They include evaluations that no output has yet: after an interruption, or a dry run.
    """
    digests = {file.name: file.sha256 for file in parcel.files}
    for output in parcel.outputs:
        test, digest = output.test, digests[output.file]
        unpacked = (
            select(schema.evaluations.c.output_sha256)
            .join_from(files, outputs, outputs.c.file_id == files.c.id)
            .join(scores, scores.c.output_id == outputs.c.id)
            .join(schema.evaluations, schema.evaluations.c.id == scores.c.evaluation_id)
            .where(files.c.sha256 == digest, outputs.c.test == test)
        )
        query = select(schema.evaluations.c.metric, schema.evaluations.c.reference, schema.evaluations.c.id).where(
            schema.evaluations.c.output_sha256.in_(unpacked),
            schema.evaluations.c.test == test,
            schema.evaluations.c.version == __version__,
        )
        for metric, reference, number in connection.execute(query):
            if references.get((test, metric)) == reference:
                yield (test, digest, metric), number


def _wanted(
    parcel: Parcel, references: References, known: Mapping[Content, int]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield tests, names of files, and the metrics by which they are not scored."""
    digests = {file.name: file.sha256 for file in parcel.files}
    for output in parcel.outputs:
        test, digest = output.test, digests[output.file]
        metrics = (metric for of, metric in references if of == test)
        missing = tuple(metric for metric in metrics if (test, digest, metric) not in known)
        if missing:
            yield test, output.file, missing


def by_file_digest(
    parcel: Parcel, unpacked: Mapping[str, str], scored: tuple[Scored, ...]
) -> Iterator[tuple[Content, Scored]]:
    """Yield scores by the digests of the files; several files may have the same content, decompressed."""
    of = {(one.test, one.output_sha256, one.metric): one for one in scored}
    digests = {file.name: file.sha256 for file in parcel.files}
    for output in parcel.outputs:
        for (test, digest, metric), one in of.items():
            if test == output.test and digest == unpacked.get(output.file):
                yield (test, digests[output.file], metric), one


# What a check depends on.


def references_digest(settings: Settings, references: References) -> str:
    """Digest all that the check of a received submission depends on."""
    parts = [__version__, *(f"{test} {metric} {digest}" for (test, metric), digest in sorted(references.items()))]
    parts += [f"{phase.name} {' '.join(phase.tests)}" for phase in settings.phases if phase.tests]
    return sha256("\n".join(parts).encode()).hexdigest()


def settings_digest(settings: Settings) -> str:
    """Digest the part of board.yaml that decides which submissions can be received."""
    own = [([test.name for test in of.tests], of.variants) for of in settings.by_phase.values()]
    return sha256(repr((__version__, own, settings.limits, settings.transports)).encode()).hexdigest()


def tried_with(settings: Settings, references: References) -> str:
    """Digest what a failure may depend on, besides the machine: with the same digest it is not tried again."""
    digest = references_digest(settings, references)
    return sha256(f"{settings_digest(settings)} {digest}".encode()).hexdigest()
