"""The options of ``geval`` in one table, the reading of words into their values, and the defaults of resampling."""

from __future__ import annotations

import os
import re

from geval_py.errors import UsageError
from geval_py.text import visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


DEFAULT_SAMPLES = 10_000  # errors: about 0.004 of a p-value of 0.05, a third of a percent of an interval's end
MOST_SAMPLES = 1_000_000
DEFAULT_SEED = 12345


def check_sampling(samples: int, seed: int = DEFAULT_SEED) -> None:
    """Raise UsageError unless there are 1 to MOST_SAMPLES samples and the seed is at least 0."""
    if samples < 1:
        raise UsageError(message="the number of bootstrap samples is at least 1")
    if samples > MOST_SAMPLES:
        raise UsageError(message=f"the number of samples is at most {MOST_SAMPLES}, not {samples}")
    if seed < 0:
        raise UsageError(message="the seed is a whole number from 0 on")


class Option(Value):
    """One option: its names, the field for its value, and its help.

    ``read`` converts a word into a value, or raises ValueError with a sentence about it; an option without it is a
    switch. A ``repeatable`` option collects its values; the command line's are appended to those of config.txt or, if
    it ``replaces``, take their place. An option that may be given only ``once`` may still be in both. A ``mode``
    chooses what is shown. ``goes_with`` are the modes that an option affects (all if empty); in other modes, and in
    those of ``useless_with``, it is refused with a message that ends in ``otherwise``. An option without ``help`` is
    known but not shown. ``argument`` is its name in Python, if not the field's; ``said`` is its name in messages, if
    not the first one.
    """

    names: tuple[str, ...]
    field: str
    help: str = ""
    group: str = ""
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

    @property
    def title(self) -> str:
        """All its names, as in ``-t/--test-name``."""
        return "/".join(self.names)


def natural_number(text: str) -> int:
    """Read a whole number of up to 15 digits; raises ValueError."""
    if not re.fullmatch("[0-9]{1,15}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader of one of the choices, which raises ValueError."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"invalid choice: {text!r} (choose from {', '.join(map(repr, choices))})")
        return text

    return read


def read_words(words: Sequence[str], options: Sequence[Option]) -> tuple[dict[str, object], list[str]]:
    """Read words into the values of options, by field, and the remaining words.

    If an option is given twice, the later value counts. Raises UsageError.
    """
    by_name = {name: option for option in options for name in option.names}
    values: dict[str, object] = {}
    strays: list[str] = []
    rest = iter(words)
    for word in rest:
        named = list(_named(word, by_name))
        strays += [] if named else [word]
        for option, value in named:
            _take(option, value, rest, values)
    return values, strays


def _named(word: str, by_name: dict[str, Option]) -> Iterator[tuple[Option, str | None]]:
    """Yield the options in a word, each with its value, if the word has one; nothing for other words."""
    name, equals, value = word.partition("=")
    if word in by_name:
        yield by_name[word], None
    elif name in by_name:
        yield by_name[name], value if equals else None
    elif word[:1] == "-" and word[1:2] != "-":
        yield from _letters(word, by_name)


def _letters(word: str, by_name: dict[str, Option]) -> Iterator[tuple[Option, str | None]]:
    """Yield the options of a word such as ``-lsp2``: switches, and at most one with a value."""
    found: list[tuple[Option, str | None]] = []
    for place, letter in enumerate(word[1:], 2):
        option = by_name.get(f"-{letter}")
        if option is None:
            return
        if option.read is not None:
            found.append((option, word[place:].removeprefix("=") or None))
            break
        found.append((option, None))
    yield from found


def _take(option: Option, value: str | None, rest: Iterator[str], values: dict[str, object]) -> None:
    """Store an option's value, which may be the next word."""
    if option.read is None:
        if value is not None:
            raise _wrong(option, f"ignored explicit argument {value!r}")
        values[option.field] = True
        return
    if value is None:
        value = next(rest, None)
        if value is None or _looks_like_an_option(value):
            raise _wrong(option, "expected one argument")
    try:
        read = option.read(value)
    except ValueError as error:
        raise _wrong(option, str(error)) from error
    if option.once and option.field in values:
        raise _wrong(option, f"given twice: {values[option.field]} and {value}; give one")
    before = values.get(option.field, ())
    values[option.field] = (*before, read) if option.repeatable and isinstance(before, tuple) else read


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and " " not in word and not re.fullmatch(r"-[0-9]*\.?[0-9]+", word)


