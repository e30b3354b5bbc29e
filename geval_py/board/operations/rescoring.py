"""``geval board rescore``: score again what is outdated, and replace the stored scores in one transaction.

    outdated             the scores of an earlier challenge, answers, metrics, seed or geval-py
    score_again          outside of any transaction: new evaluations of the stored files, which nobody sees yet
    replace_scores       inside one transaction, for what is outdated still

The files come from the database. The last part finds the places that this moves.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, delete, select

from geval_py.board.database import store as database
from geval_py.board.database.schema import (
    FAILED,
    REJECTED,
    SCORED,
    Disclosures,
    Evaluations,
    Files,
    Outputs,
    Scores,
    Submissions,
    Submitters,
    disclosures,
    evaluations,
    files,
    outputs,
    pick,
    scores,
    submissions,
    submitters,
)
from geval_py.board.database.store import Board
from geval_py.board.intake.receiving import outputs_of
from geval_py.board.intake.sandbox import process_parcel
from geval_py.board.intake.sources import numbered_path
from geval_py.board.operations import scheduler
from geval_py.board.operations.notices import tell_of_correction
from geval_py.board.operations.pipeline import current_evaluations, store_evaluations, store_result
from geval_py.board.operations.receipts import Receipt, change_submission, charge_of, receipt_of
from geval_py.board.operations.scheduler import Progress
from geval_py.board.operations.teams import settings_by_team, team_settings
from geval_py.board.ranking import leaderboard
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.ranking.order import SUBMITTER
from geval_py.board.references import References, references_of
from geval_py.board.settings import BoardSettings
from geval_py.board.submission import FailedError, Parcel, ReceivedFile, ReceivedOutput, RejectedError, Result
from geval_py.tables.numbers import counted, exact
from geval_py.version import __version__

NEW_METRIC = "it was not scored by this metric"
NEW_TEST = "it came before this test was scored"
OTHER_REFERENCE = "the challenge, its answers or the seed changed"
TRIED_AGAIN = {FAILED: "it failed, and is tried again", REJECTED: "it was rejected, and is checked again"}
Places: TypeAlias = "Mapping[tuple[str, str, str, str], int | None]"  # by test, phase, submitter and code


@dataclass(frozen=True)
class Outdated:
    """A score to be replaced, and the reason.

    ``test`` and ``metric`` are "" if the submission has no scores, and is to be checked again.
    """

    submission_id: int
    code: str
    reason: str
    test: str = ""
    metric: str = ""


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
    """The outdated scores, the changes of places, and the receipts of submissions whose state changed (or would).

    ``scores`` are those that were shown and have changed, before and after.
    """

    outdated: tuple[Outdated, ...]
    scores: tuple[tuple[float, float], ...]
    changes: tuple[PlaceChange, ...]
    receipts: tuple[Receipt, ...]

    def lines(self, *, dry_run: bool) -> Iterator[str]:
        """Yield sentences about it for a terminal."""
        scored, is_now, went, changed = (
            ("to be scored", "would be", "would go", "would change")
            if dry_run
            else ("scored", "is now", "went", "changed")
        )
        if not self.outdated:
            yield "nothing is out of date"
        for reason, count in Counter(one.reason for one in self.outdated).items():
            yield f"{scored} again: {count}, because {reason}"
        for receipt in self.receipts:
            why = f": {receipt.reason}" if receipt.reason else ""
            yield f"{receipt.submitter} {receipt.code} {is_now} {receipt.state}{why}"
        for change in self.changes:
            where = change.test + (f", {change.phase}" if change.phase else "")
            who = change.submitter + (f" {change.entry}" if change.entry else "")
            yield f"{where}: {who} {went} from {change.before or 'no place'} to {change.after or 'no place'}"
        if self.scores:
            before, after = max(self.scores, key=lambda score: abs(score[1] - score[0]))
            yield f"{counted(len(self.scores), 'score')} {changed}, the most from {exact(before)} to {exact(after)}"
        if self.outdated and not self.changes:
            yield f"no place {changed}"


def rescore(
    board: Board,
    *,
    now: datetime,
    dry_run: bool = False,
    again: bool = False,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Rescored:
    """Score again what is outdated, and rank anew; with ``again``, also check what was rejected, and try what failed.

    With ``dry_run`` nothing changes but for stored evaluations that nobody sees. ``progress`` is called with the
    number of submissions done, and the number of all. An interrupt kills all children, as ``stop`` does; what was
    scored is not scored again. If the challenge changes meanwhile, all begins anew. Raises StoreError, FailedError if
    it was stopped, and the DataErrors of the challenge.
    """
    settings = board.settings
    while True:
        references = references_of(settings)
        with board.reading() as connection:
            old = outdated(connection, settings, references, again=again)
        waiting = sorted({one.submission_id for one in old}, reverse=True)
        results = _score_all(board, waiting, references, now, progress, stop)
        if references_of(settings) == references:
            break
    with board.writing() as connection:
        refresh(connection, settings, now)
        before, old_scores = places(connection, settings, now), shown_scores(connection)
        left = outdated(connection, settings, references, again=again)  # another run may have replaced some meanwhile
        numbers = sorted({one.submission_id for one in left} & results.keys())
        changed = [
            number
            for number in numbers
            if replace_scores(connection, settings, number, results[number], references, now)
        ]
        receipts = [receipt_of(connection, number) for number in changed]
        refresh(connection, settings, now)
        after, new_scores = places(connection, settings, now), shown_scores(connection)
        changes = (PlaceChange(*key, before.get(key), after.get(key)) for key in dict.fromkeys((*after, *before)))
        moved = tuple(one for one in changes if one.before != one.after)
        for number in {key[0] for key, score in old_scores.items() if new_scores.get(key) != score}:
            change_submission(connection, number, corrected=now)
        told = {one.submitter for one in moved}
        told.update(team for (_, team, *_), _ in old_scores.items() ^ new_scores.items())
        tell_of_correction(connection, board, told, ", and ".join(dict.fromkeys(one.reason for one in old)), now)
        pairs = ((score, new_scores.get(key)) for key, score in old_scores.items())
        corrected = tuple((was, score) for was, score in pairs if was is not None and score not in (None, was))
        if dry_run:
            connection.rollback()
    return Rescored(outdated=tuple(old), scores=corrected, changes=moved, receipts=tuple(receipts))


def outdated(
    connection: Connection, settings: BoardSettings, references: References, *, again: bool = False
) -> list[Outdated]:
    """List the outdated scores by submission.

    They are scores that were made with other references, or by another geval-py; and of scored submissions, files for
    tests that board.yaml named later, or ranks in their phase since. What was left out of these is tried ``again``
    alone, as are submissions with files that were rejected or failed.
    """
    old = []
    first: dict[int, Row[Any]] = {}
    scored: dict[tuple[int, str], Row[Any]] = {}
    for row in connection.execute(
        select(*pick(Submissions, "id code"), Outputs.id.label("output_id"), Outputs.test, Scores.metric)
        .add_columns(Evaluations.reference, Evaluations.version)
        .join_from(submissions, outputs)
        .outerjoin(scores, Scores.output_id == Outputs.id)
        .outerjoin(evaluations, Evaluations.id == Scores.evaluation_id)
        .where(Submissions.state == SCORED)
        .order_by(Submissions.id, Outputs.id)
    ):
        first.setdefault(row.output_id, row)
        scored[row.output_id, row.metric] = row
    for output_id, row in first.items():
        for (test, metric), reference in references.items():
            current = scored.get((output_id, metric))
            if test != row.test or (current and (current.reference, current.version) == (reference, __version__)):
                continue
            reason = NEW_METRIC
            if current is not None:
                is_other = current.reference != reference
                reason = OTHER_REFERENCE if is_other else f"geval-py {current.version} became {__version__}"
            old.append(Outdated(row.id, row.code, reason, test, metric))

    tests = {name: [test.name for test in phase.tests] for name, phase in settings.by_phase.items()}
    teams = settings_by_team(connection, settings)
    for row in connection.execute(
        select(*pick(Submissions, "id code arrived submitter_id reason"), Files.name)
        .join_from(submissions, files)
        .outerjoin(outputs, Outputs.file_id == Files.id)
        .where(Submissions.state == SCORED, Outputs.id.is_(None))
    ):
        new_test = row.name.rpartition("/")[0]
        is_ranked = new_test in tests[teams[row.submitter_id].phase_of(row.arrived)]
        if is_ranked and (again or left_out(new_test) not in row.reason):
            old += [Outdated(row.id, row.code, NEW_TEST, *key) for key in references if key[0] == new_test]

    if again:
        has_files = select(Files.id).where(Files.submission_id == Submissions.id).exists()
        for state, reason in TRIED_AGAIN.items():
            query = select(Submissions.id, Submissions.code).where(Submissions.state == state, has_files)
            old += [Outdated(row.id, row.code, reason) for row in connection.execute(query)]
    return sorted(old, key=lambda one: one.submission_id)


def left_out(test: str) -> str:
    """Return how the reason begins why a submission has no score for a test that is newer."""
    return f"its outputs for {test} are left out: "


def shown_scores(connection: Connection) -> dict[tuple[int, str, int, str], float | None]:
    """Return the public scores by the submission, its submitter, the output and the metric."""
    keys = Submissions.id, Submitters.name, Disclosures.output_id, Disclosures.metric
    query = select(*keys, Disclosures.value).join_from(submitters, submissions).join(outputs).join(disclosures)
    return {(one, team, output, metric): value for one, team, output, metric, value in connection.execute(query)}


# Submissions, scored again.


def _score_all(
    board: Board,
    waiting: list[int],
    references: References,
    now: datetime,
    progress: Progress | None,
    stop: threading.Event | None,
) -> dict[int, Result]:
    """Score submissions, several at once, and store the evaluations; return the results by their ids."""
    total, results = len(waiting), dict[int, Result]()

    def score(job: tuple[int, Result], place: str) -> tuple[int, Result]:
        return job[0], score_again(board, job[0], references, place)

    def store(ready: Sequence[tuple[int, Result]]) -> None:
        with board.writing() as connection:
            for _, result in ready:
                if result.parcel is not None:
                    store_evaluations(connection, result.parcel, result.scored, references, now)
        for number, result in ready:
            results[number] = result
            if progress is not None:
                progress(len(results), total)

    if scheduler.run(lambda _: (waiting.pop(), Result()) if waiting else None, score, store, stop=stop) or waiting:
        raise FailedError("it was stopped")
    return results


def score_again(board: Board, number: int, references: References, place: str) -> Result:
    """Check the outputs of a stored submission, and score those that have no evaluation with these references.

    They are those of the tests for which they were stored: a file's name may mean another test today. Outputs for
    tests that are newer than the submission are checked and scored apart, a test at a time: what cannot be scored of
    them is left out, with the reason, and does not affect the other outputs.
    """
    with board.reading() as connection:
        row = connection.execute(select(submissions).where(Submissions.id == number)).one()
        query = select(files).where(Files.submission_id == number).order_by(Files.id)
        received = tuple(
            ReceivedFile(name=one.name, path=numbered_path(place, n, one.name), sha256=one.sha256, bytes=one.bytes)
            for n, one in enumerate(connection.execute(query))
        )
        columns = Outputs.test, Files.name.label("file"), Outputs.variant, Outputs.params
        query = select(*columns).join(files, Files.id == Outputs.file_id).order_by(Outputs.id)
        rows = connection.execute(query.where(Outputs.submission_id == number)).mappings()
        stored = [ReceivedOutput(**one) for one in rows]
        evaluated = {(one.test, one.file, one.metric) for one in current_evaluations(connection, number, references)}
        settings = team_settings(connection, board.settings, row.submitter_id).at(row.arrived)
    parcel = Parcel(name=row.name, source=row.source, digest=row.digest, files=received)
    written: set[str] = set()

    def score(chosen: Sequence[ReceivedOutput]) -> Result:
        wanted = []
        for output in chosen:
            metrics = [metric for test, metric in references if test == output.test]
            missing = [metric for metric in metrics if (output.test, output.file, metric) not in evaluated]
            wanted.append((output.test, output.file, missing))
        names = {output.file for output in chosen} - written
        if not any(missing for *_, missing in wanted):
            return Result()
        with board.reading() as connection:
            for file in received:
                if file.name in names:
                    database.write_content(connection, file.sha256, file.path)
        written.update(names)
        return process_parcel(parcel, place, board.settings, wanted)

    tests, scored_tests = [test.name for test in settings.tests], {test for test, _ in references}
    try:
        known = [output for output in stored if output.test in scored_tests]
        outputs = known if stored else outputs_of(received, tests, settings.variants)
        result = score(outputs)
    except RejectedError as error:  # two files may be one variant, now that the tests are others
        return Result(parcel=parcel, state=REJECTED, reason=error.reason)
    result = replace(result, parcel=replace(parcel, outputs=tuple(outputs)))
    with_output = {output.file for output in stored}
    for test in tests if stored and result.state == SCORED else ():
        new = [file for file in received if file.name not in with_output and file.name.startswith(f"{test}/")]
        try:
            later = score(chosen := outputs_of(new, [test], settings.variants))
        except RejectedError as error:
            later, chosen = Result(state=REJECTED, reason=error.reason), ()
        if later.state == SCORED:
            all_outputs = (*result.parcel.outputs, *chosen) if result.parcel else ()
            result = replace(
                result, parcel=replace(parcel, outputs=all_outputs), scored=(*result.scored, *later.scored)
            )
        else:
            reason = "; ".join(filter(None, (result.reason, left_out(test) + later.reason)))
            result = replace(result, reason=reason)
        result = replace(result, problems=(*result.problems, *later.problems))
    return result


def replace_scores(
    connection: Connection,
    settings: BoardSettings,
    number: int,
    result: Result,
    references: References,
    now: datetime,
) -> bool:
    """Replace the scores of a submission by those of a result; return whether its state or the reason changed.

    If it is rejected or failed now, all of its scores are taken away.
    """
    was = connection.execute(select(submissions).where(Submissions.id == number)).one()
    if result.state == SCORED:
        store_result(connection, number, result, references, now)
    else:
        own = select(Outputs.id).where(Outputs.submission_id == number)
        connection.execute(delete(scores).where(Scores.output_id.in_(own)))
    values: dict[str, Any] = {"state": result.state, "reason": result.reason, "scorer": __version__}
    is_other = (result.state, result.reason) != (was.state, was.reason)
    if is_other or result.problems:
        values["problems"] = result.problems
    if result.state != was.state:
        phase = team_settings(connection, settings, was.submitter_id).at(was.arrived)
        outputs = result.parcel.outputs if result.parcel else ()
        cost, charge = charge_of(phase, result.state, outputs, baseline=was.baseline)
        values |= {"cost": cost, "charge": charge, "corrected": now}
    change_submission(connection, number, **values)
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
