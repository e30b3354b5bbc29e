"""Calibration: whether the probabilities of an output come true as often as they say.

The output is read again for the profiles of its lines. From them come the parts of the answer: the loss that the
distributions claim, all listed words, the first guess, the rest and the smallest sets.

Each part is shown beside what *honest* probabilities of the same size and number would show: those of which each
thing comes true as often as its probability says. It is found by drawing: the consistency band of J. Broecker and L.
A. Smith, "Increasing the reliability of reliability diagrams", Weather and Forecasting 22 (2007). No measure of error
means anything without it: the expected calibration error of even the most honest forecaster is above 0. The draws are
of single lines. By document, the band is at least as wide as the interval by document.

In this order: the calibration of an output; reliability in bins, and the calibration error; profiles, which say what
the distributions of an output's lines claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.documents import DocumentsBy, choose_documents, notes_on_documents
from geval_py.explaining.significance import NORMAL, dot, mean_of, sum_of
from geval_py.explaining.statistics import spread_of_mean, sums_by
from geval_py.reading import config
from geval_py.reading.files import ANSWERS_ALONE
from geval_py.scoring import evaluate, scores
from geval_py.scoring.kernel.profile import bin_of
from geval_py.scoring.metrics.base import NOISE, Array, Flags, Integers, exp
from geval_py.scoring.metrics.hashed import ProfileStatistics, profiled
from geval_py.tables.formats import Tabular
from geval_py.tables.layout import fitted
from geval_py.tables.numbers import counted, fixed
from geval_py.tables.table import Column, Table, named_columns, plain_table
from geval_py.text import named, visible

if TYPE_CHECKING:
    import pandas as pd


BAND = (0.025, 0.975)  # the quantiles of what honest probabilities would show
DRAWS = 200
BINS, WORD_BINS = 10, 20
DIGITS = 12  # probabilities that agree in so many digits are equal
LEVELS = (0.5, 0.8, 0.9)  # of the sets; a sentence names them
SETS = "the smallest sets"
SETS_OF_GUESSES = "the smallest sets, on lines with a guess"
LEGEND = "calibrated: the range in which 95 % of calibrated outputs lie."


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The loss that an output expects of itself, and the loss it gets, on the lines with a finite loss.

    ``entropy`` is the loss that the distributions expect, ``loss`` the actual one, ``gap`` the difference with its 95
    % interval from ``low`` to ``high``, by documents if lines are alike by them: all are means in nats a word. ``z``
    is the gap in standard errors, None without spread. ``lines`` were counted; the ``infinite`` lines with an
    infinite loss were left out. ``claimed_perplexity`` and ``perplexity`` are those of the entropy and of the loss.
    """

    lines: int
    infinite: int
    entropy: float
    loss: float
    gap: float
    low: float
    high: float
    z: float | None
    claimed_perplexity: float
    perplexity: float

    @property
    def is_significant(self) -> bool:
        """Whether the gap is more than chance, at 5 %."""
        return self.z is not None and not self.low <= 0.0 <= self.high


