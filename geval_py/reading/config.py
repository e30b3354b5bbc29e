"""Options: the table of all that plain ``geval`` and a challenge's config.txt may hold, and how config.txt is read.

In this order: the limits of random sampling; what an option is, and how its words are read; Task and Settings, whose
fields are the options; the parser; config.txt. Commands take options of the table by :func:`add_options`.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Self, TypeVar, dataclass_transform

from geval_py.errors import ConfigError, UsageError
from geval_py.reading import files
from geval_py.reading.lines import read_lines
from geval_py.reading.schemes import EvaluationScheme, checked_tokenizer, parse_schemes
from geval_py.tables.formats import FORMATS
from geval_py.text import SPACES, named, suggestion, visible

CONFIG_FILE = "config.txt"
DEFAULT_TEST = "test-A"
Result = TypeVar("Result")

# Random sampling

DEFAULT_SAMPLES = 10_000  # a p-value of 0.05 is then right to about 0.004, an interval's end to a third of a percent
MAX_SAMPLES = 1_000_000
DEFAULT_SEED = 12345


def check_sampling(samples: int, seed: int = DEFAULT_SEED) -> None:
    """Raise UsageError unless there are 1 to MAX_SAMPLES samples and the seed is 0 or more."""
    if samples < 1:
        raise UsageError("the number of bootstrap samples is at least 1")
    if samples > MAX_SAMPLES:
        raise UsageError(f"the number of samples is at most {MAX_SAMPLES}, not {samples}")
    if seed < 0:
        raise UsageError("the seed is a whole number from 0 on")


# The value of an option, read from a word. Each function raises ValueError with a sentence about the word.

MAX_DIGITS = 1100  # after the point: the smallest double has 1074


def matched(pattern: str, what: str, convert: Callable[[str], Result]) -> Callable[[str], Result]:
    """Return a function that converts a word if a regular expression matches all of it."""

    def read(text: str) -> Result:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} is not {what}")
        return convert(text)

    return read


natural_number = matched("[0-9]{1,15}", "a whole number", int)
checked_label = matched(r"[\w:./+-]+", "a label of letters, digits and :._/+-", str)  # TeX may read others otherwise


def _digits_after_point(text: str) -> int:
    digits = natural_number(text)
    if digits > MAX_DIGITS:
        raise ValueError(f"{digits} digits are too many; a double has less than {MAX_DIGITS}")
    return digits


def _samples(text: str) -> int:
    samples = natural_number(text)
    check_sampling(samples)
    return samples


def _format(text: str) -> str:
    if text not in FORMATS:
        raise ValueError(f"invalid choice: {text!r} (choose from {', '.join(map(repr, FORMATS))})")
    return text


# The table: every option of ``geval`` without a command. config.txt may hold all but those named below it.

SCORES = "scores"  # the mode without an option
LINES = ("line_by_line", "diff")
FEATURES = ("worst_features", "most_worsening_features")
AUTHORING = ("init", "validate")  # modes that score no output


class Option(NamedTuple):
    """One option, as an attribute of Task or Settings: its names, and its default.

    ``read`` turns a word into the value; an option without it is a switch. A ``repeatable`` option collects its
    values; those of the command line are added to those of config.txt or, if it ``replaces``, take their place. An
    option with ``once`` may be given once on the command line and once in config.txt.

    ``group`` is the heading above it in the help, ``metavar`` names its value there; without a ``help`` it is not
    shown. ``mode`` marks an option that chooses what is shown. ``goes_with`` are the modes that use the option (none:
    all modes); with another mode it is refused, in a sentence that ``otherwise`` ends, as it is with the modes of
    ``useless_with``. ``argument`` is its name in Python, if that is not the attribute's; ``said`` its name in a
    sentence, if that is not its first one.
    """

    names: tuple[str, ...]
    group: str = ""
    help: str = ""
    default: Any = None
    read: Callable[[str], object] | None = None
    metavar: str = ""
    repeatable: bool = False
    replaces: bool = False
    once: bool = False
    mode: bool = False
    goes_with: tuple[str, ...] = ()
    otherwise: str = ""
    useless_with: tuple[str, ...] = ()
    argument: str = ""
    said: str = ""

    @property
    def long_name(self) -> str:
        return self.names[-1]


def _option(names: str, help: str, *, group: str, default: Any = None, **more: Any) -> Any:
    """Return an option: its ``names`` and the word for its value are, for example, ``-t --test-name NAME``."""
    words = names.split()
    if not words[-1].startswith("-"):
        more = {"read": str, "metavar": words.pop()} | more
    if default is None:
        default = () if more.get("repeatable") else None if "read" in more else False
    return Option(tuple(words), group, help, default, **more)


# By the headings of the help.
_what = partial(_option, group="what is scored")
_scored = partial(_what, useless_with=AUTHORING)
_metric = partial(_option, group="metrics")
_shown = partial(_option, group="what is shown")
_listed = partial(_shown, goes_with=(*LINES, *FEATURES))
_how = partial(_option, group="how it is shown")
_of_scores = partial(_how, goes_with=(SCORES, *FEATURES))
_of_features = partial(_option, group="features, for -w, --most-worsening-features, --filter and marks")
_challenge = partial(_option, group="a challenge's folder, named by --expected-directory")
_feature = partial(_of_features, goes_with=(*FEATURES, *LINES))


@dataclass_transform(kw_only_default=True, eq_default=False, frozen_default=True)
class OptionValues:
    """The values of a class's options, by their names; they do not change.

    It is no dataclass, since the module ``dataclasses`` takes longer to import than Python to start.
    """

    defaults: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        values = {name: vars(cls)[name] for name in cls.__annotations__}
        cls.defaults = {name: one.default if isinstance(one, Option) else one for name, one in values.items()}

    def __init__(self, **values: Any) -> None:
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        vars(self).update(self.defaults | values)
        self.check()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} does not change; replace() returns other values")

    def check(self) -> None:
        """Raise UsageError for values that do not go together."""

    def replace(self, **changes: Any) -> Self:
        """Return the values with some changed."""
        return type(self)(**vars(self) | changes)


class Task(OptionValues):
    """What is scored. The fields have the names of the options; None means an option's default.

    ``metrics`` and ``alt_metrics``, which replace them, are metric arguments as written. ``tokenizer`` is for metrics
    of words, such as BLEU; ``selector`` names parts of JSON lines. ``needs_items``: the input must exist to be shown.
    ``ignored`` names the options of config.txt without effect.
    """

    test_name: str = _what(
        "-t --test-name NAME", "the test set's sub-directory (default: test-A)",
        default=DEFAULT_TEST, once=True, argument="test", useless_with=("validate",),
    )  # fmt: skip
    out_directory: str = _scored("--out-directory DIR", "where the outputs are (default: .)", default=".")
    expected_directory: str | None = _what(
        "--expected-directory DIR", "where the answers are (default: the out-directory)"
    )
    expected_file: str | None = _what("-e --expected-file FILE", "the answers (default: expected.tsv)", once=True)
    input_file: str | None = _scored("-i --input-file FILE", "the input (default: in.tsv)")
    in_header: str | None = _scored("--in-header FILE", "a line with the names of the input's columns")
    out_header: str | None = _scored("--out-header FILE", "a line with the names of the answers' columns")
    selector: str | None = _scored(
        "--selector KEYS",
        "the part of JSON lines to score: keys separated by /, such as root/items; for files that end in .jsonl",
    )
    out_files: tuple[str, ...] = _scored(
        "-o --out-file FILE",
        "the output to score, as a name in DIR/NAME or a path; also a folder, a pattern, a short name, - "
        "for standard input, or an http(s) address; repeatable (default: out.tsv and all out-*.tsv)",
        repeatable=True, replaces=True, argument="output",
    )  # fmt: skip
    metrics: tuple[str, ...] = _metric(
        "-m --metric METRIC",
        "a metric, such as LikelihoodHashed, LogLossHashed8 or {LogLoss,Perplexity}Hashed; repeatable",
        repeatable=True, argument="metric", said="--metric option\n  for example -m PerplexityHashed; "
        "or run geval in the folder of the challenge's config.txt, or name it with --challenge",  # GEval's words
    )  # fmt: skip
    alt_metrics: tuple[str, ...] = _metric(
        "-a --alt-metric METRIC", "a metric that replaces those of config.txt; repeatable", repeatable=True
    )
    select_metrics: tuple[str, ...] = _metric(
        "--select-metric NAME", "show only the metric with this name; repeatable", repeatable=True
    )
    vocabulary: str | None = _metric(
        "--vocabulary FILE",
        "words, one per line, for metrics on exact words (default: the words of train/expected.tsv)",
        useless_with=("init",),
    )  # fmt: skip
    tokenizer: str | None = _metric(
        "-T --tokenizer NAME",
        "how lines are split into tokens, for BLEU and other metrics of words, and for features: "
        "minimalistic, character-by-character, 13a or v14",
        read=checked_tokenizer, useless_with=AUTHORING,
    )  # fmt: skip
    needs_items: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def directory(self) -> str:
        """The challenge's directory, with the answers, the headers and config.txt."""
        return self.out_directory if self.expected_directory is None else self.expected_directory

    @property
    def needs_input(self) -> bool:
        """Whether the input must exist: because it is shown, or for a metric's filter."""
        return self.needs_items or any(name.startswith("in") for scheme in self.schemes() for name in scheme.filters)

    def schemes(self) -> list[EvaluationScheme]:
        """Return the metrics to score with, products multiplied out; raises SchemeError."""
        return checked_schemes(self.alt_metrics or self.metrics)


