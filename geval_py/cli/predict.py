"""``geval baseline`` and ``geval predict``: outputs of simple models, and of language models."""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from geval_py.cli import terminal
from geval_py.cli.commands import CONTEXTS, PLACES, command, number_option, option, switch, table_options
from geval_py.errors import GevalError, MissingFileError, UsageError
from geval_py.evaluation import evaluate
from geval_py.modelling import baselines, corpus, gap_models, predicting
from geval_py.modelling.texts import blocks_of_files
from geval_py.reading import config, items, rewriting, splits
from geval_py.reading.challenge import Challenge, DataSet
from geval_py.reading.gap_columns import find_contexts
from geval_py.reading.outputs import MODEL_ENDING
from geval_py.scoring.writing import write_output
from geval_py.tables.numbers import counted, fixed
from geval_py.text import named, visible
from geval_py.version import __version__

JOURNAL_ENDING = ".journal"
SAMPLE = 20  # items that --estimate does
HEADERS = ("out_directory", "expected_directory", "in_header", "out_header")
LISTED = "\n".join(f"  {name:11} {model.summary.replace('`', '')}" for name, model in baselines.BASELINES.items())


def _located(args: argparse.Namespace, name: str) -> tuple[Challenge, DataSet, str]:
    """Return the challenge, the test set, and the path of the output to write.

    Raises MissingFileError without an input, and UsageError if there is such an output.
    """
    task, _ = config.task_and_settings(args)
    challenge = Challenge(path=task.directory, task=task)
    test = challenge[task.test_name]
    if test.input is None:
        hint = "--expected-directory DIR says where the challenge is"
        place = os.path.join(test.directory, splits.INPUT_FILE)
        raise MissingFileError(what="No file with the input", path=place, hint=hint)
    output = os.path.join(test.directory, name)
    if os.path.lexists(output) and not args.force:
        raise UsageError(message=f"{named(output)} is there already, and is left as it is\n  --force writes over it")
    return challenge, test, output


@command(
    "baseline",
    "Write the output of a simple model, trained on the challenge's train, for a test set.",
    """\
  geval baseline -t dev-0              write dev-0/out-model=ngram-both.tsv
  geval baseline -t dev-0 unigram --top 1000
  geval -t dev-0                       and score it
""",
    option(
        "model",
        nargs="?",
        default=baselines.DEFAULT,
        metavar="MODEL",
        help=f"{', '.join(baselines.BASELINES)} or kenlm:FILE (default: {baselines.DEFAULT})",
    ),
    PLACES[0],
    table_options("test_name", *HEADERS),
    *CONTEXTS,
    number_option(
        "--top",
        default=baselines.TOP,
        metavar="K",
        help="the number of words in a line; the rest is for all other words "
        f"(default: {baselines.TOP}; 0: all words of train)",
    ),
    switch("--force", help="overwrite an existing output"),
    before=f"""\
models:
{LISTED}
  kenlm:FILE  the most frequent words of train, scored by an ARPA file

""",
)
def run_baseline(args: argparse.Namespace) -> None:
    """Run ``geval baseline``; raises GevalError."""
    model = baselines.baseline(args.model, top=args.top)
    kind, _, path = args.model.partition(":")
    short = kind + ("-" + re.sub(r"[^\w.-]", "-", os.path.basename(path)) if path else "")
    challenge, test, output = _located(args, f"out-model={short}.tsv")
    contexts = args.left, args.right
    _note_one_context(short, model, test, contexts)
    _fit(model, challenge, contexts)
    os.makedirs(test.directory, exist_ok=True)
    size = len(test)
    with terminal.ProgressBar("items", unit="items") as progress:

        def watched() -> Iterator[items.Item]:
            for item in _gaps(test, contexts):
                progress(item.line, size)
                yield item

        write_output(output, predicting.predict(model, watched()))
    terminal.say(f"wrote {named(output)}")


