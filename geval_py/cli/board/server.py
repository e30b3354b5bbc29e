"""``geval board serve``, ``work``, ``invite``, ``token`` and others: the board's server and its accounts."""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from ipaddress import ip_network
from tempfile import TemporaryDirectory

from geval_py.board.database.store import Board, boards_in
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.accounts import RefusedError
from geval_py.board.people.schema import ORGANISER, ROLES
from geval_py.board.people.store import People, accounts_of, shared_accounts
from geval_py.board.people.teams import disqualify, rename, submitter_names
from geval_py.board.settings import read_text
from geval_py.board.submission import attributes
from geval_py.cli import terminal
from geval_py.cli.board import BOARD, REASON, TEAMS, now
from geval_py.cli.commands import command, one_of, option, switch
from geval_py.errors import GevalError, RejectedError, UnreadableFileError, UsageError
from geval_py.reading.config import argument_type
from geval_py.text import counted, named, some_of, visible, words

WITH_SERVER = "GEVAL_BOARD_WITH_SERVER"  # a variable, set for the worker that a server starts
SHUTDOWN_SECONDS = 30  # for which uploads may finish
RESTART_SECONDS = 1  # before a worker that died is followed by another
LIST_COLUMNS = {  # of a class list, as spreadsheets and learning platforms write them: their letters and digits
    "name": words("name fullname"),
    "first": words("firstname givenname vorname imię"),
    "last": words("lastname surname familyname nachname nazwisko"),
    "email": words("email emailaddress mail emailadresse adresemail"),
    "team": words("team group groups gruppe grupa"),
    "role": ["role"],
    "student_id": words("studentid idnumber matriculationnumber matrikelnummer numeralbumu"),
}
PROGRAM = "import sys; from geval_py.__main__ import main; sys.exit(main())"
NAME = option("name", metavar="NAME", help="the name of the account")
EMAIL = option("--email", default="", metavar="ADDRESS", help="the e-mail address, which identifies the person")
ROLE = option("--role", choices=ROLES, default="", help="the role of the person (default: submitter)")
URL = option("--url", default="", metavar="URL", help="the public address (default: that of board.yaml)")
WORKERS = option(
    "--workers",
    type=int,
    default=os.cpu_count() or 1,
    metavar="N",
    help="jobs at once (default: the number of cores); 0: serve without a worker",
)


@command(
    "board serve",
    "Serve a board's pages, accounts and uploads, and start a worker that scores the uploads.",
    """\
  geval board serve gazette-board
  geval board serve gazette-board --port 8080 --url https://board.example.org
  geval board serve gazette-board --workers 0     and elsewhere: geval board work gazette-board
  geval board serve boards                        the boards of a folder, each below its name
""",
    BOARD,
    option("--host", default="127.0.0.1", metavar="NAME", help="the address to listen at (default: 127.0.0.1)"),
    option("--port", type=int, default=8000, metavar="N", help="the port (default: 8000)"),
    URL,
    switch("--shared", help="serve a folder that other users of this machine can read"),
    option(
        "--proxies",
        type=argument_type(lambda written: [str(ip_network(network.strip())) for network in written.split(",")]),
        default=(),
        metavar="LIST",
        help="the addresses or networks of your reverse proxies, with commas, whose X-Forwarded-For is believed",
    ),
    WORKERS,
)
def run_serve(args: argparse.Namespace) -> None:
    """Run ``geval board serve`` until it is interrupted; raises GevalError."""
    import uvicorn

    from geval_py.board.server.app import application
    from geval_py.board.server.context import ServerContext
    from geval_py.board.server.openid import check_secrets

    with TemporaryDirectory(prefix="geval-board-serve-", ignore_cleanup_errors=True) as place:
        local = f"http://{args.host}:{args.port}"
        server = ServerContext(args.board, place, url=args.url, local=local)
        if not args.shared and sys.platform != "win32" and os.stat(args.board).st_mode & 0o007:
            raise UsageError(
                f"others can read the board in {named(args.board)}\n  "
                f"chmod 700 {visible(args.board)}, or allow it with --shared"
            )
        for one in server.boards or [server]:
            try:
                settings = one.board().settings.server
            except GevalError:  # a board that cannot be opened says so on its pages
                continue
            check_secrets(settings)
        config = uvicorn.Config(
            application(server),
            host=args.host,
            port=args.port,
            http="h11",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            forwarded_allow_ips=args.proxies,
        )
        terminal.end_bar()
        terminal.note(f"serving {named(args.board)} at {server.url or local}; press Ctrl-C to stop")
        with nullcontext() if args.workers == 0 else _worker_beside(args.board, args.workers):
            uvicorn.Server(config).run()


