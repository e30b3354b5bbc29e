"""``geval board rescore``: score again what is outdated, and replace the stored scores in one transaction.

    outdated             the scores of an earlier challenge, answers, metrics, seed or geval-py
    score_again          outside of any transaction: new evaluations of the stored files, which nobody sees yet
    replace_scores       inside one transaction, for what is outdated still

The files come from the database. Replaced scores go into the history, each with the reason. The last part finds the
places that this moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, insert, select, update

from geval_py.board.database import schema
from geval_py.board.database import store as database
from geval_py.board.database.schema import (
    FAILED,
    REJECTED,
    SCORED,
    evaluations,
    files,
    history,
    outputs,
    scores,
    submissions,
)
from geval_py.board.database.store import Board, escape_unstorable
from geval_py.board.intake.receiving import outputs_of, test_by_folder
from geval_py.board.intake.sandbox import process_parcel
from geval_py.board.intake.sources import numbered_path
from geval_py.board.operations import scheduler
from geval_py.board.operations.pipeline import (
    Content,
    references_digest,
    store_evaluations,
    store_outputs,
    tried_with,
)
from geval_py.board.operations.receipts import Receipt, charge_of, receipt_of
from geval_py.board.operations.scheduler import Progress
from geval_py.board.ranking import leaderboard
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.references import References, references_of
from geval_py.board.settings import BoardSettings
from geval_py.board.submission import Details, Parcel, ReceivedFile, ReceivedOutput, RejectedError, Result
from geval_py.version import __version__

NEW_METRIC = "it was not scored by this metric"
NEW_TEST = "it came before this test was scored"
OTHER_REFERENCE = "the challenge, its answers or the seed changed"
TRIED_AGAIN = "it failed, and is tried again"
CHECKED_AGAIN = "it was rejected, and the challenge, its answers or geval-py changed"
Places: TypeAlias = "Mapping[leaderboard.EntryKey, int | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceChange:
    """A place in the table of a test and phase before and after; None for an entry that has none there."""

    test: str
    phase: str
    submitter: str
    entry: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
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
        tried = "" if again else tried_with(settings, references)
        with board.reading() as connection:
            old = outdated(connection, settings, references, tried)
        revisions = _score_all(board, old, references, now, progress)
        if references_of(settings) == references:
            break
    with board.writing() as connection:
        refresh(connection, settings, now)
        before = places(connection, settings, now)
        still_old = {
            number: list(group)
            for number, group in groupby(
                outdated(connection, settings, references, tried), key=lambda one: one.submission_id
            )
        }  # another run may have replaced some meanwhile
        receipts = [
            receipt_of(connection, revision.submission_id)
            for revision in revisions
            if revision.submission_id in still_old
            and replace_scores(connection, settings, revision, still_old[revision.submission_id], references, now)
        ]
        refresh(connection, settings, now)
        changes = changed_places(before, places(connection, settings, now))
        if dry_run:
            connection.rollback()
    return Rescored(outdated=tuple(old), changes=tuple(changes), receipts=tuple(receipts))


def outdated(
    connection: Connection, settings: BoardSettings, references: References, tried: str = ""
) -> list[Outdated]:
    """List the outdated scores by submission.

    They are scores that were made with other references, or by another geval-py; of scored submissions, files for
    tests that board.yaml named later, or ranks in their phase since; and submissions with files that were rejected
    with other references, or failed. What failed with what is ``tried`` is left out.
    """
    s, old = submissions.c, []
    by_output: dict[int, list[Any]] = {}
    for row in connection.execute(
        select(s.id, s.code, outputs.c.id.label("output_id"), outputs.c.test, scores.c.metric, scores.c.evaluation_id)
        .add_columns(evaluations.c.reference, evaluations.c.version)
        .join_from(submissions, outputs)
        .outerjoin(scores, scores.c.output_id == outputs.c.id)
        .outerjoin(evaluations, evaluations.c.id == scores.c.evaluation_id)
        .where(s.state == SCORED)
    ):
        by_output.setdefault(row.output_id, []).append(row)
    for rows in by_output.values():
        first, by_metric = rows[0], {row.metric: row for row in rows}
        for (test, metric), reference in references.items():
            if test != first.test:
                continue
            scored = by_metric.get(metric)
            if scored is None:
                reason = NEW_METRIC
            elif scored.reference != reference:
                reason = OTHER_REFERENCE
            elif scored.version != __version__:
                reason = f"geval-py {scored.version} became {__version__}"
            else:
                continue
            current = None if scored is None else scored.evaluation_id
            own = {"submission_id": first.id, "code": first.code, "output_id": first.output_id}
            old.append(Outdated(**own, reason=reason, test=test, metric=metric, evaluation_id=current))

    now = references_digest(settings, references)
    tests = {name: [test.name for test in phase.tests] for name, phase in settings.by_phase.items()}
    for row in connection.execute(
        select(s.id, s.code, s.arrived, files.c.name)
        .join_from(submissions, files)
        .outerjoin(outputs, outputs.c.file_id == files.c.id)
        .where(s.state == SCORED, outputs.c.id.is_(None), s.checked_with.not_in((now, tried)))
    ):
        new_test = test_by_folder(row.name, tests[settings.phase_of(row.arrived)])
        for test, metric in references:
            if test == new_test:
                old.append(Outdated(submission_id=row.id, code=row.code, reason=NEW_TEST, test=test, metric=metric))

    has_files = select(files.c.id).where(files.c.submission_id == s.id).exists()
    for state, checked_with, reason in ((FAILED, tried, TRIED_AGAIN), (REJECTED, now, CHECKED_AGAIN)):
        query = select(s.id, s.code).where(s.state == state, s.checked_with != checked_with, has_files)
        old += [Outdated(submission_id=row.id, code=row.code, reason=reason) for row in connection.execute(query)]
    return sorted(old, key=lambda one: (one.submission_id, one.output_id or 0))


# Submissions, scored again.


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A submission that is checked and scored again; ``parcel`` has its outputs, ``evaluations`` their ids.

    ``left_out`` has, by test, the results of outputs for tests that are newer than the submission, and cannot be
    scored: they do not affect the other outputs.
    """

    submission_id: int
    arrived: datetime
    parcel: Parcel
    result: Result = field(default_factory=Result)
    evaluations: Mapping[Content, int] = field(default_factory=dict)
    left_out: Mapping[str, Result] = field(default_factory=dict)
    scored: tuple[Result, ...] = ()


