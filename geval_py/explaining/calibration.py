"""Calibration: whether the probabilities of an output come true as often as they say.

The output is read again for the profiles of its lines. From them come the parts of the answer: the loss that the
distributions claim, all listed words, the first guess, the rest and the smallest sets.

Each part is shown beside what *honest* probabilities of the same size and number would show: those of which each
thing comes true as often as its probability says. It is found by drawing: the consistency band of J. Broecker and L.
A. Smith, "Increasing the reliability of reliability diagrams", Weather and Forecasting 22 (2007). No measure of error
means anything without it: the expected calibration error of even the most honest forecaster is above 0.

In this order: the calibration of an output; reliability in bins, and the calibration error; the reliability curve
without bins, and the parts of a Brier score; profiles, which say what the distributions of an output's lines claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.documents import choose_documents, notes_on_documents
from geval_py.explaining.significance import NORMAL
from geval_py.explaining.statistics import spread_of_mean
from geval_py.reading import config, sources
from geval_py.reading.formats import ANSWERS_ALONE, lists_answers_alone
from geval_py.scoring import evaluate, scores
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.profile import COUNTS
from geval_py.scoring.metrics.base import NOISE, exp
from geval_py.scoring.metrics.hashed import ProfileStatistics, profiled
from geval_py.tables.formats import Tabular
from geval_py.tables.layout import fitted
from geval_py.tables.numbers import counted, fixed
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import named, visible

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.explaining.documents import Documents, DocumentsBy
    from geval_py.explaining.significance import Array, Flags


BAND = (0.025, 0.975)  # the quantiles of what honest probabilities would show
DRAWS = 200
BINS, WORD_BINS = 10, 20
DIGITS = 12  # probabilities that agree in so many digits are equal
LEVELS = (0.5, 0.8, 0.9)  # of the sets
SETS = "the smallest sets"
SETS_OF_GUESSES = "the smallest sets, on lines with a guess"
LEGEND = "calibrated: the range in which 95 % of calibrated outputs lie."


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Calibration(Tabular):
    """How well an output's probabilities match the answers. Printed as sentences and tables.

    ``test`` is the name of the test set, ``file`` of the output, ``metric`` of the metric whose flags and bits hold;
    ``lines`` were scored, of which ``vectors`` are lines of buckets, which count for the claim only.

    ``claim`` compares the loss that the distributions expect of themselves with the actual loss; ``words`` are all
    listed words; ``guess`` is the likeliest word of each line that lists any, with its error ``guess_error`` and its
    curve ``corp``; ``rest`` is the mass of all other words on these lines, compared with how often the word was not
    listed. ``documents`` is the column by which the claim's interval is, None if it is by lines. ``sets`` has a point
    for each level: how often the smallest set of words with that probability held the word (a word at its edge counts
    by the part that is needed). Parts without data are None.
    """

    test: str
    file: str
    metric: str
    lines: int
    vectors: int
    signature: str | None
    claim: Claim
    documents: str | None
    notes: tuple[str, ...] = field(repr=False)
    words: Reliability | None = field(repr=False)
    guess: Reliability | None = field(default=None, repr=False)
    guess_error: CalibrationError | None = field(default=None, repr=False)
    corp: Corp | None = field(default=None, repr=False)
    rest: Reliability | None = field(default=None, repr=False)
    sets: Points | None = field(default=None, repr=False)
    sets_of_guesses: Points | None = field(default=None, repr=False)

    def points(self) -> dict[str, Points]:
        """Return the points of each part that has data, by the part's name."""
        parts = {"all listed words": self.words, "the first guess": self.guess, "the rest": self.rest}
        points = {name: part.bins for name, part in parts.items() if part is not None}
        sets = {SETS: self.sets, SETS_OF_GUESSES: self.sets_of_guesses}
        return points | {name: one for name, one in sets.items() if one is not None}

    def rows(self) -> Iterator[list[str]]:
        """Yield the cells of each point for people, after the name of its part."""
        for name, points in self.points().items():
            digits = 1 if name in (SETS, SETS_OF_GUESSES) else 4
            for row in points.to_dict():
                honest = f"[{fixed(row['low'], 4)}, {fixed(row['high'], 4)}]"
                yield [name, fixed(row["x"], digits), fixed(row["y"], 4), honest, str(row["n"])]

    def table(self) -> Table:
        figures = (Column(name=name, alignment="right") for name in ("claimed", "true", "calibrated", "n"))
        return Table([Column(name="part"), *figures], list(self.rows()))

    def signatures(self) -> Iterator[str]:
        if self.signature is not None:
            yield visible(f"{self.file}: {self.signature}")

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
            yield from Table([Column(name=head) for head in heads], [cells for _, *cells in rows]).text()
        yield from fitted(["", LEGEND], width)

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each part: what the output claims, and what came true."""

        def shares(part: Reliability | None, things: str, should: str, did: str) -> Iterator[str]:
            if part is not None:
                percents = (f"{fixed(100 * p, 1)} %" for p in (part.claimed, part.found, part.low, part.high))
                claimed, true, low, high = percents
                verdict = "within the calibrated range" if part.is_honest else f"calibrated range: {low} to {high}"
                yield f"Of {part.n} {things}, {claimed} {should}, and {true} {did} ({verdict})."

        claim, error, corp = self.claim, self.guess_error, self.corp
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
        if claim.infinite:
            yield f"This leaves out {counted(claim.infinite, 'line')} with an infinite loss."
        if self.vectors:
            yield f"What follows leaves out {counted(self.vectors, 'line')} of buckets, which list no words."
        yield from shares(self.words, "listed words", "should have been right", "were")
        yield from shares(self.guess, "first guesses", "should have been right", "were")
        if error is not None:
            yield (
                f"The first guess's calibration error is {fixed(error.ece, 3)}; that of calibrated guesses is "
                f"{fixed(error.honest, 3)} on average. Without the part due to chance, it is "
                f"{fixed(error.debiased, 3)} (root mean square)."
            )
        if corp is not None:
            yield (
                f"Its Brier score {fixed(corp.brier, 3)} is miscalibration {fixed(corp.miscalibration, 3)} "
                f"(calibrated guesses: {fixed(corp.honest, 3)}) - discrimination {fixed(corp.discrimination, 3)} + "
                f"uncertainty {fixed(corp.uncertainty, 3)}."
            )
        yield from shares(self.rest, "lines with a guess", "should not have listed the word", "did not")
        levels, *held = (
            "{}, {} and {}".format(*(fixed(100 * share, digits) for share in shares))
            for shares, digits in ((LEVELS, 0), *((sets.y, 1) for sets in (self.sets, self.sets_of_guesses) if sets))
        )
        if self.sets is not None:
            yield f"The smallest sets of {levels} % hold the word on {held[0]} % of the lines."
        if self.sets_of_guesses is not None:
            where = f"of the {self.sets_of_guesses.n[0]} lines with a guess"
            yield f"A line that lists no words reaches each level; {where}, they hold {held[-1]} %."


def calibration(evaluation: scores.ScoredOutput, *, documents: DocumentsBy = None) -> Calibration:
    """Compare an output's probabilities with the answers.

    The evaluation's files are read again, with the flags and bits of its first metric on hashed words. Random numbers
    have a seed: the same output gives the same result. The interval of the claim is by ``documents``, as in
    :func:`geval_py.compare`.

    Raises UsageError if there is no such metric or the output can be read only once; DataError if the files have
    changed and are malformed.
    """
    schemes = calibration_schemes(schemes_of(evaluation))
    again = reread(evaluation, schemes, sign=evaluation.signature is not None)
    return calibration_of(again, documents=documents)


def calibration_schemes(schemes: Sequence[evaluate.Named]) -> list[evaluate.Named]:
    """Return the metric that :func:`calibration_of` needs, made from the first one on hashed words."""
    scheme, metric = hashed_scheme(schemes)
    return [(scheme, profiled(metric, DRAWS))]


def calibration_of(evaluation: scores.ScoredOutput, *, documents: DocumentsBy = None) -> Calibration:
    """Compute the calibration of an output that was scored with :func:`calibration_schemes`."""
    if lists_answers_alone(evaluation.output.path):
        raise UsageError(message=f"{named(evaluation.output.path)} has no calibration: {ANSWERS_ALONE}")
    statistics = profile_of(evaluation)
    gaps = statistics.column("loss") - statistics.column("entropy")
    of_file, dependence = choose_documents([evaluation], documents, values=[gaps])
    grouped = of_file and of_file.of_score(evaluation.scores[0]).several()
    vectors = statistics.column("vector") > 0
    lists = statistics.column("words") > 0
    parts: dict[str, Any] = {}
    if lists.any():
        probabilities, right, rests, listed = (
            statistics.column(name)[lists] for name in ("guess_mass", "guess_right", "rest", "listed")
        )
        guess, rest = Forecasts(probabilities, right), Forecasts(rests, 1 - listed)
        parts = {"guess": reliability(*guess.bin_sums), "guess_error": calibration_error(guess), "corp": corp(guess)}
        parts["rest"] = reliability(*rest.bin_sums)
        if (lists != ~vectors).any():
            parts["sets_of_guesses"] = _sets(statistics, lists)
    return Calibration(
        test=evaluation.split.name,
        file=evaluation.output.name,
        metric=evaluation.scores[0].name,
        lines=statistics.lines,
        vectors=int(vectors.sum()),
        signature=None if evaluation.signature is None else str(evaluation.signature),
        claim=_claim(statistics, grouped),
        documents=None if grouped is None else grouped.column,
        notes=tuple(
            notes_on_documents(of_file, dependence, "the claim's interval is computed by document and is {} by line")
        ),
        words=words_reliability(statistics),
        sets=None if vectors.all() else _sets(statistics, ~vectors),
        **parts,
    )


def _claim(statistics: ProfileStatistics, documents: Documents | None) -> Claim:
    losses, entropies = statistics.column("loss"), statistics.column("entropy")
    finite = np.isfinite(losses)
    lines = int(finite.sum())
    entropy, loss, gap, half, error = float(entropies.mean()), math.inf, math.inf, 0.0, 0.0
    if lines:
        gaps = losses[finite] - entropies[finite]
        entropy, loss, gap = (float(column.mean()) for column in (entropies[finite], losses[finite], gaps))
        error = float(gaps.std(ddof=1)) / math.sqrt(lines) if lines > 1 else 0.0
        half = NORMAL * error
        kept = documents and documents.only(np.flatnonzero(finite))
        if kept is not None and kept.count > 1:
            spread = spread_of_mean(gaps, kept.of_line)
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


def _sets(statistics: ProfileStatistics, lines: Flags) -> Points:
    """Count how often the smallest sets held the word; the band holds hits drawn with the level's probability."""
    ahead, among = (statistics.column(name)[lines] for name in ("ahead", "among"))
    reached = np.maximum(among, np.finfo(float).tiny)  # no set that ends before an impossible word holds it
    widths = [NORMAL * math.sqrt(level * (1 - level) / len(ahead)) for level in LEVELS]
    return Points(
        x=list(LEVELS),
        y=[float(np.clip((level - ahead) / reached, 0, 1).mean()) for level in LEVELS],
        low=[max(0.0, level - width) for level, width in zip(LEVELS, widths, strict=True)],
        high=[min(1.0, level + width) for level, width in zip(LEVELS, widths, strict=True)],
        n=[len(ahead)] * len(LEVELS),
    )


