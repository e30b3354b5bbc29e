"""The statistics engine: 95 % intervals of scores, and paired tests of systems on the same lines.

A *sample* holds the line statistics of systems. A *resample* of it is a weight for each line: how often the line was
drawn (bootstrap). Lines of a document are drawn together: then there is a weight for each document. A sum over the
lines is linear in the weights, so the sums of all systems on a block of resamples are one product of matrices.

Intervals and two-sided tests come from one estimate of how far a mean is from the true one, so that an interval
leaves out 0 if and only if p is below 0.05. The mean is of losses, or of the differences of two systems' losses; for
a metric that is not made from one mean loss, it is of the jackknife's pseudo-values.

    *By line*, Hall's transformation corrects t for the skewness of the lines ("On the removal of skewness by
    transformation", 1992). For the few differences of a small test set all signs are tried (Fisher, "The Design of
    Experiments", 1935). Right and wrong lines have Wilson's interval and the exact binomial test.

    *By document*, it is the t test of cluster-robust variances: CR2 with Satterthwaite's degrees of freedom.

    *With training runs*, it is a t test of two levels: other runs and other lines, or documents.

A corpus-level metric is no function of sums, and has no pseudo-values: it is scored on resamples.

Shapes: weights are resamples x lines (or documents); statistics are columns x lines x systems; sums are
columns x resamples x systems; counts are resamples x 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np

from geval_py.explaining.significance import (
    CONFIDENCE,
    NORMAL_QUANTILE,
    POWER_QUANTILE,
    Interval,
    beta_cdf,
    dot,
    mean_of,
    sum_of,
    t_quantile,
    t_tails,
)
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling
from geval_py.scoring.blocks import Progress
from geval_py.scoring.metrics.base import (
    NOISE,
    Array,
    Flags,
    Integers,
    LineStatistics,
    Metric,
    Places,
    exp,
    likelihood,
    perplexity,
)

Pair: TypeAlias = tuple[int, int]  # two systems

MAX_FINITE = 1e280  # a greater statistic, or NaN, counts as infinite: a sum of such might overflow
MAX_SIGNED = 16  # lines, whose differences are tried with all signs
BLOCK_BYTES = 1 << 22  # of the weights of one block, which are held a few times over; at least one resample
BEST_DRAWS = 10_000  # of the scores of equally good systems
MIN_TRIES = 3  # systems, of which the best seems better than it is
MIN_SKEWED = 1e-6  # of skewness times distance: below, the cube root would lose digits
MIN_P_VALUE = 1e-300  # a p-value of finite losses is never 0


def bootstrap_weights(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Draw all units with replacement, ``samples`` times; yield how often each was drawn, in blocks."""
    rng, size = np.random.default_rng(seed), max(1, BLOCK_BYTES // (8 * units))
    for start in range(0, samples, size):
        if progress is not None:
            progress(start, samples)
        rows = min(size, samples - start)
        drawn = rng.integers(0, units, (rows, units))
        drawn += units * np.arange(rows)[:, np.newaxis]
        yield np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


class Totals(NamedTuple):
    """Sums of line statistics and numbers of lines, by resample; the lines as they are are one resample."""

    sums: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class LineSample:
    """The statistics of systems on the same lines (at least one), finite or inf.

    ``documents`` is the number of each line's document, from 0; None if each line is by itself. If systems have
    training runs, their statistics are means over these, and ``runs`` has a sample of each system's runs. With
    ``paired_runs``, the runs of all systems have the same seeds in the same order.
    """

    metric: Metric
    statistics: Array
    documents: Integers | None = None
    runs: tuple[LineSample, ...] = ()
    paired_runs: bool = False

    @property
    def lines(self) -> int:
        """The number of lines."""
        return int(self.statistics.shape[1])

    @property
    def systems(self) -> int:
        """The number of systems."""
        return int(self.statistics.shape[2])

    @property
    def document_count(self) -> int | None:
        """The number of documents; None if each line is by itself."""
        return None if self.documents is None else int(self.documents.max()) + 1

    @property
    def units(self) -> int:
        """The number of units that are drawn: lines, or documents."""
        return self.document_count or self.lines

    @property
    def unit_of_line(self) -> Integers:
        """The number of each line's document, or the line's own."""
        return np.arange(self.lines) if self.documents is None else self.documents

    @property
    def is_of_mean_loss(self) -> bool:
        """Whether a score is made from one mean loss, so that systems are told apart by their mean losses."""
        return self.metric.measure.of_losses

    @property
    def is_drawn(self) -> bool:
        """Whether intervals and tests need resamples, as a score is no function of sums."""
        return self.metric.measure.corpus_score is not None

    @property
    def is_of_shares(self) -> bool:
        """Whether lines are right or wrong, and a score is made from their mean."""
        return self.is_of_mean_loss and not self.metric.measure.in_nats

    @property
    def is_by_line(self) -> bool:
        """Whether lines are drawn, one by one, and nothing else."""
        return self.documents is None and not self.runs

    @property
    def is_ratio(self) -> bool:
        """Whether a score is exp of one mean loss, so that scores are compared by their ratio."""
        return self.is_of_mean_loss and self.metric.measure.formula in (likelihood, perplexity)

    @property
    def infinite(self) -> Flags:
        """Whether a system has an infinite statistic on a line: lines x systems."""
        infinite: Flags = np.any(~(np.abs(self.statistics) <= MAX_FINITE), axis=0)
        return infinite

    def select(self, lines: Flags | slice, systems: Sequence[int]) -> LineSample:
        """Keep some systems on some lines (at least one)."""
        return replace(
            self,
            statistics=self.statistics[:, lines][:, :, systems],
            documents=None if self.documents is None else np.unique(self.documents[lines], return_inverse=True)[1],
            runs=tuple(self.runs[n].select(lines, range(self.runs[n].systems)) for n in systems if self.runs),
        )

    def totals(self, blocks: Iterable[Array] | None = None) -> Totals:
        """Sum over the lines with the weights of each resample; by default, over the lines as they are.

        A sum with an infinite statistic is inf, never NaN.
        """
        columns, lines, systems = self.statistics.shape
        infinite = ~(np.abs(self.statistics) <= MAX_FINITE)
        cells = np.where(infinite, 0.0, self.statistics)
        if infinite.any():
            cells = np.concatenate([cells, infinite])
        table = np.hstack([cells.transpose(1, 0, 2).reshape(lines, -1), np.ones((lines, 1))])
        if self.documents is not None:
            table = np.stack([np.bincount(self.documents, column) for column in table.T], axis=1)
        if blocks is None:
            weighted = table.T.copy().sum(axis=1)[np.newaxis]
        else:  # BLAS adds in an order that depends on the machine: with this many bits, no sum is rounded
            places = 52 - np.frexp(self.units * np.abs(table).max(axis=0))[1]
            table = np.ldexp(np.rint(np.ldexp(table, places)), -places)
            weighted = np.concatenate([weights @ table for weights in blocks])
        sums = weighted[:, :-1].reshape(len(weighted), -1, systems).transpose(1, 0, 2)
        finite, infinities = sums[:columns], sums[columns:]
        if len(infinities):
            finite[infinities > 0] = np.inf
        return Totals(finite, weighted[:, -1:])

    def scores(self, totals: Totals) -> Array:
        """Compute each system's score on each resample: resamples x systems.

        A resample with an infinite line scores what the metric makes of it.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # a perplexity beyond the range of a double is inf
            scores: Array = self.metric.measure.formula(list(totals.sums), totals.counts)
        return scores

    def line_scores(self) -> Array:
        """Compute the score of each line alone: lines x systems, NaN for no score."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Array = self.metric.measure.formula(list(self.statistics), np.ones(self.statistics.shape[1:]))
        return scores

    def line_figures(self) -> Array:
        """Return a figure for each line, whose mean stands for the score: systems x lines, inf if infinite.

        The figures are the losses or, for a metric that is not made from one mean loss, the jackknife's
        pseudo-values: N times the score, minus N - 1 times the score without the line. NaN where these are undefined,
        and for a corpus-level metric.
        """
        shape = self.systems, self.lines
        if self.is_drawn:
            return np.full(shape, np.nan)
        figures = np.full(shape, np.inf)
        for system, is_finite in enumerate(~self.infinite.T):
            if self.is_of_mean_loss:
                figures[system, is_finite] = self.statistics[0, is_finite, system]
            elif is_finite.sum() > 1:
                figures[system, is_finite] = self.select(is_finite, [system]).pseudo_values()
        return figures

    def pseudo_values(self) -> Array:
        """Compute the jackknife's pseudo-values of one system on two finite lines or more."""
        observed = self.totals()
        without = self.scores(Totals(observed.sums - self.statistics, observed.counts - 1))[:, 0]
        with np.errstate(invalid="ignore"):
            values: Array = self.lines * self.scores(observed)[0, 0] - (self.lines - 1) * without
        return values


@dataclass(frozen=True, kw_only=True, eq=False)
class CorpusSample(LineSample):
    """A sample for a corpus-level metric, which is no function of sums; no statistic is infinite.

    ``score_of`` computes the metric on some places of the lines of all systems, one system after the other.
    """

    score_of: Callable[[Places], float]

    def totals(self, blocks: Iterable[Array] | None = None) -> Totals:
        """Score the lines of each resample, each as often as its weight says."""
        starts, scores = self.lines * np.arange(self.systems), []
        for weights in (row for block in blocks or [np.ones((1, self.units))] for row in block):
            drawn = np.repeat(np.arange(self.lines), weights[self.unit_of_line].astype(np.intp))
            scores.append([self.score_of(drawn + start) for start in starts])
        return Totals(np.array(scores)[np.newaxis], np.full((len(scores), 1), float(self.lines)))

    def line_scores(self) -> Array:
        scores = np.array([self.score_of(np.array([place])) for place in range(self.lines * self.systems)])
        return scores.reshape(self.systems, self.lines).T


def sample_of(metric: Metric, systems: Sequence[LineStatistics], documents: Integers | None = None) -> LineSample:
    """Make a sample of systems on the same lines, with the number of each line's document."""
    if metric.measure.corpus_score is not None:
        return CorpusSample(
            metric,
            np.zeros((1, systems[0].lines, len(systems))),
            documents,
            score_of=metric.measure.corpus_score(systems),
        )
    statistics = np.array([system.columns for system in systems])
    return LineSample(metric, statistics.transpose(1, 2, 0), documents)


# Intervals of scores, on other lines of the same kind


def intervals(
    sample: LineSample,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    as_geval: bool = False,
    progress: Progress | None = None,
) -> list[Interval]:
    """Compute the 95 % interval of each system's score, by two documents or more if the sample has documents.

    With ``as_geval``, and without documents, it is GEval's, from the percentiles of resamples. The same seed gives
    the same intervals; 0 is a seed.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    check_sampling(samples, seed)
    estimator = Estimator(sample, samples, seed, progress)
    if as_geval and sample.documents is None:
        return [Interval.of(column.tolist(), samples=samples, seed=seed) for column in estimator.resampled.T]
    return [estimator.interval(n) for n in range(sample.systems)]


# Effects: differences as they are shown


def effect_of(sample: LineSample, change: float) -> float:
    """Return the shown difference of a change for the worse: of the mean loss or, for other metrics, of the score.

    It is in per cent for a metric that is exp of a mean loss, otherwise in the metric's unit.
    """
    measure = sample.metric.measure
    if sample.is_ratio:
        return 100 * (exp(measure.sign * change) - 1) if abs(change) > 1 else 100 * math.expm1(measure.sign * change)
    return change * unit_of_change(sample)


def change_for(sample: LineSample, effect: float) -> float:
    """Return the change for the worse that is shown as a difference of this size, which is above 0."""
    if not sample.is_ratio:
        return effect / abs(unit_of_change(sample))
    sign = sample.metric.measure.sign
    return sign * math.log1p(sign * effect / 100) if sign * effect > -100 else math.inf


def unit_of_change(sample: LineSample) -> float:
    """Return how much the score of a metric that is no ratio changes by a change of 1 for the worse."""
    measure = sample.metric.measure
    if not sample.is_of_mean_loss:
        return float(measure.sign)
    return float(measure.formula([1.0], 1) - measure.formula([0.0], 1))


# Paired tests


@dataclass(frozen=True, eq=False)
class Change:
    """How much worse a system is than another on the same lines, with what is known of its uncertainty.

    ``change`` is the difference of the mean losses or, for other metrics, of the scores, above 0 if it is for the
    worse. ``figures`` are its lines, if they are so few that all signs are tried; ``outcomes`` are the numbers of
    lines that only the first or only the second system got right, if a line is right or wrong.
    """

    change: float
    spread: Spread
    figures: Array | None = None
    outcomes: tuple[int, int] | None = None

    @property
    def p_value(self) -> float:
        """The two-sided p-value of the test that there is no difference."""
        if self.outcomes is not None:
            return sign_test(*self.outcomes)
        if self.figures is not None:
            return min(1.0, 2 * min(sign_flip_test(self.figures), sign_flip_test(-self.figures)))
        return self.spread.p_value(self.change)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the 95 % interval, which leaves out 0 if p is below 0.05; with ``outcomes``, nearly always."""
        if self.figures is None:
            return self.spread.ends(self.change)
        # Their subsets' means divide the line into intervals that are equally likely to hold the true mean (Hartigan,
        # "Using subsample values as typical values", 1969).
        sums, sizes = subset_sums(self.figures)
        means, cut = np.sort(sums[1:] / sizes[1:]), math.floor((1 - CONFIDENCE) / 2 * len(sums))
        return (float(means[cut - 1]), float(means[-cut])) if cut else (-math.inf, math.inf)

    def p_of_more(self, margin: float) -> float:
        """Return the one-sided p-value of the test that the system is worse by the margin or more."""
        if self.figures is None:
            return self.spread.p_of_less(self.change - margin)
        return sign_flip_test(self.figures - margin)


@dataclass(frozen=True, eq=False)
class Estimator:
    """Intervals of the scores of a sample's systems and, on lines that are finite in all of them, paired tests."""

    sample: LineSample
    samples: int
    seed: int
    progress: Progress | None = None

    @cached_property
    def scores(self) -> list[float]:
        """The systems' scores."""
        return list(map(float, self.sample.scores(self.sample.totals())[0]))

    @cached_property
    def figures(self) -> Array:
        """The systems' figures of lines: systems x lines."""
        return self.sample.line_figures()

    @cached_property
    def resampled(self) -> Array:
        """The systems' scores on resamples."""
        sample = self.sample
        return sample.scores(sample.totals(bootstrap_weights(sample.units, self.samples, self.seed, self.progress)))

    def interval(self, n: int) -> Interval:
        """Compute the 95 % interval of a system's score; with infinite lines, one end is the worst score."""
        sample, measure, count = self.sample, self.sample.metric.measure, self.sample.document_count
        infinite, figures = sample.infinite[:, n], self.figures[n]
        if infinite.any():
            best = measure.worst
            if not infinite.all():
                rest = replace(self, sample=sample.select(~infinite, [n]))
                low, high = rest.interval(0).ends
                best = rest.scores[0] if low is None or high is None else low if measure.sign > 0 else high
            low, high = sorted((best, measure.worst))
            return Interval(low, high, documents=count)
        if sample.units < 2:
            return Interval(math.nan, math.nan, documents=count)
        score = self.scores[n]
        if np.isnan(figures).any():
            ends = self._resampled_spread(self.resampled[:, n]).ends(score)
        else:
            mean, spread = mean_of(figures), spread_of_figures(sample, figures, [n])
            ends = spread.ends(mean)
            if sample.is_of_shares and (spread.deviation > 0.0 or sample.is_by_line):  # of misses
                ends = interval_of_share(mean, spread, lines=sample.lines if sample.is_by_line else None)
            if sample.is_of_mean_loss:
                low, high = (measure.formula([max(0.0, end) * sample.lines], sample.lines) for end in ends)
            else:  # the mean of pseudo-values is a little off the score
                low, high = (end + score - mean for end in ends)
            ends = low, high
        least, greatest = sorted((measure.best, measure.worst))
        low, high = sorted(min(max(end, least), greatest) for end in ends)
        samples, seed = (self.samples, self.seed) if sample.is_drawn else (None, None)
        return Interval(low, high, samples, seed, count)

    def change(self, pair: Pair) -> Change:
        """Compare the first system with the second."""
        sample, (one, other) = self.sample, pair
        figures, against = self.figures[one], self.figures[other]
        differences, change = figures - against, mean_of(figures - against)
        if not sample.is_of_mean_loss:
            sign = sample.metric.measure.sign
            differences, change = sign * differences, sign * (self.scores[one] - self.scores[other])
        if np.isnan(differences).any():
            return Change(change, self._resampled_spread(self.resampled[:, one] - self.resampled[:, other]))
        if abs(change) <= NOISE * (abs(mean_of(figures)) + abs(mean_of(against))):
            change, differences = 0.0, differences * (abs(differences) > NOISE * abs(figures))
        spread = spread_of_figures(sample, differences, pair)
        if not sample.is_by_line or not sample.is_of_mean_loss:
            return Change(change, spread)
        if sample.is_of_shares:
            return Change(change, spread, outcomes=(int((differences < 0).sum()), int((differences > 0).sum())))
        return Change(change, spread, figures=differences if sample.lines <= MAX_SIGNED else None)

    def _resampled_spread(self, values: Array) -> Spread:
        """Estimate the spread of a figure by its values on resamples; undefined ones are left out."""
        units, values = self.sample.units, values[np.isfinite(values)]
        if units < 2 or len(values) < 2:
            return Spread(math.inf, 1.0)
        return Spread(float(values.std(ddof=1)) * math.sqrt(units / (units - 1)), units - 1)


class PairTest(NamedTuple):
    """A pair of systems: on the lines that are finite in both, if there are any, and by their infinite lines.

    ``change`` is None, too, if it favours the system with more infinite lines: a system must not gain by failing on
    hard lines. ``p_infinite`` compares the numbers of lines, or documents, with infinite losses in either system; it
    is None without such lines.
    """

    lines: int
    scores: tuple[float, float] | None
    change: Change | None
    p_infinite: float | None

    @property
    def p_value(self) -> float:
        """The p-value by which systems are told apart: of both tests, twice the smaller one."""
        p_values = [] if self.change is None else [self.change.p_value]
        if self.p_infinite is None:
            return p_values[0] if p_values else 1.0
        return min(1.0, 2 * min([self.p_infinite, *p_values]))


def pair_tests(whole: Estimator, pairs: Iterable[Pair]) -> dict[Pair, PairTest]:
    """Test pairs of systems.

    The numbers of infinite lines are compared by the exact sign test (McNemar, "Note on the sampling error of the
    difference between correlated proportions or percentages", 1947), by documents if there are some.
    """
    sample, tests = whole.sample, dict[Pair, PairTest]()
    infinite = sample.infinite
    for pair in pairs:
        fails = infinite[:, list(pair)]
        keep: Flags = ~np.any(fails, axis=1)
        more = np.bincount(sample.unit_of_line, fails[:, 0].astype(float) - fails[:, 1])
        p_infinite = sign_test(int((more < 0).sum()), int((more > 0).sum())) if more.any() else None
        if not keep.any():
            tests[pair] = PairTest(0, None, None, p_infinite)
            continue
        part, (first, second) = whole, pair
        if not keep.all():
            part, first, second = replace(whole, sample=sample.select(keep, pair)), 0, 1
        change, scores = part.change((first, second)), (part.scores[first], part.scores[second])
        is_unfair = change.change * more.sum() < 0
        tests[pair] = PairTest(part.sample.lines, scores, None if is_unfair else change, p_infinite)
    return tests


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact sign test, which is McNemar's for pairs of right and wrong lines.

    >>> round(sign_test(4, 13), 4), sign_test(0, 1), sign_test(0, 0)
    (0.049, 1.0, 1.0)
    """
    fewer, more = sorted((wins, losses))
    return max(MIN_P_VALUE, 2 * beta_cdf(0.5, more, fewer + 1)) if fewer < more else 1.0


def sign_flip_test(values: Array) -> float:
    """Return the one-sided p-value of the test that the mean is 0 or more: how often other signs give no more."""
    sums, _ = subset_sums(values)
    total, noise = sum_of(values), NOISE * sum_of(np.abs(values))
    return float((2 * sums - total <= total + noise).mean())


def subset_sums(values: Array) -> tuple[Array, Array]:
    """Return the sums and the sizes of all subsets of a few values, the empty one first."""
    subsets = np.arange(1 << len(values))[:, np.newaxis] >> np.arange(len(values)) & 1
    return (subsets * values).sum(axis=1), subsets.sum(axis=1)


def optimism(sample: LineSample, tries: int | None = None) -> float | None:
    """Return by how much the best score of as many equally good systems would beat that of their mean loss.

    The sample has two or more of these systems, by default all. The expected best of these comes from draws of a
    normal distribution with the covariance of their mean losses: near copies are hardly more than one try. For
    another number of ``tries`` it grows as the least of so many independent normal values, which lies
    Phi^-1((n - 3/8) / (n + 1/4)) standard deviations below their mean (Blom, "Statistical Estimates and Transformed
    Beta-Variables", 1958). Lines with an infinite loss are left out. None for fewer than three tries, or two units,
    and for a metric that is not made from one mean loss.
    """
    tries, finite = tries or sample.systems, ~np.any(sample.infinite, axis=1)
    if not sample.is_of_mean_loss or tries < MIN_TRIES or not finite.any():
        return None
    part = sample.select(finite, range(sample.systems))
    if part.units < 2:
        return None
    losses, systems = part.statistics[0], part.systems
    apart = losses - losses.mean(axis=1, keepdims=True)
    sums = np.array([np.bincount(part.unit_of_line, column - column.mean()) for column in apart.T])
    covariance = np.einsum("su,tu->st", sums, sums) * part.units / (part.units - 1) / part.lines**2
    rng = np.random.default_rng(DEFAULT_SEED)
    draws = rng.multivariate_normal(np.zeros(systems), covariance, BEST_DRAWS, check_valid="ignore", method="eigh")
    best = -mean_of(draws.min(axis=1))
    best *= expected_best(tries) / expected_best(systems)
    mean, measure = mean_of(losses), part.metric.measure
    of_mean, of_best = (measure.formula([value * part.lines], part.lines) for value in (mean, max(0.0, mean - best)))
    return float(f"{abs(of_mean - of_best):.4g}")  # other processors have other last digits


def expected_best(tries: int) -> float:
    """Return by how many standard deviations the best of independent normal values beats their mean.

    >>> round(expected_best(20), 3)
    1.868
    """
    return NormalDist().inv_cdf((tries - 0.375) / (tries + 0.25))


def line_shares(sample: LineSample, baseline: int) -> list[tuple[float, float, float]]:
    """Return each system's shares of lines that are better than the baseline's, worse, and the same.

    Better is a lower loss or, for a metric of other statistics, a better score of the line. Lines that differ by
    less than 1e-12 (rounding) are the same, and so are two infinite lines; NaN counts as infinite. Lines tie if
    either has no score by itself, as with a correlation.
    """
    measure = sample.metric.measure
    badness = sample.statistics[0] if measure.of_losses else measure.sign * sample.line_scores()
    badness = np.where(sample.infinite, np.inf, badness)
    against = badness[:, [baseline]]
    tied = np.isclose(badness, against, rtol=NOISE, atol=NOISE) | np.isnan(badness) | np.isnan(against)
    outcomes = ~tied & (badness < against), ~tied & (badness > against), tied
    return list(zip(*(lines.mean(axis=0).tolist() for lines in outcomes), strict=True))


# How far the mean of lines, or of lines in documents, may be from the true one


class Spread(NamedTuple):
    """The standard deviation of a mean, and the degrees of freedom of its estimate; both are NaN if unknown.

    ``run_share`` is the share of the variance that is due to training runs, so that more lines do not reduce it.
    With d, the mean's distance from the true one in standard deviations, and g, the estimated ``skewness`` of the
    mean,

        d + g d^2 / 3 + g^2 d^3 / 27 + g / 6

    has about Student's distribution (Hall 1992). It is d itself for g = 0.
    """

    deviation: float
    degrees: float
    run_share: float = 0.0
    skewness: float = 0.0

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval, without skewness."""
        return t_quantile(self.degrees) * self.deviation

    def ends(self, mean: float) -> tuple[float, float]:
        """Return the ends of the 95 % interval of the true mean."""
        ends, g = [], self.skewness
        for t in (t_quantile(self.degrees), -t_quantile(self.degrees)):
            y = t - g / 6
            d = y - g * y * y / 3 if abs(g * y) < MIN_SKEWED else 3 / g * (math.cbrt(1 + g * y) - 1)
            ends.append(mean - self.deviation * d)
        return ends[0], ends[1]

    def statistic(self, difference: float) -> float:
        """Return the test statistic of a mean that is so far from 0, which has about Student's distribution."""
        if self.deviation == 0.0:
            return math.copysign(math.inf, difference)
        d, g = difference / self.deviation, self.skewness
        return d + g * d**2 / 3 + g**2 * d**3 / 27 + g / 6

    @property
    def least_detectable(self) -> float:
        """The true difference that a test at 5 % finds in 80 % of cases: 2.8 deviations, or more with few degrees."""
        return self.half_width + POWER_QUANTILE * self.deviation

    def lines_needed(self, lines: int, difference: float) -> float:
        """Return how many lines detect a true difference, where it has this spread on ``lines``: two digits.

        inf if no number of lines does, as the training runs are too few.
        """
        variance = (difference / self.least_detectable) ** 2 - self.run_share
        return float(f"{lines * (1 - self.run_share) / variance:.1e}") if variance > 0.0 else math.inf

    def p_value(self, difference: float) -> float:
        """Test whether a mean that is so far from 0 differs from it by chance; 1 if it is 0."""
        if not abs(difference) > 0.0:  # or undefined
            return 1.0
        return max(MIN_P_VALUE, t_tails(self.statistic(difference), self.degrees))

    def p_of_less(self, difference: float) -> float:
        """Return the p-value of the one-sided test that the true mean, so far from 0 in the sample, is 0 or more."""
        statistic = self.statistic(difference)
        tail = max(MIN_P_VALUE, t_tails(statistic, self.degrees)) / 2
        return tail if statistic < 0.0 else 1.0 - tail


def spread_of_lines(values: Array) -> Spread:
    """Estimate how far the mean of single lines is from the true one.

    They may be few, and their losses are skewed: most are small, and a few are large. The degrees of freedom are
    Satterthwaite's, 2 / (relative variance of the variance), which follows from the kurtosis: N - 1 for normal
    losses, and fewer the more of the variance comes from a few lines. A sample shows too little of a heavy tail, so
    the kurtosis beyond the normal one counts 1.5 times.
    """
    lines, centred = len(values), values - values.mean()
    scale = float(np.abs(centred).max())
    if lines < 2 or scale == 0.0:
        return Spread(math.inf if lines < 2 else 0.0, max(1.0, lines - 1.0))
    deviation = float(values.std(ddof=1)) / math.sqrt(lines)
    if lines == 2:
        return Spread(deviation, 1.0)
    centred /= scale  # so that no power is too great or too small for a double
    second, third, fourth = (mean_of(centred**power) for power in (2, 3, 4))
    skewness = third / math.pow(second, 1.5) * math.sqrt(lines - 1) / (lines - 2)  # without bias for normal values
    variance = fourth / second**2 - (lines - 3) / (lines - 1)
    return Spread(deviation, min(lines - 1.0, 2 * lines / max(variance, 1.5 * variance - 1)), skewness=skewness)


def spread_of_mean(values: Array, of_line: Integers) -> Spread:
    """Estimate how far the mean of the values is from the true one; ``of_line`` numbers two documents or more.

    Let there be N lines in G documents, n_g of them in document g. Let m be the mean of the values, and S_g the sum
    over the document of the differences from m. The variance of m is estimated by CR2,

        V = sum over g of (a_g S_g)^2 / N^2,    a_g = (1 - n_g / N)^(-1/2),

    and (mean - m) / sqrt(V) has about Student's distribution, with Satterthwaite's degrees of freedom. These depend
    on how unequal the documents are, and on how alike their lines are, which the analysis of variance estimates (Bell
    and McCaffrey, "Bias reduction in standard errors for linear regression with multi-stage samples", 2002; Imbens
    and Kolesár, "Robust standard errors in small samples", 2016; Pustejovsky and Tipton, "Small-sample methods for
    cluster-robust variance estimation", 2018). If all documents have as many lines, the degrees are G - 1.
    """
    lines, centred = len(values), values - values.mean()
    sizes = sums_by(of_line)
    sums = sums_by(of_line, centred)
    adjustments = 1 / (1 - sizes / lines)  # the squares of a_g
    deviation = math.sqrt(dot(adjustments, sums**2)) / lines
    documents, alikeness = len(sizes), 0.0
    if documents < lines:  # the correlation of two lines of a document, by the analysis of variance
        between = sum_of(sums**2 / sizes)
        mean_within = max(0.0, dot(centred, centred) - between) / (lines - documents)
        typical_size = (lines - dot(sizes, sizes) / lines) / (documents - 1)
        shared = max(0.0, (between / (documents - 1) - mean_within) / typical_size)
        alikeness = shared / (shared + mean_within) if shared > 0.0 else 0.0
    # The degrees are tr(A)^2 / tr(A^2), at least 1, of A = a (I - p 1') v (I - 1 p') a, where a and v are diagonal
    # matrices, v of the variances of the sums, and p are the documents' shares of the lines. Traces are sums.
    p = sizes / lines
    variances = sizes * (1 - alikeness) + alikeness * sizes**2
    total = sum_of(variances)
    trace = dot(adjustments, variances - 2 * p * variances + total * p**2)
    pp, vv, pv = (dot(adjustments, product) for product in (p * p, variances**2, p * variances))
    own = adjustments**2 * variances
    squared = dot(own, variances - 4 * p * variances + 2 * total * p**2)
    squared += 2 * pp * vv + total**2 * pp**2 + 2 * pv**2 - 4 * total * pp * pv
    return Spread(deviation, max(1.0, trace**2 / squared))


def spread_of_figures(sample: LineSample, figures: Array, systems: Sequence[int]) -> Spread:
    """Estimate the spread of the mean of finite figures, which are those of a system or differences of two.

    Where systems have training runs, it is how far the mean is from that of other runs and other lines. It comes from
    the analysis of variance of runs crossed with lines, as of readers and cases in radiology (Obuchowski and
    Rockette, "Hypothesis testing of diagnostic accuracy for multiple readers and multiple tests", 1995; Hillis, "A
    comparison of denominator degrees of freedom methods for multiple observer ROC analysis", 2007). The variance is
    that of the lines' means over runs, by CR2, plus that of the runs' means, less what the lines' has of the latter,
    since runs differ from line to line; but it is not less than the lines'. The variance R of the runs' means has
    m R^2 / (the sum of the squares of the systems' parts) = d degrees of freedom, where m is one less than the least
    number of runs. For Satterthwaite's degrees, R is weighed by (1 + 2 / d)^2: otherwise the interval would be too
    narrow where few runs are alike by chance. A single run has no variance of runs. Paired runs are the runs of one
    system, the difference, which are alike where a seed has the same effect on both: R is not weighed
    (docs/simulations.md).
    """
    of_line = sample.unit_of_line
    if sample.is_by_line:
        return spread_of_lines(figures)
    if sample.units < 2:
        return Spread(math.inf, 1.0)
    if not sample.runs:
        return spread_of_mean(figures, of_line)
    of_systems = [sample.runs[n].line_figures() for n in systems]
    if sample.paired_runs and len(of_systems) == 2:
        of_systems = [of_systems[0] - of_systems[1]]
    difference, variances, shared, least = np.zeros(sample.lines), [], 0.0, math.inf
    for runs in of_systems:
        mean, more = runs.mean(axis=0), len(runs) - 1
        difference = mean - difference
        if more:
            variances.append(float(runs.mean(axis=1).var(ddof=1)) / len(runs))
            shared += math.fsum(spread_of_mean(run - mean, of_line).deviation ** 2 for run in runs) / more / len(runs)
            least = min(least, more)
    of_lines, of_runs = spread_of_mean(difference, of_line), math.fsum(variances)
    lines, added = of_lines.deviation**2, max(0.0, of_runs - shared)
    if of_runs == 0.0 or lines + added == 0.0:
        return of_lines
    degrees = least * of_runs**2 / math.fsum(one**2 for one in variances)
    weighed = of_runs * (1 if sample.paired_runs else (1 + 2 / degrees) ** 2)
    squares = weighed**2 / degrees + lines**2 / of_lines.degrees
    return Spread(math.sqrt(lines + added), max(1.0, (weighed + lines) ** 2 / squares), added / (lines + added))


def interval_of_share(share: float, spread: Spread, lines: int | None = None) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, which exists for a share of 0 or 1, too (Wilson 1927).

    Without ``lines``, their number is that of single lines with the same spread.

    >>> [round(end, 4) for end in interval_of_share(1.0, Spread(0.0, 19), lines=20)]
    [0.8389, 1.0]
    """
    z = NORMAL_QUANTILE if lines else t_quantile(spread.degrees)
    effective = lines or share * (1 - share) / spread.deviation**2
    middle, of_all = share + z * z / (2 * effective), 1 + z * z / effective
    half = z * math.sqrt(share * (1 - share) / effective + (z / (2 * effective)) ** 2)
    return (middle - half) / of_all, (middle + half) / of_all


def sums_by(groups: Integers, values: Array | Flags | None = None) -> Array:
    """Return the sum of the values of each group, or their number; groups are numbered from 0."""
    return np.bincount(groups, values).astype(np.float64)
