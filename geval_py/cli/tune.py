"""``geval tune``: what would make an output better at once, found where the answers are known, and applied."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from geval_py.cli import commands, new_outputs, options, score, terminal
from geval_py.errors import UsageError
from geval_py.explaining import derived
from geval_py.explaining.cross_validation import FEW_LINES
from geval_py.explaining.tuning import tune
from geval_py.reading import config, splits
from geval_py.reading.challenge import Challenge
from geval_py.reading.outputs import only_output
from geval_py.scoring import evaluate, scores
from geval_py.tables.formats import UNSIGNED

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


def make_parser() -> commands.CommandParser:
    """Make the parser of ``geval tune``."""
    parser = commands.command_parser("tune", DESCRIPTION, EXAMPLES)
    config.add_options(parser, "test_name")
    commands.add_places(parser)
    config.add_options(parser, out_files="the output, as for scoring; where there are several, one of them")
    parser.add_argument("--temperature", action="store_true", default=False, help="try another temperature, too")
    parameters = "a .tuning.json that was written before: apply its parameters, and look for no others"
    parser.add_argument("--parameters", default=None, metavar="FILE", help=parameters)
    new_outputs.add_options(
        parser,
        words=None,
        words_help=f"frequent words of train that nu is for (default: {derived.DEFAULT_WORDS}; 0: none)",
        apply_help="write the output, tuned, into the folder of this test set, be it the same or another; repeatable",
        force_help=f"write over outputs of that name; and tune on fewer than {FEW_LINES} lines",
    )
    return parser


def run(given: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    task, settings = options.task_and_settings(given, *options.BY_DOCUMENTS, command="tune")
    if given.parameters is not None:
        if not given.apply:
            raise UsageError(message="--parameters is for --apply NAME, with the test set to tune an output of")
        if settings.format != "text":
            raise UsageError(message="--parameters looks for nothing that --format would show: leave one of them out")
        new_outputs.show_written(_apply_parameters(task, given), "text")
        return 0
    with score.blaming_config(task):
        split = splits.locate(task)
        only_output(split.outputs)
        sign = settings.format not in UNSIGNED or bool(given.apply)  # the parameters beside an output are signed
        schemes = evaluate.select_schemes(task)[:1]
        (evaluation,) = scores.evaluations_of(score.scored(task, split, schemes, settings, sign=sign))
    # A target that is not there is found before the search.
    challenge = Challenge(path=task.directory, task=task)
    sources = new_outputs.sources_of(challenge, given.apply, [evaluation.output], task.test_name)
    new_outputs.check_sources(challenge, sources, split.output_header)
    with terminal.ProgressBar(evaluation.output.name) as progress:
        tuning = tune(
            evaluation,
            words=given.words,
            temperature=given.temperature,
            documents=settings.documents_by,
            seed=settings.seed,
            force=given.force,
            threads=settings.threads,
            progress=progress,
        )

    def apply() -> list[str]:
        if not given.apply or not tuning.taken:
            if given.apply and settings.format == "text":
                terminal.note("nothing is written, since no parameter is worth taking")
            elif tuning.taken and settings.format == "text":
                terminal.note("--apply NAME writes the output tuned so, for the test set of that name")
            return []
        return _apply(challenge, sources, tuning.parameters, tuning.kept(), force=given.force)

    new_outputs.show_and_write(task, tuning, settings, apply)
    return 0


def _apply_parameters(task: config.Task, given: argparse.Namespace) -> list[str]:
    """Apply parameters of a file to the output that they were found for, or to another one that is named."""
    parameters, kept = derived.read_parameters(given.parameters)
    names = task.out_files or (str(kept.get("output")),)
    challenge = Challenge(path=task.directory, task=task)
    sources = {}
    for test in given.apply:
        found = [output for name in names for output in splits.outputs_named(challenge[test].directory, name)]
        sources[test] = [only_output(found).path]
    return _apply(challenge, sources, parameters, kept, force=given.force)


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

    plans = new_outputs.planned(challenge, sources, plan, force=force)
    return new_outputs.derive(plans, parameters.tune_lines, kept)
