"""``geval compare``: outputs of one test set against each other."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import NoReturn

from geval_py.cli import score, terminal
from geval_py.cli.commands import (
    DOCUMENTS,
    PLACES,
    add_format,
    metric_options,
    number_option,
    option,
    parser_maker,
    table_options,
)
from geval_py.errors import MissingFileError, UsageError
from geval_py.evaluation import evaluate_all
from geval_py.explaining.comparison import compare
from geval_py.explaining.pooled import compare_sets
from geval_py.reading import config, splits
from geval_py.reading.outputs import by_accepted_names, unique_names
from geval_py.scoring import evaluate
from geval_py.text import named, some_of, visible


class _OutFile(argparse.Action):
    """Refuse ``-o``, which users know from scoring, and name the way to give outputs here."""

    def __call__(
        self, parser: argparse.ArgumentParser, _: object, value: object, option: str | None = None
    ) -> NoReturn:
        args = option if value is None else f"{option} {visible(str(value))}"
        raise UsageError(
            message=f"unrecognized arguments: {args}\n  outputs are given without {option}; "
            f"{parser.prog} --help shows the options"
        )


make_compare_parser = parser_maker(
    "compare",
    """\
Compare outputs of one test set: intervals, paired tests against a baseline, and groups of
outputs that do not differ significantly. The challenge's config.txt is read as for scoring.""",
    """\
  geval compare -t dev-0               all outputs of dev-0, with the best baseline
  geval compare -t dev-0 --baseline unigram
                                       the baseline is out-model=unigram.tsv
  geval compare old/out.tsv new/out.tsv -t dev-0 -m LogLossHashed
  geval compare -t dev-0 --documents FileId
                                       lines of one file belong together
  geval compare --challenge a --challenge b -t dev-0
                                       differences pooled over two challenges
  geval compare -t dev-0 --runs seed   out-seed=1.tsv and out-seed=2.tsv are runs of one system
  geval compare -t dev-0 --format latex --caption "Perplexity on dev-0" --label tab:dev-0 >table.tex
""",
    option(
        "outputs",
        nargs="*",
        default=[],
        metavar="OUT",
        help="an output, as a name in DIR/NAME or a path; or a folder with out.tsv and out-*.tsv "
        "(default: those of the test set)",
    ),
    option(
        "-t", "--test-name", dest="tests", action="append", default=[], metavar="NAME",
        help="the test set's sub-directory (default: test-A); repeatable: differences are pooled over the test sets",
    ),
    option(
        "--challenge", dest="challenges", action="append", default=[], metavar="DIR",
        help="the folder of a challenge; repeatable: differences are pooled over the challenges",
    ),
    *PLACES[1:],
    option("-o", "--out-file", action=_OutFile, nargs="?", help=argparse.SUPPRESS),
    *metric_options("the metric to compare"),
    table_options("vocabulary", "tokenizer"),
    option(
        "--baseline",
        metavar="NAME",
        help="the output to compare with, by its name, path or parameters "
        "(default: the best output of geval baseline, or the first)",
    ),
    number_option(
        "--samples",
        default=config.DEFAULT_SAMPLES,
        help=f"random samples for each test and interval (default: {config.DEFAULT_SAMPLES})",
    ),
    table_options(seed=f"of the random numbers (default: {config.DEFAULT_SEED})"),
    DOCUMENTS,
    option(
        "--runs", metavar="NAME",
        help="a parameter in names: outputs that differ only in it are training runs of one system",
    ),
    option("--no-worse-than", type=float, metavar="X",
        help="show if an output is not worse than the baseline by more than X"),
    option("--detect", type=float, metavar="X",
        help="show how many lines detect a difference of X in 80 %% of cases"),
    table_options(precision="digits after the point (default: by the width of the intervals)"),
    add_format,
    table_options("names", "threads", "cluster"),
)  # fmt: skip


OF_ONE_TEST = (  # options that do not go with several test sets
    *("expected_directory", "expected_file", "input_file", "in_header", "out_header", "vocabulary"),
    *("tokenizer", "runs", "no_worse_than", "detect", "precision", "names", "cluster"),
)


def run_compare(args: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    folders, tests, args.challenges = args.challenges, args.tests, None
    if len(folders) == 1:
        args.out_directory = folders[0]
    args.test_name = tests[0] if tests else None
    task, settings = config.task_and_settings(args, *config.BY_DOCUMENTS, "cluster", command="compare")
    if len(folders) > 1 or len(tests) > 1:
        single = [*OF_ONE_TEST, *(["out_directory"] if len(folders) > 1 else [])]
        if alone := [config.said_option(name) for name in single if getattr(args, name, None) is not None]:
            raise UsageError(message=f"{', '.join(alone)}: only with a single test set")
        if args.outputs:
            raise UsageError(message="outputs of several test sets are found by their names: name none of them")
        sets = [
            evaluate_all(folder, test, metric=args.alt_metrics or ())
            for folder in folders or [task.out_directory]
            for test in tests or [task.test_name]
        ]
        pooled = compare_sets(sets, baseline=args.baseline, documents=settings.documents_by)
        terminal.show(pooled, settings)
        return 0
    task = task.replace(out_files=tuple(args.outputs))
    with score.blaming_config(task):
        split = _with_baseline(splits.locate(task), task, args.baseline)
        results = score.scored(task, split, evaluate.select_schemes(task)[:1], settings, keep=True)
    evaluations = [result for result in results if not result.errors]
    if len(evaluations) < 2 <= len(results):
        terminal.complain(
            f"{len(evaluations) or 'none'} of {len(results)} outputs could be scored: there is nothing to compare"
        )
        return 1
    with terminal.ProgressBar("samples", unit="items") as progress:
        comparison = compare(
            evaluations,
            baseline=args.baseline,
            samples=args.samples,
            seed=settings.seed,
            documents=settings.documents_by,
            runs=args.runs,
            no_worse_than=args.no_worse_than,
            detect=args.detect,
            progress=progress,
        )
    score.warn_unbounded_loss(evaluations)
    failures = [result for result in results if result.errors]
    failed = [named(failure.output.path) for failure in failures]
    notes = [f"{name} could not be scored and is left out" for name in failed]
    if len(failed) > 2:
        notes = [f"{some_of(failed, terminal.MAX_LIKEWISE)} could not be scored and are left out"]
    comparison = replace(comparison, notes=(*notes, *comparison.notes), precision=args.precision)
    comparison = comparison.with_names(dict(settings.names))
    terminal.note(*comparison.notes)
    score.show_of_task(task, comparison, settings)
    return 1 if failures else 0


def _with_baseline(split: splits.Split, task: config.Task, baseline: str | None) -> splits.Split:
    """Add the baseline to outputs that are named without it."""
    names = unique_names(split.outputs)
    if baseline is None or not task.out_files or baseline in by_accepted_names(names, split.outputs):
        return split
    try:
        return splits.locate_others(split, task, [baseline])
    except (MissingFileError, UsageError):
        if len(split.outputs) < 2:
            raise
        return split  # compare says which of these it may be
