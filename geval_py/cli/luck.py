"""``geval luck``: how much hash collisions changed scores."""

from __future__ import annotations

import argparse

from geval_py.cli import score
from geval_py.cli.commands import OF_HASHED_METRICS, command, number_option, table_options
from geval_py.explaining import luck
from geval_py.reading import config
from geval_py.reading.outputs import short_names
from geval_py.reading.splits import locate
from geval_py.scoring import evaluate
from geval_py.scoring.score_tables import shown_names


@command(
    "luck",
    """\
Show how much hash collisions changed scores: the scores that other seeds of the hash would give, and how
far this one is from them.""",
    """\
  geval luck -t dev-0                  all outputs of dev-0
  geval luck -t dev-0 -o out.tsv --seeds 100
""",
    *OF_HASHED_METRICS,
    table_options("names"),
    number_option(
        "--seeds", default=luck.DEFAULT_SEEDS,
        help=f"how many other seeds to score with (default: {luck.DEFAULT_SEEDS})",
    ),
)  # fmt: skip
def run_luck(args: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    task, settings = config.task_and_settings(args)
    with score.blaming_config(task):
        schemes = luck.luck_schemes(evaluate.select_schemes(task), args.seeds)
        results = score.scored(task, locate(task), schemes, settings)
    shown = shown_names(results, dict(settings.names)) or short_names([result.output for result in results])
    pairs = [(luck.luck_of(result), name) for result, name in zip(results, shown, strict=True) if not result.errors]
    report = luck.HashCollisionReport(tuple(output for output, _ in pairs), tuple(name for _, name in pairs))
    if report.outputs or settings.format == "json":
        score.show_of_task(task, report, settings)
    return 0 if len(report.outputs) == len(results) else 1