@command(
    "predict",
    "Write the output of a language model for a test set: in each gap the likeliest words, with the\n"
    "probabilities that the model gives to their tokens and to their end; all other words share the rest.",
    """\
  geval predict -t dev-0 --model gguf:gemma-3-270m.gguf --estimate
  geval predict -t dev-0 --model gguf:gemma-3-270m.gguf --right 10 --candidates 50
  geval predict -t dev-0 --model openai:http://localhost:8000/v1#gemma-3-270m

A run that is stopped, or killed, goes on where it was when it is started again.
""",
    option("--model", required=True, metavar="ADDRESS", help="the language model; see below"),
    table_options("test_name"),
    option(
        "-o", "--out-file", dest="name", default="", metavar="NAME",
        help="the output's name, such as out-mine.tsv (default: made from the model and the options)",
    ),
    PLACES[0],
    table_options(*HEADERS),
    option("--left-column", metavar="COLUMN", default="", help="the column of the left context"),
    option("--right-column", metavar="COLUMN", default="", help="the column of the right context"),
    number_option(
        "--words", default=baselines.TOP, metavar="K",
        help=f"the number of words per line, the likeliest first (default: {baselines.TOP})",
    ),
    number_option(
        "--right", default=0, metavar="M",
        help="also score words by M tokens of the right context (default: 0; 10 are enough)",
    ),
    number_option(
        "--candidates", default=0, help="also try the N likeliest words of the baseline ngram-both (default: 0)",
    ),
    number_option(
        "--parallel", default=4, help="requests to a server at once (default: 4)"
    ),
    table_options("threads"),
    option(
        "--dtype", choices=("float32", "float16", "bfloat16", "int8", "int4"), metavar="TYPE",
        help="the number format in transformers: float32 (default), float16, bfloat16; int8, int4 (bitsandbytes)",
    ),
    option(
        "--device", default="auto", metavar="DEVICE",
        help="where transformers computes: cpu, cuda, cuda:1, mps; balanced: spread over all GPUs "
        "(default: the GPU if there is one)",
    ),
    option("--template", metavar="FILE", help="what to ask a chat model, with {left} and {right} for the contexts"),
    number_option("--samples", default=0, help="count N answers of a chat model, also if it tells probabilities"),
    number_option("--limit", help="stop after N items, to go on later"),
    switch(
        "--estimate", help=f"do {SAMPLE} items (or --limit), keep them, and show how long all would take",
    ),
    switch(
        "--force", help="overwrite an existing output, and the journal of another run"
    ),
    before="""\
models:
  gguf:FILE            llama.cpp, in this process (llama-cpp-python)
  hf:NAME or a folder  transformers, on the GPU if there is one; hf:NAME@REVISION; the folder of a LoRA adapter
  openai:URL#MODEL     a server of the completions protocol: llama.cpp's, vLLM, others; the key is taken
                       from GEVAL_API_KEY or OPENAI_API_KEY
  chat:URL#MODEL       a chat model on a server, which is asked for the word
  arpa:FILE            n-grams, by the left context
  kenlm:FILE, or the name of a baseline, as in geval baseline

""",
)  # fmt: skip
def run_predict(args: argparse.Namespace) -> None:
    """Run ``geval predict``; raises GevalError."""
    contexts = args.left_column, args.right_column
    asked = predicting.Asked(args.words, args.right, args.candidates)
    challenge, test, output = _located(args, _file_name(args.name, args.model, asked))
    size, most = len(test), args.limit if args.limit is not None else SAMPLE if args.estimate else None
    train = challenge[splits.TRAINING_SET] if splits.TRAINING_SET in list(challenge) else None
    template = None
    if args.template:
        blocks = blocks_of_files([args.template])
        template = b"".join(block for _, _, block in blocks).decode(errors="replace").strip()
    settings = predicting.Settings(args.threads, args.parallel, args.dtype, args.device, template, args.samples)
    described = _described(args, train, test, asked, settings)
    os.makedirs(test.directory, exist_ok=True)
    path = output.removesuffix(".tsv") + JOURNAL_ENDING
    start, how = time.monotonic(), None
    with predicting.opened_journal(path, described, anew=args.force) as (done, add):
        first = len(done)
        if first:
            terminal.note(f"{first} of {counted(size, 'item')} are done already; this goes on behind them")
        if first < size:
            model = predicting.open_model(args.model, asked, settings)
            _note_one_context(args.model, model, test, contexts, asked.right or asked.candidates)
            how = getattr(model, "method", None)
            needs_none = isinstance(model, predicting.GapWords | predicting.LeftModel) and not asked.candidates
            if not needs_none or (train and train.input and train.expected):
                _fit(model, challenge, contexts)
            if isinstance(model, predicting.GapWords):
                for note in model.notes(next(_gaps(test, contexts))):
                    terminal.note(note)
            last = None if most is None else first + most
            rest = islice(_gaps(test, contexts), first, last)
            start = time.monotonic()
            try:
                with terminal.ProgressBar("items", unit="items") as progress:
                    for line in predicting.predict(model, rest):
                        add(line)
                        progress(len(done), size)
            except (GevalError, KeyboardInterrupt):
                if done:
                    kept = f"{len(done)} of {counted(size, 'item')} are done and kept"
                    terminal.note(f"{kept}: the same command goes on")
                raise
        seconds = time.monotonic() - start
        if len(done) == size:
            write_output(output, done)
            with rewriting.written_whole(output.removesuffix(".tsv") + MODEL_ENDING) as file:
                method = {} if how is None else {"method": how}
                file.write(json.dumps(described | method, indent=2).encode() + b"\n")
            os.unlink(path)
    if len(done) == size:
        terminal.say("\n".join([f"wrote {named(output)}", *_score_text(challenge, test, output)]))
        return
    if args.estimate:
        computed, left = len(done) - first, size - len(done)
        each = seconds / max(1, computed)
        terminal.say(f"{counted(computed, 'item')} took {_duration(seconds)}, {each:.2f} s each")
        terminal.say(f"the other {left:,} would take {_duration(each * left)}")
    terminal.say(f"{len(done)} of {counted(size, 'item')} are done and kept: the same command goes on")


