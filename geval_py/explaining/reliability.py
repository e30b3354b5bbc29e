"""Probabilities against what came true, in bins, beside what honest ones would show.

*Honest* means that each thing comes true as often as its probability says. What honest probabilities of the same
size and number would show is found by drawing: that is the consistency band of J. Broecker and L. A. Smith,
"Increasing the reliability of reliability diagrams", Weather and Forecasting 22 (2007). No measure of error has a
meaning without it: an expected calibration error is above 0 for the most honest of forecasters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geval_py.errors import UsageError
from geval_py.reading.options import DEFAULT_SEED
from geval_py.reading.sources import can_be_reread
from geval_py.scoring.evaluate import evaluate_output
from geval_py.scoring.kernel.profile import COUNTS
from geval_py.scoring.metrics.hashed import ProfileStatistics, is_hashed, profiled
from geval_py.scoring.scores import ScoredOutput, checked_evaluation
from geval_py.text import named, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from geval_py.scoring.evaluate import Named


Array: TypeAlias = "NDArray[np.float64]"
Truths: TypeAlias = "NDArray[np.bool_]"
Indices: TypeAlias = "NDArray[np.intp]"
BAND = (0.025, 0.975)  # the quantiles of what honest probabilities would show
DRAWS = 200
BINS, WORD_BINS = 10, 20
DIGITS = 12  # probabilities that agree in so many are one


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points of a chart, by rising ``x``: aligned lists.

    ``x`` is the probability, ``y`` what came true of it, ``low`` and ``high`` the 95 % band of y for honest
    probabilities, ``n`` how many there are; all probabilities are in [0, 1].
    """

    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]
    n: list[int]

    def rows(self) -> list[dict[str, float]]:
        """Give the points one by one."""
        names = [field.name for field in fields(self)]
        return [dict(zip(names, row, strict=True)) for row in zip(*asdict(self).values(), strict=True)]

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a point, and the columns ``x``, ``y``, ``low``, ``high``, ``n``."""
        import pandas as pd

        return pd.DataFrame(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Probabilities against what came true.

    Of ``n`` things, ``claimed`` is the mean probability, ``found`` the share that came true, and ``low`` and ``high``
    the 95 % band of that share for honest probabilities; ``bins`` are the same in parts, each with as many things
    (for words: as many expected hits).
    """

    n: int
    claimed: float
    found: float
    low: float
    high: float
    bins: Points

    @property
    def is_honest(self) -> bool:
        """Whether the share that came true is one that honest probabilities would show."""
        return self.low <= self.found <= self.high

    def to_frame(self) -> pd.DataFrame:
        """Make the table of the bins; see :class:`Points`."""
        return self.bins.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Give what ``--format json`` shows."""
        return asdict(self) | {"bins": self.bins.rows()}


class Forecasts:
    """Probabilities of things, at least one, and whether each came true; equal ones are put together.

    ``p`` are the different probabilities, by rising size, ``n`` how many things have each, and ``hits`` how many of
    these came true.
    """

    def __init__(self, probabilities: Array, outcomes: Array) -> None:
        self.p, self._places = np.unique(np.round(probabilities, DIGITS), return_inverse=True)
        self.n = np.bincount(self._places).astype(float)
        self.hits = _sums(self._places, outcomes)

    @property
    def total(self) -> float:
        """The number of things."""
        return float(self.n.sum())

    def honest(self) -> Iterator[Array]:
        """Give the hits that honest probabilities would have, again and again; the same ones each time."""
        chance = np.random.default_rng(DEFAULT_SEED)
        of_things = self.p[self._places]
        for _ in range(DRAWS):
            yield _sums(self._places, chance.random(len(of_things)) < of_things)

    def bins(self, number: int = BINS) -> Indices:
        """Tell in which bin each probability is; each bin has about as many things."""
        before = np.cumsum(self.n) - self.n / 2
        return np.unique((before * number / self.total).astype(int), return_inverse=True)[1]


def reliability(forecasts: Forecasts) -> Reliability:
    """Put forecasts into bins, with their bands."""
    bins = forecasts.bins()
    honest = np.array([_sums(bins, hits) for hits in forecasts.honest()])
    claimed, n = _sums(bins, forecasts.p * forecasts.n), _sums(bins, forecasts.n)
    return _reliability(n, claimed, _sums(bins, forecasts.hits), honest)


def _sums(places: Indices, values: Array | Truths) -> Array:
    """Sum values by their places, of which each is used."""
    return np.bincount(places, values).astype(float)


def words_reliability(statistics: ProfileStatistics) -> Reliability | None:
    """Put all words that lines list into bins; the band keeps that one word at most comes true on a line.

    None where no line lists a word that has a probability.
    """
    histogram = statistics.histogram
    used = histogram[histogram[:, 0] > 0]
    mass = used[:, 1]
    if not mass.sum():
        return None
    before = (np.cumsum(mass) - mass / 2) * WORD_BINS / mass.sum()
    bins = np.unique(before.astype(int), return_inverse=True)[1]
    sums = np.zeros((bins.max() + 1, used.shape[1]))
    np.add.at(sums, bins, used)
    n, claimed, hits = sums.T[: len(COUNTS)]
    return _reliability(n, claimed, hits, sums.T[len(COUNTS) :])


def _reliability(n: Array, claimed: Array, hits: Array, honest: Array) -> Reliability:
    """Make shares of sums a bin; ``honest`` are draws x bins."""
    low, high = np.quantile(honest / n, BAND, axis=0)
    points = Points(
        x=(claimed / n).tolist(),
        y=(hits / n).tolist(),
        low=low.tolist(),
        high=high.tolist(),
        n=n.astype(int).tolist(),
    )
    total = float(n.sum())
    ends = np.quantile(honest.sum(axis=1) / total, BAND)
    return Reliability(
        n=int(total),
        claimed=float(claimed.sum()) / total,
        found=float(hits.sum()) / total,
        low=float(ends[0]),
        high=float(ends[1]),
        bins=points,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationError:
    """The expected calibration error, beside what honest probabilities would show.

    ``ece`` is the mean distance of the probability and the share that came true over bins of as many things;
    ``honest`` is its mean for honest probabilities, ``honest_high`` what 95 % of these stay below. ``debiased`` is
    the root of the mean square distance less what chance adds: 0 where that is all.
    """

    ece: float
    honest: float
    honest_high: float
    debiased: float


def calibration_error(forecasts: Forecasts) -> CalibrationError:
    """Measure how far forecasts are from what came true."""
    bins = forecasts.bins()
    claimed, n = _sums(bins, forecasts.p * forecasts.n), _sums(bins, forecasts.n)

    def error_of(hits: Array) -> float:
        return float(np.abs(claimed - _sums(bins, hits)).sum()) / forecasts.total

    honest = np.array([error_of(hits) for hits in forecasts.honest()])
    shares = _sums(bins, forecasts.hits) / n
    several = n > 1  # one thing tells nothing of its own chance
    chance = shares[several] * (1 - shares[several]) / (n[several] - 1)
    squares = (shares - claimed / n)[several] ** 2 - chance
    return CalibrationError(
        ece=error_of(forecasts.hits),
        honest=float(honest.mean()),
        honest_high=float(np.quantile(honest, 0.95)),
        debiased=math.sqrt(max(0.0, float((squares * n[several]).sum()) / forecasts.total)),
    )


# The reliability curve without bins, and what a Brier score is made of.


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


# Read an output for what its lines' distributions say, in one pass, with its hashed metric's flags.


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
    evaluation: ScoredOutput,
    schemes: Sequence[Named],
    vocabulary: frozenset[str] = frozenset(),
    *,
    sign: bool = False,
) -> ScoredOutput:
    """Score an evaluation's output again, with other metrics; raises UsageError for what can be read only once."""
    if not can_be_reread(evaluation.output.path):
        raise UsageError(message=f"{named(evaluation.output.path)} would have to be read again: write it to a file")
    return evaluate_output(evaluation.split, evaluation.output, schemes, vocabulary, sign=sign)


def schemes_of(evaluation: ScoredOutput) -> list[Named]:
    """Give the metrics of an evaluation; raises UsageError for what is none, such as a path."""
    return [(score.scheme, score.metric) for score in checked_evaluation(evaluation).scores]


def profile_of(evaluation: ScoredOutput) -> ProfileStatistics:
    """Give the profile that an evaluation's first metric, one of :func:`profile_scheme`, is made from."""
    statistics = evaluation.scores[0].statistics
    if not isinstance(statistics, ProfileStatistics):
        raise TypeError("the first metric has no profile")
    return statistics
