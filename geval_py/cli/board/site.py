"""``geval board site``: the board as a folder of static pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from geval_py.board.store import Board
from geval_py.cli.parsers import QuietParser
from geval_py.text import visible

_EPILOG = """\
examples:
  geval board site gazette-board -o public
  geval board site gazette-board -o private --organiser

The folder is whole in itself: any web server can show it, and a browser that opens index.html. An earlier site in
it stands until the new one is whole.

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board site``."""
    parser = QuietParser(
        prog="geval board site",
        description="Write the board as static pages: leaderboards, submissions, charts, data, a feed.",
        epilog=_EPILOG,
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add("board", metavar="BOARD", help="the board's folder")
    add("-o", "--output", metavar="DIR", required=True, help="the folder to write: new, empty, or with an earlier site")
    add("--organiser", action="store_true", default=False, help="also show outputs that are much alike; not to publish")
    add("-h", "--help", action="store_true", help="show this and exit")
    return parser


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    if {"-h", "--help"}.intersection(words):
        sys.stdout.write(make_parser().format_help())
        return 0
    given = make_parser().read(words)
    from geval_py.board.site import build

    number = build(Board.open(given.board), given.output, now=datetime.now(UTC), organiser=given.organiser)
    print(visible(f"{given.output}: {number} files"))
    return 0
