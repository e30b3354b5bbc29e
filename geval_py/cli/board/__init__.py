"""``geval board``: submissions are collected, checked, scored, ranked and published; a file a sub-command."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from geval_py.cli.parsers import QuietParser
from geval_py.errors import UsageError
from geval_py.text import nearest, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SUBCOMMANDS = {  # what each does, and where it is
    "init": ("make a board for a challenge", "geval_py.cli.board.init"),
    "add": ("add submissions: folders, archives, git branches", "geval_py.cli.board.add"),
    "scan": ("add each submission of a folder that is new", "geval_py.cli.board.scan"),
    "show": ("show a leaderboard", "geval_py.cli.board.show"),
    "status": ("what is stored, out of date, rejected, failed, charged", "geval_py.cli.board.status"),
    "withdraw": ("hide a submission, with a reason", "geval_py.cli.board.withdraw"),
    "note": ("put a public remark on a submission", "geval_py.cli.board.note"),
    "rescore": ("score again what is out of date", "geval_py.cli.board.rescore"),
    "site": ("build the pages that are published", "geval_py.cli.board.site"),
    "export": ("write a board as one archive", "geval_py.cli.board.export"),
    "import": ("make a board of such an archive", "geval_py.cli.board.importing"),
    "verify": ("rebuild a published site, and say what differs", "geval_py.cli.board.verify"),
}
EXTRA = ("alembic", "jinja2", "sqlalchemy")  # what the extra adds

_EXAMPLES = """\
examples:
  geval board init gazette-board --challenge gazette --answers hidden
  geval board scan gazette-board uploads   add what is new in a folder
  geval board status gazette-board         and see what became of it
  geval board show gazette-board           the leaderboard
  geval board add --help                   what a command does, and its options

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval board``, for its help: sub-commands have their own."""
    commands = "\n".join(f"  {name:9} {summary}" for name, (summary, _) in SUBCOMMANDS.items())
    parser = QuietParser(
        prog="geval board",
        usage="geval board COMMAND …",
        description="Collect submissions to a challenge, check, score and rank them, and publish the ranking.",
        epilog=f"commands (geval board COMMAND --help says more):\n{commands}\n\n{_EXAMPLES}",
    )
    parser.add_argument("subcommand", nargs="?", metavar="COMMAND", help=", ".join(SUBCOMMANDS))
    parser.add_argument("-h", "--help", action="store_true", help="show this and exit")
    return parser


def run(words: Sequence[str]) -> int:
    """Run a sub-command; gives the exit status, raises GevalError."""
    if words and words[0] in SUBCOMMANDS:
        return _run(words[0], words[1:])
    if {"-h", "--help"}.intersection(words[:1]):
        sys.stdout.write(make_parser().format_help())
        return 0
    raise UsageError(message=_missing(words))


def _run(name: str, words: Sequence[str]) -> int:
    try:
        run: Callable[[Sequence[str]], int] = import_module(SUBCOMMANDS[name][1]).run
        return run(words)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        message = f"geval board needs {error.name}: pip install ./geval-py[board]"
        raise UsageError(message=message) from error


def _missing(words: Sequence[str]) -> str:
    there = f"the commands are {', '.join(SUBCOMMANDS)}"
    if not words:
        return f"a command of geval board is missing\n  {there}"
    meant = nearest(words[0], SUBCOMMANDS)
    advice = "" if meant is None else f"did you mean {meant}? "
    return f"there is no command `geval board {visible(words[0])}'\n  {advice}{there}"
