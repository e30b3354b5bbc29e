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
from pathlib import Path
from typing import Any

from geval_py.cli import terminal
from geval_py.cli.commands import (
    CONTEXTS,
    PLACES,
    check_free,
    command,
    number_option,
    option,
    switch,
    table_options,
)
from geval_py.errors import GevalError, MissingFileError, UsageError
from geval_py.evaluation import evaluate
from geval_py.modelling import baselines, corpus, gap_models, predicting
from geval_py.modelling.served_models import WAIT, Server
from geval_py.modelling.texts import blocks_of_files
from geval_py.modelling.word_search import WordSearch
from geval_py.reading import config, items, rewriting, splits
from geval_py.reading.challenge import Challenge, DataSet
from geval_py.reading.items import find_contexts
from geval_py.reading.lines import sha256_of
from geval_py.reading.outputs import MODEL_ENDING
from geval_py.scoring.writing import write_output
from geval_py.tables.numbers import fixed
from geval_py.text import counted, named, visible
from geval_py.version import __version__

JOURNAL_ENDING = ".journal"
SAMPLE = 20  # items that --estimate does
WITHOUT_EFFECT = ("parallel", "wait", "threads", "device")  # options that change no line
HEADERS = ("out_directory", "expected_directory", "in_header", "out_header")
NOTES = "Or a baseline, as in geval baseline. The key of a server is taken from GEVAL_API_KEY or OPENAI_API_KEY."
ORDER = number_option("--order", default=gap_models.ORDER, help=f"words of the n-grams (default: {gap_models.ORDER})")
WORDS = number_option(
    "--words", default=baselines.TOP, metavar="K",
    help=f"the number of words per line, the likeliest first (default: {baselines.TOP}; 0, for baselines: all)",
)  # fmt: skip
FORCE = switch("--force", help="overwrite an existing output, and the journal of another run")


def _listed(*, learning: bool) -> str:
    """Return the help on models that have to learn from train, or on the others."""
    rows = (model for model in predicting.MODELS.values() if model.learns == learning)
    return "\n".join(f"  {model.address:18} {model.summary.replace('`', '')}" for model in rows)


@command(
    "baseline",
    "Write the output of a simple model, trained on the challenge's train, for a test set.",
    """\
  geval baseline -t dev-0              write dev-0/out-model=ngram-both.tsv
  geval baseline -t dev-0 unigram --words 1000
  geval -t dev-0                       and score it
""",
    option(
        "model", nargs="?", default=baselines.DEFAULT, metavar="MODEL",
        help=f"one of the models below (default: {baselines.DEFAULT})",
    ),
    PLACES[0],
    table_options("test_name", *HEADERS),
    *CONTEXTS,
    WORDS,
    ORDER,
    FORCE,
    before=f"models:\n{_listed(learning=True)}\n\n",
)  # fmt: skip
def run_baseline(args: argparse.Namespace) -> None:
    """Run ``geval baseline``, which is ``geval predict --model MODEL``; raises GevalError."""
    _write(args, predicting.Options(args.words, order=args.order), name="", limit=None)


@command(
    "predict",
    "Write the output of a language model for a test set: in each gap the likeliest words, with the\n"
    "probabilities that the model gives to their tokens and to their end; all other words share the rest.",
    """\
  geval predict -t dev-0 --model gguf:gemma-3-270m.gguf --estimate
  geval predict -t dev-0 --model gguf:gemma-3-270m.gguf --right-tokens 10 --candidates 50
  geval predict -t dev-0 --model openai:http://localhost:8000/v1#gemma-3-270m

A run that is stopped, or killed, goes on where it was when it is started again.
""",
    option("--model", metavar="ADDRESS", help="the language model; see below"),
    table_options("test_name"),
    option(
        "-o", "--out-file", dest="name", default="", metavar="NAME",
        help="the output's name, such as out-mine.tsv (default: made from the model and the options)",
    ),
    PLACES[0],
    table_options(*HEADERS),
    *CONTEXTS,
    WORDS,
    ORDER,
    number_option(
        "--right-tokens", default=0, metavar="M",
        help="also score words by M tokens of the right context (default: 0; 10 are enough)",
    ),
    number_option(
        "--candidates", default=0, help="also try the N likeliest words of the baseline ngram-both (default: 0)",
    ),
    number_option(
        "--parallel", default=4, help="requests to a server at once (default: 4)"
    ),
    number_option("--wait", default=WAIT, help=f"wait N seconds if a server asks for that (default: {WAIT})"),
    table_options(threads="threads of llama.cpp (default: one per core)"),
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
    number_option("--answers", default=0, help="count N answers of a chat model, even if it returns probabilities"),
    number_option("--limit", help="stop after N items; run the command again to continue"),
    switch(
        "--estimate",
        help=f"do {SAMPLE} items (or --limit), keep them, and show how a server is asked, and what all would take",
    ),
    FORCE,
    before=f"models:\n{_listed(learning=False)}\n{NOTES}\n\n",
)  # fmt: skip
def run_predict(args: argparse.Namespace) -> None:
    """Run ``geval predict``; raises GevalError."""
    if args.model is None:
        raise UsageError("the model is missing\n  for example geval predict --model hf:gpt2 -t dev-0")
    values = {field: getattr(args, field) for field in predicting.Options._fields}
    if args.template:
        blocks = blocks_of_files([args.template])
        values["template"] = b"".join(block for _, _, block in blocks).decode(errors="replace").strip()
    limit = args.limit if args.limit is not None else SAMPLE if args.estimate else None
    _write(args, predicting.Options(**values), args.name, limit, estimate=args.estimate)