@dataclass(frozen=True, kw_only=True, repr=False)
class Calibration(Tabular):
    """How well an output's probabilities match the answers. Printed as sentences and tables.

    ``test`` is the name of the test set, ``file`` of the output, ``metric`` of the metric whose flags and bits hold;
    ``lines`` were scored, of which ``vectors`` are lines of buckets, which count for the claim only.

    ``claim`` compares the loss that the distributions expect of themselves with the actual loss; ``words`` are all
    listed words; ``guess`` is the likeliest word of each line that lists any, with its error ``guess_error``;
    ``rest`` is the mass of all other words on these lines, compared with how often the word was not listed.
    ``documents`` is the column by which intervals and bands are, None if they are by lines. ``sets`` has a point for
    each level: how often the smallest set of words with that probability held the word (a word at its edge counts by
    the part that is needed). Parts without data are None.
    """

    test: str
    file: str
    metric: str
    lines: int
    vectors: int
    signature: str | None
    claim: Claim
    documents: str | None
    notes: tuple[str, ...]
    words: Reliability | None
    guess: Reliability | None = None
    guess_error: CalibrationError | None = None
    rest: Reliability | None = None
    sets: Points | None = None
    sets_of_guesses: Points | None = None

    def points(self) -> dict[str, Points]:
        """Return the points of each part that has data, by the part's name."""
        points = {
            "all listed words": self.words and self.words.bins,
            "the first guess": self.guess and self.guess.bins,
            "the rest": self.rest and self.rest.bins,
            SETS: self.sets,
            SETS_OF_GUESSES: self.sets_of_guesses,
        }
        return {name: one for name, one in points.items() if one}

    def rows(self) -> Iterator[list[str]]:
        """Yield the cells of each point for people, after the name of its part."""
        for name, points in self.points().items():
            digits = 1 if name in (SETS, SETS_OF_GUESSES) else 4
            for row in points.to_dict():
                honest = f"[{fixed(row['low'], 4)}, {fixed(row['high'], 4)}]"
                yield [name, fixed(row["x"], digits), fixed(row["y"], 4), honest, str(row["n"])]

    def table(self) -> Table:
        figures = named_columns(("claimed", "true", "calibrated", "n"), "right")
        return Table([Column("part"), *figures], list(self.rows()))

    def signatures(self) -> Iterator[str]:
        return scores.signature_lines([(self.file, self.signature)])

    def records(self) -> Table:
        rows = ([name, *row.values()] for name, points in self.points().items() for row in points.to_dict())
        return plain_table(["part", "claimed", "true", "honest_low", "honest_high", "n"], rows)

    def legend(self) -> Iterator[str]:
        yield from self.sentences()
        yield LEGEND

    def text(self, width: int | None = None) -> Iterator[str]:
        """Write sentences and, below them, a table for each part; none is as wide as a terminal."""
        lines = f"{counted(self.lines, 'line')} of {visible(self.test)}"
        yield from fitted([f"{visible(self.file)}: {visible(self.metric)}, {lines}", "", *self.sentences()], width)
        for name, rows in groupby(self.rows(), key=lambda row: row[0]):
            yield f"\n{name}\n"
            heads = ("level" if name in (SETS, SETS_OF_GUESSES) else "claimed", "true", "calibrated", "n")
            yield from Table(named_columns(heads), [cells for _, *cells in rows]).text()
        yield from fitted(["", LEGEND], width)

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each part: what the output claims, and what came true."""

        def shares(part: Reliability | None, things: str, expected: str, did: str) -> Iterator[str]:
            if part is not None:
                figures = part.claimed, part.found, part.low, part.high
                claimed, true, low, high = (f"{fixed(100 * share, 1)} %" for share in figures)
                verdict = "within the calibrated range" if part.is_honest else f"calibrated range: {low} to {high}"
                yield f"Of {part.n} {things}, {claimed} {expected}, and {true} {did} ({verdict})."

        claim, error = self.claim, self.guess_error
        if claim.lines:
            gap = f"{fixed(abs(claim.gap), 3)} ± {fixed((claim.high - claim.low) / 2, 3)} nats a word"
            how = "overconfident" if claim.gap > 0 else "underconfident"
            z = "" if claim.z is None else f" (z = {fixed(claim.z, 1)})"
            verdict = f"it is {how}, by {gap}{z}" if claim.is_significant else f"{gap}, which may be chance{z}"
            verdict = f"that is {gap}, the same on each line" if claim.z is None else verdict
            claimed, true = (fixed(p, 0 if p >= 100 else 1) for p in (claim.claimed_perplexity, claim.perplexity))
            yield f"It claims a perplexity of {claimed} and gets {true}: {verdict}."
        else:
            yield "The loss of every line is infinite, so the claimed perplexity cannot be checked."
        if self.documents is not None:
            yield f"The interval and the calibrated ranges are computed by document ({visible(self.documents)})."
        if claim.infinite:
            yield f"This leaves out {counted(claim.infinite, 'line')} with an infinite loss."
        if self.vectors:
            yield f"What follows leaves out {counted(self.vectors, 'line')} of buckets, which list no words."
        yield from shares(self.words, "listed words", "were expected to be right", "were")
        yield from shares(self.guess, "first guesses", "were expected to be right", "were")
        if error is not None:
            yield (
                f"The first guess's calibration error is {fixed(error.ece, 3)} (calibrated guesses: "
                f"{fixed(error.honest, 3)} on average, at most {fixed(error.honest_high, 3)} in 95 % of cases)."
            )
        yield from shares(self.rest, "lines with a guess", "were expected not to list the answer", "did not")
        every_line = "The smallest sets of 50, 80 and 90 % hold the word on {}, {} and {} % of the lines."
        guessed = (
            "A line that lists no words reaches every level. The sets hold the word on {}, {} and {} % of the {n} "
            "other lines."
        )
        for sets, sentence in ((self.sets, every_line), (self.sets_of_guesses, guessed)):
            if sets:
                yield sentence.format(*(fixed(100 * share, 1) for share in sets.y), n=sets.n[0])


def calibration(evaluation: scores.Evaluation, *, documents: DocumentsBy = None) -> Calibration:
    """Compare an output's probabilities with the answers.

    The evaluation's files are read again, with the flags and bits of its first metric on hashed words. Random numbers
    have a seed: the same output gives the same result. Intervals and bands are by ``documents``, as in
    :func:`geval_py.compare`.

    Raises UsageError if there is no such metric; DataError if the files have
    changed and are malformed.
    """
    schemes = calibration_schemes(schemes_of(evaluation))
    return calibration_of(reread(evaluation, schemes), documents=documents)


def calibration_schemes(schemes: Sequence[evaluate.Named]) -> list[evaluate.Named]:
    """Return the metric that :func:`calibration_of` needs, made from the first one on hashed words."""
    scheme, metric = hashed_scheme(schemes)
    return [(scheme, profiled(metric, DRAWS))]


def calibration_of(evaluation: scores.Evaluation, *, documents: DocumentsBy = None) -> Calibration:
    """Compute the calibration of an output that was scored with :func:`calibration_schemes`."""
    if evaluation.output.file.lists_answers_alone:
        raise UsageError(message=f"{named(evaluation.output.path)} has no calibration: {ANSWERS_ALONE}")
    statistics = profile_of(evaluation)
    of_file = choose_documents(evaluation, documents)
    grouped = of_file and of_file.of_score(evaluation.scores[0]).several()

    def documents_of(lines: Flags) -> Integers | None:
        kept = grouped and grouped.only(np.flatnonzero(lines))
        return kept.of_line if kept and kept.count > 1 else None

    vectors = statistics.column("vector") > 0
    lists = statistics.column("words") > 0
    parts: dict[str, Any] = {}
    if lists.any():
        probabilities, right, rests, listed = (
            statistics.column(name)[lists] for name in ("guess_mass", "guess_right", "rest", "listed")
        )
        of_line = documents_of(lists)
        guess, rest = Forecasts(probabilities, right, of_line), Forecasts(rests, 1 - listed, of_line)
        parts = {
            "guess": reliability(*guess.bin_sums),
            "guess_error": calibration_error(guess),
            "rest": reliability(*rest.bin_sums),
            "sets_of_guesses": _sets(statistics, lists, of_line) if (lists != ~vectors).any() else None,
        }
    return Calibration(
        test=evaluation.split.name,
        file=evaluation.output.name,
        metric=evaluation.scores[0].name,
        lines=statistics.lines,
        vectors=int(vectors.sum()),
        signature=str(evaluation.signature),
        claim=_claim(statistics, documents_of(np.isfinite(statistics.column("loss")))),
        documents=grouped and grouped.column,
        notes=tuple(notes_on_documents(of_file)),
        words=words_reliability(statistics, grouped and grouped.of_line),
        sets=None if vectors.all() else _sets(statistics, ~vectors, documents_of(~vectors)),
        **parts,
    )


def _claim(statistics: ProfileStatistics, documents: Integers | None) -> Claim:
    losses, entropies = statistics.column("loss"), statistics.column("entropy")
    finite = np.isfinite(losses)
    lines = int(finite.sum())
    entropy, loss, gap, half, error = mean_of(entropies), math.inf, math.inf, 0.0, 0.0
    if lines:
        gaps = losses[finite] - entropies[finite]
        entropy, loss, gap = map(mean_of, (entropies[finite], losses[finite], gaps))
        error = float(gaps.std(ddof=1)) / math.sqrt(lines) if lines > 1 else 0.0
        half = NORMAL * error
        if documents is not None:
            spread = spread_of_mean(gaps, documents)
            error, half = spread.deviation, spread.half_width
    return Claim(
        lines=lines,
        infinite=len(losses) - lines,
        entropy=entropy,
        loss=loss,
        gap=gap,
        low=gap - half,
        high=gap + half,
        z=gap / error if error > NOISE else None,
        claimed_perplexity=exp(entropy),
        perplexity=exp(loss),
    )


def _sets(statistics: ProfileStatistics, lines: Flags, documents: Integers | None) -> Points:
    """Count how often the smallest sets held the word; the band holds hits drawn with the level's probability."""
    ahead, among = (statistics.column(name)[lines] for name in ("ahead", "among"))
    reached = np.maximum(among, np.finfo(float).tiny)  # no set that ends before an impossible word holds it
    levels = np.array(LEVELS)
    held = np.clip((levels[:, np.newaxis] - ahead) / reached, 0, 1)
    widths = NORMAL * np.sqrt(levels * (1 - levels) / len(ahead))
    if documents is not None:
        residuals = held - levels[:, np.newaxis]
        widths = np.maximum(widths, [_half_width(column, documents) / len(ahead) for column in residuals])
    low, high = np.clip([levels - widths, levels + widths], 0, 1).tolist()
    return Points(list(LEVELS), held.mean(axis=1).tolist(), low, high, [len(ahead)] * len(LEVELS))


