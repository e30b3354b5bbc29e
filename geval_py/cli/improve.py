"""``geval mix`` and ``geval tune``: better outputs at once, with weights found where the answers are known.

Both score outputs, find the best weights of a mixture, and write mixed outputs, for other test sets too. ``geval
tune`` takes a single output.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from functools import partial

from geval_py.cli import score, terminal
from geval_py.cli.commands import (
    PLACES,
    add_format,
    check_free,
    command,
    metric_option,
    number_option,
    option,
    switch,
    table_options,
)
from geval_py.errors import UsageError
from geval_py.explaining import derived, mixing
from geval_py.reading import config, splits
from geval_py.reading.challenge import Challenge
from geval_py.reading.outputs import only_output, own_names, unique_names
from geval_py.scoring import evaluate
from geval_py.scoring.evaluate import kept_path
from geval_py.tables.formats import FOR_PEOPLE
from geval_py.text import named, some_of

OPTIONS = (
    table_options("test_name"),
    *PLACES,
    table_options("names"),
    metric_option("a hashed metric"),
    number_option(
        "--words",
        metavar="K",
        help="mix in the K most frequent words of train "
        f"(default: {mixing.DEFAULT_WORDS}, or 0 without a train; 0: none)",
    ),
    table_options(
        documents="hold out together the lines with the same value in a column of the input (its name or number; "
        "default: the declared column, or one with a usual name such as FileId)",
        no_documents="hold out lines one by one, even if they share a document",
        seed=f"the seed of the random folds (default: {config.DEFAULT_SEED})",
    ),
    option(
        "--apply",
        action="append",
        default=[],
        metavar="NAME",
        help="write the mixture into the folder of this test set, made of its outputs of the same names; repeatable",
    ),
    switch(
        "--force",
        help="write the mixture even if it may not be better, and overwrite files; and mix on fewer than "
        f"{mixing.FEW_LINES} lines",
    ),
    add_format,
    table_options("threads"),
)


@command(
    "tune",
    """\
Improve an output on a test set with known answers: mix it with the frequent words of train and with a distribution
that is the same for all words. The mixture is written if it helps on held-out lines by more than chance.""",
    """\
  geval tune -t dev-0 -o bigram        what would help out-model=bigram.tsv
  geval tune -t dev-0 -o bigram --apply dev-0 --apply test-A
                                       and write out-mix=bigram+train.tsv into both folders
""",
    table_options(out_files="the output, as for scoring; needed if there are several"),
    *OPTIONS,
)
def run_tune(args: argparse.Namespace) -> None:
    """Run ``geval tune``; raises GevalError."""
    task, settings = config.task_and_settings(args, command="tune")
    with score.blaming_config(task):
        split = splits.locate(task)
        only_output(split.outputs)
    _improve(args, task, settings, split)


@command(
    "mix",
    """\
Mix outputs of one test set, with each other and with the frequent words of train, by the weights that are best
where the answers are known. The mixture is written if it is better than the best output alone, on held-out lines
and by more than chance.""",
    """\
  geval mix -t dev-0 bigram unigram    find the weights
  geval mix -t dev-0 bigram unigram --apply dev-0 --apply test-A
                                       and write out-mix=bigram+unigram+train.tsv into both folders
  geval mix -t dev-0 bigram unigram --words 0
                                       without the frequent words of train
""",
    option(
        "outputs",
        nargs="*",
        default=[],
        metavar="OUT",
        help="an output, as a name in DIR/NAME or a path (default: all of the test set but mixed ones)",
    ),
    *OPTIONS,
)
def run_mix(args: argparse.Namespace) -> None:
    """Run ``geval mix``; raises GevalError."""
    task, settings = config.task_and_settings(args, command="mix")
    task = task.replace(out_files=tuple(args.outputs))
    with score.blaming_config(task):
        split = splits.locate(task)
        if not args.outputs:  # with those made on these answers, held-out lines would be known
            made = [output for output in split.outputs if os.path.exists(kept_path(output.path))]
            if made:
                names = some_of(output.name for output in made)
                terminal.note(f"mixed outputs are left out unless they are named: {names}")
            split = split._replace(outputs=tuple(output for output in split.outputs if output not in made))
        if not split.outputs:
            raise UsageError("geval mix takes an output; there are only mixed ones")
    _improve(args, task, settings, split)


def _improve(args: argparse.Namespace, task: config.Task, settings: config.Settings, split: splits.Split) -> None:
    with score.blaming_config(task):
        schemes = evaluate.select_schemes(task)[:1]
        evaluations = score.scored(task, split, schemes, settings, keep=True, strict=True)
    # A target that is not there, or not free, is found before the search.
    outputs = [evaluation.output for evaluation in evaluations]
    challenge = Challenge(path=task.directory, task=task)
    has_train = args.words != 0 and splits.training_answers(split.expected) is not None
    last = mixing.TRAIN if has_train else mixing.UNIFORM
    plans = []
    for test in args.apply:
        sources = outputs
        if test != task.test_name:
            sources = [derived.find_output(challenge[test], output) for output in outputs]
        mixed = derived.mixed_output(sources, last, challenge[test].directory, split.output_header)
        for path in (mixed.path, kept_path(mixed.path)):
            check_free(path, args)
        mixed.check_free(args.force)  # not of a source
        plans.append((mixed, mixed.check_lines(challenge[test])))
    mixture = mixing.improve(
        evaluations,
        words=args.words,
        documents=settings.documents_by,
        seed=settings.seed,
        force=args.force,
        threads=settings.threads,
    )
    mixture = replace(mixture, names=own_names(dict(settings.names), unique_names(outputs), outputs, "mixed"))

    terminal.note(*mixture.notes)
    is_text, written = settings.format == "text", []
    if is_text:  # at once; a document names the files, too
        score.show_of_task(task, mixture, settings)
    if mixture.taken or args.force:
        for mixed, lines in plans:
            with terminal.ItemBar("lines") as progress:
                mixed.write(mixture.mixing, mixture.kept(), progress=partial(progress, size=lines))
            written.append(mixed.path)
        if is_text and not plans:
            terminal.note("add --apply NAME to write the mixture for the test set NAME")
    elif is_text and plans:
        terminal.note("nothing is written, since the mixture is not significantly better; --force writes it")
    if not is_text:
        score.show_of_task(task, mixture, settings, written=written)
    if settings.format in FOR_PEOPLE:
        for path in written:
            terminal.say(f"wrote {named(path)}", None if is_text else sys.stderr)
