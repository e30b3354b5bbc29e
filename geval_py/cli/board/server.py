"""``geval board serve``, ``work``, ``invite``, ``token`` and others: the board's server and its accounts."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from ipaddress import ip_network
from tempfile import TemporaryDirectory
from typing import Any

from geval_py.board.database.store import Board, boards_in
from geval_py.board.intake.identity import casefolded, skeletons
from geval_py.board.people import accounts, secrets, sign_in
from geval_py.board.people.accounts import RefusedError
from geval_py.board.people.schema import ORGANISER, ROLES
from geval_py.board.people.store import People, accounts_of, shared_accounts
from geval_py.board.people.teams import change_team, disqualify, submitter_names
from geval_py.board.ranking.disclosure import changing
from geval_py.board.settings import read_text
from geval_py.board.submission import RejectedError
from geval_py.cli import terminal
from geval_py.cli.board import BOARD, now, private_files
from geval_py.cli.commands import option, parser_maker, switch
from geval_py.errors import GevalError, UnreadableFileError, UsageError
from geval_py.text import named, visible

WITH_SERVER = "GEVAL_BOARD_WITH_SERVER"  # a variable, set for the worker that a server starts
SHUTDOWN_SECONDS = 30  # for which uploads may finish
RESTART_SECONDS = 1  # before a worker that died is followed by another
LIST_COLUMNS = {  # of a class list, by how spreadsheets and learning platforms write them, without other signs
    "name": ("name", "fullname"),
    "first": ("firstname", "givenname"),
    "last": ("lastname", "surname", "familyname"),
    "email": ("email", "emailaddress", "mail"),
    "team": ("team", "group"),
    "role": ("role",),
    "student_id": ("studentid", "idnumber", "matriculationnumber"),
}
PROGRAM = "import sys; from geval_py.__main__ import main; sys.exit(main())"
OLD_SETTINGS = "boards.yaml"  # of earlier versions, beside several boards


def networks(written: str) -> list[str]:
    """Read addresses and networks with commas between; raises ArgumentTypeError."""
    try:
        return [str(ip_network(one.strip())) for one in written.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; write it as 127.0.0.1 or 10.0.0.0/8") from None


NAME = option("name", metavar="NAME", help="the name of the account")


make_serve_parser = parser_maker(
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
    option("--url", default="", metavar="URL", help="the public address (default: that of board.yaml)"),
    switch("--shared", help="serve a folder that other users of this machine can read"),
    option(
        "--proxies",
        type=networks,
        default=(),
        metavar="LIST",
        help="the addresses or networks of your reverse proxies, with commas, whose X-Forwarded-For is believed",
    ),
    option("--workers", type=int, metavar="N", help="jobs at once; 0 for no worker (default: the number of cores)"),
)


@private_files()
def run_serve(args: argparse.Namespace) -> None:
    """Run ``geval board serve`` until it is interrupted; raises GevalError."""
    import uvicorn

    from geval_py.board.server.app import application
    from geval_py.board.server.context import ServerContext
    from geval_py.board.server.openid import check_secrets

    with TemporaryDirectory(prefix="geval-board-serve-", ignore_cleanup_errors=True) as place:
        local = f"http://{args.host}:{args.port}"
        if os.path.exists(os.path.join(args.board, OLD_SETTINGS)):
            hint = "write its `server` into each board.yaml, and give its `url` as --url"
            raise UsageError(message=f"{named(os.path.join(args.board, OLD_SETTINGS))} is not read\n  {hint}")
        server = ServerContext(args.board, place, url=args.url, local=local)
        if not args.shared and sys.platform != "win32" and os.stat(args.board).st_mode & 0o007:
            hint = f"chmod 700 {visible(args.board)}, or allow it with --shared"
            raise UsageError(message=f"others can read the board in {named(args.board)}\n  {hint}")
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
        terminal.note(f"serving {named(args.board)} at {server.url or local}; press Ctrl-C to stop")
        with nullcontext() if args.workers == 0 else _worker_beside(args.board, args.workers):
            uvicorn.Server(config).run()


@contextmanager
def _worker_beside(board: str, workers: int | None) -> Iterator[None]:
    """Run a worker in a process of its own during the block; one that dies is followed by another.

    Its standard input is a pipe from this process, so that it notices if this process is killed.
    """
    more = [] if workers is None else ["--workers", str(workers)]
    words = [sys.executable, "-I", "-c", PROGRAM, "board", "work", board, *more]
    running: list[subprocess.Popen[bytes]] = []
    ending = threading.Event()

    def keep() -> None:
        while not ending.is_set():
            running[:] = [subprocess.Popen(words, stdin=subprocess.PIPE, env=os.environ | {WITH_SERVER: "1"})]
            running[0].wait()
            ending.wait(RESTART_SECONDS)

    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ending.set()
        while keeper.is_alive():  # it may be starting one
            for one in running:
                one.terminate()
            keeper.join(0.2)


make_work_parser = parser_maker(
    "board work",
    "Check and score uploads until interrupted. Several workers may run at once, also on other machines.",
    """\
  geval board work gazette-board
  geval board work gazette-board --workers 4