# Reliability in bins, and the calibration error


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
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
        columns = asdict(self)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per point, and the columns ``x``, ``y``, ``low``, ``high``, ``n``."""
        import pandas as pd

        return pd.DataFrame(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
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
    how many came true and, a row per draw, how many of honest probabilities would.
    """

    def __init__(self, probabilities: Array, outcomes: Array) -> None:
        self.p, places = np.unique(np.round(probabilities, DIGITS), return_inverse=True)
        self.n, self.hits = (np.bincount(places, column).astype(float) for column in (None, outcomes))
        before, self.total = np.cumsum(self.n) - self.n / 2, float(self.n.sum())
        bins = np.unique((before * BINS / self.total).astype(int), return_inverse=True)[1]
        columns = (self.n, self.p * self.n, self.hits)
        n, claimed, hits = (np.bincount(bins, column).astype(float) for column in columns)
        honest = np.array([np.bincount(bins, hits) for hits in self.draws()])
        self.bin_sums = n, claimed, hits, honest

    def draws(self) -> Iterator[Array]:
        """Draw the hits of honest probabilities, DRAWS times; the draws are always the same."""
        rng, things, p = np.random.default_rng(config.DEFAULT_SEED), self.n.astype(int), np.clip(self.p, 0.0, 1.0)
        several, hits = things > 1, np.empty(len(p))
        for _ in range(DRAWS):
            hits[several] = rng.binomial(things[several], p[several])
            hits[~several] = rng.random(len(p) - several.sum()) < p[~several]  # in a sixth of the time
            yield hits.copy()

    def brier(self, p: Array, hits: Array) -> float:
        """Compute the mean square distance of probabilities from outcomes, 0 or 1."""
        return float((self.n * p * p - 2 * p * hits + hits).sum()) / self.total


