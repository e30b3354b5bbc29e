"""``geval board rescore``: score again what is outdated, and replace the stored scores in one transaction.

    outdated             the scores of an earlier challenge, answers, metrics, seed or geval-py
    score_again          outside of any transaction: new evaluations of the stored files, which nobody sees yet
    replace_scores       inside one transaction, for what is outdated still

The files come from the database. Replaced scores go into the history, each with the reason. The last part finds the
places that this moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, delete, insert, select, true

from geval_py.board.database import store as database
from geval_py.board.database.schema import (
    FAILED,
    REJECTED,
    SCORED,
    Evaluations,
    Files,
    Outputs,
    Scores,
    Submissions,
    evaluations,
    files,
    history,
    outputs,
    pick,
    scores,
    submissions,
)
from geval_py.board.database.store import Board
from geval_py.board.intake.receiving import outputs_of, test_by_folder
from geval_py.board.intake.sandbox import process_parcel
from geval_py.board.intake.sources import numbered_path
from geval_py.board.operations import scheduler
from geval_py.board.operations.pipeline import (
    check_digest,
    current_evaluations,
    store_evaluations,
    store_scored,
)
from geval_py.board.operations.receipts import Receipt, change_submission, charge_of, receipt_of
from geval_py.board.operations.scheduler import Progress
from geval_py.board.operations.teams import settings_by_team, team_settings
from geval_py.board.ranking import leaderboard
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.ranking.order import SUBMITTER
from geval_py.board.references import References, references_of
from geval_py.board.settings import BoardSettings
from geval_py.board.submission import Parcel, ReceivedFile, ReceivedOutput, RejectedError, Result
from geval_py.version import __version__

NEW_METRIC = "it was not scored by this metric"
NEW_TEST = "it came before this test was scored"
OTHER_REFERENCE = "the challenge, its answers or the seed changed"
TRIED_AGAIN = "it failed, and is tried again"
CHECKED_AGAIN = "it was rejected, and the challenge, its answers or geval-py changed"
Places: TypeAlias = "Mapping[tuple[str, str, str, str], int | None]"  # by test, phase, submitter and code


@dataclass(frozen=True)
class Outdated:
    """A score to be replaced, and the reason; ``evaluation_id`` is the current evaluation, None if there is none.

    ``output_id`` is None for a test that is newer than its submission. ``test`` and ``metric`` are "" if the
    submission has no scores, and is to be checked again.
    """

    submission_id: int
    code: str
    reason: str
    test: str = ""
    metric: str = ""
    output_id: int | None = None
    evaluation_id: int | None = None


@dataclass(frozen=True)
class PlaceChange:
    """A place in the table of a test and phase before and after; None for an entry that has none there."""

    test: str
    phase: str
    submitter: str
    entry: str
    before: int | None
    after: int | None


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """The outdated scores, the changes of places, and the receipts of submissions whose state changed (or would)."""

    outdated: tuple[Outdated, ...]
    changes: tuple[PlaceChange, ...]
    receipts: tuple[Receipt, ...]


def rescore(
    board: Board,
    *,
    now: datetime,
    dry_run: bool = False,
    again: bool = False,
    progress: Progress | None = None,
) -> Rescored:
    """Score again what is outdated, keep the old scores in the history with the reason, and rank anew.

    Rejected submissions are checked again if the challenge, answers or version changed; failed ones are tried again
    then, if the limits changed, or with ``again``. With ``dry_run`` nothing changes but for stored evaluations that
    nobody sees. ``progress`` is called with the number of submissions done, and the number of all. An interrupt kills
    all children; what was scored is not scored again. If the challenge changes meanwhile, all begins anew. Raises
    StoreError, and the DataErrors of the challenge.
    """
    settings = board.settings
    while True:
        references = references_of(settings)
        with board.reading() as connection:
            old = outdated(connection, settings, references, again=again)
        waiting = sorted({one.submission_id for one in old}, reverse=True)
        revisions = _score_all(board, waiting, references, now, progress)
        if references_of(settings) == references:
            break
    receipts = []
    with board.writing() as connection:
        refresh(connection, settings, now)
        before = places(connection, settings, now)
        left = outdated(connection, settings, references, again=again)  # another run may have replaced some meanwhile
        still_old = {number: list(group) for number, group in groupby(left, lambda one: one.submission_id)}
        for revision in revisions:
            own = still_old.get(revision.submission_id)
            if own and replace_scores(connection, settings, revision, own, references, now):
                receipts.append(receipt_of(connection, revision.submission_id))
        refresh(connection, settings, now)
        after = places(connection, settings, now)
        if dry_run:
            connection.rollback()
    changes = (PlaceChange(*key, before.get(key), after.get(key)) for key in dict.fromkeys((*after, *before)))
    moved = tuple(one for one in changes if one.before != one.after)
    return Rescored(outdated=tuple(old), changes=moved, receipts=tuple(receipts))


def outdated(
    connection: Connection, settings: BoardSettings, references: References, *, again: bool = False
) -> list[Outdated]:
    """List the outdated scores by submission.

    They are scores that were made with other references, or by another geval-py; of scored submissions, files for
    tests that board.yaml named later, or ranks in their phase since; and submissions with files that were rejected
    or failed. What was checked with all as it is now is left out, unless it failed and is to be tried ``again``.
    """
    old = []
    first: dict[int, Row[Any]] = {}
    scored: dict[tuple[int, str], Row[Any]] = {}
    for row in connection.execute(
        select(
            Submissions.id,
            Submissions.code,
            Outputs.id.label("output_id"),
            Outputs.test,
            Scores.metric,
            Scores.evaluation_id,
        )
        .add_columns(Evaluations.reference, Evaluations.version)
        .join_from(submissions, outputs)
        .outerjoin(scores, Scores.output_id == Outputs.id)
        .outerjoin(evaluations, Evaluations.id == Scores.evaluation_id)
        .where(Submissions.state == SCORED)
    ):
        first[row.output_id] = scored[row.output_id, row.metric] = row
    for output_id, row in first.items():
        for (test, metric), reference in references.items():
            current = scored.get((output_id, metric))
            if test != row.test or (current and (current.reference, current.version) == (reference, __version__)):
                continue
            reason = NEW_METRIC
            if current is not None:
                is_other = current.reference != reference
                reason = OTHER_REFERENCE if is_other else f"geval-py {current.version} became {__version__}"
            own = {"output_id": output_id, "evaluation_id": current and current.evaluation_id}
            old.append(Outdated(row.id, row.code, reason, test, metric, **own))

    was_checked = Submissions.checked_with == check_digest(settings, references)
    tests = {name: [test.name for test in phase.tests] for name, phase in settings.by_phase.items()}
    teams = settings_by_team(connection, settings)
    for row in connection.execute(
        select(*pick(Submissions, "id code arrived submitter_id"), Files.name)
        .join_from(submissions, files)
        .outerjoin(outputs, Outputs.file_id == Files.id)
        .where(Submissions.state == SCORED, Outputs.id.is_(None), true() if again else ~was_checked)
    ):
        new_test = test_by_folder(row.name, tests[teams[row.submitter_id].phase_of(row.arrived)])
        old += [Outdated(row.id, row.code, NEW_TEST, *key) for key in references if key[0] == new_test]

    has_files = select(Files.id).where(Files.submission_id == Submissions.id).exists()
    for state, reason in ((FAILED, TRIED_AGAIN), (REJECTED, CHECKED_AGAIN)):
        is_old = true() if again and state == FAILED else ~was_checked
        query = select(Submissions.id, Submissions.code).where(Submissions.state == state, is_old, has_files)
        old += [Outdated(row.id, row.code, reason) for row in connection.execute(query)]
    return sorted(old, key=lambda one: (one.submission_id, one.output_id or 0))


# Submissions, scored again.


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A submission that is checked and scored again; ``outputs`` are those that could be scored.

    ``result`` is of the outputs that it had. ``later`` are those of outputs for tests that are newer than the
    submission, by test: what cannot be scored of them is left out, and does not affect the other outputs.
    """

    submission_id: int
    outputs: tuple[ReceivedOutput, ...] = ()
    result: Result = field(default_factory=Result)
    later: Mapping[str, Result] = field(default_factory=dict)

    @property
    def results(self) -> tuple[Result, ...]:
        """All results."""
        return (self.result, *self.later.values())


