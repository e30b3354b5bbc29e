"""What ``geval calibration`` and ``geval luck`` have in common: which outputs, and one hashed metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geval_py.cli.parsers import add_fields
from geval_py.cli.settings import Settings, merged
from geval_py.explaining.calibration.profiles import hashed_scheme
from geval_py.reading.config import task_of
from geval_py.scoring.evaluate import select_schemes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from geval_py.cli.parsers import QuietParser
    from geval_py.reading.task import Task
    from geval_py.scoring.columns import Named

FORMATS = ("text", "json")
PLACES = (
    "test_name", "out_files", "out_directory", "expected_directory", "expected_file", "input_file", "in_header",
    "out_header",
)  # fmt: skip


def add_options(parser: QuietParser) -> None:
    """Add the options that both commands have."""
    add = parser.add_argument
    add_fields(parser, *PLACES)
    add(
        "-m",
        "--metric",
        dest="metrics",
        action="append",
        default=[],
        metavar="METRIC",
        help="the metric on hashed words, with its bits and flags (default: the challenge's first)",
    )
    add("-a", "--alt-metric", dest="metrics", action="append", metavar="METRIC", help="the same as --metric")
    add("--format", dest="form", choices=FORMATS, default="text", help="text (the default), or one JSON document")
    add_fields(parser, "threads")


def understood(given: Mapping[str, Any]) -> tuple[Task, Settings]:
    """Read config.txt and the command line as for scoring; metrics that are given replace the others."""
    given = dict(given)
    metrics = tuple(given.pop("metrics"))
    values = merged(given)
    settings = Settings(threads=values.get("threads"), ignored=values.get("ignored", ()))
    task = task_of(values)
    return (task.replace(alt_metrics=metrics, select_metrics=()) if metrics else task), settings


def hashed_metric(task: Task) -> Named:
    """Give the first metric on hashed words; raises UsageError where there is none, and SchemeError."""
    return hashed_scheme(select_schemes(task))
