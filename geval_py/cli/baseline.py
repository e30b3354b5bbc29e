"""``geval baseline``: outputs of simple models, which are trained on the challenge's train."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from geval_py.cli import commands, options, terminal
from geval_py.errors import MissingFileError, UsageError
from geval_py.modelling import baselines, corpus, gap_models, predicting
from geval_py.reading import config, gap_columns, items, splits
from geval_py.reading.challenge import Challenge, DataSet
from geval_py.scoring.writing import write_output
from geval_py.text import named

MODELS = "\n".join(f"  {name:11} {of.summary.replace('`', '')}" for name, of in baselines.BASELINES.items())
EPILOG = f"""\
models:
{MODELS}
  kenlm:FILE  a model that KenLM reads, for the most frequent words (needs the package kenlm)

examples:
  geval baseline -t dev-0              write dev-0/out-model=ngram-both.tsv
  geval baseline -t dev-0 unigram --top 1000
  geval -t dev-0                       and score it

{commands.STATUS}"""


def make_parser() -> commands.CommandParser:
    """Make the parser of ``geval baseline``."""
    parser = commands.CommandParser(
        prog="geval baseline",
        description="Write the output of a simple model, trained on the challenge's train, for a test set.",
        epilog=EPILOG,
    )
    add = parser.add_argument
    default = baselines.DEFAULT
    names = f"{', '.join(baselines.BASELINES)} or kenlm:FILE (default: {default})"
    add("model", nargs="?", default=default, metavar="MODEL", help=names)
    config.add_options(parser, "test_name", "out_directory", "expected_directory", "in_header", "out_header")
    contexts = f"({gap_columns.LEFT_NAMES[0]} and {gap_columns.RIGHT_NAMES[0]} are known without it)"
    add("--left", metavar="COLUMN", default="", help=f"the column of the left context {contexts}")
    add("--right", metavar="COLUMN", default="", help="the column of the right context")
    words = "the likeliest words, so many a line; the others share the rest"
    top = f"{words} (default: {baselines.TOP}; 0: all words of train)"
    add("--top", type=commands.number_type, default=baselines.TOP, metavar="K", help=top)
    add("--force", action="store_true", default=False, help="write over an output of that name")
    add("--no-cache", action="store_true", default=False, help="train anew, and do not keep the model")
    return parser


def run(given: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    model = baselines.baseline(given.model, top=given.top)
    task, _ = options.task_and_settings(given)
    challenge = Challenge(path=task.directory, task=task)
    test = challenge[task.test_name]
    if test.input is None:
        raise missing_input(test)
    output = os.path.join(test.directory, f"out-model={_name(given.model)}.tsv")
    if os.path.lexists(output) and not given.force:
        raise UsageError(message=f"{named(output)} is there already, and is left as it is\n  --force writes over it")
    contexts = given.left, given.right
    fit(model, given.model, challenge, contexts, keep=not given.no_cache)
    os.makedirs(test.directory, exist_ok=True)
    with terminal.ProgressBar("items", unit="items") as progress:
        write_output(output, predicting.predict(model, with_contexts(_watched(test, progress), contexts)))
    print(f"wrote {named(output)}")
    return 0


def missing_input(test: DataSet) -> MissingFileError:
    """Return the error for a test set without input, which says how another folder is named."""
    hint = "--expected-directory DIR says where the challenge is"
    place = os.path.join(test.directory, splits.INPUT_FILE)
    return MissingFileError(what="No file with the input", path=place, hint=hint)


def _name(model: str) -> str:
    """Return a model's name as a part of an output's name, in which some characters mean something.

    >>> _name("kenlm:models/a,b.arpa")
    'kenlm-a-b.arpa'
    """
    kind, colon, path = model.partition(":")
    return kind + ("-" + re.sub(r"[^\w.-]", "-", os.path.basename(path)) if colon else "")


def without_answers(test: DataSet) -> DataSet:
    """Return a test set without its answers, which no model may see."""
    return DataSet(
        name=test.name, directory=test.directory, input=test.input, expected=None, in_header=test.in_header
    )


def _watched(test: DataSet, progress: terminal.ProgressBar) -> Iterator[items.Item]:
    """Yield the items without their answers."""
    lines = len(test)
    for item in without_answers(test):
        progress(item.line, lines)
        yield item


def with_contexts(data: Iterable[items.Item], contexts: tuple[str, str]) -> Iterable[items.Item]:
    """Return items with the contexts that ``--left`` and ``--right`` name, "" for those that are not given.

    Raises UsageError for a column that does not exist, when the first item is taken.
    """
    if not any(contexts):
        return data
    rest = iter(data)
    first = next(rest, None)
    if first is None:
        return ()
    left, right = gap_columns.find_contexts(list(first.columns), *contexts)
    return corpus.with_contexts(chain((first,), rest), left, right)


def fit(
    model: baselines.WordModel, name: str, challenge: Challenge, contexts: tuple[str, str], *, keep: bool
) -> None:
    """Train a model on train, or load what was learnt from the same files; raises MissingFileError."""
    train = challenge[splits.TRAINING_SET]
    for path, file in ((train.input, splits.INPUT_FILE), (train.expected, splits.EXPECTED_FILE)):
        if path is None:
            place = os.path.join(challenge.path, splits.TRAINING_SET, file)
            raise MissingFileError(what="There is nothing to train on", path=place)
    if not isinstance(model, baselines.NgramGapModel) or not keep:
        model.fit(with_contexts(train, contexts))
        return
    sides, reading = baselines.SIDES[name], (train.in_header, train.out_header, contexts)
    digest = gap_models.digest_of([path for path in (train.input, train.expected) if path], sides, reading)
    learnt = gap_models.load(digest)
    if learnt is None:
        learnt = gap_models.learn(corpus.texts_of(with_contexts(train, contexts)), sides)
        gap_models.save(digest, learnt)
    model.take(learnt)
