"""The tests of features, and their gains: from occurrences to figures of each feature.

In this order: the Mann-Whitney U test of many features at once, Kendall's tau-b for features that are numbers, and
pairs of features; the test among the items of one document; how much the score would gain if a feature's items were
no worse than the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from geval_py.errors import MissingPackageError
from geval_py.explaining.documents import Documents
from geval_py.explaining.features import (
    OCCURRENCES_AT_ONCE,
    FeatureTable,
    Occurrences,
    check_number,
    pairs_on_items,
)
from geval_py.explaining.significance import NORMAL_QUANTILE, mean_of, slices, sum_of, t_quantile
from geval_py.explaining.statistics import spread_of_mean, sums_by
from geval_py.reading.features import (
    BETWEEN_FEATURES,
    BETWEEN_TOKENS,
    DOCUMENT_NAMES,
    FIELD_NUMBER,
    OUTPUT,
    SHAPE,
    columns_named,
)
from geval_py.scoring.metrics import regression
from geval_py.scoring.metrics.base import Array, Flags, Integers, Places, exp
from geval_py.version import installs

EQUAL_DIGITS = 12  # scores that agree in so many significant digits are tied
MAX_PAIRS = 10_000_000  # as many take 2 GB
MIN_CORRELATED = 3  # items of a field of numbers, for a p-value
MIN_SCORE = 1e-12  # a smaller score counts as 0


class FeatureTests(NamedTuple):
    """Features with their p-values, NaN if p is not defined, and the number of ``tests`` of features and pairs."""

    table: FeatureTable
    p_values: Array
    tests: int

    @property
    def are_numbers(self) -> Flags:
        """Whether each feature is a number."""
        flags = np.zeros(len(self.p_values), np.bool_)
        flags[self.table.numbers] = True
        return flags

    @property
    def are_pairs(self) -> Flags:
        """Whether each feature is a pair."""
        return np.arange(len(self.p_values)) >= self.table.numbers.stop


def p_values_of_features(
    occurrences: Occurrences, ranks: Array, least: int, least_of_pair: int | None
) -> FeatureTests:
    """Test how surely features go with the first ranks; ``ranks`` has one for each item.

    Features, also of pairs, are on at least ``least`` items, and not on at least as many; a pair's single features
    are on ``least_of_pair`` items. Of pairs, only those are returned whose p is below that of either feature. The
    order is that of fields, kinds and names, then come numbers, then pairs.
    """
    total, cartesian = len(ranks), occurrences.kinds.cartesian

    def p_values_of(counts: Integers, rank_sums: Integers | Array) -> Array:
        enough = (counts >= least) & (total - counts >= least)
        return np.where(enough, p_of(rank_sum_z(counts, rank_sums, total)), np.nan)

    table = occurrences.table(least, total - (1 if cartesian else least))
    counts, singles = table.counts(), len(table.names)
    p_values = p_values_of(counts, table.sums(ranks))
    if not (cartesian or occurrences.kinds.numerical):
        return FeatureTests(table, p_values, int(np.count_nonzero(p_values >= 0)))
    names, items, features = list(table.names), [table.items], [table.features]
    all_p_values = [p_values]
    for name, p_value, extreme in _numbers(occurrences, ranks):
        items.append(extreme)
        features.append(np.full(len(extreme), len(names), np.int32))
        all_p_values.append(np.array([p_value]))
        names.append(name)
    numbers, tests = range(singles, len(names)), int(np.count_nonzero(np.concatenate(all_p_values) >= 0))
    if cartesian:
        bound = np.fmin(p_values, np.inf)  # of NaN, inf
        in_pairs = np.flatnonzero(counts[table.features] >= (least_of_pair or least))
        pairs = pairs_on_items(table.items[in_pairs], table.features[in_pairs], singles)
        for first, second, counts_of_pairs, owners, pair in pairs:
            p_of_pairs = p_values_of(counts_of_pairs, np.bincount(pair, ranks[owners]))
            tests += int(np.count_nonzero(p_of_pairs >= 0))
            shown = np.flatnonzero(p_of_pairs < np.minimum(bound[first], bound[second]))
            feature_of_pair = np.full(len(second), -1, np.int32)
            feature_of_pair[shown] = np.arange(len(names), len(names) + len(shown))
            is_shown = feature_of_pair[pair] >= 0
            items.append(owners[is_shown])
            features.append(feature_of_pair[pair][is_shown])
            all_p_values.append(p_of_pairs[shown])
            names += [f"{names[first]}{BETWEEN_FEATURES}{names[place]}" for place in second[shown].tolist()]
            check_number(len(names) - numbers.stop, MAX_PAIRS, "to show")
    whole = FeatureTable(names, np.concatenate(items), np.concatenate(features), numbers)
    return FeatureTests(whole, np.concatenate(all_p_values), tests)


def _numbers(occurrences: Occurrences, ranks: Array) -> Iterator[tuple[str, float, Places]]:
    """Yield the feature of each field's numbers, or else of its lengths: name, p, and the items at the worse end.

    The p-value is that of Kendall's tau-b, two-sided. The feature's name says which end is worse. A field of equal
    numbers, or of two, has none. Raises MissingPackageError without SciPy.
    """
    if not occurrences.texts:
        return
    try:
        from scipy.stats import kendalltau  # which takes a second to import
    except ModuleNotFoundError as error:
        message = f"numerical features need scipy, of the extra text: {installs('text')}"
        raise MissingPackageError(message, package="scipy") from error
    for where, parts in sorted(occurrences.texts.items()):
        items, lengths, values = map(np.concatenate, zip(*parts, strict=True))
        are_numbers = not np.isnan(values).any()
        values = values if are_numbers else lengths
        ranks_of_items = ranks[items]
        if len(items) < MIN_CORRELATED:
            continue
        correlation, p_value = kendalltau(ranks_of_items, values, method="asymptotic")
        if math.isnan(p_value):
            continue
        # Where values tie, GEval takes the better items at the small end, the worse ones at the great end.
        best_first = np.argsort(ranks_of_items, kind="stable")[::-1]
        ascending = best_first[np.argsort(values[best_first], kind="stable")]
        extreme = items[(ascending if correlation > 0 else ascending[::-1])[: len(values) // 4]]
        yield f"{where}:={'' if are_numbers else '#'}{'-' if correlation > 0 else '+'}", p_value, extreme


def rank_scores(scores: Array, *, greatest_first: bool) -> Array:
    """Rank scores from 1, the greatest or the smallest first; tied scores share the mean rank.

    Scores are tied if they are equal to 12 significant digits, or both nearer to 0 than 1e-12: any difference is
    rounding noise. NaN is not allowed.
    """
    rounded = np.array([float(f"{score:.{EQUAL_DIGITS - 1}e}") for score in scores.tolist()])
    rounded[np.abs(rounded) < MIN_SCORE] = 0.0
    return regression.ranks(-rounded if greatest_first else rounded)


def rank_sum_z(counts: Integers | Array, rank_sums: Integers | Array, items: int) -> Array:
    """Compute z of features from the number of their items and their rank sums; NaN for a feature of all items."""
    counts = counts.astype(np.float64)  # millions of items cubed are too many for 64 bits
    others = items - counts
    u = rank_sums - counts * (counts + 1) / 2
    both = counts * others
    with np.errstate(divide="ignore", invalid="ignore"):
        z: Array = (u - both / 2) / np.sqrt(both * (items + 1) / 12)
    return z


def tied_p_values(tested: FeatureTests, ranks: Array) -> Array:
    """Return p corrected for tied ranks, where not all are tied."""
    items = len(ranks)
    tied = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    left = items + 1 - sum_of(tied**3 - tied) / max(items * (items - 1), 1)
    if left <= 1e-9 * items:
        return tested.p_values
    z = rank_sum_z(tested.table.counts(), tested.table.sums(ranks), items) * math.sqrt((items + 1) / left)
    return np.where(tested.are_numbers | np.isnan(tested.p_values), tested.p_values, p_of(z))


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
    def of(cls, table: FeatureTable, documents: Documents) -> OnDocuments:
        """Count features on the documents of all items."""
        items, features = table.items, table.features
        document = documents.of_line.astype(np.int32)[items]
        if documents.are_lines:  # an item has a feature at most once
            return cls(features, document, np.broadcast_to(1.0, document.shape), items, None)
        keys = features * np.int64(documents.count) + document
        places, pair, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return cls(places // documents.count, places % documents.count, counts.astype(np.float64), items, pair)

    def sums(self, values: Array) -> Array | Integers:
        """Sum the values of a document's items with a feature."""
        of_items = values[self.items]
        return of_items if self.pair is None else np.bincount(self.pair, of_items, len(self.counts))