def _half_width(residuals: Array, documents: Integers) -> float:
    """Return half the width of the range of a sum of residuals by document.

    Those of honest probabilities have the mean 0, so their variance is that around 0, not around their own mean.
    """
    sums = sums_by(documents, residuals)
    return NORMAL * math.sqrt(dot(sums, sums))


def _widenings(residuals: Iterable[Array], honest: Array, documents: Integers | None) -> Array:
    """Return how many times as wide as the band of draws the range of a sum is by document, at least 1.

    The residuals are those of each bin, whose draws are ``honest`` (draws x bins), and those of all.
    """
    low, high = np.quantile(np.column_stack([honest, honest.sum(axis=1)]), BAND, axis=0)
    if documents is None:
        return np.ones(len(low))
    widths = [2 * _half_width(column, documents) for column in residuals]
    return np.asarray(np.maximum(1.0, widths / np.maximum(high - low, NOISE)))


# Reliability in bins, and the calibration error


class Points(NamedTuple):
    """Points of a chart, by rising ``x``: aligned lists.

    ``x`` is the probability, ``y`` what came true of it, ``low`` and ``high`` the 95 % band of y for honest
    probabilities, ``n`` how many there are; all probabilities are in [0, 1].
    """

    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]
    n: list[int]

    def to_dict(self) -> list[dict[str, float]]:
        """Return the points for JSON, one after the other."""
        return [dict(zip(self._fields, row, strict=True)) for row in zip(*self, strict=True)]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per point, and the columns ``x``, ``y``, ``low``, ``high``, ``n``."""
        import pandas as pd

        return pd.DataFrame(self._asdict())


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """The probabilities of ``n`` things compared with what came true.

    ``claimed`` is the mean probability, ``found`` the share that came true, ``low`` and ``high`` the 95 % band of
    that share for honest probabilities; ``bins`` have the same figures for parts with equally many things (for words:
    equally many expected hits).
    """

    n: int
    claimed: float
    found: float
    low: float
    high: float
    bins: Points

    @property
    def is_honest(self) -> bool:
        """Whether honest probabilities would show such a share."""
        return self.low <= self.found <= self.high

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the bins; see :class:`Points`."""
        return self.bins.to_frame()


