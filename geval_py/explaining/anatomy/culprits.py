"""What goes with bad lines, by what it costs: how far the perplexity would fall if its lines were no worse."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining.features.worst import Frequencies, worst_features
from geval_py.reading.features import FIELD_NUMBER, FeatureKinds

if TYPE_CHECKING:
    from geval_py.explaining.anatomy.outcomes import Floats
    from geval_py.reading.items import ScoredItem

LEVEL = 0.05
MOST_CULPRITS = 10
LEAST_LINES = 10  # that have a feature, and that have it not


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A feature that goes with bad lines: how many lines have it, their mean loss in nats, its q.

    ``fall`` is the share, in (0, 1), by which the perplexity would fall if their mean loss were that of the others.
    """

    feature: str
    lines: int
    mean_loss: float
    fall: float
    q: float


def culprits_of(items: Iterable[ScoredItem], losses: Floats, header: tuple[str, ...]) -> list[Culprit]:
    """Give the features with q below 0.05 that cost most, at most ten: words, and shapes of words.

    Left out are lines with an infinite loss, and the numbers that the output itself writes.
    """
    scores = np.where(np.isfinite(losses), losses, np.nan)
    kinds, frequencies = FeatureKinds(word_shapes=True), Frequencies(least=LEAST_LINES)
    found = worst_features(
        items, scores.tolist(), worst_is_greatest=True, header=header, kinds=kinds, frequencies=frequencies
    )
    finite = scores[~np.isnan(scores)]
    lines, total = len(finite), float(finite.sum())
    culprits = [
        _culprit(name, count, mean, q, lines, total)
        for name, count, mean, q in zip(
            found.names, found.counts.tolist(), found.means.tolist(), found.q_values.tolist(), strict=True
        )
        if q < LEVEL and not _is_own_number(name)
    ]
    costly = [culprit for culprit in culprits if culprit.fall > 0]
    return sorted(costly, key=lambda culprit: -culprit.fall)[:MOST_CULPRITS]


def _culprit(name: str, count: int, mean: float, q: float, lines: int, total: float) -> Culprit:
    others = (total - count * mean) / (lines - count)
    fall = -math.expm1(-count / lines * (mean - others))
    return Culprit(feature=name, lines=count, mean_loss=mean, fall=fall, q=q)


def _is_own_number(name: str) -> bool:
    field, _, token = name.partition(":")
    return field == "out" and FIELD_NUMBER.fullmatch(token) is not None
