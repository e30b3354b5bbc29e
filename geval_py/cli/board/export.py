"""``geval board export``: a board as one archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.board.database.store import Board
from geval_py.board.exports import export
from geval_py.cli.board.words import new_parser, now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board export gazette-board gazette-board.tar.zst
  geval board export gazette-board results.tar.zst --public
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board export``."""
    what = "Write a board as one tar archive: its database, its settings, the challenge and the answers."
    parser = new_parser("export", what, _EXAMPLES)
    parser.add_argument(
        "file", metavar="FILE", help="the archive, packed as its ending says: .tar, .tar.zst, .tar.xz"
    )
    parser.add_argument(
        "--public", action="store_true", help="no answers, no files, and no more of scores than is disclosed"
    )
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is not None:
        export(Board.open(given.board), given.file, now=now(), public=given.public)
    return 0
