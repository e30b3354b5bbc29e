"""``geval board verify``: a published site is rebuilt from an export, and what differs is said."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from geval_py.board.site.verification import verify
from geval_py.cli.parsers import QuietParser

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG = """\
examples:
  geval board export gazette-board gazette-board.tar.zst
  geval board verify public gazette-board.tar.zst

Exit status: 0 the site is that of the board, 1 something differs or the data is at fault, 2 the command line is at
fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board verify``."""
    what = "Rebuild a published site from an export of its board, and say which files differ."
    parser = QuietParser(prog="geval board verify", description=what, epilog=_EPILOG)
    parser.add_argument("site", metavar="SITE", help="the folder of the site")
    parser.add_argument("file", metavar="FILE", help="what geval board export wrote")
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    found = verify(given.site, given.file)
    sys.stdout.writelines(f"{difference}\n" for difference in found)
    return 1 if found else 0