""",
    BOARD,
    option("--workers", type=int, metavar="N", help="jobs at once (default: the number of cores)"),
    switch("--once", help="stop when no jobs are waiting"),
)


@private_files()
def run_work(args: argparse.Namespace) -> None:
    """Run ``geval board work``; raises GevalError."""
    from geval_py.board.server.worker import Worker

    worker = Worker(args.board, at_once=args.workers)

    def stop_at_end_of_input() -> None:
        sys.stdin.buffer.read()
        worker.stop()

    if WITH_SERVER in os.environ:  # the server, which holds the other end of standard input
        threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    before = signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    try:
        done = worker.run(until_idle=args.once)
    finally:
        signal.signal(signal.SIGTERM, before)
    if args.once:
        terminal.note("1 job done" if done == 1 else f"{done} jobs done")


make_invite_parser = parser_maker(
    "board invite",
    "Print a link that creates an account, or signs in to an existing one. It works once, within two weeks.",
    """\
  geval board invite gazette-board anna --url https://board.example.org
  geval board invite gazette-board "Bob Smith" --team "Team 7"
  geval board invite gazette-board --list students.csv    with the columns name, email, team, role
""",
    BOARD,
    option("name", nargs="?", metavar="NAME", help="the name of the account"),
    option("--list", metavar="FILE", help="invite everyone in a CSV file, and print a CSV with their links"),
    option("--email", default="", metavar="ADDRESS", help="the e-mail address, which identifies the person"),
    option("--role", choices=ROLES, default="", help="the role of the person (default: submitter)"),
    option("--team", default="", metavar="NAME", help="the team for which the person submits (default: NAME)"),
    option("--url", default="", metavar="URL", help="the address of the server (default: that of board.yaml)"),
)


@private_files()
def run_invite(args: argparse.Namespace) -> None:
    """Run ``geval board invite``; raises GevalError."""
    if (args.name is None) == (args.list is None):
        raise UsageError(message="give the name of a person to invite, or a CSV file with --list FILE")
    boards = [Board.open(folder) for folder in boards_in(args.board) or [args.board]]
    base = (args.url or ("" if len(boards) > 1 else boards[0].settings.url)).rstrip("/")
    if not base:
        raise UsageError(
            message="the address of the server is missing\n  set it with --url URL, or with `url` in board.yaml"
        )
    own = {"name": args.name, "email": args.email, "role": args.role, "team": args.team}
    people: list[tuple[int, dict[str, Any], dict[str, str]]] = [(0, own, {})]
    if args.list is not None:
        people = list(_listed(args.list))
    seen: dict[tuple[str, object], tuple[int, str]] = {}
    problems, links, notes = [], [], []
    store = shared_accounts(args.board) if boards_in(args.board) else accounts_of(boards[0]).database
    others = []
    for board in boards:
        with board.reading() as connection:
            others.append(submitter_names(connection))
    with store.writing() as connection:
        for line, one, _ in people:
            try:
                _check_listed(seen, line, one)
                made = []
                for board, teams in zip(boards, others, strict=True):
                    here = People(connection, board.key)
                    made.append(accounts.invite(here, now=now(), others=teams, **one))
                    accounts.log(here, ORGANISER, "invited", made[-1].account.label, made[-1].detail, now=now())
            except (RefusedError, RejectedError, UsageError) as error:
                if not line:
                    raise
                problems.append(f"line {line}: " + str(error).replace("\n ", ";"))
                continue
            if len(made) > 1:
                members = [invitation.account for invitation in made]
                secret = accounts.link_for_boards(People(connection, ""), members, now())
                made = [invitation._replace(secret=secret) for invitation in made]
            links.append(made[0])
            notes += [invitation.note for invitation in made]
        if problems:
            raise RefusedError("\n  ".join([f"nobody in {named(args.list)} was invited", *problems]))
    for note in filter(None, notes):
        terminal.note(note)
    if args.list is None:
        sys.stdout.write(f"{base}/invitation/{links[0].secret}\n")
        return
    sys.stdout.writelines(accounts.links_table(links, base, [more for *_, more in people]).csv())


def _listed(path: str) -> Iterator[tuple[int, dict[str, Any], dict[str, str]]]:
    """Yield the line, the values and the other columns of each person in a class list; raises UnreadableFileError.

    It is CSV with a header, as spreadsheets and learning platforms write it, with commas, semicolons or tabs.
    """
    import csv
    import io

    text = read_text(path).removeprefix("\ufeff")
    header = text.partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns = {name: "".join(filter(str.isalnum, name.casefold())) for name in reader.fieldnames or [] if name}
    known = {
        key: next((name for name, plain in columns.items() if plain in spellings), "")
        for key, spellings in LIST_COLUMNS.items()
    }
    if not known["name"] and not (known["first"] and known["last"]):
        has = ", ".join(f"`{visible(name)}`" for name in columns)
        raise UnreadableFileError(path=path, reason=f"the column `name` is missing: its first line has {has}")
    for row in reader:
        values = {key: (row[name] or "").strip() if name else "" for key, name in known.items()}
        first, last = values.pop("first"), values.pop("last")
        values["name"] = values["name"] or f"{first} {last}".strip()
        if None in row or not values["name"] or None in row.values():
            raise UnreadableFileError(
                path=path, reason=f"line {reader.line_num}: it needs a name, and one value for each column"
            )
        yield reader.line_num, values, {name: row[name] for name in columns if name not in known.values()}


def _check_listed(seen: dict[tuple[str, object], tuple[int, str]], line: int, one: Mapping[str, str]) -> None:
    """Raise RefusedError for a person of a list whose name, team or address is, or looks like, that of another line.

    What was ``seen`` in earlier lines is added to. Raises RejectedError for a name that is not allowed.
    """
    name, email = one["name"], one["email"]
    team = one["team"] or name
    marks: list[tuple[str, str, object]] = [("e-mail address", email, email.lower())] if email else []
    marks += [(what, value, mark) for what, value in (("name", name), ("team", team)) for mark in skeletons(value)]
    for what, value, mark in marks:
        other, before = seen.setdefault((what, mark), (line, value))
        is_same = before.casefold() == value.casefold()
        if other != line and not (what == "team" and is_same):
            like = f"is in line {other} already" if is_same else f"looks like `{visible(before)}` in line {other}"
            raise RefusedError(f"the {what} `{visible(value)}` {like}")


make_token_parser = parser_maker(
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
        more = {"now": now(), "scope": args.scope, "days": args.days}
        secret = sign_in.make_token(people, account, name="by the organiser", **more)
        accounts.log(people, ORGANISER, "made a token", account.label, now=now())
    sys.stdout.write(f"{secret}\n")


make_close_parser = parser_maker(
    "board close",
    "Close an account and unused invitations by it: sessions and tokens end at once; submissions stay.",
    """\
  geval board close gazette-board anna
  geval board close gazette-board --team "Team 7"
