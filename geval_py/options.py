r"""GEval's options, from the command line and from a challenge's config.txt, as one frozen value.

config.txt is read first: its words, split at white space (a backslash before white space keeps it; there are no
quotes and no comments), come in front of the command line's words. Metrics of both add up; another option that
is given twice takes the later value, so the command line wins.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NoReturn

from geval_py.errors import ConfigError, UnreadableFileError, UsageError, visible
from geval_py.schemes import EvaluationScheme, parse_schemes

CONFIG_FILE = "config.txt"
MOST_DIGITS = 1100  # after the point: the smallest double has 1074
_SHOW_AND_EXIT = frozenset({"help", "version", "list_metrics"})
FORMATS = ("text", "json")
SCORES = "scores"
_MODES = ("line_by_line", "worst_features", "diff", "most_worsening_features", "oracle_item_based", "just_tokenize")
_MODES_WITHOUT_INPUT = (SCORES, "oracle_item_based", "just_tokenize")
DEFAULT_SEED = 12345  # of the random numbers of the bootstrap, and of tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to score and how to show it. Names are those of the command line; None means its default."""

    test_name: str = "test-A"
    out_directory: str = "."
    expected_directory: str | None = None
    out_file: str | None = None
    expected_file: str | None = None
    input_file: str | None = None
    metrics: tuple[str, ...] = ()
    alt_metrics: tuple[str, ...] = ()
    select_metric: str | None = None
    vocabulary: str | None = None
    in_header: str | None = None
    out_header: str | None = None
    precision: int | None = None
    percentage: bool = False
    bootstrap: int | None = None
    seed: int = DEFAULT_SEED
    format: str = "text"
    threads: int | None = None
    line_by_line: bool = False
    sort: bool = False
    reverse_sort: bool = False
    filter: str | None = None
    show_preprocessed: bool = False
    mark_worst_features: bool = False
    worst_features: bool = False
    diff: str | None = None
    most_worsening_features: str | None = None
    oracle_item_based: bool = False
    alt_out_files: tuple[str, ...] = ()
    min_frequency: int = 1
    bigrams: bool = False
    word_shapes: bool = False
    numerical_features: bool = False
    cartesian: bool = False
    min_cartesian_frequency: int | None = None
    tokenizer: str | None = None
    just_tokenize: bool = False
    help: bool = False
    version: bool = False
    list_metrics: bool = False

    def __post_init__(self) -> None:
        if self.bootstrap == 0:
            raise UsageError(message="the number of bootstrap samples is at least 1")
        if self.sort and self.reverse_sort:
            raise UsageError(message="--sort shows the worst lines first, --reverse-sort the best: take one")
        modes = [option_name(mode) for mode in _MODES if getattr(self, mode) not in (False, None)]
        if len(modes) > 1:
            raise UsageError(message=f"{' and '.join(modes)} are different modes: take one")
        if modes and self.format != "text":
            raise UsageError(message=f"{modes[0]} has no {self.format} format; leave --format out")
        if self.filter is not None and self.mode not in ("line_by_line", "diff"):
            raise UsageError(
                message="--filter goes with --line-by-line or --diff; a metric that is filtered: METRIC:f<FEATURE>"
            )
        if self.mark_worst_features and not self.line_by_line:
            raise UsageError(message="--mark-worst-features goes with --line-by-line")
        if self.oracle_item_based and not self.alt_out_files:
            raise UsageError(message="--oracle-item-based chooses between outputs: name others with --alt-out-file")

    @property
    def mode(self) -> str:
        """What is shown: "scores", or the name of the option that asks for another thing."""
        return next((mode for mode in _MODES if getattr(self, mode) not in (False, None)), SCORES)

    @property
    def needs_input(self) -> bool:
        """Tell whether the input file must be there."""
        if self.mode not in _MODES_WITHOUT_INPUT:
            return True
        return any(name.startswith("in") for scheme in self.schemes() for name in scheme.filters)

    @property
    def challenge_directory(self) -> str:
        """The directory with the expected results, the headers and config.txt."""
        return self.out_directory if self.expected_directory is None else self.expected_directory

    def schemes(self) -> list[EvaluationScheme]:
        """Give the metrics to score with, products multiplied out; raises SchemeError or UsageError."""
        return _checked_schemes(self.alt_metrics or self.metrics)


def _checked_schemes(texts: Iterable[str]) -> list[EvaluationScheme]:
    """Parse metric arguments; raises SchemeError, also for a regular expression that is broken."""
    schemes = [scheme for text in texts for scheme in parse_schemes(text)]
    if any(scheme.text_flags for scheme in schemes):
        from geval_py.preparation import preparation_of

        for scheme in schemes:
            preparation_of(scheme)
    return schemes


