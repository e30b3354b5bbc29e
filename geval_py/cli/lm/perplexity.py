"""``geval lm perplexity``: how well a model predicts texts."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from geval_py.cli.parsers import QuietParser, add_option, digits_type, number_type
from geval_py.cli.terminal import ProgressBar, note, write_table
from geval_py.errors import UsageError
from geval_py.modelling.arpa import read_arpa
from geval_py.modelling.ngram_model import UNKNOWN_CONVENTION, NgramModel
from geval_py.modelling.perplexity import (
    TextScore,
    perplexity_document,
    perplexity_table,
    score_texts,
    sentences_table,
)
from geval_py.reading.options import DEFAULT_SEED, option_of
from geval_py.tables.escapes import json_text
from geval_py.text import named

FORMATS = ("text", "json")
_EPILOG = f"""\
{UNKNOWN_CONVENTION[:1].upper()}{UNKNOWN_CONVENTION[1:]}.

examples:
  geval lm perplexity text.arpa other.txt
  geval lm perplexity text.arpa.xz other.txt --bootstrap 1000
  geval lm perplexity text.arpa other.txt --sentences | sort -n | head

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval lm perplexity``."""
    parser = QuietParser(
        prog="geval lm perplexity",
        description="Give the perplexity of texts by a model, with and without unknown words, as KenLM's query does.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("model", nargs="?", metavar="FILE", help="a model: an ARPA file, maybe compressed")
    add("texts", nargs="*", metavar="TEXT", help="a text, a sentence a line, maybe compressed (-: standard input)")
    marks = "without <s> in front of a line, and without predicting </s> behind it"
    add("--no-sentence-marks", dest="marks", action="store_false", help=marks)
    add("--sentences", action="store_true", help="a line a sentence: log10 of its probability, unknown words")
    bootstrap = "show the 95 %% intervals, from N resamples of the sentences (1000 are typical)"
    add("-B", "--bootstrap", type=number_type, metavar="N", help=bootstrap)
    add_option(parser, option_of("seed"), f"with -B: of its random numbers (default: {DEFAULT_SEED})")
    add("-p", "--precision", type=digits_type, metavar="N", help="digits after the point")
    add("--format", choices=FORMATS, default="text", help="text (the default), or one JSON document")
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    if given.model is None or not given.texts:
        missing = "a model" if given.model is None else "a text"
        raise UsageError(message=f"{missing} is missing\n  for example geval lm perplexity text.arpa other.txt")
    if given.bootstrap is None and given.seed is not None:
        raise UsageError(message="--seed goes with --bootstrap")
    if given.sentences and (given.bootstrap is not None or given.format != "text"):
        raise UsageError(message="--sentences has neither intervals nor another format")
    model = read_arpa(given.model)
    _note_missing(model)
    score = score_texts(model, given.texts, sentence_marks=given.marks)
    _note_unknown(score)
    if given.sentences:
        write_table(sentences_table(score, given.precision))
    else:
        _show(score, given.bootstrap, given.seed, given.precision, given.format)
    return 0


def _note_missing(model: NgramModel) -> None:
    if b"<unk>" in model.missing:
        note(f"{named(model.name)} has no <unk>: the log10 probability of unknown words is -100, as in KenLM")


def _note_unknown(score: TextScore) -> None:
    unknown = int(score.oov.sum())
    if unknown:
        note(f"{unknown} of {score.tokens.sum()} tokens are <unk>, with the probability that the model gives to it")


def _show(score: TextScore, samples: int | None, seed: int | None, precision: int | None, form: str) -> None:
    intervals = None
    if samples is not None:
        with ProgressBar("samples", unit="items") as progress:
            intervals = score.intervals(samples, DEFAULT_SEED if seed is None else seed, progress)
    if form == "json":
        sys.stdout.write(json_text(perplexity_document(score, intervals)))
    else:
        write_table(perplexity_table(score, intervals, precision))
