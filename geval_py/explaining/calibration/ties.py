"""Two outputs so near to each other that hashing may have decided between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining.calibration.profiles import profile_of, profile_scheme, reread
from geval_py.reading.outputs import unique_names
from geval_py.reading.sources import can_be_reread
from geval_py.scoring.kernel.profile import SKETCHES
from geval_py.scoring.metrics.profile import ProfileStatistics

if TYPE_CHECKING:
    from geval_py.explaining.calibration.forecasts import Array
    from geval_py.explaining.comparison import Comparison
    from geval_py.scoring.evaluation import Evaluation

NEAR = 0.05  # a pair that other seeds turn round more often is too near to tell


@dataclass(frozen=True, slots=True, kw_only=True)
class NearTie:
    """Two outputs nearer than hashing can tell: ``turned`` is the share of seeds that would put the second first."""

    first: str
    second: str
    turned: float


def near_ties(evaluations: Sequence[Evaluation], comparison: Comparison) -> Iterator[NearTie]:
    """Give the neighbours in a comparison between which hashing may have decided.

    Looked at are those that cannot be told apart anyway, on a metric of hashed words: their outputs are read again,
    unless they can be read only once.
    """
    by_name = dict(zip(unique_names([of.output for of in evaluations]), evaluations, strict=True))

    @cache
    def profile(name: str) -> ProfileStatistics:
        first = by_name[name].scores[0]
        return profile_of(reread(by_name[name], [profile_scheme((first.scheme, first.metric))]))

    bits = evaluations[0].scores[0].metric.bits
    for first, second in pairwise(system.name for system in comparison.systems):
        if bits and _is_in_doubt(comparison, by_name[first], by_name[second], {first, second}):
            turned = share_turned(profile(first), profile(second), bits)
            if turned > NEAR:
                yield NearTie(first=first, second=second, turned=turned)


def _is_in_doubt(comparison: Comparison, one: Evaluation, other: Evaluation, names: set[str]) -> bool:
    """Tell whether two outputs share a group, but not all losses, and can be read again."""
    return (
        any(names <= set(group) for group in comparison.groups)
        and one.scores[0].statistics != other.scores[0].statistics
        and all(can_be_reread(of.output.path) for of in (one, other))
    )


def share_turned(better: ProfileStatistics, worse: ProfileStatistics, bits: int) -> float:
    """Give the share of seeds that would turn the order of two outputs round, by formula.

    Their expected difference is held against its standard deviation over seeds, in which the words that both list
    collide together (see :mod:`geval_py.scoring.kernel.profile`). 0 for outputs that no seed moves.
    """
    kept = np.isfinite(better.column("seed_mean")) & np.isfinite(worse.column("seed_mean"))
    sketched = [_difference(better, worse, f"sketch_{number}")[kept] for number in range(SKETCHES)]
    gains = _gains(better, bits)[kept] - _gains(worse, bits)[kept]
    variance = sum(float((of * of).sum()) for of in sketched) / SKETCHES / (1 << bits) - float((gains * gains).sum())
    if variance <= 0:
        return 0.0
    return NormalDist().cdf(float(_difference(better, worse, "seed_mean")[kept].sum()) / math.sqrt(variance))


def _difference(one: ProfileStatistics, other: ProfileStatistics, name: str) -> Array:
    """Subtract a column; NaN where both are infinite."""
    with np.errstate(invalid="ignore"):
        return one.column(name) - other.column(name)


def _gains(statistics: ProfileStatistics, bits: int) -> Array:
    """Give what sharing a bucket wins on each line, on average over seeds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        alone: Array = -np.log(statistics.column("word_mass") + statistics.column("rest") / (1 << bits))
        return alone - statistics.column("seed_mean")