def _write(
    args: argparse.Namespace, options: predicting.Options, name: str, limit: int | None, *, estimate: bool = False
) -> None:
    """Write a model's output for a test set, or go on with it: ``limit`` items (None: all)."""
    kind, contexts = predicting.kind_of(args.model), (args.left, args.right)
    challenge, test, output = _located(args, _file_name(name, args.model, options))
    needs_train = kind.learns or options.candidates
    train = challenge[splits.TRAINING_SET] if needs_train or splits.TRAINING_SET in challenge else None
    has_train = train is not None and train.input is not None and train.expected is not None
    if train is not None and needs_train and not has_train:
        hint = f"it takes {splits.INPUT_FILE} and {splits.EXPECTED_FILE}"
        raise MissingFileError(what="There is nothing to train on", path=train.directory, hint=hint)
    described = _described(args, train, test, options)
    size, method, server, start = len(test), None, None, time.monotonic()
    os.makedirs(test.directory, exist_ok=True)
    path = output.removesuffix(".tsv") + JOURNAL_ENDING
    with predicting.opened_journal(path, described, anew=args.force) as (done, add):
        first = len(done)
        if first:
            terminal.note(f"{first} of {counted(size, 'item')} are done already; this goes on behind them")
        if first < size:
            model, baseline = predicting.open_model(args.model, options), None
            if kind.contexts == 2 or options.right_tokens or options.candidates:
                _note_one_context(args.model, test, contexts)
            opened = model.model if isinstance(model, WordSearch) else model
            server = opened if isinstance(opened, Server) else None
            method = getattr(model, "method", None)
            if train is not None and has_train:
                of_inputs = isinstance(model, baselines.DocumentModel)
                learnt = _gaps(test, contexts) if of_inputs else _training_items(train, contexts)
                baseline = predicting.trained(model, learnt, options.candidates)
            if not kind.learns:
                _note_faults(model, next(_gaps(test, contexts)))
            rest = islice(_gaps(test, contexts), first, None if limit is None else first + limit)
            start = time.monotonic()
            try:
                with terminal.ItemBar("items") as progress:
                    for line in predicting.lines_of(model, rest, baseline):
                        add(line)
                        progress(len(done), size)
            except (GevalError, KeyboardInterrupt):
                if done:
                    terminal.note(_continued(len(done), size))
                raise
        seconds = time.monotonic() - start
        if len(done) == size:
            write_output(output, done)
            if not kind.learns:
                with rewriting.written_whole(output.removesuffix(".tsv") + MODEL_ENDING) as file:
                    file.write(json.dumps(described | {"method": method}, indent=2).encode() + b"\n")
            os.unlink(path)
    if len(done) < size:
        if estimate:
            computed, left = len(done) - first, size - len(done)
            each = seconds / max(1, computed)
            terminal.say(f"{counted(computed, 'item')} took {_duration(seconds)}, {each:.2f} s each")
            terminal.say(f"the other {left:,} would take {_duration(each * left)}")
            if server is not None and computed:
                terminal.say("\n".join(server.report()))
                requests, tokens = server.requests / computed, server.usage / computed
                terminal.say(f"{requests:.1f} requests and {tokens:,.0f} tokens per gap")
                terminal.say(f"all {counted(size, 'gap')} would take about {tokens * size:,.0f} tokens")
        terminal.say(_continued(len(done), size))
        return
    terminal.say(f"wrote {named(output)}")
    if not kind.learns and test.expected is not None:
        score = evaluate(challenge, test.name, output=output).scores[0]
        terminal.say(f"{score.name} {fixed(score.value, 2)}")


def _continued(done: int, size: int) -> str:
    return f"{done} of {counted(size, 'item')} are done. Run the same command again to continue."


