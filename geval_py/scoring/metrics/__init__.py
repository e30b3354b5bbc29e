"""The metrics, in one table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from geval_py.errors import SchemeError
from geval_py.scoring.metrics.base import (
    ACCURACY,
    CROSS_ENTROPY,
    LIKELIHOOD,
    LOG_LOSS,
    NOISE,
    PERPLEXITY,
    Column,
    LineStatistics,
    Metric,
    Setting,
)
from geval_py.scoring.metrics.binary import BinaryColumn
from geval_py.scoring.metrics.exact import MissColumn, WordColumn
from geval_py.scoring.metrics.hashed import DEFAULT_BITS, LEAST_BITS, MOST_BITS, HashedColumn, split_bits
from geval_py.text import nearest, visible

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation

__all__ = ["METRICS", "NOISE", "Column", "LineStatistics", "Metric", "column_of", "find_metric"]

_OF_WORDS = "the same, on exact words and a vocabulary"
_OF_WORDS_OR_CLASSES = f"{_OF_WORDS}; or of a class"
_METRICS = (
    Metric("LikelihoodHashed", HashedColumn.of, LIKELIHOOD, "geometric mean of the probabilities", DEFAULT_BITS),
    Metric("LogLossHashed", HashedColumn.of, LOG_LOSS, "mean loss of a word", DEFAULT_BITS),
    Metric("PerplexityHashed", HashedColumn.of, PERPLEXITY, "inverse of the likelihood", DEFAULT_BITS),
    Metric("CrossEntropyHashed", HashedColumn.of, CROSS_ENTROPY, "mean loss of a word", DEFAULT_BITS),
    Metric("Likelihood", WordColumn.of, LIKELIHOOD, _OF_WORDS_OR_CLASSES, needs_vocabulary=True),
    Metric("LogLoss", WordColumn.of, LOG_LOSS, _OF_WORDS_OR_CLASSES, needs_vocabulary=True),
    Metric("Perplexity", WordColumn.of, PERPLEXITY, _OF_WORDS, needs_vocabulary=True),
    Metric("CrossEntropy", WordColumn.of, CROSS_ENTROPY, _OF_WORDS, needs_vocabulary=True),
    Metric("MacroAvg/Likelihood", BinaryColumn.of, LIKELIHOOD, "mean of the likelihoods of the expected classes"),
    Metric("Accuracy", MissColumn.of, ACCURACY, "share of lines whose best guess is right"),
)
METRICS = {metric.name: metric for metric in _METRICS}


def find_metric(name: str) -> Metric:
    """Find a metric by its name, with its number of bits if it is a hashed one.

    Raises SchemeError.

    >>> find_metric("LogLossHashed8").bits
    8
    """
    base, bits = split_bits(name)
    metric = METRICS.get(base)
    if metric is None:
        raise SchemeError(scheme=name, message=_unknown(name))
    if metric.bits is None:
        return metric
    if not LEAST_BITS <= bits <= MOST_BITS:
        raise SchemeError(
            scheme=name,
            message=f"Unknown or broken metric definition: {visible(name)}\n"
            f"  the number of bits is from {LEAST_BITS} to {MOST_BITS}",
        )
    return replace(metric, name=base if bits == DEFAULT_BITS else f"{base}{bits}", bits=bits)


def _unknown(name: str) -> str:
    close = nearest(split_bits(name)[0], METRICS)
    advice = f"did you mean {close}?" if close else "geval --list-metrics shows those that are known"
    return f"Unknown or broken metric definition: {visible(name)}\n  {advice}"


def column_of(metric: Metric, vocabulary: frozenset[str], preparation: Preparation | None = None) -> Column:
    """Give the column of statistics that a metric is made from, of lines that are prepared first or left as they are.

    ``vocabulary`` is for the metrics that need one; it is prepared as the lines are.
    """
    if preparation is None:
        return metric.make_column(Setting(metric.bits, vocabulary))
    from geval_py.scoring.metrics.prepared import PreparedColumn

    prepared = frozenset(map(preparation, vocabulary))
    return PreparedColumn(metric.make_column(Setting(metric.bits, prepared)), preparation)
