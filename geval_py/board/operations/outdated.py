"""Outdated scores: of an earlier challenge, answers, metrics, seed or geval-py; and missing outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, select

from geval_py.board.answers import References
from geval_py.board.database.schema import FAILED, REJECTED, SCORED, evaluations, files, outputs, scores, submissions
from geval_py.board.database.store import facts_about
from geval_py.board.intake.receiving import test_by_folder
from geval_py.board.operations.pipeline import CHECKED, references_digest, settings_digest
from geval_py.board.settings import Settings
from geval_py.version import __version__

NEW_METRIC = "it was not scored by this metric"
NEW_TEST = "it came before this test was scored"
OTHER_REFERENCE = "the challenge, its answers or the seed changed"
TRIED_AGAIN = "it failed, and is tried again"
CHECKED_AGAIN = "it was rejected, and the challenge, its answers or geval-py changed"


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


def outdated(connection: Connection, references: References) -> list[Outdated]:
    """List the outdated scores by submission."""
    found = [
        *_scores(connection, references),
        *_new_tests(connection, references),
        *_without_scores(connection, references),
    ]
    return sorted(found, key=lambda one: (one.submission_id, one.output_id or 0))


def tests_in(references: References) -> list[str]:
    """Return the scored tests, in the order of board.yaml."""
    return list(dict.fromkeys(test for test, _ in references))


def to_be_sent_again(connection: Connection, settings: Settings) -> list[str]:
    """List the codes of submissions that could not be received under earlier settings, and were not sent again.

    A submission counts as sent again if a later one has the same submitter and name.
    """
    now, then = settings_digest(settings), facts_about(connection, CHECKED)
    has_files = select(files.c.id).where(files.c.submission_id == submissions.c.id).exists()
    later = submissions.alias()
    is_same = (later.c.submitter_id == submissions.c.submitter_id) & (later.c.name == submissions.c.name)
    was_sent_again = select(later.c.id).where(is_same, later.c.id > submissions.c.id).exists()
    rows = connection.execute(
        select(submissions.c.id, submissions.c.code)
        .where(submissions.c.state == REJECTED, ~has_files, ~was_sent_again, submissions.c.withdrawn.is_(None))
        .order_by(submissions.c.arrived, submissions.c.id)
    )
    return [code for number, code in rows if then.get(str(number)) != now]


def without_output(connection: Connection, test: str) -> list[str]:
    """List the codes of scored submissions without an output for a test; withdrawn ones are left out."""
    of_test = (outputs.c.submission_id == submissions.c.id) & (outputs.c.test == test)
    rows = connection.execute(
        select(submissions.c.code)
        .where(
            submissions.c.state == SCORED,
            submissions.c.withdrawn.is_(None),
            ~select(outputs.c.id).where(of_test).exists(),
        )
        .order_by(submissions.c.arrived, submissions.c.id)
    )
    return list(rows.scalars())


def _scores(connection: Connection, references: References) -> Iterator[Outdated]:
    rows = connection.execute(
        select(
            submissions.c.id,
            submissions.c.code,
            outputs.c.id.label("output_id"),
            outputs.c.test,
            scores.c.metric,
            scores.c.evaluation_id,
            evaluations.c.reference,
            evaluations.c.version,
        )
        .join_from(submissions, outputs)
        .outerjoin(scores, scores.c.output_id == outputs.c.id)
        .outerjoin(evaluations, evaluations.c.id == scores.c.evaluation_id)
        .where(submissions.c.state == SCORED)
    )
    by_output: dict[int, list[Any]] = {}
    for row in rows:
        by_output.setdefault(row.output_id, []).append(row)
    for of_output in by_output.values():
        yield from _of_output(of_output, references)


def _of_output(rows: Sequence[Row[Any]], references: References) -> Iterator[Outdated]:
    """Yield the outdated scores of one output, whose scores are the rows."""
    first = rows[0]
    by_metric = {row.metric: row for row in rows}
    for (test, metric), reference in references.items():
        if test != first.test:
            continue
        row = by_metric.get(metric)
        if row is None:
            reason = NEW_METRIC
        elif row.reference != reference:
            reason = OTHER_REFERENCE
        else:
            reason = "" if row.version == __version__ else f"geval-py {row.version} became {__version__}"
        if reason:
            yield Outdated(
                submission_id=first.id,
                code=first.code,
                reason=reason,
                test=test,
                metric=metric,
                output_id=first.output_id,
                evaluation_id=None if row is None else row.evaluation_id,
            )


def _new_tests(connection: Connection, references: References) -> Iterator[Outdated]:
    """Yield, of scored submissions, the files for tests that board.yaml named later.

    A file that was checked with the current references, and could not be scored, is left out.
    """
    tests = tests_in(references)
    now, then = references_digest(references), facts_about(connection, CHECKED)
    rows = connection.execute(
        select(submissions.c.id, submissions.c.code, files.c.name)
        .join_from(submissions, files)
        .outerjoin(outputs, outputs.c.file_id == files.c.id)
        .where(submissions.c.state == SCORED, outputs.c.id.is_(None))
    )
    for number, code, name in rows:
        of = test_by_folder(name, tests) if then.get(str(number)) != now else None
        for test, metric in references:
            if test == of:
                yield Outdated(submission_id=number, code=code, reason=NEW_TEST, test=test, metric=metric)


def _without_scores(connection: Connection, references: References) -> Iterator[Outdated]:
    """Yield the submissions with files that failed, or were rejected with other references."""
    now, then = references_digest(references), facts_about(connection, CHECKED)
    has_files = select(files.c.id).where(files.c.submission_id == submissions.c.id).exists()
    rows = connection.execute(
        select(submissions.c.id, submissions.c.code, submissions.c.state).where(
            and_(submissions.c.state.in_((FAILED, REJECTED)), has_files)
        )
    )
    for number, code, state in rows:
        if state == FAILED:
            yield Outdated(submission_id=number, code=code, reason=TRIED_AGAIN)
        elif then.get(str(number)) != now:
            yield Outdated(submission_id=number, code=code, reason=CHECKED_AGAIN)
