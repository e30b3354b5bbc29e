"""The help of ``geval``, and what the parsers of its commands share: options of the table, ``--format``, groups."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module

from geval_py.cli.options import COMMANDS, OPTIONS, Option, check_of_latex, option_of
from geval_py.cli.suggestions import command_meant, option_meant
from geval_py.errors import UsageError
from geval_py.reading.config import digits_after_point, natural_number
from geval_py.tables.formats import FORMATS
from geval_py.text import nearest, visible
from geval_py.values import Value
from geval_py.version import installs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, NoReturn, Self, TypeVar

    Result = TypeVar("Result")

HELP = ("-h", "--help")
STATUS = "Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."
BY_DOCUMENTS = (
    "by documents, the lines with the same value in a column of the input (its name or number; default: the column "
    "by which lines are alike, if there is one)"
)
BY_LINE = "each line by itself, be they alike or not"
PLACES = ("out_directory", "expected_directory", "expected_file", "input_file", "in_header", "out_header")
EXAMPLES = f"""\
examples:
  geval -t dev-0                       score dev-0/out.tsv with the challenge's metrics
  geval -t dev-0 -l -s | head -3       the three worst lines
  geval -t dev-0 -w | head             the words on which the model does worst
  geval -t dev-0 -a LogLossHashed -p 4 another metric, four digits
  geval -o out.tsv -e expected.tsv -m PerplexityHashed
                                       two files, without a challenge

An output line is `word1:prob1 word2:prob2 … :prob0`, where :prob0 is for all other words.
{STATUS}"""


class QuietParser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError instead of printing and exiting; options are written in full."""

    def __init__(self, **settings: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=formatter, allow_abbrev=False, add_help=False, **settings)

    def with_help(self) -> Self:
        """Add ``--help`` as the last option; :meth:`understood` shows it, and no namespace holds it."""
        self.add_argument(*HELP, action="store_true", default=argparse.SUPPRESS, help="show this and exit")
        return self

    def understood(self, words: Sequence[str]) -> argparse.Namespace | None:
        """Parse words; if help is among them, show it and return None, whatever the other words are.

        Raises UsageError, with what may have been meant by an unknown option.
        """
        options = words[: words.index("--")] if "--" in words else words
        if any(word in HELP for word in options):
            sys.stdout.write(self.format_help())
            return None
        given, strays = self.parse_known_args(words)
        if not strays:
            check_of_latex(vars(given))
            return given
        meant = option_meant(strays[0], self._option_string_actions) if strays[0].startswith("-") else None
        advice = f"{self.prog} --help shows the options" if meant is None else f"did you mean {meant}?"
        raise UsageError(message=visible(f"unrecognized arguments: {' '.join(strays)}") + f"\n  {advice}")

    def error(self, message: str) -> NoReturn:
        raise UsageError(message=f"{visible(message)}\n  {self.prog} --help shows the options")


