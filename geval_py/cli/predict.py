"""``geval predict``: the output of a language model, with honest probabilities of words."""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from geval_py.cli import baseline, commands, options, terminal
from geval_py.errors import GevalError, UsageError
from geval_py.evaluation import Evaluation, evaluate
from geval_py.explaining import mixing, tuning
from geval_py.modelling import baselines, predicting
from geval_py.reading import config, items, rewriting, splits
from geval_py.reading.challenge import Challenge, DataSet
from geval_py.scoring.writing import write_output
from geval_py.tables.numbers import counted, number
from geval_py.text import named
from geval_py.version import __version__

JOURNAL_ENDING, KEPT_ENDING = ".journal", ".model.json"
SAMPLE = 20  # items that --estimate does
EPILOG = f"""\
models:
  gguf:FILE            llama.cpp, in this process (llama-cpp-python)
  hf:NAME or a folder  transformers, on the GPU if there is one
  openai:URL#MODEL     a server of the completions protocol: llama.cpp's, vLLM, others; the key is taken
                       from GEVAL_API_KEY or OPENAI_API_KEY
  arpa:FILE            n-grams, by the left context; also a binary file of KenLM
  kenlm:FILE, or the name of a baseline, as in geval baseline

examples:
  geval predict -t dev-0 --model gguf:gemma-3-270m.gguf --estimate
  geval predict -t dev-0 --model gguf:gemma-3-270m.gguf --right 10 --candidates 50
  geval predict -t dev-0 --model openai:http://localhost:8000/v1#gemma-3-270m

A run that is stopped, or killed, goes on where it was when it is started again.

{commands.STATUS}"""


def make_parser() -> commands.CommandParser:
    """Make the parser of ``geval predict``."""
    parser = commands.CommandParser(
        prog="geval predict",
        description="Write the output of a language model for a test set: in each gap the likeliest words, with the\n"
        "probabilities that the model gives to their tokens and to their end; all other words share the rest.",
        epilog=EPILOG,
    )
    add = parser.add_argument
    add("--model", required=True, metavar="ADDRESS", help="the language model; see below")
    config.add_options(parser, "test_name")
    add("-o", "--out-file", dest="name", default="", metavar="NAME", help="the output's name, as out-mine.tsv "
        "(default: by the model and the options)")  # fmt: skip
    config.add_options(parser, "out_directory", "expected_directory", "in_header", "out_header")
    add("--left-column", metavar="COLUMN", default="", help="the column of the left context")
    add("--right-column", metavar="COLUMN", default="", help="the column of the right context")
    words = f"the likeliest words, so many a line (default: {baselines.TOP})"
    add("--words", type=commands.number_type, default=baselines.TOP, metavar="K", help=words)
    add("--right", type=commands.number_type, default=0, metavar="M",
        help="judge words by M tokens of the right context, too (default: 0; 10 are enough)")  # fmt: skip
    add("--candidates", type=commands.number_type, default=0, metavar="N",
        help="try the N likeliest words of the baseline ngram-both, too (default: 0)")  # fmt: skip
    requests = "requests to a server at once (default: 4)"
    add("--parallel", type=commands.number_type, default=4, metavar="N", help=requests)
    config.add_options(parser, "threads")
    add("--dtype", choices=("float32", "float16", "bfloat16"), default=None, metavar="TYPE",
        help="of transformers' numbers: float32 (default), float16, bfloat16")  # fmt: skip
    add("--limit", type=commands.number_type, default=None, metavar="N", help="stop after N items, to go on later")
    add("--estimate", action="store_true", default=False,
        help=f"do {SAMPLE} items (or --limit), keep them, and say how long all would take")  # fmt: skip
    add(
        "--force",
        action="store_true",
        default=False,
        help="write over an output of that name, and the journal of other work",
    )
    return parser