""",
    BOARD,
    option("name", nargs="?", metavar="NAME", help="the name of the account"),
    option("--team", metavar="NAME", help="close all accounts of this team"),
)


def run_close(args: argparse.Namespace) -> None:
    """Run ``geval board close``; raises GevalError."""
    if (args.name is None) == (args.team is None):
        raise UsageError(message="give the name of an account to close, or a team with --team NAME")
    with accounts_of(Board.open(args.board)).writing() as people:
        if args.team is None:
            members = [accounts.account_named(people, args.name)]
        elif not (members := accounts.members_of(people, args.team)):
            raise RefusedError(f"there is no account of a team `{visible(args.team)}`")
        invited: dict[str, str] = {}
        for member in members:
            invited |= {other.id: other.label for other in accounts.close(people, member, now())}
            accounts.log(people, ORGANISER, "closed", member.label, now=now())
    left = [f"`{visible(label)}`" for key, label in invited.items() if key not in {one.id for one in members}]
    if left:
        terminal.note(f"still open, but invited by {visible(args.name or args.team)}: {', '.join(left)}")


make_open_parser = parser_maker(
    "board open",
    "Open a closed account again, and the unused invitations that were closed with it.",
    """\
  geval board open gazette-board anna
""",
    BOARD,
    NAME,
)


def run_open(args: argparse.Namespace) -> None:
    """Run ``geval board open``; raises GevalError."""
    with accounts_of(Board.open(args.board)).writing() as people:
        accounts.log(people, ORGANISER, "opened", accounts.reopen(people, args.name), now=now())


make_team_parser = parser_maker(
    "board team",
    "Rename a team, merge it into another one, or move a person into it or out of it.",
    """\
  geval board team gazette-board "Team 7" --rename "Team Seven"
  geval board team gazette-board "Team 7" --merge-into "Team 8"
  geval board team gazette-board "Team 8" --add anna       with the tokens and sessions of anna
  geval board team gazette-board "Team 8" --remove anna    whose tokens and sessions end