def checked_schemes(texts: Iterable[str]) -> list[EvaluationScheme]:
    """Parse metric arguments; raises SchemeError, also for a malformed regular expression."""
    schemes = [scheme for text in texts for scheme in parse_schemes(text)]
    if any(scheme.flags for scheme in schemes):
        from geval_py.reading.preparation import preparation_of

        for scheme in schemes:
            preparation_of(scheme)
    return schemes


class Settings(OptionValues):
    """What is shown, and how. The fields are named as the options are."""

    challenges: tuple[str, ...] = _what(
        "--challenge DIR", "the folder of a challenge; repeatable: one table shows all scores",
        repeatable=True, goes_with=(SCORES,),
    )  # fmt: skip
    list_metrics: bool = _metric("--list-metrics", "list the metrics and exit")
    line_by_line: bool = _shown(
        "-l --line-by-line", "show the score, input, answer and output of every line", mode=True
    )
    sort: bool = _listed("-s --sort", "with -l and -d: the worst lines first")
    reverse_sort: bool = _listed(
        "-r --reverse-sort", "with -l and -d: the best first; with -w: the features of good lines"
    )
    top: int | None = _listed(
        "--top N", "with -l, -d and -w: only the first N lines or features", read=natural_number
    )
    filters: tuple[str, ...] = _shown(
        "--filter FEATURE",
        "with -l and -d: only items with this feature, such as exp:the; repeatable: items with all of them",
        repeatable=True, goes_with=LINES, otherwise="; a metric that is filtered: METRIC:f<FEATURE>",
    )  # fmt: skip
    mark_worst_features: bool = _shown(
        "--mark-worst-features", "with -l, on a terminal: mark the words of bad lines",
        goes_with=("line_by_line",),
    )  # fmt: skip
    show_preprocessed: bool = _shown(
        "--show-preprocessed", "with -l and -d: show lines after the metric's flags", goes_with=LINES
    )
    worst_features: bool = _shown(
        "-w --worst-features", "show the features most common in bad lines: words, columns", mode=True
    )
    diff: str | None = _shown(
        "-d --diff OTHER",
        "show lines that differ in another output: the difference of the scores, the texts, the other's line",
        mode=True,
    )  # fmt: skip
    most_worsening_features: str | None = _shown(
        "--most-worsening-features OTHER", "show the features of lines that are worse in OTHER", mode=True
    )
    oracle_item_based: bool = _shown("--oracle-item-based", "the best line of -o and each --alt-out-file", mode=True)
    alt_out_files: tuple[str, ...] = _shown(
        "--alt-out-file FILE", "another output; repeatable", repeatable=True, goes_with=("oracle_item_based",)
    )
    plot_graph: str | None = _shown(
        "--plot-graph FILE",
        "draw the calibration curve of metrics such as Probabilistic-MultiLabel-F1, as SVG; FILE-1 and so on "
        "are for further metrics",
        goes_with=(SCORES,),
    )  # fmt: skip
    precision: int | None = _how(
        "-p --precision N", "digits after the point", read=_digits_after_point, useless_with=("validate",)
    )
    percentage: bool = _how(
        "-% --show-as-percentage", "multiply by 100, and show two digits less", useless_with=("validate",)
    )
    bootstrap: int | None = _how(
        "-B --bootstrap N",
        "show the 95 % interval of a score, from N resamples of the lines (1000 are typical)",
        read=_samples, goes_with=(SCORES,),
    )  # fmt: skip
    seed: int = _how(
        "--seed S", f"with -B: the seed of the random numbers (default: {DEFAULT_SEED})",
        read=natural_number, default=DEFAULT_SEED,
    )  # fmt: skip
    documents: str | None = _of_scores(
        "--documents COLUMN",
        "with -B and -w: treat lines with the same value in this column (name or number) as one document; of "
        "columns that nest, such as FileId,Newspaper, the coarsest; -w shows q",
    )  # fmt: skip
    no_documents: bool = _of_scores(
        "--no-documents", "with -B and -w: treat lines as independent, even if they share a document"
    )
    by_score: bool = _how(
        "--by-score", "sort several outputs by the first metric, the best first",
        goes_with=(SCORES,), otherwise="; lines have --sort and --reverse-sort",
    )  # fmt: skip
    format: str = _how("--format FORMAT", f"{', '.join(FORMATS)} (default: text)", read=_format, default="text")
    caption: str | None = _how("--caption TEXT", "with --format latex: a caption; adds a table environment")
    label: str | None = _how(
        "--label NAME", "with --format latex: a label, such as tab:scores; adds a table environment",
        read=checked_label,
    )  # fmt: skip
    output_file: str | None = _how(
        "--output FILE",
        "write the results to FILE; without --format, its ending determines the format",
    )  # fmt: skip
    quiet: bool = _how("-q --quiet", "show no notes and no progress; errors are shown")
    names: tuple[tuple[str, str], ...] = _how(
        "--name OUT=NAME", "show the output OUT as NAME, except in CSV and JSON; repeatable",
        read=matched("(?s).+=[^=]+", "OUT=NAME, as in out.tsv=Ours", lambda text: tuple(text.rsplit("=", 1))),
        repeatable=True, goes_with=(SCORES,),
    )  # fmt: skip
    threads: int | None = _how(
        "--threads N", "threads for scoring (default: one per core)",
        read=matched("0*[1-9][0-9]{0,3}", "a whole number from 1 to 9999", int), useless_with=AUTHORING,
    )  # fmt: skip
    cluster: str | None = _how(
        "--cluster ADDRESS",
        "use the workers of the Dask scheduler at ADDRESS",
        goes_with=(SCORES,),
    )  # fmt: skip
    version: bool = _how("-v --version", "show the version and the kernel's backend")
    help: bool = _how("-h --help", "show this and exit")
    just_tokenize: bool = _of_features(
        "-j --just-tokenize", "only split standard input into tokens, with -T", mode=True
    )
    min_frequency: int | None = _of_features(
        "--min-frequency N",
        "only features that at least N items have and at least N items lack (default: 1; above 200,000 lines: 5)",
        read=natural_number, goes_with=(*FEATURES, "line_by_line"),
    )  # fmt: skip
    all_features: bool = _of_features(
        "--all-features", "also show ids of lines and documents, and numbers of the output",
        goes_with=FEATURES,
    )  # fmt: skip
    bigrams: bool = _feature("--bigrams", "neighbouring words too, such as in<Text>:New++York")
    word_shapes: bool = _feature("--word-shapes", "also shapes of words, such as exp:SHAPE:Aa+")
    numerical_features: bool = _feature(
        "--numerical-features", "also lengths and numbers, such as exp:=#+ and in<Year>:=-",
    )  # fmt: skip
    references: str | None = _feature(
        "--references FILE",
        "texts, each after a number and a TAB; a field 7 0-4,10 means these characters of text 7",
    )  # fmt: skip
    cartesian: bool = _feature("--cartesian", "also pairs, such as exp:the~~in<Year>:1901")
    min_cartesian_frequency: int | None = _of_features(
        "--min-cartesian-frequency N", "only pairs of features that at least N items have",
        read=natural_number, goes_with=(*FEATURES, "line_by_line"),
    )  # fmt: skip
    init: bool = _challenge("--init", "write a new one, with sample data, for the metrics given", mode=True)
    validate: bool = _challenge(
        "--validate",
        "list the faults of one: its files, and whether a perfect output gets the best score",
        mode=True,
    )  # fmt: skip

    def check(self) -> None:
        if self.sort and self.reverse_sort:
            raise UsageError("--sort shows the worst lines first, --reverse-sort the best: take one")
        modes = [OPTIONS[field].long_name for field in MODES if getattr(self, field) not in (False, None)]
        if len(modes) > 1:
            raise UsageError(f"{' and '.join(modes)} are different modes: take one")
        if self.mode in WITHOUT_FORMAT and self.format != "text":
            raise UsageError(f"{modes[0]} has no {self.format} format; leave --format out")
        check_latex_options(self.format, self.caption, self.label)
        if self.plot_graph is not None:
            if not self.plot_graph.endswith(".svg"):
                path = named(self.plot_graph)
                raise UsageError(f"--plot-graph draws SVG: name a file that ends in .svg, not {path}")
            if self.challenges:
                raise UsageError("--plot-graph is of one challenge: leave --challenge out")
        if self.no_documents and self.documents is not None:
            raise UsageError("--documents and --no-documents are opposites: take one")
        if self.mark_worst_features and self.show_preprocessed:
            raise UsageError("--mark-worst-features marks lines as they are: leave --show-preprocessed out")
        if self.oracle_item_based and not self.alt_out_files:
            raise UsageError("--oracle-item-based chooses between outputs: name others with --alt-out-file")

    @property
    def documents_by(self) -> str | Literal[False] | None:
        """The column of the documents; None: one with a usual name; False: none."""
        return False if self.no_documents else self.documents

    @property
    def mode(self) -> str:
        """What is shown: "scores", or the field of the option that asks for another thing."""
        return next((field for field in MODES if getattr(self, field) not in (False, None)), SCORES)


