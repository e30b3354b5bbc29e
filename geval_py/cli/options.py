"""The words of the command line: the table of commands, the table of options, and what given options mean together.

How an option is written, and how its value is read, is in :mod:`geval_py.reading.config`, since config.txt has the
same options; this file has its help, and the modes that it goes with.
"""

from __future__ import annotations

import os

from geval_py.errors import ConfigError, UsageError
from geval_py.reading import config, splits
from geval_py.reading.splits import Task
from geval_py.tables.formats import FORMATS
from geval_py.text import named, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from geval_py.explaining.documents import DocumentsBy

COMMANDS = {  # what each does, and its module, which has make_parser and run
    "baseline": ("outputs of simple models, trained on the challenge's train", "geval_py.cli.baseline"),
    "board": ("submissions collected, scored, ranked and published", "geval_py.cli.board"),
    "calibration": ("whether an output means what it says", "geval_py.cli.calibration"),
    "challenge": ("a challenge cut from texts, and what it gives away", "geval_py.cli.challenge"),
    "check": ("every problem of a submission, without its answers", "geval_py.cli.check"),
    "compare": ("which outputs are better, and whether by more than chance", "geval_py.cli.compare"),
    "completion": ("completions of a shell: bash, zsh or fish", "geval_py.cli.completion"),
    "convert": ("an output in another format: TSV, JSON lines, Parquet or CSV", "geval_py.cli.convert"),
    "help": ("what a command does, and its options", "geval_py.cli.help"),
    "lm": ("n-gram language models, and the perplexity of texts", "geval_py.cli.lm"),
    "luck": ("what hashing gave scores, and what other seeds would give", "geval_py.cli.luck"),
    "mix": ("outputs mixed, where that is better than the best of them", "geval_py.cli.mix"),
    "predict": ("the output of a language model, with its words' probabilities", "geval_py.cli.predict"),
    "report": ("an output explained on one page, with charts", "geval_py.cli.report"),
    "sample": ("a sample challenge, copied into a new folder", "geval_py.cli.sample"),
    "submit": ("an output sent to the server of a board, and its score", "geval_py.cli.submit"),
    "tune": ("what would make an output better at once, found and applied", "geval_py.cli.tune"),
}
SCORES = "scores"  # the mode without an option
LINES = ("line_by_line", "diff")
FEATURES = ("worst_features", "most_worsening_features")
SHOWING_LINES = (*LINES, *FEATURES)
WITHOUT_FORMAT = ("oracle_item_based", "just_tokenize", *config.AUTHORING)
ORDERS = ("sort", "reverse_sort")
# The headings of the help.
WHAT, METRICS, SHOWN, HOW = "what is scored", "metrics", "what is shown", "how it is shown"
OF_FEATURES = "features, for -w, --most-worsening-features, --filter and marks"
CHALLENGE = "a challenge's folder, named by --expected-directory"


class Option(config.Option):
    """An option as the command line knows it.

    ``group`` is the heading above it in the help, ``metavar`` names its value there. ``mode`` marks an option that
    chooses what is shown. ``goes_with`` are the modes that use the option (none: all modes); with another mode it is
    refused, in a sentence that ``otherwise`` ends, as it is with the modes of ``useless_with``. ``argument`` is its
    name in Python, if that is not the field's; ``said`` its name in a sentence, if that is not its first one.
    """

    help: str = ""
    group: str = ""
    metavar: str = ""
    mode: bool = False
    goes_with: tuple[str, ...] = ()
    otherwise: str = ""
    useless_with: tuple[str, ...] = ()
    argument: str = ""
    said: str = ""


