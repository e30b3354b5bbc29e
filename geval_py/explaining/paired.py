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

With documents, whole documents change places: their lines are alike, and tests by line reject a true null hypothesis
too often. In the place of the bootstrap stands the t test of :mod:`geval_py.explaining.spread`, since resamples of
documents of unequal size are spread too little. A metric that has no figures of lines is resampled by documents;
these may be few, so the differences are spread as the intervals are
(:func:`geval_py.explaining.significance.expansion`).

With more than 20,000 lines, means are so nearly normal that nothing is drawn: intervals and the first test are of
Student's t distribution, p rand of the normal one, unless a single line has more than a hundredth of the variance.

A p-value that is counted counts the observed difference as one of the samples, (extreme + 1) / (samples + 1), so it
is never 0.

Two systems are compared on the lines that are finite in both, so other systems do not matter. A system must not gain
by failing on hard lines: where it has more infinite lines than the other, it is not said to be better on the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.explaining import resampling
from geval_py.explaining.significance import LEVEL, Array, Interval, expansion, holm, undistinguished_groups
from geval_py.explaining.spread import Documents, spread_of_mean
from geval_py.reading.config import check_sampling
from geval_py.scoring.metrics.base import NOISE, LineStatistics, Metric

if TYPE_CHECKING:
    from geval_py.scoring.blocks import Progress
    from geval_py.scoring.scores import Signature


