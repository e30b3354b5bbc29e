"""The table METRICS. Metrics of word gaps stand here, others in ``near_tasks`` and ``texts`` of this folder.

The tables of the others, and columns that few metrics need, are imported when they are asked for.
"""

from __future__ import annotations

import re

from geval_py.errors import SchemeError
from geval_py.reading.schemes import DEFAULT_BITS, LEAST_BITS, MOST_BITS
from geval_py.scoring.metrics import base
from geval_py.scoring.metrics.base import Metric
from geval_py.text import nearest, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from geval_py.reading.preparation import Preparation
    from geval_py.tables.table import Table

    METRICS: Metrics


class Metrics(dict[str, Metric]):
    """All metrics by their names, which show themselves as a table."""

    def table(self) -> Table:
        """Return a table with a row a metric."""
        from geval_py.tables.table import Column, Table

        columns = [Column(name=name) for name in ("unit", "direction", "what it is")]
        measures = ((metric, metric.measure) for metric in self.values())
        return Table(
            [Column(name="metric", cut="never"), *columns],
            [(metric.name, of.unit, f"{of.direction} is better", metric.summary) for metric, of in measures],
            may_go=["what it is", "unit", "direction"],
        )

    def __repr__(self) -> str:
        return "".join(self.table().text()).rstrip("\n")

    def _repr_html_(self) -> str:
        return "".join(self.table().html())


_HASHED_NAME = r"([A-Za-z]+Hashed)([0-9]+)"


def _words(setting: base.Setting) -> base.Column:
    from geval_py.scoring.metrics.exact import WordColumn

    return WordColumn.of(setting)


def _classes(setting: base.Setting) -> base.Column:
    from geval_py.scoring.metrics.exact import BinaryColumn

    return BinaryColumn.of(setting)


def _misses(setting: base.Setting) -> base.Column:
    from geval_py.scoring.metrics.exact import MissColumn

    return MissColumn.of(setting)


def _number(text: str, line: int) -> float:
    from geval_py.scoring.metrics.columns import number_of

    return number_of(text, line)


_OF_WORDS = "the same, on exact words and a vocabulary"
_OF_WORDS_OR_CLASSES = f"{_OF_WORDS}; or of a class"
_METRICS = (
    Metric(name="LikelihoodHashed", make_column=base.HashedColumn.of, measure=base.LIKELIHOOD,
           summary="geometric mean of the probabilities", bits=DEFAULT_BITS),
    Metric(name="LogLossHashed", make_column=base.HashedColumn.of, measure=base.LOG_LOSS,
           summary="mean loss of a word", bits=DEFAULT_BITS),
    Metric(name="PerplexityHashed", make_column=base.HashedColumn.of, measure=base.PERPLEXITY,
           summary="inverse of the likelihood", bits=DEFAULT_BITS),
    Metric(name="CrossEntropyHashed", make_column=base.HashedColumn.of, measure=base.CROSS_ENTROPY,
           summary="mean loss of a word", bits=DEFAULT_BITS),
    Metric(name="Likelihood", make_column=_words, measure=base.LIKELIHOOD,
           summary=_OF_WORDS_OR_CLASSES, needs_vocabulary=True),
    Metric(name="LogLoss", make_column=_words, measure=base.LOG_LOSS,
           summary=_OF_WORDS_OR_CLASSES, needs_vocabulary=True),
    Metric(name="Perplexity", make_column=_words, measure=base.PERPLEXITY, summary=_OF_WORDS, needs_vocabulary=True),
    Metric(name="CrossEntropy", make_column=_words, measure=base.CROSS_ENTROPY,
           summary=_OF_WORDS, needs_vocabulary=True),
    Metric(name="MacroAvg/Likelihood", make_column=_classes, measure=base.LIKELIHOOD, is_of_words=False,
           parse=_number, summary="mean of the likelihoods of the expected classes"),
    Metric(name="Accuracy", make_column=_misses, measure=base.ACCURACY, is_of_words=False, labels="one",
           summary="share of lines whose best guess is right"),
)  # fmt: skip
_WORD_GAPS = {metric.name: metric for metric in _METRICS}


def __getattr__(name: str) -> Any:
    """Import the metrics of other tasks once METRICS is asked for."""
    if name != "METRICS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from geval_py.scoring.metrics.near_tasks import NEAR_METRICS
    from geval_py.scoring.metrics.texts import TEXT_METRICS

    return globals().setdefault("METRICS", Metrics(_WORD_GAPS | NEAR_METRICS | TEXT_METRICS))


