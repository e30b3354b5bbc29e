"""From what was counted of features to their order: by rising p."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import numpy.typing as npt

from geval_py.explaining.features.cartesian import Pairs, count_pairs
from geval_py.explaining.features.kendall import kendall_z
from geval_py.explaining.features.occurrences import Occurrences
from geval_py.explaining.features.rank_sum import p_of, rank_sum_z, tie_correction
from geval_py.explaining.features.tally import FieldTally, Numbers, Tally
from geval_py.explaining.statistics.distributions import normal_cdf
from geval_py.reading.features import BETWEEN_FEATURES, FeatureKinds, Field

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
class Ranked:
    """Features: on how many items each is, the sums of these items' weights, and p, without and with ties.

    ``sums`` has a row a weight: the ranks, the scores by the number of items, and what else was summed.
    """

    names: list[str]
    counts: Integers
    sums: Floats
    p_values: Floats
    tied_p_values: Floats

    def means(self, items: int) -> Floats:
        """Give the mean scores."""
        return mean_scores(self.sums[1], self.counts, items)

    def only(self, wanted: Truths) -> Ranked:
        """Give some of the features."""
        names = list(compress(self.names, wanted.tolist()))
        return Ranked(
            names, self.counts[wanted], self.sums[:, wanted], self.p_values[wanted], self.tied_p_values[wanted]
        )

    def reordered(self, order: Integers) -> Ranked:
        """Give all features in another order."""
        names = [self.names[index] for index in order.tolist()]
        return Ranked(names, self.counts[order], self.sums[:, order], self.p_values[order], self.tied_p_values[order])


def mean_scores(sums: Floats, counts: Integers, items: int) -> Floats:
    """Give mean scores from sums of scores by their number."""
    with np.errstate(invalid="ignore"):  # no item at all
        means: Floats = sums / (counts / items)
    return means


@dataclass(frozen=True, slots=True)
class Ranking:
    """From tallies to features; ``weights`` has a row for the ranks, the scores by their number, what else to sum."""

    weights: Floats
    kinds: FeatureKinds
    frequencies: Frequencies

    @property
    def items(self) -> int:
        return len(self.weights[0])

    def of(self, found: dict[Field, FieldTally]) -> tuple[Ranked, Occurrences]:
        """Give the features by rising p, and where they are: only those whose places were kept, and no pairs."""
        singles, places = self._singles(found)
        shown = self._often_enough(singles.counts) & ~np.isnan(singles.p_values)
        numbers = [of_number for field, tally in found.items() for of_number in self._numerical(field, tally.numbers)]
        parts = [singles.only(shown), *(of_number for of_number, _ in numbers)]
        if self.kinds.cartesian:
            parts.append(self._pairs(singles, shown, places))
        every = self._joined(parts)
        order = np.argsort(every.p_values, kind="stable")
        alone = places.only(np.flatnonzero(shown), len(singles.names))
        first = int(shown.sum())
        of_numbers = (Occurrences.of(items, first + n) for n, (_, items) in enumerate(numbers))
        return every.reordered(order), Occurrences.joined([alone, *of_numbers]).only(order, len(order))

    def _singles(self, found: dict[Field, FieldTally]) -> tuple[Ranked, Occurrences]:
        """Give the frequent features of all fields, and where they are."""
        parts: list[Ranked] = []
        places: list[Occurrences] = []
        offset = 0
        for field, of_field in found.items():
            for tally in of_field.tallies:
                features, place = self._features(field, tally)
                parts.append(features)
                places.extend(_placed(owners, place[codes], offset) for owners, codes in tally.places)
                offset += len(features.names)
        return self._joined(parts), Occurrences.joined(places)

    def _often_enough(self, counts: Integers) -> Truths:
        least = self.frequencies.least
        return np.logical_and(counts >= least, self.items - counts >= least)

    def _tested(self, names: list[str], counts: Integers, sums: Floats) -> Ranked:
        """Test features by their rank sums."""
        z = rank_sum_z(counts, sums[0], self.items)
        with np.errstate(invalid="ignore"):  # all scores tie
            tied = z * tie_correction(self.weights[0])
        return Ranked(names, counts, sums, p_of(z), p_of(np.where(np.isnan(tied), z, tied)))

    def _features(self, field: Field, tally: Tally) -> tuple[Ranked, Integers]:
        """Give the frequent features of a tally by name, and each code's place among them (-1 for none)."""
        tokens = list(tally.codes)
        frequent = np.flatnonzero(tally.figures[0] >= self.frequencies.least)  # a rarer one is in no frequent pair
        codes = sorted(frequent.tolist(), key=tokens.__getitem__)
        place = np.full(len(tokens), -1)
        place[codes] = np.arange(len(codes))
        figures = tally.figures[:, codes]
        prefix = f"{field}:"
        names = [prefix + tokens[code] for code in codes]
        return self._tested(names, figures[0].astype(np.int64), figures[1:]), place

    def _numerical(self, field: Field, numbers: Numbers) -> Iterator[tuple[Ranked, Integers]]:
        """Give the feature that a field's numbers, or else its lengths, make, and the items at the worse end.

        Its name says which end is worse.
        """
        owners = np.array(numbers.items, np.int64)
        ranks = self.weights[0, owners]
        column = numbers.lengths if numbers.values is None else numbers.values
        values = np.array(column, np.float64)
        z = kendall_z(ranks, values)
        if math.isnan(z):
            return
        worse_when_small = z > 0
        # Where values tie, GEval takes the better items at the small end, the worse ones at the great end.
        best_first = np.argsort(ranks, kind="stable")[::-1]
        ascending = best_first[np.argsort(values[best_first], kind="stable")]
        extreme = owners[(ascending if worse_when_small else ascending[::-1])[: len(values) // 4]]
        name = f"{field}:={'#' if numbers.values is None else ''}{'-' if worse_when_small else '+'}"
        p = np.array([2 * normal_cdf(-abs(z))])
        with np.errstate(invalid="ignore"):  # opposite infinities
            sums = self.weights[:, extreme].sum(axis=1, keepdims=True)
        yield Ranked([name], np.array([len(extreme)]), sums, p, p), extreme

    def _pairs(self, alone: Ranked, shown: Truths, places: Occurrences) -> Ranked:
        """Give the pairs of frequent features whose p is below that of either one, where that is shown."""
        bound = np.where(shown, alone.p_values, np.inf)

        def wanted(pairs: Pairs) -> Truths:
            p = p_of(rank_sum_z(pairs.counts, pairs.sums[0], self.items))
            below = np.logical_and(p < bound[pairs.first], p < bound[pairs.second])
            return np.logical_and(self._often_enough(pairs.counts), below)

        of_frequent = (alone.counts >= self.frequencies.cartesian)[places.features]
        pairs = count_pairs(places.items[of_frequent], places.features[of_frequent], self.weights, wanted)
        couples = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        names = [f"{alone.names[a]}{BETWEEN_FEATURES}{alone.names[b]}" for a, b in couples]
        return self._tested(names, pairs.counts, pairs.sums)

    def _joined(self, parts: Sequence[Ranked]) -> Ranked:
        return Ranked(
            [name for part in parts for name in part.names],
            np.concatenate([np.zeros(0, np.int64), *(part.counts for part in parts)]),
            np.concatenate([np.zeros((len(self.weights), 0)), *(part.sums for part in parts)], axis=1),
            np.concatenate([np.zeros(0), *(part.p_values for part in parts)]),
            np.concatenate([np.zeros(0), *(part.tied_p_values for part in parts)]),
        )


def _placed(owners: Integers, places: Integers, offset: int) -> Occurrences:
    """Give the items and features that are among the frequent ones, the features counted from ``offset``."""
    frequent = places >= 0
    return Occurrences(owners[frequent], places[frequent] + offset)
