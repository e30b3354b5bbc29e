"""``geval board scan``: what is new in a folder of submissions is added."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from geval_py.board.database.schema import FAILED
from geval_py.board.database.store import Board
from geval_py.board.operations.receipts import REFUSED
from geval_py.board.operations.submissions import scan
from geval_py.cli.board.words import add_format, moment, new_parser, now, write_list, write_receipts
from geval_py.cli.terminal import ProgressBar, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.board.operations.receipts import Receipt
    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board scan gazette-board uploads
  geval board scan gazette-board uploads --at "2027-01-31 23:59 Europe/Warsaw"
"""
_STATUS = "Exit status: 0 fine, rejected ones too, 1 one failed, or was refused, 2 the command line is at fault."


def make_parser() -> QuietParser:
    """Make the parser of ``geval board scan``."""
    what = "Add each sub-folder and archive of a folder that is new, or changed; its name is its submitter's."
    parser = new_parser("scan", what, _EXAMPLES, _STATUS)
    parser.add_argument("folder", metavar="FOLDER", help="the folder with the submissions")
    parser.add_argument("--at", metavar="TIME", help="when they arrived, with its zone (default: now)")
    add_format(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    board, at = Board.open(given.board), moment("--at", given.at)
    with ProgressBar("scanning", unit="items") as progress:
        receipts = scan(board, given.folder, now=now(), at=at, progress=progress)
    if given.format == "json":
        write_receipts(receipts, given.format)
    else:
        write_list(receipts)
    note(_summary(receipts))
    return int(any(receipt.state in (FAILED, REFUSED) for receipt in receipts))


def _summary(receipts: Sequence[Receipt]) -> str:
    states = Counter(receipt.state for receipt in receipts)
    return ", ".join(f"{count} {state}" for state, count in states.items()) or "nothing is new"
