"""``geval tune``: what would make an output better at once, found where the answers are known, and applied.

``geval mix`` shares its options, and how new outputs are written into the folders of test sets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from geval_py.cli import options, parsers, score, terminal
from geval_py.errors import ExistingFileError, UsageError
from geval_py.explaining.cross_validation import FEW_LINES
from geval_py.explaining.tuning import tune
from geval_py.reading import config, derived, splits
from geval_py.reading.challenge import Challenge
from geval_py.scoring import evaluate, scores
from geval_py.tables.formats import FOR_PEOPLE, Tabular
from geval_py.text import named

OWN = ("metrics", "words", "documents", "apply", "force")  # the options that scoring does not have
DESCRIPTION = """\
Find what would make an output better at once: mass for all words (lambda), for the frequent ones (nu),
another temperature. What helps on held-out lines by more than luck is taken."""
EXAMPLES = """\
  geval tune -t dev-0 -o bigram        what would help out-model=bigram.tsv
  geval tune -t dev-0 -o bigram --apply dev-0 --apply test-A
                                       and write out-model=bigram,tuned=….tsv into both folders
  geval tune --parameters dev-0/out-model=bigram,tuned=lambda-nu.tuning.json --apply test-B
                                       the same again, for another set
"""


def make_parser() -> parsers.QuietParser:
    """Make the parser of ``geval tune``."""
    parser = parsers.command_parser("tune", DESCRIPTION, EXAMPLES, argument_default=argparse.SUPPRESS)
    parsers.add_fields(parser, "test_name", *parsers.PLACES)
    parsers.add_option(
        parser, options.option_of("out_files"), "the output, as for scoring; where there are several, one of them"
    )
    parser.add_argument("--temperature", action="store_true", default=False, help="try another temperature, too")
    parameters = "a .tuning.json that was written before: apply its parameters, and look for no others"
    parser.add_argument("--parameters", default=None, metavar="FILE", help=parameters)
    add_options(
        parser,
        words=None,
        words_help=f"frequent words of train that nu is for (default: {derived.DEFAULT_WORDS}; 0: none)",
        apply_help="write the output, tuned, into the folder of this test set, be it the same or another; repeatable",
        force_help=f"write over outputs of that name; and tune on fewer than {FEW_LINES} lines",
    )
    return parser.with_help()


def add_options(
    parser: parsers.QuietParser, *, words: int | None, words_help: str, apply_help: str, force_help: str
) -> None:
    """Add the options that tuning and mixing share; ``words`` is the default of ``--words``."""
    add = parser.add_argument
    parsers.add_metrics(parser, "a hashed metric")
    add("--words", type=parsers.number_type, default=words, metavar="K", help=words_help)
    documents = (
        "hold out together the lines with the same value in a column of the input (its name or number; "
        "default: the column by which lines are alike, if there is one)"
    )
    add("--documents", default=None, metavar="COLUMN", help=documents)
    each = "hold out each line by itself, be they alike or not"
    add("--no-documents", dest="documents", action="store_const", const=False, default=None, help=each)
    parsers.add_option(parser, options.option_of("seed"), f"of the random folds (default: {config.DEFAULT_SEED})")
    add("--apply", action="append", default=[], metavar="NAME", help=apply_help)
    add("--force", action="store_true", default=False, help=force_help)
    parsers.add_format(parser)
    parsers.add_fields(parser, "threads")


def run(words: Sequence[str]) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    own = {name: given.pop(name) for name in (*OWN, "temperature", "parameters")}
    task, settings = options.task_and_settings(given, own["metrics"], "documents")
    options.check_one_metric(task, own["metrics"], "tune")
    if own["parameters"] is not None:
        if not own["apply"]:
            raise UsageError(message="--parameters is for --apply NAME, with the test set to tune an output of")
        if settings.format != "text":
            raise UsageError(message="--parameters looks for nothing that --format would show: leave one of them out")
        show_written(_apply_parameters(task, own), "text")
        return 0
    with score.blaming_config(task):
        split = splits.locate(task)
        splits.only_output(split.outputs)
        (evaluation,) = scores.evaluations_of(
            score.scored(task, split, evaluate.select_schemes(task)[:1], settings, sign=True)
        )
    with terminal.ProgressBar(evaluation.output.name) as progress:
        tuning = tune(
            evaluation,
            words=own["words"],
            temperature=own["temperature"],
            documents=settings.documents if own["documents"] is None else own["documents"],
            seed=settings.seed,
            force=own["force"],
            threads=settings.threads,
            progress=progress,
        )

    def apply() -> list[str]:
        if not own["apply"] or not tuning.taken:
            if own["apply"] and settings.format == "text":
                terminal.note("nothing is written, since no parameter is worth taking")
            return []
        challenge = Challenge(path=task.directory, task=task)
        sources = sources_of(challenge, own["apply"], [evaluation.output], task.test_name)
        return _apply(challenge, sources, tuning.parameters, tuning.kept(), force=own["force"])

    show_and_write(task, tuning, settings.format, apply)
    return 0


def _apply_parameters(task: splits.Task, own: Mapping[str, Any]) -> list[str]:
    """Apply parameters of a file to the output that they were found for, or to another one that is named."""
    parameters, kept = derived.read_parameters(own["parameters"])
    names = task.out_files or (str(kept.get("output")),)
    challenge = Challenge(path=task.directory, task=task)
    sources = {}
    for test in own["apply"]:
        found = [output for name in names for output in splits.outputs_named(challenge[test].directory, name)]
        sources[test] = [splits.only_output(found).path]
    return _apply(challenge, sources, parameters, kept, force=own["force"])


def _apply(
    challenge: Challenge,
    sources: Mapping[str, Sequence[str]],
    parameters: derived.Parameters,
    kept: Mapping[str, Any],
    *,
    force: bool,
) -> list[str]:
    def plan(paths: Sequence[str], folder: str) -> derived.Derived:
        return derived.tuned_output(parameters, paths[0], folder, kept.get("header"))

    return derive(challenge, sources, plan, parameters.tune_lines, kept, force=force)


# Shared with geval mix: new outputs made of others.


def show_and_write(task: splits.Task, value: Tabular, format: str, write: Callable[[], list[str]]) -> None:
    """Show what was found and write the new outputs; text is shown before, other formats after."""
    terminal.note(*value.notes)
    if format == "text":
        score.show_of_task(task, value, format)
    written = write()
    if format != "text":
        score.show_of_task(task, value, format, written=written)
    show_written(written, format)


def show_written(paths: Sequence[str], format: str) -> None:
    """Name the new files on standard output or, where a table for people stands there, on standard error."""
    if format in FOR_PEOPLE:
        stream = sys.stdout if format == "text" else sys.stderr
        stream.writelines(f"wrote {named(path)}\n" for path in paths)


def derive(
    challenge: Challenge,
    sources: Mapping[str, Sequence[str]],
    plan: Callable[[Sequence[str], str], derived.Derived],
    make: derived.LineMaker,
    kept: Mapping[str, Any],
    *,
    force: bool,
) -> list[str]:
    """Write a new output into the folder of each test set, made of the outputs that lie there; return the paths.

    ``sources`` are the outputs' paths, by the name of a test set; ``plan`` names the new output of some paths in a
    folder. All is checked before anything is written. Raises UsageError for what would be written over without
    ``force``, and the DataErrors of files.
    """
    plans: list[tuple[derived.Derived, int]] = []
    for name, paths in sources.items():
        test = challenge[name]
        new = plan(paths, test.directory)
        try:
            new.check_free(force)
        except ExistingFileError as error:
            hint = "" if force else "\n  --force writes over it"
            raise UsageError(message=f"{named(error.path)} is there already, and is left as it is{hint}") from error
        plans.append((new, new.check_lines(test)))
    for new, lines in plans:
        _write(new, lines, make, kept)
    return [new.path for new, _ in plans]


def _write(new: derived.Derived, lines: int, make: derived.LineMaker, kept: Mapping[str, Any]) -> None:
    with terminal.ProgressBar("lines", unit="items") as progress:
        new.write(make, kept, progress=lambda done: progress(done, lines))


def sources_of(
    challenge: Challenge, tests: Sequence[str], outputs: Sequence[splits.Output], own_test: str
) -> dict[str, list[str]]:
    """Find the outputs of one test set in others, by their names; in their own they are known.

    Raises MissingFileError for a test set, or an output, that is not there.
    """
    return {
        name: [
            output.path if name == own_test else derived.find_output(challenge[name], output) for output in outputs
        ]
        for name in tests
    }
