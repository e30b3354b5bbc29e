"""Calibration: whether the probabilities of an output come true as often as they say.

The output is read again for the profiles of its lines. From them come the parts of the answer: the loss that the
distributions claim, all listed words, the first guess, the rest and the smallest sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.explaining import reliability, significance
from geval_py.explaining.documents import choose_documents, notes_on_documents
from geval_py.explaining.statistics import spread_of_mean
from geval_py.scoring import evaluate, scores
from geval_py.scoring.metrics import base, hashed
from geval_py.tables.formats import Tabular, json_fields
from geval_py.tables.numbers import counted, fixed, several
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents, DocumentsBy


LEVELS = (0.5, 0.8, 0.9)  # of the sets
SETS = "the smallest sets"
SETS_OF_GUESSES = "the smallest sets, on lines with a guess"
HONEST = "honest: what 95 % of outputs would show whose probabilities come true."


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The loss that an output expects of itself, and the loss it gets, on the lines with a finite loss.

    ``entropy`` is the loss that the distributions expect, ``loss`` the actual one, ``gap`` the difference with its 95
    % interval from ``low`` to ``high``, by documents if lines are alike by them: all are means in nats a word. ``z``
    is the gap in standard errors, None without spread. ``lines`` were counted; the ``infinite`` lines with an
    infinite loss were left out.
    """

    lines: int
    infinite: int
    entropy: float
    loss: float
    gap: float
    low: float
    high: float
    z: float | None

    @property
    def claimed_perplexity(self) -> float:
        """The perplexity that the output claims, in words."""
        return base.exp(self.entropy)

    @property
    def perplexity(self) -> float:
        """The perplexity that the output gets."""
        return base.exp(self.loss)

    @property
    def is_significant(self) -> bool:
        """Whether the gap is more than chance, at 5 %."""
        return self.z is not None and not self.low <= 0.0 <= self.high


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Calibration(Tabular):
    """Whether the probabilities of an output come true as often as they say; printed, as sentences and tables.

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
    words: reliability.Reliability | None = field(repr=False)
    guess: reliability.Reliability | None = field(repr=False)
    guess_error: reliability.CalibrationError | None = field(repr=False)
    corp: reliability.Corp | None = field(repr=False)
    rest: reliability.Reliability | None = field(repr=False)
    sets: reliability.Points | None = field(repr=False)
    sets_of_guesses: reliability.Points | None = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        claim = {"claimed_perplexity": self.claim.claimed_perplexity, "perplexity": self.claim.perplexity}
        return json_fields(self) | {"claim": asdict(self.claim) | claim}

    def points(self) -> dict[str, reliability.Points]:
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
        figures = (Column(name=name, alignment="right") for name in ("claimed", "true", "honest", "n"))
        return Table([Column(name="part"), *figures], list(self.rows()))

    def signatures(self) -> Iterator[str]:
        if self.signature is not None:
            yield visible(f"{self.file}: {self.signature}")

    def records(self) -> Table:
        rows = ([name, *row.values()] for name, points in self.points().items() for row in points.to_dict())
        return plain_table(["part", "claimed", "true", "honest_low", "honest_high", "n"], rows)

    def legend(self) -> Iterator[str]:
        yield from self.sentences()
        yield HONEST

    def text(self, width: int | None = None) -> Iterator[str]:
        """Write sentences and, below them, a table for each part; none is as wide as a terminal."""
        del width
        lines = f"{several(self.lines, 'line')} of {visible(self.test)}"
        yield f"{visible(self.file)}: {visible(self.metric)}, {lines}\n\n"
        yield from (f"{sentence}\n" for sentence in self.sentences())
        for name, rows in groupby(self.rows(), key=lambda row: row[0]):
            yield f"\n{name}\n"
            heads = ("level" if name in (SETS, SETS_OF_GUESSES) else "claimed", "true", "honest", "n")
            yield from Table([Column(name=head) for head in heads], [cells for _, *cells in rows]).text()
        yield f"\n{HONEST}\n"

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each part: what the output claims, and what came true."""

        def shares(part: reliability.Reliability | None, things: str, should: str, did: str) -> Iterator[str]:
            if part is not None:
                percents = (f"{fixed(100 * p, 1)} %" for p in (part.claimed, part.found, part.low, part.high))
                claimed, true, low, high = percents
                verdict = "as honest ones would" if part.is_honest else f"honest: {low} to {high}"
                yield f"Of {part.n} {things}, {claimed} {should}, and {true} {did} ({verdict})."

        claim, error, corp = self.claim, self.guess_error, self.corp
        if claim.lines:
            gap = f"{fixed(abs(claim.gap), 3)} ± {fixed((claim.high - claim.low) / 2, 3)} nats a word"
            how = "surer than it should be" if claim.gap > 0 else "less sure than it could be"
            z = "" if claim.z is None else f" (z = {fixed(claim.z, 1)})"
            verdict = f"it is {how}, by {gap}{z}" if claim.is_significant else f"{gap}, which may be chance{z}"
            verdict = f"that is {gap}, on each line the same" if claim.z is None else verdict
            claimed, true = (fixed(p, 0 if p >= 100 else 1) for p in (claim.claimed_perplexity, claim.perplexity))
            yield f"It claims a perplexity of {claimed} and gets {true}: {verdict}."
        else:
            yield "The loss of every line is infinite: there is nothing to hold its claim against."
        if claim.infinite:
            yield f"This leaves out {counted(claim.infinite, 'line')} with an infinite loss."
        if self.vectors:
            yield f"What follows leaves out {counted(self.vectors, 'line')} of buckets, which list no words."
        yield from shares(self.words, "listed words", "should have been the word", "were")
        yield from shares(self.guess, "first guesses", "should have been right", "were")
        if error is not None:
            yield (
                f"The first guess's calibration error is {fixed(error.ece, 3)}, where honest guesses show "
                f"{fixed(error.honest, 3)}; without what chance adds, {fixed(error.debiased, 3)} (root mean square)."
            )
        if corp is not None:
            yield (
                f"Its Brier score {fixed(corp.brier, 3)} is miscalibration {fixed(corp.miscalibration, 3)} (honest: "
                f"{fixed(corp.honest, 3)}) - discrimination {fixed(corp.discrimination, 3)} + uncertainty "
                f"{fixed(corp.uncertainty, 3)}."
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
    """Compare an output's probabilities with what came true.

    The evaluation's files are read again, with the flags and bits of its first metric on hashed words. Random numbers
    have a seed: the same output gives the same result. The interval of the claim is by ``documents``, as in
    :func:`geval_py.compare`.

    Raises UsageError if there is no such metric or the output can be read only once; DataError if the files have
    changed and are malformed.
    """
    schemes = calibration_schemes(reliability.hashed_scheme(reliability.schemes_of(evaluation)))
    again = reliability.reread(evaluation, schemes, sign=evaluation.signature is not None)
    return calibration_of(again, documents=documents)


def calibration_schemes(named: evaluate.Named) -> list[evaluate.Named]:
    """Return the metric that :func:`calibration_of` needs, made from a hashed one."""
    scheme, metric = named
    return [(scheme, hashed.profiled(metric, reliability.DRAWS))]


def calibration_of(evaluation: scores.ScoredOutput, *, documents: DocumentsBy = None) -> Calibration:
    """Compute the calibration of an output that was scored with :func:`calibration_schemes`."""
    statistics = reliability.profile_of(evaluation)
    gaps = statistics.column("loss") - statistics.column("entropy")
    of_file, dependence = choose_documents([evaluation], documents, values=[gaps])
    grouped = of_file and of_file.of_score(evaluation.scores[0]).several()
    vectors = statistics.column("vector") > 0
    lists = statistics.column("words") > 0
    guess = rest = None
    if lists.any():
        probabilities, right, rests, listed = (
            statistics.column(name)[lists] for name in ("guess_mass", "guess_right", "rest", "listed")
        )
        guess, rest = reliability.Forecasts(probabilities, right), reliability.Forecasts(rests, 1 - listed)
    return Calibration(
        test=evaluation.split.name,
        file=evaluation.output.name,
        metric=evaluation.scores[0].name,
        lines=statistics.lines,
        vectors=int(vectors.sum()),
        signature=None if evaluation.signature is None else str(evaluation.signature),
        claim=_claim(statistics, grouped),
        documents=None if grouped is None else grouped.column,
        notes=tuple(notes_on_documents(of_file, dependence, "the claim's interval is by document, {}")),
        words=reliability.words_reliability(statistics),
        guess=None if guess is None else reliability.reliability_of(guess),
        guess_error=None if guess is None else reliability.calibration_error(guess),
        corp=None if guess is None else reliability.corp(guess),
        rest=None if rest is None else reliability.reliability_of(rest),
        sets=None if vectors.all() else _sets(statistics, ~vectors),
        sets_of_guesses=_sets(statistics, lists) if lists.any() and (lists != ~vectors).any() else None,
    )


def _claim(statistics: hashed.ProfileStatistics, documents: Documents | None) -> Claim:
    losses = statistics.column("loss")
    finite = np.isfinite(losses)
    lines = int(finite.sum())
    if not lines:
        return Claim(
            lines=0, infinite=len(losses), entropy=float(statistics.column("entropy").mean()), loss=math.inf,
            gap=math.inf, low=math.inf, high=math.inf, z=None,
        )  # fmt: skip
    loss, entropy = losses[finite], statistics.column("entropy")[finite]
    gaps = loss - entropy
    error = float(gaps.std(ddof=1)) / math.sqrt(lines) if lines > 1 else 0.0
    half = significance.NORMAL * error
    kept = documents and documents.only(np.flatnonzero(finite))
    if kept is not None and kept.count > 1:
        spread = spread_of_mean(gaps, kept.of_line)
        error, half = spread.deviation, spread.half_width
    gap = float(gaps.mean())
    return Claim(
        lines=lines,
        infinite=len(losses) - lines,
        entropy=float(entropy.mean()),
        loss=float(loss.mean()),
        gap=gap,
        low=gap - half,
        high=gap + half,
        z=gap / error if error > base.NOISE else None,
    )


def _sets(statistics: hashed.ProfileStatistics, of_words: significance.Flags) -> reliability.Points:
    """Count how often the smallest sets held the word; the band holds hits drawn with the level's probability."""
    ahead, among = (statistics.column(name)[of_words] for name in ("ahead", "among"))
    reached = np.maximum(among, np.finfo(float).tiny)  # no set that ends before an impossible word holds it
    held = [float(np.clip((level - ahead) / reached, 0, 1).mean()) for level in LEVELS]
    widths = [significance.NORMAL * math.sqrt(level * (1 - level) / len(ahead)) for level in LEVELS]
    return reliability.Points(
        x=list(LEVELS),
        y=held,
        low=[max(0.0, level - width) for level, width in zip(LEVELS, widths, strict=True)],
        high=[min(1.0, level + width) for level, width in zip(LEVELS, widths, strict=True)],
        n=[len(ahead)] * len(LEVELS),
    )
