"""``geval board site``: the board as a folder of static pages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from geval_py.board.database.store import Board
from geval_py.cli.board.words import new_parser, now
from geval_py.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.cli.parsers import QuietParser

_EXAMPLES = """\
  geval board site gazette-board -o public
  geval board site gazette-board -o private --organiser

The folder is whole in itself: any web server can show it, and a browser that opens index.html. An earlier site in
it stands until the new one is whole.
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board site``."""
    what = "Write a board as static pages: leaderboards, submissions, charts, data, a feed."
    parser = new_parser("site", what, _EXAMPLES)
    add = parser.add_argument
    add("-o", "--output", metavar="DIR", required=True, help="the folder: new, empty, or with an earlier site")
    add(
        "--organiser", action="store_true", help="also show outputs that are much alike, which is not to be published"
    )
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is not None:
        from geval_py.board.site import build

        number = build(Board.open(given.board), given.output, now=now(), organiser=given.organiser)
        sys.stdout.write(f"{visible(given.output)}: {number} files\n")
    return 0