def _score_all(
    board: Board, waiting: list[int], references: References, now: datetime, progress: Progress | None
) -> list[Revision]:
    """Score submissions, several at once, and store the evaluations; return them in order of their ids."""
    total, revisions = len(waiting), dict[int, Revision]()

    def take(_: Sequence[Revision]) -> Revision | None:
        return Revision(submission_id=waiting.pop()) if waiting else None

    def store(ready: Sequence[Revision], seconds: float | None) -> None:
        with board.writing(seconds) as connection:
            for one in ready:
                for result in one.results:
                    store_evaluations(connection, result.scored, references, now)
        for one in ready:
            revisions[one.submission_id] = one
            if progress is not None:
                progress(len(revisions), total)

    scheduler.run(take, lambda one, place: score_again(board, one.submission_id, references, place), store)
    return [revisions[number] for number in sorted(revisions)]


def score_again(board: Board, number: int, references: References, place: str) -> Revision:
    """Check the outputs of a stored submission, and score those that have no evaluation with these references.

    They are those of the tests for which they were stored: a file's name may mean another test today. Outputs for
    tests that are newer than the submission are checked and scored apart, a test at a time.
    """
    with board.reading() as connection:
        row = connection.execute(select(submissions).where(Submissions.id == number)).one()
        query = select(files).where(Files.submission_id == number).order_by(Files.id)
        own_files = tuple(
            ReceivedFile(name=one.name, path=numbered_path(place, n, one.name), sha256=one.sha256, bytes=one.bytes)
            for n, one in enumerate(connection.execute(query))
        )
        columns = Outputs.test, Files.name.label("file"), Outputs.variant, Outputs.params
        query = select(*columns).join(files, Files.id == Outputs.file_id).order_by(Outputs.id)
        rows = connection.execute(query.where(Outputs.submission_id == number)).mappings()
        stored = tuple(ReceivedOutput(**one) for one in rows)
        current = current_evaluations(connection, number, references)
        settings = team_settings(connection, board.settings, row.submitter_id).at(row.arrived)
    evaluated = {(one.test, one.file, one.metric) for one in current}
    parcel = Parcel(name=row.name, source=row.source, digest=row.digest, files=own_files)

    def score(chosen: tuple[ReceivedOutput, ...]) -> Result:
        part, wanted = replace(parcel, outputs=chosen), []
        for output in chosen:
            metrics = [metric for test, metric in references if test == output.test]
            missing = [metric for metric in metrics if (output.test, output.file, metric) not in evaluated]
            wanted += [(output.test, output.file, missing)] if missing else []
        if not wanted:
            return Result(parcel=part)
        names = {output.file for output in chosen}
        with board.reading() as connection:
            for file in own_files:
                if file.name in names:
                    database.write_content(connection, file.sha256, file.path)
        return process_parcel(part, place, settings, wanted)

    def score_files(chosen: Sequence[ReceivedFile], tests: Sequence[str]) -> Result:
        try:
            return score(outputs_of(chosen, tests, settings.variants))
        except RejectedError as error:  # two files may be one variant, now that the tests are others
            return Result(parcel=parcel, state=REJECTED, reason=error.reason)

    tests = [test.name for test in settings.tests]
    later: dict[str, Result] = {}
    if stored:
        scored_tests = {test for test, _ in references}
        result = score(tuple(output for output in stored if output.test in scored_tests))
    else:
        result = score_files(own_files, tests)
    if stored and result.state == SCORED:
        with_output = {output.file for output in stored}
        left = [file for file in own_files if file.name not in with_output and "/" in file.name]
        new_tests = {test_by_folder(file.name, tests) for file in left}
        later = {test: score_files(left, [test]) for test in tests if test in new_tests}
    fine = [one.parcel for one in (result, *later.values()) if one.state == SCORED and one.parcel]
    scored = tuple(output for one in fine for output in one.outputs)
    return Revision(submission_id=number, outputs=scored, result=result, later=later)


