"""``geval board init``, ``add``, ``scan``, ``show`` and others: all that is done with a board but its server."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple
from operator import attrgetter, itemgetter

from sqlalchemy import Connection, insert

from geval_py.board import backups
from geval_py.board.database.schema import DONE, FAILED, REFUSED, SCORED, Submissions, rescorings
from geval_py.board.database.store import Board, settings_path
from geval_py.board.operations import audit
from geval_py.board.operations.creation import create
from geval_py.board.operations.notices import announce, take_back
from geval_py.board.operations.receipts import ARRIVED, NOW, WAYS, Receipt
from geval_py.board.operations.status import Status, status_of
from geval_py.board.operations.submissions import add, name_final, note, restore, scan, withdraw
from geval_py.board.people.schema import ORGANISER
from geval_py.board.ranking import leaderboard
from geval_py.board.ranking.disclosure import changing
from geval_py.board.ranking.views import Standings
from geval_py.board.settings import BoardSettings, moment_of, moment_text
from geval_py.board.submission import attributes
from geval_py.cli import terminal
from geval_py.cli.board import BOARD, REASON, TEAMS, now
from geval_py.cli.commands import add_format, check_free, command, one_of, option, switch, table_options
from geval_py.errors import DataError
from geval_py.reading.config import argument_type
from geval_py.tables.formats import Result
from geval_py.tables.table import Column, Table, named_columns
from geval_py.text import counted, named, some_of, visible, words

WIDE_COLUMNS = words("tags affiliation description")  # for which a terminal is too narrow
NOT_PRINTED = ("arrived", "remark", "affiliation", "description")  # in a paper
MAX_CODES = 5  # that are listed; the JSON document has all
PERSON = "person"  # a row for each account, which only the organiser may see
moment = argument_type(moment_of)
AT = option("--at", type=moment, metavar="TIME", help="the time of arrival, with a time zone (default: now)")
CODES = option("codes", nargs="+", metavar="CODE", help="a submission's code, or its first characters")
DATABASE = option(
    "--database", metavar="URL", help="an empty PostgreSQL database, by its URL, or a file (default: board.sqlite)"
)
FILE = option("file", metavar="FILE", help="the archive, compressed by its ending: .tar, .tar.zst, .tar.xz")


@contextmanager
def private_files() -> Iterator[None]:
    """Let nobody else read the files that are made meanwhile."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@command(
    "board init",
    "Create a board: a board.yaml that explains every setting, and a database for the submissions.",
    """\
  geval board init gazette-board --challenge gazette --answers hidden
  geval board init gazette-board --challenge gazette --answers hidden \\
      --database postgresql://board@db.example.org/gazette
""",
    BOARD,
    option("--challenge", required=True, metavar="DIR", help="the challenge's folder"),
    option(
        "--answers",
        metavar="DIR",
        help="the folder with test-A/expected.tsv (default: the challenge, if it is there)",
    ),
    DATABASE,
    option("--title", metavar="TEXT", help="the title of the pages (default: the challenge's title)"),
)
@private_files()
def run_init(args: argparse.Namespace) -> None:
    """Run ``geval board init``; raises GevalError."""
    board = create(
        args.board, challenge=args.challenge, answers=args.answers, database=args.database, title=args.title
    )
    if board.settings.answers == board.settings.challenge:
        terminal.note(
            "the answers are in the challenge's folder: publish it without them, or name others with --answers"
        )
    tests = ", ".join(test.name for test in board.settings.tests)
    terminal.say(
        f"Created the board {named(args.board)}: {tests}, ranked by {board.settings.metric}. Next steps:\n"
        f"  edit {named(settings_path(args.board))}: deadlines, submissions a day, disclosed digits\n"
        "  add submissions with geval board scan or add, and show the leaderboard with geval board show\n"
        "  or let people upload them: geval board serve, and geval board invite for each"
    )


