"""Luck: how much hash collisions changed a score, or the order of two outputs.

The expected word shares its bucket with a part of the rest and, by chance, with other words. Seeds are line numbers,
so a file has one score; if its lines began further down, it would have another. The scatter of such scores is
measured, by scoring again with shifted seeds, and computed (see :mod:`geval_py.scoring.kernel.profile`). With a
vocabulary, the perplexity without hashing is computed, too. At the end are the near ties: outputs so near to each
other that hashing may have decided between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining import reliability, significance
from geval_py.reading import schemes, sources
from geval_py.reading.outputs import unique_names
from geval_py.scoring import evaluate, scores
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.profile import SKETCHES
from geval_py.scoring.metrics import base, hashed
from geval_py.tables import formats, numbers
from geval_py.tables.layout import Legend
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import named, some_of, visible

if TYPE_CHECKING:
    from geval_py.explaining.comparison import Comparison


DEFAULT_SEEDS, MOST_SEEDS = 25, 1000
NEAR = 0.05  # a pair of outputs that more seeds than this would turn round is too near to tell
MOST_TIES = 3  # that a note names


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Scores under other seeds: the mean ``loss`` in nats, its ``score``, and ``sd``, the losses' deviation.

    ``z`` is by how many sd this output's loss is above the mean: below 0 it was lucky. None without scatter.
    """

    score: float
    loss: float
    sd: float
    z: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The perplexity on exact words, without hashing; ``vocabulary`` is the number of words of a vocabulary.

    Only lines whose word is listed or in the vocabulary count; the ``infinite`` other lines would make it infinite.
    ``listed`` is computed from the masses of the words: unlisted words share the rest evenly (listed words are taken
    for words of the vocabulary). ``from_hashed`` is estimated from the hashed losses, by ln(vocabulary / buckets) for
    each unlisted word.
    """

    vocabulary: int
    infinite: int
    listed: float
    from_hashed: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Luck:
    """How much hash collisions changed an output's score; printed, a table and sentences.

    ``score`` is by ``metric`` on the ``lines`` that are finite under all seeds; ``left_out`` lines are not.
    ``measured`` summarises the ``scores`` under as many other ``seeds``, None for fewer than two; ``formula`` is
    computed. Between ``low`` and ``high`` lie the scores of 95 % of seeds. ``exact`` is None without a vocabulary.
    """

    test: str
    file: str
    metric: str
    unit: str
    direction: str
    bits: int
    lines: int
    left_out: int
    score: float
    loss: float
    seeds: int
    scores: tuple[float, ...]
    measured: Spread | None
    formula: Spread
    low: float
    high: float
    exact: Exact | None
    signature: str | None

    @property
    def z(self) -> float | None:
        """By how many sd the loss is above the formula's mean: below 0 it was lucky. None without scatter."""
        return self.formula.z

    def __str__(self) -> str:
        return str(Lucks((self,), (self.file,)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return Lucks((self,), (self.file,))._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"z": self.z}

    def row(self) -> list[str | None]:
        """Return the row of a table for people, without the name."""
        return [score_text(self.score), *_spread_cells(self.measured), *_spread_cells(self.formula)]

    def sentences(self, name: str) -> Iterator[str]:
        """Yield what the row means; the output is called by a name."""
        file = visible(name)
        if not self.lines:
            yield f"{file}: there is no line that is finite under all seeds."
            return
        if self.left_out:
            yield f"{file}: without {numbers.counted(self.left_out, 'line')} that some seeds make infinite."
        usual = f"{file}: 95 % of seeds give {score_text(self.low)} to {score_text(self.high)}"
        if self.z is None:
            yield f"{file}: all seeds give the same score."
        elif abs(self.z) < 2:
            yield f"{usual}, and this one is among them: the hash made no notable difference."
        else:
            yield f"{usual}: it was {'lucky' if self.z < 0 else 'unlucky'} with {score_text(self.score)}."
        if self.exact is not None:
            exact, lines = self.exact, self.lines + self.left_out
            yield (
                f"{file}: without hashing, the perplexity is {score_text(exact.listed)} (estimated from the hashed "
                f"one: {score_text(exact.from_hashed)}) on the {lines - exact.infinite} lines whose word is listed "
                f"or in the vocabulary of {exact.vocabulary}; on the {exact.infinite} others it is infinite."
            )


@dataclass(frozen=True, slots=True, repr=False)
class Lucks(formats.Tabular):
    """The luck of several outputs of one test set, at least one; ``names`` are shown to people, one an output."""

    outputs: tuple[Luck, ...]
    names: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"outputs": [luck.to_dict() for luck in self.outputs]}

    def table(self) -> Table:
        figures = ("score", "seeds", "sd", "z", "formula", "sd", "z")
        columns = [Column(name="system", cut="middle")]
        columns += [Column(name=name, alignment="right", cut="never") for name in figures]
        return Table(columns, [[name, *luck.row()] for name, luck in zip(self.names, self.outputs, strict=True)])

    def signatures(self) -> Iterator[str]:
        return (visible(f"{luck.file}: {luck.signature}") for luck in self.outputs if luck.signature is not None)

    def records(self) -> Table:
        names, rows = ("score", "sd", "z"), []
        spread_names = (f"{of}_{name}" for of in ("seeds", "formula") for name in names)
        for luck in self.outputs:
            spreads = [getattr(of, name, None) for of in (luck.measured, luck.formula) for name in names]
            exact = None if luck.exact is None else luck.exact.listed
            rows.append([luck.file, luck.score, *spreads, exact, luck.signature])
        return plain_table(["system", "score", *spread_names, "exact", "signature"], rows)

    def legend(self) -> Iterator[str]:
        first = self.outputs[0]
        of = f"{visible(first.metric)} ({first.unit}, {first.direction} is better) of {visible(first.test)}"
        measured = [(["seeds"], f"the mean of {first.seeds} other seeds")] if first.measured else []
        yield Legend(((), of), *measured, (["formula"], "computed, over all seeds"))
        yield Legend(
            (["sd"], "of one score's loss, in nats a word"),
            (["z"], "by how many of them the loss is above the mean"),
        )
        yield ""
        for name, luck in zip(self.names, self.outputs, strict=True):
            yield from luck.sentences(name)


