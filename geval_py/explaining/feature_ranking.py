"""The ranking of features by rank tests: from occurrences to the features that go with bad scores.

In this order: the ranking, by rising p; Kendall's tau-b, for features that are numbers; the Mann-Whitney U test of
many features at once, also among the items of one document; how much the score would gain if a feature's items were
no worse than the others; the few features that together explain the bad items.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from geval_py.explaining.documents import Documents
from geval_py.explaining.features import FieldFeatures, KindFeatures, Occurrences, check_number, each_pairs
from geval_py.explaining.significance import (
    LEVEL,
    NORMAL_QUANTILE,
    dot,
    mean_of,
    normal_cdf,
    slices,
    sum_of,
    t_quantile,
)
from geval_py.explaining.statistics import centred_ranks, spread_of_mean, sums_by
from geval_py.reading.features import (
    BETWEEN_FEATURES,
    BETWEEN_TOKENS,
    DOCUMENT_NAMES,
    FIELD_NUMBER,
    OUTPUT,
    SHAPE,
    Field,
    columns_named,
)
from geval_py.scoring.kernel import backends
from geval_py.scoring.metrics import regression
from geval_py.scoring.metrics.base import Array, Flags, Integers, Places, exp

EQUAL_DIGITS = 12  # scores that agree in so many significant digits are tied
OCCURRENCES_AT_ONCE = 1 << 20
MAX_PAIRS = 10_000_000  # as many take 2 GB
MIN_SCORE = 1e-12  # a smaller score counts as 0


@dataclass(frozen=True)
class Names:
    """Names of ``features``, made when they are asked for: those of millions take much memory.

    The first features are the tokens of ``kinds``, each a prefix, a table and places in it; then come the ``others``.
    """

    kinds: Sequence[tuple[str, backends.TokenTable, Places]]
    others: Sequence[str]
    features: Integers | Places

    def __len__(self) -> int:
        return len(self.features)

    def at(self, places: Integers | slice) -> Names:
        """Return the names at some places, in this order."""
        return Names(self.kinds, self.others, self.features[places])

    def texts(self) -> list[str]:
        """Return the names."""
        names, before = np.empty(len(self.features), object), 0
        for prefix, table, tokens in self.kinds:
            own = (before <= self.features) & (self.features < before + len(tokens))
            chosen = tokens[self.features[own] - before].astype(np.int64)
            names[own] = [prefix + token for token in table.names(array("q", chosen.tobytes()))]
            before += len(tokens)
        own = before <= self.features
        names[own] = [self.others[place] for place in (self.features[own] - before).tolist()]
        texts: list[str] = names.tolist()
        return texts


@dataclass(frozen=True)
class Ranked:
    """Features by rising p, and the occurrences of all features: aligned ``items`` and ``features``.

    The numbers of features are those in ``names``, and ``all_counts`` has the number of items of each. First come
    tokens, then ``numbers``, whose items are those at their worse end, and whose p is two-sided, then pairs.
    """

    names: Names
    p_values: Array
    items: Places
    features: Places
    all_counts: Integers
    numbers: range

    @property
    def are_numbers(self) -> Flags:
        """Whether each feature is a number."""
        return (self.names.features >= self.numbers.start) & ~self.are_pairs

    @property
    def are_pairs(self) -> Flags:
        """Whether each feature is a pair."""
        return self.names.features >= self.numbers.stop

    def at(self, places: Integers) -> Ranked:
        """Return the features at some places, in this order."""
        return replace(self, names=self.names.at(places), p_values=self.p_values[places])

    def occurrences(self) -> tuple[Places, Places]:
        """Return the occurrences of these features: aligned items, and places of features."""
        place = np.full(len(self.all_counts), -1, np.int32)
        place[self.names.features] = np.arange(len(self.names), dtype=np.int32)
        features = place[self.features]
        kept = np.flatnonzero(features >= 0)  # which, unlike a choice by flags, has no branch to predict
        return self.items[kept], features[kept]

    def sums(self, values: Array) -> Array:
        """Sum the values of the items of each feature; ``values`` has one for each item."""
        return sums_of(self.features, values, self.items, len(self.all_counts))[self.names.features]

    def counts(self) -> Integers:
        """Count the items of each feature."""
        return self.all_counts[self.names.features]


def sums_of(features: Places, values: Array, items: Places, count: int) -> Array:
    """Sum the values of the items of each of ``count`` features, by aligned occurrences, and few at once."""
    sums = np.zeros(count)
    for part in slices(len(items), OCCURRENCES_AT_ONCE):
        sums += np.bincount(features[part], values[items[part]], count)
    return sums


def rank(occurrences: Occurrences, ranks: Array, least: int, least_of_pair: int | None) -> Ranked:
    """Rank features by how surely they go with the first ranks, by rising p; ``ranks`` has one for each item.

    Features, also of pairs, are on at least ``least`` items, and not on at least as many; a pair's single features
    are on ``least_of_pair`` items. Of pairs, those are kept whose p is below that of either feature that is shown. A
    feature whose p is not defined is left out. Features with equal p are in the order of fields, kinds and names.
    """
    total, singles, others, p_of_numbers = len(ranks), 0, list[str](), list[float]()
    kinds: list[tuple[str, backends.TokenTable, Places]] = []
    none = np.zeros(0, np.int32)
    all_items: list[Places] = [none]
    all_features: list[Places] = [none]
    most = total - (1 if occurrences.kinds.cartesian else least)
    fields = sorted(occurrences.by_field.items())
    for _, own in fields:
        for of_kind in own.kinds:
            tokens = _take_frequent(of_kind, least, most, singles)
            all_items += of_kind.items
            all_features += of_kind.numbers
            of_kind.items.clear()
            of_kind.numbers.clear()
            kinds.append((of_kind.prefix, of_kind.table, tokens))
            singles += len(tokens)
    for name, p, extreme in _numbers(fields, ranks):
        all_items.append(extreme)
        all_features.append(np.full(len(extreme), singles + len(others), np.int32))
        others.append(name)
        p_of_numbers.append(p)
    pairs = singles + len(others)  # the first pair
    items = np.concatenate(all_items)
    del all_items  # as large as these
    features = np.concatenate(all_features)
    del all_features

    def test(rank_sums: Array | Integers, counts: Integers) -> Array:
        """Return p of features; NaN if it is not defined, or if they are on too few items, or too many."""
        enough = (counts >= least) & (total - counts >= least)
        return np.where(enough, p_of(rank_sum_z(counts, rank_sums, total)), np.nan)

    counts = np.zeros(pairs, np.int64)
    np.add.at(counts, features, 1)
    # Most features are on one item: p is computed once for each item.
    item = np.zeros(pairs, np.int32)
    item[features] = items
    p_values = test(ranks, np.ones(total, np.int64))[item]
    several = np.flatnonzero(counts != 1)
    p_values[several] = test(sums_of(features, ranks, items, pairs)[several], counts[several])
    del item, several
    p_values[singles:] = p_of_numbers
    if occurrences.kinds.cartesian:
        bound = np.fmin(p_values, np.inf)  # of NaN, inf
        in_pairs = (features < singles) & (counts[features] >= (least_of_pair or least))
        all_items, all_features, all_p_values = [items], [features], [p_values]
        names = Names(kinds, (), np.arange(singles)).texts()
        for first, second, number, owners, pair in each_pairs(items[in_pairs], features[in_pairs]):
            p_of_part = test(np.bincount(pair, ranks[owners], len(number)), number)
            kept = p_of_part < np.minimum(bound[first], bound[second])
            of_kept = kept[pair]
            all_items.append(owners[of_kept])
            numbers = np.cumsum(kept) - 1 + singles + len(others)
            all_features.append(numbers[pair[of_kept]].astype(np.int32))
            all_p_values.append(p_of_part[kept])
            couples = zip(first[kept].tolist(), second[kept].tolist(), strict=True)
            others += [f"{names[one]}{BETWEEN_FEATURES}{names[other]}" for one, other in couples]
            check_number(singles + len(others) - pairs, MAX_PAIRS, "to show")
        items, features = np.concatenate(all_items), np.concatenate(all_features)
        p_values = np.concatenate(all_p_values)
        counts = np.bincount(features, minlength=singles + len(others))
    order = np.argsort(p_values, kind="stable")[: np.count_nonzero(p_values >= 0)].astype(np.int32)
    return Ranked(Names(kinds, others, order), p_values[order], items, features, counts, range(singles, pairs))


def _take_frequent(of_kind: KindFeatures, least: int, most: int, first: int) -> Places:
    """Return the features on ``least`` to ``most`` items, by name, and leave only their occurrences.

    There, features are numbered from ``first`` in the order of names.
    """
    counts = of_kind.counts()
    frequent = np.flatnonzero((least <= counts) & (counts <= most))
    tokens = np.array(of_kind.table.sorted(array("q", frequent.tobytes())), np.int32)
    del counts, frequent
    place = np.full(len(of_kind.table), -1, np.int32)
    place[tokens] = np.arange(first, first + len(tokens), dtype=np.int32)
    for part, numbers in enumerate(of_kind.numbers):
        numbers = place[numbers]
        kept = np.flatnonzero(numbers >= 0)  # which, unlike a choice by flags, has no branch to predict
        of_kind.items[part], of_kind.numbers[part] = of_kind.items[part][kept], numbers[kept]
    return tokens


def _numbers(fields: Sequence[tuple[Field, FieldFeatures]], ranks: Array) -> Iterator[tuple[str, float, Places]]:
    """Yield the feature of each field's numbers, or else of its lengths: name, p, and the items at the worse end.

    The feature's name says which end is worse. A field of equal numbers has none.
    """
    for where, own in fields:
        if not own.texts:
            continue
        items, lengths, values = map(np.concatenate, zip(*own.texts, strict=True))
        are_numbers = not np.isnan(values).any()
        values = values if are_numbers else lengths.astype(np.float64)
        own_ranks = ranks[items]
        z = kendall_z(own_ranks, values)
        if math.isnan(z):
            continue
        # Where values tie, GEval takes the better items at the small end, the worse ones at the great end.
        best_first = np.argsort(own_ranks, kind="stable")[::-1]
        ascending = best_first[np.argsort(values[best_first], kind="stable")]
        extreme = items[(ascending if z > 0 else ascending[::-1])[: len(values) // 4]]
        yield f"{where}:={'' if are_numbers else '#'}{'-' if z > 0 else '+'}", 2 * normal_cdf(-abs(z)), extreme


def kendall_z(x: Array, y: Array) -> float:
    """Compute Kendall's rank correlation with ties (tau-b) of two aligned columns, as a z-score.

    NaN for fewer than two rows or no variance. Source: M. G. Kendall, Rank Correlation Methods, 1970, chapter 4; the
    variance under ties is the one that scipy.stats and GEval use.
    """
    n = len(x)
    x_place, y_place = (np.unique(column, return_inverse=True)[1] for column in (x, y))
    x_ties, y_ties = np.bincount(x_place).tolist(), np.bincount(y_place).tolist()
    if n in (x_ties[0], y_ties[0]):  # no variance, but for rounding
        return math.nan
    rows = np.sort(x_place * np.int64(n) + y_place)
    both = np.unique(rows, return_counts=True)[1].tolist()
    pairs, x_pairs, y_pairs, both_pairs = (
        sum(t * (t - 1) // 2 for t in ties) for ties in ([n], x_ties, y_ties, both)
    )
    whole, x_triples, y_triples = (sum(t * (t - 1) * (t - 2) for t in ties) for ties in ([n], x_ties, y_ties))
    # A merge sort of all blocks of one width at a time: as two halves are merged, a row of the left one moves by the
    # number of rows of the right one with which it is in the wrong order.
    length = 1 << (n - 1).bit_length()
    places = np.append(rows % n, np.full(length - n, n))
    discordant, width = 0, 1
    while width < length:
        blocks = places.reshape(-1, 2 * width)
        merged = np.argsort(blocks, axis=1, kind="stable")
        discordant += int(np.nonzero(merged < width)[1].sum()) - (width - 1) * length // 4
        places = np.take_along_axis(blocks, merged, axis=1)
        width *= 2
    concordant = pairs - discordant - x_pairs - y_pairs + both_pairs
    # t (t - 1) (2 t + 5) = 2 t (t - 1) (t - 2) + 9 t (t - 1)
    variance = (whole - x_triples - y_triples + 9 * (pairs - x_pairs - y_pairs)) / 9 + x_pairs * y_pairs / pairs
    variance += x_triples * y_triples / max(9 * whole, 1)
    return (concordant - discordant) / math.sqrt(variance) if variance > 0 else math.nan


# The Mann-Whitney U test of many features at once


def rank_scores(scores: Array, *, greatest_first: bool) -> Array:
    """Rank scores from 1, the greatest or the smallest first; tied scores share the mean rank.

    Scores are tied if they are equal to 12 significant digits, or both nearer to 0 than 1e-12: any difference is
    rounding noise. NaN is not allowed.
    """
    distinct, places = np.unique(scores, return_inverse=True)
    close = ~(np.diff(distinct) > 10.0 ** (2 - EQUAL_DIGITS) * np.abs(distinct[1:]))
    near = np.abs(distinct) < 2 * MIN_SCORE
    near[:-1] |= close
    near[1:] |= close
    # Rounding is slow, and ties no others.
    distinct[near] = [float(f"{score:.{EQUAL_DIGITS - 1}e}") for score in distinct[near].tolist()]
    distinct[np.abs(distinct) < MIN_SCORE] = 0.0
    return regression.ranks((-distinct if greatest_first else distinct)[places])


def rank_sum_z(counts: Integers | Array, rank_sums: Integers | Array, items: int) -> Array:
    """Compute z of features from the number of their items and their rank sums; NaN for a feature of all items."""
    counts = counts.astype(np.float64)  # millions of items cubed are too many for 64 bits
    others = items - counts
    u = rank_sums - counts * (counts + 1) / 2
    both = counts * others
    with np.errstate(divide="ignore", invalid="ignore"):
        z: Array = (u - both / 2) / np.sqrt(both * (items + 1) / 12)
    return z


def tied_p_values(ranked: Ranked, ranks: Array) -> Array:
    """Return p corrected for tied ranks, where not all are tied."""
    growth = tied_growth(ranks)
    if growth == 1:
        return ranked.p_values
    z = rank_sum_z(ranked.counts(), ranked.sums(ranks), len(ranks)) * growth
    return np.where(ranked.are_numbers, ranked.p_values, p_of(z))


def tied_growth(ranks: Array) -> float:
    """Return by what factor all z grow when they are corrected for tied ranks; 1 if all ranks tie, and z are 0."""
    items = len(ranks)
    tied = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    left = items + 1 - sum_of(tied**3 - tied) / max(items * (items - 1), 1)
    return math.sqrt((items + 1) / left) if left > 1e-9 * items else 1.0


def least_significant(occurrences: Occurrences, ranks: Array) -> int:
    """Return on how many items a token must be, and not be, so that it can be significant.

    The least p of a token on k items is that of the first k in rank, corrected for ties. It is significant if, times
    the number of tokens that are on k items or more and not on k or more, it is at most LEVEL. Rarer tokens are not
    tested, so no p is corrected for their number (Tarone, "A modified Bonferroni method for discrete data",
    Biometrics 46, 1990).
    """
    sizes = np.arange(1, len(ranks) + 1)
    of_kinds = [of_kind.counts() for own in occurrences.by_field.values() for of_kind in own.kinds]
    counts = np.concatenate([sizes[:0], *of_kinds])
    tested = len(counts) - np.searchsorted(np.sort(np.minimum(counts, len(ranks) - counts)), sizes)
    p_values = p_of(rank_sum_z(sizes, np.cumsum(np.sort(ranks)), len(ranks)) * tied_growth(ranks))
    return int(np.append(p_values * tested <= LEVEL, True).argmax()) + 1


def p_of(z: Array) -> Array:
    """Return the probability that z is at most as great, for each z."""
    # As normal_cdf; a buffer has its numbers one by one, where a list of millions would take much memory.
    return np.fromiter(map(math.erfc, (-z / math.sqrt(2)).data), np.float64, len(z)) / 2


# The items of documents


class OnDocuments(NamedTuple):
    """Features on documents: aligned ``features``, a ``document`` of each, and ``counts`` of its items with it.

    ``items`` are those of occurrences, and ``pair`` is the place of each occurrence's feature and document in the
    former; None if items are documents.
    """

    features: Integers | Places
    document: Integers | Places
    counts: Array
    items: Places
    pair: Integers | None

    @classmethod
    def of(cls, ranked: Ranked, documents: Documents) -> OnDocuments:
        """Count features on the documents of all items."""
        items, features = ranked.occurrences()
        document = documents.of_line.astype(np.int32)[items]
        if documents.are_lines:  # an item has a feature at most once
            return cls(features, document, np.broadcast_to(1.0, document.shape), items, None)
        keys = features * np.int64(documents.count) + document
        places, pair, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return cls(places // documents.count, places % documents.count, counts.astype(np.float64), items, pair)

    def sums(self, values: Array) -> Array | Integers:
        """Sum the values of a document's items with a feature."""
        own = values[self.items]
        return own if self.pair is None else np.bincount(self.pair, own, len(self.counts))