def _wrong(option: Option, message: str) -> UsageError:
    message = visible(f"argument {option.title}: {message}")
    return UsageError(message=f"{message}\n  geval --help shows the options")


COMMANDS = {
    "baseline": "outputs of simple models, trained on the challenge's train",
    "board": "submissions collected, scored, ranked and published",
    "calibration": "whether an output means what it says",
    "challenge": "a challenge cut from texts, and what it gives away",
    "check": "every problem of a submission, without its answers",
    "compare": "which outputs are better, and whether by more than chance",
    "completion": "completions of a shell: bash, zsh or fish",
    "help": "what a command does, and its options",
    "lm": "n-gram language models, and the perplexity of texts",
    "luck": "what hashing gave scores, and what other seeds would give",
    "mix": "outputs mixed, where that is better than the best of them",
    "report": "an output explained on one page, with charts",
    "sample": "a sample challenge, copied into a new folder",
    "tune": "what would make an output better at once, found and applied",
}
FORMATS = ("text", "json", "csv")
MOST_DIGITS = 1100  # after the point: the smallest double has 1074
SCORES = "scores"  # the default mode, without an option
LINES = ("line_by_line", "diff")
FEATURES = ("worst_features", "most_worsening_features")
AUTHORING = ("init", "validate")  # modes that score no output
WHAT, METRICS, SHOWN, HOW = "what is scored", "metrics", "what is shown", "how it is shown"
CHALLENGE = "a challenge's folder, named by --expected-directory"

# Options of GEval that geval-py lacks; the IGNORED ones affect no score, so they are allowed in config.txt.
SUBMIT = "--submit"
NOT_AVAILABLE = (
    f"{SUBMIT} is not available in geval-py, since it asks a Gonito server to fetch a branch\n"
    "  commit the output and run git push; a board (geval board add) takes folders, archives and git branches"
)
IGNORED = (
    "--selector", "--references", "--plot-graph", "--gonito-host", "--gonito-git-annex-remote", "--token",
)  # fmt: skip
OF_FEATURES = "features, for -w, --most-worsening-features, --filter and marks"


def digits_after_point(text: str) -> int:
    """Read a precision; raises ValueError."""
    digits = natural_number(text)
    if digits > MOST_DIGITS:
        raise ValueError(f"{digits} digits are too many; a double has less than {MOST_DIGITS}")
    return digits


def _threads(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,3}", text):
        raise ValueError(f"{text!r} is not a whole number from 1 to 9999")
    return int(text)


def _samples(text: str) -> int:
    samples = natural_number(text)
    check_sampling(samples)
    return samples


def _tokenizer(text: str) -> str:
    from geval_py.reading.tokenizers import checked_name

    return checked_name(text)


