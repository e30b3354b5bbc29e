"""``geval lm``: n-gram language models; a file a sub-command."""

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
    "train": ("estimate a model of texts, as KenLM's lmplz", "geval_py.cli.lm.train"),
    "perplexity": ("the perplexity of texts, as KenLM's query", "geval_py.cli.lm.perplexity"),
    "info": ("what is in a model", "geval_py.cli.lm.info"),
}

_EXAMPLES = """\
examples:
  geval lm train -o 3 text.txt --arpa text.arpa
  geval lm perplexity text.arpa other.txt
  geval lm info text.arpa
  geval lm train --help                what a command does, and its options

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval lm``, for its help: sub-commands have their own."""
    commands = "\n".join(f"  {name:11} {summary}" for name, (summary, _) in SUBCOMMANDS.items())
    parser = QuietParser(
        prog="geval lm",
        usage="geval lm COMMAND …",
        description="Train n-gram language models, and give the perplexity of texts.",
        epilog=f"commands (geval lm COMMAND --help says more):\n{commands}\n\n{_EXAMPLES}",
    )
    parser.add_argument("subcommand", nargs="?", metavar="COMMAND", help=", ".join(SUBCOMMANDS))
    parser.add_argument("-h", "--help", action="store_true", help="show this and exit")
    return parser


def run(words: Sequence[str]) -> int:
    """Run a sub-command; gives the exit status, raises GevalError."""
    if words and words[0] in SUBCOMMANDS:
        run: Callable[[Sequence[str]], int] = import_module(SUBCOMMANDS[words[0]][1]).run
        return run(words[1:])
    if {"-h", "--help"}.intersection(words[:1]):
        sys.stdout.write(make_parser().format_help())
        return 0
    raise UsageError(message=_missing(words))


def _missing(words: Sequence[str]) -> str:
    there = f"the commands are {', '.join(SUBCOMMANDS)}"
    if not words:
        return f"a command of geval lm is missing\n  {there}"
    meant = nearest(words[0], SUBCOMMANDS)
    advice = "" if meant is None else f"did you mean {meant}? "
    return f"there is no command `geval lm {visible(words[0])}`\n  {advice}{there}"