@command(
    "board add",
    "Check and score submissions, each in a separate process, store them, and print their receipts.",
    """\
  geval board add gazette-board uploads/ann
  geval board add gazette-board bob.zip --submitter "Bob Smith" --at "2027-01-31 23:10 Europe/Warsaw"
  geval board add gazette-board git+https://example.org/team.git@main --submitter "Team 7"
  geval board add gazette-board unigram.tar.xz --baseline
""",
    BOARD,
    option("submissions", nargs="+", metavar="SUBMISSION", help="a folder, an archive, or git+URL@BRANCH"),
    option(
        "--submitter",
        metavar="NAME",
        help="the submitter (default: the name of the folder or archive; for a branch, its repository)",
    ),
    AT,
    switch("--baseline", help="show it in the table without a place"),
    add_format,
    status="""\
Exit status: 0 all are scored, 1 one was rejected, failed, withdrawn before, or over the quota, 2 an error in \
the command line.""",
)
def run_add(args: argparse.Namespace) -> int:
    """Run ``geval board add``; returns the exit status, raises GevalError. The others follow one that is refused."""
    board = Board.open(args.board)
    receipts = []
    for source in args.submissions:
        try:
            receipts.append(
                add(board, source, submitter=args.submitter, at=args.at, baseline=args.baseline, now=now())
            )
        except DataError as error:
            terminal.show_error(error)
    _show_receipts(receipts, args)
    return int(len(receipts) < len(args.submissions) or not all(receipt.state == SCORED for receipt in receipts))


@command(
    "board scan",
    "Add each new or changed sub-folder and archive of a folder. Its name is the submitter's name.",
    """\
  geval board scan gazette-board uploads
  geval board scan gazette-board uploads --arrived mtime
  geval board scan gazette-board uploads --at "2027-01-31 23:59 Europe/Warsaw"
  geval board scan gazette-board uploads --again     those that failed too
""",
    BOARD,
    option("folder", metavar="FOLDER", help="the folder with the submissions"),
    one_of(
        AT,
        option(
            "--arrived",
            choices=ARRIVED,
            default=NOW,
            help="the source of arrival times that are not in arrivals.csv: the times of the files, or the clock "
            "(default: now)",
        ),
    ),
    switch("--again", help="also try again those that were rejected or failed"),
    add_format,
    status="Exit status: 0 all are scored or rejected, 1 one failed or was refused, 2 an error in the command line.",
)
def run_scan(args: argparse.Namespace) -> int:
    """Run ``geval board scan``; returns the exit status, raises GevalError."""
    board = Board.open(args.board)
    with terminal.ItemBar("scanning") as progress:
        receipts = scan(
            board, args.folder, now=now(), at=args.at, arrived=args.arrived, again=args.again, progress=progress
        )
    _show_receipts(receipts, args, as_list=True)
    states = Counter(receipt.state for receipt in receipts)
    terminal.note(", ".join(f"{count} {state}" for state, count in states.items()) or "nothing is new")
    return int(any(receipt.state in (FAILED, REFUSED) for receipt in receipts))


@command(
    "board withdraw",
    "Hide submissions from rankings and pages. They stay stored, and still count for the quota.",
    """\
  geval board withdraw gazette-board 3f2a90c1d7e4 81ac55e0b2f9 --reason "trained on the test set"
  geval board withdraw gazette-board 3f2a90c1d7e4 --undo
""",
    BOARD,
    CODES,
    REASON,
    switch("--undo", help="show them again"),
    add_format,
)
def run_withdraw(args: argparse.Namespace) -> None:
    """Run ``geval board withdraw``; raises GevalError."""
    _mark(
        lambda connection, settings, code: (
            restore(connection, code) if args.undo else withdraw(connection, settings, code, args.reason, now())
        ),
        args,
    )


def _mark(mark: Callable[[Connection, BoardSettings, str], Receipt], args: argparse.Namespace) -> None:
    """Mark all submissions that are named, or after an error none, and show their receipts."""
    board = Board.open(args.board)
    with changing(board, now()) as connection:
        receipts = [mark(connection, board.settings, code) for code in args.codes]
    _show_receipts(receipts, args)


@command(
    "board note",
    "Add a public remark to submissions.",
    """\
  geval board note gazette-board 3f2a90c1d7e4 "uses data that others had not"
  geval board note gazette-board 3f2a90c1d7e4 ""     removes the remark
""",
    BOARD,
    CODES,
    option("remark", metavar="TEXT", help="the remark, which replaces an earlier one"),
    add_format,
)
def run_note(args: argparse.Namespace) -> None:
    """Run ``geval board note``; raises GevalError."""
    _mark(lambda connection, _, code: note(connection, code, args.remark), args)


@command(
    "board announce",
    "Publish an announcement on the first page and in the feed, and print its number.",
    """\
  geval board announce gazette-board "test-B opens on Monday; see [the rules](https://example.org/rules)"
  geval board announce gazette-board --remove 3
""",
    BOARD,
    one_of(
        option("text", nargs="?", metavar="TEXT", help="the announcement, in Markdown"),
        option("--remove", type=int, metavar="N", help="remove the announcement with this number"),
        required=True,
    ),
    switch("--mail", help="mail the announcement to all members who have an e-mail address"),
)
def run_announce(args: argparse.Namespace) -> None:
    """Run ``geval board announce``; raises GevalError."""
    board = Board.open(args.board)
    with changing(board, now()) as connection:
        if args.text is None:
            take_back(connection, args.remove)
            audit.log(connection, ORGANISER, "took back", str(args.remove), now=now())
        else:
            number = announce(connection, board, args.text, now(), mail=args.mail)
            audit.log(connection, ORGANISER, "announced", args.text, now=now())
            terminal.say(str(number))


