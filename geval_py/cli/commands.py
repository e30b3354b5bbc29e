"""The commands: two tables of what each does and where it is; their parsers, and how one is run.

The module of a command ``name`` has ``make_name_parser``, of :func:`parser_maker`, and a function ``run_name``, which
takes what the parser understood and returns the exit status, or None for 0. Of two words, such as ``lm train``, the
last one is the name; the module of the first has a DESCRIPTION and EXAMPLES for the help.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from geval_py.cli.suggestions import option_meant
from geval_py.cli.terminal import carry_out
from geval_py.errors import UsageError
from geval_py.reading import config, gap_columns
from geval_py.reading.config import argument_type, check_latex_options, natural_number
from geval_py.tables.formats import FORMATS, format_of
from geval_py.tables.layout import fitted
from geval_py.text import nearest, visible, width_of
from geval_py.version import installs

OptionAdder: TypeAlias = Callable[[argparse._ActionsContainer], object]

SUBMISSIONS, PAGES, TRANSFER, SERVER = (
    f"geval_py.cli.board.{name}" for name in ("submissions", "pages", "transfer", "server")
)
COMMANDS = {  # what each does, and its module
    "baseline": ("outputs of simple models, trained on the challenge's train", "geval_py.cli.predict"),
    "board": ("submissions collected, scored, ranked and published", "geval_py.cli.board"),
    "calibration": ("whether an output is calibrated", "geval_py.cli.calibration"),
    "challenge": ("a challenge cut from texts, and what it gives away", "geval_py.cli.challenge"),
    "check": ("every problem of a submission, without its answers", "geval_py.cli.check"),
    "compare": ("which outputs are better, and whether by more than chance", "geval_py.cli.compare"),
    "completion": ("completions of a shell: bash, zsh or fish", "geval_py.cli.completion"),
    "convert": ("an output in another format, written as TSV", "geval_py.cli.convert"),
    "help": ("what a command does, and its options", "geval_py.cli.help"),
    "lm": ("n-gram language models, and the perplexity of texts", "geval_py.cli.lm"),
    "luck": ("how much hash collisions changed scores", "geval_py.cli.luck"),
    "mix": ("outputs mixed, where that is better than the best of them", "geval_py.cli.improve"),
    "predict": ("the output of a language model, with its words' probabilities", "geval_py.cli.predict"),
    "report": ("an output explained on one page, with charts", "geval_py.cli.report"),
    "sample": ("a sample challenge, copied into a new folder", "geval_py.cli.sample"),
    "submit": ("an output sent to the server of a board, and its score", "geval_py.cli.submit"),
    "tune": ("an output mixed with frequent words, where that is better", "geval_py.cli.improve"),
}
SUBCOMMANDS = {  # of each command that has some, the same
    "board": {
        "init": ("make a board for a challenge", TRANSFER),
        "add": ("add submissions: folders, archives, git branches", SUBMISSIONS),
        "scan": ("add each submission of a folder that is new", SUBMISSIONS),
        "show": ("show a leaderboard", PAGES),
        "status": ("what is stored, out of date, rejected, failed, charged", PAGES),
        "withdraw": ("hide a submission, with a reason", SUBMISSIONS),
        "extend": ("give one team a later deadline or more submissions", SUBMISSIONS),
        "final": ("name the submissions that decide in the end", SUBMISSIONS),
        "note": ("put a public remark on a submission", SUBMISSIONS),
        "announce": ("tell everybody something, on the first page", SUBMISSIONS),
        "rescore": ("score again what is out of date", SUBMISSIONS),
        "site": ("build the pages that are published", PAGES),
        "backup": ("write a board as one archive", TRANSFER),
        "restore": ("rebuild a board from such an archive", TRANSFER),
        "serve": ("serve the pages, and take uploads", SERVER),
        "work": ("check and score what was uploaded to a server", SERVER),
        "invite": ("print a link with which somebody signs in to a server", SERVER),
        "token": ("print a token, with which a program submits", SERVER),
        "close": ("close accounts of a server", SERVER),
        "disqualify": ("withdraw all submissions of teams, and close their accounts", SERVER),
        "open": ("open a closed account of a server again", SERVER),
        "team": ("rename teams of a server, and move people", SERVER),
    },
    "challenge": {
        "make": ("a challenge, cut from texts", "geval_py.cli.challenge"),
        "split": ("a challenge, cut from items that are there", "geval_py.cli.challenge"),
        "leaks": ("what a challenge gives away of its hidden answers", "geval_py.cli.challenge"),
    },
    "lm": {
        "train": ("estimate a model of texts, as KenLM's lmplz", "geval_py.cli.lm"),
        "perplexity": ("the perplexity of texts, as KenLM's query", "geval_py.cli.lm"),
        "count": ("how often n-grams occur in a text", "geval_py.cli.lm"),
        "info": ("what is in a model", "geval_py.cli.lm"),
        "next": ("the most probable next words behind a context", "geval_py.cli.lm"),
        "surprisal": ("the surprisal of each word of a text", "geval_py.cli.lm"),
        "mix": ("the best weights of a mixture of models", "geval_py.cli.lm"),
    },
}
EXTRAS = {  # the packages of those that a board needs; with another package missing, a command ends by that error
    "board": ("alembic", "jinja2", "markdown_it", "pydantic", "sqlalchemy"),
    "server": ("anyio", "cryptography", "multipart", "python_multipart", "starlette", "uvicorn"),
}
HELP = ("-h", "--help")
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
{STATUS}"""


