"""``geval lm``: train n-gram language models, and compute perplexities and surprisals of texts."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import count, groupby, tee
from operator import itemgetter
from typing import TYPE_CHECKING

from geval_py.cli import terminal
from geval_py.cli.commands import (
    CONTEXTS,
    OptionAdder,
    add_format,
    command,
    group,
    number_option,
    option,
    switch,
    table_options,
)
from geval_py.errors import UsageError
from geval_py.explaining.significance import Interval
from geval_py.modelling import arpa, corpus, estimation, ngram_model, passages
from geval_py.modelling.texts import TextBlock, blocks_of_files, prepared
from geval_py.reading import compression, config, files, rewriting
from geval_py.reading.challenge import Challenge
from geval_py.reading.schemes import TOKENIZERS
from geval_py.reading.splits import TRAINING_SET
from geval_py.tables import numbers
from geval_py.tables.table import Column, Table, named_columns
from geval_py.text import named, visible

if TYPE_CHECKING:
    from geval_py.modelling import word_search

group(
    "lm",
    "Train n-gram language models, and compute the perplexity of texts and the surprisal of their words.",
    """\
  geval lm train -o 3 text.txt --arpa text.arpa
  geval lm perplexity text.arpa other.txt
  geval lm surprisal text.arpa other.txt
  geval lm train --help                what a command does, and its options
""",
)
DEFAULT_ORDER = 5
ROWS_LOOKED_AT = 100
MODEL = option(
    "model", metavar="MODEL",
    help="a model: an ARPA file, which may be compressed; or gguf:FILE, hf:NAME or openai:URL#MODEL, as in geval "
    "predict",
)  # fmt: skip
TEXT_HELP = "a text with one sentence per line, which may be compressed (default: standard input)"
DISCOUNT = config.argument_type(
    config.matched(r"0*([0-2](\.[0-9]{1,9})?|3(\.0{1,9})?)", "a discount, a number from 0 to 3", float)
)
THRESHOLD = config.argument_type(
    config.matched("[0-9]{1,9}", "a whole number: write the text first, geval lm train TEXT --prune 0 0 1", int)
)


def _text_options(default: str) -> tuple[OptionAdder, ...]:
    """Return the options of a text; ``default`` is the set of a challenge that is read."""
    return (
        option("texts", nargs="*", default=[], metavar="TEXT", help=TEXT_HELP),
        option(
            "--challenge", metavar="DIR", help="read a challenge: left context, answer and right context as a line"
        ),
        table_options(test_name=f"with --challenge: the set that is read (default: {default})"),
        *CONTEXTS,
        table_options(tokenizer=f"split lines into tokens: {', '.join(TOKENIZERS)}"),
    )


def _blocks(args: argparse.Namespace, default: str) -> Iterator[TextBlock]:
    """Return the text that the options name, in blocks; notes files that look like tables."""
    if args.challenge is not None:
        if args.texts:
            raise UsageError("--challenge takes the place of a text: leave one of them out")
        data = Challenge.open(args.challenge)[args.test_name or default]
        blocks = corpus.item_blocks(data, (args.left, args.right))
    elif args.test_name or args.left or args.right:
        raise UsageError("-t, --left and --right go with --challenge")
    elif not args.texts and sys.stdin.isatty():
        raise UsageError("a text is missing\n  name its file, or - for standard input")
    else:
        blocks = _noted(blocks_of_files(args.texts or [files.STANDARD_INPUT]))
    return prepared(blocks, args.tokenizer)


def _noted(blocks: Iterator[TextBlock]) -> Iterator[TextBlock]:
    for path, line, block in blocks:
        columns = {one.count(b"\t") for one in block.split(b"\n", ROWS_LOOKED_AT)[:-1]} if line == 1 else {0}
        if len(columns) == 1 and 0 not in columns:
            terminal.note(
                f"{named(path)} is a table of {columns.pop() + 1} columns: all count as text, ids and years too\n"
                "  --challenge DIR reads the contexts and the answers of a challenge"
            )
        yield path, line, block


@command(
    "lm train",
    "Train an n-gram model with interpolated modified Kneser-Ney smoothing, as KenLM's lmplz does.",
    """\
  geval lm train -o 3 text.txt --arpa text.arpa
  geval lm train -o 3 --skip-symbols <text.txt >text.arpa
  geval lm train -o 3 --challenge gazette --arpa gazette.arpa
  geval lm train -o 4 --prune 0 0 1 --arpa big.arpa.xz part-1.txt part-2.txt.gz
  geval lm train -o 2 --counts add-one text.txt --arpa add-one.arpa