def _described(
    args: argparse.Namespace,
    train: DataSet | None,
    test: DataSet,
    asked: predicting.Asked,
    settings: predicting.Settings,
) -> dict[str, Any]:
    """Return what decides about each line."""
    kind, _, place = args.model.partition(":")
    files = {
        "model_file": [None if kind in ("openai", "chat") else place],
        "test_set": [test.input],
        "training_set": [] if train is None else [train.input, train.expected],
    }
    described = {
        "version": __version__,
        "model": args.model,
        **asked._asdict(),
        **{name: getattr(settings, name) for name in ("dtype", "template", "samples")},
        "contexts": [args.left_column, args.right_column],
    }
    return described | {
        name + predicting.DIGESTS: [gap_models.digest_of(path) for path in paths if path and os.path.exists(path)]
        for name, paths in files.items()
    }


def _score_text(challenge: Challenge, test: DataSet, output: str) -> Iterator[str]:
    """Yield the score, if there are answers."""
    if test.expected is not None:
        score = evaluate(challenge, test.name, output=output).scores[0]
        yield f"{score.name} {fixed(score.value, 2)}"


def _gaps(test: DataSet, contexts: tuple[str, str]) -> Iterator[items.Item]:
    """Return the items of a test set with their contexts, without the answers, which no model may see."""
    return corpus.with_contexts(replace(test, expected=None), contexts)


def _note_one_context(
    name: str, model: object, test: DataSet, contexts: tuple[str, str], is_of_both: object = False
) -> None:
    """Note that a model of both contexts has only one, unless the user named the columns."""
    is_of_both = is_of_both or isinstance(model, baselines.FrequentWordScorer) or getattr(model, "sides", 1) == 2
    item = next(_gaps(test, contexts), None)
    if any(contexts) or not is_of_both or item is None:
        return
    left, right = find_contexts(list(item.columns))
    if not (left and right):
        missing, column = ("right", left) if left else ("left", right)
        others = visible(", ".join(one for one in item.columns if one != column))
        advice = f"\n  --left and --right name the columns of both; the other columns are {others}" if others else ""
        alone = f"{visible(name)} uses column {visible(column)} alone"
        terminal.note(f"no column is the {missing} context: {alone}{advice}")


def _fit(model: baselines.WordModel, challenge: Challenge, contexts: tuple[str, str]) -> None:
    """Train a model on train; raises MissingFileError."""
    train = challenge[splits.TRAINING_SET]
    for path, file in ((train.input, splits.INPUT_FILE), (train.expected, splits.EXPECTED_FILE)):
        if path is None:
            place = os.path.join(challenge.path, splits.TRAINING_SET, file)
            raise MissingFileError(what="There is nothing to train on", path=place)
    model.fit(corpus.with_contexts(train, contexts))


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
