"""``geval board rescore``: score again what is outdated, and replace the stored scores in one transaction.

    outdated             the scores of an earlier challenge, answers, metrics, seed or geval-py
    score_again          outside of any transaction: new evaluations of the stored files, which nobody sees yet
    store_result         inside one transaction, for what is outdated still

The files come from the database. The last part finds the places that this moves.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import TypeAlias

from sqlalchemy import Connection, select

from geval_py.board.database import store as database
from geval_py.board.database.schema import (
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
from geval_py.board.intake.sources import Parcel, ReceivedFile, ReceivedOutput, numbered_path
from geval_py.board.operations import scheduler
from geval_py.board.operations.notices import tell_of_correction
from geval_py.board.operations.pipeline import current_evaluations, store_evaluations, store_result
from geval_py.board.operations.receipts import Receipt, change_submission, receipt_of
from geval_py.board.operations.scheduler import Progress
from geval_py.board.operations.teams import settings_by_team, team_settings
from geval_py.board.ranking import leaderboard
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.ranking.order import SUBMITTER
from geval_py.board.references import References, references_of
from geval_py.board.settings import BoardSettings
from geval_py.board.submission import Result, attributes
from geval_py.errors import FailedError, RejectedError
from geval_py.tables.numbers import exact
from geval_py.text import counted
from geval_py.version import __version__

NEW_METRIC = "it was not scored by this metric"
NEW_TEST = "it came before this test was scored"
OTHER_REFERENCE = "the challenge, its answers or the seed changed"
Places: TypeAlias = "Mapping[tuple[str, str, str, str], int | None]"  # by test, phase, submitter and code


@dataclass(frozen=True)
class Outdated:
    """A score to be replaced, and the reason."""

    submission_id: int
    code: str
    reason: str
    test: str
    metric: str


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
    """Score again what is outdated, and rank anew; with ``again``, also the outputs that were left out.

    With ``dry_run`` nothing changes but for stored evaluations that nobody sees. ``progress`` is called with the
    number of submissions done, and the number of all. An interrupt kills all children, as ``stop`` does; what was
    scored is not scored again. If the challenge changes meanwhile, all begins anew. Raises StoreError, FailedError if
    it was stopped, and the DataErrors of the challenge.
    """
    settings, references = board.settings, references_of(board.settings)
    with board.reading() as connection:
        old = outdated(connection, settings, references, again=again)
    waiting = sorted({one.submission_id for one in old}, reverse=True)
    total, results = len(waiting), dict[int, Result]()

    def store(ready: Sequence[tuple[int, Result]]) -> None:
        with board.writing() as connection:
            for _, result in ready:
                if result.parcel:
                    store_evaluations(connection, result.parcel, result.scored, references, now)
        for number, result in ready:
            results[number] = result
            if progress:
                progress(len(results), total)

    scheduler.run(
        lambda _: waiting.pop() if waiting else None,
        lambda number, place: (number, score_again(board, number, references, place)),
        store,
        stop=stop,
    )
    if len(results) < total:
        raise FailedError("it was stopped")
    if references_of(settings) != references:
        return rescore(board, now=now, dry_run=dry_run, again=again, progress=progress, stop=stop)
    with board.writing() as connection:
        refresh(connection, settings, now)
        before, old_scores = places(connection, settings, now), shown_scores(connection)
        left = outdated(connection, settings, references, again=again)  # another run may have replaced some meanwhile
        receipts = []
        for number in sorted({one.submission_id for one in left} & results.keys()):
            result = results[number]
            columns = pick(Submissions, "state reason problems")
            was = connection.execute(select(*columns).where(Submissions.id == number)).one()
            is_other = (result.state, result.reason) != (was.state, was.reason)
            problems = result.problems if is_other or result.problems else was.problems
            store_result(connection, number, result, references, now, problems=problems)
            if is_other:
                receipts.append(receipt_of(connection, number))
        refresh(connection, settings, now)
        after, new_scores = places(connection, settings, now), shown_scores(connection)
        changes = (PlaceChange(*key, before.get(key), after.get(key)) for key in dict.fromkeys((*after, *before)))
        moved = tuple(change for change in changes if change.before != change.after)
        other = {key for key in old_scores | new_scores if old_scores.get(key) != new_scores.get(key)}
        for number in {key[0] for key in other & old_scores.keys()}:
            change_submission(connection, number, corrected=now)
        told = {key[1] for key in other} | {change.submitter for change in moved}
        tell_of_correction(connection, board, told, ", and ".join(dict.fromkeys(one.reason for one in old)), now)
        pairs = ((old_scores.get(key), new_scores.get(key)) for key in other)
        corrected = tuple((was, score) for was, score in pairs if was is not None and score is not None)
        if dry_run:
            connection.rollback()
    return Rescored(outdated=tuple(old), scores=corrected, changes=moved, receipts=tuple(receipts))


def outdated(
    connection: Connection, settings: BoardSettings, references: References, *, again: bool = False
) -> list[Outdated]:
    """List the outdated scores of scored submissions.

    They were made with other references, or by another geval-py; or they are missing, of a metric, or of a test that
    was named later or ranks in their phase since. Outputs for such a test that were left out come ``again`` alone.
    """
    old, teams = [], settings_by_team(connection, settings)
    rows = connection.execute(
        select(*pick(Submissions, "id code arrived submitter_id reason"), Files.id.label("file_id"), Files.name)
        .add_columns(Outputs.test, Scores.metric, Evaluations.reference, Evaluations.version)
        .join_from(submissions, files)
        .outerjoin(outputs, Outputs.file_id == Files.id)
        .outerjoin(scores, Scores.output_id == Outputs.id)
        .outerjoin(evaluations, Evaluations.id == Scores.evaluation_id)
        .where(Submissions.state == SCORED)
        .order_by(Submissions.id, Files.id)
    )
    for _, of_file in groupby(rows, key=lambda row: row.file_id):
        scored = {row.metric: row for row in of_file}
        row = next(iter(scored.values()))
        test, missing = row.test, NEW_METRIC
        if test is None:
            test, missing = row.name.rpartition("/")[0], NEW_TEST
            is_left_out = left_out(test) in row.reason and not again
            if is_left_out or teams[row.submitter_id].at(row.arrived).test(test) is None:
                continue
        for metric in (metric for name, metric in references if name == test):
            score = scored.get(metric)
            if score is None:
                reason = missing
            elif score.reference != references[test, metric]:
                reason = OTHER_REFERENCE
            elif score.version != __version__:
                reason = f"geval-py {score.version} became {__version__}"
            else:
                continue
            old.append(Outdated(row.id, row.code, reason, test, metric))
    return old


def left_out(test: str) -> str:
    """Return how the reason begins why a submission has no score for a test that is newer."""
    return f"its outputs for {test} are left out: "


def shown_scores(connection: Connection) -> dict[tuple[int, str, int, str], float | None]:
    """Return the public scores by the submission, its submitter, the output and the metric."""
    keys = Submissions.id, Submitters.name, Disclosures.output_id, Disclosures.metric
    query = select(*keys, Disclosures.value).join_from(submitters, submissions).join(outputs).join(disclosures)
    return {(one, team, output, metric): value for one, team, output, metric, value in connection.execute(query)}


def score_again(board: Board, number: int, references: References, place: str) -> Result:
    """Check the outputs of a stored submission, and score those that have no evaluation with these references.

    They are those of the tests for which they were stored: a file's name may mean another test today. Files in the
    folder of a test that is newer than the submission are outputs for it, or all of its files if it has no outputs.
    If these cannot be scored beside earlier ones, they are left out, with the reason.
    """
    with board.reading() as connection:
        row = connection.execute(select(submissions).where(Submissions.id == number)).one()
        received = []
        query = select(files).where(Files.submission_id == number).order_by(Files.id)
        for position, file in enumerate(connection.execute(query)):
            path = numbered_path(place, position, file.name)
            database.write_content(connection, file.sha256, path)
            received.append(ReceivedFile(path=path, **attributes(file, "name sha256 bytes")))
        columns = Outputs.test, Files.name.label("file"), Outputs.variant, Outputs.params
        query = select(*columns).join(files, Files.id == Outputs.file_id).order_by(Outputs.id)
        rows = connection.execute(query.where(Outputs.submission_id == number)).mappings()
        stored = [ReceivedOutput(**one) for one in rows]
        evaluated = {(one.test, one.file, one.metric) for one in current_evaluations(connection, number, references)}
        settings = team_settings(connection, board.settings, row.submitter_id).at(row.arrived)
    parcel = Parcel(name=row.name, source=row.source, digest=row.digest, files=tuple(received))

    def score(chosen: Sequence[ReceivedOutput]) -> Result:
        with_outputs, wanted = replace(parcel, outputs=tuple(chosen)), []
        for output in chosen:
            metrics = [metric for test, metric in references if test == output.test]
            missing = [metric for metric in metrics if (output.test, output.file, metric) not in evaluated]
            wanted.append((output.test, output.file, missing))
        if row.state == SCORED and not any(missing for *_, missing in wanted):
            return Result(parcel=with_outputs)
        return process_parcel(with_outputs, place, board.settings, wanted)

    tests, with_output = [test.name for test in settings.tests], {output.file for output in stored}
    new = [file.name for file in received if file.name not in with_output]
    stored = [output for output in stored if (output.test, settings.metric) in references]
    try:
        result = score([*stored, *outputs_of(new, tests, settings.variants)])
    except RejectedError as error:
        result = Result(parcel=parcel, state=REJECTED, reason=error.reason)
    later = sorted({name.rpartition("/")[0] for name in new}.intersection(tests))
    if result.state == SCORED or not (stored and later):
        return result
    reason = "; ".join(left_out(test) + result.reason for test in later)
    known = score(stored)
    return replace(known, reason=known.reason or reason, problems=result.problems or known.problems)


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
