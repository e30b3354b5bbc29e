"""``geval board withdraw``: a submission is hidden, and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.board.database.store import Board
from geval_py.board.operations.submissions import withdraw
from geval_py.cli.board.words import add_format, new_parser, now, write_receipts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board withdraw gazette-board 3f2a90c1d7e4 --reason "trained on the test set"
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board withdraw``."""
    what = "Hide a submission from rankings and pages, with a reason; it stays stored, and counts for the quota."
    parser = new_parser("withdraw", what, _EXAMPLES)
    parser.add_argument("code", metavar="CODE", help="the submission's code, or the beginning of it")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for the organiser")
    add_format(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    write_receipts([withdraw(Board.open(given.board), given.code, given.reason, now())], given.format)
    return 0