@contextmanager
def _worker_beside(board: str, workers: int) -> Iterator[None]:
    """Run a worker in a process of its own during the block; one that dies is followed by another.

    It ends with its standard input, a pipe from this process: also if this process is killed.
    """
    words = [sys.executable, "-I", "-c", PROGRAM, "board", "work", board, "--workers", str(workers)]
    reading, writing = os.pipe()
    ending = threading.Event()

    def keep() -> None:
        while not ending.is_set():
            subprocess.run(words, stdin=reading, env=os.environ | {WITH_SERVER: "1"})
            ending.wait(RESTART_SECONDS)

    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ending.set()
        os.close(writing)
        keeper.join()
        os.close(reading)


@command(
    "board work",
    "Check and score uploads until interrupted. Several workers may run at once, also on other machines.",
    """\
  geval board work gazette-board
  geval board work gazette-board --workers 4
""",
    BOARD,
    WORKERS,
    switch("--once", help="stop when no jobs are waiting"),
)
def run_work(args: argparse.Namespace) -> None:
    """Run ``geval board work``; raises GevalError."""
    from geval_py.board.server.worker import Worker

    worker = Worker(args.board, at_once=args.workers)
    terminal.end_bar()

    def stop_at_end_of_input() -> None:
        os.read(0, 1)  # the read() of a stream holds a lock that Python needs to end
        worker.stop()

    if WITH_SERVER in os.environ:  # the server, which holds the other end of standard input
        threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    done = worker.run(until_idle=args.once)
    if args.once:
        terminal.note(f"{counted(done, 'job')} done")


