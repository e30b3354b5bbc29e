"""``geval tune``: what would make an output better at once, found where the answers are known, and applied."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from geval_py.cli.derive import OWN, PLACES, add_options, derive, parser_of, say, sources_of
from geval_py.cli.evaluations import blaming_config, document_head, scored
from geval_py.cli.parsers import QuietParser, add_option
from geval_py.cli.settings import Settings, one_metric, task_and_settings
from geval_py.cli.terminal import ProgressBar
from geval_py.errors import UsageError
from geval_py.explaining.cross_validation import FEW_LINES
from geval_py.explaining.tuning import Tuning, tune
from geval_py.reading.challenge import Challenge
from geval_py.reading.derived import DEFAULT_WORDS, Derived, Parameters, read_parameters, tuned_output
from geval_py.reading.options import option_of
from geval_py.reading.outputs import Output
from geval_py.reading.splits import Task, locate, outputs_named
from geval_py.scoring.columns import select_schemes
from geval_py.scoring.scores import ScoredOutput
from geval_py.tables.escapes import json_text
from geval_py.tables.terminals import width_of
from geval_py.text import named, visible

_EPILOG = """\
examples:
  geval tune -t dev-0 -o bigram        what would help out-model=bigram.tsv
  geval tune -t dev-0 -o bigram --apply dev-0 --apply test-A
                                       and write out-model=bigram,tuned=….tsv into both folders
  geval tune --parameters dev-0/out-model=bigram,tuned=lambda-nu.tuning.json --apply test-B
                                       the same again, for another set

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval tune``."""
    parser = parser_of(
        "tune",
        "Find what would make an output better at once: mass for all words (lambda), for the frequent ones (nu),\n"
        "another temperature. What helps on held-out lines by more than luck is taken.",
        _EPILOG,
    )
    for field in PLACES:
        add_option(parser, option_of(field))
    add_option(parser, option_of("out_files"), "the output, as for scoring; where there are several, one of them")
    parser.add_argument("--temperature", action="store_true", default=False, help="try another temperature, too")
    parser.add_argument(
        "--parameters",
        default=None,
        metavar="FILE",
        help="a .tuning.json that was written before: apply what it holds, and look for nothing",
    )
    add_options(
        parser,
        words=None,
        words_help=f"frequent words of train that nu is for (default: {DEFAULT_WORDS}; 0: none)",
        apply_help="write the output, tuned, into the folder of this test set, be it the same or another; repeatable",
        force_help=f"write over outputs of that name; and tune on fewer than {FEW_LINES} lines",
    )
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    own = {name: given.pop(name) for name in (*OWN, "temperature", "parameters")}
    task, settings = task_and_settings(given, own["metrics"], "documents")
    task = one_metric(task, own["metrics"], "tune")
    documents = settings.documents if own["documents"] is None else own["documents"]
    if own["parameters"] is not None:
        return _repeat(task, own)
    with blaming_config(task):
        evaluation = _evaluated(task, settings)
    with ProgressBar(evaluation.output.name) as progress:
        tuning = tune(
            evaluation,
            words=own["words"],
            temperature=own["temperature"],
            documents=documents,
            seed=settings.seed,
            force=own["force"],
            threads=settings.threads,
            progress=progress,
        )
    _show_and_apply(task, evaluation.output, tuning, own)
    return 0


def _evaluated(task: Task, settings: Settings) -> ScoredOutput:
    split = locate(task)
    if len(split.outputs) > 1:
        names = visible(", ".join(output.name for output in split.outputs))
        raise UsageError(message=f"geval tune takes one output: choose one with -o\n  there are {names}")
    (result,) = scored(task, split, select_schemes(task)[:1], settings, sign=True)
    if not isinstance(result, ScoredOutput):
        raise result.error
    return result


def _show_and_apply(task: Task, output: Output, tuning: Tuning, own: Mapping[str, Any]) -> None:
    say(tuning.notes)
    if own["form"] == "text":
        sys.stdout.writelines(tuning.text(width_of(sys.stdout)))
    written: list[str] = []
    if own["apply"] and tuning.taken:
        challenge = Challenge(path=task.directory, task=task)
        sources = sources_of(challenge, own["apply"], [output], task.test_name)
        written = _apply(challenge, sources, tuning.parameters, tuning.kept(), force=own["force"])
    elif own["apply"] and own["form"] == "text":
        say(["nothing is written, since no parameter is worth taking"])
    if own["form"] == "json":
        sys.stdout.write(json_text(document_head(task) | tuning.to_dict() | {"written": written}))
    else:
        sys.stdout.writelines(f"wrote {named(path)}\n" for path in written)


def _apply(
    challenge: Challenge,
    sources: Mapping[str, Sequence[str]],
    parameters: Parameters,
    kept: Mapping[str, Any],
    *,
    force: bool,
) -> list[str]:
    def plan(paths: Sequence[str], folder: str) -> Derived:
        return tuned_output(parameters, paths[0], folder, kept.get("header"))

    return derive(challenge, sources, plan, parameters.tune_lines, kept, force=force)


def _repeat(task: Task, own: Mapping[str, Any]) -> int:
    """Apply parameters that were kept, to the output that they were found for, or to another that is named."""
    parameters, kept = read_parameters(own["parameters"])
    if not own["apply"]:
        raise UsageError(message="--parameters is for --apply NAME, with the test set to tune an output of")
    if own["form"] != "text":
        raise UsageError(message="--parameters looks for nothing that --format would show: leave one of them out")
    names = task.out_files or (str(kept.get("output")),)
    challenge = Challenge(path=task.directory, task=task)
    sources = {test: [_only_output(challenge[test].directory, names)] for test in own["apply"]}
    for path in _apply(challenge, sources, parameters, kept, force=own["force"]):
        print(f"wrote {named(path)}")
    return 0


def _only_output(folder: str, names: Sequence[str]) -> str:
    found = [output for name in names for output in outputs_named(folder, name)]
    if len(found) > 1:
        several = visible(", ".join(output.name for output in found))
        raise UsageError(message=f"geval tune takes one output: choose one with -o\n  there are {several}")
    return found[0].path