def _located(args: argparse.Namespace, name: str) -> tuple[Challenge, DataSet, str]:
    """Return the challenge, the test set, and the path of the output to write.

    Raises MissingFileError without an input, and UsageError if there is such an output.
    """
    task, _ = config.task_and_settings(args)
    challenge = Challenge(path=task.directory, task=task)
    test = challenge[task.test_name]
    if test.input is None:
        raise MissingFileError(
            what="No file with the input",
            path=os.path.join(test.directory, splits.INPUT_FILE),
            hint="--expected-directory DIR says where the challenge is",
        )
    output = os.path.join(test.directory, name)
    check_free(output, args)
    return challenge, test, output


def _described(
    args: argparse.Namespace, train: DataSet | None, test: DataSet, options: predicting.Options
) -> dict[str, Any]:
    """Return what decides about each line."""
    _, _, place = args.model.partition(":")
    paths = [Path(place), *Path(place).glob("*")] if place else []
    stored = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(paths) if path.is_file()]
    files: dict[str, list[Any]] = {
        "model_file": [str(stored)],
        "test_set": [test.input],
        "training_set": [] if train is None else [train.input, train.expected],
    }
    ways = {name: value for name, value in options._asdict().items() if name not in WITHOUT_EFFECT}
    described = {"version": __version__, "model": args.model, **ways, "contexts": [args.left, args.right]}
    return described | {
        name + predicting.DIGESTS: [sha256_of(content) for content in contents if content]
        for name, contents in files.items()
    }


def _gaps(test: DataSet, contexts: tuple[str, str]) -> Iterator[items.Item]:
    """Return the items of a test set with their contexts, without the answers, which no model may see."""
    return corpus.with_contexts(replace(test, expected=None), contexts)


def _note_one_context(name: str, test: DataSet, contexts: tuple[str, str]) -> None:
    """Note that a model of both contexts has only one, unless the user named the columns."""
    item = next(_gaps(test, contexts), None)
    if any(contexts) or item is None:
        return
    left, right = find_contexts(list(item.columns))
    if not (left and right):
        missing, column = ("right", left) if left else ("left", right)
        others = visible(", ".join(name for name in item.columns if name != column))
        advice = f"\n  --left and --right name the columns of both; the other columns are {others}" if others else ""
        alone = f"{visible(name)} uses column {visible(column)} alone"
        terminal.note(f"no column is the {missing} context: {alone}{advice}")


def _note_faults(model: baselines.WordModel, item: items.Item) -> None:
    """Note what makes a language model's predictions for items like this one worse."""
    terminal.note(*getattr(model, "notes", tuple)())
    if corpus.lacks_spaces(" ".join(corpus.gap_of(item)[:2])):
        cause = "the contexts have no spaces between words, which a language model is asked for"
        terminal.note(f"{cause}\n  split the texts into words")


def _training_items(train: DataSet, contexts: tuple[str, str]) -> Iterator[items.Item]:
    """Yield the items of train, with a progress bar."""
    size = len(train)
    with terminal.ItemBar("train") as progress:
        for done, item in enumerate(corpus.with_contexts(train, contexts), 1):
            yield item
            progress(done, size)


def _file_name(name: str, address: str, options: predicting.Options) -> str:
    """Return the name of the output's file.

    >>> _file_name("", "gguf:models/gemma-3.gguf", predicting.Options(words=300, right_tokens=10))
    'out-model=gemma-3,k=300,right=10.tsv'
    >>> _file_name("mine", "gguf:gemma-3.gguf", predicting.Options())
    'out-mine.tsv'
    >>> _file_name("", "ngram", predicting.Options()), _file_name("", "kenlm:models/m.arpa", predicting.Options())
    ('out-model=ngram.tsv', 'out-model=kenlm-m.arpa.tsv')
    """
    if os.path.basename(name) != name:
        raise UsageError(f"-o {named(name)} is a path: give a name, and --out-directory the folder")
    if name:
        return f"{'' if name.startswith('out') else 'out-'}{name.removesuffix('.tsv')}.tsv"
    kind, _, place = address.partition(":")
    model = os.path.basename((place.partition("#")[2] or place).rstrip("/")) or kind
    figures = {"k": options.words, "right": options.right_tokens, "candidates": options.candidates}
    shown = "".join(f",{key}={value}" for key, value in figures.items() if value)
    if predicting.MODELS[kind].learns:
        model = f"{kind}-{model}" if place else kind
        shown = f",order={options.order}" * (options.order != gap_models.ORDER)
    else:
        model = re.sub("[.](gguf|arpa|bin)$", "", model)
    return f"out-model={re.sub(r'[^A-Za-z0-9_.-]', '-', model)}{shown}.tsv"


def _duration(seconds: float) -> str:
    """Write a duration.

    >>> _duration(4.25), _duration(754), _duration(7500)
    ('4.2 s', '12 min 34 s', '2 h 5 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{seconds:.1f} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
