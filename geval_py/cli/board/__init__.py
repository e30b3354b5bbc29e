"""``geval board``: collect, check, score, rank and publish submissions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from geval_py.cli.commands import STATUS, CommandParser, add_format, command_parser

DESCRIPTION = "Collect submissions to a challenge, check, score and rank them, and publish the ranking."
EXAMPLES = """\
  geval board init gazette-board --challenge gazette --answers hidden
  geval board scan gazette-board uploads   add what is new in a folder
  geval board status gazette-board         and see what became of it
  geval board show gazette-board           the leaderboard
  geval board add --help                   what a command does, and its options
"""
Option: TypeAlias = tuple[tuple[str, ...], dict[str, Any]]


def option(*names: str, **settings: Any) -> Option:
    """Return the arguments with which argparse adds an option or an argument of a command."""
    return names, settings


BOARD = option("board", metavar="BOARD", help="the board's folder")
CODE = option("code", metavar="CODE", help="the submission's code, or the beginning of it")


def parser_maker(
    name: str,
    description: str,
    examples: str,
    *options: Option,
    status: str = STATUS,
    exclusive: tuple[str, ...] = (),
    has_format: bool = False,
) -> Callable[[], CommandParser]:
    """Return a function that makes the parser of a sub-command; it takes only one of the ``exclusive`` options."""

    def make() -> CommandParser:
        parser = command_parser(f"board {name}", description, examples, status)
        group = parser.add_mutually_exclusive_group() if exclusive else parser
        for names, settings in options:
            (group if names[0] in exclusive else parser).add_argument(*names, **settings)
        if has_format:
            add_format(parser)
        return parser

    return make


def now() -> datetime:
    """Return this moment, in UTC."""
    return datetime.now(UTC)
