"""What goes with bad lines: few features that together explain them, and what each costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining.features.ranking import Frequencies
from geval_py.explaining.features.worst import Wanted, worst_features
from geval_py.reading.features import FeatureKinds

if TYPE_CHECKING:
    from geval_py.explaining.anatomy.outcomes import Floats
    from geval_py.reading.items import ScoredItem

MOST_CULPRITS = 10
LEAST_LINES = 10  # that have a feature, and that have it not


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A feature that goes with bad lines: how many lines have it, their perplexity, its q.

    ``fall`` is the share by which the perplexity would fall if their mean loss were that of the others, from ``low``
    to ``high`` with 95 %; ``explained`` the share of the losses' variance that it and those before it explain.
    """

    feature: str
    lines: int
    perplexity: float
    fall: float
    low: float
    high: float
    q: float
    explained: float


def culprits_of(items: Iterable[ScoredItem], losses: Floats, header: tuple[str, ...]) -> list[Culprit]:
    """Give at most ten features, words and shapes of words, that together explain the bad lines, the best first.

    How they are chosen is said in :mod:`geval_py.explaining.features.distinct`. Lines with an infinite loss are left
    out.
    """
    scores = np.where(np.isfinite(losses), losses, np.nan)
    found = worst_features(
        items,
        scores.tolist(),
        worst_is_greatest=True,
        header=header,
        kinds=FeatureKinds(word_shapes=True),
        frequencies=Frequencies(least=LEAST_LINES),
        wanted=Wanted(losses=scores.tolist(), distinct=True),
    )
    figures = (found.counts, *(found.more[name] for name in ("perplexity", "gain", "gain_low", "gain_high")))
    columns = (*figures, found.q_values, found.more["explained"])
    rows = zip(found.names, *(column.tolist() for column in columns), strict=True)
    return [
        Culprit(feature=name, lines=lines, perplexity=ppl, fall=fall, low=low, high=high, q=q, explained=explained)
        for name, lines, ppl, fall, low, high, q, explained in rows
    ][:MOST_CULPRITS]
