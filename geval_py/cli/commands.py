"""The commands: a table of what each does and where it is; their parsers, and how one is run.

The module of a command has a function, decorated by :func:`command`, which takes what the parser understood and
returns the exit status, or None for 0.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, TypeAlias

from geval_py.cli.suggestions import OTHER_COMMANDS, option_meant
from geval_py.cli.terminal import carry_out, width_of
from geval_py.errors import UsageError
from geval_py.reading import config
from geval_py.reading.config import argument_type, check_latex_options, natural_number
from geval_py.reading.items import LEFT_NAMES, RIGHT_NAMES
from geval_py.tables.formats import FORMATS, format_of
from geval_py.text import fitted, named, suggestion, visible
from geval_py.version import installs

OptionAdder: TypeAlias = Callable[[argparse._ActionsContainer], object]
Function: TypeAlias = Callable[[argparse.Namespace], int | None]

BOARDS, SERVER = "geval_py.cli.board.boards", "geval_py.cli.board.server"


class Command(NamedTuple):
    """What a command does, the module with its parser and its function, and the page of the documentation.

    By default, the module and the page have the name of the command, or those of its group.
    """

    summary: str
    module: str = ""
    page: str = ""


COMMANDS = {
    "baseline": Command(
        "write the output of a simple model, trained on the challenge's train", "geval_py.cli.predict", "models"
    ),
    "board": Command("collect, score, rank and publish submissions"),
    "board init": Command("make a board for a challenge", BOARDS),
    "board add": Command("add submissions: folders, archives, git branches", BOARDS),
    "board scan": Command("add each submission of a folder that is new", BOARDS),
    "board show": Command("show a leaderboard", BOARDS),
    "board status": Command("show what is stored, out of date, rejected, failed, charged", BOARDS),
    "board withdraw": Command("hide a submission, with a reason", BOARDS),
    "board extend": Command("give one team a later deadline or more submissions", BOARDS),
    "board final": Command("name the submissions that decide in the end", BOARDS),
    "board note": Command("put a public remark on a submission", BOARDS),
    "board announce": Command("tell everybody something, on the first page", BOARDS),
    "board rescore": Command("score again what is out of date", BOARDS),
    "board site": Command("build the pages that are published", BOARDS),
    "board backup": Command("write a board as one archive", BOARDS),
    "board restore": Command("rebuild a board from such an archive", BOARDS),
    "board serve": Command("serve the pages, and take uploads", SERVER, "server"),
    "board work": Command("check and score what was uploaded to a server", SERVER, "server"),
    "board invite": Command("print a link with which somebody signs in to a server", SERVER, "accounts"),
    "board token": Command("print a token, with which a program submits", SERVER, "accounts"),
    "board close": Command("close accounts of a server", SERVER, "accounts"),
    "board disqualify": Command("withdraw all submissions of teams, and close their accounts", SERVER, "accounts"),
    "board open": Command("open a closed account of a server again", SERVER, "accounts"),
    "board team": Command("rename teams of a server, and move people", SERVER, "accounts"),
    "calibration": Command("show whether an output is calibrated"),
    "challenge": Command("cut a challenge from texts, and find what it gives away", page="authoring"),
    "challenge make": Command("cut a challenge from texts"),
    "challenge split": Command("cut a challenge from items that are there"),
    "challenge leaks": Command("find what a challenge gives away of its hidden answers"),
    "check": Command("find every problem of a submission, without its answers"),
    "compare": Command("show which outputs are better, and whether by more than chance"),
    "completion": Command("write the completions of a shell: bash, zsh or fish", page="install"),
    "convert": Command("write an output in another format as TSV", page="importing"),
    "help": Command("explain a command, a rule, a metric or a term", page="index"),
    "lm": Command("train n-gram language models, and compute the perplexity of texts", page="models"),
    "lm train": Command("estimate a model of texts, as KenLM's lmplz"),
    "lm perplexity": Command("compute the perplexity of texts, as KenLM's query"),
    "lm surprisal": Command("show the surprisal of each word of a text"),
    "luck": Command("show how much hash collisions changed scores", page="calibration"),
    "mix": Command("mix outputs, where that is better than the best of them", "geval_py.cli.improve", "improve"),
    "predict": Command("write the output of a language model, with its words' probabilities"),
    "report": Command("explain an output on one page, with charts"),
    "sample": Command("copy a sample challenge into a new folder", page="first-submission"),
    "submit": Command("send an output to the server of a board, and show its score", page="first-submission"),
    "tune": Command("mix an output with frequent words, where that is better", "geval_py.cli.improve", "improve"),
}
EXTRAS = {  # the packages of those that a board needs; with another package missing, a command ends by that error
    "board": ("alembic", "jinja2", "markdown_it", "pydantic", "sqlalchemy"),
    "server": ("anyio", "cryptography", "multipart", "python_multipart", "starlette", "uvicorn"),
}
HELP = ("-h", "--help")
_parsers: dict[str, Callable[[], CommandParser]] = {}  # both by the names of commands, once their module is imported
_functions: dict[str, Function] = {}
DOCUMENTATION = "https://github.com/geval-py/geval-py/blob/main/docs"
STATUS = "Exit status: 0 success, 1 an error in the data, 2 an error in the command line."
PLAIN_EXAMPLES = f"""\
examples:
  geval -t dev-0                       score dev-0/out.tsv with the challenge's metrics
  geval -t dev-0 -l -s | head -3       the three worst lines
  geval -t dev-0 -w | head             the words on which the model does worst
  geval -t dev-0 -a LogLossHashed -p 4 another metric, four digits
  geval -o out.tsv -e expected.tsv -m PerplexityHashed
                                       two files, without a challenge

