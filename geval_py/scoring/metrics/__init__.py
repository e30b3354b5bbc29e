"""The table METRICS, and the metrics on hashed words; the others are in ``registry``, imported when needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from geval_py.errors import MissingPackageError, SchemeError
from geval_py.reading.schemes import MAX_BITS, MIN_BITS
from geval_py.scoring.metrics import base
from geval_py.scoring.metrics.base import Metric
from geval_py.text import nearest, visible
from geval_py.version import installs

if TYPE_CHECKING:
    from geval_py.reading.preparation import Preparation
    from geval_py.tables.table import Table

    METRICS: Metrics


class Metrics(dict[str, Metric]):
    """All metrics by their names, which show themselves as a table."""

    def table(self) -> Table:
        """Return a table with a row a metric."""
        from geval_py.tables.table import Column, Table, named_columns

        columns = named_columns(("unit", "direction", "what it is"))
        return Table(
            [Column("metric"), *columns],
            [(metric.name, metric.unit, f"{metric.direction} is better", metric.summary) for metric in self.values()],
        )

    def __repr__(self) -> str:
        return "".join(self.table().text()).rstrip("\n")

    def _repr_html_(self) -> str:
        return "".join(self.table().html())


def __getattr__(name: str) -> Any:
    """Import the other metrics once METRICS is asked for."""
    if name != "METRICS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from geval_py.scoring.metrics import registry

    return globals().setdefault("METRICS", Metrics(registry.METRICS))


def find_metric(name: str) -> Metric:
    """Return the metric of a name, which may end in a number: of bits, the β of an F-score, … Raises SchemeError.

    >>> find_metric("LogLossHashed8").bits
    8
    """
    metric = base.find_in_family(name, base.HASHED_FAMILIES)
    if metric is not None:
        return metric
    from geval_py.scoring.metrics import registry

    try:
        metric = registry.find(name)
    except SchemeError as error:
        error.scheme = name  # not that of the metric behind a prefix
        raise
    if metric is not None:
        return metric
    stem = name.rstrip("0123456789")
    close = nearest(stem, registry.METRICS)
    if stem in base.HASHED_FAMILIES:
        advice = f"the number of bits is from {MIN_BITS} to {MAX_BITS}"
    else:
        advice = f"did you mean {close}?" if close else "geval --list-metrics shows those that are known"
    raise SchemeError(scheme=name, message=f"Unknown or broken metric definition: {visible(name)}\n  {advice}")


def column_of(
    metric: Metric, vocabulary: frozenset[str], preparation: Preparation | None = None
) -> base.StatisticsColumn:
    """Return the column of statistics that a metric is made from, of prepared lines if there is a preparation.

    ``vocabulary`` is for the metrics that need one; it is prepared as the lines are. Raises MissingPackageError.
    """
    try:
        for package in metric.needs:
            import_module(package)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        message = f"this metric needs {missing}, of the extra text: {installs('text')}"
        raise MissingPackageError(message=message, package=missing) from error
    column = metric.column
    if preparation is None and not metric.needs_vocabulary:
        return column
    from geval_py.scoring.metrics.columns import PreparedColumn, RowColumn

    if metric.needs_vocabulary and isinstance(column, RowColumn):
        words = vocabulary if preparation is None else frozenset(map(preparation, vocabulary))
        column = column._replace(vocabulary=words)
    return column if preparation is None else PreparedColumn(column, preparation)