def p_values_by_document(ranked: Ranked, ranks: Array, documents: Documents) -> Array:
    """Compute p of features from the ranks of items, compared with those of the same document alone.

    In a document of n items, ranked among themselves, let r be the ranks minus their mean, divided by n + 1. If
    the feature does not matter, the sum of r over the m items with it has the variance m (n - m) / (n (n - 1))
    times the sum of all r^2 (van Elteren, "On the combination of independent two sample tests of Wilcoxon",
    1960). If documents differ more in what their lines with a feature are like, all variances are greater by the
    same factor, which is estimated from all features. NaN for pairs, and for a feature that fewer than two
    documents tell of.
    """
    on, features = OnDocuments.of(ranked, documents), len(ranked.names)
    of_line = documents.of_line
    sizes = sums_by(of_line)
    apart = centred_ranks(of_line * (len(ranks) + 1.0) + ranks)
    centred = (apart - (sums_by(of_line, apart) / sizes)[of_line]) / (sizes[of_line] + 1)
    squares = sums_by(of_line, centred**2) / np.maximum(sizes * (sizes - 1), 1)
    variances = on.counts * (sizes[on.document] - on.counts) * squares[on.document]
    tell = (variances > 0) & ~ranked.are_pairs[on.features]
    of_feature, variances, sums = on.features[tell], variances[tell], on.sums(centred)[tell]
    telling = np.bincount(of_feature, minlength=features)
    total, variance = (np.bincount(of_feature, column, features) for column in (sums, variances))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = sums - variances * (total / variance)[of_feature]
        z: Array = np.where(telling > 1, total / np.sqrt(variance), np.nan)
    degrees = int((telling[telling > 1] - 1).sum())
    excess = sum_of((left**2 / variances)[telling[of_feature] > 1]) / max(degrees, 1)
    p_values = p_of(z / math.sqrt(max(1.0, excess)))
    return np.where(ranked.are_numbers, np.minimum(2 * p_values, 1.0), p_values)