def _score_all(
    board: Board, old: Sequence[Outdated], references: References, now: datetime, progress: Progress | None
) -> list[Revision]:
    """Score outdated submissions, several at once, and store the evaluations; return them in order of their ids."""
    waiting = sorted({one.submission_id for one in old}, reverse=True)
    total, revisions = len(waiting), dict[int, Revision]()

    def take(_: Sequence[Revision]) -> Revision | None:
        return _stored(board, waiting.pop()) if waiting else None

    def prepare(revision: Revision, place: str, _: float | None) -> Revision:
        return score_again(board, revision, references, place)

    def store(ready: Sequence[Revision], seconds: float | None) -> None:
        with board.writing(seconds) as connection:
            for one in ready:
                ids = dict(one.evaluations)
                for result in one.scored:
                    if result.parcel is not None:
                        ids |= store_evaluations(connection, result.parcel, result.scored, references, now)
                revisions[one.submission_id] = replace(one, evaluations=ids, scored=())
        if progress is not None:
            for number in range(len(revisions) - len(ready), len(revisions)):
                progress(number + 1, total)

    scheduler.run(take, prepare, store)
    return [revisions[number] for number in sorted(revisions)]


def _stored(board: Board, number: int) -> Revision:
    """Read a stored submission, with its outputs as they were stored: a file's name may mean another test today."""
    with board.reading() as connection:
        row = connection.execute(select(submissions).where(submissions.c.id == number)).one()
        own_files = connection.execute(
            select(files).where(files.c.submission_id == number).order_by(files.c.id)
        ).all()
        query = select(outputs, files.c.name.label("file")).join(files, files.c.id == outputs.c.file_id)
        own_outputs = connection.execute(query.where(outputs.c.submission_id == number).order_by(outputs.c.id)).all()
    parcel = Parcel(
        name=row.name,
        source=row.source,
        digest=row.digest,
        files=tuple(ReceivedFile(name=one.name, path="", sha256=one.sha256, bytes=one.bytes) for one in own_files),
        outputs=tuple(
            ReceivedOutput(test=one.test, file=one.file, variant=one.variant, params=dict(one.params))
            for one in own_outputs
        ),
        details=Details(),
    )
    return Revision(submission_id=number, arrived=row.arrived, parcel=parcel)


