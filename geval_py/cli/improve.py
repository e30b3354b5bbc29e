"""``geval tune`` and ``geval mix``: what would make outputs better at once, found where the answers are known.

Both score outputs, look for the best parameters or weights, and write new outputs, for other test sets too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from geval_py.cli import score, terminal
from geval_py.cli.commands import (
    PLACES,
    OptionAdder,
    add_format,
    metric_options,
    number_option,
    option,
    parser_maker,
    switch,
    table_options,
)
from geval_py.errors import ExistingFileError, UsageError
from geval_py.explaining import cross_validation, derived, mixing, tuning
from geval_py.reading import config, splits
from geval_py.reading.challenge import Challenge
from geval_py.reading.outputs import Output, only_output, own_names, unique_names
from geval_py.scoring import evaluate, scores
from geval_py.scoring.evaluate import kept_path
from geval_py.scoring.recipes import Parameters, Recipe
from geval_py.tables.formats import FOR_PEOPLE
from geval_py.text import named, some_of

Plans: TypeAlias = "list[tuple[derived.Derived, int]]"  # new outputs, with their number of lines


def _options(*, words: int | None, words_help: str, apply_help: str, force_help: str) -> tuple[OptionAdder, ...]:
    """Return the options that tuning and mixing share; ``words`` is the default of ``--words``."""
    return (
        *metric_options("a hashed metric"),
        number_option("--words", default=words, metavar="K", help=words_help),
        table_options(
            documents="hold out together the lines with the same value in a column of the input (its name or number; "
            "default: the declared column, or one with a usual name such as FileId)",
            no_documents="hold out lines one by one, even if they share a document",
            seed=f"the seed of the random folds (default: {config.DEFAULT_SEED})",
        ),
        option("--apply", action="append", default=[], metavar="NAME", help=apply_help),
        switch(
            "--force",
            help=f"{force_help} on fewer than {cross_validation.FEW_LINES} lines",
        ),
        add_format,
        table_options("threads"),
    )


make_tune_parser = parser_maker(
    "tune",
    """\
Find parameters that improve an output: probability for all words (lambda) and for frequent ones (nu),
and a temperature. A parameter is taken if it helps on held-out lines by more than chance.""",
    """\
  geval tune -t dev-0 -o bigram        what would help out-model=bigram.tsv
  geval tune -t dev-0 -o bigram --apply dev-0 --apply test-A
                                       and write out-model=bigram,tuned=….tsv into both folders
  geval tune --parameters dev-0/out-model=bigram,tuned=lambda-nu.tuning.json --apply test-B
                                       the same again, for another set
""",
    table_options("test_name"),
    *PLACES,
    table_options(out_files="the output, as for scoring; needed if there are several"),
    switch("--temperature", help="also try other temperatures"),
    option(
        "--parameters",
        metavar="FILE",
        help="an existing .tuning.json: apply its parameters instead of searching for new ones",
    ),
    *_options(
        words=None,
        words_help=f"the frequent words of train to which nu applies (default: {derived.DEFAULT_WORDS}; 0: none)",
        apply_help="write the tuned output into the folder of this test set; repeatable",
        force_help="overwrite existing outputs; and tune",
    ),
)
make_mix_parser = parser_maker(
    "mix",
    """\
Mix outputs of one test set with the weights that are best where the answers are known, and write the
mixture if it is better than the best output alone, on held-out lines and by more than chance.""",
    """\
  geval mix -t dev-0 bigram unigram    find the weights, and write dev-0/out-mix=bigram+unigram.tsv
  geval mix -t dev-0 bigram unigram --apply test-A
                                       and into test-A, of the outputs of the same names there
  geval mix -t dev-0 bigram unigram --words 1000
                                       with the commonest words of train as one more output
