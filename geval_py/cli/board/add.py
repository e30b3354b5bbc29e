"""``geval board add``: submissions are received, checked, scored and stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.board.database.store import Board
from geval_py.board.operations.submissions import add
from geval_py.cli.board.words import add_format, moment, new_parser, now, write_receipts
from geval_py.cli.terminal import show_error
from geval_py.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board add gazette-board uploads/ann
  geval board add gazette-board bob.zip --submitter "Bob Smith" --at "2027-01-31 23:10 Europe/Warsaw"
  geval board add gazette-board git+https://example.org/team.git@main --submitter "Team 7"
  geval board add gazette-board unigram.tar.xz --baseline
"""
_STATUS = """\
Exit status: 0 all are scored, 1 one was rejected, failed, withdrawn before, or refused by its quota, 2 the command
line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board add``."""
    what = "Check and score submissions, each in a process of its own, store them, and print their receipts."
    parser = new_parser("add", what, _EXAMPLES, _STATUS)
    parser.add_argument(
        "submissions", nargs="+", metavar="SUBMISSION", help="a folder, an archive, or git+URL@BRANCH"
    )
    own_name = "the submission's own name, for a branch its whole repository"
    parser.add_argument("--submitter", metavar="NAME", help=f"who sent it (default: {own_name})")
    parser.add_argument("--at", metavar="TIME", help="when it arrived, with its zone (default: now)")
    parser.add_argument("--baseline", action="store_true", help="it stands in the table without a place")
    add_format(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError. One that is refused does not stop the others."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    board, at = Board.open(given.board), moment("--at", given.at)
    receipts = []
    for source in given.submissions:
        try:
            receipts.append(add(board, source, submitter=given.submitter, at=at, baseline=given.baseline, now=now()))
        except DataError as error:
            show_error(error)
    write_receipts(receipts, given.format)
    return int(len(receipts) < len(given.submissions) or not all(receipt.is_fine for receipt in receipts))