def find_metric(name: str) -> Metric:
    """Return the metric of a name, which may end in a number: of bits, the β of an F-score, … Raises SchemeError.

    >>> find_metric("LogLossHashed8").bits
    8
    """
    stem, bits = split_bits(name)
    metric = _WORD_GAPS.get(stem)
    if metric is None:
        return _find_other(name)
    if metric.bits is None:
        return metric
    if not LEAST_BITS <= bits <= MOST_BITS:
        raise SchemeError(
            scheme=name,
            message=f"Unknown or broken metric definition: {visible(name)}\n"
            f"  the number of bits is from {LEAST_BITS} to {MOST_BITS}",
        )
    return metric if bits == metric.bits else metric.replace(name=f"{stem}{bits}", bits=bits)


def _find_other(name: str) -> Metric:
    from geval_py.scoring.metrics import METRICS
    from geval_py.scoring.metrics.near_tasks import find_near
    from geval_py.scoring.metrics.texts import find_numbered, find_prefixed

    metric = METRICS.get(name) or find_numbered(name) or find_prefixed(name) or find_near(name)
    if metric is not None:
        return metric
    misapplied = _misapplied(name)
    if misapplied is not None:
        raise SchemeError(scheme=name, message=misapplied)
    close = nearest(split_bits(name)[0], METRICS)
    advice = f"did you mean {close}?" if close else "geval --list-metrics shows those that are known"
    raise SchemeError(scheme=name, message=f"Unknown or broken metric definition: {visible(name)}\n  {advice}")


_MATCHED = r"Accuracy|MultiLabel-F[0-9.e-]+"
_MEANS = {  # for which metrics GEval has a mean, and what it says of others
    "Mean": (
        r"MultiLabel-F.*|WER|CER|WAR|CAR",
        "Mean/ meta-metric defined only for MultiLabel-F1, WER, CER, WAR and CAR for the time being\n"
        "  it is the mean of the scores of single lines",
    ),
    "MacroAvg": (
        r"Likelihood|Accuracy|F[0-9.e-]+|RMSE|MSE|MAE|SMAPE",
        "MacroAvg/ meta-metric defined only for Likelihood, Accuracy, FMeasure, RMSE, MSE, MAE, SMAPE\n"
        "  it is the mean of the scores of each expected class",
    ),
}


def _misapplied(name: str) -> str | None:
    """Return GEval's sentence about a prefix before a metric that it is not for; None for another name."""
    from geval_py.scoring.metrics import METRICS
    from geval_py.scoring.metrics.matching import MATCHINGS
    from geval_py.scoring.metrics.texts import find_numbered, geval_name

    *prefixes, inner = name.split("/")
    if not {*prefixes} <= MATCHINGS.keys() | _MEANS or not (split_bits(inner)[0] in METRICS or find_numbered(inner)):
        return None
    metric = geval_name(inner)
    matched = re.fullmatch(_MATCHED, metric) is not None
    for prefix in reversed(prefixes):
        if prefix in MATCHINGS and not matched:
            return (
                f"Matching specification cannot be applied to the {metric} metric\n"
                f"  {prefix}/ says how the answers of Accuracy and MultiLabel-F1 are compared"
            )
        matched = matched and prefix in MATCHINGS
        metric = f"{prefix}/{metric}"
    of, sentence = _MEANS.get(prefixes[0], (".*", "")) if prefixes else (".*", "")
    is_of_mean = any(prefix in _MEANS for prefix in prefixes[1:])
    return sentence if sentence and (is_of_mean or not re.fullmatch(of, geval_name(inner))) else None


def split_bits(name: str) -> tuple[str, int]:
    """Split a metric's name into the name without bits, and the bits (10 where none are given).

    >>> split_bits("LikelihoodHashed8")
    ('LikelihoodHashed', 8)
    """
    match = re.fullmatch(_HASHED_NAME, name) if name[-1:].isdecimal() else None
    if match is None:
        return name, DEFAULT_BITS
    return match[1], int(match[2].lstrip("0")[:9] or "0")  # nine digits are far too many bits already


def column_of(metric: Metric, vocabulary: frozenset[str], preparation: Preparation | None = None) -> base.Column:
    """Return the column of statistics that a metric is made from, of prepared lines if there is a preparation.

    ``vocabulary`` is for the metrics that need one; it is prepared as the lines are.
    """
    if preparation is None:
        return metric.make_column(base.Setting(bits=metric.bits, vocabulary=vocabulary))
    from geval_py.scoring.metrics.columns import PreparedColumn

    prepared = frozenset(map(preparation, vocabulary))
    return PreparedColumn(metric.make_column(base.Setting(bits=metric.bits, vocabulary=prepared)), preparation)
