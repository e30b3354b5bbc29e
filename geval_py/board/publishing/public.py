"""A copy of a board's database for the public: what may be shown, and nothing else that was made from the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import String, delete, select, union, update

from geval_py.board.storing.schema import disclosures, evaluations, files, outputs, scores, submissions, submitters

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from geval_py.board.settings import Settings

# Not copied: the submitted files, what the comparisons say beyond the disclosed digits, what was before, and facts
# such as paths of this machine.
LEFT_OUT = ("blobs", "comparisons", "exchanges", "history", "facts")


def publish(connection: Connection) -> None:
    """Take away what was withdrawn, scores beyond what is disclosed, and where submissions came from."""
    hidden = select(submissions.c.id).where(submissions.c.withdrawn.is_not(None))
    of_hidden = select(outputs.c.id).where(outputs.c.submission_id.in_(hidden))
    for table in (disclosures, scores):
        connection.execute(delete(table).where(table.c.output_id.in_(of_hidden)))
    for table in (outputs, files):
        connection.execute(delete(table).where(table.c.submission_id.in_(hidden)))
    connection.execute(delete(submissions).where(submissions.c.withdrawn.is_not(None)))
    connection.execute(delete(submitters).where(submitters.c.id.not_in(select(submissions.c.submitter_id))))
    connection.execute(update(submissions).values(source="", charge="", charged=False))
    _blank_evaluations(connection)


def _blank_evaluations(connection: Connection) -> None:
    """Leave of the evaluations that they are there: neither figures nor digests of the answers."""
    used = union(select(scores.c.evaluation_id), select(disclosures.c.evaluation_id))
    connection.execute(delete(evaluations).where(evaluations.c.id.not_in(used)))
    blank = {"score": None, "low": None, "high": None, "losses": None, "signature": ""}
    connection.execute(update(evaluations).values(blank | {"reference": sqlalchemy.cast(evaluations.c.id, String)}))


def public_document(settings: Settings) -> dict[str, Any]:
    """Give what may be known of board.yaml."""
    tests = {
        test.name: {"visible": test.visible, "disclosed": test.disclosed, "disclosed_after": test.disclosed_after}
        for test in settings.tests
    }
    return {
        "title": settings.title,
        "metric": settings.metric,
        "also": settings.also,
        "tests": tests,
        "phases": [{"name": phase.name, "until": phase.until.isoformat()} for phase in settings.phases],
        "zone": str(settings.zone),
        "submissions_a_day": settings.submissions_a_day,
        "entries": settings.entries,
    }