OPTIONS = (
    Option(names=("-t", "--test-name"), field="test_name", argument="test", group=WHAT, read=str, metavar="NAME",
           once=True, useless_with=("validate",), help="the test set's sub-directory (default: test-A)"),
    Option(names=("--out-directory",), field="out_directory", group=WHAT, read=str, metavar="DIR",
           useless_with=AUTHORING,
           help="where the outputs are (default: .)"),
    Option(names=("--expected-directory",), field="expected_directory", group=WHAT, read=str, metavar="DIR",
           help="where the answers are (default: the out-directory)"),
    Option(names=("-e", "--expected-file"), field="expected_file", group=WHAT, read=str, metavar="FILE", once=True,
           help="the answers (default: expected.tsv)"),
    Option(names=("-i", "--input-file"), field="input_file", group=WHAT, read=str, metavar="FILE",
           useless_with=AUTHORING,
           help="the input (default: in.tsv)"),
    Option(names=("--in-header",), field="in_header", group=WHAT, read=str, metavar="FILE", useless_with=AUTHORING,
           help="a line with the names of the input's columns"),
    Option(names=("--out-header",), field="out_header", group=WHAT, read=str, metavar="FILE", useless_with=AUTHORING,
           help="a line with the names of the answers' columns"),
    Option(names=("-o", "--out-file"), field="out_files", argument="out", group=WHAT, read=str, metavar="FILE",
           repeatable=True, replaces=True, useless_with=AUTHORING,
           help="the output to score, looked for in DIR/NAME, then as a path; a folder, a pattern or a short name; - "
           "for standard input, or an http(s) address; repeatable (default: out.tsv and all out-*.tsv)"),

    Option(names=("-m", "--metric"), field="metrics", group=METRICS, read=str, metavar="METRIC", repeatable=True,
           said="--metric option\n  for example -m PerplexityHashed",  # GEval's words
           help="a metric, as LikelihoodHashed, LogLossHashed8 or {LogLoss,Perplexity}Hashed; repeatable"),
    Option(names=("-a", "--alt-metric"), field="alt_metrics", group=METRICS, read=str, metavar="METRIC",
           repeatable=True, help="a metric that replaces those of config.txt; repeatable"),
    Option(names=("--select-metric",), field="select_metrics", group=METRICS, read=str, metavar="NAME",
           repeatable=True, help="show only the metric with this name; repeatable"),
    Option(names=("--vocabulary",), field="vocabulary", group=METRICS, read=str, metavar="FILE",
           useless_with=("init",),
           help="words, one a line, for metrics on exact words (default: the words of train/expected.tsv)"),
    Option(names=("-T", "--tokenizer"), field="tokenizer", argument="tokenizer", group=METRICS, read=_tokenizer,
           metavar="NAME", useless_with=AUTHORING,
           help="how lines are split into tokens, for BLEU and other metrics of words, and for features: "
           "minimalistic, character-by-character, 13a or v14"),
    Option(names=("--list-metrics",), field="list_metrics", group=METRICS, help="list the metrics and exit"),

    Option(names=("-l", "--line-by-line"), field="line_by_line", group=SHOWN, mode=True,
           help="score, input, answer and output of every line"),
    Option(names=("-s", "--sort"), field="sort", group=SHOWN, goes_with=(*LINES, *FEATURES),
           help="with -l and -d: the worst lines first"),
    Option(names=("-r", "--reverse-sort"), field="reverse_sort", group=SHOWN, goes_with=(*LINES, *FEATURES),
           help="with -l and -d: the best first; with -w: what is best"),
    Option(names=("--filter",), field="filters", group=SHOWN, read=str, metavar="FEATURE", repeatable=True,
           goes_with=LINES, otherwise="; a metric that is filtered: METRIC:f<FEATURE>",
           help="with -l and -d: only items that have it, as exp:the or in<Year>:1901; several: that have all"),
    Option(names=("--mark-worst-features",), field="mark_worst_features", group=SHOWN, goes_with=("line_by_line",),
           help="with -l, on a terminal: mark the words of bad lines"),
    Option(names=("--show-preprocessed",), field="show_preprocessed", group=SHOWN, goes_with=LINES,
           help="with -l and -d: lines as a metric's flags leave them"),
    Option(names=("-w", "--worst-features"), field="worst_features", group=SHOWN, mode=True,
           help="what goes with bad scores: words, columns, lengths"),
    Option(names=("-d", "--diff"), field="diff", group=SHOWN, read=str, metavar="OTHER", mode=True,
           help="lines that another output answers otherwise: the score minus the other's, the texts, the other's "
           "line"),
    Option(names=("--most-worsening-features",), field="most_worsening_features", group=SHOWN, read=str,
           metavar="OTHER", mode=True, help="what goes with being worse than another output"),
    Option(names=("--oracle-item-based",), field="oracle_item_based", group=SHOWN, mode=True,
           help="the best line of -o and each --alt-out-file"),
    Option(names=("--alt-out-file",), field="alt_out_files", group=SHOWN, read=str, metavar="FILE", repeatable=True,
           goes_with=("oracle_item_based",), help="another output; repeatable"),

    Option(names=("-p", "--precision"), field="precision", group=HOW, read=digits_after_point, metavar="N",
           useless_with=("validate",), help="digits after the point"),
    Option(names=("-%", "--show-as-percentage"), field="percentage", group=HOW, useless_with=("validate",),
           help="times 100, with two digits fewer"),
    Option(names=("-B", "--bootstrap"), field="bootstrap", group=HOW, read=_samples, metavar="N",
           goes_with=(SCORES,), otherwise=", not with another mode",
           help="show the 95 % interval of a score, from N resamples of the lines (1000 are typical)"),
    Option(names=("--seed",), field="seed", group=HOW, read=natural_number, metavar="S",
           help=f"with -B: of its random numbers (default: {DEFAULT_SEED})"),
    Option(names=("--documents",), field="documents", group=HOW, read=str, metavar="COLUMN",
           goes_with=(SCORES, *FEATURES),
           help="with -B: by documents, the lines on which a column of the input (its name or number) is the same; "
           "with -w and --format json: on how many a feature is"),
    Option(names=("--by-score",), field="by_score", group=HOW, goes_with=(SCORES,),
           otherwise="; lines have --sort and --reverse-sort",
           help="of several outputs, the best first, by the first metric"),
    Option(names=("--format",), field="format", group=HOW, read=one_of(FORMATS), metavar="{text,json,csv}",
           help="text (the default), one JSON document, or CSV"),
    Option(names=("--threads",), field="threads", group=HOW, read=_threads, metavar="N", useless_with=AUTHORING,
           help="threads that score (default: one a core)"),
    Option(names=("--cluster",), field="cluster", group=HOW, read=str, metavar="ADDRESS",
           goes_with=(SCORES, *FEATURES), otherwise="; lines are shown here",
           help="let the workers of the Dask scheduler at ADDRESS do it, or new ones on this machine: local"),
    Option(names=("-v", "--version"), field="version", group=HOW, help="show the version and the kernel's backend"),
    Option(names=("-h", "--help"), field="help", group=HOW, help="show this and exit"),

    Option(names=("-j", "--just-tokenize"), field="just_tokenize", group=OF_FEATURES, mode=True,
           help="only write standard input as tokens, by -T"),
    Option(names=("--min-frequency",), field="min_frequency", group=OF_FEATURES, read=natural_number, metavar="N",
           goes_with=(*FEATURES, "line_by_line"), help="only what is on N items, and missing on N (1)"),
    Option(names=("--distinct",), field="distinct", group=OF_FEATURES, goes_with=FEATURES,
           help="only the few that together explain the bad lines, the one that says most first"),
    Option(names=("--bigrams",), field="bigrams", group=OF_FEATURES, goes_with=(*FEATURES, *LINES),
           help="neighbouring words too, as in<Text>:New++York"),
    Option(names=("--word-shapes",), field="word_shapes", group=OF_FEATURES, goes_with=(*FEATURES, *LINES),
           help="shapes of words too, as exp:SHAPE:Aa+"),
    Option(names=("--numerical-features",), field="numerical_features", group=OF_FEATURES,
           goes_with=(*FEATURES, *LINES), help="lengths and numbers too, as exp:=#+ and in<Year>:=-"),
    Option(names=("--cartesian",), field="cartesian", group=OF_FEATURES, goes_with=(*FEATURES, *LINES),
           help="pairs of features too, as exp:the~~in<Year>:1901"),
    Option(names=("--min-cartesian-frequency",), field="min_cartesian_frequency", group=OF_FEATURES,
           read=natural_number, metavar="N", goes_with=(*FEATURES, "line_by_line"),
           help="pairs of what is on N items at least"),

    Option(names=("--init",), field="init", group=CHALLENGE, mode=True,
           help="write a new one, with sample data, for the metrics given"),
    Option(names=("--validate",), field="validate", group=CHALLENGE, mode=True,
           help="tell what is wrong with one: its files, and whether a perfect output gets the best score"),

    Option(names=("-S", SUBMIT), field=SUBMIT),
    *(Option(names=(name,), field=name, read=str) for name in IGNORED),
)  # fmt: skip