def make_parser() -> QuietParser:
    """Make the parser of the plain command line, for its help."""
    commands = "\n".join(f"  {name:15} {summary}" for name, (summary, _) in COMMANDS.items())
    parser = QuietParser(
        prog="geval",
        usage="geval [options]\n       geval COMMAND …",
        description="Score word-gap prediction exactly as GEval does, and learn why.",
        epilog=f"commands (geval help COMMAND says more):\n{commands}\n\n{EXAMPLES}",
        argument_default=argparse.SUPPRESS,
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option in OPTIONS:
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        add_option(groups[option.group], option)
    return parser


def command_parser(command: str, description: str, examples: str, status: str = STATUS, **more: Any) -> QuietParser:
    """Make the parser of a command, with no option yet; ``examples`` may end in words about them."""
    epilog = f"examples:\n{examples}\n{status}"
    return QuietParser(prog=f"geval {command}", description=description, epilog=epilog, **more)


def add_option(group: argparse._ActionsContainer, option: Option, help: str | None = None) -> None:
    """Add an option of the table to a parser, with its own help or another."""
    text = (help or option.help).replace("%", "%%")
    if option.read is None:
        group.add_argument(*option.names, dest=option.field, action="store_true", help=text)
        return
    group.add_argument(
        *option.names,
        dest=option.field,
        action="append" if option.repeatable else _Once if option.once else "store",
        type=argument_type(option.read),
        metavar=option.metavar,
        help=text,
    )


class _Once(argparse.Action):
    """Store a value, and refuse a second one."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: Any, *_: Any) -> None:
        if hasattr(namespace, self.dest):
            first = getattr(namespace, self.dest)
            parser.error(f"argument {'/'.join(self.option_strings)}: given twice: {first} and {value}; give one")
        setattr(namespace, self.dest, value)


def add_fields(group: argparse._ActionsContainer, *fields: str) -> None:
    """Add the options of some fields to a parser."""
    for field in fields:
        add_option(group, option_of(field))


class _Challenge(argparse.Action):
    """Store a folder as that of the answers and of the outputs."""

    def __call__(self, _: object, namespace: argparse.Namespace, value: Any, *__: Any) -> None:
        for field in ("out_directory", "expected_directory"):
            setattr(namespace, field, value)


def add_places(group: argparse._ActionsContainer) -> None:
    """Add the options that say where the files of a challenge are."""
    group.add_argument(
        "--challenge", action=_Challenge, dest="out_directory", metavar="DIR", default=argparse.SUPPRESS,
        help="the challenge's folder, with the answers and the outputs",
    )  # fmt: skip
    add_fields(group, *PLACES)


def add_metrics(group: argparse._ActionsContainer, help: str, default: str = "the challenge's first") -> None:
    """Add the options that name the metrics of a command: ``metrics``, an empty list where none is given."""
    group.add_argument(
        "-m", "--metric", dest="metrics", action="append", default=[], metavar="METRIC",
        help=f"{help} (default: {default})",
    )  # fmt: skip
    group.add_argument(
        "-a", "--alt-metric", dest="metrics", action="append", metavar="METRIC", help="the same as --metric"
    )


def add_documents(group: argparse._ActionsContainer, by: str = BY_DOCUMENTS, each: str = BY_LINE) -> None:
    """Add the options on documents, with the help of scoring's or another."""
    add_option(group, option_of("documents"), by)
    add_option(group, option_of("no_documents"), each)


def add_format(group: argparse._ActionsContainer, *more: str) -> None:
    """Add ``--format``, with all output formats there are and perhaps ``more``, and what goes with LaTeX."""
    formats = tuple(dict.fromkeys((*FORMATS, *more)))
    listed = f"{', '.join(formats)} (default: text)"
    group.add_argument("--format", choices=formats, default="text", metavar="FORMAT", help=listed)
    add_fields(group, "caption", "label")


def argument_type(read: Callable[[str], Result]) -> Callable[[str], Result]:
    """Make a type for argparse, which then shows the words of a ValueError."""

    def typed(text: str) -> Result:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return typed


number_type = argument_type(natural_number)
digits_type = argument_type(digits_after_point)


# Commands with sub-commands, and packages of an extra.


class Group(Value):
    """A command with sub-commands: by the name of each, what it does and its module.

    The module has a function ``make_NAME_parser`` and a function ``run_NAME``. Without the ``packages`` of ``extra``
    no sub-command runs.
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
            epilog=f"commands (geval {self.name} COMMAND --help says more):\n{commands}\n\n"
            f"examples:\n{self.examples}\n{STATUS}",
        )
        parser.add_argument("subcommand", nargs="?", metavar="COMMAND", help=", ".join(self.subcommands))
        return parser.with_help()

    def run(self, words: Sequence[str]) -> int:
        """Run a sub-command; returns the exit status, raises GevalError."""
        if words and words[0] in self.subcommands:
            status: int = self._use(words[0], lambda module: getattr(module, f"run_{_word(words[0])}")(words[1:]))
            return status
        if self.make_parser().understood(words[:1]) is None:
            return 0
        raise self._missing(words)

    def parser_of(self, name: str) -> QuietParser:
        """Make the parser of a sub-command; raises UsageError for an unknown one, or without its extra."""
        if name not in self.subcommands:
            raise self._missing([name])
        parser: QuietParser = self._use(name, lambda module: getattr(module, f"make_{_word(name)}_parser")())
        return parser

    def _use(self, name: str, use: Callable[[ModuleType], Any]) -> Any:
        module = self.subcommands[name][1]
        return using_extra(lambda: use(import_module(module)), f"geval {self.name}", self.packages, self.extra)

    def _missing(self, words: Sequence[str]) -> UsageError:
        there = f"the commands are {', '.join(self.subcommands)}"
        if not words:
            return UsageError(message=f"a command of geval {self.name} is missing\n  {there}")
        meant = nearest(words[0], self.subcommands)
        advice = "" if meant is None else f"did you mean {meant}? "
        return UsageError(message=f"there is no command `geval {self.name} {visible(words[0])}`\n  {advice}{there}")


def _word(name: str) -> str:
    """Return the name of a sub-command as Python writes it."""
    return name.replace("-", "_")


def using_extra(use: Callable[[], Result], command: str, packages: Iterable[str], extra: str) -> Result:
    """Call a function; raises UsageError where one of the packages of an extra is missing."""
    try:
        return use()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        raise UsageError(message=f"{command} needs {error.name}, of the extra {extra}: {installs(extra)}") from error


def add_hashed_options(parser: QuietParser) -> None:
    """Add the options of the commands that look at one metric on hashed words."""
    add_fields(parser, "test_name", "out_files")
    add_places(parser)
    add_metrics(parser, "the metric on hashed words, with its bits and flags")
    add_format(parser)
    add_fields(parser, "threads")


# Any parser, by the words of its command


def group_of(command: str) -> Group | None:
    """Return the sub-commands of a command; None where it has none."""
    group: Group | None = getattr(import_module(COMMANDS[command][1]), "GROUP", None)
    return group


def parser_of(*command: str, lists: Sequence[str] = ()) -> QuietParser:
    """Make the parser of a command, of a sub-command, or of the plain command line.

    ``lists`` are what ``geval help`` shows besides. Raises UsageError for an unknown command, or without its extra.
    """
    if not command:
        return make_parser()
    name, *names = command
    group = group_of(name) if name in COMMANDS else None
    if group is not None and len(names) == 1:
        return group.parser_of(names[0])
    if name not in COMMANDS or names:
        unknown = " ".join(command)
        meant = command_meant(unknown, [*COMMANDS, *lists])
        advice = "" if meant is None else f"did you mean {meant}? "
        there = f"{advice}the commands are {', '.join(COMMANDS)}"
        there += f"; the lists are {', '.join(lists)}" if lists else ""
        raise UsageError(message=f"there is no command `{visible(unknown)}`\n  {there}")
    parser: QuietParser = import_module(COMMANDS[name][1]).make_parser()
    return parser
