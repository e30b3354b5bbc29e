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

    from geval_py.cli.parsers import Group


def make_parser() -> parsers.QuietParser:
    """Make the parser of ``geval help``."""
    parser = parsers.QuietParser(
        prog="geval help", description="Show what geval does, or one of its commands, and the options."
    )
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help=f"{', '.join(COMMANDS)} (default: geval itself)"
    )
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises UsageError."""
    given = make_parser().understood(words)
    if given is not None:
        sys.stdout.write(parser_of(*given.command).format_help())
    return 0


def group_of(command: str) -> Group | None:
    """Give the sub-commands of a command; None where it has none."""
    group: Group | None = getattr(module_of(command), "GROUP", None)
    return group


def parser_of(*command: str) -> parsers.QuietParser:
    """Make the parser of a command, of a sub-command, or of the plain command line.

    Raises UsageError where there is no such command, or its extra is not installed.
    """
    if not command:
        return parsers.make_parser()
    name, *names = command
    group = group_of(name) if name in COMMANDS else None
    if group is not None and len(names) == 1:
        return group.parser_of(names[0])
    if name not in COMMANDS or names:
        raise UsageError(message=_unknown(" ".join(command)))
    parser: parsers.QuietParser = module_of(name).make_parser()
    return parser


def _unknown(command: str) -> str:
    meant = command_meant(command, COMMANDS)
    advice = "" if meant is None else f"did you mean {meant}? "
    return f"there is no command `{visible(command)}`\n  {advice}the commands are {', '.join(COMMANDS)}"
