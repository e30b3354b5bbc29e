"""``geval calibration``: whether an output means what it says."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from geval_py.cli import evaluations
from geval_py.cli.evaluations import blaming_config, document_head, scored
from geval_py.cli.parsers import QuietParser
from geval_py.cli.settings import task_and_settings
from geval_py.errors import UsageError
from geval_py.explaining.calibration import calibration_of, calibration_schemes
from geval_py.reading.splits import locate
from geval_py.scoring.scores import evaluations_of
from geval_py.tables.escapes import json_text
from geval_py.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG = """\
examples:
  geval calibration -t dev-0           does out.tsv mean what it says?
  geval calibration -t dev-0 -o out-model=bigram.tsv --format json

Exit status: 0 fine, 1 the data is at fault, 2 the command line is at fault."""


def make_parser() -> QuietParser:
    """Make the parser of ``geval calibration``."""
    parser = QuietParser(
        prog="geval calibration",
        description="Tell whether an output means what it says: the loss that it claims against the one it gets,\n"
        "and the probabilities of all words, of the first guess and of the rest against what came true,\n"
        "each beside what honest probabilities would show.",
        epilog=_EPILOG,
        argument_default=argparse.SUPPRESS,
    )
    evaluations.add_options(parser)
    return parser.with_help()


def run(words: Sequence[str]) -> int:
    """Run the command; gives the exit status, raises GevalError."""
    understood = make_parser().understood(words)
    if understood is None:
        return 0
    given = vars(understood)
    form = given.pop("form")
    metrics = given.pop("metrics")
    task, settings = task_and_settings(given, metrics)
    with blaming_config(task):
        schemes = calibration_schemes(evaluations.hashed_metric(task))
        split = locate(task)
        if len(split.outputs) > 1:
            names = visible(", ".join(output.name for output in split.outputs))
            raise UsageError(message=f"there are several outputs ({names}): choose one with", arguments=("out",))
        (evaluation,) = evaluations_of(scored(task, split, schemes, settings, sign=form == "json"))
    found = calibration_of(evaluation)
    if form == "json":
        sys.stdout.write(json_text(document_head(task) | found.to_dict()))
    else:
        sys.stdout.writelines(found.text())
    return 0
