"""``geval board show``, ``status`` and ``site``: a board on the terminal, and as pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from geval_py.board.database.store import Board
from geval_py.board.ranking import leaderboard
from geval_py.board.ranking.views import Standings
from geval_py.board.submission import FAILED, SCORED
from geval_py.cli import terminal
from geval_py.cli.board import BOARD, now
from geval_py.cli.commands import add_format, command, option, switch
from geval_py.tables.formats import Result
from geval_py.tables.numbers import counted
from geval_py.tables.table import Column, Table, named_columns
from geval_py.text import some_of, visible, words

if TYPE_CHECKING:
    from geval_py.board.operations.status import Status

WIDE_COLUMNS = words("tags affiliation description")  # for which a terminal is too narrow
NOT_PRINTED = ("arrived", "remark", "affiliation", "description")  # in a paper
MAX_CODES = 5  # that are listed; the JSON document has all
PERSON = "person"  # a row for each account, which only the organiser may see


@command(
    "board show",
    "Show a leaderboard: places, scores with their intervals, and which differences are significant.",
    """\
  geval board show gazette-board
  geval board show gazette-board --by submission --test dev-0
  geval board show gazette-board --phase main --format csv >main.csv
  geval board show gazette-board --by person --format csv >grades.csv     with names and e-mail addresses
""",
    BOARD,
    option("--test", metavar="NAME", help="the test set (default: the first of board.yaml)"),
    option("--phase", metavar="NAME", help="the phase (default: the current one, or the last with an entry)"),
    option("--by", choices=(*leaderboard.BY, PERSON), help="show the best entry of each (default: as in board.yaml)"),
    add_format,
)
def run_show(args: argparse.Namespace) -> None:
    """Run ``geval board show``; raises GevalError."""
    board = Board.open(args.board)
    if args.by == PERSON:
        from geval_py.board.ranking import grades

        rows = grades.grades(board, args.test, phase=args.phase, now=now())
        people = [dict(zip(grades.COLUMNS, row, strict=True)) for row in rows.rows]
        terminal.show(Result(document={"people": people}, people=rows), args)
        return
    shown = leaderboard.standings(board, args.test, phase=args.phase, by=args.by, now=now())
    if not shown.entries:
        terminal.note(visible(f"there is no entry for {shown.test}"))
    columns, digits = leaderboard.shown_columns(shown), shown.shown_digits
    if args.format == "text":
        columns = [column for column in columns if column.heading not in WIDE_COLUMNS]
    table = Table(
        [Column(column.heading, alignment=column.alignment) for column in columns],
        [[column.text(entry, digits) for column in columns] for entry in shown.entries],
        not_printed=NOT_PRINTED,
    )
    value = Result(
        document=leaderboard.standings_document(shown),
        people=table,
        programs=leaderboard.standings_records(shown),
        lines=list(legend(shown)),
    )
    terminal.show(value, args)


def legend(standings: Standings) -> Iterator[str]:
    """Explain a leaderboard in sentences."""
    phase = f", {standings.phase}" if standings.phase else ""
    yield visible(
        f"{standings.metric} ({standings.unit}, {standings.direction} is better) of {standings.test}{phase}; "
        f"the best of a {standings.by}."
    )
    if not standings.digits:
        yield "No score is shown before the last deadline."
    columns = leaderboard.shown_columns(standings)
    yield from (f"{column.heading}: {column.legend}." for column in columns if column.legend)
    yield from (visible(f"Note: {note}.") for note in standings.notes)


@command(
    "board status",
    "Show the submissions, what is out of date, what was rejected or failed and why, and what counts for the quota.",
    """\
  geval board status gazette-board
  geval board status gazette-board --format json
  geval board status gazette-board --copies
""",
    BOARD,
    switch("--copies", help="show very similar outputs of different submitters instead"),
    add_format,
)
def run_status(args: argparse.Namespace) -> None:
    """Run ``geval board status``; raises GevalError."""
    board = Board.open(args.board)
    if args.copies:
        from geval_py.board.ranking import likeness

        with board.reading() as connection:
            pairs = tuple(likeness.likenesses(connection, board.settings))
        summary = f"{counted(len(pairs), 'pair')} of very similar outputs of different submitters"
        columns = words("test one one_submitter other other_submitter same_lines same_order")
        table = Table(named_columns(columns), list(map(attrgetter(*columns), pairs)))
        copies = {"copies": [asdict(pair) for pair in pairs]}
        terminal.show(Result(document=copies, people=table, lines=[summary], as_tabs=True), args)
        return
    from geval_py.board.operations.extensions import extensions
    from geval_py.board.operations.status import status_of
    from geval_py.board.server.queue import queue_status

    status = status_of(board, now())
    with board.reading() as connection:
        queue = queue_status(connection, now())
        extended = [f"extended for {extension}" for extension in extensions(connection)]
    lines = (*_summary(status), *extended, *(queue.lines() if any(asdict(queue).values()) else ()))
    document = {**asdict(status), "queue": asdict(queue)}
    shown = Result(document=document, people=status_table(status), lines=list(map(visible, lines)), as_tabs=True)
    terminal.show(shown, args)


def _summary(status: Status) -> Iterator[str]:
    states = ", ".join(f"{count} {state}" for state, count in status.states.items())
    yield f"{status.title}" + (f", phase {status.phase}" if status.phase else "")
    yield f"{counted(len(status.submissions), 'submission')} of {counted(status.submitters, 'submitter')}: {states}"
    yield counted(status.outputs, "output")
    for reason, count in status.outdated.items():
        yield f"out of date: {count}, because {reason}; run geval board rescore"
    if not status.outdated:
        yield "nothing is out of date"
    for test, codes in status.without_output.items():
        has_none = len(codes) == status.states[SCORED]
        yield f"no output for {test}" + (" in any submission" if has_none else f": {some_of(codes, MAX_CODES)}")
    for phase, since in status.reopened.items():
        moved = f"the deadline of {phase} was moved after the private scores were shown, at {since}"
        yield f"warning: {moved}; submitters may use these"
    if failed := [one["code"] for one in status.submissions if one["state"] == FAILED]:
        yield f"failed: {some_of(failed, MAX_CODES)}; geval board scan --again or rescore --again tries them again"


def status_table(status: Status) -> Table:
    """Return a table of all submissions, in order of arrival."""
    columns = words("code submitter arrived arrived_by phase state final day cost charge reason")
    return Table(named_columns(columns), list(map(itemgetter(*columns), status.submissions)))


@command(
    "board site",
    "Write a board as static pages: leaderboards, submissions, charts, data, a feed.",
    """\
  geval board site gazette-board -o public

Publish the folder with any web server, or open its index.html in a browser. An earlier site in the folder stays
until the new one is complete.
""",
    BOARD,
    option("-o", "--output", metavar="DIR", required=True, help="the folder: new, empty, or with an earlier site"),
)
def run_site(args: argparse.Namespace) -> None:
    """Run ``geval board site``; raises GevalError."""
    from geval_py.board.site import build

    number = build(Board.open(args.board), args.output, now=now())
    sys.stdout.write(f"{visible(args.output)}: {counted(number, 'file')}\n")
