"""What was scored again takes the place of what was, which goes into the history with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import delete, insert, select, update

from geval_py.board.answers import References, references_of
from geval_py.board.database.blobs import storable
from geval_py.board.database.schema import (
    FAILED,
    REJECTED,
    SCORED,
    disclosures,
    files,
    history,
    outputs,
    scores,
    submissions,
)
from geval_py.board.database.store import remember
from geval_py.board.intake.sandbox import looking_on
from geval_py.board.operations.outdated import CHECKED, Outdated, checked_with, outdated
from geval_py.board.operations.pipeline import Work, score_again
from geval_py.board.operations.quota import charge_of
from geval_py.board.operations.receipts import Receipt, receipt_of
from geval_py.board.ranking.disclosure import refresh
from geval_py.board.ranking.leaderboard import PlaceChange, changed_places, places
from geval_py.errors import ClusterError
from geval_py.scoring.blocks import Threads
from geval_py.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from geval_py.board.database.store import Board
    from geval_py.scoring.blocks import Workers


Key: TypeAlias = "tuple[int, str]"  # an output and a metric
NOT_SCORED = "not all of its outputs could be scored again"


def switch(connection: Connection, work: Work, references: References, now: datetime) -> Iterator[int]:
    """Put what came of a submission in the place of what was; gives its id where there is something to tell of it.

    One that lacks a score that it should have now has failed: no old score stands beside new ones. What another run
    has put in that place meanwhile stays. Where only outputs for new tests are at fault, all that there was does.
    """
    was = connection.execute(select(submissions).where(submissions.c.id == work.submission_id)).one()
    old = {(one.output_id, one.metric): one for one in work.outdated if one.output_id is not None}
    standing = _standing(connection, work.submission_id)
    work = _whole(work)
    if not _is_as_found(connection, was.state, work, old, standing):
        return
    new = _new_scores(connection, work, references) if work.state == SCORED else {}
    if work.state == SCORED and (not new or None in new.values() or old.keys() - new.keys()):
        work = replace(work, state=FAILED, reason=NOT_SCORED)
        if not _is_as_found(connection, was.state, work, old, standing):
            return
    for key, one in old.items():
        if one.evaluation_id is not None and standing.get(key) == one.evaluation_id:
            _remember_score(connection, key, one.evaluation_id, one.reason, now)
    if work.state == SCORED:
        for key, evaluation_id in new.items():
            if standing.get(key) == (old[key].evaluation_id if key in old else None):
                _put(connection, *key, evaluation_id)
    else:
        for key in standing.keys() - old.keys():
            _remember_score(connection, key, standing[key], work.reason, now)
        _unscore(connection, work)
    _tell(connection, work, was)
    if all(one.state == REJECTED for one in work.left_out.values()):  # what failed is tried again
        remember(connection, f"{CHECKED}{work.submission_id}", checked_with(references))
    if (work.state, work.reason) != (was.state, was.reason):
        yield work.submission_id


def _whole(work: Work) -> Work:
    """Say of one that is scored what was left out, and why; where nothing else is there, that is what came of it."""
    if work.state != SCORED or not work.left_out:
        return work
    first, *_ = work.left_out.values()
    if not work.parcel.outputs:
        return replace(work, state=first.state, reason=first.reason, left_out={})
    said = (f"its outputs for {test} are left out: {one.reason}" for test, one in work.left_out.items())
    return replace(work, reason="; ".join(said))


def _tell(connection: Connection, work: Work, was: Row[Any]) -> None:
    """Store the state of a submission, and why it has that."""
    charged, charge = charge_of(work.state, baseline=was.baseline)
    told = {"state": work.state, "reason": storable(work.reason), "scorer": __version__, "digest": work.parcel.digest}
    is_other = (work.state, work.reason) != (was.state, was.reason)
    told |= {"problems": storable(list(work.problems))} if work.problems or is_other else {}
    told |= {"charged": charged, "charge": charge} if work.state != was.state else {}
    connection.execute(update(submissions).where(submissions.c.id == work.submission_id).values(told))


def _standing(connection: Connection, submission_id: int) -> dict[Key, int]:
    """Give the evaluations that the scores of a submission are of now."""
    query = select(scores.c.output_id, scores.c.metric, scores.c.evaluation_id).join(outputs)
    rows = connection.execute(query.where(outputs.c.submission_id == submission_id))
    return {(row.output_id, row.metric): row.evaluation_id for row in rows}


def _is_as_found(
    connection: Connection, state: str, work: Work, old: Mapping[Key, Outdated], standing: Mapping[Key, int]
) -> bool:
    """Tell whether something of what was out of date still is: another run may have scored it again meanwhile.

    A test that was new is so as long as none of its outputs has a score. What could not be scored takes nothing away
    but what it was to replace.
    """
    new_tests = {one.test for one in work.outdated if one.output_id is None and one.test}
    if not old and not new_tests:
        return state != SCORED
    still_old = any(standing.get(key) == one.evaluation_id for key, one in old.items())
    still_new = bool(new_tests - _scored_tests(connection, work.submission_id))
    return state == SCORED and (still_old or (still_new and (work.state == SCORED or not old)))


def _scored_tests(connection: Connection, submission_id: int) -> set[str]:
    query = select(outputs.c.test).join(scores).where(outputs.c.submission_id == submission_id)
    return set(connection.execute(query.distinct()).scalars())


def _remember_score(connection: Connection, key: Key, evaluation_id: int, reason: str, now: datetime) -> None:
    output_id, metric = key
    values = {"output_id": output_id, "metric": metric, "evaluation_id": evaluation_id}
    moment = {"replaced": now.astimezone(UTC), "reason": storable(reason)}
    connection.execute(insert(history).values(values | moment))


def _new_scores(connection: Connection, work: Work, references: References) -> dict[Key, int | None]:
    """Store the outputs that are not there yet; gives the evaluations by output and metric, None if missing."""
    of = files.c.submission_id == work.submission_id
    numbers = {row.name: row.id for row in connection.execute(select(files.c.name, files.c.id).where(of))}
    stored = select(outputs.c.file_id, outputs.c.test, outputs.c.id).where(
        outputs.c.submission_id == work.submission_id
    )
    known = {(row.file_id, row.test): row.id for row in connection.execute(stored)}
    digests = {file.name: file.sha256 for file in work.parcel.files}
    new: dict[Key, int | None] = {}
    for output in work.parcel.outputs:
        file_id = numbers[output.file]
        if (file_id, output.test) not in known:
            values = {"submission_id": work.submission_id, "file_id": file_id, "test": output.test}
            named = {"variant": storable(output.variant), "params": storable(dict(output.params))}
            inserted = connection.execute(insert(outputs).values(values | named).returning(outputs.c.id))
            known[file_id, output.test] = inserted.scalar_one()
        for test, metric in references:
            if test == output.test:
                new[known[file_id, test], metric] = work.numbers.get((test, digests[output.file], metric))
    return new


def _put(connection: Connection, output_id: int, metric: str, evaluation_id: int | None) -> None:
    this = (scores.c.output_id == output_id) & (scores.c.metric == metric)
    connection.execute(delete(scores).where(this))
    row = {"output_id": output_id, "metric": metric, "evaluation_id": evaluation_id}
    connection.execute(insert(scores).values(row))


def _unscore(connection: Connection, work: Work) -> None:
    """Take away the scores of what is rejected or failed now."""
    of = select(outputs.c.id).where(outputs.c.submission_id == work.submission_id)
    for table in (disclosures, scores):
        connection.execute(delete(table).where(table.c.output_id.in_(of)))


# ``geval board rescore``: what is out of date is scored again, and then, in one transaction, takes its place.


MOST_AT_ONCE = 32  # of the submissions that lie unpacked, each with a connection to the database
Progress: TypeAlias = "Callable[[int, int], None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """What was out of date, whose place changed by it, and which submissions have another state now, or would."""

    outdated: tuple[Outdated, ...]
    changes: tuple[PlaceChange, ...]
    receipts: tuple[Receipt, ...]


def rescore(
    board: Board,
    *,
    now: datetime,
    dry_run: bool = False,
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> Rescored:
    """Score again what is out of date, keep what was in the history with the reason, and rank anew.

    Submissions that failed are tried again, and those that were rejected are checked again if what they were checked
    with changed. With ``dry_run`` all stays as it is, but for evaluations that no one is shown. ``progress`` is
    called with how many submissions are done, and how many there are to do. ``workers`` elsewhere look into
    the submissions there. Raises StoreError, the DataErrors of the challenge, and ClusterError.
    """
    references = references_of(board.settings)
    with board.reading() as connection:
        found = outdated(connection, references)
    done = list(_done(board, found, references, now, progress, workers or Threads()))
    with board.writing() as connection:
        refresh(connection, board.settings, now)
        before = places(connection, board.settings, now)
        numbers = [number for work in done for number in switch(connection, work, references, now)]
        refresh(connection, board.settings, now)
        changes = changed_places(before, places(connection, board.settings, now))
        receipts = tuple(receipt_of(connection, number) for number in numbers)
        if dry_run:
            connection.rollback()
    return Rescored(outdated=tuple(found), changes=tuple(changes), receipts=receipts)


def _done(
    board: Board,
    found: Sequence[Outdated],
    references: References,
    now: datetime,
    progress: Progress | None,
    workers: Workers,
) -> Iterator[Work]:
    """Look into what is out of date, some submissions at once; gives them in the order of their arrival."""
    look = None if workers.are_here else looking_on(workers, references)
    groups = [tuple(group) for _, group in groupby(found, key=lambda one: one.submission_id)]
    threads = ThreadPoolExecutor(min(workers.at_once, MOST_AT_ONCE))
    try:
        futures = [threads.submit(score_again, board, group, references, now, look) for group in groups]
        for number, future in enumerate(as_completed(futures), 1):
            if isinstance(future.exception(), ClusterError):
                future.result()  # the others would fail as well
            if progress is not None:
                progress(number, len(groups))
        yield from (future.result() for future in futures)
    finally:
        threads.shutdown(cancel_futures=True)
