"""``geval lm train``: a model of texts, written as an ARPA file."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

from geval_py.cli.parsers import QuietParser, number_type
from geval_py.cli.terminal import note, write_table
from geval_py.errors import UsageError
from geval_py.modelling.arpa import write_arpa
from geval_py.modelling.corpus import Corpus, read_corpus, read_words
from geval_py.modelling.counting import KINDS, plain_model
from geval_py.modelling.kneser_ney import FALLBACK, MOST_ORDER, Estimated, Estimation, estimate, training_table
from geval_py.modelling.ngram_model import NgramModel
from geval_py.reading.compression import compression_by_ending
from geval_py.reading.rewriting import written_whole
from geval_py.reading.sources import STANDARD_INPUT
from geval_py.text import named

DEFAULT_ORDER = 5
OF_KNESER_NEY = (
    "prune", "vocabulary", "discount_fallback", "interpolate_unigrams", "vocab_pad", "exact_discounts",
)  # fmt: skip
_EPILOG = """\
examples:
  geval lm train -o 3 text.txt --arpa text.arpa
  geval lm train -o 4 --prune 0 0 1 --arpa big.arpa.xz part-1.txt part-2.txt.gz
  geval lm train -o 2 --counts add-one text.txt --arpa add-one.arpa

A text has a sentence a line, and white space between words. Options that take several values stand in front of
another option, or behind the texts.

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval lm train``."""
    parser = QuietParser(
        prog="geval lm train",
        description="Estimate an n-gram model with interpolated modified Kneser-Ney, as KenLM's lmplz does.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("texts", nargs="*", metavar="TEXT", help="a text, a sentence a line, maybe compressed (-: standard input)")
    order = f"the length of the longest n-grams, 1 to {MOST_ORDER} (default: {DEFAULT_ORDER})"
    add("-o", "--order", type=number_type, default=DEFAULT_ORDER, metavar="N", help=order)
    add("--arpa", metavar="FILE", help="the model to write, compressed by its ending (-: standard output)")
    add("--counts", choices=KINDS, help="a model of plain counts, without Kneser-Ney")
    _add_estimation(parser)
    add("--skip-symbols", action="store_true", help="take <s>, </s> and <unk> in the text for white space")
    return parser.with_help()


def _add_estimation(parser: QuietParser) -> None:
    add = parser.add_argument
    prune = "leave out n-grams that occur N times or less, by order; the last is for all higher orders"
    add("--prune", nargs="+", type=number_type, default=[], metavar="N", help=prune)
    add("--vocabulary", metavar="FILE", help="leave out n-grams with a word that is not in this file")
    fallback = f"the discounts where the counts give none (default: {' '.join(map(str, FALLBACK))})"
    add("--discount-fallback", nargs="*", type=_discount, metavar="D", help=fallback)
    interpolate = "0: <unk> gets all that unigrams leave, as in SRILM; 1 (the default): its share of it"
    add("--interpolate-unigrams", choices=("0", "1"), help=interpolate)
    add("--vocab-pad", type=number_type, metavar="N", help="share what unigrams leave as if there were N words")
    add("--exact-discounts", action="store_true", help="without lmplz's mistake in the counts of counts")


def _discount(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or float(text) > 3:
        raise argparse.ArgumentTypeError(f"{text!r} is not a discount, a number from 0 to 3")
    return float(text)


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    if not given.texts:
        raise UsageError(
            message="a text to train on is missing\n  for example geval lm train text.txt --arpa text.arpa"
        )
    if given.arpa is None:
        raise UsageError(message="where the model is to be written is missing: --arpa FILE (-: standard output)")
    how = None if given.counts else _estimation(given)
    if how is None:
        _check_plain(given)
    corpus = read_corpus(given.texts, skip_symbols=given.skip_symbols)
    if corpus.not_utf8 is not None:
        path, line = corpus.not_utf8
        note(f"{named(path)} is not UTF-8, first in line {line}; its bytes are taken as they are")
    if how is None:
        _write(plain_model(corpus, given.order, given.counts), given.arpa)
    else:
        _train(corpus, how, given.arpa)
    return 0


def _train(corpus: Corpus, how: Estimation, path: str) -> None:
    estimated = estimate(corpus, how)
    _write(estimated.model, path)
    if path != STANDARD_INPUT:
        write_table(training_table(estimated))
    _note_fallback(estimated)


def _note_fallback(estimated: Estimated) -> None:
    orders = [str(order) for order, discounts in enumerate(estimated.discounts, 1) if discounts.fell_back]
    if orders:
        note(f"the counts give no discounts of order {', '.join(orders)}: the fall-back was taken")


def _estimation(given: argparse.Namespace) -> Estimation:
    return Estimation(
        order=given.order,
        prune=tuple(given.prune),
        vocabulary=None if given.vocabulary is None else frozenset(read_words(given.vocabulary)),
        fallback=None if given.discount_fallback is None else _three(given.discount_fallback),
        interpolate_unigrams=given.interpolate_unigrams != "0",
        vocabulary_size=given.vocab_pad or 0,
        exact_discounts=given.exact_discounts,
    )


def _three(discounts: Sequence[float]) -> tuple[float, float, float]:
    """Complete the fall-back discounts: the last one given is for all higher counts."""
    if len(discounts) > len(FALLBACK):
        raise UsageError(message=f"--discount-fallback takes up to 3 discounts; {len(discounts)} were given")
    if not discounts:
        return FALLBACK
    one, two, three = (*discounts, *[discounts[-1]] * (len(FALLBACK) - len(discounts)))
    return one, two, three


def _check_plain(given: argparse.Namespace) -> None:
    """Refuse what plain counts have not; raises UsageError."""
    values: dict[str, Any] = vars(given)
    useless = [name for name in OF_KNESER_NEY if values[name] not in (None, False, [])]
    if useless:
        option = f"--{useless[0].replace('_', '-')}"
        raise UsageError(message=f"{option} is for Kneser-Ney: leave it out, or --counts")
    Estimation(order=given.order)


def _write(model: NgramModel, path: str) -> None:
    if path == STANDARD_INPUT:
        sys.stdout.flush()
        write_arpa(model, sys.stdout.buffer)
        return
    with written_whole(path, compression=compression_by_ending(path)) as file:
        write_arpa(model, file)
