"""``geval help``: what ``geval`` does, or a command of it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from geval_py.cli import options, parsers, suggestions
from geval_py.errors import UsageError
from geval_py.text import visible

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
        sys.stdout.write(parser_of(*given.command).format_help())
    return 0


def group_of(command: str) -> parsers.Group | None:
    """Return the sub-commands of a command; None where it has none."""
    group: parsers.Group | None = getattr(import_module(options.COMMANDS[command][1]), "GROUP", None)
    return group


def parser_of(*command: str) -> parsers.QuietParser:
    """Make the parser of a command, of a sub-command, or of the plain command line.

    Raises UsageError for an unknown command, or without its extra.
    """
    if not command:
        return parsers.make_parser()
    name, *names = command
    group = group_of(name) if name in options.COMMANDS else None
    if group is not None and len(names) == 1:
        return group.parser_of(names[0])
    if name not in options.COMMANDS or names:
        unknown = " ".join(command)
        meant = suggestions.command_meant(unknown, options.COMMANDS)
        advice = "" if meant is None else f"did you mean {meant}? "
        there = f"{advice}the commands are {', '.join(options.COMMANDS)}"
        raise UsageError(message=f"there is no command `{visible(unknown)}`\n  {there}")
    parser: parsers.QuietParser = import_module(options.COMMANDS[name][1]).make_parser()
    return parser
