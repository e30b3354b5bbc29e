"""``geval mix``: outputs of one test set mixed, where that is better than the best of them alone."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from geval_py.cli import commands, new_outputs, options, score, terminal
from geval_py.errors import UsageError
from geval_py.explaining import cross_validation, derived, mixing
from geval_py.reading import config, splits
from geval_py.reading.challenge import Challenge
from geval_py.reading.outputs import own_names, unique_names
from geval_py.scoring import evaluate, scores
from geval_py.text import some_of

DESCRIPTION = """\
Mix outputs of one test set with the weights that are best where the answers are known, and write the
mixture if it is better than the best output alone, on held-out lines and by more than luck."""
EXAMPLES = """\
  geval mix -t dev-0 bigram unigram    find the weights, and write dev-0/out-mix=bigram+unigram.tsv
  geval mix -t dev-0 bigram unigram --apply test-A
                                       and into test-A, of the outputs of the same names there
  geval mix -t dev-0 bigram unigram --words 1000
                                       with the commonest words of train as one more output
"""


def make_parser() -> commands.CommandParser:
    """Make the parser of ``geval mix``."""
    parser = commands.command_parser("mix", DESCRIPTION, EXAMPLES)
    default = "all of the test set but tuned and mixed ones"
    outputs = f"an output, looked for in DIR/NAME, then as a path; two or more (default: {default})"
    parser.add_argument("outputs", nargs="*", default=[], metavar="OUT", help=outputs)
    config.add_options(parser, "test_name")
    commands.add_places(parser)
    config.add_options(parser, "names")
    new_outputs.add_options(
        parser,
        words=0,
        words_help="with the K commonest words of train as one more output (default: without)",
        apply_help="write the mixture for this test set, too, of its outputs of the same names; repeatable",
        force_help="write the mixture though it is not surely better, and over another; "
        f"and mix on fewer than {cross_validation.FEW_LINES} lines",
    )
    return parser


def run(given: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    task, settings = options.task_and_settings(given, *options.BY_DOCUMENTS, command="mix")
    task = replace(task, out_files=tuple(given.outputs))
    with score.blaming_config(task):
        split = splits.locate(task)
        if not given.outputs:
            split = _without_derived(split)
        if len(split.outputs) < 2:
            raise UsageError(message=f"geval mix takes two outputs or more; there is {len(split.outputs)}")
        evaluations = scores.evaluations_of(
            score.scored(task, split, evaluate.select_schemes(task)[:1], settings, sign=True)
        )
    # A target that is not there, or not free, is found before the search.
    challenge = Challenge(path=task.directory, task=task)
    outputs = [evaluation.output for evaluation in evaluations]
    sources = new_outputs.sources_of(challenge, [task.test_name, *given.apply], outputs, task.test_name)

    def plan(paths: Sequence[str], folder: str) -> derived.Derived:
        return derived.mixed_output(paths, folder, split.output_header, [mixing.TRAIN] if given.words else [])

    plans = new_outputs.planned(challenge, sources, plan, force=given.force)
    mixture = mixing.mix(
        evaluations,
        words=given.words,
        documents=settings.documents_by,
        seed=settings.seed,
        force=given.force,
    )

    unique = unique_names(outputs)
    mixture = replace(mixture, names=own_names(dict(settings.names), unique, outputs, "mixed"))

    def write() -> list[str]:
        if not mixture.taken and not given.force:
            if settings.format == "text":
                terminal.note("nothing is written, since the mixture is not surely better; --force writes it")
            return []
        return new_outputs.derive(plans, mixture.mixing.mix_lines, mixture.kept())

    new_outputs.show_and_write(task, mixture, settings, write)
    return 0


def _without_derived(split: splits.Split) -> splits.Split:
    """Leave out the outputs that were tuned on these answers, or mixed: with them, held-out lines would be known."""
    made = [output for output in split.outputs if derived.is_derived(output)]
    if made:
        names = some_of(output.name for output in made)
        terminal.note(f"tuned and mixed outputs are left out unless they are named: {names}")
    return replace(split, outputs=tuple(output for output in split.outputs if output not in made))
