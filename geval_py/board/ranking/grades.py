"""Grades: a row for each person with the results of their team, for the records of a course; for organisers alone."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, exists, select

from geval_py.board.database.schema import RECEIVED, Evaluations, Submissions, Submitters
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.people import schema
from geval_py.board.people.accounts import members_at
from geval_py.board.people.store import accounts_of
from geval_py.board.ranking.disclosure import disclosed, scored_outputs
from geval_py.board.ranking.leaderboard import standings_on
from geval_py.board.ranking.order import SUBMITTER, bounds
from geval_py.board.ranking.views import Standings
from geval_py.board.settings import AFTER, PRIVATE, PUBLIC, BoardSettings
from geval_py.tables.table import Table, named_columns
from geval_py.text import natural_order, words

COLUMNS = words("name email student_id team public private place submission state")


def grades(board: Board, test: str | None = None, *, phase: str | None = None, now: datetime) -> Table:
    """Return the grades of a test in a phase; the defaults are those of a leaderboard.

    Who was invited until the deadline of the phase has a row, also if they left afterwards, with the team that they
    were in then. It has a name and an address, the scores of the team's submission that decides on the public and on
    the private part, with all digits (without parts, the score is public), its place in the leaderboard, and its
    code. The state is "closed" or "invited" of an account, "disqualified" of a team, "late" if all that the team sent
    came after the deadline, and "extended" if that was extended for it. A team without people is one row, with its
    own name.

    Raises UsageError for an unknown test or phase, StoreError.
    """
    settings = board.settings
    is_disqualified = exists().where(
        Submissions.submitter_id == Submitters.id, Submissions.withdrawal.startswith("disqualified: ")
    )
    is_graded = exists().where(Submissions.submitter_id == Submitters.id, ~Submissions.baseline, *RECEIVED)
    with disclosed(board, now) as connection:
        table = standings_on(connection, settings, test, phase=phase, by=SUBMITTER, now=now)
        entries = table.entries
        if settings.phases and table.phase != AFTER:
            entries += standings_on(connection, settings, table.test, phase=AFTER, by=SUBMITTER, now=now).entries
        is_shown = Evaluations.id.in_([entry.output.evaluation_id for entry in entries])
        scored = connection.execute(select(Evaluations.id, Evaluations.score).where(is_shown))
        exact = {row.id: row.score for row in scored}
        public = _public_scores(connection, settings, table, now)
        disqualified = set(connection.scalars(select(Submitters.key).where(is_disqualified)))
        graded = connection.execute(select(Submitters.key, Submitters.name).where(is_graded)).all()
    by_team = {casefolded(one.submitter): one for one in reversed(entries) if not one.submission.baseline}
    until = bounds(settings, table.phase)[1]
    with accounts_of(board).reading() as accounts:
        members = members_at(accounts, min(now, until))
    people = [
        (one.name, one.email, one.student_id, team, one.state)
        for one, team in members
        if team or one.role == schema.SUBMITTER
    ]
    with_people = {casefolded(team) for *_, team, _ in people if team}
    people += [(row.name, "", "", row.name, "") for row in graded if row.key not in with_people]
    rows = []
    for *person, state in sorted(people, key=lambda person: (natural_order(person[3]), natural_order(person[0]))):
        team = casefolded(person[3]) if person[3] else ""
        score, place, code, states = None, None, "", [state, "disqualified" if team in disqualified else ""]
        if entry := by_team.get(team):
            score, place, code = exact.get(entry.output.evaluation_id), entry.place, entry.code
            if entry.submission.phase != table.phase:
                place, states = None, [*states, "late"]
            elif entry.submission.arrived > until:
                states.append("extended")
        scores = (public.get(code), score) if table.part == PRIVATE else (score, None)
        rows.append((*person, *scores, place, code, " ".join(filter(None, states))))
    return Table(named_columns(COLUMNS), rows)


def _public_scores(
    connection: Connection, settings: BoardSettings, standings: Standings, now: datetime
) -> dict[str, float | None]:
    """Return the best score of submissions on the public part by their codes, once the private part is shown."""
    in_phase = settings.in_phase(standings.phase)
    test = in_phase.test(standings.test)
    if test is None or not in_phase.is_decided(test, standings.phase, now):
        return {}
    outputs = scored_outputs(connection, in_phase, standings.phase, test, PUBLIC)
    scored = [output for output in outputs if output.badness is not None and output.informed]
    worst_first = sorted(scored, key=lambda output: output.badness or 0.0, reverse=True)
    return {output.submission: output.figures[settings.metric].score for output in worst_first}