def p_values_by_document(tested: FeatureTests, ranks: Array, documents: Documents) -> Array:
    """Compute p of features from the ranks of items, compared with those of the same document alone.

    In a document of n items, ranked among themselves, let r be the ranks minus their mean, divided by n + 1. If
    the feature does not matter, the sum of r over the m items with it has the variance m (n - m) / (n (n - 1))
    times the sum of all r^2 (van Elteren, "On the combination of independent two sample tests of Wilcoxon",
    1960). If documents differ more in what their lines with a feature are like, all variances are greater by the
    same factor, which is estimated from all features. NaN for pairs, and for a feature that fewer than two
    documents tell of.
    """
    on, features = OnDocuments.of(tested.table, documents), len(tested.p_values)
    of_line = documents.of_line
    sizes = sums_by(of_line)
    apart = regression.ranks(of_line * (len(ranks) + 1.0) + ranks)
    centred = (apart - (sums_by(of_line, apart) / sizes)[of_line]) / (sizes[of_line] + 1)
    squares = sums_by(of_line, centred**2) / np.maximum(sizes * (sizes - 1), 1)
    variances = on.counts * (sizes[on.document] - on.counts) * squares[on.document]
    tell = (variances > 0) & ~tested.are_pairs[on.features]
    of_feature, variances, sums = on.features[tell], variances[tell], on.sums(centred)[tell]
    telling = np.bincount(of_feature, minlength=features)
    total, variance = (np.bincount(of_feature, column, features) for column in (sums, variances))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = sums - variances * (total / variance)[of_feature]
        z: Array = np.where(telling > 1, total / np.sqrt(variance), np.nan)
    degrees = int((telling[telling > 1] - 1).sum())
    excess = sum_of((left**2 / variances)[telling[of_feature] > 1]) / max(degrees, 1)
    p_values = p_of(z / math.sqrt(max(1.0, excess)))
    p_values = np.where(tested.are_numbers, np.minimum(2 * p_values, 1.0), p_values)
    return np.where(np.isnan(tested.p_values), np.nan, p_values)


