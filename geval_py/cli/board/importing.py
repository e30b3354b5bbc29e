"""``geval board import``: a board is made of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.board.exports import import_board
from geval_py.cli.board.words import new_parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board import gazette-board gazette-board.tar.zst
  geval board import gazette-board gazette-board.tar.zst --database postgresql://board@db.example.org/gazette
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board import``."""
    parser = new_parser("import", "Make a new board of what geval board export wrote.", _EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the archive")
    parser.add_argument("--database", metavar="URL", help="an empty PostgreSQL database (default: a file)")
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is not None:
        import_board(given.file, given.board, database=given.database)
    return 0
