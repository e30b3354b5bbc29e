"""``geval board add`` and ``scan``, which add submissions; ``withdraw``, ``note`` and ``final``, which mark them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, Row, select, update

from geval_py.board.database import schema
from geval_py.board.database.schema import COUNTED, REFUSED, SCORED, Outputs, Submissions, submissions
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded, fingerprint, own_name, submissions_in, submitter_of
from geval_py.board.operations import scheduler
from geval_py.board.operations.arrivals import arrivals_in, past
from geval_py.board.operations.pipeline import UNSCORED, Attempt, prepare, store
from geval_py.board.operations.receipts import (
    AT,
    NOW,
    SUBMISSIONS,
    WITHDRAWN,
    QuotaError,
    Receipt,
    change_submission,
    find_submission,
    receipt_of,
)
from geval_py.board.operations.scheduler import Progress
from geval_py.board.operations.teams import team_settings
from geval_py.board.ranking.disclosure import changing, refresh
from geval_py.board.references import references_of
from geval_py.board.settings import BoardSettings, moment_text
from geval_py.board.submission import attributes
from geval_py.errors import DataError, RejectedError, UsageError
from geval_py.reading.files import naming
from geval_py.text import visible


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

    ``submitter`` is by default the submission's name, for a branch its whole repository; ``at`` is when it arrived,
    by default now. If the submitter sent the same content before, that submission's receipt is returned; if it failed
    then, it is replaced. Rejected and failed submissions are stored as such.

    Raises QuotaError before anything is scored; RejectedError for a name that no submitter may have; UsageError for a
    time in the future; MissingFileError for a missing source; StoreError.
    """
    attempt = Attempt(
        source=source,
        submitter=submitter,
        arrived=now if at is None else past(at, now),
        baseline=baseline,
        arrived_by=NOW if at is None else AT,
    )
    with TemporaryDirectory(prefix="geval-board-add-", ignore_cleanup_errors=True) as place:
        attempt = prepare(board, attempt, references_of(board.settings), place)
        with changing(board, now) as connection:
            return store(connection, board, attempt, now)


