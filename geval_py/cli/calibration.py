"""``geval calibration``: whether the probabilities of an output are calibrated."""

from __future__ import annotations

import argparse

from geval_py.cli import score, terminal
from geval_py.cli.commands import DOCUMENTS, OF_HASHED_METRICS, command
from geval_py.explaining import calibration
from geval_py.reading import config
from geval_py.reading.outputs import only_output
from geval_py.reading.splits import locate
from geval_py.scoring import evaluate


@command(
    "calibration",
    """\
Show whether an output is calibrated: the perplexity that it expects beside the one that it gets, and
the probabilities of all words, of the first guess and of the rest beside how often they were right,
each with the range of calibrated outputs.""",
    """\
  geval calibration -t dev-0           is out.tsv calibrated?
  geval calibration -t dev-0 -o out-model=bigram.tsv --format json
""",
    *OF_HASHED_METRICS,
    DOCUMENTS,
)
def run_calibration(args: argparse.Namespace) -> None:
    """Run the command; raises GevalError."""
    task, settings = config.task_and_settings(args)
    with score.blaming_config(task):
        schemes = calibration.calibration_schemes(evaluate.select_schemes(task))
        split = locate(task)
        only_output(split.outputs)
        (evaluation,) = score.scored(task, split, schemes, settings, keep=True, strict=True)
    result = calibration.calibration_of(evaluation, documents=settings.documents_by)
    terminal.note(*result.notes)
    score.show_of_task(task, result, settings)
