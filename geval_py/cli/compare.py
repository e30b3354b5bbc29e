"""``geval compare``: outputs of one test set against a baseline, and with each other."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from geval_py.cli.arguments import QuietParser, add_places, add_seed, add_threads, add_vocabulary, natural_number
from geval_py.cli.evaluations import blaming_config, document_head, evaluate_split, note
from geval_py.cli.progress import ProgressBar
from geval_py.errors import MissingFileError, UsageError
from geval_py.explaining.comparison import Comparison, compare
from geval_py.reading.challenge import Split, check_read_once, locate
from geval_py.reading.options import Options, merge_options
from geval_py.reading.outputs import OUTPUT_FILE, find_outputs
from geval_py.scoring.evaluate import select_schemes
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.sampling import DEFAULT_TEST_SAMPLES
from geval_py.showing.comparison import comparison_latex, comparison_markdown, comparison_text
from geval_py.showing.json import json_text
from geval_py.text import visible

TEXTS = {"text": comparison_text, "markdown": comparison_markdown, "latex": comparison_latex}
FORMATS = ("json", *TEXTS)
_NOT_OF_SCORING = ("outputs", "metrics", "baseline", "samples", "form", "help")

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
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add(
        "outputs",
        nargs="*",
        default=[],
        metavar="OUT",
        help="an output, looked for in DIR/NAME, then as a path; or a folder with out.tsv and out-*.tsv "
        "(default: those of the test set)",
    )
    add_places(parser)
    add("-o", "--out-file", action=_OutFile, nargs="?", help=argparse.SUPPRESS)
    add(
        "-m",
        "--metric",
        dest="metrics",
        action="append",
        default=[],
        metavar="METRIC",
        help="the metric to compare (default: the challenge's first)",
    )
    add_vocabulary(parser)
    add(
        "--baseline",
        default=None,
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
    add_seed(parser, "of the random numbers")
    add(
        "--format",
        dest="form",
        choices=FORMATS,
        default="text",
        help="text (the default), for programs, or for a paper",
    )
    add_threads(parser)
    add("-h", "--help", action="store_true", default=False, help="show this and exit")
    return parser


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
    given = vars(make_parser().parse_args(words))
    own = {name: given.pop(name) for name in _NOT_OF_SCORING}
    if own["help"]:
        sys.stdout.write(make_parser().format_help())
        return 0
    options = _options(given, own["metrics"])
    with blaming_config(options):
        evaluations = _evaluate(options, own["outputs"], sign=own["form"] == "json")
    with ProgressBar("samples", unit="items") as progress:
        comparison = compare(
            evaluations,
            baseline=own["baseline"],
            samples=own["samples"],
            seed=options.seed,
            progress=progress,
        )
    _show(comparison, options, own["form"])
    return 0


def _options(given: Mapping[str, Any], metrics: Sequence[str]) -> Options:
    """Give the options as for scoring, from config.txt and the command line; a metric given replaces the others."""
    options = replace(merge_options(given), out_file=None)
    if not metrics:
        return options
    options = replace(options, alt_metrics=tuple(metrics), select_metric=None)
    number = len(options.schemes())
    if number > 1:
        raise UsageError(message=f"geval compare takes one metric; {number} were given")
    return options


def _evaluate(options: Options, outputs: Sequence[str], *, sign: bool) -> list[Evaluation]:
    splits = [_split(options, output) for output in outputs] or [locate(options)]
    split = replace(splits[0], outputs=tuple(output for one in splits for output in one.outputs))
    check_read_once(split)
    return evaluate_split(options, split, select_schemes(options)[:1], sign=sign)


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
    sys.stdout.write(json_text(document_head(options) | comparison.to_dict()))
