"""Score word-gap prediction exactly as GEval does, fast, and learn why.

from geval_py import evaluate
print(evaluate("my-challenge", "dev-0").score)
"""

from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py import plots
    from geval_py.checking.check import check_submission
    from geval_py.errors import (
        AmbiguousFileError,
        ClusterError,
        ConfigError,
        CorruptFileError,
        DataError,
        EmptyFileError,
        ExistingFileError,
        GevalError,
        LineCountError,
        MalformedLineError,
        MissingFileError,
        ModelError,
        PartsError,
        SchemeError,
        TooLargeError,
        UnreadableFileError,
        UsageError,
    )
    from geval_py.evaluation import Evaluation
    from geval_py.explaining.calibration import Calibration, calibration
    from geval_py.explaining.comparison import Comparison, compare
    from geval_py.explaining.luck import Luck, luck
    from geval_py.explaining.mixing import Mixture, mix
    from geval_py.explaining.significance import Interval
    from geval_py.explaining.tuning import Tuning, tune
    from geval_py.modelling.baselines import WordModel, predict
    from geval_py.reading.challenge import Challenge, DataSet
    from geval_py.reading.items import Item
    from geval_py.reading.outputs import Output, read_output
    from geval_py.reading.wordprobs import Distribution, WordProbs, parse_line
    from geval_py.reading.writing import format_line, write_output
    from geval_py.scoring.evaluate import evaluate, evaluate_all
    from geval_py.scoring.metrics import METRICS, Metric
    from geval_py.scoring.metrics.hashed import hashed_log_losses
    from geval_py.scoring.scores import Score

__all__ = [
    "METRICS",
    "AmbiguousFileError",
    "Calibration",
    "Challenge",
    "ClusterError",
    "Comparison",
    "ConfigError",
    "CorruptFileError",
    "DataError",
    "DataSet",
    "Distribution",
    "EmptyFileError",
    "Evaluation",
    "ExistingFileError",
    "GevalError",
    "Interval",
    "Item",
    "LineCountError",
    "Luck",
    "MalformedLineError",
    "Metric",
    "MissingFileError",
    "Mixture",
    "ModelError",
    "Output",
    "PartsError",
    "SchemeError",
    "Score",
    "TooLargeError",
    "Tuning",
    "UnreadableFileError",
    "UsageError",
    "WordModel",
    "WordProbs",
    "__version__",
    "calibration",
    "check_submission",
    "compare",
    "evaluate",
    "evaluate_all",
    "format_line",
    "hashed_log_losses",
    "luck",
    "mix",
    "parse_line",
    "plots",
    "predict",
    "read_output",
    "tune",
    "write_output",
]

# Where each name is: it is imported when it is asked for, so that whoever needs little starts fast.
_HOMES = {
    "Calibration": "explaining.calibration.calibration",
    "Challenge": "reading.challenge",
    "Comparison": "explaining.comparison",
    "DataSet": "reading.dataset",
    "Distribution": "reading.distribution",
    "Evaluation": "scoring.evaluation",
    "Interval": "explaining.statistics.interval",
    "Item": "reading.items",
    "Luck": "explaining.calibration.luck",
    "METRICS": "scoring.metrics",
    "Metric": "scoring.metrics",
    "Mixture": "explaining.tuning.mixing",
    "Output": "reading.outputs",
    "Score": "scoring.score",
    "Tuning": "explaining.tuning.tune",
    "WordModel": "modelling.baselines",
    "WordProbs": "reading.wordprobs",
    "calibration": "explaining.calibration.calibration",
    "check_submission": "checking.run",
    "compare": "explaining.comparison",
    "evaluate": "scoring.evaluate",
    "evaluate_all": "scoring.evaluate",
    "format_line": "reading.writing",
    "hashed_log_losses": "scoring.metrics.hashed",
    "luck": "explaining.calibration.luck",
    "mix": "explaining.tuning.mixing",
    "parse_line": "reading.wordprobs",
    "predict": "modelling.baselines",
    "read_output": "reading.outputs",
    "tune": "explaining.tuning.tune",
    "write_output": "reading.writing",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "plots":  # a module, which is found by its own name
        return import_module("geval_py.plots")
    value = getattr(import_module(f"geval_py.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
