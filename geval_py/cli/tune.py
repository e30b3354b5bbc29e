"""``geval tune``: what would make an output better at once, found where the answers are known, and applied."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from geval_py.cli import new_outputs, options, parsers, score, terminal
from geval_py.errors import UsageError
from geval_py.explaining.cross_validation import FEW_LINES
from geval_py.explaining.tuning import tune
from geval_py.reading import derived, splits
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


def make_parser() -> parsers.QuietParser:
    """Make the parser of ``geval tune``."""
    parser = parsers.command_parser("tune", DESCRIPTION, EXAMPLES, argument_default=argparse.SUPPRESS)
    parsers.add_fields(parser, "test_name")
    parsers.add_places(parser)
    parsers.add_option(
        parser, options.option_of("out_files"), "the output, as for scoring; where there are several, one of them"
    )
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
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    own = {name: given.pop(name) for name in (*new_outputs.OWN, "temperature", "parameters")}
    task, settings = options.task_and_settings(given, own["metrics"], *options.BY_DOCUMENTS)
    options.check_one_metric(task, own["metrics"], "tune")
    if own["parameters"] is not None:
        if not own["apply"]:
            raise UsageError(message="--parameters is for --apply NAME, with the test set to tune an output of")
        if settings.format != "text":
            raise UsageError(message="--parameters looks for nothing that --format would show: leave one of them out")
        new_outputs.show_written(_apply_parameters(task, own), "text")
        return 0
    with score.blaming_config(task):
        split = splits.locate(task)
        only_output(split.outputs)
        sign = settings.format not in UNSIGNED or bool(own["apply"])  # the parameters beside an output are signed
        schemes = evaluate.select_schemes(task)[:1]
        (evaluation,) = scores.evaluations_of(score.scored(task, split, schemes, settings, sign=sign))
    # A target that is not there is found before the search.
    challenge = Challenge(path=task.directory, task=task)
    sources = new_outputs.sources_of(challenge, own["apply"], [evaluation.output], task.test_name)
    new_outputs.check_sources(challenge, sources, split.output_header)
    with terminal.ProgressBar(evaluation.output.name) as progress:
        tuning = tune(
            evaluation,
            words=own["words"],
            temperature=own["temperature"],
            documents=settings.documents_by,
            seed=settings.seed,
            force=own["force"],
            threads=settings.threads,
            progress=progress,
        )

    def apply() -> list[str]:
        if not own["apply"] or not tuning.taken:
            if own["apply"] and settings.format == "text":
                terminal.note("nothing is written, since no parameter is worth taking")
            elif tuning.taken and settings.format == "text":
                terminal.note("--apply NAME writes the output tuned so, for the test set of that name")
            return []
        return _apply(challenge, sources, tuning.parameters, tuning.kept(), force=own["force"])

    new_outputs.show_and_write(task, tuning, settings, apply)
    return 0


def _apply_parameters(task: splits.Task, own: Mapping[str, Any]) -> list[str]:
    """Apply parameters of a file to the output that they were found for, or to another one that is named."""
    parameters, kept = derived.read_parameters(own["parameters"])
    names = task.out_files or (str(kept.get("output")),)
    challenge = Challenge(path=task.directory, task=task)
    sources = {}
    for test in own["apply"]:
        found = [output for name in names for output in splits.outputs_named(challenge[test].directory, name)]
        sources[test] = [only_output(found).path]
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

    plans = new_outputs.planned(challenge, sources, plan, force=force)
    return new_outputs.derive(plans, parameters.tune_lines, kept)