def check_latex_options(format: str, caption: str | None, label: str | None) -> None:
    """Raise UsageError for a caption or a label in another format."""
    for name, value in (("--caption", caption), ("--label", label)):
        if value is not None and format != "latex":
            raise UsageError(f"{name} goes with --format latex")


# GEval's options that geval-py does not have. No score depends on the ignored ones, so config.txt may hold them.
SUBMIT = "--submit"
IGNORED = ("--gonito-host", "--gonito-git-annex-remote", "--token")
_NO_ENSEMBLES = (
    "{} is not available in geval-py: in GEval it is for models that choose one of several outputs for each line\n"
    "  geval mix mixes outputs; geval baseline and geval lm train language models"
)
_SUBMITS = (
    "{} is not available in geval-py: it is for Gonito servers, which fetch a branch\n"
    "  geval submit FILE --board URL sends an output to the server of a board, with the token in GEVAL_BOARD_TOKEN;\n"
    "  for Gonito, commit the output and run git push"
)
NOT_AVAILABLE = dict.fromkeys(("--train", "--infer"), _NO_ENSEMBLES) | dict.fromkeys((SUBMIT, *IGNORED), _SUBMITS)
OPTIONS: dict[str, Option] = {  # by their fields
    **{name: one for kind in (Task, Settings) for name, one in vars(kind).items() if isinstance(one, Option)},
    **{name: Option((name,), read=str) for name in NOT_AVAILABLE},
    SUBMIT: Option(("-S", SUBMIT)),
}
MODES = tuple(field for field, option in OPTIONS.items() if option.mode)
WITHOUT_FORMAT = ("oracle_item_based", "just_tokenize", *AUTHORING)
SHOW_AND_EXIT = frozenset({"help", "version", "list_metrics"})
ORDERS = ("sort", "reverse_sort")
BY_DOCUMENTS = ("documents", "no_documents")  # the settings that say which lines belong together
OF_COMMAND_LINE = ("caption", "label", "output_file", "quiet", "names", "challenges")  # not a challenge's
OPTION_NAMES = tuple(name for option in OPTIONS.values() for name in option.names)


