"""The options of GEval's command line, for argparse; their meaning is said in :mod:`geval_py.reading.options`."""

from __future__ import annotations

import argparse
import re
from functools import cache
from typing import Any, NoReturn

from geval_py.errors import UsageError
from geval_py.scoring.sampling import DEFAULT_SEED
from geval_py.text import visible

MOST_DIGITS = 1100  # after the point: the smallest double has 1074
FORMATS = ("text", "json")
COMMANDS = ("check", "compare")

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
    """An ArgumentParser that raises UsageError instead of printing and exiting; options are written in full."""

    def __init__(self, **settings: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=formatter, allow_abbrev=False, add_help=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message=f"{visible(message)}\n  {self.prog} --help shows the options")


@cache
def make_parser() -> argparse.ArgumentParser:
    """Make the parser of GEval's plain command line."""
    parser = QuietParser(
        prog="geval",
        usage="geval [options]\n       geval COMMAND …",
        description="Score word-gap prediction exactly as GEval does, and learn why.",
        epilog=_EPILOG,
        argument_default=argparse.SUPPRESS,
    )
    _add_files(parser.add_argument_group("what is scored"))
    _add_metrics(parser.add_argument_group("metrics"))
    _add_modes(parser.add_argument_group("what is shown"))
    _add_appearance(parser.add_argument_group("how it is shown"))
    _add_features(parser.add_argument_group("features, for -w, --most-worsening-features, --filter and marks"))
    for names, arguments in _NOT_YET:
        parser.add_argument(*names, action=_NotYet, nargs=arguments, help=argparse.SUPPRESS)
    return parser


def add_places(group: argparse._ActionsContainer) -> None:
    """Add the options that say where outputs, answers and input are, which several commands share."""
    add = group.add_argument
    add("-t", "--test-name", metavar="NAME", help="the test set's sub-directory (default: test-A)")
    add("--out-directory", metavar="DIR", help="where the outputs are (default: .)")
    add("--expected-directory", metavar="DIR", help="where the answers are (default: the out-directory)")
    add("-e", "--expected-file", metavar="FILE", help="the answers (default: expected.tsv)")
    add("-i", "--input-file", metavar="FILE", help="the input (default: in.tsv)")
    add("--in-header", metavar="FILE", help="a line with the names of the input's columns")
    add("--out-header", metavar="FILE", help="a line with the names of the answers' columns")


def add_vocabulary(group: argparse._ActionsContainer) -> None:
    """Add the option that names the words which metrics on exact words know."""
    group.add_argument(
        "--vocabulary",
        metavar="FILE",
        help="words, one a line, for metrics on exact words (default: the words of train/expected.tsv)",
    )


def add_seed(group: argparse._ActionsContainer, what: str) -> None:
    """Add the option that sets the seed of random numbers."""
    help_text = f"{what} (default: {DEFAULT_SEED})"
    group.add_argument("--seed", type=natural_number, metavar="S", help=help_text)


def add_threads(group: argparse._ActionsContainer) -> None:
    """Add the option that says how many threads score."""
    group.add_argument("--threads", type=_positive, metavar="N", help="threads that score (default: one a core)")


def _add_files(group: argparse._ArgumentGroup) -> None:
    add_places(group)
    group.add_argument(
        "-o",
        "--out-file",
        metavar="FILE",
        help="the output to score, looked for in DIR/NAME, then as a path; - for standard input, or an "
        "http(s) address (default: out.tsv and all out-*.tsv)",
    )


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
    add_vocabulary(group)
    add("--list-metrics", action="store_true", help="list the metrics and exit")


def _add_modes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("-l", "--line-by-line", action="store_true", help="score, input, answer and output of every line")
    add("-s", "--sort", action="store_true", help="with -l and -d: the worst lines first")
    add("-r", "--reverse-sort", action="store_true", help="with -l and -d: the best first; with -w: what is best")
    add(
        "--filter",
        dest="filters",
        action="append",
        metavar="FEATURE",
        help="with -l and -d: only items that have it, as exp:the or in<Year>:1901; several: that have all",
    )
    add("--mark-worst-features", action="store_true", help="with -l, on a terminal: mark the words of bad lines")
    add("--show-preprocessed", action="store_true", help="with -l and -d: lines as a metric's flags leave them")
    add("-w", "--worst-features", action="store_true", help="what goes with bad scores: words, columns, lengths")
    add(
        "-d",
        "--diff",
        metavar="OTHER",
        help="lines that another output answers otherwise: the score minus the other's, the texts, the other's line",
    )
    add("--most-worsening-features", metavar="OTHER", help="what goes with being worse than another output")
    add("--oracle-item-based", action="store_true", help="the best line of -o and each --alt-out-file")
    add("--alt-out-file", dest="alt_out_files", action="append", metavar="FILE", help="another output; repeatable")


def _add_appearance(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
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
    add_seed(group, "with -B: of its random numbers")
    add("--format", choices=FORMATS, help="text (the default), or one JSON document")
    add_threads(group)
    add("-v", "--version", action="store_true", help="show the version and the kernel's backend")
    add("-h", "--help", action="store_true", help="show this and exit")


def _add_features(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "-T",
        "--tokenizer",
        type=_tokenizer,
        metavar="NAME",
        help="how text is split into words: minimalistic, character-by-character, 13a or v14; scores do not depend "
        "on it",
    )
    add("-j", "--just-tokenize", action="store_true", help="only write standard input as tokens, by -T")
    add("--min-frequency", type=natural_number, metavar="N", help="only what is on N items, and missing on N (1)")
    add("--bigrams", action="store_true", help="neighbouring words too, as in<Text>:New++York")
    add("--word-shapes", action="store_true", help="shapes of words too, as exp:SHAPE:Aa+")
    add("--numerical-features", action="store_true", help="lengths and numbers too, as exp:=#+ and in<Year>:=-")
    add("--cartesian", action="store_true", help="pairs of features too, as exp:the~~in<Year>:1901")
    add("--min-cartesian-frequency", type=natural_number, metavar="N", help="pairs of what is on N items at least")


def _tokenizer(text: str) -> str:
    from geval_py.reading.tokenizers import checked_name

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
commands (geval COMMAND --help says more):
  check     every problem of a submission, without its answers
  compare   which outputs are better, and whether by more than chance

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