# The gain: how much better the score would be if a feature's lines were no worse than the others


def gains(ranked: Ranked, losses: Array, documents: Documents | None) -> dict[str, Array]:
    """Compute the features' perplexity, exp of the mean loss, and their gain with its 95 % interval.

    ``losses`` are those of all items, in nats. The interval is by ``documents``, if there are any. A gain
    with an infinite loss is NaN.

    When the gain is taken, each item adds what is left of it: on items with the feature its loss minus the mean of
    the others and minus the gain, else A times its loss plus B, as below. The interval comes from the sum of the
    squares of what items, or documents, add.
    """
    items, features = len(losses), len(ranked.names)
    mean = mean_of(losses) if items else 0.0
    centre = mean if np.isfinite(mean) else 0.0  # so that squares lose no digits
    apart = losses - centre
    each = documents or Documents("", np.arange(items), items)  # each item
    on, number = OnDocuments.of(ranked, each), each.count
    sizes, quantile = sums_by(each.of_line), NORMAL_QUANTILE
    if documents is not None:
        quantile = t_quantile(
            spread_of_mean(apart, documents.of_line).degrees if np.isfinite(apart).all() else number - 1
        )
    weights = 1 / (1 - sizes / items) if number > 1 else sizes  # CR2, as for a mean
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sums, share = ranked.sums(apart / items), ranked.counts() / items
        perplexity = exp(centre + sums / share)
        mean_of_others = ((apart / items).sum() - sums) / (1 - share)
        gain = sums - share * mean_of_others
        a = -share / (1 - share)
        b = -a * mean_of_others - gain
        totals, own = sums_by(each.of_line, apart), on.sums(apart)
        both = 2 * a * b * (weights * totals * sizes).sum()
        squares = a**2 * (weights * totals**2).sum() + both + b**2 * (weights * sizes**2).sum()
        for part in slices(len(on.features), OCCURRENCES_AT_ONCE):
            place, document, count = on.features[part], on.document[part], on.counts[part]
            more = (1 - a[place]) * own[part] - (mean_of_others + gain + b)[place] * count
            usual = a[place] * totals[document] + b[place] * sizes[document]
            squares += np.bincount(place, weights[document] * more * (2 * usual + more), features)
        half = quantile * np.sqrt(np.maximum(squares, 0)) / items
        ends = (gain, gain - half, gain + half)
        falls = [np.where(np.isfinite(gain) & np.isfinite(half), 1 - exp(-end), np.nan) for end in ends]
    return {"perplexity": perplexity} | dict(zip(("gain", "gain_low", "gain_high"), falls, strict=True))


