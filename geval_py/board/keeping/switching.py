"""What was scored again takes the place of what was, which goes into the history with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from geval_py.board.keeping.outdating import CHECKED, checked_with
from geval_py.board.keeping.quota import charge_of
from geval_py.board.storing.blobs import storable
from geval_py.board.storing.facts import remember
from geval_py.board.storing.schema import SCORED, disclosures, files, history, outputs, scores, submissions
from geval_py.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from geval_py.board.keeping.outdating import Outdated
    from geval_py.board.keeping.working import Work
    from geval_py.board.references import References


def switch(connection: Connection, work: Work, references: References, now: datetime) -> Iterator[int]:
    """Put what came of a submission in the place of what was; gives its id where it has another state by that."""
    was = connection.execute(select(submissions).where(submissions.c.id == work.submission_id)).one()
    for one in work.outdated:
        _remember_score(connection, one, now)
    if work.state == SCORED:
        _score(connection, work, references)
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


def _remember_score(connection: Connection, one: Outdated, now: datetime) -> None:
    if one.evaluation_id is not None:
        values = {"output_id": one.output_id, "metric": one.metric, "evaluation_id": one.evaluation_id}
        moment = {"replaced": now.astimezone(UTC), "reason": one.reason}
        connection.execute(insert(history).values(values | moment))


def _score(connection: Connection, work: Work, references: References) -> None:
    """Store the outputs that are not there yet, and the scores of all."""
    of = files.c.submission_id == work.submission_id
    numbers = {row.name: row.id for row in connection.execute(select(files.c.name, files.c.id).where(of))}
    stored = select(outputs.c.file_id, outputs.c.test, outputs.c.id).where(
        outputs.c.submission_id == work.submission_id
    )
    known = {(row.file_id, row.test): row.id for row in connection.execute(stored)}
    digests = {file.name: file.sha256 for file in work.parcel.files}
    for output in work.parcel.outputs:
        file_id = numbers[output.file]
        if (file_id, output.test) not in known:
            values = {"submission_id": work.submission_id, "file_id": file_id, "test": output.test}
            named = {"variant": storable(output.variant), "params": storable(dict(output.params))}
            inserted = connection.execute(insert(outputs).values(values | named).returning(outputs.c.id))
            known[file_id, output.test] = inserted.scalar_one()
        for test, metric in references:
            if test == output.test:
                evaluation_id = work.numbers[test, digests[output.file], metric]
                _put(connection, known[file_id, test], metric, evaluation_id)


def _put(connection: Connection, output_id: int, metric: str, evaluation_id: int) -> None:
    this = (scores.c.output_id == output_id) & (scores.c.metric == metric)
    connection.execute(delete(scores).where(this))
    row = {"output_id": output_id, "metric": metric, "evaluation_id": evaluation_id}
    connection.execute(insert(scores).values(row))


def _unscore(connection: Connection, work: Work) -> None:
    """Take away the scores of what is rejected or failed now."""
    of = select(outputs.c.id).where(outputs.c.submission_id == work.submission_id)
    for table in (disclosures, scores):
        connection.execute(delete(table).where(table.c.output_id.in_(of)))