OPTIONS_BY_GROUP: dict[str, tuple[tuple[str, str, str, dict[str, Any]], ...]] = {  # field, value, help, more
    WHAT: (
        ("test_name", "NAME", "the test set's sub-directory (default: test-A)",
         {"argument": "test", "useless_with": ("validate",)}),
        ("out_directory", "DIR", "where the outputs are (default: .)", {"useless_with": config.AUTHORING}),
        ("expected_directory", "DIR", "where the answers are (default: the out-directory)", {}),
        ("challenges", "DIR", "the folder of a challenge; repeatable: the scores of all are in one table",
         {"goes_with": (SCORES,)}),
        ("expected_file", "FILE", "the answers (default: expected.tsv)", {}),
        ("input_file", "FILE", "the input (default: in.tsv)", {"useless_with": config.AUTHORING}),
        ("in_header", "FILE", "a line with the names of the input's columns", {"useless_with": config.AUTHORING}),
        ("out_header", "FILE", "a line with the names of the answers' columns", {"useless_with": config.AUTHORING}),
        ("selector", "KEYS",
         "what is scored of JSON lines: keys with / between them, as root/items; answers and outputs end in .jsonl",
         {"useless_with": config.AUTHORING}),
        ("out_files", "FILE",
         "the output to score, looked for in DIR/NAME, then as a path; a folder, a pattern or a short name; - "
         "for standard input, or an http(s) address; repeatable (default: out.tsv and all out-*.tsv)",
         {"argument": "out", "useless_with": config.AUTHORING}),
    ),
    METRICS: (
        ("metrics", "METRIC",
         "a metric, as LikelihoodHashed, LogLossHashed8 or {LogLoss,Perplexity}Hashed; repeatable",
         {"said": "--metric option\n  for example -m PerplexityHashed"}),  # GEval's words
        ("alt_metrics", "METRIC", "a metric that replaces those of config.txt; repeatable", {}),
        ("select_metrics", "NAME", "show only the metric with this name; repeatable", {}),
        ("vocabulary", "FILE",
         "words, one a line, for metrics on exact words (default: the words of train/expected.tsv)",
         {"useless_with": ("init",)}),
        ("tokenizer", "NAME",
         "how lines are split into tokens, for BLEU and other metrics of words, and for features: "
         "minimalistic, character-by-character, 13a or v14",
         {"argument": "tokenizer", "useless_with": config.AUTHORING}),
        ("list_metrics", "", "list the metrics and exit", {}),
    ),
    SHOWN: (
        ("line_by_line", "", "score, input, answer and output of every line", {"mode": True}),
        ("sort", "", "with -l and -d: the worst lines first", {"goes_with": (*LINES, *FEATURES)}),
        ("reverse_sort", "", "with -l and -d: the best first; with -w: the features of good lines",
         {"goes_with": (*LINES, *FEATURES)}),
        ("filters", "FEATURE",
         "with -l and -d: only items with this feature, as exp:the or in<Year>:1901; repeatable: items with all",
         {"goes_with": LINES, "otherwise": "; a metric that is filtered: METRIC:f<FEATURE>"}),
        ("mark_worst_features", "", "with -l, on a terminal: mark the words of bad lines",
         {"goes_with": ("line_by_line",)}),
        ("show_preprocessed", "", "with -l and -d: lines as a metric's flags leave them", {"goes_with": LINES}),
        ("worst_features", "", "what goes with bad scores: words, columns, lengths", {"mode": True}),
        ("diff", "OTHER",
         "lines that another output answers otherwise: the score minus the other's, the texts, the other's line",
         {"mode": True}),
        ("most_worsening_features", "OTHER", "what goes with being worse than another output", {"mode": True}),
        ("oracle_item_based", "", "the best line of -o and each --alt-out-file", {"mode": True}),
        ("alt_out_files", "FILE", "another output; repeatable", {"goes_with": ("oracle_item_based",)}),
        ("plot_graph", "FILE",
         "draw the calibration curve of Probabilistic-MultiLabel-F1 and the like, as an SVG file; FILE-1 and so on "
         "are of further metrics",
         {"goes_with": (SCORES,)}),
    ),
    HOW: (
        ("precision", "N", "digits after the point", {"useless_with": ("validate",)}),
        ("percentage", "", "times 100, with two digits fewer", {"useless_with": ("validate",)}),
        ("bootstrap", "N", "show the 95 % interval of a score, from N resamples of the lines (1000 are typical)",
         {"goes_with": (SCORES,), "otherwise": ", not with another mode"}),
        ("seed", "S", f"with -B: the seed of its random numbers (default: {config.DEFAULT_SEED})", {}),
        ("documents", "COLUMN",
         "with -B and -w: by documents, the lines with the same value in a column of the input (its name or number); "
         "-w shows q",
         {"goes_with": (SCORES, *FEATURES)}),
        ("no_documents", "", "with -B and -w: do not look whether lines are alike by a column of the input",
         {"goes_with": (SCORES, *FEATURES)}),
        ("by_score", "", "of several outputs, the best first, by the first metric",
         {"goes_with": (SCORES,), "otherwise": "; lines have --sort and --reverse-sort"}),
        ("format", "FORMAT", f"{', '.join(FORMATS)} (default: text)", {}),
        ("caption", "TEXT", "with --format latex: a caption; the table then stands in a table environment", {}),
        ("label", "NAME", "with --format latex: a label, as tab:scores; in a table environment, too", {}),
        ("names", "OUT=NAME",
         "show the output OUT as NAME, not in CSV and JSON; repeatable", {"goes_with": (SCORES,)}),
        ("threads", "N", "threads that score (default: one a core)", {"useless_with": config.AUTHORING}),
        ("cluster", "ADDRESS",
         "let the workers of the Dask scheduler at ADDRESS do it, or new ones on this machine: local",
         {"goes_with": (SCORES, *FEATURES), "otherwise": "; lines are shown here"}),
        ("version", "", "show the version and the kernel's backend", {}),
        ("help", "", "show this and exit", {}),
    ),
    OF_FEATURES: (
        ("just_tokenize", "", "only write standard input as tokens, by -T", {"mode": True}),
        ("min_frequency", "N", "only features that N items or more have, and N or more have not (default: 1)",
         {"goes_with": (*FEATURES, "line_by_line")}),
        ("top", "N", "only the first N features of the list", {"goes_with": FEATURES}),
        ("distinct", "", "only the few features that together explain the bad lines, the most telling first",
         {"goes_with": FEATURES}),
        ("bigrams", "", "neighbouring words too, as in<Text>:New++York", {"goes_with": (*FEATURES, *LINES)}),
        ("word_shapes", "", "shapes of words too, as exp:SHAPE:Aa+", {"goes_with": (*FEATURES, *LINES)}),
        ("numerical_features", "", "lengths and numbers too, as exp:=#+ and in<Year>:=-",
         {"goes_with": (*FEATURES, *LINES)}),
        ("references", "FILE",
         "texts, each behind a number and a TAB, for fields such as 7 0-4,10: these characters of text 7",
         {"goes_with": (*FEATURES, *LINES)}),
        ("cartesian", "", "pairs of features too, as exp:the~~in<Year>:1901", {"goes_with": (*FEATURES, *LINES)}),
        ("min_cartesian_frequency", "N", "only pairs of features that N items or more have",
         {"goes_with": (*FEATURES, "line_by_line")}),
    ),
    CHALLENGE: (
        ("init", "", "write a new one, with sample data, for the metrics given", {"mode": True}),
        ("validate", "", "list the faults of one: its files, and whether a perfect output gets the best score",
         {"mode": True}),
    ),
}  # fmt: skip
_WORDS = {option.field: option for option in config.OPTIONS}
OPTIONS = [
    Option(**vars(_WORDS[field]), group=group, metavar=metavar, help=help, **more)
    for group, rows in OPTIONS_BY_GROUP.items()
    for field, metavar, help, more in rows
]
BY_DOCUMENTS = ("documents", "no_documents")  # the settings that say which lines belong together
MODES = tuple(option.field for option in OPTIONS if option.mode)


