"""The metrics, in one table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from geval_py.errors import SchemeError
from geval_py.reading.distribution import DEFAULT_BITS, LEAST_BITS, MOST_BITS
from geval_py.scoring.metrics.base import (
    ACCURACY,
    CROSS_ENTROPY,
    LIKELIHOOD,
    LOG_LOSS,
    NOISE,
    PERPLEXITY,
    Column,
    LineLosses,
    Metric,
)
from geval_py.scoring.metrics.binary import BinaryColumn
from geval_py.scoring.metrics.exact import MissColumn, WordColumn
from geval_py.scoring.metrics.hashed import HashedColumn, split_bits
from geval_py.text import nearest, visible

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation

__all__ = ["METRICS", "NOISE", "Column", "LineLosses", "Metric", "column_of", "find_metric"]

_METRICS = (
    Metric("LikelihoodHashed", "hashed", LIKELIHOOD, "geometric mean of the probabilities", DEFAULT_BITS),
    Metric("LogLossHashed", "hashed", LOG_LOSS, "mean loss of a word", DEFAULT_BITS),
    Metric("PerplexityHashed", "hashed", PERPLEXITY, "inverse of the likelihood", DEFAULT_BITS),
    Metric("CrossEntropyHashed", "hashed", CROSS_ENTROPY, "mean loss of a word", DEFAULT_BITS),
    Metric("Likelihood", "exact", LIKELIHOOD, "the same, on exact words and a vocabulary; or of a class"),
    Metric("LogLoss", "exact", LOG_LOSS, "the same, on exact words and a vocabulary; or of a class"),
    Metric("Perplexity", "exact", PERPLEXITY, "the same, on exact words and a vocabulary"),
    Metric("CrossEntropy", "exact", CROSS_ENTROPY, "the same, on exact words and a vocabulary"),
    Metric("MacroAvg/Likelihood", "binary", LIKELIHOOD, "mean of the likelihoods of classes 0 and 1"),
    Metric("Accuracy", "misses", ACCURACY, "share of lines whose best guess is right"),
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
    if metric.kind != "hashed":
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
    """Give the column of losses that a metric is made from, of lines that are prepared first or left as they are.

    ``vocabulary`` is for exact words only; it is prepared as the lines are.
    """
    if preparation is None:
        return _column_of_lines(metric, vocabulary)
    from geval_py.scoring.metrics.prepared import PreparedColumn

    return PreparedColumn(_column_of_lines(metric, frozenset(map(preparation, vocabulary))), preparation)


def _column_of_lines(metric: Metric, vocabulary: frozenset[str]) -> Column:
    match metric.kind:
        case "hashed":
            return HashedColumn(metric.bits or DEFAULT_BITS)
        case "exact":
            return WordColumn(vocabulary)
        case "binary":
            return BinaryColumn()
        case "misses":
            return MissColumn()