def score_text(score: float) -> str:
    """Write a score with five significant digits.

    >>> score_text(549.93691), score_text(0.00182345678), score_text(9984123.4)
    ('549.94', '0.0018235', '9984100')
    """
    return f"{float(f'{score:.4e}'):.15g}" if abs(score) < 1e15 else numbers.shortest(score)


def _spread_cells(spread: Spread | None) -> list[str | None]:
    if spread is None:
        return [None, None, None]
    return [
        score_text(spread.score),
        numbers.fixed(spread.sd, 4),
        None if spread.z is None else numbers.fixed(spread.z, 1),
    ]


def luck(
    evaluation: scores.ScoredOutput, *, seeds: int = DEFAULT_SEEDS, vocabulary: frozenset[str] = frozenset()
) -> Luck:
    """Estimate how much hash collisions changed an output's score.

    The evaluation's files are read again, with the flags and bits of its first metric on hashed words, and scored
    with as many other ``seeds`` (0: by formula alone); ``vocabulary`` has the words for the exact perplexity.

    Raises UsageError if there is no such metric, if the output can be read only once or has lines of buckets, which
    hold for one seed, and for a number of seeds out of range; DataError if the files have changed and are malformed.
    """
    check_seeds(seeds)
    wanted = luck_schemes(
        reliability.hashed_scheme(reliability.schemes_of(evaluation)), seeds, exact=bool(vocabulary)
    )
    again = reliability.reread(evaluation, wanted, vocabulary, sign=evaluation.signature is not None)
    return luck_of(again, seeds, len(vocabulary))


def check_seeds(seeds: int) -> None:
    """Raise UsageError for a number of seeds out of range."""
    if not 0 <= seeds <= MOST_SEEDS:
        raise UsageError(message=f"the number of seeds is from 0 to {MOST_SEEDS}, not {seeds}")


