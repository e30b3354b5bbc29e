"""What was scored again takes the place of what was, which goes into the history with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import delete, insert, select, update

from geval_py.board.keeping.outdating import CHECKED, checked_with
from geval_py.board.keeping.quota import charge_of
from geval_py.board.storing.blobs import storable
from geval_py.board.storing.facts import remember
from geval_py.board.storing.schema import FAILED, SCORED, disclosures, files, history, outputs, scores, submissions
from geval_py.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from geval_py.board.keeping.outdating import Outdated
    from geval_py.board.keeping.working import Work
    from geval_py.board.references import References

Key: TypeAlias = "tuple[int, str]"  # an output and a metric

NOT_SCORED = "not all of its outputs could be scored again"


def switch(connection: Connection, work: Work, references: References, now: datetime) -> Iterator[int]:
    """Put what came of a submission in the place of what was; gives its id where it has another state by that.

    One that lacks a score that it should have now has failed: no old score stands beside new ones. What another run
    has put in that place meanwhile stays.
    """
    was = connection.execute(select(submissions).where(submissions.c.id == work.submission_id)).one()
    old = {(one.output_id, one.metric): one for one in work.outdated if one.output_id is not None}
    standing = _standing(connection, work.submission_id)
    if not _is_as_found(was.state, work, old, standing):
        return
    new = _new_scores(connection, work, references) if work.state == SCORED else {}
    if work.state == SCORED and (not new or None in new.values() or old.keys() - new.keys()):
        work = replace(work, state=FAILED, reason=NOT_SCORED)
    for key, one in old.items():
        if standing.get(key) == one.evaluation_id:
            _remember_score(connection, one, now)
    if work.state == SCORED:
        for key, evaluation_id in new.items():
            if standing.get(key) == (old[key].evaluation_id if key in old else None):
                _put(connection, *key, evaluation_id)
    else:
        _unscore(connection, work)
    charged, charge = charge_of(work.state, baseline=was.baseline)
    told = {"state": work.state, "reason": storable(work.reason), "scorer": __version__}
    told |= {"problems": storable(list(work.problems))} if work.problems or work.state != was.state else {}
    told |= {"charged": charged, "charge": charge} if work.state != was.state else {}
    connection.execute(update(submissions).where(submissions.c.id == work.submission_id).values(told))
    remember(connection, f"{CHECKED}{work.submission_id}", checked_with(references))
    if work.state != was.state:
        yield work.submission_id


def _standing(connection: Connection, submission_id: int) -> dict[Key, int]:
    """Give the evaluations that the scores of a submission are of now."""
    query = select(scores.c.output_id, scores.c.metric, scores.c.evaluation_id).join(outputs)
    rows = connection.execute(query.where(outputs.c.submission_id == submission_id))
    return {(row.output_id, row.metric): row.evaluation_id for row in rows}


def _is_as_found(state: str, work: Work, old: Mapping[Key, Outdated], standing: Mapping[Key, int]) -> bool:
    """Tell whether something of what was out of date still is: another run may have scored it again meanwhile."""
    new_tests = {one.test for one in work.outdated if one.output_id is None and one.test}
    if not old and not new_tests:
        return state != SCORED
    still = any(standing.get(key) == one.evaluation_id for key, one in old.items())
    return state == SCORED and (still or bool(new_tests))


def _remember_score(connection: Connection, one: Outdated, now: datetime) -> None:
    if one.evaluation_id is not None:
        values = {"output_id": one.output_id, "metric": one.metric, "evaluation_id": one.evaluation_id}
        moment = {"replaced": now.astimezone(UTC), "reason": one.reason}
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
