"""What is done with a submission before it is stored, outside of a transaction: received, checked, scored, packed.

Nothing is scored of what is there already, of one whose quota is used up, and of contents that were scored before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select

from geval_py.board.answers import sets_to_come
from geval_py.board.database import blobs
from geval_py.board.database.schema import (
    FAILED,
    REJECTED,
    SCORED,
    evaluations,
    files,
    outputs,
    scores,
    submissions,
    submitters,
)
from geval_py.board.intake.contents import outputs_in_folders, outputs_of, test_by_folder
from geval_py.board.intake.identity import digest_at_the_door, folded, submitter_of
from geval_py.board.intake.receiving import digest_of
from geval_py.board.intake.sandbox import look_into, receive_isolated
from geval_py.board.operations.outdated import tests_in
from geval_py.board.operations.quota import check_quota
from geval_py.board.submission import (
    Details,
    FailedError,
    Parcel,
    ReceivedFile,
    ReceivedOutput,
    RejectedError,
    Scored,
)
from geval_py.reading.sources import naming
from geval_py.text import shorten, visible
from geval_py.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, Select

    from geval_py.board.answers import References
    from geval_py.board.database.store import Board
    from geval_py.board.intake.sandbox import LookInto
    from geval_py.board.operations.outdated import Outdated


MOST_OF_A_NAME = 60  # characters of one that cannot be a submitter's as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A submission that stands at the door; ``submitter`` is None where its name says who sent it."""

    source: str
    submitter: str | None
    arrived: datetime
    added: datetime
    baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A submission that is ready to be stored.

    ``known`` gives the evaluations that are stored already, ``scored`` the new ones, by test, sha256 of the output's
    file, and metric. ``door`` is the digest that it would have if it could not be received. ``packed`` are the packed
    files by digest. ``aside`` is what the organiser alone is told of the reason. ``same`` is the id of the submission
    that this one was found to be; then nothing else was done.
    """

    arrival: Arrival
    name: str
    key: str
    digest: str
    door: str
    state: str = SCORED
    reason: str = ""
    aside: str = ""
    parcel: Parcel | None = None
    problems: tuple[Mapping[str, Any], ...] = ()
    known: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    scored: Mapping[tuple[str, str, str], Scored] = field(default_factory=dict)
    references: References = field(default_factory=dict)
    packed: Mapping[str, str] = field(default_factory=dict)
    same: int | None = None

    def blamed(self, error: RejectedError | FailedError) -> Prepared:
        """Give it as rejected or failed, with the reason."""
        state = REJECTED if isinstance(error, RejectedError) else FAILED
        return replace(self, state=state, reason=error.reason, aside=error.aside)


def prepare(board: Board, arrival: Arrival, references: References, place: str) -> Prepared:
    """Prepare a submission in an empty folder, in which its files stay until it is stored.

    Raises QuotaError; RejectedError for a submitter's name that is none, if it was given; and as
    :func:`receive_isolated` for a source that is not there.
    """
    if arrival.submitter is not None:
        folded(arrival.submitter)
    try:
        parcel = receive_isolated(arrival.source, place, board.settings)
    except (RejectedError, FailedError) as error:
        prepared = _at_the_door(arrival).blamed(error)
        return replace(prepared, same=_look_up(board, prepared))
    prepared = replace(_at_the_door(arrival), digest=parcel.digest, parcel=parcel, references=references)
    same = _look_up(board, prepared)
    return replace(prepared, same=same) if same is not None else _examined(board, prepared, parcel, place)


def _at_the_door(arrival: Arrival) -> Prepared:
    """Say who submits: of a submission's own name that cannot be a submitter's, what can be seen of it."""
    name = submitter_of(arrival.source) if arrival.submitter is None else arrival.submitter
    with naming(arrival.source):
        door = digest_at_the_door(arrival.source)
    try:
        key = folded(name)
    except RejectedError as error:
        name = shorten(visible(name), MOST_OF_A_NAME)
        return Prepared(arrival=arrival, name=name, key=folded(name), digest=door, door=door).blamed(error)
    return Prepared(arrival=arrival, name=name, key=key, digest=door, door=door)


def _look_up(board: Board, prepared: Prepared) -> int | None:
    """Find the same submission in the board, and check the quota where there is none."""
    with board.reading() as connection:
        return look_up(connection, board, prepared)


def look_up(connection: Connection, board: Board, prepared: Prepared) -> int | None:
    """Find the same submission, unless that failed, or can be received now; raises QuotaError where there is none."""
    same = stored_as(connection, prepared)
    if same is not None:
        return None if same.state == FAILED or same.digest != prepared.digest else int(same.id)
    if not prepared.arrival.baseline:
        submitter_id = connection.execute(select(submitters.c.id).where(submitters.c.key == prepared.key)).scalar()
        check_quota(connection, board.settings, submitter_id, prepared.name, prepared.arrival.arrived)
    return None


def stored_as(connection: Connection, prepared: Prepared) -> Row[Any] | None:
    """Give the submission with the same submitter and content, or that was not let in; None if there is none.

    An archive that was rejected is the same only if its bytes are, which its digest at the door tells; a folder or a
    branch may be another one by now, which then is a new submission.
    """
    is_same = submissions.c.digest == prepared.digest
    tried_again = (FAILED, REJECTED) if os.path.isfile(prepared.arrival.source) else (FAILED,)
    not_let_in = submissions.c.state.in_(tried_again) & (submissions.c.digest == prepared.door)
    return connection.execute(
        select(submissions)
        .join_from(submissions, submitters)
        .where(submitters.c.key == prepared.key, is_same | not_let_in)
        .order_by(is_same.desc())
    ).first()


def _examined(board: Board, prepared: Prepared, parcel: Parcel, place: str) -> Prepared:
    """Check and score a submission, and pack its files."""
    packed = {file.sha256: blobs.pack(file.path) for file in parcel.files}
    prepared = replace(prepared, packed=packed)
    if prepared.state != SCORED:
        return prepared
    with board.reading() as connection:
        known = dict(known_evaluations(connection, parcel, prepared.references))
    try:
        found = look_into(parcel, place, board.settings, list(wanted_of(parcel, prepared.references, known)))
    except (RejectedError, FailedError) as error:
        return prepared.blamed(error)
    scored = dict(by_file(parcel, found.digests, found.scored))
    state = REJECTED if found.reason else SCORED
    return replace(prepared, state=state, reason=found.reason, problems=found.problems, known=known, scored=scored)


def known_evaluations(
    connection: Connection, parcel: Parcel, references: References
) -> Iterator[tuple[tuple[str, str, str], int]]:
    """Give the evaluations of files with the same content as a parcel's that are up to date."""
    rows = connection.execute(
        select(outputs.c.test, files.c.sha256, evaluations.c.metric, evaluations.c.id, evaluations.c.reference)
        .join_from(files, outputs, outputs.c.file_id == files.c.id)
        .join(scores, scores.c.output_id == outputs.c.id)
        .join(evaluations, evaluations.c.id == scores.c.evaluation_id)
        .where(files.c.sha256.in_({file.sha256 for file in parcel.files}), evaluations.c.version == __version__)
    )
    for test, digest, metric, number, reference in rows:
        if references.get((test, metric)) == reference:
            yield (test, digest, metric), number