def option_of(field: str) -> Option:
    """Return the option for a field."""
    return next(option for option in OPTIONS if option.field == field)


def said_option(argument: str) -> str:
    """Return the name of a Python argument in messages of the command line.

    >>> said_option("out"), said_option("min_frequency")
    ('-o', '--min-frequency')
    """
    option = next(option for option in OPTIONS if argument == (option.argument or option.field))
    return option.said or option.names[0]


def unknown_word(word: str, *, of_challenge: bool = False) -> str:
    """Return the message about an unknown word, with a suggestion: a challenge's folder if one may be meant."""
    kind = "option" if word.startswith("-") else "argument"
    if of_challenge and kind == "argument":
        advice: str | None = f"did you mean --expected-directory {visible(word)}?"
    else:
        advice = _advice(word)
    return f"Invalid {kind} `{visible(word)}'\n  {advice or 'geval --help shows the options'}"


def _advice(word: str) -> str | None:
    from geval_py.reading.meanings import command_meant, option_meant

    if word.startswith("-"):
        meant = option_meant(word, (name for option in OPTIONS for name in option.names), COMMANDS)
    elif os.path.isdir(word):
        meant = f"-t {visible(word)}"
    else:
        meant = command_meant(word, COMMANDS)
    if meant in COMMANDS:
        return f"geval {meant} …, the command first, if that was meant"
    return None if meant is None else f"did you mean {meant}?"
