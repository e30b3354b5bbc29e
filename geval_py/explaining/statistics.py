"""The statistics engine: 95 % intervals of scores, and paired tests of systems on the same lines.

A *sample* holds the line statistics of systems. A *resample* of it is a weight for each line: how often the line was
drawn (bootstrap), or whether two systems change places on it (approximate randomisation). Lines of a document are
drawn, or change places, together: then there is a weight for each document. A sum over the lines is linear in the
weights, so the sums of all systems on a block of resamples are one product of matrices.

Intervals
    The interval of a mean loss follows from the spread of the lines or, with documents, of the documents. Scores of
    other metrics are resampled unless there are documents, or more than 20,000 lines: then the jackknife's
    pseudo-values stand for the lines. By single lines, Hall's transformation corrects for skewness, and the degrees
    of freedom for a variance that comes from a few lines.

Paired tests, two-sided, of the difference of the metric or, if that rises or falls with the mean loss, of the latter
    *Bootstrap*: the differences on resamples (Koehn, "Statistical significance tests for machine translation
    evaluation", 2004), shifted so that the null hypothesis holds for them: how often are they as far from 0 as the
    observed one (Noreen, "Computer-Intensive Methods for Testing Hypotheses", 1989; Efron and Tibshirani, "An
    Introduction to the Bootstrap", 1993, chapter 16)? Shifting absolute differences by their mean, as is often done,
    rejects a true null hypothesis twice as often as it should. With documents, or many lines, it is a t test instead:
    resamples of documents of unequal size are spread too little.

    *Approximate randomisation*: if the systems are no different, each line's two statistics might as well change
    places (Noreen 1989; Riezler and Maxwell, "On some pitfalls in automatic evaluation and significance testing for
    MT", 2005): how often is the difference then as far from 0? For the mean loss and for many lines, this is computed
    without samples; with documents, it is the t test. Other metrics draw samples. If hardly any sample is as far, the
    p-value is smaller than counting can make it: the tail of the samples. The board stores these.

A counted p-value counts the observed difference as one of the samples, so it is never 0. Two systems are compared on
the lines that are finite in both. A system must not gain by failing on hard lines: where it has more infinite lines
than the other, it is not said to be better on the rest.

Training runs
    The outputs of a system may be runs of its training, such as with several seeds. Its figures are means over them,
    and all intervals and tests are t tests of two levels: other runs and other lines, or documents.

Shapes: weights are resamples x lines (or documents); statistics are columns x lines x systems; members are lines x
classes, 1 if a line is of the class (a metric without classes has one class of all lines); sums are columns x
resamples x systems x classes; counts are resamples x classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np

from geval_py.explaining.significance import (
    GEVAL_TAIL,
    NORMAL_QUANTILE,
    POWER_QUANTILE,
    TINY,
    Interval,
    dot,
    expanded_tail,
    expansion,
    mean_of,
    slices,
    sum_of,
    t_quantile,
    t_tails,
)
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling
from geval_py.scoring.blocks import Progress
from geval_py.scoring.metrics.base import NOISE, Array, Flags, Integers, LineStatistics, Metric, Places

Pair: TypeAlias = tuple[int, int]  # two systems

MAX_FINITE = 1e280  # a greater statistic, or NaN, counts as infinite: a sum of such might overflow
MANY = 20_000  # lines, beyond which means are so nearly normal that nothing is drawn
MAX_SIGNED = 16  # differences of which all signs are tried
FEW_LARGE = 12  # differences of which all signs are tried where they have most of the squares
BLOCK_BYTES = 1 << 22  # of the weights of one block, which are held a few times over; at least one resample
FEW_EXTREME = 10  # samples as extreme as the observed difference: the share of so few is uncertain
MIN_TRIES = 3  # systems, of which the best seems better than it is
MIN_RESAMPLED = 4  # lines, up to which resamples are too much alike: p is at least the t test's
MIN_SKEWED = 1e-6  # of skewness times distance: below, the cube root would lose digits
MIN_DISTANCE = 1e-4  # standard deviations, below which p is 1
MIN_P_VALUE = 1e-300  # a p-value of finite losses is never 0


def bootstrap_weights(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Draw all units with replacement, ``samples`` times; yield how often each was drawn, in blocks."""
    rng = np.random.default_rng(seed)
    for rows in _block_sizes(units, samples, progress):
        drawn = rng.integers(0, units, (rows, units))
        drawn += units * np.arange(rows)[:, np.newaxis]
        yield np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def swap_weights(units: int, samples: int, seed: int, progress: Progress | None = None) -> Iterator[Array]:
    """Toss a coin for each unit, ``samples`` times: yield 1 for a change of places, else 0, in blocks."""
    rng = np.random.default_rng(seed)
    for rows in _block_sizes(units, samples, progress):
        coins = np.frombuffer(rng.bytes(rows * -(-units // 8)), dtype=np.uint8).reshape(rows, -1)
        yield np.unpackbits(coins, axis=1, count=units).astype(np.float64)


def _block_sizes(units: int, samples: int, progress: Progress | None) -> Iterator[int]:
    size = max(1, BLOCK_BYTES // (8 * units))
    for start in range(0, samples, size):
        if progress is not None:
            progress(start, samples)
        yield min(size, samples - start)


class Totals(NamedTuple):
    """Sums of line statistics and numbers of lines, by resample and class; the lines as they are are one resample."""

    sums: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class LineSample:
    """The statistics of systems on the same lines (at least one), finite or inf.

    ``documents`` is the number of each line's document, from 0; None if each line is by itself. If systems have
    training runs, their statistics are means over these, and ``runs`` has a sample of each system's runs.
    """

    metric: Metric
    statistics: Array
    members: Array
    documents: Integers | None = None
    runs: tuple[LineSample, ...] = ()

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.members)

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
    def has_spread(self) -> bool:
        """Whether intervals and tests follow from the spread of documents, or of many lines.

        Few lines are resampled, which sees how skewed their figures are; with many, both are the same.
        """
        return self.units > (MANY if self.documents is None and not self.runs else 1)

    @property
    def is_of_mean_loss(self) -> bool:
        """Whether a score is made from one mean loss, so that systems are told apart by their mean losses."""
        return self.metric.measure.of_losses and self.members.shape[1] == 1

    @property
    def are_drawn(self) -> bool:
        """Whether pairs are tested by samples, not by the figures of lines."""
        return not self.has_spread and not (self.is_of_mean_loss and self.documents is None)

    @property
    def infinite(self) -> Flags:
        """Whether a system has an infinite statistic on a line: lines x systems."""
        infinite: Flags = np.any(~(np.abs(self.statistics) <= MAX_FINITE), axis=0)
        return infinite

    def select(self, lines: Flags | slice, systems: Sequence[int]) -> LineSample:
        """Keep some systems on some lines (at least one)."""
        members = self.members[lines]
        return replace(
            self,
            statistics=self.statistics[:, lines][:, :, systems],
            members=members[:, members.any(axis=0)],
            documents=None if self.documents is None else np.unique(self.documents[lines], return_inverse=True)[1],
            runs=tuple(self.runs[n].select(lines, range(self.runs[n].systems)) for n in systems if self.runs),
        )

    def totals(self, blocks: Iterable[Array] | None = None) -> Totals:
        """Sum over the lines with the weights of each resample; by default, over the lines as they are.

        A sum with an infinite statistic is inf, never NaN.
        """
        columns, lines, systems = self.statistics.shape
        classes, infinite = self.members.shape[1], ~(np.abs(self.statistics) <= MAX_FINITE)
        cells = np.where(infinite, 0.0, self.statistics)
        if infinite.any():
            cells = np.concatenate([cells, infinite])
        by_class = np.einsum("cls,lk->lcsk", cells, self.members)
        table = np.hstack([by_class.reshape(lines, -1), self.members])
        if self.documents is not None:
            table = np.stack([np.bincount(self.documents, column) for column in table.T], axis=1)
        if blocks is None:
            weighted = table.T.copy().sum(axis=1)[np.newaxis]
        else:  # BLAS adds in an order that depends on the machine: with this many bits, no sum is rounded
            places = 52 - np.frexp(self.units * np.abs(table).max(axis=0))[1]
            table = np.ldexp(np.rint(np.ldexp(table, places)), -places)
            weighted = np.concatenate([weights @ table for weights in blocks])
        sums = weighted[:, :-classes].reshape(len(weighted), -1, systems, classes).transpose(1, 0, 2, 3)
        finite, infinities = sums[:columns], sums[columns:]
        if len(infinities):
            finite[infinities > 0] = np.inf
        return Totals(finite, weighted[:, -classes:])

    def scores(self, totals: Totals) -> Array:
        """Compute each system's score on each resample: resamples x systems.

        A metric with classes takes the mean over the classes that the resample has. A resample with an infinite line
        scores what the metric makes of it.
        """
        counts = totals.counts[:, np.newaxis, :]
        # A perplexity beyond the range of a double is inf; classes without lines are left out.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            values = self.metric.measure.formula(list(totals.sums), np.maximum(counts, 1))
        mean: Array = np.where(counts > 0, values, 0.0).sum(axis=2) / (counts > 0).sum(axis=2)
        return mean

    def tested_values(self, totals: Totals) -> Array:
        """Return the tested figures, resamples x systems: the metric, or the mean loss if that is equivalent."""
        return totals.sums[0, :, :, 0] / totals.counts if self.is_of_mean_loss else self.scores(totals)

    def exchanges(self, samples: int, seed: int, progress: Progress | None = None) -> Callable[[Pair], Array]:
        """Return a function of two systems: their difference in each sample, after they changed places on some lines.

        The systems of every pair change places on the same lines, or documents.
        """
        observed, swapped = self.totals(), self.totals(swap_weights(self.units, samples, seed, progress))

        def differences(pair: Pair) -> Array:
            moved = swapped.sums[:, :, pair]
            values = self.scores(Totals(observed.sums[:, :, pair] - moved + moved[:, :, ::-1], observed.counts))
            return values[:, 0] - values[:, 1]

        return differences

    def line_scores(self) -> Array:
        """Compute the score of each line alone: lines x systems, NaN for no score."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Array = self.metric.measure.formula(list(self.statistics), np.ones(self.statistics.shape[1:]))
        return scores

    def line_figures(self, *, of_score: bool = False) -> Array:
        """Return a figure for each line, whose mean stands for the score: systems x lines, inf if infinite.

        The figures are the losses or, for a metric that is not made from one mean loss and always if ``of_score``,
        the jackknife's pseudo-values: N times the score, minus N - 1 times the score without the line. NaN where
        these are undefined, and for a corpus-level metric.
        """
        shape = self.systems, self.lines
        if self.metric.measure.corpus_score is not None:
            return np.full(shape, np.nan)
        figures = np.full(shape, np.inf)
        for system, is_finite in enumerate(~self.infinite.T):
            if self.is_of_mean_loss and not of_score:
                figures[system, is_finite] = self.statistics[0, is_finite, system]
            elif is_finite.sum() > 1:
                figures[system, is_finite] = self.select(is_finite, [system]).pseudo_values()
        return figures

    def pseudo_values(self) -> Array:
        """Compute the jackknife's pseudo-values of one system on two finite lines or more."""
        observed, without = self.totals(), np.empty(self.lines)
        for part in slices(self.lines, max(1, BLOCK_BYTES // (8 * len(self.statistics) * self.members.shape[1]))):
            members = self.members[part]
            of_lines = np.einsum("cls,lk->clsk", self.statistics[:, part], members)
            totals = Totals(observed.sums - of_lines, observed.counts - members)
            without[part] = self.scores(totals)[:, 0]
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
        return Totals(np.array(scores)[np.newaxis, :, :, np.newaxis], np.full((len(scores), 1), float(self.lines)))

    def exchanges(self, samples: int, seed: int, progress: Progress | None = None) -> Callable[[Pair], Array]:
        def differences(pair: Pair) -> Array:
            one, other = (np.arange(self.lines) + self.lines * system for system in pair)
            blocks = swap_weights(self.units, samples, seed, progress)
            swaps = (weights[self.unit_of_line] > 0 for block in blocks for weights in block)
            return np.array([
                self.score_of(np.where(swap, other, one)) - self.score_of(np.where(swap, one, other))
                for swap in swaps
            ])  # fmt: skip

        return differences

    def line_scores(self) -> Array:
        scores = np.array([self.score_of(np.array([place])) for place in range(self.lines * self.systems)])
        return scores.reshape(self.systems, self.lines).T


def sample_of(metric: Metric, systems: Sequence[LineStatistics], documents: Integers | None = None) -> LineSample:
    """Make a sample of systems on the same lines, with the number of each line's document."""
    lines, classes = systems[0].lines, systems[0].classes
    if metric.measure.corpus_score is not None:
        return CorpusSample(
            metric,
            np.zeros((1, lines, len(systems))),
            np.ones((lines, 1)),
            documents,
            score_of=metric.measure.corpus_score(systems),
        )
    statistics = np.array([system.columns for system in systems])
    numbers = {one: n for n, one in enumerate(sorted(set(classes), key=str))}
    members = np.eye(len(numbers))[[numbers[one] for one in classes]] if classes else np.ones((lines, 1))
    return LineSample(metric, statistics.transpose(1, 2, 0), members, documents)


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

    It follows from the spread of lines or documents or, with undefined figures or few lines of which some are
    infinite, from resamples. That of a metric of the mean loss is computed from the ends of the mean's interval.
    With ``as_geval``, the percentiles are GEval's, whatever the number of lines. The same seed gives the same
    intervals; 0 is a seed.

    Raises UsageError for fewer than one sample, or a seed below 0.
    """
    check_sampling(samples, seed)
    computed: list[Interval | None] = [None] * sample.systems
    by_spread = sample.units > 1 and (sample.has_spread or sample.is_of_mean_loss)
    by_spread = by_spread and not (as_geval and sample.documents is None)
    measure, lines, count = sample.metric.measure, sample.lines, sample.document_count
    for n, figures in enumerate(sample.line_figures() if by_spread else ()):
        if not np.isfinite(figures).all():
            ends = _ends_of_infinite(sample, figures)
            if ends is None:
                continue
        elif sample.runs or sample.documents is not None:
            mean, half = mean_of(figures), spread_of_figures(sample, figures, [n]).half_width
            ends = mean - half, mean + half
        elif sample.is_of_mean_loss and not measure.in_nats:  # 1 for a miss, else 0
            ends = interval_of_share(mean_of(figures), lines)
        else:
            ends = interval_of_mean(figures)
        if sample.is_of_mean_loss:
            low, high = (measure.formula([max(0.0, end) * lines], lines) for end in ends)
        else:
            bias = float(sample.scores(sample.select(slice(None), [n]).totals())[0, 0] - figures.mean())
            low, high = (end + bias for end in ends)
        best, worst = sorted((measure.best, measure.worst))
        low, high = sorted(min(max(end, best), worst) for end in (low, high))
        computed[n] = Interval(low, high, documents=count)
    if None not in computed:
        return [one for one in computed if one is not None]
    tail = GEVAL_TAIL if as_geval else expanded_tail(sample.units)
    scores = sample.scores(sample.totals(bootstrap_weights(sample.units, samples, seed, progress)))
    return [
        one or Interval.of(column.tolist(), samples=samples, seed=seed, tail=tail, documents=count)
        for one, column in zip(computed, scores.T, strict=True)
    ]


def _ends_of_infinite(sample: LineSample, figures: Array) -> tuple[float, float] | None:
    """Return the ends of the interval of a mean loss with infinite lines; None if resamples are needed.

    With k of n units infinite, a resample has none of them with probability (1 - k / n)^n, and is infinite otherwise:
    from four units, both ends are. Of many lines, the lower end is a quantile of the finite resamples, whose mean is
    nearly normal.
    """
    units, finite = sample.units, figures[np.isfinite(figures)]
    infinite = len(np.unique(sample.unit_of_line[~np.isfinite(figures)]))
    absent, tail = (1 - infinite / units) ** units, expanded_tail(units)
    if not sample.is_of_mean_loss or (absent > tail and (sample.documents is not None or units <= MANY)):
        return None
    if absent <= tail:
        return math.inf, math.inf
    deviation = float(finite.std(ddof=1)) / math.sqrt(len(finite))
    return mean_of(finite) + NormalDist().inv_cdf(tail / absent) * deviation, math.inf


# Paired tests


def comparable_parts(
    sample: LineSample, pairs: Iterable[Pair]
) -> Iterator[tuple[LineSample, dict[int, int], list[Pair]]]:
    """Group pairs of systems by the lines on which both are finite; yield these lines and the pairs.

    The second item is where the new sample has each system. A pair without such lines is left out.
    """
    finite = ~sample.infinite
    parts: dict[bytes, tuple[Flags, list[Pair]]] = {}
    for one, other in pairs:
        keep = finite[:, one] & finite[:, other]
        parts.setdefault(np.packbits(keep).tobytes(), (keep, []))[1].append((one, other))
    for keep, together in parts.values():
        systems = sorted({n for pair in together for n in pair})
        # The score of a corpus is of places among the lines of all systems.
        if keep.all() and (isinstance(sample, CorpusSample) or len(systems) == sample.systems):
            yield sample, {n: n for n in systems}, together
        elif keep.any():
            yield sample.select(keep, systems), {n: place for place, n in enumerate(systems)}, together


def pair_p_values(
    sample: LineSample, pairs: Iterable[Pair], *, samples: int, seed: int, progress: Progress | None = None
) -> dict[Pair, float | None]:
    """Test pairs of systems on the lines that are finite in both.

    None if there is no such line, or if the difference favours the system with more infinite lines. By documents, the
    test is a t test; by line, it is approximate randomisation, computed for a metric of the mean loss and for many
    lines. Other metrics draw ``samples``; if few are as extreme as the observed difference, the p-value is the lesser
    of the counted one and of the samples' tail.
    """
    pairs, failures, sign = list(pairs), sample.infinite.sum(axis=0), sample.metric.measure.sign
    p_values: dict[Pair, float | None] = dict.fromkeys(pairs)
    for part, place, together in comparable_parts(sample, pairs):
        totals = part.totals()
        values, scores = part.tested_values(totals)[0].tolist(), (sign * part.scores(totals)[0]).tolist()
        figures = None if part.are_drawn else part.line_figures()
        differences = None
        for pair in together:
            one, other = place[pair[0]], place[pair[1]]
            more_failures = int(failures[pair[0]]) - int(failures[pair[1]])
            if (scores[one] - scores[other]) * more_failures < 0:
                continue
            if figures is not None and not np.isnan(figures[[one, other]]).any():
                own, others = figures[one], figures[other]
                change, noise = own - others, NOISE * (abs(sum_of(own)) + abs(sum_of(others)))
                if part.documents is None and not part.runs:
                    p_values[pair] = sign_flip_p_value(change, noise)
                else:
                    mean, spread = mean_of(change), spread_of_figures(part, change, [one, other])
                    p_values[pair] = 1.0 if abs(mean) * part.lines <= noise else spread.p_value(mean)
                continue
            differences = differences or part.exchanges(samples, seed, progress)
            exchanged, observed = differences((one, other)), values[one] - values[other]
            p_value = float(counted_p_value(exchanged, observed, NOISE * (abs(values[one]) + abs(values[other]))))
            if round(p_value * (samples + 1)) - 1 <= FEW_EXTREME and not isinstance(part, CorpusSample):
                of_lines = part.statistics[:, :, one] - part.statistics[:, :, other]
                of_units = np.array([np.bincount(part.unit_of_line, column) for column in of_lines])
                units = int((of_units != 0.0).any(axis=0).sum())
                p_value = min(p_value, exponential_tail(exchanged, abs(observed), units))
            p_values[pair] = p_value
    return p_values


def ranking_p_values(sample: LineSample, tested: Mapping[Pair, float | None]) -> dict[Pair, float]:
    """Return the p-values by which systems are ranked, from those of :func:`pair_p_values`.

    A system that is finite on all lines is better than one that is not, without a test: p = 0. Pairs without a
    p-value cannot be told apart: p = 1.
    """
    fails = np.any(sample.infinite, axis=0)
    return {
        pair: 0.0 if fails[pair[0]] != fails[pair[1]] else 1.0 if p_value is None else p_value
        for pair, p_value in tested.items()
    }


def counted_p_value(differences: Array, observed: Array | float, noise: Array | float) -> Array:
    """Return the share of differences as far from 0 as the observed one, up to rounding; it counts itself.

    An undefined difference, of undefined scores, counts as one that is as far.
    """
    extreme = ~(np.abs(differences) < np.abs(observed) - noise)
    share: Array = (extreme.sum(axis=0) + 1) / (len(differences) + 1)
    return share


class BaselineTest(NamedTuple):
    """The 95 % interval of the difference of scores, None if it is undefined, a p-value, and that spread."""

    interval: Interval | None
    p_value: float
    spread: Spread


def against_baseline(
    sample: LineSample, baseline: int, *, samples: int, seed: int, progress: Progress | None = None
) -> list[BaselineTest]:
    """Test each system against the baseline by the bootstrap or, by documents and for many lines, by a t test.

    The statistics are finite. A single line, or document, tells nothing about the spread: p is 1, as that of the
    baseline.
    """
    totals = sample.totals()
    count, systems = sample.document_count, sample.systems
    tests: list[BaselineTest] = []
    figures = [sample.line_figures(of_score=of_score) for of_score in (False, True) if sample.has_spread]
    if figures and not any(np.isnan(one).any() for one in figures):
        scores, (base, base_scores) = sample.scores(totals)[0], (one[baseline] for one in figures)
        for n, (own, own_scores) in enumerate(zip(*figures, strict=True)):
            spread = spread_of_figures(sample, own_scores - base_scores, [n, baseline], of_score=True)
            changes, difference, half = own - base, float(scores[n] - scores[baseline]), spread.half_width
            change = mean_of(changes)
            if abs(change) <= NOISE * (abs(mean_of(own)) + abs(mean_of(base))):
                change = 0.0
            ends = Interval(difference - half, difference + half, documents=count)
            tests.append(
                BaselineTest(ends, spread_of_figures(sample, changes, [n, baseline]).p_value(change), spread)
            )
        return tests
    resampled = sample.totals(bootstrap_weights(sample.units, samples, seed, progress))
    observed, values = sample.tested_values(totals), sample.tested_values(resampled)
    observed_difference = observed - observed[:, [baseline]]
    shifted = (values - values[:, [baseline]]) - observed_difference
    noise, p_values = NOISE * (np.abs(observed) + np.abs(observed[:, [baseline]])), np.ones(systems)
    if sample.units > 1:
        p_values = counted_p_value(shifted * expansion(sample.units), observed_difference, noise)
    if 1 < sample.lines <= MIN_RESAMPLED and sample.is_of_mean_loss and sample.documents is None:
        changes = sample.statistics[0].T - sample.statistics[0, :, baseline]
        by_t = [spread_of_mean(own, sample.unit_of_line).p_value(mean_of(own)) for own in changes]
        p_values = np.maximum(p_values, by_t)
    scores, tail = sample.scores(resampled), expanded_tail(sample.units)
    base = scores[:, [baseline]]
    with np.errstate(invalid="ignore"):  # both scores are infinite
        differences = scores - base
        differences[np.isfinite(base) & (np.abs(differences) <= NOISE * np.abs(base))] = 0.0
    for column, p_value in zip(differences.T, p_values.tolist(), strict=True):
        interval, half = None, math.nan
        if not np.isnan(column).any():
            interval = Interval.of(column.tolist(), samples=samples, seed=seed, tail=tail, documents=count)
            half = interval.half_width
        degrees = max(1, sample.units - 1)
        tests.append(BaselineTest(interval, p_value, Spread(half / t_quantile(degrees), degrees)))
    return tests


def optimism(sample: LineSample, tries: int | None = None) -> float | None:
    """Return by how much the best score of as many equally good systems would beat that of their mean loss.

    The sample has two or more of these systems, by default all; they show how far the losses of systems are apart.

    The mean losses of n equal systems, without what their lines have in common, are nearly normal, and the least of
    them lies Phi^-1((n - 3/8) / (n + 1/4)) standard deviations below their mean (Blom, "Statistical Estimates and
    Transformed Beta-Variables", 1958). Lines with an infinite loss are left out. None for fewer than three systems or
    two units, and for a metric that is not made from one mean loss.
    """
    tries, finite = tries or sample.systems, ~np.any(sample.infinite, axis=1)
    if not sample.is_of_mean_loss or tries < MIN_TRIES or not finite.any():
        return None
    part = sample.select(finite, range(sample.systems))
    if part.units < 2:
        return None
    losses, units = part.statistics[0], part.unit_of_line
    own = losses - losses.mean(axis=1, keepdims=True)
    variance = float(np.mean([spread_of_mean(column, units).deviation ** 2 for column in own.T]))
    least = NormalDist().inv_cdf((tries - 0.375) / (tries + 0.25))
    mean = mean_of(losses)
    best = max(0.0, mean - least * math.sqrt(variance * part.systems / (part.systems - 1)))
    of_mean, of_best = (part.metric.measure.formula([value * part.lines], part.lines) for value in (mean, best))
    return abs(float(of_mean) - float(of_best))


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


# Small p-values of approximate randomisation, smaller than counting samples can tell


def sign_flip_p_value(differences: Array, noise: float = 0.0) -> float:
    """Return the two-sided p-value of a sum of differences (finite) whose signs are random, without drawing any.

    The systems of a pair change places on each line by the toss of a coin. So for a sum of losses, approximate
    randomisation is about S, the sum of the differences d_i with random signs, and its p-value is 2 P(S >= x) for the
    observed sum x > 0. With few differences, all signs are tried. Otherwise, with
    K(t) = sum log cosh(t d_i) and K'(t) = x, the saddlepoint approximation is

        P(S >= x) = Phi(-w) + phi(w) (1 / u - 1 / w),    w = sqrt(2 (t x - K(t))),    u = t sqrt(K''(t))

    (Lugannani and Rice, "Saddle point approximation for the distribution of the sum of independent random variables",
    1980; Robinson, "Saddlepoint approximations for permutation tests and confidence intervals", 1982). Where a few
    differences have most of the squares, S has gaps between its values, which the approximation does not see. Then
    the p-value is at least the one for which the greatest differences have all signs, and the rest is normal.

    The sum counts as less by ``noise``, so rounding cannot make it more extreme than an equal one.
    """
    sizes = np.sort(np.abs(differences[differences != 0.0]))[::-1]
    largest = float(sizes[0]) if len(sizes) else 0.0
    total = abs(sum_of(differences)) - noise
    if total <= 0.0:
        return 1.0
    sizes, total, count = sizes / largest, total / largest, len(sizes)
    if count <= MAX_SIGNED:
        return float((np.abs(_signed_sums(sizes)) >= total - NOISE * count).mean())
    if total + noise / largest >= sum_of(sizes) * (1 - NOISE):  # all signs are the same
        return max(2.0 ** (1 - count), MIN_P_VALUE)
    steps = sizes / sizes[-1]
    if (np.abs(steps - np.rint(steps)) <= NOISE).all():  # sums are 2 steps apart: a continuity correction
        total -= float(sizes[-1])
        if total <= 0.0:
            return 1.0
    squares = sizes * sizes
    every, t = sum_of(squares), total / sum_of(squares)
    for _ in range(100):  # steps of Newton's method, which approaches t from below
        tanh = np.tanh(t * sizes)
        variance = dot(squares, 1 - tanh * tanh)
        step = (total - dot(sizes, tanh)) / variance
        t += step
        if step <= 1e-10 * t:
            break
    log_cosh = sum_of(t * sizes + np.log1p(np.exp(-2 * t * sizes))) - count * math.log(2)
    w, u = math.sqrt(2 * max(0.0, t * total - log_cosh)), t * math.sqrt(variance)
    if w < MIN_DISTANCE:
        return 1.0
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    p_value = math.erfc(w / math.sqrt(2)) + 2 * density * (1 / u - 1 / w)
    rest = sum_of(squares[FEW_LARGE:])
    if rest < every / 2 and p_value > 2.0**-FEW_LARGE:
        beyond = (total - _signed_sums(sizes[:FEW_LARGE])) / math.sqrt(2 * max(rest, TINY))
        p_value = max(p_value, math.fsum(map(math.erfc, beyond.tolist())) / len(beyond))
    return max(min(1.0, p_value), MIN_P_VALUE)


def _signed_sums(sizes: Array) -> Array:
    """Return the sums of some sizes with all signs."""
    sums = np.zeros(1)
    for size in sizes.tolist():
        sums = np.concatenate([sums + size, sums - size])
    return sums


def exponential_tail(samples: Array, observed: float, units: int) -> float:
    """Return the two-sided p-value of an observed difference beyond most samples; 1 if these are too few.

    It is for a metric that is no function of sums of losses, which has no such bound: its tail, a fortieth of the
    samples, is extended by an exponential one. The tails of these distributions are lighter (about normal), so the
    p-value is rather too large than too small. ``units`` is the number of lines, or documents, on which the systems
    differ: with so many coins no p-value is less than 2^(1 - units). The mean excess over the tail's beginning is
    taken at the upper end of its 95 % interval.
    """
    tail = len(samples) // 40
    if tail < 25:
        return 1.0
    sizes = np.sort(np.abs(samples))[-tail - 1 :]
    excess = mean_of(sizes[1:] - sizes[0]) * (1 + 1.645 / math.sqrt(tail))
    if not excess > 0.0:
        return 1.0
    p_value = tail / len(samples) * math.exp(-max(0.0, observed - float(sizes[0])) / excess)
    return max(p_value, 2.0 ** (1 - units), MIN_P_VALUE)


# How far the mean of lines, or of lines in documents, may be from the true one


class Spread(NamedTuple):
    """The standard deviation of a mean of lines in documents, and the degrees of freedom of its estimate.

    ``run_share`` is the share of the variance that is due to training runs, so that more lines do not reduce it.
    """

    deviation: float
    degrees: float
    run_share: float = 0.0

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval."""
        return t_quantile(self.degrees) * self.deviation

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
        if difference == 0.0:
            return 1.0
        return max(MIN_P_VALUE, t_tails(difference / self.deviation, self.degrees) if self.deviation > 0.0 else 0.0)

    def p_of_less(self, difference: float) -> float:
        """Test whether a mean that is 0 or less by so much is so by chance: one-sided."""
        p_value = self.p_value(difference) / 2
        return p_value if difference < 0.0 else 1.0 - p_value


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


def spread_of_figures(
    sample: LineSample, figures: Array, systems: Sequence[int], *, of_score: bool = False
) -> Spread:
    """Estimate the spread of the mean of finite figures, which are those of a system or differences of two.

    Where systems have training runs, it is how far the mean is from that of other runs and other lines. It comes from
    the analysis of variance of runs crossed with lines, as of readers and cases in radiology (Obuchowski and
    Rockette, "Hypothesis testing of diagnostic accuracy for multiple readers and multiple tests", 1995; Hillis, "A
    comparison of denominator degrees of freedom methods for multiple observer ROC analysis", 2007). The variance is
    that of the lines' means over runs, by CR2, plus that of the runs' means, less what the lines' has of the latter,
    since runs differ from line to line; but it is not less than the lines'. The variance R of the runs' means has
    m R^2 / (the sum of the squares of the systems' parts) = d degrees of freedom, where m is one less than the least
    number of runs. For Satterthwaite's degrees, R is weighed by (1 + 2 / d)^2: otherwise the interval would be too
    narrow where few runs are alike by chance (docs/compare.md has simulations). A single run has no variance of runs.
    """
    of_line = sample.unit_of_line
    if not sample.runs:
        return spread_of_mean(figures, of_line)
    if sample.units < 2:
        return Spread(math.inf, 1.0)
    difference, variances, shared, least = np.zeros(sample.lines), [], 0.0, math.inf
    for one in (sample.runs[n] for n in systems):
        runs = one.line_figures(of_score=of_score)
        mean, more = runs.mean(axis=0), len(runs) - 1
        difference = mean - difference
        if more:
            variances.append(float(runs.mean(axis=1).var(ddof=1)) / len(runs))
            shared += sum(spread_of_mean(run - mean, of_line).deviation ** 2 for run in runs) / more / len(runs)
            least = min(least, more)
    of_lines, of_runs = spread_of_mean(difference, of_line), sum(variances)
    lines, added = of_lines.deviation**2, max(0.0, of_runs - shared)
    if of_runs == 0.0 or lines + added == 0.0:
        return of_lines
    degrees = least * of_runs**2 / sum(one**2 for one in variances)
    weighed = of_runs * (1 + 2 / degrees) ** 2
    squares = weighed**2 / degrees + lines**2 / of_lines.degrees
    return Spread(math.sqrt(lines + added), max(1.0, (weighed + lines) ** 2 / squares), added / (lines + added))


def interval_of_share(share: float, lines: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, which exists for a share of 0 or 1, too (Wilson 1927).

    >>> [round(end, 4) for end in interval_of_share(1.0, 20)]
    [0.8389, 1.0]
    """
    z = NORMAL_QUANTILE
    middle, of_all = share + z * z / (2 * lines), 1 + z * z / lines
    half = z * math.sqrt(share * (1 - share) / lines + (z / (2 * lines)) ** 2)
    return (middle - half) / of_all, (middle + half) / of_all


def interval_of_mean(values: Array) -> tuple[float, float]:
    """Return the 95 % interval of the true mean of single lines, two or more.

    They may be few, and their losses are skewed: most are small, and a few are large. With s the standard deviation
    of the lines and g their skewness, not (m - mean) / s but

        u + g u^2 / 3 + g^2 u^3 / 27 + g / (6 N),    u = (m - mean) / s,

    is nearly as symmetrical as Student's t / sqrt(N) (Hall, "On the removal of skewness by transformation", 1992).
    The degrees of freedom are Satterthwaite's, 2 / (relative variance of s^2): N - 1 for normal losses, and fewer the
    more of the variance comes from a few lines, by their kurtosis.
    """
    mean, deviation, skewness, lines = mean_of(values), float(values.std(ddof=1)), 0.0, len(values)
    degrees = lines - 1.0
    centred = values - mean
    scale = float(np.abs(centred).max())
    if lines > 2 and scale > 0.0:  # an estimate without bias for normal values
        centred /= scale  # so that no power is too great or too small for a double
        second, third, fourth = (mean_of(centred**power) for power in (2, 3, 4))
        skewness = third / math.pow(second, 1.5) * math.sqrt(lines * (lines - 1)) / (lines - 2)
        degrees = min(degrees, 2 * lines / (fourth / second**2 - (lines - 3) / (lines - 1)))
    t = t_quantile(degrees) / math.sqrt(lines)
    ends = []
    for y in (t - skewness / (6 * lines), -t - skewness / (6 * lines)):  # solve for u
        if abs(skewness * y) < MIN_SKEWED:
            u = y - skewness * y * y / 3
        else:
            u = 3 / skewness * (math.cbrt(1 + skewness * y) - 1)
        ends.append(mean - deviation * u)
    return ends[0], ends[1]


def sums_by(groups: Integers, values: Array | Flags | None = None) -> Array:
    """Return the sum of the values of each group, or their number; groups are numbered from 0."""
    return np.bincount(groups, values).astype(np.float64)
