"""Which features go with bad scores: a ranking by the Mann-Whitney U test.

Items are ranked by score, the worst first. A feature on n1 of n items with the rank sum R has

    U = R - n1 (n1 + 1) / 2,    z = (U - n1 n2 / 2) / sqrt(n1 n2 (n + 1) / 12),    p = Phi(z),    n2 = n - n1,

so that a small p says that its items are worse than the others (Mann and Whitney 1947; the normal approximation,
one-sided, without a correction for ties, as in GEval). Numbers, and lengths, are features by their rank correlation
with the items' ranks (:mod:`geval_py.explaining.features.kendall`), two-sided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geval_py.explaining.features.cartesian import Pairs, count_pairs
from geval_py.explaining.features.kendall import kendall_z
from geval_py.explaining.features.tally import FieldTally, Numbers, Tally, tally_features
from geval_py.explaining.statistics.corrections import benjamini_hochberg
from geval_py.reading.features import BETWEEN_FEATURES, FeatureKinds, Field, Fields
from geval_py.reading.items import ScoredItem
from geval_py.scoring.parallel import Progress

if TYPE_CHECKING:
    import pandas as pd

EQUAL_DIGITS = 12  # scores that agree in so many significant digits are tied
LEAST_SCORE = 1e-12  # below which a score is one of 0

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequencies:
    """On how many items a feature must be, and be missing; and each of the two of a Cartesian feature."""

    least: int = 1
    least_cartesian: int | None = None

    @property
    def cartesian(self) -> int:
        return self.least if self.least_cartesian is None else self.least_cartesian


@dataclass(frozen=True, slots=True)
class WorstFeatures:
    """Features, each with the number of its items, their mean score, and its p; aligned with each other.

    ``q_values`` are the p corrected for the number of these features, by Benjamini and Hochberg. Pairs of features,
    which are only here if their p is small, were more than are counted by it: their q is too small.
    """

    names: list[str]
    counts: Integers
    means: Floats
    p_values: Floats

    def __len__(self) -> int:
        return len(self.names)

    @property
    def q_values(self) -> Floats:
        return benjamini_hochberg(self.p_values)

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a feature: ``feature``, ``count``, ``score`` (the mean), ``p`` and ``q``."""
        import pandas as pd

        figures = {"count": self.counts, "score": self.means, "p": self.p_values, "q": self.q_values}
        return pd.DataFrame({"feature": pd.Series(self.names, dtype=object)} | figures)

    def only(self, wanted: Truths) -> WorstFeatures:
        """Give some of the features."""
        names = list(compress(self.names, wanted.tolist()))
        return WorstFeatures(names, self.counts[wanted], self.means[wanted], self.p_values[wanted])

    def reordered(self, order: Integers) -> WorstFeatures:
        """Give all features in another order."""
        names = [self.names[index] for index in order.tolist()]
        return WorstFeatures(names, self.counts[order], self.means[order], self.p_values[order])


def worst_features(
    items: Iterable[ScoredItem],
    scores: Sequence[float],
    *,
    worst_is_greatest: bool,
    header: tuple[str, ...] = (),
    kinds: FeatureKinds | None = None,
    frequencies: Frequencies | None = None,
    progress: Progress | None = None,
) -> WorstFeatures:
    """Rank the features of items by how surely they go with bad scores, the smallest p first.

    ``items`` and ``scores`` are as many; an item whose score is NaN is left out. ``worst_is_greatest`` tells which
    scores are bad. A feature whose p is not defined, since all items have it, is left out. Those that tie in p come
    by field (expected, output, then the columns of the input), then by token in the order of its characters.
    ``progress`` is called every few thousand items.
    """
    kinds, frequencies = kinds or FeatureKinds(), frequencies or Frequencies()
    all_scores = np.array(scores, np.float64)
    known = ~np.isnan(all_scores)
    figures = all_scores[known]
    # Each score is taken as its share of the mean, since a sum of scores may be too large for a double.
    weights = np.array([rank_scores(figures.tolist(), greatest_first=worst_is_greatest), figures / len(figures)])
    found = tally_features(compress(items, known.tolist()), weights, Fields(header), kinds, progress)
    return _Ranking(weights, kinds, frequencies).of(found)


def rank_scores(scores: Sequence[float], *, greatest_first: bool) -> Floats:
    """Give each score's rank from 1, the greatest or the smallest first; tied ones share the mean rank.

    Scores are tied if they are equal to 12 significant digits, or nearer to 0 than 1e-12: what is left is rounding
    noise. NaN is not allowed.
    """
    rounded = np.array([float(f"{score:.{EQUAL_DIGITS - 1}e}") for score in scores])
    rounded[np.abs(rounded) < LEAST_SCORE] = 0.0
    _, place, tied = np.unique(-rounded if greatest_first else rounded, return_inverse=True, return_counts=True)
    mean_ranks: Floats = np.cumsum(tied) - (tied - 1) / 2
    return mean_ranks[place]


def normal_cdf(z: float) -> float:
    """Give the probability that a standard normal variable is at most z.

    >>> normal_cdf(0.0), round(normal_cdf(-1.959964), 6)
    (0.5, 0.025)
    """
    return math.erfc(-z / math.sqrt(2)) / 2