@command(
    "board extend",
    "Give teams a later deadline or more submissions a day. It replaces what they were given before.",
    """\
  geval board extend gazette-board "Team 7" --until "2027-02-07 23:59 Europe/Warsaw" --reason "ill"
  geval board extend gazette-board "Team 7" "Team 8" --more 2 --reason "the server was down"
  geval board extend gazette-board "Team 7" --reason "a mistake"     ends it
""",
    BOARD,
    TEAMS,
    option("--until", type=moment, metavar="TIME", help="the teams' deadline, with a time zone"),
    option("--more", type=int, default=0, metavar="N", help="submissions a day beyond the daily limit"),
    option("--phase", default="", metavar="NAME", help="the phase (default: the current one, or the last)"),
    REASON,
    switch("--yes", help="extend the deadline even if private scores have been shown"),
)
def run_extend(args: argparse.Namespace) -> None:
    """Run ``geval board extend``: all teams, or none; raises GevalError."""
    from geval_py.board.operations.extensions import extend

    board = Board.open(args.board)
    values = attributes(args, "until more phase reason")
    with changing(board, now()) as connection:
        extensions = [extend(connection, board, team, **values, now=now(), confirmed=args.yes) for team in args.teams]
        for extension in extensions:
            audit.log(connection, ORGANISER, "extended", extension.team, str(extension), now=now())
    sys.stdout.writelines(f"{extension}\n" for extension in extensions)


@command(
    "board final",
    "Mark submissions as final. If a submitter has any, only these are ranked on the private part of a test.",
    """\
  geval board final gazette-board 3f2a90c1d7e4 81ac55e0b2f9
  geval board final gazette-board 3f2a90c1d7e4 --undo
""",
    BOARD,
    CODES,
    switch("--undo", help="mark them as no longer final"),
    add_format,
)
def run_final(args: argparse.Namespace) -> None:
    """Run ``geval board final``; raises GevalError."""
    _mark(lambda connection, settings, code: name_final(connection, settings, code, now(), undo=args.undo), args)


def _show_receipts(receipts: Sequence[Receipt], args: argparse.Namespace, *, as_list: bool = False) -> None:
    """Show receipts: in text one below the other or, as a list, a line each."""
    if args.format == "text" and not as_list:
        if receipts:
            terminal.say("\n".join(map(receipt_text, receipts)).removesuffix("\n"))
        return
    rows = [(one.code, one.state, one.submitter, one.name, one.reason or one.note) for one in receipts]
    table = Table(named_columns(words("code state submitter name reason")), rows)
    document = {"receipts": [receipt.document() for receipt in receipts]}
    terminal.show(Result(document, table, as_tabs=True), args)


def receipt_text(receipt: Receipt) -> str:
    """Write a receipt for people."""
    counts = f"counts as {receipt.cost}" if receipt.cost else "does not count"
    lines = [
        f"{receipt.code or '-'}  {receipt.state}{f': {visible(receipt.reason)}' if receipt.reason else ''}",
        f"  submitter   {visible(receipt.submitter)}",
        f"  submission  {visible(receipt.name)}",
        f"  arrived     {moment_text(receipt.arrived)}, {WAYS[receipt.arrived_by]}",
        *([f"  digest      {receipt.digest}"] if receipt.digest else []),
        *(f"  file        {digest}  {visible(name)}" for name, digest in receipt.files.items()),
        *([f"  quota       {counts}: {receipt.charge}"] if receipt.charge else []),
        *([f"  note        {receipt.note}"] if receipt.note else []),
    ]
    return "".join(f"{line}\n" for line in lines)


