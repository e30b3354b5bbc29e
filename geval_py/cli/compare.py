"""``geval compare``: outputs of one test set against a baseline, and with each other."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from geval_py.arguments import QuietParser, natural_number
from geval_py.challenge import OUTPUT_FILE, Split, check_read_once, find_outputs, locate
from geval_py.cli.evaluations import evaluate_split, note
from geval_py.cli.progress import ProgressBar
from geval_py.cli.score import blaming_config
from geval_py.comparison import Comparison, compare
from geval_py.errors import MissingFileError, UsageError, visible
from geval_py.evaluate import select_schemes
from geval_py.evaluation import Evaluation
from geval_py.options import Options, parse_options
from geval_py.render.comparison import comparison_latex, comparison_markdown, comparison_text
from geval_py.render.documents import json_text
from geval_py.sampling import DEFAULT_SEED, DEFAULT_TEST_SAMPLES
from geval_py.version import __version__

TEXTS = {"text": comparison_text, "markdown": comparison_markdown, "latex": comparison_latex}
FORMATS = ("json", *TEXTS)
_AS_FOR_SCORING = ("test_name", "out_directory", "expected_directory", "expected_file", "vocabulary", "threads")

_EPILOG = """\
examples:
  geval compare -t dev-0               all outputs of dev-0, the first one the baseline
  geval compare -t dev-0 --baseline unigram
                                       the baseline is out-model=unigram.tsv
  geval compare old/out.tsv new/out.tsv -t dev-0 -m LogLossHashed
  geval compare -t dev-0 --format latex >table.tex

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of ``geval compare``."""
    parser = QuietParser(
        prog="geval compare",
        description="Compare outputs of one test set: intervals, paired tests against a baseline, and groups of\n"
        "outputs that cannot be told apart. The challenge's config.txt is read as for scoring.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    _add_files(parser)
    add = parser.add_argument
    add(
        "-m",
        "--metric",
        dest="metrics",
        action="append",
        metavar="METRIC",
        help="the metric to compare (default: the challenge's first)",
    )
    add("--vocabulary", metavar="FILE", help="words, one a line, for metrics on exact words")
    add(
        "--baseline",
        metavar="NAME",
        help="the output to compare with, by its name, path or parameters (default: the first)",
    )
    add(
        "--samples",
        type=natural_number,
        default=DEFAULT_TEST_SAMPLES,
        metavar="N",
        help=f"random samples of each test and interval (default: {DEFAULT_TEST_SAMPLES})",
    )
    add("--seed", type=natural_number, metavar="S", help=f"of the random numbers (default: {DEFAULT_SEED})")
    add("--format", choices=FORMATS, default="text", help="text (the default), for programs, or for a paper")
    add("--threads", metavar="N", help="threads that score (default: one a core)")
    add("-h", "--help", action="store_true", help="show this and exit")
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "outputs",
        nargs="*",
        metavar="OUT",
        help="an output, looked for in DIR/NAME, then as a path; or a folder with out.tsv and out-*.tsv "
        "(default: those of the test set)",
    )
    add("-t", "--test-name", metavar="NAME", help="the test set's sub-directory (default: test-A)")
    add("--out-directory", metavar="DIR", help="where the outputs are (default: .)")
    add("--expected-directory", metavar="DIR", help="where the answers are (default: the out-directory)")
    add("-e", "--expected-file", metavar="FILE", help="the answers (default: expected.tsv)")
    add("-o", "--out-file", action=_OutFile, nargs="?", help=argparse.SUPPRESS)


class _OutFile(argparse.Action):
    """Say to those who know -o of scoring how outputs are given here."""

    def __call__(
        self, parser: argparse.ArgumentParser, _: object, value: object, option: str | None = None
    ) -> NoReturn:
        given = option if value is None else f"{option} {visible(str(value))}"
        raise UsageError(
            message=f"unrecognized arguments: {given}\n  outputs are given without {option}; "
            f"{parser.prog} --help shows the options"
        )


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().parse_args(words)
    if given.help:
        sys.stdout.write(make_parser().format_help())
        return 0
    options = _options(given)
    with blaming_config(options):
        evaluations = _evaluate(options, given.outputs)
    seed = options.seed if given.seed is None else given.seed
    with ProgressBar("samples", unit="items") as progress:
        comparison = compare(
            evaluations, baseline=given.baseline, samples=given.samples, seed=seed, progress=progress
        )
    _show(comparison, options, given.format)
    return 0


def _options(given: argparse.Namespace) -> Options:
    """Give the options as for scoring, from config.txt and the command line; a metric given replaces the others."""
    values = {name: getattr(given, name) for name in _AS_FOR_SCORING}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None]
    options = replace(parse_options(words), out_file=None)
    if given.metrics is None:
        return options
    options = replace(options, alt_metrics=tuple(given.metrics), select_metric=None)
    metrics = len(options.schemes())
    if metrics > 1:
        raise UsageError(message=f"geval compare takes one metric; {metrics} were given")
    return options


def _evaluate(options: Options, outputs: Sequence[str]) -> list[Evaluation]:
    splits = [_split(options, output) for output in outputs] or [locate(options)]
    split = replace(splits[0], outputs=tuple(output for one in splits for output in one.outputs))
    check_read_once(split)
    return evaluate_split(options, split, select_schemes(options)[:1])


def _split(options: Options, output: str) -> Split:
    """Find an output as -o is found; of a folder, its outputs."""
    places = os.path.join(options.out_directory, options.test_name, output), output
    folder = next((place for place in places if os.path.isdir(place)), None)
    if folder is None:
        return locate(replace(options, out_file=output))
    outputs = find_outputs(folder)
    if not outputs:
        raise MissingFileError(what="No file with the test results", path=os.path.join(folder, OUTPUT_FILE))
    return replace(locate(replace(options, out_file=outputs[0].path)), outputs=outputs)


def _show(comparison: Comparison, options: Options, form: str) -> None:
    for warning in comparison.notes:
        note(warning)
    if form != "json":
        sys.stdout.write(TEXTS[form](comparison))
        return
    where = {
        "version": __version__,
        "challenge": os.path.basename(os.path.abspath(options.challenge_directory)),
    }
    sys.stdout.write(json_text(where | comparison.to_dict()))