class Forecasts:
    """Probabilities of things (at least one), and whether each came true; equal probabilities are merged.

    ``p`` are the different probabilities, rising; ``n`` the number of things with each; ``hits`` how many of these
    came true. ``bin_sums`` are, for bins of about equally many things, their number, the sum of their probabilities,
    how many came true and, a row per draw, how many of honest probabilities would; and how many times wider the band
    of each bin is by ``documents``, and that of all things.
    """

    def __init__(self, probabilities: Array, outcomes: Array, documents: Integers | None = None) -> None:
        self.p, places = np.unique(np.round(probabilities, DIGITS), return_inverse=True)
        self.n, self.hits = (sums_by(places, column) for column in (None, outcomes))
        before, self.total = np.cumsum(self.n) - self.n / 2, sum_of(self.n)
        bins = np.unique((before * BINS / self.total).astype(int), return_inverse=True)[1]
        columns = (self.n, self.p * self.n, self.hits)
        n, claimed, hits = (sums_by(bins, column) for column in columns)
        honest = np.array([np.bincount(bins, hits) for hits in self.draws()])
        residuals = outcomes - probabilities
        of_bins = (residuals * (bins[places] == one) for one in range(len(n)))
        wider = _widenings(chain(of_bins, [residuals]), honest, documents)
        self.bin_sums = n, claimed, hits, honest, wider

    def draws(self) -> Iterator[Array]:
        """Draw the hits of honest probabilities, DRAWS times; the draws are always the same."""
        rng, things, p = np.random.default_rng(config.DEFAULT_SEED), self.n.astype(int), np.clip(self.p, 0.0, 1.0)
        several, hits = things > 1, np.empty(len(p))
        for _ in range(DRAWS):
            hits[several] = rng.binomial(things[several], p[several])
            hits[~several] = rng.random(len(p) - several.sum()) < p[~several]  # in a sixth of the time
            yield hits.copy()


