"""Score word-gap prediction exactly as GEval does, fast, and learn why.

from geval_py import evaluate
print(evaluate("my-challenge", "dev-0").score)
"""

from geval_py.analysis.interval import Interval
from geval_py.challenge import Challenge
from geval_py.compare import Comparison, compare
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
from geval_py.evaluate import evaluate
from geval_py.evaluation import Evaluation, Score
from geval_py.metrics.hashed import hashed_log_losses
from geval_py.version import __version__
from geval_py.wordprobs import format_line

__all__ = [
    "AmbiguousFileError",
    "Challenge",
    "Comparison",
    "ConfigError",
    "CorruptFileError",
    "DataError",
    "EmptyFileError",
    "Evaluation",
    "GevalError",
    "Interval",
    "LineCountError",
    "MalformedLineError",
    "MissingFileError",
    "SchemeError",
    "Score",
    "TooLargeError",
    "UnreadableFileError",
    "UsageError",
    "__version__",
    "compare",
    "evaluate",
    "format_line",
    "hashed_log_losses",
]