# The gain: how much better the score would be if a feature's lines were no worse than the others


def gains(table: FeatureTable, losses: Array, documents: Documents | None) -> dict[str, Array]:
    """Compute the features' perplexity, exp of the mean loss, and their gain with its 95 % interval.

    ``losses`` are those of all items, in nats. The interval is by ``documents``, if there are any. A gain
    with an infinite loss is NaN.

    When the gain is taken, each item adds what is left of it: on items with the feature its loss minus the mean of
    the others and minus the gain, else A times its loss plus B, as below. The interval comes from the sum of the
    squares of what items, or documents, add.
    """
    items, features = len(losses), len(table.names)
    mean = mean_of(losses) if items else 0.0
    centre = mean if np.isfinite(mean) else 0.0  # so that squares lose no digits
    apart = losses - centre
    each = documents or Documents("", np.arange(items), items)  # each item
    on, number = OnDocuments.of(table, each), each.count
    sizes, quantile = sums_by(each.of_line), NORMAL_QUANTILE
    if documents is not None:
        quantile = t_quantile(
            spread_of_mean(apart, documents.of_line).degrees if np.isfinite(apart).all() else number - 1
        )
    weights = 1 / (1 - sizes / items) if number > 1 else sizes  # CR2, as for a mean
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sums, share = table.sums(apart / items), table.counts() / items
        perplexity = exp(centre + sums / share)
        mean_of_others = ((apart / items).sum() - sums) / (1 - share)
        gain = sums - share * mean_of_others
        a = -share / (1 - share)
        b = -a * mean_of_others - gain
        totals, sums_on = sums_by(each.of_line, apart), on.sums(apart)
        both = 2 * a * b * (weights * totals * sizes).sum()
        squares = a**2 * (weights * totals**2).sum() + both + b**2 * (weights * sizes**2).sum()
        for part in slices(len(on.features), OCCURRENCES_AT_ONCE):
            place, document, count = on.features[part], on.document[part], on.counts[part]
            more = (1 - a[place]) * sums_on[part] - (mean_of_others + gain + b)[place] * count
            usual = a[place] * totals[document] + b[place] * sizes[document]
            squares += np.bincount(place, weights[document] * more * (2 * usual + more), features)
        half = quantile * np.sqrt(np.maximum(squares, 0)) / items
        ends = (gain, gain - half, gain + half)
        falls = [np.where(np.isfinite(gain) & np.isfinite(half), 1 - exp(-end), np.nan) for end in ends]
    return {"perplexity": perplexity} | dict(zip(("gain", "gain_low", "gain_high"), falls, strict=True))


_IDENTIFIERS = {*DOCUMENT_NAMES, "id", "lineid", "filename", "doc"}  # columns that name lines or documents
_NUMBER_SHAPE = re.compile(r"[9.]*9[9.]*(?:a\.?9+)?")  # of 0.5, -2.31 and 1e-05, for example


def is_hidden(name: str) -> bool:
    """Whether a feature is, or has, the id of a line or a document, or is a number of the output, and no word.

    >>> names = "in<FileId>:gaz-117", "in<Year>:1881~~in<doc_id>:7", "out:0.5", "out:SHAPE:9.99", "out:the++0.5"
    >>> list(map(is_hidden, names)), list(map(is_hidden, ("in<Year>:1881", "out:the", "exp:1901")))
    ([True, True, True, True, True], [False, False, False])
    """
    where, _, token = name.partition(":")
    if where == str(OUTPUT):
        number = _NUMBER_SHAPE if token.startswith(SHAPE) else FIELD_NUMBER
        if any(map(number.fullmatch, token.replace(SHAPE, "").split(BETWEEN_TOKENS))):
            return True
    columns = re.findall(f"(?:^|{BETWEEN_FEATURES})in<(.*?)>:", name)
    return bool(columns_named(_IDENTIFIERS, columns))
