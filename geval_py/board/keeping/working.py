"""A stored submission is looked into again: its files are taken from the database, checked, and scored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from geval_py.board.intake.isolation import look_into
from geval_py.board.intake.outputs import outputs_in_folders, outputs_of
from geval_py.board.keeping.outdating import tests_in
from geval_py.board.keeping.preparing import by_file, wanted_of
from geval_py.board.keeping.submissions import PLACE_BEGINNING, evaluation_of
from geval_py.board.storing import blobs
from geval_py.board.storing.schema import FAILED, REJECTED, SCORED, evaluations, files, outputs, scores, submissions
from geval_py.board.values import Details, FailedError, Parcel, ReceivedFile, ReceivedOutput, RejectedError
from geval_py.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

    from geval_py.board.keeping.outdating import Outdated
    from geval_py.board.references import References
    from geval_py.board.storing.store import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What came of a submission that was looked into again: its state, and its evaluations.

    ``numbers`` are their ids, by test, sha256 of the output's file, and metric.
    """

    submission_id: int
    outdated: tuple[Outdated, ...]
    parcel: Parcel
    state: str = SCORED
    reason: str = ""
    problems: tuple[Mapping[str, Any], ...] = ()
    numbers: Mapping[tuple[str, str, str], int] = field(default_factory=dict)


def score_again(board: Board, found: Sequence[Outdated], references: References, now: datetime) -> Work:
    """Score what is out of date of one submission, and store the evaluations; those that are stored are taken."""
    number = found[0].submission_id
    with TemporaryDirectory(prefix=PLACE_BEGINNING) as place:
        with board.reading() as connection:
            work = Work(submission_id=number, outdated=tuple(found), parcel=_parcel(connection, number, place))
            try:
                parcel = _with_outputs(connection, work, tests_in(references))
            except RejectedError as error:  # of what its files are called now that the tests are others
                return replace(work, state=REJECTED, reason=error.reason)
            work = replace(work, parcel=parcel, numbers=_known(connection, parcel, references))
        wanted = list(wanted_of(parcel, references, work.numbers))
        if not wanted:
            return work
        with board.reading() as connection:
            for file in parcel.files:
                blobs.write(connection, file.sha256, file.path)
        return _looked_into(board, work, place, wanted, references, now)


def _looked_into(
    board: Board,
    work: Work,
    place: str,
    wanted: Sequence[tuple[str, str, tuple[str, ...]]],
    references: References,
    now: datetime,
) -> Work:
    try:
        found = look_into(work.parcel, place, board.settings, wanted)
    except (RejectedError, FailedError) as error:
        state = REJECTED if isinstance(error, RejectedError) else FAILED
        return replace(work, state=state, reason=error.reason)
    if found.reason:
        return replace(work, state=REJECTED, reason=found.reason, problems=found.problems)
    numbers = dict(work.numbers)
    with board.writing() as connection:
        for of, one in by_file(work.parcel, found.digests, found.scored):
            numbers[of] = evaluation_of(connection, one, references[one.test, one.metric], now)
    return replace(work, problems=found.problems, numbers=numbers)


def _parcel(connection: Connection, number: int, place: str) -> Parcel:
    """Make the parcel of a submission that is stored, with paths for its files in a place, and without outputs."""
    row = connection.execute(select(submissions).where(submissions.c.id == number)).one()
    stored = connection.execute(select(files).where(files.c.submission_id == number).order_by(files.c.id)).all()
    received = tuple(
        ReceivedFile(name=file.name, path=os.path.join(place, f"{n:03}"), sha256=file.sha256, bytes=file.bytes)
        for n, file in enumerate(stored)
    )
    said = {name: getattr(row, name) for name in ("name", "source", "digest")}
    return Parcel(**said, files=received, outputs=(), details=Details())


def _with_outputs(connection: Connection, work: Work, tests: Sequence[str]) -> Parcel:
    """Give the parcel its outputs as they were stored, since a name may say another test now, and those of new tests.

    Raises RejectedError where two of these are one variant.
    """
    parcel, stored = work.parcel, tuple(_stored_outputs(connection, work.submission_id))
    if not stored:
        return replace(parcel, outputs=outputs_of(parcel.files, tests))
    known = {output.file for output in stored}
    new = outputs_in_folders([file for file in parcel.files if file.name not in known], tests)
    return replace(parcel, outputs=(*(output for output in stored if output.test in tests), *new))


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