An output line is `word1:prob1 word2:prob2 … :prob0`, where :prob0 is for all other words.
{STATUS}
Documentation: {DOCUMENTATION}/index.md"""


def run(words: Sequence[str]) -> int:
    """Run the command that words name first; returns the exit status, raises GevalError."""
    name = " ".join(words[:2])
    name = name if name in COMMANDS else words[0]
    args = parser_of(name).understood(words[len(name.split()) :])
    return 0 if args is None else carry_out(f"geval {name}", lambda: _functions[name](args), args)


def missing_extra(error: ModuleNotFoundError) -> UsageError:
    """Return the error that names the extra of a package that a board needs; raises that of another package."""
    for extra, packages in EXTRAS.items():
        if (error.name or "").partition(".")[0] in packages:
            return UsageError(f"geval board needs {error.name}, of the extra {extra}: {installs(extra)}")
    raise error


def summaries(group: str = "") -> dict[str, str]:
    """Return what the commands of a group, or those of a single word, do; by their last words."""
    parts = {name: name.rpartition(" ") for name in COMMANDS}
    return {last: COMMANDS[name].summary for name, (first, _, last) in parts.items() if first == group}


def unknown_subcommand(group: str, word: str | None = None) -> UsageError:
    """Return the error for a command of a group that is not there, or is missing."""
    names = summaries(group)
    there = f"the commands are {', '.join(names)}"
    if word is None:
        return UsageError(f"a command of geval {group} is missing\n  {there}")
    known = OTHER_COMMANDS.get(word, "").removeprefix(f"geval {group} ")
    advice = f"did you mean {known}? " if known in names else suggestion(word, names)
    return UsageError(f"there is no command `geval {group} {visible(word)}`\n  {advice}{there}")


# Parsers


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Write `-o FILE, --output FILE`, as Python did until 3.12."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return ", ".join(f"{name} {value}" for name in action.option_strings)


class CommandParser(config.Parser):
    """The parser of a command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=_HelpFormatter, **settings)
        self.color = False  # Python 3.14 colours help on a terminal, to whose width its lines are fitted here

    def format_help(self) -> str:
        """Return the help, in lines of a terminal's width."""
        width = width_of(sys.stdout)
        if width is not None and self.description:
            self.description = textwrap.fill(self.description, width)
        return "".join(fitted(super().format_help().splitlines(), width))

    def understood(self, words: Sequence[str]) -> argparse.Namespace | None:
        """Parse words; if help is among them, show it and return None, whatever the other words are.

        Raises UsageError, with what may have been meant by an unknown option.
        """
        options = words[: words.index("--")] if "--" in words else words
        if any(word in HELP for word in options):
            sys.stdout.write(self.format_help())
            return None
        args, strays = self.parse_known_args(words)
        if strays:
            meant = option_meant(strays[0], self._option_string_actions) if strays[0].startswith("-") else None
            advice = f"{self.prog} --help shows the options" if meant is None else f"did you mean {meant}?"
            raise UsageError(visible(f"unrecognized arguments: {' '.join(strays)}") + f"\n  {advice}")
        values = vars(args)
        if "formats" in values:
            args.format = args.format or (args.output_file and format_of(args.output_file, args.formats)) or "text"
        check_latex_options(values.get("format", "text"), values.get("caption"), values.get("label"))
        return args


def parser_of(name: str = "") -> CommandParser:
    """Make the parser of a command in the table, or of the plain command line."""
    if not name:
        return config.plain_parser(
            CommandParser,
            usage="geval [options]\n       geval COMMAND …",
            description="Get GEval's exact scores for word gaps, fast, and see what drives them.",
            epilog=f"commands (geval help COMMAND says more):\n{_listed(summaries())}\n{PLAIN_EXAMPLES}",
        )
    import_module(COMMANDS[name].module or f"geval_py.cli.{name.split()[0]}")
    return _parsers[name]()


