"""``geval board rescore``: score again what is outdated, and replace the stored scores in one transaction.

The files come from the database; the pipeline checks and scores them. Replaced scores go into the history, each with
the reason. The last part finds the places that this moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, delete, insert, select, update

from geval_py.board.database import schema
from geval_py.board.database.schema import FAILED, SCORED, files, history, outputs, scores, submissions
from geval_py.board.database.store import Board, escape_unstorable
from geval_py.board.intake.receiving import outputs_of, test_by_folder
from geval_py.board.intake.sandbox import Scorer, end_children, scorer_on
from geval_py.board.intake.sources import numbered_path
from geval_py.board.intake.workspace import workspace
from geval_py.board.operations import pipeline, storing
from geval_py.board.operations.receipts import Receipt, charge_of, receipt_of
from geval_py.board.operations.status import Outdated, outdated, tests_in
from geval_py.board.ranking import leaderboard
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.references import References, references_of
from geval_py.board.settings import Settings
from geval_py.board.submission import Details, Parcel, ReceivedFile, ReceivedOutput, RejectedError
from geval_py.errors import ClusterError
from geval_py.scoring.blocks import Threads
from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.scoring.blocks import Workers


MOST_AT_ONCE = 32  # submissions whose files are unpacked, each with a connection to the database
NOT_SCORED = "not all of its outputs could be scored again"
Places: TypeAlias = "Mapping[leaderboard.EntryKey, int | None]"
Key: TypeAlias = tuple[int, str]  # an output and a metric
Progress: TypeAlias = "Callable[[int, int], None]"


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
    workers: Workers | None = None,
) -> Rescored:
    """Score again what is outdated, keep the old scores in the history with the reason, and rank anew.

    Rejected submissions are checked again if the challenge, answers or version changed; failed ones are tried again
    then, if the limits changed, or with ``again``. With ``dry_run`` nothing changes but for stored evaluations that
    nobody sees. ``progress`` is called with the number of submissions done, and the number of all. ``workers`` of a
    cluster check and score on their machines. An interrupt kills all children; what was scored is not scored again.
    Raises StoreError, the DataErrors of the challenge, and ClusterError.
    """
    references = references_of(board.settings)
    with board.reading() as connection:
        tried = "" if again else pipeline.tried_with(board.settings, references)
        found = outdated(connection, board.settings, references, tried)
    revisions = list(_revisions(board, found, references, now, progress, workers or Threads()))
    with board.writing() as connection:
        refresh(connection, board.settings, now)
        before = places(connection, board.settings, now)
        numbers = [number for one in revisions for number in replace_scores(connection, one, references, now)]
        refresh(connection, board.settings, now)
        changes = changed_places(before, places(connection, board.settings, now))
        receipts = tuple(receipt_of(connection, number) for number in numbers)
        if dry_run:
            connection.rollback()
    return Rescored(outdated=tuple(found), changes=tuple(changes), receipts=receipts)


def _revisions(
    board: Board,
    found: Sequence[Outdated],
    references: References,
    now: datetime,
    progress: Progress | None,
    workers: Workers,
) -> Iterator[Revision]:
    """Score outdated submissions, several at once; yield them in the order of their arrival."""
    scorer = None if workers.is_local else scorer_on(workers, references)
    groups = [tuple(group) for _, group in groupby(found, key=lambda one: one.submission_id)]
    threads = ThreadPoolExecutor(min(workers.concurrency, MOST_AT_ONCE))
    with workspace() as places:
        futures = [threads.submit(score_again, board, group, references, now, scorer, places) for group in groups]
        try:
            for number, future in enumerate(as_completed(futures), 1):
                if isinstance(future.exception(), ClusterError):
                    future.result()  # the others would fail as well
                if progress is not None:
                    progress(number, len(groups))
            yield from (future.result() for future in futures)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            end_children(places, futures)


# One submission, scored again.


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision(pipeline.Outcome):
    """A submission that was checked and scored again, with the settings of the phase in which it arrived.

    ``tried`` is the digest of what a failure depends on. ``left_out`` has, by test, the revisions of outputs for
    tests that are newer than the submission, and cannot be scored: they do not affect the other outputs.
    """

    submission_id: int
    settings: Settings
    outdated: tuple[Outdated, ...]
    parcel: Parcel
    tried: str
    left_out: Mapping[str, Revision] = field(default_factory=dict)

    def with_new_test(self, test: str, revision: Revision) -> Revision:
        """Add the revision of the outputs for a test that is newer than the submission."""
        problems = (*self.problems, *revision.problems)
        if revision.state != SCORED:
            return replace(self, problems=problems, left_out={**self.left_out, test: revision})
        parcel = replace(self.parcel, outputs=(*self.parcel.outputs, *revision.parcel.outputs))
        evaluations = {**self.evaluations, **revision.evaluations}
        return replace(self, problems=problems, parcel=parcel, evaluations=evaluations)


def score_again(
    board: Board,
    found: Sequence[Outdated],
    references: References,
    now: datetime,
    scorer: Scorer | None = None,
    places: str | None = None,
) -> Revision:
    """Score what is outdated of one submission, and store the new evaluations.

    Its outputs stay as they were stored, since a file's name may mean another test today. Outputs for new tests are
    checked and scored apart, a test at a time. Their place is in the folder ``places``.
    """
    number, scored_tests = found[0].submission_id, tests_in(references)
    with TemporaryDirectory(dir=places) as place:
        with board.reading() as connection:
            arrived = connection.execute(select(submissions.c.arrived).where(submissions.c.id == number)).scalar_one()
            settings = board.settings.at(arrived)
            parcel = _stored_parcel(connection, number, place)
            stored = tuple(_stored_outputs(connection, number))
        tests = [test for test in scored_tests if settings.test(test) is not None]
        unscored = Revision(
            submission_id=number,
            settings=settings,
            outdated=tuple(found),
            parcel=parcel,
            tried=pipeline.tried_with(board.settings, references),
        )

        def score(outputs: tuple[ReceivedOutput, ...]) -> Revision:
            parcel = replace(unscored.parcel, outputs=outputs)
            scored = pipeline.check_and_score(
                board, unscored, parcel, place, references, scorer=scorer, from_database=True
            )
            if scored.state != SCORED:
                return scored
            with board.writing() as connection:
                evaluations = storing.store_evaluations(connection, scored, references, now)
            return replace(scored, parcel=parcel, evaluations=evaluations, scored={})

        def score_found(files: Sequence[ReceivedFile], tests: Sequence[str]) -> Revision:
            try:
                outputs = outputs_of(files, tests, settings.variants)
            except RejectedError as error:  # two files may be one variant, now that the tests are others
                return pipeline.after_error(unscored, error)
            return score(outputs)

        if not stored:
            return score_found(parcel.files, tests)
        revision = score(tuple(output for output in stored if output.test in scored_tests))
        known = {output.file for output in stored}
        left = [file for file in parcel.files if file.name not in known and "/" in file.name]
        new_tests = {test_by_folder(file.name, tests) for file in left}
        for test in tests if revision.state == SCORED else ():
            if test in new_tests:
                revision = revision.with_new_test(test, score_found(left, [test]))
        return revision


def _stored_parcel(connection: Connection, number: int, place: str) -> Parcel:
    """Read a stored submission as a parcel without outputs, with paths in a place for its files."""
    row = connection.execute(select(submissions).where(submissions.c.id == number)).one()
    stored = connection.execute(select(files).where(files.c.submission_id == number).order_by(files.c.id)).all()
    received = tuple(
        ReceivedFile(name=file.name, path=numbered_path(place, n, file.name), sha256=file.sha256, bytes=file.bytes)
        for n, file in enumerate(stored)
    )
    return Parcel(name=row.name, source=row.source, digest=row.digest, files=received, outputs=(), details=Details())


def _stored_outputs(connection: Connection, number: int) -> Iterator[ReceivedOutput]:
    query = select(outputs, files.c.name.label("file")).join(files, files.c.id == outputs.c.file_id)
    for row in connection.execute(query.where(outputs.c.submission_id == number).order_by(outputs.c.id)):
        params = {str(name): str(value) for name, value in row.params.items()}
        yield ReceivedOutput(test=row.test, file=row.file, variant=row.variant, params=params)


# The scores of one submission, replaced.


def replace_scores(
    connection: Connection, revision: Revision, references: References, now: datetime
) -> Iterator[int]:
    """Replace a submission's stored scores; yield its id if its state changed.

    A submission fails if it lacks a score that it should have, so no old score stands beside new ones. But if only
    outputs for new tests are at fault, its other scores stay, as do scores that another run has replaced meanwhile.
    """
    was = connection.execute(select(submissions).where(submissions.c.id == revision.submission_id)).one()
    old = {(one.output_id, one.metric): one for one in revision.outdated if one.output_id is not None}
    current = _current_evaluations(connection, revision.submission_id)
    revision = _with_left_out(revision)
    if not _is_still_outdated(connection, was.state, revision, old, current):
        return
    new: dict[Key, int | None] = {}
    if revision.state == SCORED:
        of = storing.store_outputs(connection, revision.submission_id, revision.parcel, references)
        new = {key: revision.evaluations.get(content) for key, content in of.items()}
        if not new or None in new.values() or old.keys() - new.keys():
            revision = replace(revision, state=FAILED, reason=NOT_SCORED)
            if not _is_still_outdated(connection, was.state, revision, old, current):
                return
    for key, one in old.items():
        if one.evaluation_id is not None and current.get(key) == one.evaluation_id:
            _store_history(connection, key, one.evaluation_id, one.reason, now)
    if revision.state == SCORED:
        for key, evaluation_id in new.items():
            if current.get(key) == (old[key].evaluation_id if key in old else None):
                output_id, metric = key
                is_this = (scores.c.output_id == output_id) & (scores.c.metric == metric)
                connection.execute(delete(scores).where(is_this))
                row = {"output_id": output_id, "metric": metric, "evaluation_id": evaluation_id}
                connection.execute(insert(scores).values(row))
    else:
        for key in current.keys() - old.keys():
            _store_history(connection, key, current[key], revision.reason, now)
        of_submission = select(outputs.c.id).where(outputs.c.submission_id == revision.submission_id)
        for table in (schema.disclosures, scores):
            connection.execute(delete(table).where(table.c.output_id.in_(of_submission)))
    _store_state(connection, revision, was)
    has_failed = FAILED in (revision.state, *(one.state for one in revision.left_out.values()))
    checked_with = revision.tried if has_failed else pipeline.references_digest(revision.settings, references)
    own = submissions.c.id == revision.submission_id
    connection.execute(update(submissions).where(own).values(checked_with=checked_with))
    if (revision.state, revision.reason) != (was.state, was.reason):
        yield revision.submission_id


def _with_left_out(revision: Revision) -> Revision:
    """Add to the reason which outputs are left out; if there are no others, the submission has their state."""
    if revision.state != SCORED or not revision.left_out:
        return revision
    if not revision.parcel.outputs:
        first, *_ = revision.left_out.values()
        return replace(revision, state=first.state, reason=first.reason, left_out={})
    reasons = (f"its outputs for {test} are left out: {one.reason}" for test, one in revision.left_out.items())
    return replace(revision, reason="; ".join(reasons))


def _store_state(connection: Connection, revision: Revision, was: Row[Any]) -> None:
    cost, charge = charge_of(revision.settings, revision.state, revision.parcel.outputs, baseline=was.baseline)
    values = {"state": revision.state, "reason": escape_unstorable(revision.reason), "scorer": __version__}
    if revision.problems or (revision.state, revision.reason) != (was.state, was.reason):
        values |= {"problems": escape_unstorable(list(revision.problems))}
    if revision.state != was.state:
        values |= {"charged": cost > 0, "cost": cost, "charge": charge}
    connection.execute(update(submissions).where(submissions.c.id == revision.submission_id).values(values))


def _current_evaluations(connection: Connection, submission_id: int) -> dict[Key, int]:
    query = select(scores.c.output_id, scores.c.metric, scores.c.evaluation_id).join(outputs)
    rows = connection.execute(query.where(outputs.c.submission_id == submission_id))
    return {(row.output_id, row.metric): row.evaluation_id for row in rows}


def _is_still_outdated(
    connection: Connection,
    state: str,
    revision: Revision,
    old: Mapping[Key, Outdated],
    current: Mapping[Key, int],
) -> bool:
    """Whether some outdated score was not replaced by another run meanwhile.

    A new test is still new as long as none of its outputs has a score. A revision that is not scored may replace
    outdated scores only.
    """
    new_tests = {one.test for one in revision.outdated if one.output_id is None and one.test}
    if not old and not new_tests:
        return state != SCORED
    still_old = any(current.get(key) == one.evaluation_id for key, one in old.items())
    query = select(outputs.c.test).join(scores).where(outputs.c.submission_id == revision.submission_id)
    still_new = bool(new_tests - set(connection.execute(query.distinct()).scalars()))
    return state == SCORED and (still_old or (still_new and (revision.state == SCORED or not old)))


def _store_history(connection: Connection, key: Key, evaluation_id: int, reason: str, now: datetime) -> None:
    output_id, metric = key
    values = {"output_id": output_id, "metric": metric, "evaluation_id": evaluation_id}
    moment = {"replaced": now.astimezone(UTC), "reason": escape_unstorable(reason)}
    connection.execute(insert(history).values(values | moment))


# Places that differ between two states of a board


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceChange:
    """A place in the table of a test and phase before and after; None for an entry that has none there."""

    test: str
    phase: str
    submitter: str
    entry: str
    before: int | None
    after: int | None


def places(connection: Connection, settings: Settings, now: datetime) -> Places:
    """Return all places in all leaderboards, computed from the disclosed scores."""
    found: dict[leaderboard.EntryKey, int | None] = {}
    for phase, of in settings.by_phase.items():
        for test in of.tests:
            table = leaderboard.standings_on(connection, settings, test.name, phase=phase, now=now)
            found |= {leaderboard.entry_key(table, entry): entry.place for entry in table.entries}
    return found


def changed_places(before: Places, after: Places) -> Iterator[PlaceChange]:
    """Yield the places that differ, in the order of the tables after the change."""
    for key in dict.fromkeys((*after, *before)):
        old, new = before.get(key), after.get(key)
        if old != new:
            test, phase, submitter, entry = key
            yield PlaceChange(test=test, phase=phase, submitter=submitter, entry=entry, before=old, after=new)
