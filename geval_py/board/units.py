"""The metrics of board.yaml: how each is called, and what its values mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import find_metric

if TYPE_CHECKING:
    from geval_py.scoring.metrics.base import Measure


def measure_of(metric: str) -> Measure:
    """Give the unit, direction and range of a metric as board.yaml writes it; raises SchemeError."""
    (scheme,) = parse_schemes(metric)
    return find_metric(scheme.metric).measure


def names_of(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Give the names under which metrics are shown: from their ``N`` flags, but as written where two are the same."""
    names = tuple(parse_schemes(metric)[0].name for metric in metrics)
    return names if len(set(names)) == len(names) else metrics
