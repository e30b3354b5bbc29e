"""A command with sub-commands: its help, and which of them words name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from geval_py.cli.parsers import QuietParser
from geval_py.errors import UsageError
from geval_py.text import nearest, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A command with sub-commands: of each by its name, what it does, and the module with its parser and ``run``.

    ``packages`` are those that ``extra`` adds, without which no sub-command runs.
    """

    name: str
    description: str
    examples: str
    subcommands: Mapping[str, tuple[str, str]]
    packages: tuple[str, ...] = ()
    extra: str = ""

    def make_parser(self) -> QuietParser:
        """Make the parser of the command, for its help: sub-commands have their own."""
        width = max(map(len, self.subcommands)) + 1
        commands = "\n".join(f"  {name:{width}} {summary}" for name, (summary, _) in self.subcommands.items())
        parser = QuietParser(
            prog=f"geval {self.name}",
            usage=f"geval {self.name} COMMAND …",
            description=self.description,
            epilog=f"commands (geval {self.name} COMMAND --help says more):\n{commands}\n\n{self.examples}",
        )
        parser.add_argument("subcommand", nargs="?", metavar="COMMAND", help=", ".join(self.subcommands))
        return parser.with_help()

    def run(self, words: Sequence[str]) -> int:
        """Run a sub-command; gives the exit status, raises GevalError."""
        if words and words[0] in self.subcommands:
            return self._run(words[0], words[1:])
        if self.make_parser().understood(words[:1]) is None:
            return 0
        raise self._missing(words)

    def parser_of(self, name: str) -> QuietParser:
        """Make the parser of a sub-command; raises UsageError, where there is none or its extra is not installed."""
        if name not in self.subcommands:
            raise self._missing([name])
        parser: QuietParser = self._using(name, lambda module: module.make_parser())
        return parser

    def _run(self, name: str, words: Sequence[str]) -> int:
        status: int = self._using(name, lambda module: module.run(words))
        return status

    def _using(self, name: str, use: Callable[[ModuleType], Any]) -> Any:
        """Use the module of a sub-command; raises UsageError where a package of the extra is missing."""
        try:
            return use(import_module(self.subcommands[name][1]))
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in self.packages:
                raise
            message = f"geval {self.name} needs {error.name}: pip install ./geval-py[{self.extra}]"
            raise UsageError(message=message) from error

    def _missing(self, words: Sequence[str]) -> UsageError:
        there = f"the commands are {', '.join(self.subcommands)}"
        if not words:
            return UsageError(message=f"a command of geval {self.name} is missing\n  {there}")
        meant = nearest(words[0], self.subcommands)
        advice = "" if meant is None else f"did you mean {meant}? "
        return UsageError(message=f"there is no command `geval {self.name} {visible(words[0])}`\n  {advice}{there}")
