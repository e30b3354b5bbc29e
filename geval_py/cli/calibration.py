"""``geval calibration``: whether an output means what it says."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from geval_py.cli.options import task_and_settings
from geval_py.cli.parsers import QuietParser, add_hashed_options, command_parser
from geval_py.cli.score import blaming_config, scored, show_of_task
from geval_py.explaining.calibration import calibration_of, calibration_schemes
from geval_py.explaining.reliability import hashed_scheme
from geval_py.reading.splits import locate, only_output
from geval_py.scoring.evaluate import select_schemes
from geval_py.scoring.scores import evaluations_of
from geval_py.tables.formats import FOR_PEOPLE

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Show whether an output means what it says: the loss that it claims against the one it gets,
and the probabilities of all words, of the first guess and of the rest against what came true,
each beside what honest probabilities would show."""
EXAMPLES = """\
  geval calibration -t dev-0           does out.tsv mean what it says?
  geval calibration -t dev-0 -o out-model=bigram.tsv --format json
"""


def make_parser() -> QuietParser:
    """Make the parser of ``geval calibration``."""
    parser = command_parser("calibration", DESCRIPTION, EXAMPLES, argument_default=argparse.SUPPRESS)
    add_hashed_options(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    metrics = given.pop("metrics")
    task, settings = task_and_settings(given, metrics)
    with blaming_config(task):
        schemes = calibration_schemes(hashed_scheme(select_schemes(task)))
        split = locate(task)
        only_output(split.outputs)
        sign = settings.format not in FOR_PEOPLE
        (evaluation,) = evaluations_of(scored(task, split, schemes, settings, sign=sign))
    found = calibration_of(evaluation)
    show_of_task(task, found, settings.format)
    return 0