def words_reliability(statistics: ProfileStatistics, documents: Integers | None) -> Reliability | None:
    """Compute the reliability of all listed words; in the band's draws, at most one word comes true on a line.

    By document, the band of a bin is at least as wide as the interval of the number of its hits. None if no line
    lists a word with a probability.
    """
    histogram = statistics.histogram
    is_used = histogram[:, 0] > 0
    used = histogram[is_used]
    mass = used[:, 1]
    if not mass.sum():
        return None
    before = (np.cumsum(mass) - mass / 2) * WORD_BINS / mass.sum()
    bins = np.unique(before.astype(int), return_inverse=True)[1]
    sums = np.zeros((bins.max() + 1, used.shape[1]))
    np.add.at(sums, bins, used)
    n, claimed, hits, *honest = sums.T
    listed, others, word_mass = (statistics.column(name) for name in ("listed", "rest", "word_mass"))
    hit = listed if documents is None else bins[np.cumsum(is_used)[[bin_of(mass) for mass in word_mass]] - 1]
    of_bins = (listed * (hit == one) - claimed[one] / len(listed) for one in range(len(n)))
    of_all, draws = listed + others + statistics.column("vector") - 1, np.array(honest)
    return reliability(n, claimed, hits, draws, _widenings(chain(of_bins, [of_all]), draws, documents))


def reliability(n: Array, claimed: Array, hits: Array, honest: Array, wider: Array) -> Reliability:
    """Compute shares from the sums of each bin; ``honest`` are draws x bins, ``wider`` is of each bin and of all."""
    n, claimed, hits, honest = (np.append(one, one.sum(-1, keepdims=True), -1) for one in (n, claimed, hits, honest))
    honest += (honest - claimed) * (wider - 1)
    ends = np.clip(np.quantile(honest / n, BAND, axis=0), 0.0, 1.0)
    x, y, low, high, counts = (column.tolist() for column in (claimed / n, hits / n, *ends, n.astype(int)))
    return Reliability(
        n=counts.pop(), claimed=x.pop(), found=y.pop(), low=low.pop(), high=high.pop(),
        bins=Points(x, y, low, high, counts),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CalibrationError:
    """The expected calibration error, beside the one of honest probabilities.

    ``ece`` is the mean distance between the probability and the share that came true over bins of equally many
    things; ``honest`` is its mean for honest probabilities, ``honest_high`` their 95 % quantile. ``debiased`` is the
    root of the mean square distance minus the part that chance adds; at least 0.
    """

    ece: float
    honest: float
    honest_high: float
    debiased: float


def calibration_error(forecasts: Forecasts) -> CalibrationError:
    """Compute the calibration error of forecasts."""
    n, claimed, hits, honest_hits, wider = forecasts.bin_sums
    honest = (np.abs(claimed - honest_hits) * wider[:-1]).sum(axis=-1) / forecasts.total
    shares = hits / n
    chance = shares * (1 - shares) / np.maximum(n - 1, 1)
    # A single thing says nothing about its own probability.
    squares = np.where(n > 1, (shares - claimed / n) ** 2 - chance, 0.0)
    return CalibrationError(
        ece=sum_of(np.abs(claimed - hits)) / forecasts.total,
        honest=mean_of(honest),
        honest_high=float(np.quantile(honest, 0.95)),
        debiased=math.sqrt(max(0.0, dot(squares, n) / forecasts.total)),
    )


# Profiles: read in one pass, with the flags of a hashed metric


def hashed_scheme(schemes: Sequence[evaluate.Named]) -> evaluate.Named:
    """Return the first metric on hashed words; raises UsageError if there is none."""
    for scheme, metric in schemes:
        if metric.bits is not None:
            return scheme, metric
    names = ", ".join(scheme.text for scheme, _ in schemes)
    raise UsageError(message=f"this needs a metric on hashed words, such as PerplexityHashed, not {visible(names)}")


def reread(
    evaluation: scores.Evaluation,
    schemes: Sequence[evaluate.Named],
    vocabulary: frozenset[str] = frozenset(),
) -> scores.Evaluation:
    """Score an output again, with other metrics."""
    return evaluate.evaluate_output(evaluation.split, evaluation.output, schemes, vocabulary)


def schemes_of(evaluation: scores.Evaluation) -> list[evaluate.Named]:
    """Return an evaluation's metrics; raises UsageError for anything else, such as a path."""
    return [(score.scheme, score.metric) for score in scores.checked_evaluation(evaluation).scores]


def profile_of(evaluation: scores.Evaluation) -> ProfileStatistics:
    """Return the profile of an evaluation's first metric, which ``hashed.profiled`` made."""
    return cast(ProfileStatistics, evaluation.scores[0].statistics)