def wanted_of(
    parcel: Parcel, references: References, known: Mapping[tuple[str, str, str], int]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Give what is to be scored: tests, names of files, and the metrics by which they were not."""
    digests = {file.name: file.sha256 for file in parcel.files}
    for output in parcel.outputs:
        test, digest = output.test, digests[output.file]
        metrics = (metric for of, metric in references if of == test)
        missing = tuple(metric for metric in metrics if (test, digest, metric) not in known)
        if missing:
            yield test, output.file, missing


def by_file(
    parcel: Parcel, unpacked: Mapping[str, str], scored: tuple[Scored, ...]
) -> Iterator[tuple[tuple[str, str, str], Scored]]:
    """Give what was scored by the digests of the files, of which several may have the same content, unpacked."""
    of = {(one.test, one.output_sha256, one.metric): one for one in scored}
    digests = {file.name: file.sha256 for file in parcel.files}
    for output in parcel.outputs:
        for (test, digest, metric), one in of.items():
            if test == output.test and digest == unpacked.get(output.file):
                yield (test, digests[output.file], metric), one


# ``geval board add``: one submission, stored whole in one transaction, or not at all.


PLACE_BEGINNING = "geval-board-"


def _inserted(connection: Connection, statement: Any) -> int:
    return int(connection.execute(statement).scalar_one())


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


# A stored submission is looked into again: its files are taken from the database, checked, and scored.


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What came of a submission that was looked into again: its state, and its evaluations.

    ``numbers`` are their ids, by test, sha256 of the output's file, and metric. ``left_out`` has, by test, what came
    of outputs for tests that are new to it, and cannot be scored: they take nothing away from it.
    """

    submission_id: int
    outdated: tuple[Outdated, ...]
    parcel: Parcel
    state: str = SCORED
    reason: str = ""
    problems: tuple[Mapping[str, Any], ...] = ()
    numbers: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    left_out: Mapping[str, Work] = field(default_factory=dict)

    def blamed(self, error: RejectedError | FailedError) -> Work:
        """Give it as rejected or failed, with the reason."""
        state = REJECTED if isinstance(error, RejectedError) else FAILED
        return replace(self, state=state, reason=error.reason)

    def also(self, test: str, of_test: Work) -> Work:
        """Add what came of the outputs for a test that is new to it."""
        problems = (*self.problems, *of_test.problems)
        if of_test.state != SCORED:
            return replace(self, problems=problems, left_out={**self.left_out, test: of_test})
        parcel = replace(self.parcel, outputs=(*self.parcel.outputs, *of_test.parcel.outputs))
        return replace(self, problems=problems, parcel=parcel, numbers={**self.numbers, **of_test.numbers})


def score_again(
    board: Board, found: Sequence[Outdated], references: References, now: datetime, look: LookInto | None = None
) -> Work:
    """Score what is out of date of one submission, and store the evaluations; those that are stored are taken.

    ``look`` looks into it elsewhere, by default a child process here.
    Its outputs stay those that were stored, since a name may say another test now; those for tests that are new to it
    are looked into by themselves, a test at a time.
    """
    number, tests = found[0].submission_id, tests_in(references)
    with TemporaryDirectory(prefix=PLACE_BEGINNING) as place:
        with board.reading() as connection:
            whole = _parcel(connection, number, place, sets_to_come(board.settings))
            stored = tuple(_stored_outputs(connection, number))
        work = Work(submission_id=number, outdated=tuple(found), parcel=whole)
        tried = partial(_tried, board, work, place, references, now, look or look_into)
        if not stored:
            return tried(partial(outputs_of, whole.files, tests))
        done = tried(lambda: tuple(output for output in stored if output.test in tests))
        known = {output.file for output in stored}
        left = [file for file in whole.files if file.name not in known]
        new = {test_by_folder(file.name, tests) for file in left}
        for test in tests if done.state == SCORED else ():
            if test in new:
                done = done.also(test, tried(partial(outputs_in_folders, left, [test])))
        return done


def _tried(
    board: Board,
    work: Work,
    place: str,
    references: References,
    now: datetime,
    look: LookInto,
    outputs: Callable[[], tuple[ReceivedOutput, ...]],
) -> Work:
    """Check and score some outputs; of the files, two may be one variant now that the tests are others."""
    try:
        return _looked_into(board, work, place, references, now, look, outputs())
    except (RejectedError, FailedError) as error:
        return work.blamed(error)


def _looked_into(
    board: Board,
    work: Work,
    place: str,
    references: References,
    now: datetime,
    look: LookInto,
    of: tuple[ReceivedOutput, ...],
) -> Work:
    """Check and score some outputs, which become those of the parcel; raises RejectedError, FailedError."""
    parcel = replace(work.parcel, outputs=of)
    with board.reading() as connection:
        numbers = _known(connection, parcel, references)
        wanted = list(wanted_of(parcel, references, numbers))
        work = replace(work, parcel=parcel, numbers=numbers)
        if not wanted:
            return work
        names = {output.file for output in of}
        for file in parcel.files:
            if file.name in names:
                blobs.write(connection, file.sha256, file.path)
    found = look(parcel, place, board.settings, wanted)
    if found.reason:
        return replace(work, state=REJECTED, reason=found.reason, problems=found.problems)
    with board.writing() as connection:
        for key, one in by_file(parcel, found.digests, found.scored):
            numbers[key] = evaluation_of(connection, one, references[one.test, one.metric], now)
    return replace(work, problems=found.problems, numbers=numbers)


def _parcel(connection: Connection, number: int, place: str, to_come: Sequence[str]) -> Parcel:
    """Make the parcel of a submission that is stored, with paths for its files in a place, and without outputs.

    Its digest is that which it would have if it were received now: of a test that is scored now it has the files.
    """
    row = connection.execute(select(submissions).where(submissions.c.id == number)).one()
    stored = connection.execute(select(files).where(files.c.submission_id == number).order_by(files.c.id)).all()
    received = tuple(
        ReceivedFile(name=file.name, path=os.path.join(place, f"{n:03}"), sha256=file.sha256, bytes=file.bytes)
        for n, file in enumerate(stored)
    )
    digest = digest_of([file for file in received if test_by_folder(file.name, to_come) is None])
    return Parcel(name=row.name, source=row.source, digest=digest, files=received, outputs=(), details=Details())


def _stored_outputs(connection: Connection, number: int) -> Iterator[ReceivedOutput]:
    query = select(outputs, files.c.name.label("file")).join(files, files.c.id == outputs.c.file_id)
    for row in connection.execute(query.where(outputs.c.submission_id == number).order_by(outputs.c.id)):
        params = {str(name): str(value) for name, value in row.params.items()}
        yield ReceivedOutput(test=row.test, file=row.file, variant=row.variant, params=params)


def _known(connection: Connection, parcel: Parcel, references: References) -> dict[tuple[str, str, str], int]:
    """Give the evaluations of now that are stored of the same content: after an interruption, or a dry run."""
    found: dict[tuple[str, str, str], int] = {}
    digests = {file.name: file.sha256 for file in parcel.files}
    for output in parcel.outputs:
        digest = digests[output.file]
        for row in connection.execute(_of_content(output.test, digest)):
            if references.get((output.test, row.metric)) == row.reference:
                found[output.test, digest, row.metric] = row.id
    return found


def _of_content(test: str, digest: str) -> Select[Any]:
    """Select the evaluations by this version of what has, unpacked, the content of a file that was scored before."""
    unpacked = (
        select(evaluations.c.output_sha256)
        .join_from(files, outputs, outputs.c.file_id == files.c.id)
        .join(scores, scores.c.output_id == outputs.c.id)
        .join(evaluations, evaluations.c.id == scores.c.evaluation_id)
        .where(files.c.sha256 == digest, outputs.c.test == test)
    )
    return select(evaluations.c.metric, evaluations.c.reference, evaluations.c.id).where(
        evaluations.c.output_sha256.in_(unpacked), evaluations.c.test == test, evaluations.c.version == __version__
    )
