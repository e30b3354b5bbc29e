"""What a site may show, read from one state of the database: what is not in these values cannot leak into a page."""

from __future__ import annotations

import heapq
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property
from hashlib import sha256
from itertools import zip_longest
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, select

from geval_py.board.database.schema import Evaluations, announcements
from geval_py.board.database.schema import board as board_table
from geval_py.board.database.store import Board
from geval_py.board.intake.identity import casefolded
from geval_py.board.ranking import disclosure, leaderboard, place_ranges
from geval_py.board.ranking.views import Entry, OutputView, Standings, SubmissionView, submission_views
from geval_py.board.references import expected_of, public_files
from geval_py.board.settings import BoardSettings, Digits, Test, metric_of, names_of, read_text
from geval_py.board.submission import unpack
from geval_py.reading import challenge, files, lines, splits
from geval_py.tables.numbers import rounded

MAX_LINES = 20
MAX_LISTED_TESTS = 4
CONTEXT = 60  # characters on each side of a gap
DIGITS = 4


# From a test and an output to lines: the number, from 1, the rounded score, the word, the text before and after it.
Reading: TypeAlias = "Callable[[], AbstractContextManager[Connection]]"
ReadLines: TypeAlias = "Callable[[Test, OutputView], Sequence[Mapping[str, Any]]]"