def said_option(argument: str) -> str:
    """Return the name on the command line of an argument in Python.

    An option that only another command has is named like its argument.

    >>> said_option("output"), said_option("min_frequency"), said_option("force")
    ('-o', '--min-frequency', '--force')
    """
    option = next((option for name, option in OPTIONS.items() if argument == (option.argument or name)), None)
    return f"--{argument.replace('_', '-')}" if option is None else option.said or option.names[0]


def repeated_options(given: argparse.Namespace, *fields: str) -> list[str]:
    """Return the options of a command line that are in use, as words of another command that takes these fields."""
    words: list[str] = []
    for name in fields:
        value: Any = getattr(given, name, None)
        for one in value if isinstance(value, list) else [value] * bool(value):
            words += [OPTIONS[name].names[0]] + ([] if one is True else [one])
    return words


# The parser


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError instead of printing and exiting; options are written in full."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, add_help=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{visible(message)}\n  {self.prog} --help shows the options")


class _Once(argparse.Action):
    """Store a value, and refuse a second one."""

    def __call__(self, _parser: Any, namespace: argparse.Namespace, value: Any, *_: Any) -> None:
        first = getattr(namespace, self.dest, None)
        if first is not None:
            raise argparse.ArgumentError(self, f"given twice: {first} and {value}; give one")
        setattr(namespace, self.dest, value)