def command(
    name: str,
    description: str,
    examples: str,
    *options: OptionAdder,
    status: str = STATUS,
    before: str = "",
    usage: str | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator for the function that runs a command, which has these options and ``--help``.

    ``examples`` may end in words about them; ``before`` is what the help says in front of them.
    """

    def make() -> CommandParser:
        group = name.split()[0]
        page = COMMANDS[name].page or COMMANDS[group].page or group
        epilog = f"{before}examples:\n{examples}\n{status}\nDocumentation: {DOCUMENTATION}/{page}.md"
        parser = CommandParser(prog=f"geval {name}", usage=usage, description=description, epilog=epilog)
        for add in options:
            add(parser)
        config.add_options(parser, "quiet")
        parser.add_argument(*HELP, action="store_true", default=argparse.SUPPRESS, help="show this and exit")
        return parser

    def register(function: Function) -> Function:
        _parsers[name], _functions[name] = make, function
        return function

    return register


def group(name: str, description: str, examples: str) -> None:
    """Register a command that only has commands below it."""
    names = summaries(name)

    @command(
        name,
        description,
        examples,
        option("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=", ".join(names)),
        before=f"commands (geval {name} COMMAND --help says more):\n{_listed(names)}\n",
        usage=f"geval {name} COMMAND …",
    )
    def refuse(args: argparse.Namespace) -> NoReturn:
        raise unknown_subcommand(name, *args.command[:1])


def _listed(summaries: Mapping[str, str]) -> str:
    width = max(map(len, summaries))
    return "".join(f"  {name:{width}}  {summary}\n" for name, summary in summaries.items())


# Options: functions that add them to a parser


def option(*names: str, **settings: Any) -> OptionAdder:
    """Return an option, or an argument, by the arguments that argparse takes."""
    return lambda parser: parser.add_argument(*names, **settings)


def switch(*names: str, help: str) -> OptionAdder:
    """Return an option without a value."""
    return option(*names, action="store_true", help=help)


def check_free(path: str, args: argparse.Namespace) -> None:
    """Raise UsageError for a path where something is, unless ``--force`` is given."""
    if os.path.lexists(path) and not args.force:
        raise UsageError(f"{named(path)} is there already, and is left as it is\n  --force writes over it")


def number_option(*names: str, metavar: str = "N", **settings: Any) -> OptionAdder:
    """Return an option whose value is a whole number."""
    return option(*names, type=argument_type(natural_number), metavar=metavar, **settings)


def table_options(*fields: str, **helps: str) -> OptionAdder:
    """Return options of plain ``geval``, some with a help of their own."""
    return lambda parser: config.add_options(parser, *fields, **helps)


def one_of(*options: OptionAdder, required: bool = False) -> OptionAdder:
    """Return options of which a command takes only one, or needs one."""

    def add_all(parser: argparse._ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for add in options:
            add(group)

    return add_all


def metric_option(help: str, default: str = "the challenge's first") -> OptionAdder:
    """Return the option that names the metrics of a command: ``alt_metrics``, which replace the challenge's."""
    return option(
        "-m", "--metric", "-a", "--alt-metric", dest="alt_metrics", action="append", metavar="METRIC",
        help=f"{help} (default: {default})",
    )  # fmt: skip


def add_format(parser: argparse._ActionsContainer, more: Iterable[str] = ()) -> None:
    """Add ``--format``, with all output formats and perhaps ``more``, what goes with LaTeX, and ``--output``."""
    formats = tuple(dict.fromkeys((*FORMATS, *more)))
    parser.add_argument("--format", choices=formats, metavar="FORMAT", help=f"{', '.join(formats)} (default: text)")
    parser.set_defaults(formats=formats)
    config.add_options(parser, "caption", "label", "output_file")


PLACES = (
    option(
        "--challenge", dest="out_directory", metavar="DIR",
        help="the challenge's folder, with the answers and the outputs",
    ),
    table_options("out_directory", "expected_directory", "expected_file", "input_file", "in_header", "out_header"),
)  # fmt: skip
DOCUMENTS = table_options(
    documents="treat lines with the same value in this column of the input (name or number) as one document; of "
    "columns that nest, such as FileId,Newspaper, the coarsest "
    "(default: the declared column, or one with a usual name such as FileId)",
    no_documents="treat lines as independent, even if they share a document",
)
CONTEXTS = (
    option(
        "--left", metavar="COLUMN", default="", help="the column of the left context "
        f"({LEFT_NAMES[0]} and {RIGHT_NAMES[0]} need no option)",
    ),
    option("--right", metavar="COLUMN", default="", help="the column of the right context"),
)  # fmt: skip
OF_HASHED_METRICS = (  # the options of the commands that look at one metric on hashed words
    table_options("test_name", "out_files"),
    *PLACES,
    metric_option("the metric on hashed words, with its bits and flags"),
    add_format,
    table_options("threads"),
)
