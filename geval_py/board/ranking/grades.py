"""Grades: a row for each person with the results of their team, for the records of a course; for organisers alone."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from sqlalchemy import Connection, exists, select

from geval_py.board.database.schema import RECEIVED, Evaluations, Submissions, Submitters, submissions, submitters
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.people import schema
from geval_py.board.people.accounts import members_at
from geval_py.board.people.store import accounts_of
from geval_py.board.ranking.disclosure import disclosed, scored_outputs
from geval_py.board.ranking.leaderboard import standings_on
from geval_py.board.ranking.order import SUBMITTER, bounds
from geval_py.board.ranking.views import Entry, Standings
from geval_py.board.settings import AFTER, PRIVATE, PUBLIC, BoardSettings
from geval_py.tables.table import Table, named_columns
from geval_py.text import natural_order, words

COLUMNS = words("name email student_id team public private place late final")


def grades(board: Board, test: str | None = None, *, phase: str | None = None, now: datetime) -> Table:
    """Return the grades of a test (default: the first) in a phase (default: the present one, or the last deadline's).

    Who was invited until the deadline of the phase has a row, also if they left afterwards, with the team that they
    were in then. It has a name and an address, the team's best scores on the public and on the private part, with all
    digits (without parts, the score is public), its place in the leaderboard, "late" if all that it sent came after
    the deadline or "extended" if that was extended for it, and the codes of its final submissions. A team without
    people is one row, with its own name.

    Raises UsageError for an unknown test or phase, StoreError.
    """
    settings = board.settings
    named = select(Submitters.name, Submissions.code).join_from(submissions, submitters)
    named = named.where(Submissions.final.is_not(None)).order_by(Submissions.final, Submissions.id)
    is_graded = exists().where(Submissions.submitter_id == Submitters.id, ~Submissions.baseline, *RECEIVED)
    with disclosed(board, now) as connection:
        last = settings.deciding_phase(test or settings.tests[0].name)
        if phase is None and last is not None and settings.phase_of(now) == AFTER:
            phase = last.name
        shown = standings_on(connection, settings, test, phase=phase, by=SUBMITTER, now=now)
        results, late = _results(connection, shown), dict[str, _Result]()
        if settings.phases and shown.phase != AFTER:
            after = standings_on(connection, settings, shown.test, phase=AFTER, by=SUBMITTER, now=now)
            late = _results(connection, after)
        public = _public_scores(connection, settings, shown, now)
        finals: dict[str, list[str]] = {}
        for team, code in connection.execute(named):
            finals.setdefault(team, []).append(code)
        teams = {casefolded(name): name for name in connection.execute(select(Submitters.name)).scalars()}
        graded = list(connection.execute(select(Submitters.name).where(is_graded)).scalars())
    until = bounds(settings, shown.phase)[1]
    with accounts_of(board).reading() as accounts:
        members = members_at(accounts, min(now, until))
    people = [
        (one.name, one.email, one.student_id, team) for one, team in members if team or one.role == schema.SUBMITTER
    ]
    with_people = {casefolded(team) for *_, team in people if team}
    people += [(name, "", "", name) for name in graded if casefolded(name) not in with_people]
    rows = []
    for person in sorted(people, key=lambda person: (natural_order(person[3]), natural_order(person[0]))):
        name = teams.get(casefolded(person[3]), "") if person[3] else ""
        entry, score = results.get(name, (None, None))
        is_late = entry is None and name in late
        if is_late:
            score = late[name][1]
        is_extended = entry is not None and entry.submission.arrived > until
        scores = (public.get(name), score) if shown.part == PRIVATE else (score, None)
        place = None if entry is None else entry.place
        marks = "late" if is_late else "extended" if is_extended else ""
        rows.append((*person, *scores, place, marks, " ".join(finals.get(name, ()))))
    return Table(named_columns(COLUMNS), rows)


# The entry of a team, and its score with all digits
_Result: TypeAlias = "tuple[Entry, float | None]"


def _results(connection: Connection, standings: Standings) -> dict[str, _Result]:
    """Return the results of a leaderboard by the names of the submitters, without baselines."""
    entries = [entry for entry in standings.entries if not entry.submission.baseline]
    ids = [entry.output.evaluation_id for entry in entries]
    rows = connection.execute(select(Evaluations.id, Evaluations.score).where(Evaluations.id.in_(ids)))
    exact = {row.id: row.score for row in rows}
    return {entry.submitter: (entry, exact.get(entry.output.evaluation_id)) for entry in entries}


def _public_scores(
    connection: Connection, settings: BoardSettings, shown: Standings, now: datetime
) -> dict[str, float | None]:
    """Return the best score on the public part by the name of a submitter, once the private part is shown."""
    own = settings.in_phase(shown.phase)
    test = own.test(shown.test)
    if test is None or not own.is_decided(test, shown.phase, now):
        return {}
    names = {row.id: row.name for row in connection.execute(select(submitters))}
    outputs = [one for one in scored_outputs(connection, own, shown.phase, test, PUBLIC) if one.badness is not None]
    scores: dict[str, float | None] = {}
    for one in sorted(outputs, key=lambda one: one.badness or 0.0):
        if one.informed and one.climber in names:
            scores.setdefault(names[one.climber], one.figures[settings.metric].score)
    return scores