@command(
    "board rescore",
    "Score again what is out of date after a change of challenge, answers, metrics or geval-py.",
    """\
  geval board rescore gazette-board --dry-run    whose place would change
  geval board rescore gazette-board
""",
    BOARD,
    switch("--dry-run", help="only show whose place would change"),
    switch("--again", help="also try again what was rejected, failed or left out"),
    add_format,
)
def run_rescore(args: argparse.Namespace) -> None:
    """Run ``geval board rescore``; raises GevalError."""
    from geval_py.board.operations.pipeline import UNSCORED
    from geval_py.board.operations.rescoring import rescore
    from geval_py.board.server import queue
    from geval_py.board.server.worker import Worker

    board, tried = Board.open(args.board), 0
    if args.again and not args.dry_run:
        with board.writing() as connection:
            tried = queue.try_again(connection, now(), Submissions.state.in_(UNSCORED))
        Worker(args.board, clock=now).run(until_idle=True)
    with terminal.ItemBar("scoring again") as progress:
        rescored = rescore(board, now=now(), dry_run=args.dry_run, again=args.again, progress=progress)
    lines = list(map(visible, rescored.lines(dry_run=args.dry_run)))
    if tried:
        lines.append(f"tried again: {counted(tried, 'submission')}")
    with board.writing() as connection:
        values = {"who": ORGANISER, "dry": args.dry_run, "state": DONE, "reason": "\n".join(lines)}
        connection.execute(insert(rescorings).values(**values, arrived=now(), due=now(), ended=now()))
        audit.log(connection, ORGANISER, "rescored", "dry run" if args.dry_run else "", now=now())
    if args.format == "text":
        terminal.say("\n".join(lines))
        return
    document = asdict(rescored) | {"receipts": [receipt.document() for receipt in rescored.receipts]}
    columns = named_columns(words("test phase submitter entry before after"))
    table = Table(columns, list(map(astuple, rescored.changes)))
    terminal.show(Result(document, table, lines=lines), args)


@command(
    "board show",
    "Show a leaderboard: places, scores with their intervals, and which differences are significant.",
    """\
  geval board show gazette-board
  geval board show gazette-board --by submission -t dev-0
  geval board show gazette-board --phase main --format csv >main.csv
  geval board show gazette-board --by person --format csv >grades.csv     with names and e-mail addresses
""",
    BOARD,
    table_options(test_name="the test set (default: the first of board.yaml)"),
    option("--phase", metavar="NAME", help="the phase (default: the current one, or the last with an entry)"),
    option("--by", choices=(*leaderboard.BY, PERSON), help="show the best entry of each (default: as in board.yaml)"),
    add_format,
)
def run_show(args: argparse.Namespace) -> None:
    """Run ``geval board show``; raises GevalError."""
    board = Board.open(args.board)
    if args.by == PERSON:
        from geval_py.board.ranking import grades

        people = grades.grades(board, args.test_name, phase=args.phase, now=now())
        terminal.show(Result({"people": list(people.by_name())}, people), args)
        return
    shown = leaderboard.standings(board, args.test_name, phase=args.phase, by=args.by, now=now())
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
    document, programs = leaderboard.standings_document(shown), leaderboard.standings_records(shown)
    terminal.show(Result(document, table, programs, list(legend(shown))), args)


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
        terminal.show(Result(copies, table, lines=[summary], as_tabs=True), args)
        return
    from geval_py.board.operations.extensions import extensions
    from geval_py.board.server.queue import queue_status

    status = status_of(board, now())
    with board.reading() as connection:
        queue = queue_status(connection, now())
        extended = [f"extended for {extension}" for extension in extensions(connection)]
    document = asdict(status) | {"queue": asdict(queue)}
    lines = (*_summary(status), *extended, *(queue.lines() if any(document["queue"].values()) else ()))
    columns = words("code submitter arrived arrived_by phase state final day cost charge reason")
    table = Table(named_columns(columns), list(map(itemgetter(*columns), status.submissions)))
    terminal.show(Result(document, table, lines=list(map(visible, lines)), as_tabs=True), args)


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
    terminal.say(f"{visible(args.output)}: {counted(number, 'file')}")


@command(
    "board backup",
    "Write a board, or a folder of several, as one tar archive: database, accounts, settings, challenge, answers.",
    """\
  geval board backup gazette-board gazette-board.tar.zst
""",
    BOARD,
    FILE,
    switch("--force", help="overwrite an existing archive"),
)
@private_files()
def run_backup(args: argparse.Namespace) -> None:
    """Run ``geval board backup``; raises GevalError."""
    check_free(args.file, args)
    backups.back_up(args.board, args.file, now=now())


@command(
    "board restore",
    "Create a board, or a folder of several, from an archive of geval board backup.",
    """\
  geval board restore gazette-board gazette-board.tar.zst
  geval board restore gazette-board gazette-board.tar.zst --database postgresql://board@db.example.org/gazette
""",
    BOARD,
    FILE,
    DATABASE,
)
@private_files()
def run_restore(args: argparse.Namespace) -> None:
    """Run ``geval board restore``; raises GevalError."""
    backups.restore(args.file, args.board, database=args.database)
