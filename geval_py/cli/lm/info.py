"""``geval lm info``: what is in a model."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from geval_py.cli.parsers import QuietParser
from geval_py.cli.terminal import write_listing
from geval_py.errors import UsageError
from geval_py.modelling.arpa import read_arpa
from geval_py.modelling.ngram_model import model_document, model_table
from geval_py.tables.escapes import json_text

FORMATS = ("text", "json")
_EPILOG = """\
examples:
  geval lm info text.arpa

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval lm info``."""
    parser = QuietParser(
        prog="geval lm info",
        description="Show the order of a model, how many n-grams it has, and its vocabulary; read strictly.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", nargs="?", metavar="FILE", help="a model: an ARPA file, maybe compressed")
    parser.add_argument("--format", choices=FORMATS, default="text", help="text (the default), or one JSON document")
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    given = make_parser().understood(words)
    if given is None:
        return 0
    if given.model is None:
        raise UsageError(message="a model is missing\n  for example geval lm info text.arpa")
    model = read_arpa(given.model)
    if given.format == "json":
        sys.stdout.write(json_text(model_document(model)))
    else:
        write_listing(model_table(model))
    return 0
