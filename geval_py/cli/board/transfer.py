"""``geval board init``, ``backup`` and ``restore``: create a board, save it, and rebuild it."""

from __future__ import annotations

import argparse
import os

from geval_py.board.backups import back_up, restore
from geval_py.board.database.store import settings_path
from geval_py.board.operations.creation import create
from geval_py.cli import terminal
from geval_py.cli.board import BOARD, now, private_files
from geval_py.cli.commands import command, option, switch
from geval_py.errors import UsageError
from geval_py.text import named

DATABASE = option(
    "--database", metavar="URL", help="an empty PostgreSQL database, by its URL, or a file (default: board.sqlite)"
)
FILE = option("file", metavar="FILE", help="the archive, compressed by its ending: .tar, .tar.zst, .tar.xz")


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
    if os.path.lexists(args.file) and not args.force:
        there = f"{named(args.file)} is there already, and is left as it is"
        raise UsageError(message=f"{there}\n  --force writes over it")
    back_up(args.board, args.file, now=now())


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
    restore(args.file, args.board, database=args.database)
