"""``geval mix``: outputs of one test set mixed, where that is better than the best of them alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from geval_py.cli.derive import OWN, PLACES, add_options, derive, parser_of, say, sources_of
from geval_py.cli.evaluations import blaming_config, document_head, scored
from geval_py.cli.parsers import QuietParser, add_fields
from geval_py.cli.settings import Settings, one_metric, task_and_settings
from geval_py.errors import UsageError
from geval_py.explaining.cross_validation import FEW_LINES
from geval_py.explaining.mixing import Mixture, mix
from geval_py.reading.challenge import Challenge
from geval_py.reading.splits import Task, locate
from geval_py.scoring.columns import select_schemes
from geval_py.scoring.scores import ScoredOutput, evaluations_of
from geval_py.tables.escapes import json_text
from geval_py.tables.terminals import width_of
from geval_py.text import named

_EPILOG = """\
examples:
  geval mix -t dev-0 bigram unigram    find the weights, and write dev-0/out-mix=bigram+unigram.tsv
  geval mix -t dev-0 bigram unigram --apply test-A
                                       and into test-A, of the outputs of the same names there
  geval mix -t dev-0 bigram unigram --words 1000
                                       with the commonest words of train as one more output

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval mix``."""
    parser = parser_of(
        "mix",
        "Mix outputs of one test set with the weights that are best where the answers are known, and write the\n"
        "mixture if it is better than the best output alone, on held-out lines and by more than luck.",
        _EPILOG,
    )
    parser.add_argument(
        "outputs",
        nargs="*",
        default=[],
        metavar="OUT",
        help="an output, looked for in DIR/NAME, then as a path; two or more (default: all of the test set)",
    )
    add_fields(parser, *PLACES)
    add_options(
        parser,
        words=0,
        words_help="with the K commonest words of train as one more output (default: without)",
        apply_help="write the mixture for this test set, too, of its outputs of the same names; repeatable",
        force_help="write the mixture though it is not surely better, and over another; "
        f"and mix on fewer than {FEW_LINES} lines",
    )
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    own = {name: given.pop(name) for name in (*OWN, "outputs")}
    task, settings = task_and_settings(given, own["metrics"], "documents")
    task = one_metric(task, own["metrics"], "mix")
    documents = settings.documents if own["documents"] is None else own["documents"]
    task = task.replace(out_files=tuple(own["outputs"]))
    with blaming_config(task):
        evaluations = _evaluated(task, settings)
    mixture = mix(evaluations, words=own["words"], documents=documents, seed=settings.seed, force=own["force"])
    _show_and_write(task, evaluations, mixture, own)
    return 0


def _evaluated(task: Task, settings: Settings) -> list[ScoredOutput]:
    """Score the outputs; raises UsageError for fewer than two, and what is wrong with the first that is at fault."""
    split = locate(task)
    if len(split.outputs) < 2:
        raise UsageError(message=f"geval mix takes two outputs or more; there is {len(split.outputs)}")
    return evaluations_of(scored(task, split, select_schemes(task)[:1], settings, sign=True))


def _show_and_write(
    task: Task, evaluations: Sequence[ScoredOutput], mixture: Mixture, own: Mapping[str, Any]
) -> None:
    say(mixture.notes)
    if own["form"] == "text":
        sys.stdout.writelines(mixture.text(width_of(sys.stdout)))
    written: list[str] = []
    if mixture.taken or own["force"]:
        challenge = Challenge(path=task.directory, task=task)
        outputs = [evaluation.output for evaluation in evaluations]
        sources = sources_of(challenge, [task.test_name, *own["apply"]], outputs, task.test_name)
        written = derive(
            challenge, sources, mixture.derived, mixture.mixing.mix_lines, mixture.kept(), force=own["force"]
        )
    elif own["form"] == "text":
        say(["nothing is written, since the mixture is not surely better; --force writes it"])
    if own["form"] == "json":
        sys.stdout.write(json_text(document_head(task) | mixture.to_dict() | {"written": written}))
    else:
        sys.stdout.writelines(f"wrote {named(path)}\n" for path in written)