MOST_OF_ONE = 0.01  # of the variance of many lines: if one of them has more, the sum may not be nearly normal


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One output of a comparison.

    ``score`` and its 95 % ``interval`` are over all lines, of which ``infinite`` have an infinite loss (or another
    infinite statistic); ``finite_score`` is over the lines ``compared``: those that are finite in this system and in
    the baseline.

    Against the baseline, on all lines: the shares of lines ``won`` (a lower loss or, for a metric of other
    statistics, a better score of the line; any finite line beats an infinite one), ``lost`` and ``tied`` (also two
    infinite lines). On the lines compared: the ``difference`` (finite score minus the baseline's, in the metric's
    unit) with its 95 % interval, and the p-values of both tests (two-sided, not corrected for the number of systems;
    by documents, and for many lines, ``p_bootstrap`` is of a t test). All are None for the baseline. Figures of the
    lines compared are None if there is no such line, and so is a difference of infinite scores. The difference and
    its p-values are None, too, if it favours the system with more infinite lines.

    Two equal ``signature`` mean the same score; it is None if none was asked for.
    """

    name: str
    score: float
    interval: Interval
    infinite: int
    compared: int = 0
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
    """Systems, the best first, and the groups of systems that cannot be told apart; ``lines`` are finite in all.

    ``documents`` is the number of documents, None if lines were drawn. ``equal`` are the sets of systems with the
    same statistics on every line.
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
        check_sampling(self.samples, self.seed)
        table = resampling.table_of(self.metric, self.statistics, self.documents)
        systems = self._score(table)
        is_finite = np.array([system.infinite == 0 for system in systems])
        p_values = np.where(is_finite[:, np.newaxis] == is_finite, 1.0, 0.0)  # a finite one is better, without a test
        for part in _parts(table):
            scores = self._scores_of(systems, part)
            found = self._randomised(part)
            for one, other in part.pairs:
                gains = self._gains_by_failing(systems[one], systems[other], scores[one], scores[other])
                if p_values[one, other] and not gains:
                    p_values[one, other] = p_values[other, one] = found[part.place[one], part.place[other]]
            if any(self.baseline in pair for pair in part.pairs):
                self._compare_with_baseline(systems, part, scores, found[part.place[self.baseline]])
        order = self._order(systems)
        return Ranking(
            systems=tuple(systems[n] for n in order),
            groups=self._named([order[n] for n in group] for group in _groups(p_values[order][:, order])),
            equal=self._named(equal_systems(table)),
            lines=int((~table.infinite).all(axis=1).sum()),
            documents=None if table.documents is None else table.documents.count,
        )

    def _named(self, sets: Iterable[Iterable[int]]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.names[n] for n in indices) for indices in sets)

    def _resample(self, table: resampling.LineTable) -> resampling.Totals:
        return resampling.resample_totals(table, samples=self.samples, seed=self.seed, progress=self.progress)

    def _score(self, table: resampling.LineTable) -> list[System]:
        """Compute each system's score on all lines, its interval, and its shares of lines against the baseline."""
        shares = line_shares(self.metric, table, self.baseline)
        fine = (~table.infinite).sum(axis=0).tolist()
        systems = []
        for n, (name, interval, (won, lost, tied)) in enumerate(
            zip(self.names, self._intervals(table), shares, strict=True)
        ):
            score = self.metric.value(self.statistics[n])
            system = System(name=name, score=score, interval=interval, infinite=table.lines - fine[n])
            if n == self.baseline:
                finite_score = self._score_where_finite(table, n) if fine[n] else None
                systems.append(replace(system, compared=fine[n], finite_score=finite_score))
            else:
                systems.append(replace(system, won=won, lost=lost, tied=tied))
        return systems

    def _intervals(self, table: resampling.LineTable) -> list[Interval]:
        computed = resampling.computed_intervals(self.metric, table)
        if None not in computed:
            return [interval for interval in computed if interval is not None]
        values = resampling.scores_on(self.metric, self._resample(table)).T
        drawn = [resampling.percentile_interval(column, table, seed=self.seed) for column in values]
        return [one or other for one, other in zip(computed, drawn, strict=True)]

    def _score_where_finite(self, table: resampling.LineTable, system: int) -> float:
        if isinstance(table, resampling.RuledTable) or not table.infinite[:, system].any():
            return self.metric.value(self.statistics[system])
        finite = table.of_systems_on([system], ~table.infinite[:, system])
        return float(resampling.scores_on(self.metric, finite.observed())[0, 0])

    def _scores_of(self, systems: Sequence[System], part: _Part) -> dict[int, float]:
        """Return the scores on the lines of a part."""
        if part.table.lines == self.statistics[0].lines:
            return {n: systems[n].score for n in part.place}
        scores = resampling.scores_on(self.metric, part.table.observed())[0].tolist()
        return {n: scores[place] for n, place in part.place.items()}

    def _randomised(self, part: _Part) -> Array:
        pairs = [(part.place[one], part.place[other]) for one, other in part.pairs]
        return randomisation_p_values(
            self.metric, part.table, samples=self.samples, seed=self.seed, pairs=pairs, progress=self.progress
        )

    def _gains_by_failing(self, one: System, other: System, score: float, other_score: float) -> bool:
        """Whether scores on the lines that are finite in both favour the one with more infinite lines."""
        better, worse = (1, -1) if self.metric.measure.direction == "lower" else (-1, 1)
        favours_one = (better if score < other_score else worse) * (score != other_score)
        return favours_one * (one.infinite - other.infinite) > 0

    def _compare_with_baseline(
        self, systems: list[System], part: _Part, scores: Mapping[int, float], p_randomisation: Array
    ) -> None:
        """Add to the systems of a part the differences from the baseline, and their p-values.

        ``scores`` are on the lines of the part; the p-values of approximate randomisation are by places in its table.
        """
        base = scores[self.baseline]
        tests = self._tests(part.table, part.place[self.baseline])
        for n in (one + other - self.baseline for one, other in part.pairs if self.baseline in (one, other)):
            system = replace(systems[n], compared=part.table.lines, finite_score=scores[n])
            if not self._gains_by_failing(system, systems[self.baseline], scores[n], base):
                interval, p_bootstrap = tests[part.place[n]]
                system = replace(
                    system,
                    difference=None if math.isnan(scores[n] - base) else scores[n] - base,
                    difference_interval=interval,
                    p_bootstrap=p_bootstrap,
                    p_randomisation=float(p_randomisation[part.place[n]]),
                )
            systems[n] = system

    def _tests(self, table: resampling.LineTable, baseline: int) -> list[tuple[Interval | None, float]]:
        """Return the interval of each system's difference from the baseline, and a p-value."""
        computed = computed_tests(self.metric, table, baseline)
        if computed is not None:
            return computed
        resampled = self._resample(table)
        scores = resampling.scores_on(self.metric, resampled)
        intervals = difference_intervals(scores, table, baseline, seed=self.seed)
        p_values = bootstrap_p_values(self.metric, table, resampled, baseline).tolist()
        return list(zip(intervals, p_values, strict=True))

    def _order(self, systems: Sequence[System]) -> list[int]:
        """Sort the systems' indices: by score, infinite lines, score on the lines compared; undefined scores last."""
        sign = 1 if self.metric.measure.direction == "lower" else -1

        def place(n: int) -> tuple[bool, float, int, float]:
            score, infinite = systems[n].score, systems[n].infinite
            finite = (systems[n].finite_score or 0.0) if infinite else 0.0
            return (True, 0.0, 0, 0.0) if math.isnan(score) else (False, sign * score, infinite, sign * finite)

        return sorted(range(len(systems)), key=place)