def words_reliability(statistics: ProfileStatistics) -> Reliability | None:
    """Compute the reliability of all listed words; in the band's draws, at most one word comes true on a line.

    None if no line lists a word with a probability.
    """
    histogram = statistics.histogram
    used = histogram[histogram[:, 0] > 0]
    mass = used[:, 1]
    if not mass.sum():
        return None
    before = (np.cumsum(mass) - mass / 2) * WORD_BINS / mass.sum()
    bins = np.unique(before.astype(int), return_inverse=True)[1]
    sums = np.zeros((bins.max() + 1, used.shape[1]))
    np.add.at(sums, bins, used)
    n, claimed, hits = sums.T[: len(COUNTS)]
    return reliability(n, claimed, hits, sums.T[len(COUNTS) :])


def reliability(n: Array, claimed: Array, hits: Array, honest: Array) -> Reliability:
    """Compute shares from the sums of each bin; ``honest`` are draws x bins."""
    low, high = np.quantile(honest / n, BAND, axis=0)
    x, y, counts = (column.tolist() for column in (claimed / n, hits / n, n.astype(int)))
    points = Points(x=x, y=y, low=low.tolist(), high=high.tolist(), n=counts)
    total = float(n.sum())
    span = np.quantile(honest.sum(axis=1) / total, BAND)
    claim, share, least, greatest = map(float, (claimed.sum() / total, hits.sum() / total, *span))
    return Reliability(n=int(total), claimed=claim, found=share, low=least, high=greatest, bins=points)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    n, claimed, hits, honest_hits = forecasts.bin_sums
    honest = np.abs(claimed - honest_hits).sum(axis=1) / forecasts.total
    shares = hits / n
    several = n > 1  # a single thing says nothing about its own probability
    chance = shares[several] * (1 - shares[several]) / (n[several] - 1)
    squares = (shares - claimed / n)[several] ** 2 - chance
    return CalibrationError(
        ece=float(np.abs(claimed - hits).sum()) / forecasts.total,
        honest=float(honest.mean()),
        honest_high=float(np.quantile(honest, 0.95)),
        debiased=math.sqrt(max(0.0, float((squares * n[several]).sum()) / forecasts.total)),
    )


