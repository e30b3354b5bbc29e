"""The reliability curve without bins, and what a Brier score is made of.

T. Dimitriadis, T. Gneiting and A. I. Jordan, "Stable reliability diagrams for probabilistic classifiers", PNAS 118
(2021): the curve is the isotonic regression of what came true on the probability, and the mean Brier score is
miscalibration - discrimination + uncertainty.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.calibration.forecasts import BAND, Array, Forecasts, Points

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Corp:
    """A mean Brier score and its parts, all in [0, 1]: ``brier`` = miscalibration - discrimination + uncertainty.

    ``miscalibration`` is what would be won by putting right what the probabilities say, ``honest`` its mean for
    honest ones; ``discrimination`` what they tell apart; ``uncertainty`` the score of one probability for all.
    ``curve`` has the two ends of each step; its ``n`` is that of the step.
    """

    brier: float
    miscalibration: float
    honest: float
    discrimination: float
    uncertainty: float
    curve: Points

    def to_frame(self) -> pd.DataFrame:
        """Make the table of the curve; see :class:`Points`."""
        return self.curve.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Give what ``--format json`` shows."""
        return asdict(self) | {"curve": self.curve.rows()}


def corp(forecasts: Forecasts) -> Corp:
    """Compute the curve and the parts; raises UsageError where SciPy is missing."""
    isotonic = _isotonic_regression()
    recalibrated = isotonic(forecasts.hits, forecasts.n)
    steps = np.flatnonzero(np.diff(recalibrated, prepend=-1.0))
    step_of = np.searchsorted(steps, np.arange(len(recalibrated)), side="right") - 1
    ends = np.union1d(steps, np.append(steps[1:], len(recalibrated)) - 1)
    curves, excesses = [], []
    for hits in forecasts.honest():
        curve = isotonic(hits, forecasts.n)
        curves.append(curve[ends])
        excesses.append(_brier(forecasts, forecasts.p, hits) - _brier(forecasts, curve, hits))
    low, high = np.quantile(curves, BAND, axis=0)
    mean = np.full_like(recalibrated, forecasts.hits.sum() / forecasts.total)
    brier, best = (_brier(forecasts, of, forecasts.hits) for of in (forecasts.p, recalibrated))
    uncertainty = _brier(forecasts, mean, forecasts.hits)
    return Corp(
        brier=brier,
        miscalibration=brier - best,
        honest=float(np.mean(excesses)),
        discrimination=uncertainty - best,
        uncertainty=uncertainty,
        curve=Points(
            x=forecasts.p[ends].tolist(),
            y=recalibrated[ends].tolist(),
            low=low.tolist(),
            high=high.tolist(),
            n=np.bincount(step_of, forecasts.n)[step_of[ends]].astype(int).tolist(),
        ),
    )


def _brier(forecasts: Forecasts, p: Array, hits: Array) -> float:
    """Give the mean square distance of probabilities from what came true, 0 or 1."""
    return float((forecasts.n * p * p - 2 * p * hits + hits).sum()) / forecasts.total


def _isotonic_regression() -> Callable[[Array, Array], Array]:
    """Give the weighted regression of hits among n, which never falls; raises UsageError where SciPy is missing."""
    try:
        isotonic_regression = import_module("scipy.optimize").isotonic_regression
    except (ImportError, AttributeError) as error:
        message = "calibration needs SciPy 1.12 or newer: pip install ./geval-py[report]"
        raise UsageError(message=message) from error

    def regression(hits: Array, n: Array) -> Array:
        found: Array = isotonic_regression(hits / n, weights=n).x
        return found

    return regression
