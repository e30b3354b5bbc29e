"""``geval compare``: outputs of one test set against each other."""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product

from geval_py.cli import score, terminal
from geval_py.cli.commands import (
    DOCUMENTS,
    PLACES,
    add_format,
    command,
    metric_option,
    number_option,
    option,
    table_options,
)
from geval_py.errors import MissingFileError, UsageError
from geval_py.explaining.comparison import compare, compare_sets
from geval_py.reading import config, splits
from geval_py.reading.outputs import (
    by_accepted_names,
    by_runs,
    find_output,
    output_at,
    outputs_of_pattern,
    run_parameter,
    unique_names,
)
from geval_py.scoring import evaluate
from geval_py.text import named, some_of

OF_ONE_TEST = ("expected_file", "input_file", "cluster")  # options that do not go with several test sets


@command(
    "compare",
    """\
Compare outputs: intervals, paired tests against a baseline, and groups of outputs that do not
differ significantly. The challenge's config.txt is read as for scoring.""",
    """\
  geval compare -t dev-0               all outputs of dev-0, with the best baseline
  geval compare -t dev-0 --baseline unigram
                                       the baseline is out-model=unigram.tsv
  geval compare old/out.tsv new/out.tsv -t dev-0 -m LogLossHashed
  geval compare -t dev-0 --documents FileId
                                       lines of one file belong together
  geval compare -t dev-0 -t dev-1      each test set by itself, and all lines together
  geval compare lstm transformer -t dev-0 --runs seed
                                       out-model=lstm,seed=1.tsv is a training run of lstm
  geval compare -t dev-0 --runs 'runs/{model}/seed={seed}/out.tsv'
                                       outputs with other names
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
        help="the test set's sub-directory (default: test-A); repeatable: a row for each, and one for all lines",
    ),
    option(
        "--challenge", dest="challenges", action="append", default=[], metavar="DIR",
        help="the folder of a challenge; repeatable: a row for each test set, and one for all lines",
    ),
    *PLACES[1:],
    option("-o", "--out-file", dest="out_files", action="append", default=[], help="the same as OUT"),
    metric_option("the metric to compare"),
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
        help="bootstrap resamples, for corpus-level metrics such as correlations "
        f"(default: {config.DEFAULT_SAMPLES})",
    ),
    table_options(seed=f"of the random numbers (default: {config.DEFAULT_SEED})"),
    DOCUMENTS,
    option(
        "--runs", metavar="NAME",
        help="a parameter in names: outputs that differ only in it are training runs of one system; or a pattern of "
        "paths, such as 'runs/{model}/seed={seed}/out.tsv'",
    ),
    option("--paired-runs", action="store_true",
        help="all systems have the same seeds: compare equal ones"),
    option("--no-worse-than", type=float, metavar="X",
        help="non-inferiority test against the baseline with a margin of X (for perplexities, X %%)"),
    option("--detect", type=float, metavar="X",
        help="show how many lines detect a difference of X (for perplexities, X %%) in 80 %% of cases"),
    number_option("--tries", help="how many outputs were tried, of which the best is here (for a mean loss)"),
    table_options(precision="digits after the point (default: by the width of the intervals)"),
    add_format,
    table_options("names", "threads", "cluster"),
)  # fmt: skip
def run_compare(args: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    args.outputs = [*args.outputs, *args.out_files]  # the default is of all calls
    places = list(product(args.challenges or [args.out_directory], args.tests or [None]))
    args.challenges = None
    if len(places) > 1:
        alone = [config.said_option(name) for name in OF_ONE_TEST if getattr(args, name) is not None]
        alone += ["a pattern of --runs"] * ("{" in (args.runs or ""))
        if alone:
            raise UsageError(f"{', '.join(alone)}: only with a single test set")
    results, read = [], []
    for args.out_directory, args.test_name in places:
        read.append(config.task_and_settings(args, "cluster", command="compare"))
    (first, settings), *_ = read
    for task, _ in read:
        with score.blaming_config(task.replace(out_files=tuple(args.outputs))):
            schemes = evaluate.select_schemes(task)[:1]
            results.append(score.scored(task, _located(task, args), schemes, settings, keep=True))
    sound = [[result for result in of_set if not result.errors] for of_set in results]
    failed = [named(result.output.path) for of_set in results for result in of_set if result.errors]
    for of_set, evaluations in zip(results, sound, strict=True):
        if len(evaluations) < 2 <= len(of_set):
            terminal.complain(
                f"{len(evaluations) or 'none'} of {len(of_set)} outputs could be scored: there is nothing to compare"
            )
            return 1
    with terminal.ItemBar("samples") as progress:
        options = {
            "baseline": args.baseline,
            "samples": args.samples,
            "seed": settings.seed,
            "documents": settings.documents_by,
            "runs": args.runs and run_parameter(args.runs),
            "paired_runs": args.paired_runs,
            "no_worse_than": args.no_worse_than,
            "detect": args.detect,
            "tries": args.tries,
            "progress": progress,
        }
        comparison = compare(sound[0], **options) if len(sound) == 1 else compare_sets(sound, **options)
    for evaluations in sound:
        score.warn_unbounded_loss(evaluations)
    if failed:
        left_out = f"left out, as it could not be scored: {some_of(failed, terminal.MAX_LIKEWISE)}"
        comparison = replace(comparison, notes=(left_out, *comparison.notes))
    comparison = comparison.with_names(dict(settings.names), precision=args.precision)
    terminal.note(*comparison.notes)
    score.show_of_task(first, comparison, settings)
    return 1 if failed else 0


def _located(task: config.Task, args: argparse.Namespace) -> splits.Split:
    """Find the files of a test set, with the outputs that are compared: all, or those that are named."""
    words = [*args.outputs, *filter(None, [args.baseline])] if args.outputs else []
    if args.runs is None:
        task = task.replace(out_files=tuple(args.outputs))
        return _with_baseline(splits.locate(task), task, args.baseline)
    is_pattern = "{" in args.runs
    if is_pattern:
        outputs = outputs_of_pattern(args.runs)
        split = splits.locate(task.replace(out_files=tuple(output.path for output in outputs)))
        renamed = zip(outputs, split.outputs, strict=True)
        split = split._replace(outputs=tuple(output._replace(file=there.file) for output, there in renamed))
    else:
        split = splits.locate(task)
    groups = by_runs(split.outputs, run_parameter(args.runs))
    systems = list(map(output_at, groups))
    accepted = by_accepted_names(unique_names(systems), systems)
    if not is_pattern and not all(word in accepted for word in words):  # paths, perhaps
        return splits.locate(task.replace(out_files=tuple(args.outputs)))
    meant = [find_output(word, unique_names(systems), systems, "compared") for word in words]
    places = sorted(place for n, runs in enumerate(groups.values()) if not words or n in meant for place in runs)
    return split._replace(outputs=tuple(split.outputs[place] for place in places))


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
