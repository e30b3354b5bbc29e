"""Score word-gap prediction exactly as GEval does, fast, and learn why.

from geval_py import evaluate
print(evaluate("my-challenge", "dev-0").score)
"""

from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.checking.run import check_submission
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
    from geval_py.explaining.comparison import Comparison, compare
    from geval_py.explaining.statistics.interval import Interval
    from geval_py.reading.challenge import Challenge
    from geval_py.reading.wordprobs import format_line
    from geval_py.scoring.evaluate import evaluate, evaluate_all
    from geval_py.scoring.evaluation import Evaluation
    from geval_py.scoring.metrics.hashed import hashed_log_losses
    from geval_py.scoring.score import Score

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
    "check_submission",
    "compare",
    "evaluate",
    "evaluate_all",
    "format_line",
    "hashed_log_losses",
]

# Where each name is: it is imported when it is asked for, so that whoever needs little starts fast.
_HOMES = {
    "Challenge": "reading.challenge",
    "Comparison": "explaining.comparison",
    "Evaluation": "scoring.evaluation",
    "Interval": "explaining.statistics.interval",
    "Score": "scoring.score",
    "check_submission": "checking.run",
    "compare": "explaining.comparison",
    "evaluate": "scoring.evaluate",
    "evaluate_all": "scoring.evaluate",
    "format_line": "reading.wordprobs",
    "hashed_log_losses": "scoring.metrics.hashed",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"geval_py.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