@dataclass(frozen=True, kw_only=True)  # without slots: it caches properties
class SiteView:
    """A site before it is written: ``standings`` by test and phase, ``submissions`` with the latest first.

    ``announcements`` have the latest first too. ``phase`` is the present phase. ``methods`` say how the entries of a
    leaderboard are compared. ``metrics`` have the names that the standings use. ``public_files`` are the paths of the
    challenge's files that everybody may download, by their names.
    """

    settings: BoardSettings
    metrics: tuple[str, ...]
    phase: str
    standings: Mapping[tuple[str, str], Standings]
    methods: Mapping[tuple[str, str], place_ranges.Method | None]
    submissions: tuple[SubmissionView, ...]
    announcements: Sequence[Row[Any]] = ()
    readme: str = ""
    public_files: Mapping[str, str] = field(default_factory=dict)
    lines_of: ReadLines = lambda *_: ()

    def digits_of(self, test: str, submission: SubmissionView) -> Digits:
        """Return the digits of a submission's output for a test, by the phase in which it counts."""
        standings = self.standings.get((test, submission.phase))
        return standings.shown_digits if standings else Digits(score=0, ends=0)

    def front(self, test: str | None = None) -> str:
        """Return the phase of a test's first page; without a test, that of index.html."""
        return leaderboard.front_phase(self.settings, self.phase, test)

    def front_table(self, test: str) -> Standings:
        """Return the leaderboard of a test's first page."""
        return self.standings[test, self.front(test)]

    @cached_property
    def entries(self) -> defaultdict[str, list[tuple[Standings, Entry]]]:
        """The entries of each submitter, each with its leaderboard."""
        entries = defaultdict(list)
        for standings in self.standings.values():
            for entry in standings.entries:
                entries[entry.submitter].append((standings, entry))
        return entries

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests that were ranked until now."""
        ranked = {name for name, _ in self.standings}
        return tuple(test for test in self.settings.tests if test.name in ranked)

    @cached_property
    def by_submitter(self) -> dict[str, list[SubmissionView]]:
        """The submissions of each submitter, the latest first."""
        grouped = defaultdict(list)
        for submission in self.submissions:
            grouped[submission.submitter].append(submission)
        return grouped

    @property
    def listed_tests(self) -> tuple[Test, ...]:
        """The tests whose scores stand in lists of submissions."""
        return self.tests[:MAX_LISTED_TESTS]

    @cached_property
    def updated(self) -> datetime | None:
        """The moment of the last arrival, withdrawal or announcement; None for an empty board."""
        moments = [moment for one in self.submissions for moment in (one.arrived, one.withdrawn) if moment]
        return max([*moments, *(one.moment for one in self.announcements)], default=None)


# The worst lines of an output, only for test sets whose answers are public


def line_reader(reading: Reading, settings: BoardSettings) -> ReadLines:
    """Return a function from an output to its lines with the greatest losses, the worst first.

    It gives no line if the answers of the test are hidden, if its scores follow a ladder or are not shown, or for a
    metric that is not computed from losses. It reads the texts of a test set once.
    """
    measure = metric_of(settings.metric).measure
    columns = select(Evaluations.lines, Evaluations.losses)

    @cache
    def texts_of(test: str) -> list[tuple[str, str]]:
        """Return the expected word of each line, and the line of the input, "" if it has fewer lines."""
        expected = lines.read_lines(splits.answers_at(expected_of(settings.challenge, settings.answers, test)))
        path = files.find_file(os.path.join(settings.challenge, test, splits.INPUT_FILE))
        return list(zip_longest(expected, lines.read_lines(path) if path else (), fillvalue=""))

    def worst_lines(test: Test, output: OutputView) -> Sequence[Mapping[str, Any]]:
        if not test.visible or test.ladder or not measure.of_losses or output.shown.value is None:
            return ()
        with reading() as connection:
            row = connection.execute(columns.where(Evaluations.id == output.evaluation_id)).first()
        losses = [] if row is None or row.losses is None else list(unpack(row.losses, row.lines)[0])
        worst = heapq.nsmallest(MAX_LINES, range(len(losses)), key=lambda line: (-losses[line], line))
        texts = texts_of(test.name) if worst else []
        shown = []
        for line in worst:
            if line < len(texts):
                word, text = texts[line]
                _, before, after = ["", "", *text.split("\t")][-3:]  # the last two columns are around the gap
                shown.append(
                    {
                        "line": line + 1,
                        "score": rounded(measure.formula((losses[line],), 1), DIGITS) or 0.0,
                        "expected": word,
                        "before": before if len(before) <= CONTEXT else f"…{before[-CONTEXT:]}",
                        "after": after if len(after) <= CONTEXT else f"{after[:CONTEXT]}…",
                    }
                )
        return shown

    return worst_lines


# Reading, from one state of the database and from the challenge's public files


@contextmanager
def loaded(board: Board, *, now: datetime) -> Iterator[SiteView]:
    """Read what a site shows now; the lines of outputs only within the block. Raises StoreError, DataError."""
    with disclosure.disclosed(board, now) as connection:
        yield view_on(connection, board.settings, lambda: nullcontext(connection), now=now)


def view_on(connection: Connection, settings: BoardSettings, reading: Reading, *, now: datetime) -> SiteView:
    """Return what a site shows, as a transaction sees it; the disclosures must be current.

    The lines of outputs are read later, by a connection of ``reading``.
    """
    phase = settings.phase_of(now)
    submissions = tuple(submission_views(connection, settings))
    if settings.names == "pseudonyms":
        key = connection.execute(select(board_table.c.key)).scalar_one()
        submissions = tuple(
            one if one.baseline else replace(one, submitter=pseudonym(key, one.submitter), author="", affiliation="")
            for one in submissions
        )
    by_code = {submission.code: submission for submission in submissions}
    standings: dict[tuple[str, str], Standings] = {}
    for name in settings.phase_names[: settings.phase_names.index(phase) + 1]:
        for test in settings.in_phase(name).tests:
            table = leaderboard.standings_on(connection, settings, test.name, phase=name, now=now, views=by_code)
            if test.visible and not test.ladder:
                table = place_ranges.with_note_on_choice(connection, settings, table)
            standings[test.name, name] = table
    readme = os.path.join(settings.challenge, challenge.README_FILE)
    return SiteView(
        settings=settings,
        metrics=names_of(settings.metrics),
        phase=phase,
        standings=standings,
        methods={key: place_ranges.method_of(connection, settings, table) for key, table in standings.items()},
        submissions=submissions,
        announcements=announcements_of(connection),
        readme=read_text(readme) if os.path.isfile(readme) else "",
        public_files=public_files(settings),
        lines_of=line_reader(reading, settings),
    )


def pseudonym(key: str, team: str) -> str:
    """Return the name by which pages show a team instead of its own; ``key`` is the board's, which is secret.

    >>> pseudonym("0", "Anna")
    'Team 0833f6'
    """
    return f"Team {sha256(f'{key}/{casefolded(team)}'.encode()).hexdigest()[:6]}"


def announcements_of(connection: Connection) -> Sequence[Row[Any]]:
    """Read the announcements, the latest first."""
    return connection.execute(select(announcements).order_by(announcements.c.id.desc())).all()