def _groups(p_values: Array) -> list[tuple[int, ...]]:
    """Group systems, in order of score, by the p-values of all pairs: systems x systems."""
    pairs = list(combinations(range(len(p_values)), 2))
    corrected = holm([float(p_values[pair]) for pair in pairs])
    distinct = frozenset(pair for pair, p_value in zip(pairs, corrected, strict=True) if p_value < LEVEL)
    return undistinguished_groups(len(p_values), distinct)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Pairs of systems on the lines that are finite in both; ``place`` is where the table has a system."""

    table: resampling.LineTable
    pairs: Sequence[tuple[int, int]]
    place: Mapping[int, int]


def _parts(table: resampling.LineTable) -> Iterator[_Part]:
    """Yield the pairs of systems by the lines on which both are finite; a pair without such lines is left out."""
    fine = ~table.infinite
    together: dict[bytes, list[tuple[int, int]]] = {}
    for one, other in combinations(range(table.systems), 2):
        together.setdefault(np.packbits(fine[:, one] & fine[:, other]).tobytes(), []).append((one, other))
    for pairs in together.values():
        systems = sorted({n for pair in pairs for n in pair})
        place = {n: place for place, n in enumerate(systems)}
        keep = fine[:, pairs[0][0]] & fine[:, pairs[0][1]]
        if isinstance(table, resampling.RuledTable) or (keep.all() and len(systems) == table.systems):
            yield _Part(table=table, pairs=pairs, place=place)
        elif keep.any():
            yield _Part(table=table.of_systems_on(systems, keep), pairs=pairs, place=place)


# The tests


def computed_tests(
    metric: Metric, table: resampling.LineTable, baseline: int
) -> list[tuple[Interval | None, float]] | None:
    """Compare each system with the baseline by the spread of the differences of documents, or of many lines.

    ``table`` holds finite statistics only. Returns the 95 % interval of each difference of scores, and the p-value of
    a t test; None for a few lines without documents, and for a metric that has no figures of lines.
    """
    units = resampling.spread_units(table)
    if units is None or isinstance(table, resampling.RuledTable):
        return None
    documents = None if table.documents is None else table.documents.count
    systems = [table.of_system(n) for n in range(table.systems)]
    of_scores = [resampling.figures_of_lines(metric, system, of_score=True) for system in systems]
    tested = [resampling.figures_of_lines(metric, system) for system in systems]
    observed = resampling.scores_on(metric, table.observed())[0]
    found: list[tuple[Interval | None, float]] = []
    for score, of_score, figures in zip(observed.tolist(), of_scores, tested, strict=True):
        base, base_figures = of_scores[baseline], tested[baseline]
        if of_score is None or figures is None or base is None or base_figures is None:
            return None
        difference = score - float(observed[baseline])
        half = spread_of_mean(of_score - base, units).half_width
        interval = Interval.between(difference - half, difference + half, documents=documents)
        change = float((figures - base_figures).mean())
        if abs(change) <= NOISE * (abs(float(figures.mean())) + abs(float(base_figures.mean()))):
            change = 0.0
        found.append((interval, spread_of_mean(figures - base_figures, units).p_value(change)))
    return found


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
    metric: Metric,
    table: resampling.LineTable,
    *,
    samples: int,
    seed: int,
    pairs: Iterable[tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> Array:
    """Test pairs of systems (all, by default) by approximate randomisation; return systems x systems, else 1.

    ``table`` holds finite statistics only. The systems of every pair change places on the same lines, or documents.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    check_sampling(samples, seed)
    observed = tested_values(metric, table.observed())
    p_values = np.ones((table.systems,) * 2)
    exchanged = None
    for pair in combinations(range(table.systems), 2) if pairs is None else pairs:
        p_value = _limit_of_exchanges(metric, table, pair)
        if p_value is None:
            exchanged = exchanged or table.exchanges(samples, seed, progress)
            p_value = counted_p_value(*exchanged_differences(metric, observed, exchanged, pair)).item()
        p_values[pair] = p_values[pair[::-1]] = p_value
    return p_values


def _limit_of_exchanges(metric: Metric, table: resampling.LineTable, pair: tuple[int, int]) -> float | None:
    """Return the p-value that approximate randomisation tends to, if there are many lines and none of them decides.

    The sum of differences with random signs is nearly normal, and its variance is the sum of their squares.
    """
    if isinstance(table, resampling.RuledTable) or table.documents is not None or table.lines <= resampling.MANY:
        return None
    one, other = (resampling.figures_of_lines(metric, table.of_system(n)) for n in pair)
    if one is None or other is None:
        return None
    differences = one - other
    squares = float(differences @ differences)
    noise = NOISE * (float(np.abs(one).sum()) + float(np.abs(other).sum()))
    total = abs(float(differences.sum()))
    if total <= noise:
        return 1.0
    if float(np.abs(differences).max()) ** 2 > MOST_OF_ONE * squares:
        return None
    return math.erfc(total / math.sqrt(2 * squares))


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
    less than 1e-12 (rounding) are the same, and so are two infinite lines; NaN counts as infinite. Lines tie if
    either has no score by itself, as with a correlation.
    """
    statistics = table.comparable()
    if metric.measure.of_losses:
        badness = statistics[0]
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = metric.measure.formula(list(statistics), np.ones(statistics.shape[1:]))
        badness = np.where(table.infinite, np.inf, scores if metric.measure.direction == "lower" else -scores)
    against = badness[:, [baseline]]
    tied = np.isclose(badness, against, rtol=NOISE, atol=NOISE) | np.isnan(badness) | np.isnan(against)
    won, lost = ~tied & (badness < against), ~tied & (badness > against)
    shares = np.stack([won, lost, tied]).mean(axis=1).T
    return [(float(one), float(two), float(three)) for one, two, three in shares]


def equal_systems(table: resampling.LineTable) -> list[tuple[int, ...]]:
    """Find the sets, of two systems at least, with the same statistics on every line."""
    systems: dict[bytes, list[int]] = {}
    for n, key in enumerate(table.keys):
        systems.setdefault(key, []).append(n)
    return [tuple(same) for same in systems.values() if len(same) > 1]
