"""Probabilities compared with what came true, in bins, beside what honest probabilities would show.

*Honest* means that each thing comes true as often as its probability says. What honest probabilities of the same
size and number would show is found by drawing: the consistency band of J. Broecker and L. A. Smith, "Increasing the
reliability of reliability diagrams", Weather and Forecasting 22 (2007). No measure of error means anything without
it: the expected calibration error of even the most honest forecaster is above 0.

In this order: reliability in bins, and the calibration error; the reliability curve without bins, and the parts of a
Brier score; profiles, which say what the distributions of an output's lines claim, read by scoring the output again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.errors import UsageError
from geval_py.reading import config, sources
from geval_py.scoring import evaluate, scores
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.profile import COUNTS
from geval_py.scoring.metrics.hashed import ProfileStatistics
from geval_py.tables.formats import json_fields
from geval_py.text import named, visible

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from geval_py.explaining.significance import Array


BAND = (0.025, 0.975)  # the quantiles of what honest probabilities would show
DRAWS = 200
BINS, WORD_BINS = 10, 20
DIGITS = 12  # probabilities that agree in so many digits are equal


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

    def to_dict(self) -> list[dict[str, float]]:
        """Return the points for JSON, one after the other."""
        columns = asdict(self)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per point, and the columns ``x``, ``y``, ``low``, ``high``, ``n``."""
        import pandas as pd

        return pd.DataFrame(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """The probabilities of ``n`` things compared with what came true.

    ``claimed`` is the mean probability, ``found`` the share that came true, ``low`` and ``high`` the 95 % band of
    that share for honest probabilities; ``bins`` have the same figures for parts with equally many things (for words:
    equally many expected hits).
    """

    n: int
    claimed: float
    found: float
    low: float
    high: float
    bins: Points

    @property
    def is_honest(self) -> bool:
        """Whether honest probabilities would show such a share."""
        return self.low <= self.found <= self.high

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the bins; see :class:`Points`."""
        return self.bins.to_frame()

    def to_dict(self) -> dict[str, Any]:
        return json_fields(self)


class Forecasts:
    """Probabilities of things (at least one), and whether each came true; equal probabilities are merged.

    ``p`` are the different probabilities, rising; ``n`` the number of things with each; ``hits`` how many of these
    came true; ``bins`` the bin of each, of about equally many things.
    """

    def __init__(self, probabilities: Array, outcomes: Array) -> None:
        self.p, places = np.unique(np.round(probabilities, DIGITS), return_inverse=True)
        self.n, self.hits = np.bincount(places).astype(float), _sums(places, outcomes)
        before, self.total = np.cumsum(self.n) - self.n / 2, float(self.n.sum())
        self.bins = np.unique((before * BINS / self.total).astype(int), return_inverse=True)[1]

    def draws(self) -> Iterator[Array]:
        """Draw the hits of honest probabilities, DRAWS times; the draws are always the same."""
        rng, things, p = np.random.default_rng(config.DEFAULT_SEED), self.n.astype(int), np.clip(self.p, 0.0, 1.0)
        several, hits = things > 1, np.empty(len(p))
        for _ in range(DRAWS):
            hits[several] = rng.binomial(things[several], p[several])
            hits[~several] = rng.random(len(p) - several.sum()) < p[~several]  # in a sixth of the time
            yield hits.copy()

    @property
    def sums(self) -> tuple[Array, Array, Array]:
        """The number of things in each bin, the sum of their probabilities, and how many came true."""
        n, claimed, hits = (_sums(self.bins, column) for column in (self.n, self.p * self.n, self.hits))
        return n, claimed, hits

    @cached_property
    def honest_bins(self) -> Array:
        """The sums of the honest hits in each bin, a row per draw."""
        return np.array([_sums(self.bins, hits) for hits in self.draws()])

    def brier(self, p: Array, hits: Array) -> float:
        """Compute the mean square distance of probabilities from outcomes, 0 or 1."""
        return float((self.n * p * p - 2 * p * hits + hits).sum()) / self.total


def _sums(places: NDArray[np.intp], values: Array) -> Array:
    """Sum values by their places, each of which occurs."""
    return np.bincount(places, values).astype(float)


def reliability_of(forecasts: Forecasts) -> Reliability:
    """Compute the reliability of forecasts."""
    return _reliability(*forecasts.sums, forecasts.honest_bins)


def words_reliability(statistics: ProfileStatistics) -> Reliability | None:
    """Compute the reliability of all listed words; in the band's draws, at most one word comes true on a line.

    None if no line lists a word with a probability.
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
    """Compute shares from the sums of each bin; ``honest`` are draws x bins."""
    low, high = np.quantile(honest / n, BAND, axis=0)
    x, y, counts = (column.tolist() for column in (claimed / n, hits / n, n.astype(int)))
    points = Points(x=x, y=y, low=low.tolist(), high=high.tolist(), n=counts)
    total = float(n.sum())
    span = np.quantile(honest.sum(axis=1) / total, BAND)
    claim, share, least, greatest = map(float, (claimed.sum() / total, hits.sum() / total, *span))
    return Reliability(n=int(total), claimed=claim, found=share, low=least, high=greatest, bins=points)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationError:
    """The expected calibration error, beside the one of honest probabilities.

    ``ece`` is the mean distance between the probability and the share that came true over bins of equally many
    things; ``honest`` is its mean for honest probabilities, ``honest_high`` their 95 % quantile. ``debiased`` is the
    root of the mean square distance minus the part that chance adds; at least 0.
    """

    ece: float
    honest: float
    honest_high: float
    debiased: float


def calibration_error(forecasts: Forecasts) -> CalibrationError:
    """Compute the calibration error of forecasts."""
    n, claimed, hits = forecasts.sums
    honest = np.abs(claimed - forecasts.honest_bins).sum(axis=1) / forecasts.total
    shares = hits / n
    several = n > 1  # a single thing says nothing about its own probability
    chance = shares[several] * (1 - shares[several]) / (n[several] - 1)
    squares = (shares - claimed / n)[several] ** 2 - chance
    return CalibrationError(
        ece=float(np.abs(claimed - hits).sum()) / forecasts.total,
        honest=float(honest.mean()),
        honest_high=float(np.quantile(honest, 0.95)),
        debiased=math.sqrt(max(0.0, float((squares * n[several]).sum()) / forecasts.total)),
    )


# The reliability curve without bins, and the parts of a Brier score


@dataclass(frozen=True, slots=True, kw_only=True)
class Corp:
    """A mean Brier score and its parts, all in [0, 1]: ``brier`` = miscalibration - discrimination + uncertainty.

    ``miscalibration`` is how much the score would improve if the probabilities were recalibrated, ``honest`` its mean
    for honest probabilities; ``discrimination`` how well they tell things apart; ``uncertainty`` the score of one
    probability for all. ``curve`` has the two ends of each step, with the ``n`` of the step.

    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams for probabilistic classifiers", PNAS 118, 2021.
    """

    brier: float
    miscalibration: float
    honest: float
    discrimination: float
    uncertainty: float
    curve: Points

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the curve; see :class:`Points`."""
        return self.curve.to_frame()

    def to_dict(self) -> dict[str, Any]:
        return json_fields(self)


def corp(forecasts: Forecasts) -> Corp:
    """Compute the curve and the parts."""
    n, p, hits = forecasts.n, forecasts.p, forecasts.hits
    recalibrated = np.frombuffer(backends.isotonic(hits / n, n))
    is_start = np.diff(recalibrated, prepend=-1.0) != 0
    step_of = np.cumsum(is_start) - 1
    ends = np.flatnonzero(is_start | np.append(is_start[1:], True))
    curves, excesses = [], []
    for drawn in forecasts.draws():
        curve = np.frombuffer(backends.isotonic(drawn / n, n))
        curves.append(curve[ends])
        excesses.append(forecasts.brier(p, drawn) - forecasts.brier(curve, drawn))
    low, high = np.quantile(curves, BAND, axis=0)
    brier, best = forecasts.brier(p, hits), forecasts.brier(recalibrated, hits)
    uncertainty = forecasts.brier(np.full_like(p, hits.sum() / forecasts.total), hits)
    return Corp(
        brier=brier,
        miscalibration=brier - best,
        honest=float(np.mean(excesses)),
        discrimination=uncertainty - best,
        uncertainty=uncertainty,
        curve=Points(
            x=p[ends].tolist(),
            y=recalibrated[ends].tolist(),
            low=low.tolist(),
            high=high.tolist(),
            n=np.bincount(step_of, n)[step_of[ends]].astype(int).tolist(),
        ),
    )


# Profiles: read in one pass, with the flags of a hashed metric


def hashed_scheme(schemes: Sequence[evaluate.Named]) -> evaluate.Named:
    """Return the first metric on hashed words; raises UsageError if there is none."""
    for scheme, metric in schemes:
        if metric.bits is not None:
            return scheme, metric
    names = ", ".join(scheme.text for scheme, _ in schemes)
    raise UsageError(message=f"this needs a metric on hashed words, such as PerplexityHashed, not {visible(names)}")


def reread(
    evaluation: scores.ScoredOutput,
    schemes: Sequence[evaluate.Named],
    vocabulary: frozenset[str] = frozenset(),
    *,
    sign: bool = False,
) -> scores.ScoredOutput:
    """Score an output again, with other metrics; raises UsageError if it can be read only once."""
    if not sources.can_be_reread(evaluation.output.path):
        raise UsageError(message=f"{named(evaluation.output.path)} would have to be read again: write it to a file")
    return evaluate.evaluate_output(evaluation.split, evaluation.output, schemes, vocabulary, sign=sign)


def schemes_of(evaluation: scores.ScoredOutput) -> list[evaluate.Named]:
    """Return an evaluation's metrics; raises UsageError for anything else, such as a path."""
    return [(score.scheme, score.metric) for score in scores.checked_evaluation(evaluation).scores]


def profile_of(evaluation: scores.ScoredOutput) -> ProfileStatistics:
    """Return the profile of an evaluation's first metric, which ``hashed.profiled`` made."""
    statistics = evaluation.scores[0].statistics
    if not isinstance(statistics, ProfileStatistics):
        raise TypeError("the first metric has no profile")
    return statistics