def luck_schemes(of_hashed: evaluate.Named, seeds: int, *, exact: bool) -> list[evaluate.Named]:
    """Return the metrics that :func:`luck_of` needs, made from a hashed one; ``exact`` adds the vocabulary's."""
    scheme, metric = of_hashed
    return [
        reliability.profile_scheme(of_hashed),
        *([(scheme, hashed.reseeded(metric, seeds))] if seeds else []),
        *([(scheme, hashed.unknown_words(metric))] if exact else []),
    ]


def luck_of(evaluation: scores.ScoredOutput, seeds: int, vocabulary: int) -> Luck:
    """Compute the luck of an output that was scored with :func:`luck_schemes`; ``vocabulary`` is a number of words.

    Raises UsageError for lines of buckets.
    """
    (first, *others), signed = evaluation.scores, evaluation.signature
    statistics = reliability.profile_of(evaluation)
    vectors = int(statistics.column("vector").sum())
    if vectors:
        raise UsageError(
            message=f"{named(evaluation.output.path)} has {vectors} of {statistics.lines} lines of buckets, "
            "which hold for one seed of the hash: the scores of other seeds cannot be computed"
        )
    kept = np.isfinite(statistics.column("seed_mean"))
    lines = int(kept.sum())
    loss = _mean(statistics.column("loss")[kept])
    columns = others[0].statistics.columns if seeds else ()
    losses = [_mean(np.frombuffer(column)[kept]) for column in columns]
    sd = math.sqrt(float(statistics.column("seed_variance")[kept].sum())) / max(1, lines)
    measured = _spread(first.metric, loss, fmean(losses), stdev(losses)) if len(losses) > 1 and lines else None
    formula = _spread(first.metric, loss, _mean(statistics.column("seed_mean")[kept]), sd)
    low, high = sorted(
        first.metric.of_line(formula.loss + sign * significance.NORMAL * formula.sd) for sign in (-1, 1)
    )
    return Luck(
        test=evaluation.split.name,
        file=evaluation.output.name,
        metric=first.name,
        unit=first.unit,
        direction=first.direction,
        bits=first.metric.bits or schemes.DEFAULT_BITS,
        lines=lines,
        left_out=statistics.lines - lines,
        score=first.metric.of_line(loss),
        loss=loss,
        seeds=seeds,
        scores=tuple(first.metric.of_line(of_seed) for of_seed in losses),
        measured=measured,
        formula=formula,
        low=low,
        high=high,
        exact=_exact(evaluation, statistics, vocabulary) if vocabulary else None,
        signature=None if signed is None else str(signed.replace(metrics=signed.metrics[:1], bits=signed.bits[:1])),
    )


def _mean(losses: significance.Array) -> float:
    """Return the mean; NaN for no loss."""
    return backends.exact_sum(losses) / len(losses) if len(losses) else math.nan


def _spread(metric: base.Metric, loss: float, mean: float, sd: float) -> Spread:
    return Spread(score=metric.of_line(mean), loss=mean, sd=sd, z=(loss - mean) / sd if sd > base.NOISE else None)


def _exact(evaluation: scores.ScoredOutput, statistics: hashed.ProfileStatistics, vocabulary: int) -> Exact:
    bits = evaluation.scores[0].metric.bits or schemes.DEFAULT_BITS
    unknown = np.frombuffer(evaluation.scores[-1].statistics.columns[0]) > 0
    mass, rest, words = (statistics.column(name) for name in ("word_mass", "rest", "words"))
    listed = statistics.column("listed") > 0
    masses = np.where(listed, mass, rest / np.maximum(1, vocabulary - words))
    finite = (listed | ~unknown) & (masses > 0)
    hashed_loss = _mean(statistics.column("loss")[finite])
    unlisted = float((~listed[finite]).mean()) if finite.any() else math.nan
    return Exact(
        vocabulary=vocabulary,
        infinite=statistics.lines - int(finite.sum()),
        listed=base.exp(_mean(-np.log(masses[finite]))),
        from_hashed=base.exp(hashed_loss + unlisted * math.log(vocabulary / (1 << bits))),
    )