AnyParser = TypeVar("AnyParser", bound=Parser)
Options = TypeVar("Options", Task, Settings)


def argument_type(read: Callable[[str], Result]) -> Callable[[str], Result]:
    """Return a type for argparse, which then shows the words of a ValueError."""

    def typed(text: str) -> Result:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return typed


def add_options(parser: argparse._ActionsContainer, *fields: str, **helps: str) -> None:
    """Add options of the table to a parser: ``fields``, and those with a help of their own."""
    for field in (*fields, *helps):
        option = OPTIONS[field]
        text = helps.get(field, option.help).replace("%", "%%") or argparse.SUPPRESS
        if option.read is None:
            parser.add_argument(*option.names, dest=field, action="store_true", help=text)
            continue
        parser.add_argument(
            *option.names,
            dest=field,
            action="append" if option.repeatable else _Once if option.once else "store",
            type=argument_type(option.read),
            metavar=option.metavar,
            help=text,
        )


def plain_parser(kind: type[AnyParser], **settings: Any) -> AnyParser:
    """Return the parser of plain ``geval`` and of config.txt."""
    parser = kind(prog="geval", argument_default=argparse.SUPPRESS, **settings)
    for group in dict.fromkeys(option.group for option in OPTIONS.values()):
        fields = (field for field, option in OPTIONS.items() if option.group == group)
        add_options(parser.add_argument_group(group) if group else parser, *fields)
    return parser