@command(
    "board invite",
    "Print a link that creates an account, or signs in to an existing one. It works once, within two weeks.",
    """\
  geval board invite gazette-board anna --url https://board.example.org
  geval board invite gazette-board "Bob Smith" --team "Team 7"
  geval board invite gazette-board --list students.csv    with the columns name, email, team, role
""",
    BOARD,
    one_of(
        option("name", nargs="?", default="", metavar="NAME", help="the name of the account"),
        option("--list", metavar="FILE", help="invite everyone in a CSV file, and print a CSV with their links"),
        required=True,
    ),
    EMAIL,
    ROLE,
    option("--team", default="", metavar="NAME", help="the team for which the person submits (default: NAME)"),
    option("--student-id", default="", metavar="ID", help="the student id of the person, for the grades"),
    URL,
)
def run_invite(args: argparse.Namespace) -> None:
    """Run ``geval board invite``; raises GevalError."""
    boards = list(map(Board.open, boards_in(args.board) or [args.board]))
    base = (args.url or ("" if len(boards) > 1 else boards[0].settings.url)).rstrip("/")
    if not base:
        raise UsageError("the address of the server is missing\n  set it with --url URL, or with `url` in board.yaml")
    person = attributes(args, "name email role team student_id")
    invited = _listed(args.list) if args.list else [(0, person, {})]
    store = shared_accounts(args.board) if boards_in(args.board) else accounts_of(boards[0]).database
    teams = []
    for board in boards:
        with board.reading() as connection:
            teams.append(submitter_names(connection))
    links: dict[str, accounts.Invitation] = {}
    problems, notes = list[str](), list[str]()
    with store.writing() as connection:
        for line, values, columns in invited:
            try:
                made = []
                for board, others in zip(boards, teams, strict=True):
                    people = People(connection, board.key)
                    link = accounts.invite(people, now=now(), others=others, renew=not line, **values)
                    if link.secret:
                        accounts.log(people, ORGANISER, "invited", link.account.label, link.detail, now=now())
                    made.append(link)
                member = made[0].account
                if member.id in links:
                    raise RefusedError(f"`{visible(member.label)}` is in an earlier line, too")
            except (RefusedError, RejectedError, UsageError) as error:
                if not line:
                    raise
                problems.append(f"line {line}: " + str(error).replace("\n ", ";"))
                continue
            secret = made[0].secret
            if len(made) > 1 and any(link.secret for link in made):
                secret = accounts.link_for_boards(People(connection, ""), [link.account for link in made], now())
            links[member.id] = made[0]._replace(secret=secret, columns=columns)
            notes += [link.note for link in made if link.note]
        if problems:
            raise RefusedError("\n  ".join([f"nobody in {named(args.list)} was invited", *problems]))
    new = [link for link in links.values() if link.secret]
    if kept := len(links) - len(new):
        notes.append(f"{counted(kept, 'person', 'people')} of the list had an account before, and got no new link")
    terminal.note(*notes)
    if args.list:
        sys.stdout.writelines(accounts.links_table(new, base).csv())
    else:
        sys.stdout.write(f"{base}/invitation/{new[0].secret}\n")


def _listed(path: str) -> list[tuple[int, dict[str, str], dict[str, str]]]:
    """Return the line, the values and the other columns of each person in a class list; raises UnreadableFileError.

    It is CSV with a header, as spreadsheets and learning platforms write it, with commas, semicolons or tabs.
    """
    text = re.sub("\ufeff?(sep=.\r?\n)?", "", read_text(path), count=1)  # Excel's mark, and its line on the delimiter
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    meanings = {spelling: key for key, spellings in LIST_COLUMNS.items() for spelling in spellings}
    header = list(reader.fieldnames or ())
    keys = [meanings.get("".join(filter(str.isalnum, name.casefold())), name) for name in header]
    if "name" not in keys and not {"first", "last"} <= set(keys):
        reason = f"it needs the column `name`, or `First name` and `Last name`; its first line has {some_of(header)}"
        raise UnreadableFileError(path=path, reason=reason)
    for key in LIST_COLUMNS:
        same = [name for column, name in zip(keys, header, strict=True) if column == key]
        if len(same) > 1:
            raise UnreadableFileError(path=path, reason=f"it has several columns for `{key}`: {some_of(same)}")
    if unused := [key for key in keys if key not in LIST_COLUMNS]:
        terminal.note(f"columns of {named(path)} that are only copied: {some_of(unused)}")
    reader.fieldnames, people = keys, []
    for row in reader:
        if None in row or None in row.values():
            reason = f"line {reader.line_num}: it needs one value for each column"
            raise UnreadableFileError(path=path, reason=reason)
        values = {key: row.pop(key, "").strip() for key in LIST_COLUMNS}
        full_name = f"{values.pop('first')} {values.pop('last')}".strip()
        people.append((reader.line_num, values | {"name": values["name"] or full_name}, row))
    return people


@command(
    "board token",
    "Print a new token of an account, for geval submit and other programs; it is not shown again.",
    """\
  geval board token gazette-board anna
""",
    BOARD,
    NAME,
    option("--scope", choices=secrets.SCOPES, default=secrets.SUBMIT, help="what it may do"),
    option("--days", type=int, default=secrets.DAYS[secrets.TOKEN], metavar="N", help="how long it is valid"),
)
def run_token(args: argparse.Namespace) -> None:
    """Run ``geval board token``; raises GevalError."""
    with accounts_of(Board.open(args.board)).writing() as people:
        account = accounts.account_named(people, args.name)
        secret = sign_in.make_token(
            people, account, now=now(), name="by the organiser", scope=args.scope, days=args.days
        )
        accounts.log(people, ORGANISER, "made a token", account.label, now=now())
    sys.stdout.write(f"{secret}\n")


