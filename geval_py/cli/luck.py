"""``geval luck``: how much hash collisions changed scores."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from geval_py.cli.options import task_and_settings
from geval_py.cli.parsers import QuietParser, add_fields, add_hashed_options, command_parser, number_type
from geval_py.cli.score import blaming_config, scored, show_of_task
from geval_py.explaining.luck import DEFAULT_SEEDS, Lucks, check_seeds, luck_of, luck_schemes
from geval_py.explaining.reliability import hashed_scheme
from geval_py.reading.splits import locate, read_vocabulary
from geval_py.scoring.evaluate import select_schemes
from geval_py.scoring.scores import ScoredOutput
from geval_py.tables.formats import FOR_PEOPLE

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Show how much hash collisions changed scores: the scores that other seeds of the hash would give, and how
far this one is from them; and the perplexity without hashing, where there is a vocabulary."""
EXAMPLES = """\
  geval luck -t dev-0                  all outputs of dev-0
  geval luck -t dev-0 -o out.tsv --seeds 100
  geval luck -t dev-0 --seeds 0        by formula alone, at once
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval luck``."""
    parser = command_parser("luck", DESCRIPTION, EXAMPLES, argument_default=argparse.SUPPRESS)
    add_hashed_options(parser)
    add_fields(parser, "vocabulary")
    seeds = f"how many other seeds to score with, 0 for none (default: {DEFAULT_SEEDS})"
    parser.add_argument("--seeds", type=number_type, default=DEFAULT_SEEDS, metavar="N", help=seeds)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    seeds, metrics = given.pop("seeds"), given.pop("metrics")
    check_seeds(seeds)
    task, settings = task_and_settings(given, metrics)
    vocabulary = read_vocabulary(task)
    with blaming_config(task):
        schemes = luck_schemes(hashed_scheme(select_schemes(task)), seeds, exact=bool(vocabulary))
        results = scored(task, locate(task), schemes, settings, sign=settings.format not in FOR_PEOPLE)
    found = (luck_of(result, seeds, len(vocabulary)) for result in results if isinstance(result, ScoredOutput))
    lucks = Lucks(tuple(found))
    if lucks.outputs or settings.format == "json":
        show_of_task(task, lucks, settings.format)
    return 0 if len(lucks.outputs) == len(results) else 1
