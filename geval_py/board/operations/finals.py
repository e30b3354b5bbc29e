"""``geval board final``: a submitter names the submissions by which the private part of a test ranks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, select, update

from geval_py.board.database.schema import SCORED, outputs, submissions, submitters
from geval_py.board.database.store import Board
from geval_py.board.operations.receipts import Receipt, id_of, receipt_of, written
from geval_py.board.settings import Phase, Settings
from geval_py.errors import UsageError
from geval_py.text import visible

NAMED, UNNAMED = "a final submission", "not a final submission"


def name_final(board: Board, codes: Sequence[str], now: datetime, *, undo: bool = False) -> list[Receipt]:
    """Name submissions as final, or with ``undo`` no longer; all or, after an error, none. Return their receipts.

    Raises UnknownCodeError, and UsageError if a submission cannot be final, if a submitter has named more than
    board.yaml allows, and after the deadline.
    """
    settings = board.settings
    if not settings.finals:
        raise UsageError(message="this board has no final submissions\n  `finals: 2` in board.yaml allows two")
    with board.writing() as connection:
        numbers = list(dict.fromkeys(id_of(connection, code) for code in codes))
        for number in numbers:
            row = connection.execute(select(submissions).where(submissions.c.id == number)).one()
            tests = _tests_of(connection, settings, row)
            _check_deadlines(tests, now)
            if not undo:
                _check_can_be_final(settings, row, tests)
            moment = None if undo else row.final or now.astimezone(UTC)
            connection.execute(update(submissions).where(submissions.c.id == number).values(final=moment))
        _check_numbers(connection, settings, numbers)
        return [receipt_of(connection, number, UNNAMED if undo else NAMED) for number in numbers]


def _tests_of(connection: Connection, settings: Settings, row: Row[Any]) -> dict[str, Phase | None]:
    """Return the tests whose private part a submission may decide, each with the phase that has its deadline."""
    query = select(outputs.c.test).where(outputs.c.submission_id == row.id).distinct()
    own, phase = set(connection.execute(query).scalars()), settings.phase_of(row.arrived)
    split = (test.name for test in settings.tests if test.split and test.name in own)
    last = {test: settings.deciding_phase(test) for test in split}
    return {test: of for test, of in last.items() if of is None or of.name == phase}


def _check_can_be_final(settings: Settings, row: Row[Any], tests: Mapping[str, Phase | None]) -> None:
    if row.baseline:
        raise UsageError(message=f"{row.code} is a baseline, which has no place")
    if row.state != SCORED or row.withdrawn is not None:
        state = "withdrawn" if row.withdrawn is not None else row.state
        raise UsageError(message=f"{row.code} is {state}: only a scored submission can be final")
    if not tests:
        last = {test.name: settings.deciding_phase(test.name) for test in settings.tests if test.split}
        needed = [f"an output for {test}" + (f" in {phase.name}" if phase else "") for test, phase in last.items()]
        raise UsageError(message=visible(f"{row.code} cannot be final: it needs {' or '.join(needed)}"))


def _check_deadlines(tests: Mapping[str, Phase | None], now: datetime) -> None:
    for test, phase in tests.items():
        if phase is not None and now > phase.until:
            deadline = f"the deadline of {visible(test)} has passed, at {written(phase.until)}"
            raise UsageError(message=f"{deadline}: final submissions stay as they are")


def _check_numbers(connection: Connection, settings: Settings, numbers: Iterable[int]) -> None:
    """Raise UsageError if a submitter of these submissions has named too many for a test."""
    of_these = select(submissions.c.submitter_id).where(submissions.c.id.in_(list(numbers)))
    query = (
        select(submissions, submitters.c.name.label("submitter"))
        .join(submitters, submitters.c.id == submissions.c.submitter_id)
        .where(submissions.c.final.is_not(None), submissions.c.submitter_id.in_(of_these))
        .where(submissions.c.state == SCORED, submissions.c.withdrawn.is_(None))
        .order_by(submissions.c.final, submissions.c.id)
    )
    named: dict[tuple[str, str], list[str]] = {}
    for row in connection.execute(query).all():
        for test in _tests_of(connection, settings, row):
            named.setdefault((row.submitter, test), []).append(row.code)
    for (submitter, test), codes in named.items():
        if len(codes) > settings.finals:
            most = f"{visible(submitter)} may name {settings.finals} final submissions for {visible(test)}"
            more = f"{', '.join(codes)} are {len(codes)}\n  geval board final --undo takes one back"
            raise UsageError(message=f"{most}: {more}")
