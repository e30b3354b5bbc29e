"""The ranking of features by rank tests: from the counts of a tally to the features that go with bad scores.

In this order: Kendall's tau-b, for features that are numbers; the Mann-Whitney U test of many features at once; how
much the score would gain if a feature's lines were no worse than the others; the Ranking, by rising p.
:mod:`geval_py.explaining.tally` counts the features.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from geval_py.explaining.occurrences import Occurrences, Pairs, count_pairs
from geval_py.explaining.significance import NORMAL_QUANTILE, Array, Flags, Integers, normal_cdf, t_quantile
from geval_py.explaining.tally import number_features
from geval_py.reading.features import BETWEEN_FEATURES, FeatureKinds, Field
from geval_py.scoring.kernel import backends

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geval_py.explaining.occurrences import Crossed
    from geval_py.explaining.tally import FieldTally, Numbers, Parts, Tally
    from geval_py.scoring.kernel.tokens import TokenTable


EQUAL_DIGITS = 12  # scores that agree in so many significant digits are tied
LEAST_SCORE = 1e-12  # a smaller score counts as 0


def kendall_z(x: Array, y: Array) -> float:
    """Compute Kendall's rank correlation with ties (tau-b) of two aligned columns, as a z-score.

    NaN for fewer than two rows or no variance. Source: M. G. Kendall, Rank Correlation Methods, 1970, chapter 4; the
    variance under ties is the one that scipy.stats and GEval use.
    """
    n = len(x)
    if n < 2:
        return math.nan
    _, x_place = np.unique(x, return_inverse=True)
    _, y_place = np.unique(y, return_inverse=True)
    order = np.lexsort((y_place, x_place))
    x_ties, y_ties = np.bincount(x_place), np.bincount(y_place)
    if n in (x_ties[0], y_ties[0]):  # no variance, but for rounding
        return math.nan
    both = np.unique(x_place * np.int64(n) + y_place, return_counts=True)[1]
    pairs = n * (n - 1) // 2
    discordant = count_inversions(y_place[order])
    concordant = pairs - discordant - _pairs(x_ties) - _pairs(y_ties) + _pairs(both)
    variance = (_spread(np.array([n])) - _spread(x_ties) - _spread(y_ties)) / 18
    variance += 2 * _pairs(x_ties) * _pairs(y_ties) / (n * (n - 1))
    if n > 2:
        variance += _triples(x_ties) * _triples(y_ties) / (9 * n * (n - 1) * (n - 2))
    return (concordant - discordant) / math.sqrt(variance) if variance > 0 else math.nan


def _pairs(ties: Integers) -> int:
    return sum(t * (t - 1) // 2 for t in ties.tolist())


def _triples(ties: Integers) -> int:
    return sum(t * (t - 1) * (t - 2) for t in ties.tolist())


def _spread(ties: Integers) -> int:
    return sum(t * (t - 1) * (2 * t + 5) for t in ties.tolist())


def count_inversions(places: Integers) -> int:
    """Count the pairs in the wrong order, by a merge sort of all blocks of one width at a time.

    ``places`` are whole numbers from 0.

    >>> count_inversions(np.array([2, 0, 1, 1]))
    3
    """
    length = 1 << max(len(places) - 1, 0).bit_length()
    beyond = int(places.max(initial=0)) + 1
    values = np.concatenate([places, np.full(length - len(places), beyond)]).astype(np.int64)
    inversions, width = 0, 1
    while width < length:
        blocks = values.reshape(-1, 2 * width)
        apart = blocks + np.arange(len(blocks))[:, None] * (beyond + 1)  # so that one search serves all blocks
        left, right = apart[:, :width].ravel(), apart[:, width:].ravel()
        not_greater = np.searchsorted(left, right, side="right")
        ends = np.repeat((np.arange(len(blocks)) + 1) * width, width)
        inversions += int((ends - not_greater).sum())
        values = np.sort(blocks, axis=1).ravel()
        width *= 2
    return inversions


# The Mann-Whitney U test of many features at once


def rank_scores(scores: Sequence[float], *, greatest_first: bool) -> Array:
    """Rank scores from 1, the greatest or the smallest first; tied scores share the mean rank.

    Scores are tied if they are equal to 12 significant digits, or both nearer to 0 than 1e-12: any difference is
    rounding noise. NaN is not allowed.
    """
    rounded = np.array(scores, np.float64)
    order = np.argsort(rounded)
    with np.errstate(invalid="ignore"):  # inf - inf
        close = ~(np.diff(rounded[order]) > 10.0 ** (2 - EQUAL_DIGITS) * np.abs(rounded[order[1:]]))
    is_near = np.abs(rounded) < 2 * LEAST_SCORE
    is_near[order[:-1][close]] = is_near[order[1:][close]] = True
    near = np.flatnonzero(is_near)
    # Rounding is slow, and ties no others; many of these are equal, such as the scores of lines without a guess.
    found, of_near = np.unique(rounded[near], return_inverse=True)
    rounded[near] = np.array([float(f"{score:.{EQUAL_DIGITS - 1}e}") for score in found.tolist()])[of_near]
    rounded[np.abs(rounded) < LEAST_SCORE] = 0.0
    _, place, tied = np.unique(-rounded if greatest_first else rounded, return_inverse=True, return_counts=True)
    mean_ranks: Array = np.cumsum(tied) - (tied - 1) / 2
    return mean_ranks[place]


def tie_correction(ranks: Array) -> float:
    """Return the factor that corrects z for tied ranks: 1 without ties, inf if all are tied."""
    items = len(ranks)
    tied = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    left = items + 1 - float((tied**3 - tied).sum()) / max(items * (items - 1), 1)
    return float(np.sqrt((items + 1) / left)) if left > 1e-9 * items else np.inf


def rank_sum_z(counts: Integers | Array, rank_sums: Array, items: int) -> Array:
    """Compute z of features from the number of their items and their rank sums; NaN for a feature of all items."""
    counts = counts.astype(np.float64)  # millions of items cubed are too many for 64 bits
    others = items - counts
    u = rank_sums - counts * (counts + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        z: Array = (u - counts * others / 2) / np.sqrt(counts * others * (items + 1) / 12)
    return z


def p_of(z: Array) -> Array:
    """Return the probability that z is at most as great, for each z."""
    places: Array = -z / math.sqrt(2)
    return np.fromiter(map(math.erfc, places.tolist()), np.float64, len(z)) / 2  # as normal_cdf


# The gain: how much better the score would be if a feature's lines were no worse than the others


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of all items, in nats, and the weights to sum over a feature's items to compute its gain.

    Sums are of losses minus the mean loss, so that squares lose no digits; infinite losses stay infinite.
    """

    losses: Array

    @property
    def centre(self) -> float:
        """The mean loss, or 0 if it is infinite."""
        mean = float(self.losses.mean()) if len(self.losses) else 0.0
        return mean if np.isfinite(mean) else 0.0

    @property
    def weights(self) -> Array:
        """The two rows to be summed: the losses and their squares, each divided by the number of items."""
        apart = self.losses - self.centre
        return np.array([apart, apart**2]) / max(len(apart), 1)

    def columns(self, counts: Array, sums: Array, crossed: Crossed | None) -> dict[str, Array]:
        """Compute the features' perplexity, exp of the mean loss, and their gain with its 95 % interval.

        ``sums`` are sums of the weights. The interval is by documents if features are ``crossed`` with them. A gain
        with an infinite loss is NaN.
        """
        items = len(self.losses)
        share = counts / items
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            perplexity = np.exp(self.centre + sums[0] / share)
            mean_of_others = (self.weights[0].sum() - sums[0]) / (1 - share)
            gain = sums[0] - share * mean_of_others
            if crossed is None:
                half = NORMAL_QUANTILE * self._error(share, sums, mean_of_others, gain)
            else:
                half = t_quantile(crossed.documents.count - 1) * self._error_by_document(
                    crossed, share, mean_of_others, gain
                )
            ends = (gain, gain - half, gain + half)
            falls = [np.where(np.isfinite(gain) & np.isfinite(half), -np.expm1(-end), np.nan) for end in ends]
        return {"perplexity": perplexity} | dict(zip(("gain", "gain_low", "gain_high"), falls, strict=True))

    def _error(self, share: Array, sums: Array, mean_of_others: Array, gain: Array) -> Array:
        """Compute the standard error of gains in nats: each item adds what is left of it when the gain is taken."""
        others, squares = 1 - share, self.weights[1].sum()
        on = mean_of_others + gain
        variance_on = sums[1] - 2 * on * sums[0] + share * on**2
        spread_of_others = squares - sums[1] - others * mean_of_others**2
        variance = variance_on + (share / others) ** 2 * spread_of_others + others * gain**2
        error: Array = np.sqrt(np.maximum(variance, 0) / len(self.losses))
        return error

    def _error_by_document(self, crossed: Crossed, share: Array, mean_of_others: Array, gain: Array) -> Array:
        """Compute the same from what documents add, which is A times their losses plus B times their number of items.

        On items of the feature, A and B are 1 and -(mean_of_others + gain), else as below.
        """
        apart, of_line = self.losses - self.centre, crossed.documents.of_line
        documents = crossed.documents.count
        sizes = np.bincount(of_line, minlength=documents).astype(np.float64)
        losses = np.bincount(of_line, apart, documents)
        a = -share / (1 - share)
        b = -a * mean_of_others - gain
        features, counts, on = crossed.features, crossed.counts, crossed.sums(apart)
        more = (1 - a[features]) * on - (mean_of_others + gain + b)[features] * counts
        usual = a[features] * losses[crossed.document] + b[features] * sizes[crossed.document]
        squares = a**2 * (losses @ losses) + 2 * a * b * (losses @ sizes) + b**2 * (sizes @ sizes)
        squares += np.bincount(features, more * (2 * usual + more), len(share))
        error: Array = np.sqrt(np.maximum(squares, 0) * documents / (documents - 1)) / len(apart)
        return error


