"""``geval board note``: a public remark on a submission."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.board.database.store import Board
from geval_py.board.operations.submissions import note
from geval_py.cli.board.words import add_format, new_parser, write_receipts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board note gazette-board 3f2a90c1d7e4 "uses data that others had not"
  geval board note gazette-board 3f2a90c1d7e4 ""     takes the remark away
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board note``."""
    parser = new_parser("note", "Put a remark on a submission, which everyone sees beside it.", _EXAMPLES)
    parser.add_argument("code", metavar="CODE", help="the submission's code, or the beginning of it")
    parser.add_argument("remark", metavar="TEXT", help="the remark, in place of an earlier one")
    add_format(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    write_receipts([note(Board.open(given.board), given.code, given.remark)], given.format)
    return 0