def run(words: Sequence[str]) -> int:
    """Run the command that words name first; returns the exit status, raises GevalError."""
    command, rest = words[:1], words[1:]
    if words[0] in SUBCOMMANDS:
        if not rest or rest[0] not in SUBCOMMANDS[words[0]]:
            if parser_of(*command).understood(rest[:1]) is None:
                return 0
            raise unknown_subcommand(words[0], *rest[:1])
        command, rest = words[:2], words[2:]
    with _extras_named(*command):
        args = parser_of(*command).understood(rest)
        if args is None:
            return 0
        if getattr(args, "watch", False):
            from geval_py.cli.watch import watch

            return watch(words, vars(args))
        run_command = getattr(import_module(_module_of(*command)), f"run_{command[-1].replace('-', '_')}")
        return carry_out(lambda: run_command(args), args)


def _module_of(name: str, subcommand: str | None = None) -> str:
    return COMMANDS[name][1] if subcommand is None else SUBCOMMANDS[name][subcommand][1]


@contextmanager
def _extras_named(*command: str) -> Iterator[None]:
    """Turn the error for a missing package of an extra that a board needs into a UsageError that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        for extra, packages in EXTRAS.items():
            if command[0] == "board" and (error.name or "").partition(".")[0] in packages:
                what = "board" if extra == "board" else " ".join(command)
                message = f"geval {what} needs {error.name}, of the extra {extra}: {installs(extra)}"
                raise UsageError(message=message) from error
        raise


def unknown_subcommand(command: str, word: str | None = None) -> UsageError:
    """Return the error for a sub-command that is not there, or is missing."""
    there = f"the commands are {', '.join(SUBCOMMANDS[command])}"
    if word is None:
        return UsageError(message=f"a command of geval {command} is missing\n  {there}")
    meant = nearest(word, SUBCOMMANDS[command])
    advice = "" if meant is None else f"did you mean {meant}? "
    return UsageError(message=f"there is no command `geval {command} {visible(word)}`\n  {advice}{there}")


# Parsers


class CommandParser(config.Parser):
    """The parser of a command."""

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
            raise UsageError(message=visible(f"unrecognized arguments: {' '.join(strays)}") + f"\n  {advice}")
        values = vars(args)
        if "formats" in values:
            args.format = args.format or format_of(args.output_file, args.formats) or "text"
        check_latex_options(values.get("format", "text"), values.get("caption"), values.get("label"))
        return args


def parser_of(*command: str) -> CommandParser:
    """Make the parser of a command or of a sub-command in the table, or of the plain command line.

    Raises UsageError without the extra of a command.
    """
    if not command:
        commands = "\n".join(f"  {name:15} {summary}" for name, (summary, _) in COMMANDS.items())
        return config.plain_parser(
            CommandParser,
            usage="geval [options]\n       geval COMMAND …",
            description="Get GEval's exact scores for word gaps, fast, and see what drives them.",
            epilog=f"commands (geval help COMMAND says more):\n{commands}\n\n{PLAIN_EXAMPLES}",
        )
    name = command[0]
    with _extras_named(*command):
        module = import_module(_module_of(*command))
        if len(command) == 2 or name not in SUBCOMMANDS:
            parser: CommandParser = getattr(module, f"make_{command[-1].replace('-', '_')}_parser")()
            return parser
    width = max(map(len, SUBCOMMANDS[name])) + 1
    commands = "\n".join(f"  {name:{width}} {summary}" for name, (summary, _) in SUBCOMMANDS[name].items())
    return parser_maker(
        name,
        module.DESCRIPTION,
        module.EXAMPLES,
        option("subcommand", nargs="?", metavar="COMMAND", help=", ".join(SUBCOMMANDS[name])),
        before=f"commands (geval {name} COMMAND --help says more):\n{commands}\n\n",
        usage=f"geval {name} COMMAND …",
    )()


def parser_maker(
    command: str,
    description: str,
    examples: str,
    *options: OptionAdder,
    status: str = STATUS,
    before: str = "",
    usage: str | None = None,
) -> Callable[[], CommandParser]:
    """Return a function that makes the parser of a command; its last option is ``--help``, which no namespace holds.

    ``examples`` may end in words about them; ``before`` is what the help says in front of them.
    """

    def make() -> CommandParser:
        epilog = f"{before}examples:\n{examples}\n{status}" if examples else None
        parser = CommandParser(prog=f"geval {command}", usage=usage, description=description, epilog=epilog)
        for add in options:
            add(parser)
        config.add_options(parser, "quiet")
        parser.add_argument(*HELP, action="store_true", default=argparse.SUPPRESS, help="show this and exit")
        return parser

    return make


# Options: functions that add them to a parser


def option(*names: str, **settings: Any) -> OptionAdder:
    """Return an option, or an argument, by the arguments that argparse takes."""
    return lambda parser: parser.add_argument(*names, **settings)


def switch(*names: str, help: str) -> OptionAdder:
    """Return an option without a value."""
    return option(*names, action="store_true", help=help)


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


def metric_options(help: str, default: str = "the challenge's first") -> tuple[OptionAdder, ...]:
    """Return the options that name the metrics of a command: ``alt_metrics``, which replace the challenge's."""
    settings = {"dest": "alt_metrics", "action": "append", "metavar": "METRIC"}
    return (
        option("-m", "--metric", help=f"{help} (default: {default})", **settings),
        option("-a", "--alt-metric", help="the same as --metric", **settings),
    )


def add_format(parser: argparse._ActionsContainer, more: Iterable[str] = ()) -> None:
    """Add ``--format``, with all output formats and perhaps ``more``, what goes with LaTeX, and ``--output``."""
    formats = tuple(dict.fromkeys((*FORMATS, *more)))
    help = f"{', '.join(formats)} (default: text)"
    parser.add_argument("--format", choices=formats, metavar="FORMAT", help=help)
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
        f"({gap_columns.LEFT_NAMES[0]} and {gap_columns.RIGHT_NAMES[0]} need no option)",
    ),
    option("--right", metavar="COLUMN", default="", help="the column of the right context"),
)  # fmt: skip
OF_HASHED_METRICS = (  # the options of the commands that look at one metric on hashed words
    table_options("test_name", "out_files"),
    *PLACES,
    *metric_options("the metric on hashed words, with its bits and flags"),
    add_format,
    table_options("threads"),
)
