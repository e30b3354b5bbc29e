"""Read an output for what its lines' distributions say, in one pass, with its hashed metric's flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.errors import UsageError
from geval_py.reading.sources import can_be_reread
from geval_py.scoring.evaluate import evaluate_output
from geval_py.scoring.evaluation import Evaluation, checked_evaluation
from geval_py.scoring.metrics.profile import ProfileStatistics, is_hashed, profiled
from geval_py.text import named, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geval_py.scoring.columns import Named


def hashed_scheme(schemes: Sequence[Named]) -> Named:
    """Give the first metric on hashed words; raises UsageError where there is none."""
    for scheme, metric in schemes:
        if is_hashed(metric):
            return scheme, metric
    names = ", ".join(scheme.text for scheme, _ in schemes)
    raise UsageError(
        message=f"this is of hashed words, and {visible(names)} is not: choose a metric such as PerplexityHashed"
    )


def profile_scheme(named: Named, draws: int = 0) -> Named:
    """Give a hashed metric whose statistics are profiles."""
    scheme, metric = named
    return scheme, profiled(metric, draws)


def reread(
    evaluation: Evaluation, schemes: Sequence[Named], vocabulary: frozenset[str] = frozenset(), *, sign: bool = False
) -> Evaluation:
    """Score an evaluation's output again, with other metrics; raises UsageError for what can be read only once."""
    if not can_be_reread(evaluation.output.path):
        raise UsageError(message=f"{named(evaluation.output.path)} would have to be read again: write it to a file")
    return evaluate_output(evaluation.split, evaluation.output, schemes, vocabulary, sign=sign)


def schemes_of(evaluation: Evaluation) -> list[Named]:
    """Give the metrics of an evaluation; raises UsageError for what is none, such as a path."""
    return [(score.scheme, score.metric) for score in checked_evaluation(evaluation).scores]


def profile_of(evaluation: Evaluation) -> ProfileStatistics:
    """Give the profile that an evaluation's first metric, one of :func:`profile_scheme`, is made from."""
    statistics = evaluation.scores[0].statistics
    if not isinstance(statistics, ProfileStatistics):
        raise TypeError("the first metric has no profile")
    return statistics