# A few distinct features that together explain the bad items


_IDENTIFIERS = {*DOCUMENT_NAMES, "id", "lineid", "filename", "doc"}  # columns that name lines or documents
MIN_NEW = 1e-9  # share of a feature's variance: with less left, the chosen ones explain it fully
_NUMBER_SHAPE = re.compile(r"[9.]*9[9.]*(?:a\.?9+)?")  # of 0.5, -2.31 and 1e-05, for example


def select_distinct(
    badness: Array, ranked: Ranked, candidates: Integers, most: int | None = None
) -> tuple[Integers, list[float]]:
    """Choose at most ``most`` of the candidates, the one that explains most first.

    Returns their places among the ranked, and the share of the variance that is explained so far. ``badness`` has a
    finite number for each item: the greater, the worse. Features that go with less are not chosen.

    The ranked list is redundant: words on the same lines are bad together. A forward selection chooses features one
    by one: with the residual r of the losses after a regression on those before, and the part x' of a feature's 0s
    and 1s that they do not explain, the feature with the greatest

        z = x'.r / sqrt(s^2 |x'|^2),    s^2 = |r|^2 / (n - k - 1) after k features,

    until Phi(-z) is not below 0.05 over the number of candidates (Bonferroni). The regression is by Gram and Schmidt
    (Efroymson, "Multiple regression analysis", 1960; Hastie, Tibshirani and Friedman, "The Elements of Statistical
    Learning", 2009, section 3.3.2).
    """
    if not len(badness):
        return candidates[:0], []
    number, ranked = len(candidates), ranked.at(candidates)
    (items, features), counts = ranked.occurrences(), ranked.counts()
    residual = badness - badness.mean()
    whole = dot(residual, residual)
    left = counts * (1 - counts / len(badness))  # |x'|^2
    all_of_it = left
    usable = np.bincount(features, residual[items], number) > 0
    directions: list[Array] = []
    chosen: list[int] = []
    explained: list[float] = []
    while len(chosen) < min(number if most is None else most, number, len(badness) - 2):
        products = np.bincount(features, residual[items], number)
        new = usable & (left > MIN_NEW * all_of_it)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = dot(residual, residual) / (len(badness) - len(chosen) - 1)
            z = np.where(new, products / np.sqrt(variance * left), -np.inf)
        best = int(np.argmax(z))
        if not normal_cdf(-z[best]) < LEVEL / number:
            break
        direction = np.zeros(len(badness))
        direction[items[features == best]] = 1
        direction -= direction.mean()
        for earlier in directions * 2:  # twice: the first time leaves rounding noise
            direction = direction - dot(direction, earlier) * earlier
        direction /= math.sqrt(dot(direction, direction))
        directions.append(direction)
        residual = residual - dot(residual, direction) * direction
        left = left - np.bincount(features, direction[items], number) ** 2
        chosen.append(best)
        usable[best] = False
        explained.append(1 - dot(residual, residual) / whole)
    return candidates[chosen], explained


def is_hidden(name: str) -> bool:
    """Whether a feature is, or has, the id of a line or a document, or is a number of the output.

    >>> list(map(is_hidden, ("in<FileId>:gaz-117", "in<Year>:1881", "in<Year>:1881~~in<doc_id>:7", "out:0.5")))
    [True, False, True, True]
    """
    columns = re.findall(f"(?:^|{BETWEEN_FEATURES})in<(.*?)>:", name)
    return is_output_number(name) or bool(columns_named(_IDENTIFIERS, columns))


def is_output_number(name: str) -> bool:
    """Whether a feature is, or has, a number of the output: a probability, and no word.

    >>> [is_output_number(name) for name in ("out:0.5", "out:SHAPE:9.99", "out:the++0.5", "out:the", "exp:1901")]
    [True, True, True, False, False]
    """
    where, _, token = name.partition(":")
    if where != str(OUTPUT):
        return False
    number = _NUMBER_SHAPE if token.startswith(SHAPE) else FIELD_NUMBER
    return any(map(number.fullmatch, token.replace(SHAPE, "").split(BETWEEN_TOKENS)))