def option_name(field: str) -> str:
    """Give the command line's name of an option."""
    return "--" + field.replace("_", "-")


_NOT_YET = (  # GEval's options that geval-py knows of but does not have yet, and their number of arguments
    (("--init",), 0),
    (("--validate",), 0),
    (("-S", "--submit"), 0),
    (("--selector",), 1),
    (("--references",), 1),
    (("--plot-graph",), 1),
    (("--gonito-host",), 1),
    (("--gonito-git-annex-remote",), 1),
    (("--token",), 1),
)


class _NotYet(argparse.Action):
    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError(message=f"{self.option_strings[-1]} is not available yet in geval-py")


class QuietParser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError instead of printing and exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message=f"{visible(message)}\n  geval --help shows the options")


@cache
def make_parser() -> argparse.ArgumentParser:
    """Make the parser of GEval's plain command line."""
    parser = QuietParser(
        prog="geval",
        usage="geval [options]\n       geval COMMAND …",
        description="Score word-gap prediction exactly as GEval does, and learn why.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
        argument_default=argparse.SUPPRESS,
    )
    _add_files(parser.add_argument_group("what is scored"))
    _add_metrics(parser.add_argument_group("metrics"))
    _add_modes(parser.add_argument_group("what is shown"))
    _add_features(parser.add_argument_group("features, for -w and --most-worsening-features"))
    for names, arguments in _NOT_YET:
        parser.add_argument(*names, action=_NotYet, nargs=arguments, help=argparse.SUPPRESS)
    return parser


