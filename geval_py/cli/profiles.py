"""What ``geval calibration`` and ``geval luck`` have in common: which outputs, and one hashed metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.cli.parsers import add_fields, add_metrics
from geval_py.explaining.calibration.profiles import hashed_scheme
from geval_py.scoring.wanted import select_schemes

if TYPE_CHECKING:
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
    add_metrics(parser, "the metric on hashed words, with its bits and flags")
    add("--format", dest="form", choices=FORMATS, default="text", help="text (the default), or one JSON document")
    add_fields(parser, "threads")


def hashed_metric(task: Task) -> Named:
    """Give the first metric on hashed words; raises UsageError where there is none, and SchemeError."""
    return hashed_scheme(select_schemes(task))
