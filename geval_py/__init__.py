"""Score word-gap prediction exactly as GEval does, fast, and learn why.

from geval_py import evaluate
print(evaluate("my-challenge", "dev-0").score)
"""

from typing import TYPE_CHECKING

from geval_py.errors import (
    AmbiguousFileError,
    ConfigError,
    CorruptFileError,
    DataError,
    EmptyFileError,
    GevalError,
    LineCountError,
    MalformedLineError,
    MissingFileError,
    SchemeError,
    TooLargeError,
    UnreadableFileError,
    UsageError,
)
from geval_py.reading.challenge import Challenge
from geval_py.reading.dataset import DataSet
from geval_py.reading.distribution import Distribution
from geval_py.reading.items import Item
from geval_py.reading.outputs import Output, read_output
from geval_py.reading.wordprobs import WordProbs, parse_line
from geval_py.scoring.evaluate import evaluate
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.metrics import METRICS, Metric
from geval_py.scoring.metrics.hashed import hashed_log_losses
from geval_py.scoring.score import Score
from geval_py.version import __version__

if TYPE_CHECKING:
    from geval_py.explaining.comparison import Comparison, compare
    from geval_py.explaining.statistics.interval import Interval
    from geval_py.reading.writing import format_line, write_output

__all__ = [
    "METRICS",
    "AmbiguousFileError",
    "Challenge",
    "Comparison",
    "ConfigError",
    "CorruptFileError",
    "DataError",
    "DataSet",
    "Distribution",
    "EmptyFileError",
    "Evaluation",
    "GevalError",
    "Interval",
    "Item",
    "LineCountError",
    "MalformedLineError",
    "Metric",
    "MissingFileError",
    "Output",
    "SchemeError",
    "Score",
    "TooLargeError",
    "UnreadableFileError",
    "UsageError",
    "WordProbs",
    "__version__",
    "compare",
    "evaluate",
    "format_line",
    "hashed_log_losses",
    "parse_line",
    "read_output",
    "write_output",
]

# What scoring does not need is imported when it is asked for.
_LATER = {
    "Comparison": "geval_py.explaining.comparison",
    "Interval": "geval_py.explaining.statistics.interval",
    "compare": "geval_py.explaining.comparison",
    "format_line": "geval_py.reading.writing",
    "write_output": "geval_py.reading.writing",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