""",
    BOARD,
    option("team", metavar="TEAM", help="the name of the team"),
    option("--rename", metavar="NAME", help="give the team another name"),
    option("--merge-into", metavar="TEAM", help="give its submissions and members to another team"),
    option("--add", metavar="NAME", help="move the account of this name into the team"),
    option("--remove", metavar="NAME", help="take the account of this name out of the team"),
)


def run_team(args: argparse.Namespace) -> None:
    """Run ``geval board team``; raises GevalError."""
    new, person = args.rename or args.merge_into, args.add or args.remove
    if sum(map(bool, (args.rename, args.merge_into, args.add, args.remove))) != 1:
        raise UsageError(message="name one change: --rename NAME, --merge-into TEAM, --add NAME or --remove NAME")
    board = Board.open(args.board)
    store = accounts_of(board)
    if new:
        with changing(board, now()) as connection:
            change_team(connection, store, args.team, new, merge=args.rename is None)
    with board.reading() as connection:
        others = submitter_names(connection)
    with store.writing() as people:
        if new:
            what = "renamed" if args.rename else "merged"
            accounts.log(people, ORGANISER, what, args.team, new, now=now())
            return
        account = accounts.account_named(people, person)
        if args.remove and casefolded(account.team or "-") != casefolded(args.team):
            raise RefusedError(f"`{visible(account.label)}` is not in the team `{visible(args.team)}`")
        team = args.team if args.add else ""
        accounts.move(people, account, team, now(), others)
        accounts.log(people, ORGANISER, "moved", account.label, team, now=now())


make_disqualify_parser = parser_maker(
    "board disqualify",
    "Withdraw all submissions of teams, and close their accounts.",
    """\
  geval board disqualify gazette-board "Team 7" "Team 8" --reason "copied each other's outputs"
""",
    BOARD,
    option("teams", nargs="+", metavar="TEAM", help="the name of a team, as on the leaderboard"),
    option("--reason", required=True, metavar="TEXT", help="the reason, which only the organiser sees"),
)


def run_disqualify(args: argparse.Namespace) -> None:
    """Run ``geval board disqualify``; raises GevalError."""
    board = Board.open(args.board)
    names = disqualify(board, accounts_of(board), args.teams, args.reason, now())
    sys.stdout.writelines(f"{visible(name)} is disqualified\n" for name in names)
