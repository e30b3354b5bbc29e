"""``geval luck``: what hashing gave scores."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from geval_py.cli import evaluations
from geval_py.cli.evaluations import blaming_config, document_head, scored
from geval_py.cli.parsers import QuietParser, add_fields, number_type
from geval_py.cli.settings import task_and_settings
from geval_py.explaining.luck import DEFAULT_SEEDS, Lucks, check_seeds, luck_of, luck_schemes
from geval_py.reading.splits import locate, read_vocabulary
from geval_py.scoring.scores import ScoredOutput
from geval_py.tables.escapes import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG = """\
examples:
  geval luck -t dev-0                  all outputs of dev-0
  geval luck -t dev-0 -o out.tsv --seeds 100
  geval luck -t dev-0 --seeds 0        by formula alone, at once

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval luck``."""
    parser = QuietParser(
        prog="geval luck",
        description="Tell what hashing gave scores: those that other seeds of the hash would give, and how far this\n"
        "one is from them; and the perplexity without hashing, where there is a vocabulary.",
        epilog=_EPILOG,
        argument_default=argparse.SUPPRESS,
    )
    evaluations.add_options(parser)
    add_fields(parser, "vocabulary")
    parser.add_argument(
        "--seeds",
        type=number_type,
        default=DEFAULT_SEEDS,
        metavar="N",
        help=f"how many other seeds to score with, 0 for none (default: {DEFAULT_SEEDS})",
    )
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    form, seeds = given.pop("form"), given.pop("seeds")
    check_seeds(seeds)
    metrics = given.pop("metrics")
    task, settings = task_and_settings(given, metrics)
    vocabulary = read_vocabulary(task)
    with blaming_config(task):
        schemes = luck_schemes(evaluations.hashed_metric(task), seeds, exact=bool(vocabulary))
        results = scored(task, locate(task), schemes, settings, sign=form == "json")
    found = (luck_of(result, seeds, len(vocabulary)) for result in results if isinstance(result, ScoredOutput))
    lucks = Lucks(tuple(found))
    if form == "json":
        sys.stdout.write(json_text(document_head(task) | lucks.to_dict()))
    elif lucks.outputs:
        sys.stdout.writelines(lucks.text())
    return 0 if len(lucks.outputs) == len(results) else 1