def option_of(field: str) -> Option:
    """Return the option that sets a field."""
    return next(option for option in OPTIONS if option.field == field)


def said_option(argument: str) -> str:
    """Return the name on the command line of an argument in Python.

    An option that only another command has is named like its argument.

    >>> said_option("out"), said_option("min_frequency"), said_option("force")
    ('-o', '--min-frequency', '--force')
    """
    option = next((option for option in OPTIONS if argument == (option.argument or option.field)), None)
    return f"--{argument.replace('_', '-')}" if option is None else option.said or option.names[0]


def unknown_word(word: str, *, of_challenge: bool = False, first: str = "") -> str:
    """Return the sentence about a word that is no option, with what may have been meant.

    ``of_challenge`` is true where a challenge's folder may have been meant. ``first`` is the first of all words,
    where a command may stand.
    """
    from geval_py.cli.suggestions import command_meant, option_meant

    if of_challenge and not word.startswith("-"):
        return config.invalid_word(word, f"did you mean --expected-directory {visible(word)}?")
    if word.startswith("-"):
        meant = option_meant(word, (name for option in config.OPTIONS for name in option.names), COMMANDS)
    elif os.path.isdir(word):
        meant = f"-t {visible(word)}"
    elif ".tsv" in word:
        meant = f"-o {visible(word)}"
    else:
        meant = command_meant(word, COMMANDS)
    if meant in COMMANDS and word == first and not word.startswith("-"):
        return config.invalid_word(word, f"did you mean geval {meant}?")
    if meant in COMMANDS:
        return config.invalid_word(word, f"geval {meant} …, the command first, if that was meant")
    return config.invalid_word(word, None if meant is None else f"did you mean {meant}?")


