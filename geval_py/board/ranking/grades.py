"""Grades: a row for each person with the results of their team, for the records of a course; for organisers alone."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, exists, literal, select

from geval_py.board.database.schema import Submissions, Submitters, submitters
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.people.accounts import A, all_accounts
from geval_py.board.people.store import accounts_of
from geval_py.board.ranking.disclosure import disclosed, scored_outputs
from geval_py.board.ranking.leaderboard import standings_on
from geval_py.board.ranking.order import SUBMITTER, bounds
from geval_py.board.ranking.views import Standings
from geval_py.board.settings import AFTER, PRIVATE, PUBLIC, BoardSettings
from geval_py.tables.numbers import rounded
from geval_py.tables.table import Table, named_columns
from geval_py.text import natural_order, words

COLUMNS = words("name email student_id team public private place late final")


def grades(board: Board, test: str | None = None, *, phase: str | None = None, now: datetime) -> Table:
    """Return the grades of a test (default: the first) in a phase (default: the present one, or the last deadline's).

    A row has a person's name and address, their team, its best scores on the public and on the private part, as its
    leaderboard shows them (without parts, the score is public), its place, "late" if all that it sent came after the
    deadline or "extended" if that was extended for it, and the codes of its final submissions. A team without
    accounts is one row, with its own name.

    Raises UsageError for an unknown test or phase, StoreError.
    """
    settings = board.settings
    with accounts_of(board).reading() as accounts:
        members = all_accounts(accounts, A.team != "", closed=True)
    people: list[Any] = [SimpleNamespace(**asdict(one), key=casefolded(one.team)) for one in members]
    is_graded = exists().where(Submissions.submitter_id == Submitters.id, ~Submissions.baseline)
    named = select(Submissions.submitter_id, Submissions.code).where(Submissions.final.is_not(None))
    with disclosed(board, now) as connection:
        last = settings.deciding_phase(test or settings.tests[0].name)
        if phase is None and last is not None and settings.phase_of(now) == AFTER:
            phase = last.name
        shown = standings_on(connection, settings, test, phase=phase, by=SUBMITTER, now=now)
        results = {one.submitter: one for one in shown.entries if not one.submission.baseline}
        late = {}
        if settings.phases and shown.phase != AFTER:
            after = standings_on(connection, settings, shown.test, phase=AFTER, by=SUBMITTER, now=now)
            late = {one.submitter: one for one in after.entries if not one.submission.baseline}
        public = _public_scores(connection, settings, shown, now)
        finals: dict[int, list[str]] = {}
        for row in connection.execute(named.order_by(Submissions.final, Submissions.id)):
            finals.setdefault(row.submitter_id, []).append(row.code)
        here = {row.key: (row.id, row.name) for row in connection.execute(select(submitters))}
        empty = (literal("").label(name) for name in ("email", "student_id"))
        alone = select(Submitters.name, *empty, Submitters.name.label("team"), Submitters.key)
        without_people = Submitters.key.not_in({one.key for one in people})
        people += connection.execute(alone.where(is_graded, without_people)).all()
    rows, until = [], bounds(settings, shown.phase)[1]
    for one in sorted(people, key=lambda one: (natural_order(one.team), natural_order(one.name))):
        team_id, name = here.get(one.key, (0, ""))
        entry, after_all = results.get(name), late.get(name)
        late_by = "late" if entry is None and after_all is not None else ""
        if entry is not None and entry.submission.arrived > until:
            late_by = "extended"
        score = getattr(entry or after_all, "score", None)
        scores = (public.get(team_id), score) if shown.part == PRIVATE else (score, None)
        told = getattr(entry, "place", None), late_by, " ".join(finals.get(team_id, ()))
        rows.append((one.name, one.email, one.student_id, one.team, *scores, *told))
    return Table(named_columns(COLUMNS), rows)


def _public_scores(
    connection: Connection, settings: BoardSettings, shown: Standings, now: datetime
) -> dict[int, float | None]:
    """Return the best score on the public part by the id of a submitter, once the private part is shown."""
    own = settings.in_phase(shown.phase)
    test = own.test(shown.test)
    if test is None or not own.is_decided(test, shown.phase, now):
        return {}
    scores: dict[int, float | None] = {}
    outputs = [one for one in scored_outputs(connection, own, shown.phase, test, PUBLIC) if one.badness is not None]
    for one in sorted(outputs, key=lambda one: one.badness or 0.0):
        if one.informed:
            score = rounded(one.figures[settings.metric].score, shown.digits)
            scores.setdefault(one.climber, score)
    return scores