def score_again(board: Board, revision: Revision, references: References, place: str) -> Revision:
    """Check the outputs of a submission, and score the contents that have no evaluation with these references.

    Outputs for tests that are newer than the submission are checked and scored apart, a test at a time.
    """
    settings, stored = board.settings.at(revision.arrived), revision.parcel.outputs
    paths = (numbered_path(place, number, file.name) for number, file in enumerate(revision.parcel.files))
    own_files = tuple(replace(file, path=path) for file, path in zip(revision.parcel.files, paths, strict=True))
    parcel = replace(revision.parcel, files=own_files)
    digests = {file.name: file for file in own_files}
    known: dict[Content, int] = {}

    def score(own: tuple[ReceivedOutput, ...]) -> Result:
        part = replace(parcel, outputs=own)
        with board.reading() as connection:
            known.update(known_evaluations(connection, part, references))
            wanted = []
            for output in own:
                metrics = [metric for test, metric in references if test == output.test]
                content = output.test, digests[output.file].sha256
                missing = tuple(metric for metric in metrics if (*content, metric) not in known)
                wanted += [(output.test, output.file, missing)] if missing else []
            if not wanted:
                return Result(parcel=part)
            for name in {output.file for output in own}:
                database.write_content(connection, digests[name].sha256, digests[name].path)
        return process_parcel(part, place, settings, wanted)

    def score_files(own: Sequence[ReceivedFile], tests: Sequence[str]) -> Result:
        try:
            return score(outputs_of(own, tests, settings.variants))
        except RejectedError as error:  # two files may be one variant, now that the tests are others
            return Result(parcel=parcel, state=REJECTED, reason=error.reason)

    tests = [test.name for test in settings.tests]
    scored_tests = {test for test, _ in references}
    if stored:
        result = score(tuple(output for output in stored if output.test in scored_tests))
    else:
        result = score_files(own_files, tests)
    results, left_out, problems = [result], {}, list(result.problems)
    if stored and result.state == SCORED:
        with_output = {output.file for output in stored}
        left = [file for file in own_files if file.name not in with_output and "/" in file.name]
        for test in tests:
            if any(test_by_folder(file.name, tests) == test for file in left):
                of_test = score_files(left, [test])
                problems += of_test.problems
                if of_test.state == SCORED:
                    results.append(of_test)
                else:
                    left_out[test] = of_test
    own_outputs = tuple(output for one in results if one.parcel for output in one.parcel.outputs)
    return replace(
        revision,
        parcel=replace(parcel, outputs=own_outputs),
        result=replace(result, problems=tuple(problems)),
        evaluations=known,
        left_out=left_out,
        scored=tuple(results),
    )