def scan(
    board: Board,
    folder: str,
    *,
    now: datetime,
    at: datetime | None = None,
    arrived: str = NOW,
    again: bool = False,
    progress: Progress | None = None,
) -> list[Receipt]:
    """Add each sub-folder and archive of a folder that is new or has changed; its name is the submitter's.

    ``at`` is when all arrived; else ``arrivals.csv`` in the folder says when, and for submissions that are not in it
    ``arrived``, one of receipts.ARRIVED. The first to arrive is stored first. With ``again``, submissions that were
    rejected or failed before are tried again, with their arrivals. ``progress`` is called with the number of
    submissions done and the number of all. Rejected and failed ones are stored as such. A submission is refused if a
    quota is used up, if it cannot be read, if it is a link, or if it cannot have arrived when it is said to: it is
    not stored, its receipt has no code, and the next scan tries again. An interrupt kills all children; what was
    finished is stored.

    Raises UnreadableFileError, UsageError for a time in the future, StoreError, and the DataErrors of the challenge
    and of :func:`~geval_py.board.operations.arrivals.arrivals_in`.
    """
    settings = board.settings
    with naming(folder):
        sources = submissions_in(folder)
    moment_of = arrivals_in(board, folder, way=arrived, at=at, now=now)
    references = references_of(settings)
    with board.reading() as connection:
        rows = connection.execute(select(submissions).where(Submissions.fingerprint != "")).all()
    scanned = {mark: (row, again and row.state in UNSCORED) for row in rows for mark in row.fingerprint.split()}
    new: list[Attempt] = []
    for source in sources:
        mark = "" if os.path.islink(source) else fingerprint(source, settings.limits.listed)
        row, is_again = scanned.get(mark, (None, True))
        if not is_again:
            continue
        key = submitter_of(source)
        with suppress(RejectedError):  # the name is not allowed
            key = casefolded(key)
        attempt = Attempt(source=source, arrived=now, fingerprint=mark, name=key)
        try:
            _check_no_link(source)
            if row:
                attempt = replace(attempt, **attributes(row, "arrived arrived_by"), row_id=row.id)
            else:
                moment, way = moment_of(source)
                attempt = replace(attempt, arrived=moment, arrived_by=way)
        except (DataError, UsageError) as error:
            attempt = replace(attempt, refusal=str(error))
        new.append(attempt)
    new.sort(key=lambda one: one.arrived)
    waiting, receipts = list(new), dict[str, Receipt]()

    def take(at_work: Sequence[Attempt]) -> Attempt | None:
        """Return the next whose submitter has none at work, so that quotas hold in the order of arrival."""
        busy = {attempt.name for attempt in at_work}
        following = next((attempt for attempt in waiting if attempt.name not in busy), None)
        if following:
            waiting.remove(following)
        return following

    def prepare_path(attempt: Attempt, place: str) -> Attempt:
        if attempt.refusal:
            return attempt
        try:
            prepared = prepare(board, attempt, references, place)
            _check_no_link(attempt.source)  # it may have become one since it was listed
        except (DataError, UsageError) as error:  # one that cannot be read does not stop the others
            return replace(attempt, refusal=str(error))
        return prepared

    def store_paths(ready: Sequence[Attempt]) -> None:
        with board.writing() as connection:
            stored = {one.source: _store_path(connection, board, one, now) for one in ready}
            changed = schema.board.c.changed + 1  # it is ranked when it is read
            connection.execute(update(schema.board).values(disclosed_with="", changed=changed))
        receipts.update(stored)
        if progress:
            progress(len(receipts), len(new))

    scheduler.run(take, prepare_path, store_paths, in_order=True)
    if receipts:
        with board.writing() as connection:
            refresh(connection, settings, now)
    return [receipts[one.source] for one in new]


def _check_no_link(source: str) -> None:
    if os.path.islink(source):
        raise UsageError(f"`{visible(os.path.basename(source))}` is a link; links are not followed")


def _store_path(connection: Connection, board: Board, attempt: Attempt, now: datetime) -> Receipt:
    if not (refusal := attempt.refusal):
        try:
            return store(connection, board, attempt, now)
        except (QuotaError, UsageError) as error:
            refusal = str(error)
    name = own_name(attempt.source)
    arrival = attributes(attempt, "source arrived arrived_by")
    return Receipt(submitter=name, name=name, state=REFUSED, reason=refusal.replace("\n ", ";"), **arrival)


# Marks of the organiser on a submission, which stays stored.


def withdraw(
    connection: Connection, settings: BoardSettings, code: str, reason: str, now: datetime, *, by_team: bool = False
) -> Receipt:
    """Hide a submission from all rankings and pages; it still counts for the quota.

    Raises UnknownCodeError, and UsageError without a reason, for a submission that is withdrawn already, and
    ``by_team`` if that would show or decide something: on a test with a ladder, or after the deadline.
    """
    if not reason.strip():
        raise UsageError("a withdrawal needs a reason, which `geval board status` shows")
    row = find_submission(connection, code)
    if row.withdrawn:
        raise UsageError(f"`{visible(code)}` was already withdrawn, at {moment_text(row.withdrawn)}")
    if by_team and (problem := withdrawal_problem(connection, settings, row, now)):
        raise UsageError(problem)
    change_submission(connection, row.id, withdrawn=now, withdrawal=reason)
    return receipt_of(connection, row.id, f"withdrawn: {visible(reason)}")


def restore(connection: Connection, code: str) -> Receipt:
    """Undo the withdrawal of a submission; raises UnknownCodeError, and UsageError if it is not withdrawn."""
    row = find_submission(connection, code)
    if not row.withdrawn:
        raise UsageError(f"`{visible(code)}` is not withdrawn")
    change_submission(connection, row.id, withdrawn=None, withdrawal="")
    return receipt_of(connection, row.id, "no longer withdrawn")