def replace_scores(
    connection: Connection,
    settings: BoardSettings,
    revision: Revision,
    old: Sequence[Outdated],
    references: References,
    now: datetime,
) -> bool:
    """Replace the ``old`` scores of a submission; return whether its state or the reason changed.

    If it is rejected or failed now, all of its scores are taken away. But if only outputs for new tests are at fault,
    its other scores stay, and the reason tells which outputs are left out.
    """
    result, own = revision.result, Submissions.id == revision.submission_id
    was = connection.execute(select(submissions).where(own)).one()
    problems = [problem for one in revision.results for problem in one.problems]
    left_out = {test: one for test, one in revision.later.items() if one.state != SCORED}
    if left_out and revision.outputs:
        reasons = (f"its outputs for {test} are left out: {one.reason}" for test, one in left_out.items())
        result = replace(result, reason="; ".join(reasons))
    elif left_out:
        result = next(iter(left_out.values()))
    query = select(scores).join(outputs).where(Outputs.submission_id == revision.submission_id)
    current = {(row.output_id, row.metric): row.evaluation_id for row in connection.execute(query)}
    reasons_by_key = {(one.output_id, one.metric): one.reason for one in old}
    new: dict[tuple[int, str], int] = {}
    if result.state == SCORED:
        scored = [score for one in revision.results for score in one.scored]
        store_scored(connection, revision.submission_id, revision.outputs, scored)
        rows_now = current_evaluations(connection, revision.submission_id, references)
        new = {(row.output_id, row.metric): row.id for row in rows_now}
    for key in current | new:
        row, is_gone = dict(zip(("output_id", "metric"), key, strict=True)), result.state != SCORED
        if key in current and (is_gone or new.get(key, current[key]) != current[key]):
            reason = reasons_by_key.get(key, result.reason)
            earlier = {"evaluation_id": current[key], "replaced": now, "reason": reason}
            connection.execute(insert(history).values(row | earlier))
            connection.execute(delete(scores).where(Scores.output_id == key[0], Scores.metric == key[1]))
        if key in new and current.get(key) != new[key]:
            connection.execute(insert(scores).values(**row, evaluation_id=new[key]))
    values: dict[str, Any] = {"state": result.state, "reason": result.reason, "scorer": __version__}
    values["checked_with"] = check_digest(settings, references)
    is_other = (result.state, result.reason) != (was.state, was.reason)
    if is_other or problems:
        values["problems"] = problems
    if result.state != was.state:
        phase = team_settings(connection, settings, was.submitter_id).at(was.arrived)
        cost, charge = charge_of(phase, result.state, revision.outputs, baseline=was.baseline)
        values |= {"cost": cost, "charge": charge}
    change_submission(connection, revision.submission_id, **values)
    return is_other


# Places that differ between two states of a board


def places(connection: Connection, settings: BoardSettings, now: datetime) -> Places:
    """Return all places in all leaderboards, computed from the disclosed scores.

    The code of an entry is "" where its submitter has no other one.
    """
    ranks: dict[tuple[str, str, str, str], int | None] = {}
    for phase, in_phase in settings.by_phase.items():
        for test in in_phase.tests:
            table = leaderboard.standings_on(connection, settings, test.name, phase=phase, now=now)
            for entry in table.entries:
                code = "" if table.by == SUBMITTER and not entry.submission.baseline else entry.code
                ranks[test.name, phase, entry.submitter, code] = entry.place
    return ranks