@command(
    "board close",
    "Close accounts: sessions, tokens, and links that they made end at once; submissions stay.",
    """\
  geval board close gazette-board anna "Bob Smith (Team 7)"
""",
    BOARD,
    option("names", nargs="+", metavar="NAME", help="the name of an account"),
)
def run_close(args: argparse.Namespace) -> None:
    """Run ``geval board close``; raises GevalError."""
    with accounts_of(Board.open(args.board)).writing() as people:
        members = [accounts.account_named(people, name) for name in args.names]
        for member in members:
            accounts.close(people, member, now())
            accounts.log(people, ORGANISER, "closed", member.label, now=now())
        is_theirs = accounts.A.made_by.in_([member.id for member in members])
        invited = [f"`{visible(account.label)}`" for account in accounts.all_accounts(people, is_theirs)]
    sys.stdout.writelines(f"{visible(member.label)} is closed\n" for member in members)
    if invited:
        terminal.note(f"still open, but invited by them: {', '.join(invited)}")


@command(
    "board open",
    "Open a closed account again, perhaps with another name, e-mail address or role.",
    """\
  geval board open gazette-board anna
  geval board open gazette-board anna --email anna@uni.example
""",
    BOARD,
    NAME,
    option("--rename", default="", metavar="NAME", help="another name for the account"),
    EMAIL,
    ROLE,
)
def run_open(args: argparse.Namespace) -> None:
    """Run ``geval board open``; raises GevalError."""
    with accounts_of(Board.open(args.board)).writing() as people:
        account = accounts.account_named(people, args.name, closed=True)
        account = accounts.reopen(people, account, now(), name=args.rename, email=args.email, role=args.role)
        accounts.log(people, ORGANISER, "opened", account.label, now=now())
    terminal.say(str(account))


@command(
    "board team",
    "Rename a team, or move a person into it.",
    """\
  geval board team gazette-board "Team 7" --rename "Team Seven"
  geval board team gazette-board "Team 8" --add anna       with the tokens and sessions of anna
""",
    BOARD,
    option("team", metavar="TEAM", help="the name of the team"),
    one_of(
        option("--rename", metavar="NAME", help="give the team another name"),
        option("--add", metavar="NAME", help="move the account of this name into the team"),
        required=True,
    ),
)
def run_team(args: argparse.Namespace) -> None:
    """Run ``geval board team``; raises GevalError."""
    board = Board.open(args.board)
    store = accounts_of(board)
    if args.rename is not None:
        rename(board, store, args.team, args.rename, now())
        terminal.say(f"{visible(args.team)} is now {visible(args.rename)}")
        return
    with board.reading() as connection:
        others = submitter_names(connection)
    with store.writing() as people:
        account = accounts.account_named(people, args.add)
        accounts.move(people, account, args.team, now(), others)
        accounts.log(people, ORGANISER, "moved", account.label, args.team, now=now())
    terminal.say(f"{visible(account.label)} is now in {visible(args.team)}")


@command(
    "board disqualify",
    "Withdraw all submissions of teams, and close their accounts.",
    """\
  geval board disqualify gazette-board "Team 7" "Team 8" --reason "copied each other's outputs"
""",
    BOARD,
    TEAMS,
    REASON,
)
def run_disqualify(args: argparse.Namespace) -> None:
    """Run ``geval board disqualify``; raises GevalError."""
    board = Board.open(args.board)
    names = disqualify(board, accounts_of(board), args.teams, args.reason, now())
    sys.stdout.writelines(f"{visible(name)} is disqualified\n" for name in names)
