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
        "command", nargs="*", metavar="COMMAND", help=f"{', '.join(COMMANDS)} (default: geval itself)"
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this and exit")
    return parser


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises UsageError."""
    given = make_parser().read(words)
    command = " ".join(given.command)
    if members(command) and not given.help:
        sys.stdout.write(group_help(command))
    else:
        sys.stdout.write(parser_of("help" if given.help else command or None).format_help())
    return 0


def members(group: str) -> list[str]:
    """Give the commands that begin with a word, as those of ``geval challenge``; none for a command."""
    return [command for command in COMMANDS if command.startswith(f"{group} ")]


def group_help(group: str) -> str:
    """Write which commands begin with a word."""
    lines = [f"  geval {command:20} {COMMANDS[command]}\n" for command in members(group)]
    return f"commands (geval help {group} COMMAND says more):\n{''.join(lines)}"


def run_group(group: str, words: Sequence[str]) -> int:
    """Run a group's name without a command of it: only help is to be had; raises UsageError."""
    if list(words[:1]) in (["-h"], ["--help"]):
        sys.stdout.write(group_help(group))
        return 0
    commands = ", ".join(members(group))
    if not words:
        raise UsageError(message=f"a command is missing: {commands}")
    raise UsageError(message=_unknown(f"{group} {words[0]}"))


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
