"""``geval help``: what ``geval`` does, or a command of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from geval_py.cli import module_of, parsers
from geval_py.errors import UsageError
from geval_py.reading.meanings import command_meant
from geval_py.reading.options import COMMANDS
from geval_py.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence


def make_parser() -> parsers.QuietParser:
    """Make the parser of ``geval help``."""
    parser = parsers.QuietParser(
        prog="geval help", description="Show what geval does, or one of its commands, and the options."
    )
    parser.add_argument(
        "command", nargs="?", metavar="COMMAND", help=f"{', '.join(COMMANDS)} (default: geval itself)"
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this and exit")
    return parser


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises UsageError."""
    given = make_parser().read(words)
    sys.stdout.write(parser_of("help" if given.help else given.command).format_help())
    return 0


def parser_of(command: str | None) -> parsers.QuietParser:
    """Make the parser of a command, or of the plain command line; raises UsageError if there is no such command."""
    if command is None:
        return parsers.make_parser()
    if command not in COMMANDS:
        raise UsageError(message=_unknown(command))
    parser: parsers.QuietParser = module_of(command).make_parser()
    return parser


def _unknown(command: str) -> str:
    meant = command_meant(command, COMMANDS)
    advice = "" if meant is None else f"did you mean {meant}? "
    return f"there is no command `{visible(command)}`\n  {advice}the commands are {', '.join(COMMANDS)}"
