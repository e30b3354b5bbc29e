"""``geval help``: what ``geval`` does, or a command of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from geval_py.cli import options, parsers

if TYPE_CHECKING:
    from collections.abc import Sequence


def make_parser() -> parsers.QuietParser:
    """Make the parser of ``geval help``."""
    parser = parsers.QuietParser(
        prog="geval help", description="Show what geval does, or one of its commands, and the options."
    )
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help=f"{', '.join(options.COMMANDS)} (default: geval itself)"
    )
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; returns the exit status, raises UsageError."""
    given = make_parser().understood(words)
    if given is not None:
        sys.stdout.write(parsers.parser_of(*given.command).format_help())
    return 0