def rank_sum_p(counts: Integers | Floats, rank_sums: Floats, items: int) -> Floats:
    """Give p of features from the number of their items and their rank sums; NaN where all items have one."""
    counts = counts.astype(np.float64)  # millions of items cubed are too many for 64 bits
    others = items - counts
    u = rank_sums - counts * (counts + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (u - counts * others / 2) / np.sqrt(counts * others * (items + 1) / 12)
    return np.fromiter(map(normal_cdf, z.tolist()), np.float64, len(z))


@dataclass(frozen=True, slots=True)
class _Ranking:
    """From tallies to features by rising p; ``weights`` are the items' ranks, and their scores by their number."""

    weights: Floats
    kinds: FeatureKinds
    frequencies: Frequencies

    @property
    def items(self) -> int:
        return len(self.weights[0])

    def of(self, found: dict[Field, FieldTally]) -> WorstFeatures:
        singles: list[WorstFeatures] = []
        numbers: list[WorstFeatures] = []
        places: list[tuple[Integers, Integers]] = []
        offset = 0
        for field, of_field in found.items():
            for tally in of_field.tallies:
                features, place = self._features(field, tally)
                singles.append(features)
                places.extend(_placed(owners, place[codes], offset) for owners, codes in tally.places)
                offset += len(features)
            numbers.extend(self._numerical(field, of_field.numbers))
        alone = _joined(singles)
        shown = self._often_enough(alone.counts) & ~np.isnan(alone.p_values)
        parts = [alone.only(shown), *numbers]
        if self.kinds.cartesian:
            parts.append(self._pairs(alone, shown, places))
        every = _joined(parts)
        return every.reordered(np.argsort(every.p_values, kind="stable"))

    def _means(self, sums: Floats, counts: Integers) -> Floats:
        """Give mean scores from sums of scores by their number."""
        return sums / (counts / self.items)

    def _often_enough(self, counts: Integers) -> Truths:
        least = self.frequencies.least
        return np.logical_and(counts >= least, self.items - counts >= least)

    def _features(self, field: Field, tally: Tally) -> tuple[WorstFeatures, Integers]:
        """Give the frequent features of a tally by name, and each code's place among them (-1 for none)."""
        tokens = list(tally.codes)
        frequent = np.flatnonzero(tally.figures[0] >= self.frequencies.least)  # a rarer one is in no frequent pair
        codes = sorted(frequent.tolist(), key=tokens.__getitem__)
        place = np.full(len(tokens), -1)
        place[codes] = np.arange(len(codes))
        numbers, rank_sums, score_sums = tally.figures[:, codes]
        counts = numbers.astype(np.int64)
        prefix = f"{field}:"
        names = [prefix + tokens[code] for code in codes]
        means = self._means(score_sums, counts)
        return WorstFeatures(names, counts, means, rank_sum_p(counts, rank_sums, self.items)), place

    def _numerical(self, field: Field, numbers: Numbers) -> Iterator[WorstFeatures]:
        """Give the feature that a field's numbers, or else its lengths, make; its name says which end is worse."""
        ranks, scores = self.weights[:, np.array(numbers.items, np.int64)]
        column = numbers.lengths if numbers.values is None else numbers.values
        values = np.array(column, np.float64)
        z = kendall_z(ranks, values)
        if math.isnan(z):
            return
        worse_when_small = z > 0
        selected = len(values) // 4
        # Where values tie, GEval takes the better items at the small end, the worse ones at the great end.
        best_first = np.argsort(ranks, kind="stable")[::-1]
        ascending = best_first[np.argsort(values[best_first], kind="stable")]
        extreme = (ascending if worse_when_small else ascending[::-1])[:selected]
        name = f"{field}:={'#' if numbers.values is None else ''}{'-' if worse_when_small else '+'}"
        with np.errstate(invalid="ignore"):  # opposite infinities, and no line at all
            means = self._means(scores[extreme].sum(keepdims=True), np.array([selected]))
        p = 2 * normal_cdf(-abs(z))
        yield WorstFeatures([name], np.array([selected]), means, np.array([p]))

    def _pairs(
        self, alone: WorstFeatures, shown: Truths, places: Sequence[tuple[Integers, Integers]]
    ) -> WorstFeatures:
        """Give the pairs of frequent features whose p is below that of either one, where that is shown."""
        frequent = alone.counts >= self.frequencies.cartesian
        bound = np.where(shown, alone.p_values, np.inf)

        def p_of(pairs: Pairs) -> Floats:
            return rank_sum_p(pairs.counts, pairs.sums[0], self.items)

        def wanted(pairs: Pairs) -> Truths:
            p = p_of(pairs)
            below = np.logical_and(p < bound[pairs.first], p < bound[pairs.second])
            return np.logical_and(self._often_enough(pairs.counts), below)

        owners = np.concatenate([np.zeros(0, np.int64), *(owners for owners, _ in places)])
        features = np.concatenate([np.zeros(0, np.int64), *(features for _, features in places)])
        of_frequent = frequent[features]
        pairs = count_pairs(owners[of_frequent], features[of_frequent], self.weights, wanted)
        couples = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        names = [f"{alone.names[a]}{BETWEEN_FEATURES}{alone.names[b]}" for a, b in couples]
        return WorstFeatures(names, pairs.counts, self._means(pairs.sums[1], pairs.counts), p_of(pairs))


def _placed(owners: Integers, places: Integers, offset: int) -> tuple[Integers, Integers]:
    """Give the items and features that are among the frequent ones, the features counted from ``offset``."""
    frequent = places >= 0
    return owners[frequent], places[frequent] + offset


def _joined(parts: Sequence[WorstFeatures]) -> WorstFeatures:
    return WorstFeatures(
        [name for part in parts for name in part.names],
        np.concatenate([np.zeros(0, np.int64), *(part.counts for part in parts)]),
        np.concatenate([np.zeros(0), *(part.means for part in parts)]),
        np.concatenate([np.zeros(0), *(part.p_values for part in parts)]),
    )