def known_evaluations(connection: Connection, parcel: Parcel, references: References) -> dict[Content, int]:
    """Return the stored evaluations, by this version and with these references, of the parcel's contents.

    They include evaluations that no output has yet: after an interruption, or a dry run.
    """
    scored = evaluations.alias()  # by which the content of a file is known, unpacked
    query = (
        select(files.c.sha256, evaluations.c.test, evaluations.c.metric, evaluations.c.reference, evaluations.c.id)
        .join_from(files, outputs, outputs.c.file_id == files.c.id)
        .join(scores, scores.c.output_id == outputs.c.id)
        .join(scored, scored.c.id == scores.c.evaluation_id)
        .join(
            evaluations,
            (evaluations.c.output_sha256 == scored.c.output_sha256) & (evaluations.c.test == outputs.c.test),
        )
        .where(files.c.sha256.in_({file.sha256 for file in parcel.files}), evaluations.c.version == __version__)
    )
    return {
        (test, digest, metric): number
        for digest, test, metric, reference, number in connection.execute(query)
        if references.get((test, metric)) == reference
    }


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
    own, result = submissions.c.id == revision.submission_id, revision.result
    was = connection.execute(select(submissions).where(own)).one()
    if result.state == SCORED and revision.left_out:
        if revision.parcel.outputs:
            reasons = (
                f"its outputs for {test} are left out: {one.reason}" for test, one in revision.left_out.items()
            )
            result = replace(result, reason="; ".join(reasons))
        else:
            result = next(iter(revision.left_out.values()))
    query = select(scores.c.output_id, scores.c.metric, scores.c.evaluation_id).join(outputs)
    rows = connection.execute(query.where(outputs.c.submission_id == revision.submission_id))
    current = {(row.output_id, row.metric): row.evaluation_id for row in rows}
    reasons_by_key = {(one.output_id, one.metric): one.reason for one in old}
    new: dict[tuple[int, str], int] = {}
    if result.state == SCORED:
        contents = store_outputs(connection, revision.submission_id, revision.parcel, references)
        new = {key: revision.evaluations[content] for key, content in contents.items()}
        replaced = {key: number for key, number in current.items() if new.get(key, number) != number}
    else:
        replaced = current
        own_outputs = select(outputs.c.id).where(outputs.c.submission_id == revision.submission_id)
        connection.execute(delete(schema.disclosures).where(schema.disclosures.c.output_id.in_(own_outputs)))
    moment = now.astimezone(UTC)
    for (output_id, metric), evaluation_id in replaced.items():
        reason = escape_unstorable(reasons_by_key.get((output_id, metric), result.reason))
        key = {"output_id": output_id, "metric": metric}
        connection.execute(insert(history).values(**key, evaluation_id=evaluation_id, replaced=moment, reason=reason))
        connection.execute(delete(scores).where(scores.c.output_id == output_id, scores.c.metric == metric))
    for (output_id, metric), evaluation_id in new.items():
        if current.get((output_id, metric)) != evaluation_id:
            values = {"output_id": output_id, "metric": metric, "evaluation_id": evaluation_id}
            connection.execute(insert(scores).values(values))
    has_failed = FAILED in (result.state, *(one.state for one in revision.left_out.values()))
    checked_with = tried_with(settings, references) if has_failed else references_digest(settings, references)
    values = {"state": result.state, "reason": escape_unstorable(result.reason), "scorer": __version__}
    values |= {"checked_with": checked_with}
    is_other = (result.state, result.reason) != (was.state, was.reason)
    if is_other or revision.result.problems:
        values |= {"problems": escape_unstorable(list(revision.result.problems))}
    if result.state != was.state:
        phase = settings.at(revision.arrived)
        cost, charge = charge_of(phase, result.state, revision.parcel.outputs, baseline=was.baseline)
        values |= {"charged": cost > 0, "cost": cost, "charge": charge}
    connection.execute(update(submissions).where(own).values(values))
    return is_other


# Places that differ between two states of a board


def places(connection: Connection, settings: BoardSettings, now: datetime) -> Places:
    """Return all places in all leaderboards, computed from the disclosed scores."""
    ranks: dict[leaderboard.EntryKey, int | None] = {}
    for phase, in_phase in settings.by_phase.items():
        for test in in_phase.tests:
            table = leaderboard.standings_on(connection, settings, test.name, phase=phase, now=now)
            ranks |= {leaderboard.entry_key(table, entry): entry.place for entry in table.entries}
    return ranks


def changed_places(before: Places, after: Places) -> Iterator[PlaceChange]:
    """Yield the places that differ, in the order of the tables after the change."""
    for key in dict.fromkeys((*after, *before)):
        old, new = before.get(key), after.get(key)
        if old != new:
            test, phase, submitter, entry = key
            yield PlaceChange(test=test, phase=phase, submitter=submitter, entry=entry, before=old, after=new)