def withdrawal_problem(connection: Connection, settings: BoardSettings, row: Row[Any], now: datetime) -> str:
    """Return why a team may not withdraw a submission; "" if it may."""
    own_settings = team_settings(connection, settings, row.submitter_id)
    phase, ask = own_settings.phase_of(row.arrived), f"ask the organiser to withdraw {row.code}"
    if phase != own_settings.phase_of(now):
        return f"the deadline of {visible(phase)} has passed; {ask}"
    own = _tests_with_outputs(connection, row.id)
    for test in settings.in_phase(phase).tests:
        if test.ladder and test.name in own:  # a step that is lost would show the next score
            return f"it may be a step of the ladder of {visible(test.name)}; {ask}"
    return ""


def _tests_with_outputs(connection: Connection, number: int) -> set[str]:
    return set(connection.scalars(select(Outputs.test).where(Outputs.submission_id == number)))


def note(connection: Connection, code: str, remark: str) -> Receipt:
    """Put a public remark on a submission, in place of an earlier one; "" removes it. Raises UnknownCodeError."""
    remark, row = remark.strip(), find_submission(connection, code)
    change_submission(connection, row.id, remark=remark)
    return receipt_of(connection, row.id, f"remark: {visible(remark)}" if remark else "without a remark")


def name_final(
    connection: Connection, settings: BoardSettings, code: str, now: datetime, *, undo: bool = False
) -> Receipt:
    """Name a submission as one of those by which the private part of a test ranks its submitter.

    With ``undo`` it is that no longer.

    Raises UnknownCodeError, and UsageError if the submission cannot be final, if the submitter has named more than
    board.yaml allows, and after the deadline.
    """
    if not settings.finals:
        raise UsageError("this board has no final submissions\n  to allow two, write `finals: 2` into board.yaml")
    row = find_submission(connection, code)
    if problem := final_problem(connection, settings, row, now, undo=undo):
        raise UsageError(problem)
    change_submission(connection, row.id, final=None if undo else row.final or now)
    return receipt_of(connection, row.id, "not a final submission" if undo else "a final submission")


def final_problem(
    connection: Connection, settings: BoardSettings, row: Row[Any], now: datetime, *, undo: bool
) -> str:
    """Return why a submission cannot be named as final, or with ``undo`` not taken back; "" if it can."""
    team, tests = team_settings(connection, settings, row.submitter_id), _tests_with_outputs(connection, row.id)
    last = {test.name: team.deciding_phase(test.name) for test in settings.tests if test.split}
    phase = team.phase_of(row.arrived)
    decided = {test: end for test, end in last.items() if test in tests and (end is None or end.name == phase)}
    for test, end in decided.items():
        if end and now > end.until:
            deadline = f"the deadline of {visible(test)} has passed, at {moment_text(end.until)}"
            return f"{deadline}: final submissions cannot be changed"
    if undo:
        return ""
    if row.baseline or row.state != SCORED or row.withdrawn:
        state = WITHDRAWN if row.withdrawn else "a baseline" if row.baseline else row.state
        return f"{row.code} is {state}: only a scored submission can be final"
    if not decided:
        return visible(f"{row.code} cannot be final: it has no output for {' or '.join(last)} in its last phase")
    query = SUBMISSIONS.where(Submissions.final.is_not(None), Submissions.submitter_id == row.submitter_id)
    query = query.where(*COUNTED, Submissions.id != row.id).order_by(Submissions.final, Submissions.id)
    named = [other for other in connection.execute(query).all() if team.phase_of(other.arrived) == phase]
    for test in decided:
        codes = [other.code for other in named if test in _tests_with_outputs(connection, other.id)]
        if len(codes) >= settings.finals:
            most = f"{visible(named[0].submitter)} may name {settings.finals} final submissions for {visible(test)}"
            return f"{most}: {', '.join([*codes, row.code])} are {len(codes) + 1}\n  take one back first"
    return ""