A text has one sentence per line and white space between words. Write an option that takes several values before
another option or after the texts.
""",
    *_text_options(TRAINING_SET),
    number_option(
        "-o", "--order", default=DEFAULT_ORDER,
        help=f"the length of the longest n-grams, 1 to {estimation.MAX_ORDER} (default: {DEFAULT_ORDER})",
    ),
    option("--arpa", metavar="FILE", help="the model's file, compressed if it ends in .gz or .xz (default: stdout)"),
    option("--counts", choices=estimation.KINDS, help="use this estimate in place of Kneser-Ney smoothing"),
    option(
        "--prune", nargs="+", type=THRESHOLD, default=[], metavar="N",
        help="remove n-grams that occur N times or less: a number per order, the last for all higher orders",
    ),
    option("--vocabulary", metavar="FILE", help="remove n-grams with a word that is not in this file"),
    option(
        "--discount-fallback", nargs="*", type=DISCOUNT, metavar="D",
        help=f"the discounts of orders whose counts give none (default: {' '.join(map(str, estimation.FALLBACK))})",
    ),
    option(
        "--interpolate-unigrams", choices=("0", "1"),
        help="0: <unk> gets all probability that unigrams leave over, as in SRILM; 1 (the default): an equal share",
    ),
    number_option(
        "--vocab-pad", help="share the probability that unigrams leave over as if there were N words"
    ),
    switch("--exact-discounts", help="compute the discounts without lmplz's bug in the counts of counts"),
    switch("--no-sentence-marks", help="train without <s> and </s>, for texts that are no sentences"),
    switch(
        "--skip-symbols", help="read <s>, </s> and <unk> in the text as white space"
    ),
)  # fmt: skip
def run_train(args: argparse.Namespace) -> None:
    """Run the command; raises GevalError."""
    if args.arpa is None and sys.stdout.isatty():
        raise UsageError("the file for the model is missing: --arpa FILE (-: standard output)")
    args.arpa = args.arpa or files.STANDARD_INPUT
    how = _estimation(args)
    compressed = compression.compression_by_ending(args.arpa)
    to_file = args.arpa != files.STANDARD_INPUT
    output = rewriting.written_whole(args.arpa, compression=compressed) if to_file else nullcontext(sys.stdout.buffer)
    with output as file:  # opened first: a folder that cannot be written is no surprise at the end
        blocks = _blocks(args, TRAINING_SET)
        text = corpus.corpus_of(blocks, skip_symbols=args.skip_symbols, marks=not args.no_sentence_marks)
        if text.not_utf8 is not None:
            path, line = text.not_utf8
            terminal.note(f"{named(path)} is not UTF-8, first in line {line}; its bytes are taken as they are")
        if text.lacks_spaces():
            terminal.note(
                f"{named(text.name)} has no spaces between words: each run of letters counts as one word\n"
                "  split this text and all others into words (jieba, MeCab and PyThaiNLP can do that) or into letters"
            )
        if args.counts:
            arpa.write_arpa(estimation.plain_model(text, args.order, args.counts), file)
            return
        model, counts, discounts = estimation.estimate(text, how)
        arpa.write_arpa(model, file)
    if to_file:
        names = ("order", "n-grams", "kept", "D1", "D2", "D3+")
        amounts = ([f"{amount:.6g}" for amount in of_order.amounts] for of_order in discounts)
        rows = zip(count(1), counts, model.kept, *zip(*amounts, strict=True), strict=False)
        terminal.write_table(Table(named_columns(names), rows))
    orders = [str(order) for order, of_order in enumerate(discounts, 1) if of_order.fell_back]
    if orders:
        terminal.note(f"the counts give no discounts of order {', '.join(orders)}: the fall-back was taken")


def _estimation(args: argparse.Namespace) -> estimation.Estimation:
    """Return the settings of the estimation; raises UsageError for options that do not go together."""
    if args.vocab_pad and args.interpolate_unigrams == "0":
        raise UsageError(
            "--vocab-pad is the number of words that share the probability that unigrams leave over,\n"
            "  and --interpolate-unigrams 0 gives all of it to <unk>: remove one of the two options"
        )
    vocabulary = None
    if args.vocabulary is not None:
        vocabulary = {
            word
            for _, _, block in blocks_of_files([args.vocabulary])
            for word in corpus.split_as_lmplz(block.replace(b"\n", b" "))
        }
    how = estimation.Estimation(
        order=args.order,
        prune=tuple(args.prune),
        vocabulary=vocabulary,
        fallback=None if args.discount_fallback is None else tuple(args.discount_fallback) or estimation.FALLBACK,
        interpolate_unigrams=args.interpolate_unigrams != "0",
        vocabulary_size=args.vocab_pad or 0,
        exact_discounts=args.exact_discounts,
    )
    if args.counts and how != estimation.Estimation(args.order):
        raise UsageError("plain counts take no options of Kneser-Ney: leave out --counts, or these")
    return how


@command(
    "lm perplexity",
    "Show a model's perplexity of texts: of n-grams including and excluding OOVs, as KenLM's query does; of other\n"
    "language models per token, word and byte, as lm-evaluation-harness does.",
    """\
  geval lm perplexity text.arpa other.txt
  geval lm perplexity hf:gpt2 other.txt --whole-texts
  geval lm perplexity text.arpa.xz --challenge gazette -t dev-0 --bootstrap 1000
  geval lm perplexity text.arpa other.txt --sentences | sort -n | head