def check_of_latex(values: Mapping[str, Any]) -> None:
    """Raise UsageError for a caption or a label in another format."""
    for field in ("caption", "label"):
        if values.get(field) is not None and values["format"] != "latex":
            raise UsageError(message=f"--{field} goes with --format latex")


class Settings(Value):
    """What is shown, and how. The fields are named as the options are; ``ignored`` names those without effect."""

    precision: int | None = None
    percentage: bool = False
    bootstrap: int | None = None
    seed: int = config.DEFAULT_SEED
    documents: str | None = None
    no_documents: bool = False
    by_score: bool = False
    format: str = "text"
    caption: str | None = None
    label: str | None = None
    names: tuple[tuple[str, str], ...] = ()
    threads: int | None = None
    cluster: str | None = None
    challenges: tuple[str, ...] = ()
    line_by_line: bool = False
    sort: bool = False
    reverse_sort: bool = False
    filters: tuple[str, ...] = ()
    show_preprocessed: bool = False
    mark_worst_features: bool = False
    worst_features: bool = False
    diff: str | None = None
    most_worsening_features: str | None = None
    oracle_item_based: bool = False
    alt_out_files: tuple[str, ...] = ()
    plot_graph: str | None = None
    distinct: bool = False
    top: int | None = None
    min_frequency: int = 1
    bigrams: bool = False
    word_shapes: bool = False
    numerical_features: bool = False
    references: str | None = None
    cartesian: bool = False
    min_cartesian_frequency: int | None = None
    just_tokenize: bool = False
    init: bool = False
    validate: bool = False
    help: bool = False
    version: bool = False
    list_metrics: bool = False
    ignored: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise UsageError for settings that do not go together."""
        if self.sort and self.reverse_sort:
            raise UsageError(message="--sort shows the worst lines first, --reverse-sort the best: take one")
        modes = [option_of(mode).long_name for mode in self._modes()]
        if len(modes) > 1:
            raise UsageError(message=f"{' and '.join(modes)} are different modes: take one")
        if self.mode in WITHOUT_FORMAT and self.format != "text":
            raise UsageError(message=f"{modes[0]} has no {self.format} format; leave --format out")
        check_of_latex(vars(self))
        if self.plot_graph is not None and not self.plot_graph.endswith(".svg"):
            path = named(self.plot_graph)
            raise UsageError(message=f"--plot-graph draws SVG: name a file that ends in .svg, not {path}")
        if self.plot_graph is not None and self.challenges:
            raise UsageError(message="--plot-graph is of one challenge: leave --challenge out")
        if self.no_documents and self.documents is not None:
            raise UsageError(message="--documents and --no-documents are opposites: take one")
        if self.mark_worst_features and self.show_preprocessed:
            raise UsageError(message="--mark-worst-features marks lines as they are: leave --show-preprocessed out")
        if self.oracle_item_based and not self.alt_out_files:
            raise UsageError(message="--oracle-item-based chooses between outputs: name others with --alt-out-file")

    @property
    def documents_by(self) -> DocumentsBy:
        """The column of the documents; None: find one; False: none."""
        return False if self.no_documents else self.documents

    def _modes(self) -> list[str]:
        return [mode for mode in MODES if getattr(self, mode) not in (False, None)]

    @property
    def mode(self) -> str:
        """What is shown: "scores", or the field of the option that asks for another thing."""
        return next(iter(self._modes()), SCORES)


def parse(words: Sequence[str]) -> tuple[Task, Settings]:
    """Read the plain command line's words, and the challenge's config.txt before them.

    Raises UsageError, ConfigError and UnreadableFileError.
    """
    from functools import partial

    given = config.parse_words(
        words, takes_files=True, unknown=partial(unknown_word, first=words[0] if words else "")
    )
    if given.keys() & config.SHOW_AND_EXIT:
        return Task(), _settings_of({name: given[name] for name in config.SHOW_AND_EXIT & given.keys()})
    has_no_config = given.keys() & {
        *config.AUTHORING,
        "challenges",
    }  # it is still to be written, or there are several
    values = given if has_no_config else merged(given)
    settings = _settings_of(values)
    _check_mode_of(given.keys(), settings.mode)
    if "seed" in given and settings.bootstrap is None:
        raise UsageError(message="--seed goes with --bootstrap")
    for field in BY_DOCUMENTS:
        if field in given and settings.mode == SCORES and settings.bootstrap is None:
            name = option_of(field).long_name
            raise UsageError(message=f"{name} goes with --bootstrap, --worst-features or geval compare")
    needs_items = "input_file" in values and settings.mode in SHOWING_LINES  # else lines are shown without it
    return config.task_of(values | {"needs_items": needs_items}), settings


def parse_each(words: Sequence[str], challenges: Sequence[str]) -> Iterator[tuple[Task, Settings]]:
    """Read the words once more for each challenge, with its own config.txt; raises as :func:`parse`."""
    given = config.parse_words(words, takes_files=True)
    del given["challenges"]
    for field in ("out_directory", "expected_directory"):
        if field in given:
            raise UsageError(message=f"--challenge says where all is: leave {option_of(field).long_name} out")
    for folder in challenges:
        values = merged(given | {"out_directory": folder, "expected_directory": folder})
        yield config.task_of(values), _settings_of(values)


def _settings_of(values: Mapping[str, Any]) -> Settings:
    return Settings(**{name: value for name, value in values.items() if name in Settings.fields})


def _check_mode_of(given: Collection[str], mode: str) -> None:
    """Refuse a given option that the mode would ignore; options in config.txt may be for another mode."""
    for option in OPTIONS:
        if option.field in given and option.goes_with and mode not in option.goes_with:
            *others, last = (SCORES if of == SCORES else option_of(of).long_name for of in option.goes_with)
            together = f"{', '.join(others)} or {last}" if others else last
            raise UsageError(message=f"{option.long_name} goes with {together}{option.otherwise}")
        if option.field in given and mode in option.useless_with:
            without = option_of(mode).long_name
            raise UsageError(message=f"{option.long_name} has no effect with {without}: leave it out")


def merged(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the challenge's config.txt, and after them the values of the command line.

    A mode, an order or the documents on the command line replace those of config.txt. Raises ConfigError and
    UnreadableFileError.
    """
    directory = given.get("expected_directory", given.get("out_directory", "."))
    values = config.config_values(directory, unknown_word)
    try:
        _settings_of(values)
    except UsageError as error:
        raise ConfigError(path=f"{directory}/{splits.CONFIG_FILE}", message=error.message) from error
    for alternatives in (MODES, ORDERS, BY_DOCUMENTS):
        if given.keys() & set(alternatives):
            values = {name: value for name, value in values.items() if name not in alternatives}
    if given.keys() & set(WITHOUT_FORMAT):
        values.pop("format", None)
    adding = {option.field for option in OPTIONS if option.repeatable and not option.replaces}
    both = adding & values.keys() & given.keys()
    return values | dict(given) | {name: tuple(dict.fromkeys((*values[name], *given[name]))) for name in both}


def task_and_settings(given: Mapping[str, Any], metrics: Sequence[str], *heeded: str) -> tuple[Task, Settings]:
    """Return a command's task and settings from its words and config.txt; given metrics replace the challenge's.

    All commands heed the format and what goes with it, the seed and the threads; ``heeded`` are the other settings
    that this one does.
    Raises UsageError, and the errors of :func:`merged`.
    """
    values = merged(given)
    heeded = ("format", *config.OF_COMMAND_LINE, "seed", "threads", "ignored", *heeded)
    settings = _settings_of({name: values[name] for name in heeded if name in values})
    task = config.task_of(values)
    return (task.replace(alt_metrics=tuple(metrics), select_metrics=()) if metrics else task), settings


def check_one_metric(task: Task, metrics: Sequence[str], command: str) -> None:
    """Raise UsageError if more than one metric was given to a command that takes one."""
    number = len(task.schemes()) if metrics else 1
    if number > 1:
        raise UsageError(message=f"geval {command} takes one metric; {number} were given")
