"""``geval compare``: outputs of one test set against a baseline, and with each other."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from geval_py.cli.evaluations import advise_documents, blaming_config, document_head, scored, warn_of_ruin
from geval_py.cli.parsers import QuietParser, add_fields, add_metrics, add_option, digits_type, number_type
from geval_py.cli.settings import one_metric, task_and_settings
from geval_py.cli.terminal import ProgressBar, complain, note
from geval_py.errors import UsageError
from geval_py.explaining.comparison import Comparison, compare
from geval_py.explaining.luck import near_ties
from geval_py.reading.options import DEFAULT_SAMPLES, DEFAULT_SEED, option_of
from geval_py.reading.splits import Task, locate
from geval_py.scoring.columns import select_schemes
from geval_py.scoring.scores import Failure, ScoredOutput
from geval_py.tables.escapes import json_text
from geval_py.tables.terminals import width_of
from geval_py.text import named, visible

FORMATS = ("json", "csv", "text", "markdown", "latex")
PLACES = (
    "test_name",
    "out_directory",
    "expected_directory",
    "expected_file",
    "input_file",
    "in_header",
    "out_header",
)
_NOT_OF_SCORING = ("outputs", "metrics", "baseline", "samples", "digits", "form")
_EPILOG = """\
examples:
  geval compare -t dev-0               all outputs of dev-0, the first one the baseline
  geval compare -t dev-0 --baseline unigram
                                       the baseline is out-model=unigram.tsv
  geval compare old/out.tsv new/out.tsv -t dev-0 -m LogLossHashed
  geval compare -t dev-0 --documents FileId
                                       lines of one file are alike: draw whole files
  geval compare -t dev-0 --format latex >table.tex

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
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
    add_fields(parser, *PLACES)
    add("-o", "--out-file", action=_OutFile, nargs="?", help=argparse.SUPPRESS)
    add_metrics(parser, "the metric to compare")
    add_fields(parser, "vocabulary", "tokenizer")
    _add_tests(parser)
    _add_appearance(parser)
    add_fields(parser, "threads", "cluster")
    return parser.with_help()


def _add_tests(parser: QuietParser) -> None:
    add = parser.add_argument
    add(
        "--baseline",
        default=None,
        metavar="NAME",
        help="the output to compare with, by its name, path or parameters (default: the first)",
    )
    add(
        "--samples",
        type=number_type,
        default=DEFAULT_SAMPLES,
        metavar="N",
        help=f"random samples of each test and interval (default: {DEFAULT_SAMPLES})",
    )
    add_option(parser, option_of("seed"), f"of the random numbers (default: {DEFAULT_SEED})")
    add_option(
        parser,
        option_of("documents"),
        "by documents, the lines on which a column of the input (its name or number) is the same",
    )


def _add_appearance(parser: QuietParser) -> None:
    add = parser.add_argument
    add(
        "-p",
        "--precision",
        dest="digits",
        type=digits_type,
        default=None,
        metavar="N",
        help="digits after the point (default: as many as the intervals make worth showing)",
    )
    add(
        "--format",
        dest="form",
        choices=FORMATS,
        default="text",
        help="text (the default), for programs, or for a paper",
    )


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
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    own = {name: given.pop(name) for name in _NOT_OF_SCORING}
    task, settings = task_and_settings(given, own["metrics"], "documents", "cluster")
    task = one_metric(task, own["metrics"], "compare")
    task = task.replace(out_files=tuple(own["outputs"]), needs_items=settings.documents is not None)
    with blaming_config(task):
        results = scored(task, locate(task), select_schemes(task)[:1], settings, sign=own["form"] in ("json", "csv"))
    evaluations = [result for result in results if isinstance(result, ScoredOutput)]
    if len(evaluations) < 2 <= len(results):
        complain(
            f"{len(evaluations) or 'none'} of {len(results)} outputs could be scored: there is nothing to compare"
        )
        return 1
    with ProgressBar("samples", unit="items") as progress:
        comparison = compare(
            evaluations,
            baseline=own["baseline"],
            samples=own["samples"],
            seed=settings.seed,
            documents=settings.documents,
            progress=progress,
        )
    if settings.documents is None:
        advise_documents(evaluations, settings.seed)
    warn_of_ruin(evaluations)
    failures = [result for result in results if isinstance(result, Failure)]
    notes = [f"{named(failure.output.path)} could not be scored and is left out" for failure in failures]
    ties = map(str, near_ties(evaluations, comparison))
    comparison = replace(comparison, notes=(*notes, *comparison.notes, *ties), precision=own["digits"])
    _show(comparison, task, own["form"])
    return 1 if failures else 0


def _show(comparison: Comparison, task: Task, form: str) -> None:
    for warning in comparison.notes:
        note(warning)
    if form == "json":
        sys.stdout.write(json_text(document_head(task) | comparison.to_dict()))
    elif form == "csv":
        sys.stdout.writelines(comparison.records().csv())
    elif form == "text":
        sys.stdout.writelines(comparison.text(width_of(sys.stdout)))
    else:
        sys.stdout.writelines(comparison.markdown() if form == "markdown" else comparison.latex())