def _add_files(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("-t", "--test-name", metavar="NAME", help="the test set's sub-directory (default: test-A)")
    add("--out-directory", metavar="DIR", help="where the outputs are (default: .)")
    add("--expected-directory", metavar="DIR", help="where the answers are (default: the out-directory)")
    add(
        "-o",
        "--out-file",
        metavar="FILE",
        help="the output to score, looked for in DIR/NAME, then as a path; - for standard input, or an "
        "http(s) address (default: out.tsv and all out-*.tsv)",
    )
    add("-e", "--expected-file", metavar="FILE", help="the answers (default: expected.tsv)")
    add("-i", "--input-file", metavar="FILE", help="the input (default: in.tsv)")
    add("--in-header", metavar="FILE", help="a line with the names of the input's columns")
    add("--out-header", metavar="FILE", help="a line with the names of the answers' columns")


def _add_metrics(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "-m",
        "--metric",
        dest="metrics",
        action="append",
        metavar="METRIC",
        help="a metric, as LikelihoodHashed, LogLossHashed8 or {LogLoss,Perplexity}Hashed; repeatable",
    )
    add(
        "-a",
        "--alt-metric",
        dest="alt_metrics",
        action="append",
        metavar="METRIC",
        help="a metric that replaces those of config.txt; repeatable",
    )
    add("--select-metric", metavar="NAME", help="show only the metric with this name")
    add(
        "--vocabulary",
        metavar="FILE",
        help="words, one a line, for metrics on exact words (default: the words of train/expected.tsv)",
    )
    add("--list-metrics", action="store_true", help="list the metrics and exit")


def _add_modes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("-l", "--line-by-line", action="store_true", help="score, input, answer and output of every line")
    add("-s", "--sort", action="store_true", help="with -l and -d: the worst lines first")
    add("-r", "--reverse-sort", action="store_true", help="with -l and -d: the best first; with -w: what is best")
    add("--filter", metavar="FEATURE", help="with -l and -d: only items that have it, as exp:the or in<Year>:1901")
    add("--mark-worst-features", action="store_true", help="with -l, on a terminal: mark the words of bad lines")
    add("--show-preprocessed", action="store_true", help="with -l and -d: lines as a metric's flags leave them")
    add("-w", "--worst-features", action="store_true", help="what goes with bad scores: words, columns, lengths")
    add("-d", "--diff", metavar="OTHER", help="lines that another output answers otherwise: by how much")
    add("--most-worsening-features", metavar="OTHER", help="what goes with being worse than another output")
    add("--oracle-item-based", action="store_true", help="the best line of -o and each --alt-out-file")
    add("--alt-out-file", dest="alt_out_files", action="append", metavar="FILE", help="another output; repeatable")
    add("-p", "--precision", type=_digits_after_point, metavar="N", help="digits after the point")
    add(
        "-%",
        "--show-as-percentage",
        dest="percentage",
        action="store_true",
        help="times 100, with two digits fewer",
    )
    add(
        "-B",
        "--bootstrap",
        type=natural_number,
        metavar="N",
        help="show the 95 %% interval of a score, from N resamples of the lines (1000 are typical)",
    )
    add(
        "--seed",
        type=natural_number,
        metavar="S",
        help=f"with -B: of its random numbers (default: {DEFAULT_SEED})",
    )
    add("--format", choices=FORMATS, help="text (the default), or one JSON document")
    add(
        "-T",
        "--tokenizer",
        type=_tokenizer,
        metavar="NAME",
        help="how text is split into words for -j: minimalistic, character-by-character, 13a or v14; scores do not "
        "depend on it",
    )
    add("-j", "--just-tokenize", action="store_true", help="only write standard input as tokens, by -T")
    add("--threads", type=_positive, metavar="N", help="threads that score (default: one a core)")
    add("-v", "--version", action="store_true", help="show the version and the kernel's backend")
    add("-h", "--help", action="store_true", help="show this and exit")


def _add_features(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--min-frequency", type=natural_number, metavar="N", help="only what is on N items, and missing on N (1)")
    add("--bigrams", action="store_true", help="neighbouring words too, as in<Text>:New++York")
    add("--word-shapes", action="store_true", help="shapes of words too, as exp:SHAPE:Aa+")
    add("--numerical-features", action="store_true", help="lengths and numbers too, as exp:=#+ and in<Year>:=-")
    add("--cartesian", action="store_true", help="pairs of features too, as exp:the~~in<Year>:1901")
    add("--min-cartesian-frequency", type=natural_number, metavar="N", help="pairs of what is on N items at least")


def _tokenizer(text: str) -> str:
    from geval_py.tokenizers import checked_name

    return checked_name(text)


def _digits_after_point(text: str) -> int:
    digits = natural_number(text)
    if digits > MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"{digits} digits are too many; a double has less than {MOST_DIGITS}")
    return digits


def _positive(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 9999")
    return int(text)


_EPILOG = """\
examples:
  geval -t dev-0                       score dev-0/out.tsv with the challenge's metrics
  geval -t dev-0 -l -s | head -3       the three worst lines
  geval -t dev-0 -w | head             the words on which the model does worst
  geval -t dev-0 -a LogLossHashed -p 4 another metric, four digits
  geval -o out.tsv -e expected.tsv -m PerplexityHashed
                                       two files, without a challenge

An output line is `word1:prob1 word2:prob2 … :prob0`, where :prob0 is for all other words.
Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def natural_number(text: str) -> int:
    """Parse a whole number of up to 15 digits, for argparse."""
    if not re.fullmatch("[0-9]{1,15}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def parse_options(words: Sequence[str]) -> Options:
    """Parse the command line's words, with those of the challenge's config.txt in front.

    Raises UsageError, ConfigError and UnreadableFileError.
    """
    alone = _read_words(words)
    if alone.keys() & _SHOW_AND_EXIT:
        return Options(help="help" in alone, version="version" in alone, list_metrics="list_metrics" in alone)
    directory = alone.get("expected_directory", alone.get("out_directory", "."))
    return Options(**_read_words([*_checked_config(directory), *words]))


def config_options(directory: str) -> Options:
    """Give the options of a challenge's config.txt alone; raises ConfigError and UnreadableFileError."""
    return Options(**_read_words([*_checked_config(directory), "--out-directory", directory]))


def _checked_config(directory: str) -> list[str]:
    """Read the words of config.txt; raise ConfigError if they cannot be understood on their own."""
    path = os.path.join(directory, CONFIG_FILE)
    words = read_config(path)
    try:
        values = _read_words(words)
        Options(**values)
        _checked_schemes((*values.get("metrics", ()), *values.get("alt_metrics", ())))
        if values.keys() & _SHOW_AND_EXIT:
            raise UsageError(message="an option that shows something and exits has no place in config.txt")
    except UsageError as error:
        raise ConfigError(path=path, message=error.message) from error
    return words


def read_config(path: str) -> list[str]:
    """Read the words of a config.txt; none if there is no such file."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UnreadableFileError(path=path, reason=getattr(error, "strerror", None) or str(error)) from error
    return [re.sub(r"\\(\s)", r"\1", word) for word in re.findall(r"(?:\\\s|\S)+", text)]


def _read_words(words: Sequence[str]) -> dict[str, Any]:
    """Parse words into the values of those options that they name."""
    given, unknown = make_parser().parse_known_args(words)
    if unknown:
        raise UsageError(message=_invalid(unknown[0]))
    known = {field.name for field in fields(Options)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(given).items()
        if name in known
    }


def _invalid(word: str) -> str:
    """Say that a word is no option, and which one is near."""
    from difflib import get_close_matches

    options = [name for action in make_parser()._actions for name in action.option_strings]
    close = get_close_matches(word.partition("=")[0], options, n=1) if word.startswith("-") else []
    advice = f"did you mean {close[0]}?" if close else "geval --help shows the options"
    return f"Invalid option `{visible(word)}'\n  {advice}"