# Near ties


@dataclass(frozen=True, slots=True, kw_only=True)
class NearTie:
    """Two outputs nearer than hashing can tell: ``turned`` is the share of seeds that would put the second first."""

    first: str
    second: str
    turned: float


def notes_on_ties(ties: Sequence[NearTie]) -> Iterator[str]:
    """Yield a note on the near ties of a comparison, if there are some; it names a few of them."""
    what = "nearer than hashing can tell"
    each = [f"{tie.first} and {tie.second} ({numbers.fixed(100 * tie.turned, 0)} %)" for tie in ties]
    if len(ties) == 1:
        share = numbers.fixed(100 * ties[0].turned, 0)
        pair = f"{visible(ties[0].first)} and {visible(ties[0].second)}"
        yield f"{pair} are {what}: {share} % of seeds would put the second first"
    elif ties:
        yield (
            f"{len(ties)} pairs of neighbours are {what}; so many seeds would put the second first: "
            f"{some_of(each, MOST_TIES)}"
        )


def near_ties(evaluations: Sequence[scores.ScoredOutput], comparison: Comparison) -> Iterator[NearTie]:
    """Find the neighbours in a comparison between which hashing may have decided.

    Only neighbours that cannot be told apart anyway, on a metric of hashed words, are looked at: their outputs are
    read again, unless they can be read only once.
    """
    by_name = dict(zip(unique_names([of.output for of in evaluations]), evaluations, strict=True))

    @cache
    def profile(name: str) -> hashed.ProfileStatistics:
        first = by_name[name].scores[0]
        return reliability.profile_of(
            reliability.reread(by_name[name], [reliability.profile_scheme((first.scheme, first.metric))])
        )

    bits = evaluations[0].scores[0].metric.bits
    for first, second in pairwise(system.name for system in comparison.systems):
        both = by_name[first], by_name[second]
        if (
            bits
            and any({first, second} <= set(group) for group in comparison.groups)
            and both[0].scores[0].statistics != both[1].scores[0].statistics
            and all(sources.can_be_reread(of.output.path) for of in both)
        ):
            turned = share_turned(profile(first), profile(second), bits)
            if turned > NEAR:
                yield NearTie(first=first, second=second, turned=turned)


def share_turned(better: hashed.ProfileStatistics, worse: hashed.ProfileStatistics, bits: int) -> float:
    """Compute the share of seeds that would reverse the order of two outputs, by formula; 0 without scatter.

    Their expected difference is compared with its standard deviation over seeds, in which the words that both list
    collide together (see :mod:`geval_py.scoring.kernel.profile`).
    """
    kept = np.isfinite(better.column("seed_mean")) & np.isfinite(worse.column("seed_mean"))
    sketched = [_difference(better, worse, f"sketch_{number}")[kept] for number in range(SKETCHES)]
    gains = _gains(better, bits)[kept] - _gains(worse, bits)[kept]
    variance = sum(float((of * of).sum()) for of in sketched) / SKETCHES / (1 << bits) - float((gains * gains).sum())
    if variance <= 0:
        return 0.0
    return NormalDist().cdf(float(_difference(better, worse, "seed_mean")[kept].sum()) / math.sqrt(variance))


def _difference(one: hashed.ProfileStatistics, other: hashed.ProfileStatistics, name: str) -> significance.Array:
    """Subtract a column; NaN if both are infinite."""
    with np.errstate(invalid="ignore"):
        return one.column(name) - other.column(name)


def _gains(statistics: hashed.ProfileStatistics, bits: int) -> significance.Array:
    """Return the mean gain, over seeds, from sharing a bucket, on each line."""
    with np.errstate(divide="ignore", invalid="ignore"):
        alone: significance.Array = -np.log(statistics.column("word_mass") + statistics.column("rest") / (1 << bits))
        return alone - statistics.column("seed_mean")
