"""What is done with a submission before it is stored, outside of a transaction: received, checked, scored, packed.

Nothing is scored of what is there already, of one whose quota is used up, and of contents that were scored before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from geval_py.board.intake.doors import GIT, digest_at_the_door, submitter_of
from geval_py.board.intake.isolation import look_into, receive_isolated
from geval_py.board.intake.names import folded
from geval_py.board.keeping.quota import check_quota
from geval_py.board.storing import blobs
from geval_py.board.storing.schema import (
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
from geval_py.board.values import FailedError, Parcel, RejectedError, Scored
from geval_py.reading.sources import naming
from geval_py.text import shorten, visible
from geval_py.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from geval_py.board.references import References
    from geval_py.board.storing.store import Board

MOST_OF_A_NAME = 60  # characters of one that cannot be a submitter's as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A submission that stands at the door; ``submitter`` is None where it is to be named as it is itself."""

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
        prepared = _at_the_door(arrival, submitter_of(arrival.source)).blamed(error)
        return replace(prepared, same=_look_up(board, prepared))
    is_branch = arrival.source.startswith(GIT)
    prepared = _at_the_door(arrival, submitter_of(arrival.source) if is_branch else parcel.name)
    prepared = replace(prepared, digest=parcel.digest, parcel=parcel, references=references)
    same = _look_up(board, prepared)
    return replace(prepared, same=same) if same is not None else _examined(board, prepared, parcel, place)


def _at_the_door(arrival: Arrival, own: str) -> Prepared:
    """Say who submits: of a submission's own name that cannot be a submitter's, what can be seen of it."""
    name = own if arrival.submitter is None else arrival.submitter
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