""",
    option(
        "outputs",
        nargs="*",
        default=[],
        metavar="OUT",
        help="an output, as a name in DIR/NAME or a path; two or more (default: all of the test set but tuned "
        "and mixed ones)",
    ),
    table_options("test_name"),
    *PLACES,
    table_options("names"),
    *_options(
        words=0,
        words_help="add the K most frequent words of train as another output (default: do not)",
        apply_help="also mix the outputs with the same names of this test set; repeatable",
        force_help="write the mixture even if it may not be better, and overwrite files; and mix",
    ),
)


def run_tune(args: argparse.Namespace) -> None:
    """Run ``geval tune``; raises GevalError."""
    task, settings = config.task_and_settings(args, *config.BY_DOCUMENTS, command="tune")
    challenge = Challenge(path=task.directory, task=task)
    if args.parameters is not None:
        if not args.apply:
            raise UsageError(message="--parameters is for --apply NAME, with the test set to tune an output of")
        if settings.format != "text":
            raise UsageError(message="--parameters looks for nothing that --format would show: leave one of them out")
        parameters, kept = derived.read_parameters(args.parameters)
        names = task.out_files or (str(kept.get("output")),)  # that which they were found for
        sources = {}
        for test in args.apply:
            folder = challenge[test].directory
            outputs = [output for name in names for output in splits.outputs_named(folder, name)]
            sources[test] = [only_output(outputs)]
        show_written(_write_tuned(challenge, sources, {}, parameters, kept, force=args.force), "text")
        return
    with score.blaming_config(task):
        split = splits.locate(task)
        only_output(split.outputs)
        schemes = evaluate.select_schemes(task)[:1]
        (evaluation,) = scores.without_faults(score.scored(task, split, schemes, settings, keep=True))
    # A target that is not there is found before the search.
    sources = _sources_of(challenge, args.apply, [evaluation.output], task.test_name)
    counts = {evaluation.output.path: evaluation.file_lines}
    for test, outputs in sources.items():
        new = derived.Derived(sources=tuple(outputs), path="", header=split.output_header)
        new.check_lines(challenge[test], counts)
    with terminal.ProgressBar(evaluation.output.name) as progress:
        result = tuning.tune(
            evaluation,
            words=args.words,
            temperature=args.temperature,
            documents=settings.documents_by,
            seed=settings.seed,
            force=args.force,
            threads=settings.threads,
            progress=progress,
        )

    terminal.note(*result.notes)
    is_text, written = settings.format == "text", []
    if is_text:  # at once; a document names the files, too
        score.show_of_task(task, result, settings)
    if args.apply and result.taken:
        written = _write_tuned(challenge, sources, counts, result.parameters, result.kept(), force=args.force)
    elif args.apply and is_text:
        terminal.note("nothing is written, since no parameter makes the output significantly better")
    elif result.taken and is_text:
        terminal.note("add --apply NAME to write the tuned output for the test set NAME")
    if not is_text:
        score.show_of_task(task, result, settings, written=written)
    show_written(written, settings.format)


def run_mix(args: argparse.Namespace) -> None:
    """Run ``geval mix``; raises GevalError."""
    task, settings = config.task_and_settings(args, *config.BY_DOCUMENTS, command="mix")
    task = task.replace(out_files=tuple(args.outputs))
    with score.blaming_config(task):
        split = splits.locate(task)
        if not args.outputs:  # with those made on these answers, held-out lines would be known
            made = [output for output in split.outputs if os.path.exists(kept_path(output.path))]
            if made:
                names = some_of(output.name for output in made)
                terminal.note(f"tuned and mixed outputs are left out unless they are named: {names}")
            split = split._replace(outputs=tuple(output for output in split.outputs if output not in made))
        if len(split.outputs) < 2:
            raise UsageError(message=f"geval mix takes two outputs or more; there is {len(split.outputs)}")
        results = score.scored(task, split, evaluate.select_schemes(task)[:1], settings, keep=True)
        evaluations = scores.without_faults(results)
    # A target that is not there, or not free, is found before the search.
    challenge = Challenge(path=task.directory, task=task)
    outputs = [evaluation.output for evaluation in evaluations]
    sources = _sources_of(challenge, [task.test_name, *args.apply], outputs, task.test_name)
    more = [mixing.TRAIN] if args.words else []
    mixed = {
        test: derived.mixed_output(of_test, challenge[test].directory, split.output_header, more)
        for test, of_test in sources.items()
    }
    counts = {evaluation.output.path: evaluation.file_lines for evaluation in evaluations}
    plans = _planned(challenge, mixed, counts, force=args.force)
    mixture = mixing.mix(
        evaluations, words=args.words, documents=settings.documents_by, seed=settings.seed, force=args.force
    )
    mixture = replace(mixture, names=own_names(dict(settings.names), unique_names(outputs), outputs, "mixed"))

    terminal.note(*mixture.notes)
    is_text, written = settings.format == "text", []
    if is_text:
        score.show_of_task(task, mixture, settings)
    if mixture.taken or args.force:
        written = _write(plans, mixture.mixing, mixture.kept())
    elif is_text:
        terminal.note("nothing is written, since the mixture is not significantly better; --force writes it")
    if not is_text:
        score.show_of_task(task, mixture, settings, written=written)
    show_written(written, settings.format)


# New outputs, made of others


def _sources_of(
    challenge: Challenge, tests: Sequence[str], outputs: Sequence[Output], own_test: str
) -> dict[str, list[Output]]:
    """Find the outputs of one test set in others, by their names; in their own they are known.

    Raises MissingFileError for a test set, or an output, that is not there.
    """
    return {
        name: [output if name == own_test else derived.find_output(challenge[name], output) for output in outputs]
        for name in tests
    }


def _planned(
    challenge: Challenge, new_outputs: Mapping[str, derived.Derived], counts: Mapping[str, int], *, force: bool
) -> Plans:
    """Return the new outputs, by test sets, with their numbers of lines; ``counts`` are those of files read before.

    Raises UsageError for what would be written over without ``force``, and the DataErrors of files.
    """
    plans: Plans = []
    for test, new in new_outputs.items():
        try:
            new.check_free(force)
        except ExistingFileError as error:
            hint = "" if force else "\n  --force writes over it"
            raise UsageError(message=f"{named(error.path)} is there already, and is left as it is{hint}") from error
        plans.append((new, new.check_lines(challenge[test], counts)))
    return plans


def _write_tuned(
    challenge: Challenge,
    sources: Mapping[str, Sequence[Output]],
    counts: Mapping[str, int],
    parameters: Parameters,
    kept: Mapping[str, Any],
    *,
    force: bool,
) -> list[str]:
    tuned = {
        test: derived.tuned_output(parameters, output, challenge[test].directory, kept.get("header"))
        for test, (output,) in sources.items()
    }
    return _write(_planned(challenge, tuned, counts, force=force), parameters, kept)


def _write(plans: Plans, recipe: Recipe, kept: Mapping[str, Any]) -> list[str]:
    """Write the new outputs, and the parameters that are kept beside them; return the paths."""
    for new, lines in plans:
        with terminal.ProgressBar("lines", unit="items") as progress:
            new.write(recipe, kept, progress=partial(progress, size=lines))
    return [new.path for new, _ in plans]


def show_written(paths: Sequence[str], format: str) -> None:
    """Name the new files on standard output or, where a table for people stands there, on standard error."""
    if format in FOR_PEOPLE:
        for path in paths:
            terminal.say(f"wrote {named(path)}", None if format == "text" else sys.stderr)
