"""``geval board init``: a new board for a challenge."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from geval_py.board.database.store import settings_path
from geval_py.board.operations.creation import create
from geval_py.cli.board.words import new_parser
from geval_py.cli.terminal import note
from geval_py.text import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board init gazette-board --challenge gazette --answers hidden
  geval board init gazette-board --challenge gazette --answers hidden \\
      --database postgresql://board@db.example.org/gazette
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board init``."""
    what = "Make a board: board.yaml, in which every setting is explained, and a database for the submissions."
    parser = new_parser("init", what, _EXAMPLES)
    parser.add_argument("--challenge", required=True, metavar="DIR", help="the challenge's folder")
    parser.add_argument(
        "--answers",
        metavar="DIR",
        help="the folder with test-A/expected.tsv (default: the challenge, if it is there)",
    )
    parser.add_argument(
        "--database", metavar="URL", help="of PostgreSQL, or a file beside board.yaml (default: board.sqlite)"
    )
    parser.add_argument("--title", metavar="TEXT", help="what pages are headed with (default: the challenge's title)")
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    board = create(
        given.board, challenge=given.challenge, answers=given.answers, database=given.database, title=given.title
    )
    if board.settings.answers == board.settings.challenge:
        note(
            "the answers are taken from the challenge itself: publish it without them, or name others with --answers"
        )
    tests = ", ".join(test.name for test in board.settings.tests)
    sys.stdout.write(
        f"The board is in {named(given.board)}: {tests}, ranked by {board.settings.metric}. Now\n"
        f"  edit {named(settings_path(given.board))}: deadlines, submissions a day, digits that are disclosed\n"
        "  geval board scan or geval board add adds submissions, geval board show shows the leaderboard\n"
    )
    return 0