# The reliability curve without bins, and the parts of a Brier score


@dataclass(frozen=True, slots=True, kw_only=True)
class Corp:
    """A mean Brier score and its parts, all in [0, 1]: ``brier`` = miscalibration - discrimination + uncertainty.

    ``miscalibration`` is how much the score would improve if the probabilities were recalibrated, ``honest`` its mean
    for honest probabilities; ``discrimination`` how well they tell things apart; ``uncertainty`` the score of one
    probability for all. ``curve`` has the two ends of each step, with the ``n`` of the step.

    Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams for probabilistic classifiers", PNAS 118, 2021.
    """

    brier: float
    miscalibration: float
    honest: float
    discrimination: float
    uncertainty: float
    curve: Points

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the curve; see :class:`Points`."""
        return self.curve.to_frame()


def corp(forecasts: Forecasts) -> Corp:
    """Compute the curve and the parts."""
    n, p, hits = forecasts.n, forecasts.p, forecasts.hits
    recalibrated = np.frombuffer(backends.isotonic(hits / n, n))
    is_start = np.diff(recalibrated, prepend=-1.0) != 0
    step_of = np.cumsum(is_start) - 1
    ends = np.flatnonzero(is_start | np.append(is_start[1:], True))
    curves, excesses = [], []
    for drawn in forecasts.draws():
        curve = np.frombuffer(backends.isotonic(drawn / n, n))
        curves.append(curve[ends])
        excesses.append(forecasts.brier(p, drawn) - forecasts.brier(curve, drawn))
    low, high = np.quantile(curves, BAND, axis=0)
    brier, best = forecasts.brier(p, hits), forecasts.brier(recalibrated, hits)
    uncertainty = forecasts.brier(np.full_like(p, hits.sum() / forecasts.total), hits)
    return Corp(
        brier=brier,
        miscalibration=brier - best,
        honest=float(np.mean(excesses)),
        discrimination=uncertainty - best,
        uncertainty=uncertainty,
        curve=Points(
            x=p[ends].tolist(),
            y=recalibrated[ends].tolist(),
            low=low.tolist(),
            high=high.tolist(),
            n=np.bincount(step_of, n)[step_of[ends]].astype(int).tolist(),
        ),
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
    evaluation: scores.ScoredOutput,
    schemes: Sequence[evaluate.Named],
    vocabulary: frozenset[str] = frozenset(),
    *,
    sign: bool = False,
) -> scores.ScoredOutput:
    """Score an output again, with other metrics; raises UsageError if it can be read only once."""
    if not sources.can_be_reread(evaluation.output.path):
        raise UsageError(message=f"{named(evaluation.output.path)} would have to be read again: write it to a file")
    return evaluate.evaluate_output(evaluation.split, evaluation.output, schemes, vocabulary, sign=sign)


def schemes_of(evaluation: scores.ScoredOutput) -> list[evaluate.Named]:
    """Return an evaluation's metrics; raises UsageError for anything else, such as a path."""
    return [(score.scheme, score.metric) for score in scores.checked_evaluation(evaluation).scores]


def profile_of(evaluation: scores.ScoredOutput) -> ProfileStatistics:
    """Return the profile of an evaluation's first metric, which ``hashed.profiled`` made."""
    statistics = evaluation.scores[0].statistics
    if not isinstance(statistics, ProfileStatistics):
        raise TypeError("the first metric has no profile")
    return statistics
