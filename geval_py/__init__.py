"""Score word-gap prediction exactly as GEval does, fast, and learn why.

from geval_py import evaluate
print(evaluate("my-challenge", "dev-0").score)
"""

from typing import TYPE_CHECKING

from geval_py.challenge import Challenge
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
from geval_py.evaluation import Evaluation
from geval_py.metrics.hashed import hashed_log_losses
from geval_py.score import Score
from geval_py.version import __version__
from geval_py.wordprobs import format_line

if TYPE_CHECKING:
    from geval_py.analysis.interval import Interval
    from geval_py.comparison import Comparison, compare

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

# What scoring does not need is imported when it is asked for.
_LATER = {
    "Comparison": "geval_py.comparison",
    "Interval": "geval_py.analysis.interval",
    "compare": "geval_py.comparison",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