def run(given: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    contexts = given.left_column, given.right_column
    task, _ = options.task_and_settings(given)
    challenge = Challenge(path=task.directory, task=task)
    test = challenge[task.test_name]
    if test.input is None:
        raise baseline.missing_input(test)
    asked = predicting.Asked(words=given.words, right=given.right, candidates=given.candidates)
    output = os.path.join(test.directory, _file_name(given.name, given.model, asked))
    if os.path.lexists(output) and not given.force:
        raise UsageError(message=f"{named(output)} is there already, and is left as it is\n  --force writes over it")
    settings = {name: getattr(given, name) for name in ("parallel", "dtype", "threads")}
    work = _Work(challenge, test, given.model, asked, contexts, settings)
    os.makedirs(test.directory, exist_ok=True)
    path = output.removesuffix(".tsv") + JOURNAL_ENDING
    with predicting.opened_journal(path, work.described(), anew=given.force) as journal:
        most = given.limit if given.limit is not None else SAMPLE if given.estimate else None
        work.go_on(journal, most)
        if len(journal) == len(test):
            work.write(output, journal)
            os.unlink(path)
    print(work.outcome(output, len(journal), estimate=given.estimate))
    return 0


class _Work:
    """The answers of a model to a test set."""

    def __init__(
        self,
        challenge: Challenge,
        test: DataSet,
        address: str,
        asked: predicting.Asked,
        contexts: tuple[str, str],
        settings: dict[str, Any],
    ) -> None:
        self._challenge, self._test, self._address, self._asked = challenge, test, address, asked
        self._contexts, self._settings = contexts, settings
        self._seconds, self._done = 0.0, 0

    @property
    def _train(self) -> DataSet | None:
        return self._challenge[splits.TRAINING_SET] if splits.TRAINING_SET in list(self._challenge) else None

    def described(self) -> dict[str, Any]:
        """Return what decides about each line."""
        kind, _, place = self._address.partition(":")
        train = self._train
        files = {
            "model_file": [None if kind == "openai" else place],
            "test_set": [self._test.input],
            "training_set": [] if train is None else [train.input, train.expected],
        }
        return {
            "version": __version__,
            "model": self._address,
            **self._asked._asdict(),
            "dtype": self._settings["dtype"],
            "contexts": list(self._contexts),
        } | {
            name + predicting.DIGESTS: [predicting.digest_of(path) for path in paths if path and os.path.exists(path)]
            for name, paths in files.items()
        }

    def go_on(self, journal: predicting.Journal, most: int | None) -> None:
        """Answer the items that are left, at most so many."""
        first, size = len(journal), len(self._test)
        if first:
            terminal.note(f"{first} of {counted(size, 'item')} are done already; this goes on behind them")
        if first == size:
            return
        model = predicting.open_model(self._address, self._asked, **self._settings)
        self._fit(model)
        start = time.monotonic()
        try:
            with terminal.ProgressBar("items", unit="items") as progress:
                for line in predicting.predict(model, self._left_over(first, most)):
                    journal.add(line)
                    progress(len(journal), size)
        except (GevalError, KeyboardInterrupt):
            if len(journal):
                terminal.note(
                    f"{len(journal)} of {counted(size, 'item')} are done and kept: the same command goes on"
                )
            raise
        self._seconds, self._done = time.monotonic() - start, len(journal) - first

    def _left_over(self, first: int, most: int | None) -> Iterator[items.Item]:
        unanswered = baseline.without_answers(self._test)
        last = None if most is None else first + most
        return islice(iter(baseline.with_contexts(unanswered, self._contexts)), first, last)

    def _fit(self, model: baselines.WordModel) -> None:
        needs_none = isinstance(model, predicting.GapWords | predicting.LeftModel) and not self._asked.candidates
        if not needs_none or (self._train and self._train.input and self._train.expected):
            baseline.fit(model, self._address, self._challenge, self._contexts, keep=True)

    def write(self, output: str, journal: predicting.Journal) -> None:
        """Write the output and, beside it, how it was made."""
        write_output(output, journal.lines)
        with rewriting.written_whole(output.removesuffix(".tsv") + KEPT_ENDING) as file:
            file.write(json.dumps(self.described(), indent=2).encode() + b"\n")

    def outcome(self, output: str, done: int, *, estimate: bool) -> str:
        """Return what to tell the user at the end."""
        size = len(self._test)
        if done == size:
            return "\n".join([f"wrote {named(output)}", *self._figures(output)])
        each = self._seconds / max(1, self._done)
        left = f"{done} of {counted(size, 'item')} are done and kept: the same command goes on"
        if not estimate:
            return left
        took = f"{counted(self._done, 'item')} took {_duration(self._seconds)}, {each:.2f} s each"
        return f"{took}\nthe other {size - done:,} would take {_duration(each * (size - done))}\n{left}"

    def _figures(self, output: str) -> Iterator[str]:
        """Yield the score, and what tuning and mixing would make of it on held-out lines, if there are answers."""
        if self._test.expected is None:
            return
        evaluation = evaluate(self._challenge, self._test.name, out=output)
        score = evaluation.scores[0]
        parts = [f"{score.name} {number(score.value, 2)}"]
        with suppress(GevalError):
            found = tuning.tune(evaluation)
            tried = next((trial.score for trial in found.trials if trial.names == found.taken), found.score)
            parts.append(f"by geval tune {number(tried, 2)}" if found.taken else "geval tune gains nothing")
        with suppress(GevalError), tempfile.TemporaryDirectory() as folder:
            mixture = mixing.mix([evaluation, self._baseline(folder)])
            with_baseline = f"geval mix with {baselines.DEFAULT}"
            mixed = number(mixture.held_out, 2)
            parts.append(f"by {with_baseline} {mixed}" if mixture.taken else f"{with_baseline} gains nothing")
        yield "; ".join(parts)

    def _baseline(self, folder: str) -> Evaluation:
        """Score the baseline's output, which is made if it is not there."""
        name = f"out-model={baselines.DEFAULT}.tsv"
        path = os.path.join(self._test.directory, name)
        if not os.path.isfile(path):
            path = os.path.join(folder, name)
            model = baselines.baseline(baselines.DEFAULT)
            baseline.fit(model, baselines.DEFAULT, self._challenge, self._contexts, keep=True)
            write_output(path, predicting.predict(model, self._left_over(0, None)))
        return evaluate(self._challenge, self._test.name, out=path)


def _file_name(name: str, address: str, asked: predicting.Asked) -> str:
    """Return the name of the output's file.

    >>> _file_name("", "gguf:models/gemma-3.gguf", predicting.Asked(words=300, right=10))
    'out-model=gemma-3,k=300,right=10.tsv'
    >>> _file_name("mine", "gguf:gemma-3.gguf", predicting.Asked())
    'out-mine.tsv'
    """
    if os.path.basename(name) != name:
        raise UsageError(message=f"-o {named(name)} is a path: give a name, and --out-directory the folder")
    if name:
        return f"{'' if name.startswith('out') else 'out-'}{name.removesuffix('.tsv')}.tsv"
    kind, _, place = address.partition(":")
    model = os.path.basename((place.partition("#")[2] or place).rstrip("/")) or kind
    figures = {"k": asked.words, "right": asked.right, "candidates": asked.candidates}
    shown = "".join(f",{key}={value}" for key, value in figures.items() if value)
    return f"out-model={re.sub(r'[^A-Za-z0-9_.-]', '-', re.sub('[.](gguf|arpa|bin)$', '', model))}{shown}.tsv"


def _duration(seconds: float) -> str:
    """Write a duration.

    >>> _duration(4.25), _duration(754), _duration(7500)
    ('4.2 s', '12 min 34 s', '2 h 5 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{seconds:.1f} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