@cache
def _parser() -> Parser:
    """Return the parser for words; it shows no help, and so need not ask for the width of the terminal."""
    return plain_parser(Parser, formatter_class=partial(argparse.HelpFormatter, width=80))


def parse_words(
    words: Sequence[str], advice_on: Callable[[str, Mapping[str, Any]], str | None], *, in_config: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Parse options into values by field, and return the paths of files among the words.

    Raises UsageError for an option of GEval's that geval-py does not have and, with ``advice_on`` what may be meant,
    GEval's error for a word that is no option. ``in_config``, no word is a path, and options of GEval's that no score
    depends on are allowed: the field ``ignored`` holds their names.
    """
    namespace, strays = _parser().parse_known_args(words)
    values = vars(namespace)
    for word in strays:
        if in_config or word.startswith("-") or not os.path.isfile(word):
            kind = "option" if word.startswith("-") else "argument"
            advice = advice_on(word, values) or "geval --help shows the options"
            raise UsageError(f"Invalid {kind} `{visible(word)}'\n  {advice}")
    ignored = tuple(name for name in IGNORED if name in values)
    for name, message in NOT_AVAILABLE.items():
        if name in values and not (in_config and name in ignored):
            raise UsageError(message.format(name))
    return values | {"ignored": ignored} if ignored else values, strays


# config.txt: options as on the command line, which are read before the command line's own

_ESCAPED_SPACE = rf"\\([{SPACES}])"
_WORD = rf"(?:\\[\s\S]|[^{SPACES}])+"


def config_values(directory: str) -> dict[str, Any]:
    """Return the values in a challenge's config.txt, by field.

    Raises UnreadableFileError, and ConfigError if it is broken.
    """
    path = os.path.join(directory, CONFIG_FILE)
    words = read_config(path)
    try:
        values, _ = parse_words(
            words, lambda word, _: suggestion(word.partition("=")[0], OPTION_NAMES).rstrip(), in_config=True
        )
        checked_schemes((*values.get("metrics", ()), *values.get("alt_metrics", ())))
        if values.pop("plot_graph", None) is not None:  # the config.txt of a stranger shall write no files
            values["ignored"] = ("--plot-graph", *values.get("ignored", ()))
        for field in values:
            if field in (*AUTHORING, *OF_COMMAND_LINE, *SHOW_AND_EXIT):
                raise UsageError(f"{OPTIONS[field].long_name} has no place in config.txt")
        fields_of(Settings, values)
    except UsageError as error:
        raise ConfigError(path=path, message=error.message) from error
    return values


def read_config(path: str) -> list[str]:
    """Read the words of a config.txt; empty if the file does not exist."""
    return words_of("\n".join(read_lines(path))) if files.exists(path) else []


def word_of(text: str) -> str:
    """Write a text as a word of config.txt, and of a shell's command if only its spaces have a meaning there."""
    return re.sub(f"[{SPACES}]", r"\\\g<0>", text)


def words_of(text: str) -> list[str]:
    """Split the text of a config.txt into its words."""
    return [re.sub(_ESCAPED_SPACE, r"\1", word) for word in re.findall(_WORD, text)]


def config_task(directory: str) -> Task:
    """Return the task of a challenge's config.txt alone; raises as :func:`config_values`."""
    return fields_of(Task, config_values(directory) | {"out_directory": directory})


def declared_documents(directory: str) -> str | Literal[False] | None:
    """Return the column of the documents by config.txt; None: not said; False: none; raises as config_values."""
    return fields_of(Settings, config_values(directory)).documents_by


def merged(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the challenge's config.txt, and after them the values of the command line.

    A mode, an order or the documents on the command line replace those of config.txt. Raises ConfigError and
    UnreadableFileError.
    """
    values = config_values(given.get("expected_directory", given.get("out_directory", ".")))
    for alternatives in (MODES, ORDERS, BY_DOCUMENTS):
        if given.keys() & set(alternatives):
            values = {name: value for name, value in values.items() if name not in alternatives}
    if given.keys() & set(WITHOUT_FORMAT):
        values.pop("format", None)
    adding = {field for field, option in OPTIONS.items() if option.repeatable and not option.replaces}
    both = adding & values.keys() & given.keys()
    return values | dict(given) | {name: tuple(dict.fromkeys((*values[name], *given[name]))) for name in both}


def task_and_settings(given: argparse.Namespace, *heeded: str, command: str = "") -> tuple[Task, Settings]:
    """Return a command's task and settings from its words and config.txt; given metrics replace the challenge's.

    All commands heed the format and what goes with it, the documents, the seed and the threads; ``heeded`` are the
    other settings that this one does. A ``command`` that is named takes one metric at most. Raises UsageError, and
    the errors of :func:`merged`.
    """
    fields = {*Task.defaults, *Settings.defaults}
    own = {
        name: value
        for name, value in vars(given).items()
        if name in fields and value is not None and value is not False
    }
    values = merged(own)
    heeded = ("format", *OF_COMMAND_LINE, *BY_DOCUMENTS, "seed", "threads", *heeded)
    settings = Settings(**{name: values[name] for name in heeded if name in values})
    task = fields_of(Task, values)
    if "alt_metrics" in own:
        task = task.replace(alt_metrics=own["alt_metrics"], select_metrics=())
        number = len(task.schemes())
        if command and number > 1:
            raise UsageError(f"geval {command} takes one metric; {number} were given")
    return task, settings


def fields_of(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Return a Task, or Settings, with the values that are its fields."""
    return kind(**{name: value for name, value in values.items() if name in kind.defaults})
