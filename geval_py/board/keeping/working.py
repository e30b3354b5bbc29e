"""A stored submission is looked into again: its files are taken from the database, checked, and scored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from geval_py.board.answers import sets_to_come
from geval_py.board.intake import digest_of
from geval_py.board.intake.isolation import look_into
from geval_py.board.intake.outputs import outputs_in_folders, outputs_of, test_by_folder
from geval_py.board.keeping.outdating import tests_in
from geval_py.board.keeping.preparing import by_file, wanted_of
from geval_py.board.keeping.submissions import PLACE_BEGINNING, evaluation_of
from geval_py.board.storing import blobs
from geval_py.board.storing.schema import FAILED, REJECTED, SCORED, evaluations, files, outputs, scores, submissions
from geval_py.board.values import Details, FailedError, Parcel, ReceivedFile, ReceivedOutput, RejectedError
from geval_py.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

    from geval_py.board.intake.elsewhere import LookInto
    from geval_py.board.keeping.outdating import Outdated
    from geval_py.board.references import References
    from geval_py.board.storing.store import Board


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