""",
    MODEL,
    *_text_options(config.DEFAULT_TEST),
    option(
        "--no-sentence-marks", dest="marks", action="store_false",
        help="do not begin a line with <s>, and do not predict </s> at its end",
    ),
    number_option(
        "--window", help="tokens that a model sees together, for gguf: and hf: (default: what it takes, 2048 at most)"
    ),
    switch("--whole-texts", help="with gguf:, hf: and openai:, score each text as one, not each line"),
    switch(
        "--sentences", help="print log10 of the probability and the number of OOVs, or of tokens, of each sentence"
    ),
    table_options(
        "seed", "precision", bootstrap="show 95 % intervals from N resamples of the sentences (1000 is typical)"
    ),
    add_format,
    before=f"{ngram_model.UNKNOWN_CONVENTION[:1].upper()}{ngram_model.UNKNOWN_CONVENTION[1:]}.\n\n",
)  # fmt: skip
def run_perplexity(args: argparse.Namespace) -> None:
    """Run the command; raises GevalError."""
    if args.bootstrap is None and args.seed is not None:
        raise UsageError("--seed goes with --bootstrap")
    if args.sentences and (args.bootstrap is not None or args.format != "text"):
        raise UsageError("--sentences has neither intervals nor another format")
    blocks = _blocks(args, config.DEFAULT_TEST)
    resampled: Callable[..., Sequence[Interval]]
    model = _opened(args.model, args.texts)
    if not isinstance(model, ngram_model.NgramModel):
        if not args.marks:
            raise UsageError("--no-sentence-marks is for n-gram models")
        scores = passages.score_passages(model.model, _texts(blocks, whole=args.whole_texts), args.window)
        column, logs, counts = "tokens", *scores[:, :2].T
        pairs = [(logs, of_unit) for of_unit in scores[:, 1:].T]
        resampled, shown = partial(ngram_model.resampled, pairs), partial(passages.passages_shown, scores)
    else:
        if args.window is not None or args.whole_texts:
            raise UsageError("--window and --whole-texts are for gguf:FILE, hf:NAME and openai:URL#MODEL")
        score = model.score_blocks(blocks, bos=args.marks, eos=args.marks)
        column, logs, counts = "OOVs", score.logs, score.oov
        resampled, shown = score.intervals, partial(ngram_model.perplexity_shown, score)
        unknown = int(score.oov.sum())
        if unknown:
            convention = "" if b"<unk>" in model.model.missing else ", with the probability of <unk>"
            terminal.note(f"{unknown} of {score.tokens.sum()} tokens are OOVs{convention}")
    if args.sentences:
        columns = [Column("log10", write=partial(numbers.score_text, precision=args.precision)), Column(column)]
        terminal.write_table(Table(columns, zip(logs.tolist(), map(int, counts), strict=True)))
        return
    intervals = None
    if args.bootstrap is not None:
        with terminal.ItemBar("samples") as progress:
            intervals = resampled(args.bootstrap, config.DEFAULT_SEED if args.seed is None else args.seed, progress)
    terminal.show(shown(intervals, args.precision), args)


def _texts(blocks: Iterator[TextBlock], *, whole: bool) -> Iterator[str]:
    """Yield the texts that a model over tokens scores: lines, or all that has one path."""
    for _, of_path in groupby(blocks, key=itemgetter(0)):
        parts = (block for _, _, block in of_path)
        texts = [b"".join(parts)] if whole else (line for part in parts for line in part[:-1].split(b"\n"))
        yield from (text.removesuffix(b"\r").decode(errors="replace") for text in texts)


@command(
    "lm surprisal",
    "Show the surprisal of each word of a text in bits, -log2 of its probability after the preceding words.",
    """\
  geval lm surprisal text.arpa other.txt
  geval lm surprisal text.arpa other.txt.gz --format csv >surprisal.csv
