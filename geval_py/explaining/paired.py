"""Paired tests: whether the difference of two systems on the same lines is more than chance; a ranking of systems.

What is tested is the difference of the metric or, for a metric that rises or falls with the mean line loss, the
difference of the mean line losses. Both tests are two-sided.

- *Paired bootstrap test.* The differences on resamples of the lines (Koehn, "Statistical significance tests for
  machine translation evaluation", 2004), shifted so that the null hypothesis holds for them: how often is such a
  difference as far from 0 as the one observed (Noreen, "Computer-Intensive Methods for Testing Hypotheses", 1989;
  Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 16; Riezler and Maxwell, "On some pitfalls
  in automatic evaluation and significance testing for MT", 2005)? To compare absolute differences shifted by their
  mean, as is often done, rejects a true null hypothesis twice as often as it should.
- *Approximate randomisation.* If the systems are no different, each line's two statistics might as well change places
  (Noreen 1989; Riezler and Maxwell 2005): how often is the difference then as far from 0?

With documents, whole documents are drawn or change places: their lines are alike, and tests by line reject a true
null hypothesis too often. There may be few documents, so the differences on resamples are spread as the intervals are
(:func:`geval_py.explaining.significance.expansion`).

A p-value counts the observed difference as one of the samples, (extreme + 1) / (samples + 1), so it is never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.explaining import resampling
from geval_py.explaining.significance import LEVEL, Array, Interval, expansion, holm, undistinguished_groups
from geval_py.reading.config import check_sampling
from geval_py.scoring.metrics.base import NOISE, LineStatistics, Metric

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents
    from geval_py.scoring.blocks import Progress
    from geval_py.scoring.scores import Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One output of a comparison.

    ``score`` and its 95 % ``interval`` are over all lines, of which ``infinite`` have an infinite loss (or another
    infinite statistic); ``finite_score`` is over the lines compared: the lines that are finite for every system.

    Against the baseline, on all lines: the shares of lines ``won`` (a lower loss or, for a metric of other
    statistics, a better score of the line; any finite line beats an infinite one), ``lost`` and ``tied`` (also two
    infinite lines). On the lines compared: the ``difference`` (finite score minus the baseline's, in the metric's
    unit) with its 95 % interval, and the p-values of both tests (two-sided, not corrected for the number of
    systems). All are None for the baseline. Figures of the lines compared are None if there is no such line, and so
    is a difference of infinite scores.

    Two equal ``signature`` mean the same score; it is None if none was asked for.
    """

    name: str
    score: float
    interval: Interval
    infinite: int
    finite_score: float | None = None
    difference: float | None = None
    difference_interval: Interval | None = None
    p_bootstrap: float | None = None
    p_randomisation: float | None = None
    won: float | None = None
    lost: float | None = None
    tied: float | None = None
    signature: Signature | None = None

    def to_dict(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = {n: value.to_dict() if isinstance(value, Interval) else value for n, value in values.items()}
        return shown | {"signature": None if self.signature is None else str(self.signature)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Systems, the best first, and the groups of systems that cannot be told apart; ``lines`` were compared.

    ``documents`` is the number of documents of these lines, None if lines were drawn. ``equal`` are the sets of
    systems with the same statistics on every line.
    """

    systems: tuple[System, ...]
    groups: tuple[tuple[str, ...], ...]
    equal: tuple[tuple[str, ...], ...]
    lines: int
    documents: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Systems:
    """The input of a ranking: a metric, each system's line statistics, the index of the baseline, the sampling."""

    metric: Metric
    names: Sequence[str]
    statistics: Sequence[LineStatistics]
    baseline: int
    samples: int
    seed: int
    documents: Documents | None = None
    progress: Progress | None = None

    def rank(self) -> Ranking:
        """Score, test and group the systems; raises UsageError for samples or a seed out of range."""
        table = resampling.table_of(self.metric, self.statistics, self.documents)
        resampled = self._resample(table)
        systems = self._score(table, resampled)
        equal = self._named(equal_systems(table))
        finite = table.finite()
        if not finite.lines:
            ordered = tuple(systems[n] for n in self._order(systems))
            return Ranking(systems=ordered, groups=(), equal=equal, lines=0, documents=None)
        scores = [system.score for system in systems]
        if table.infinite.any():
            (scores,) = resampling.scores_on(self.metric, finite.observed()).tolist()
            resampled = self._resample(finite)
        systems = [replace(system, finite_score=score) for system, score in zip(systems, scores, strict=True)]
        order = self._order(systems)
        p_values = randomisation_p_values(
            self.metric, finite, samples=self.samples, seed=self.seed, progress=self.progress
        )
        systems = self._test(systems, scores, finite, resampled, p_values[self.baseline].tolist())
        return Ranking(
            systems=tuple(systems[n] for n in order),
            groups=self._named([order[n] for n in group] for group in _groups(p_values[order][:, order])),
            equal=equal,
            lines=finite.lines,
            documents=None if finite.documents is None else finite.documents.count,
        )

    def _named(self, sets: Iterable[Iterable[int]]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.names[n] for n in indices) for indices in sets)

    def _resample(self, table: resampling.LineTable) -> resampling.Totals:
        return resampling.resample_totals(table, samples=self.samples, seed=self.seed, progress=self.progress)

    def _score(self, table: resampling.LineTable, resampled: resampling.Totals) -> list[System]:
        """Compute each system's score on all lines, its interval, and its shares of lines against the baseline."""
        shares = line_shares(self.metric, table, self.baseline)
        values = resampling.scores_on(self.metric, resampled).T
        intervals = resampling.document_intervals(self.metric, table)
        infinite = table.infinite.sum(axis=0).tolist()
        systems = []
        for n, (name, (won, lost, tied)) in enumerate(zip(self.names, shares, strict=True)):
            system = System(
                name=name,
                score=self.metric.value(self.statistics[n]),
                interval=intervals[n] or resampling.percentile_interval(values[n], table, seed=self.seed),
                infinite=infinite[n],
            )
            systems.append(system if n == self.baseline else replace(system, won=won, lost=lost, tied=tied))
        return systems

    def _test(
        self,
        systems: Sequence[System],
        scores: Sequence[float],
        finite: resampling.LineTable,
        resampled: resampling.Totals,
        randomisation: Sequence[float],
    ) -> list[System]:
        """Add the differences from the baseline and the p-values.

        ``scores``, the ``finite`` statistics and their ``resampled`` sums are of the lines compared;
        ``randomisation`` are the p-values of that test.
        """
        resampled_scores = resampling.scores_on(self.metric, resampled)
        intervals = difference_intervals(resampled_scores, finite, self.baseline, seed=self.seed)
        p_bootstrap = bootstrap_p_values(self.metric, finite, resampled, self.baseline).tolist()
        tested = list(systems)
        for n, system in enumerate(systems):
            if n != self.baseline:
                difference = scores[n] - scores[self.baseline]
                tested[n] = replace(
                    system,
                    difference=None if math.isnan(difference) else difference,
                    difference_interval=intervals[n],
                    p_bootstrap=p_bootstrap[n],
                    p_randomisation=randomisation[n],
                )
        return tested

    def _order(self, systems: Sequence[System]) -> list[int]:
        """Sort the indices of the systems: by score, then by score on the finite lines; undefined scores last."""
        sign = 1 if self.metric.measure.direction == "lower" else -1

        def place(n: int) -> tuple[bool, float, float]:
            score, finite = systems[n].score, systems[n].finite_score or 0.0
            return (True, 0.0, 0.0) if math.isnan(score) else (False, sign * score, sign * finite)

        return sorted(range(len(systems)), key=place)


def _groups(p_values: Array) -> list[tuple[int, ...]]:
    """Group systems, in order of score, by the p-values of all pairs: systems x systems."""
    pairs = list(combinations(range(len(p_values)), 2))
    corrected = holm([float(p_values[pair]) for pair in pairs])
    distinct = frozenset(pair for pair, p_value in zip(pairs, corrected, strict=True) if p_value < LEVEL)
    return undistinguished_groups(len(p_values), distinct)


# The tests


def bootstrap_p_values(
    metric: Metric, table: resampling.LineTable, resampled: resampling.Totals, baseline: int
) -> Array:
    """Test each system against the baseline by the bootstrap; return a p-value for each system, 1 for the baseline.

    ``table`` holds finite statistics only, ``resampled`` its sums on resamples. A single line, or document, tells
    nothing about the spread: p is 1.
    """
    observed = tested_values(metric, table.observed())
    values = tested_values(metric, resampled)
    if table.units == 1:
        return np.ones(values.shape[1])
    difference = observed - observed[:, [baseline]]
    centred = (values - values[:, [baseline]]) - difference
    if table.documents is not None:
        centred *= expansion(table.units)
    noise = NOISE * (np.abs(observed) + np.abs(observed[:, [baseline]]))
    return counted_p_value(centred, difference, noise)


def randomisation_p_values(
    metric: Metric, table: resampling.LineTable, *, samples: int, seed: int, progress: Progress | None = None
) -> Array:
    """Test all pairs of systems by approximate randomisation; return systems x systems, 1 on the diagonal.

    ``table`` holds finite statistics only. The systems of every pair change places on the same lines, or documents.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    check_sampling(samples, seed)
    observed = tested_values(metric, table.observed())
    exchanged = table.exchanges(samples, seed, progress)
    p_values = np.ones((table.systems,) * 2)
    for pair in combinations(range(len(p_values)), 2):
        p_value = counted_p_value(*exchanged_differences(metric, observed, exchanged, pair)).item()
        p_values[pair] = p_values[pair[::-1]] = p_value
    return p_values


def exchanged_differences(
    metric: Metric, observed: Array, exchanged: resampling.Exchange, pair: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Return a pair's difference in each sample, its observed difference, and how much of this may be rounding.

    ``observed`` are the tested values of all systems.
    """
    value, values = observed[:, pair], tested_values(metric, exchanged(pair))
    return values[:, 0] - values[:, 1], value[:, 0] - value[:, 1], NOISE * np.abs(value).sum(axis=1)


def tested_values(metric: Metric, totals: resampling.Totals) -> Array:
    """Return the tested figures, resamples x systems: the metric, or the mean loss if that is equivalent."""
    if metric.measure.of_losses and totals.counts.shape[1] == 1:
        return totals.sums[0, :, :, 0] / totals.counts
    return resampling.scores_on(metric, totals)


def counted_p_value(differences: Array, observed: Array, noise: Array) -> Array:
    """Return the share of differences as far from 0 as the observed one, up to rounding; it counts itself.

    An undefined difference, of undefined scores, counts as one that is as far.
    """
    extreme = ~(np.abs(differences) < np.abs(observed) - noise)
    share: Array = (extreme.sum(axis=0) + 1) / (len(differences) + 1)
    return share


def difference_intervals(
    scores: Array, table: resampling.LineTable, baseline: int, *, seed: int
) -> list[Interval | None]:
    """Compute the interval of each system's score minus the baseline's; ``scores`` are resamples x systems.

    None if some difference is undefined: both scores are infinite.
    """
    with np.errstate(invalid="ignore"):
        differences = scores - scores[:, [baseline]]
    return [
        None if np.isnan(column).any() else resampling.percentile_interval(column, table, seed=seed)
        for column in differences.T
    ]


def line_shares(metric: Metric, table: resampling.LineTable, baseline: int) -> list[tuple[float, float, float]]:
    """Return each system's shares of lines that are better than the baseline's, worse, and the same.

    Better is a lower loss or, for a metric of other statistics, a better score of the line. Lines that differ by
    less than 1e-12 (rounding) are the same, and so are two infinite lines; NaN counts as infinite. If a single line
    has no score, as with a correlation, all lines tie.
    """
    statistics = table.comparable()
    if metric.measure.of_losses:
        badness = statistics[0]
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = metric.measure.formula(list(statistics), np.ones(statistics.shape[1:]))
        badness = np.where(table.infinite, np.inf, scores if metric.measure.direction == "lower" else -scores)
    against = badness[:, [baseline]]
    tied = np.isclose(badness, against, rtol=NOISE, atol=NOISE, equal_nan=True)
    won, lost = ~tied & (badness < against), ~tied & (badness > against)
    shares = np.stack([won, lost, tied]).mean(axis=1).T
    return [(float(one), float(two), float(three)) for one, two, three in shares]


def equal_systems(table: resampling.LineTable) -> list[tuple[int, ...]]:
    """Find the sets, of two systems at least, with the same statistics on every line."""
    systems: dict[bytes, list[int]] = {}
    for n, key in enumerate(table.keys):
        systems.setdefault(key, []).append(n)
    return [tuple(same) for same in systems.values() if len(same) > 1]