# The ranking, by rising p


@dataclass(frozen=True, slots=True)
class RankedPlaces:
    """Where the ranked features occur.

    ``parts`` are occurrences of features, each part with the number of its features; these are numbered on from part
    to part. ``numbers`` are the numbers of the ranked features, in the order of the ranking.
    """

    parts: Sequence[tuple[Occurrences, int]]
    numbers: Integers

    def only(self, wanted: Integers) -> Occurrences:
        """Return the occurrences of the ranked features at some places, numbered from 0."""
        sizes = [size for _, size in self.parts]
        place = np.full(sum(sizes), -1)
        place[self.numbers[wanted]] = np.arange(len(wanted))
        ends = np.cumsum(sizes)
        three = zip(self.parts, ends.tolist(), sizes, strict=True)
        return Occurrences.joined([of.renumbered(place[end - size : end]) for (of, _), end, size in three])

    def all(self) -> Occurrences:
        """Return the occurrences of all ranked features, which have their places as numbers."""
        return self.only(np.arange(len(self.numbers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequencies:
    """The least number of items with a feature, and without it; for features of pairs, ``least_cartesian``."""

    least: int = 1
    least_cartesian: int | None = None

    @property
    def cartesian(self) -> int:
        return self.least if self.least_cartesian is None else self.least_cartesian


@dataclass(frozen=True, slots=True)
class Names:
    """Names of features, made from a table of tokens when they are asked for: millions would take much memory.

    ``tables`` are the tables with what precedes their tokens in names; a feature is a ``token`` in one ``table``.
    """

    tables: tuple[tuple[str, TokenTable], ...]
    table: NDArray[np.int32]
    token: Integers

    @classmethod
    def of(cls, prefix: str, tokens: TokenTable, numbers: Integers) -> Names:
        """Return the names of some tokens of a table."""
        return cls(((prefix, tokens),), np.zeros(len(numbers), np.int32), numbers)

    @classmethod
    def listed(cls, names: Iterable[str]) -> Names:
        """Return names that are given."""
        tokens = backends.TokenTable()
        return cls.of("", tokens, np.array(number_features(tokens, names), np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Names]) -> Names:
        """Join names."""
        none = np.zeros(0, np.int32)
        starts = accumulate((len(part.tables) for part in parts), initial=0)
        return cls(
            tuple(table for part in parts for table in part.tables),
            np.concatenate([none, *(part.table + start for part, start in zip(parts, starts, strict=False))]),
            np.concatenate([none.astype(np.int64), *(part.token for part in parts)]),
        )

    def __len__(self) -> int:
        return len(self.token)

    def at(self, places: Integers | slice) -> Names:
        """Return the names at some places, in this order."""
        return Names(self.tables, self.table[places], self.token[places])

    def texts(self) -> list[str]:
        """Return the names."""
        texts = np.empty(len(self), object)
        for number in np.unique(self.table).tolist():
            prefix, tokens = self.tables[number]
            places = np.flatnonzero(self.table == number)
            texts[places] = [prefix + token for token in tokens.names(array("q", self.token[places].tobytes()))]
        names: list[str] = texts.tolist()
        return names


@dataclass(frozen=True, slots=True)
class Ranked:
    """Features: the number of items of each, the sums of these items' weights, and p, without and with ties.

    ``sums`` has a row for each weight: ranks, scores divided by the number of items, and any further weights. The
    items of a feature that is a number (``are_numbers``) are those at its worse end; its p is two-sided.
    """

    names: Names
    counts: Integers
    sums: Array
    p_values: Array
    tied_p_values: Array
    are_numbers: Flags

    def __len__(self) -> int:
        return len(self.names)

    def means(self, items: int) -> Array:
        """Return the mean scores."""
        with np.errstate(invalid="ignore"):  # no item at all
            means: Array = self.sums[1] / (self.counts / items)
        return means

    def at(self, places: Integers) -> Ranked:
        """Return the features at some places, in this order."""
        columns = (self.counts[places], self.sums[:, places], self.p_values[places], self.tied_p_values[places])
        return Ranked(self.names.at(places), *columns, self.are_numbers[places])


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks tallied features; ``weights`` has rows of ranks, of scores divided by their number, and further ones.

    What was tallied are ``parts`` of the weights, whose sums are exact.
    """

    weights: Array
    parts: Parts
    kinds: FeatureKinds
    frequencies: Frequencies

    @property
    def items(self) -> int:
        return len(self.weights[0])

    def of(self, found: dict[Field, FieldTally]) -> tuple[Ranked, RankedPlaces]:
        """Return the features by rising p, and the occurrences of single features whose places were kept."""
        singles, places = self._singles(found)
        shown = self._often_enough(singles.counts) & ~np.isnan(singles.p_values)
        numbers = [of_number for field, tally in found.items() for of_number in self._numerical(field, tally.numbers)]
        shown_places = np.flatnonzero(shown)
        parts = [singles if shown.all() else singles.at(shown_places), *(of_number for of_number, _ in numbers)]
        if self.kinds.cartesian:
            every_place = RankedPlaces(places, np.arange(len(singles))).all()
            parts.append(self._pairs(singles, shown, every_place))
        features = len(singles)
        del singles  # a million features take 60 MB
        every = self._joined(parts)
        del parts
        order = np.argsort(every.p_values, kind="stable")
        of_numbers = [(Occurrences(items, np.zeros(len(items), np.int64)), 1) for _, items in numbers]
        of_pairs = (Occurrences.joined([]), len(order) - len(shown_places) - len(numbers))
        ids = np.concatenate([shown_places, np.arange(features, features + len(order) - len(shown_places))])[order]
        return every.at(order), RankedPlaces([*places, *of_numbers, of_pairs], ids)

    def _singles(self, found: dict[Field, FieldTally]) -> tuple[Ranked, list[tuple[Occurrences, int]]]:
        """Return the frequent features of all fields, and the occurrences of each part of so many features."""
        parts: list[Ranked] = []
        places: list[tuple[Occurrences, int]] = []
        of_items = np.ascontiguousarray(self.parts.rows.T)
        for field, of_field in found.items():
            for tally in of_field.tallies:
                features, occurrences = self._features(field, tally, of_items, kept=of_field.keep)
                parts.append(features)
                places.append((occurrences, len(features.names)))
        return self._joined(parts), places

    def _often_enough(self, counts: Integers) -> Flags:
        least = self.frequencies.least
        return np.logical_and(counts >= least, self.items - counts >= least)

    def _tested(self, names: Names, counts: Integers, sums: Array) -> Ranked:
        """Test features by their rank sums."""
        z = rank_sum_z(counts, sums[0], self.items)
        correction = tie_correction(self.weights[0])
        with np.errstate(invalid="ignore"):  # all scores tie
            tied = z * correction
        p = p_of(z)
        tied_p = p if correction == 1 else p_of(np.where(np.isnan(tied), z, tied))
        return Ranked(names, counts, sums, p, tied_p, np.zeros(len(names), np.bool_))

    def _features(self, field: Field, tally: Tally, of_items: Array, *, kept: bool) -> tuple[Ranked, Occurrences]:
        """Return the frequent features of a tally, sorted by name, and their occurrences, if these are kept.

        ``of_items`` are the parts of the weights, a row for each item.
        """
        tokens, occurrences = tally.tokens, tally.occurrences
        counts = np.bincount(occurrences.features, minlength=len(tokens)) if kept else tally.figures[0]
        frequent = np.flatnonzero(counts >= self.frequencies.least)  # rarer ones are in no frequent pair
        numbers = np.array(tokens.sorted(array("q", frequent.tobytes())), np.int64)
        occurrences = occurrences.only(numbers, len(tokens))
        counts = counts[numbers].astype(np.int64)
        sums = occurrences.sums_of_rows(of_items, len(numbers)) if kept else tally.take(numbers)[1:]
        names = Names.of(f"{field}:{tally.prefix}", tokens, numbers)
        return self._tested(names, counts, self.parts.sums(sums)), occurrences

    def _numerical(self, field: Field, numbers: Numbers) -> Iterator[tuple[Ranked, Integers]]:
        """Yield the feature of a field's numbers, or else of its lengths, and the items at the worse end.

        The feature's name says which end is worse.
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
        yield Ranked(Names.listed([name]), np.array([len(extreme)]), sums, p, p, np.ones(1, np.bool_)), extreme

    def _pairs(self, alone: Ranked, shown: Flags, places: Occurrences) -> Ranked:
        """Return the pairs of frequent features whose p is below the p of either feature that is shown."""
        bound = np.where(shown, alone.p_values, np.inf)

        def wanted(pairs: Pairs) -> Flags:
            p = p_of(rank_sum_z(pairs.counts, pairs.sums[0], self.items))
            below = np.logical_and(p < bound[pairs.first], p < bound[pairs.second])
            return np.logical_and(self._often_enough(pairs.counts), below)

        of_frequent = (alone.counts >= self.frequencies.cartesian)[places.features]
        pairs = count_pairs(places.items[of_frequent], places.features[of_frequent], self.weights, wanted)
        couples = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        names = alone.names.texts()
        joined = Names.listed(f"{names[a]}{BETWEEN_FEATURES}{names[b]}" for a, b in couples)
        return self._tested(joined, pairs.counts, pairs.sums)

    def _joined(self, parts: Sequence[Ranked]) -> Ranked:
        if len(parts) == 1:
            return parts[0]
        return Ranked(
            Names.joined([part.names for part in parts]),
            np.concatenate([np.zeros(0, np.int64), *(part.counts for part in parts)]),
            np.concatenate([np.zeros((len(self.weights), 0)), *(part.sums for part in parts)], axis=1),
            np.concatenate([np.zeros(0), *(part.p_values for part in parts)]),
            np.concatenate([np.zeros(0), *(part.tied_p_values for part in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(part.are_numbers for part in parts)]),
        )