""",
    MODEL,
    option("text", nargs="?", default=files.STANDARD_INPUT, metavar="TEXT", help=TEXT_HELP),
    table_options("precision"),
    add_format,
)  # fmt: skip
def run_surprisal(args: argparse.Namespace) -> None:
    """Run the command; raises GevalError."""
    lines = (line for _, _, block in blocks_of_files([args.text]) for line in block[:-1].split(b"\n"))
    ahead, behind = tee(lines)
    surprisals = _opened(args.model, [args.text]).text_surprisals(
        line.decode(errors="surrogateescape") for line in ahead
    )
    rows = (
        (number, position, word.decode(errors="replace"), bits)
        for number, (line, values) in enumerate(zip(behind, surprisals, strict=True), 1)
        for position, (word, bits) in enumerate(zip(line.split(), values, strict=True), 1)
    )
    decimals = args.precision
    columns = [
        Column("line", alignment="right", write=str),
        Column("position", alignment="right", write=str),
        Column("word"),
        Column(
            "surprisal",
            unit="bits",
            alignment="right",
            write=numbers.significant if decimals is None else partial(numbers.fixed, decimals=decimals),
        ),
    ]
    terminal.show(ngram_model.WordListing(columns, rows), args)


def _opened(name: str, texts: Sequence[str]) -> ngram_model.NgramModel | word_search.WordSearch:
    """Load n-grams, and note what they lack, or open another language model by its address, as for geval predict."""
    if re.match("(chat|gguf|hf|openai):", name) and not os.path.exists(name):
        from geval_py.modelling import predicting, word_search  # which n-grams can do without

        return word_search.WordSearch(predicting.language_model(name), 1)
    if texts and ".arpa" in texts[0] and ".arpa" not in name:
        raise UsageError(f"the model comes before the text\n  write {visible(f'{texts[0]} {name}')}")
    model = ngram_model.NgramModel.load(name)
    if b"<unk>" in model.model.missing:
        terminal.note(f"{named(name)} has no <unk>: the log10 probability of unknown words is -100, as in KenLM")
    return model
