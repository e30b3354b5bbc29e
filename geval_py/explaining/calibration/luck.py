"""What hashing gave a score: the scores that other seeds would give, and the one without hashing.

The expected word shares its bucket with a part of the rest and, by chance, with other words. Seeds are line numbers,
so a file has one score; had its lines begun further down, it would have another. How far such scores scatter is
measured, by scoring again with seeds a few lines further, and computed (see :mod:`geval_py.scoring.kernel.profile`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.calibration.profiles import hashed_scheme, profile_of, profile_scheme, reread, schemes_of
from geval_py.reading.distribution import DEFAULT_BITS
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.metrics.base import NOISE, Metric, exp
from geval_py.scoring.metrics.profile import ProfileStatistics, reseeded, unknown_words
from geval_py.text import named as shown_path

if TYPE_CHECKING:
    from geval_py.explaining.calibration.forecasts import Array
    from geval_py.scoring.columns import Named

DEFAULT_SEEDS, MOST_SEEDS = 25, 1000
NORMAL = 1.96  # sd on either side that hold 95 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Scores under other seeds: ``score`` is that of the mean loss, ``loss``, in nats; ``sd`` that of a score's loss.

    ``z`` is by how many sd this output's loss is above the mean: below 0 it was lucky. None where nothing scatters.
    """

    score: float
    loss: float
    sd: float
    z: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The perplexity on exact words, of a ``vocabulary`` of so many, without hashing.

    It is on the lines whose word the vocabulary or the line has; the ``infinite`` others would make it infinite.
    ``listed`` is from the masses of the words, where one that is not listed shares the rest evenly with all unlisted
    words (those listed are taken for words of the vocabulary); ``from_hashed`` is estimated from the hashed losses,
    by ln(vocabulary / buckets) for each unlisted word.
    """

    vocabulary: int
    infinite: int
    listed: float
    from_hashed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """What hashing gave an output; printed, sentences.

    ``score`` is that of ``metric`` on the ``lines`` that are finite under all seeds; ``left_out`` are those that a
    seed makes infinite. ``measured`` is over the scores under other ``seeds``, ``scores``: None where there are none
    or one; ``formula`` is computed. Between ``low`` and ``high`` lie the scores of 95 % of seeds. ``exact`` is None
    without a vocabulary.
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
        """By how many sd the loss is above the formula's mean: below 0 it was lucky. None where nothing scatters."""
        return self.formula.z

    def __str__(self) -> str:
        from geval_py.showing.luck import luck_text

        return "".join(luck_text([self])).removesuffix("\n")

    def to_dict(self) -> dict[str, Any]:
        """Give what ``--format json`` shows; values may be inf."""
        return asdict(self) | {"z": self.z}


def luck(evaluation: Evaluation, *, seeds: int = DEFAULT_SEEDS, vocabulary: frozenset[str] = frozenset()) -> Luck:
    """Tell what hashing gave an output: its score under other seeds of the hash, and without hashing.

    The evaluation's files are read again, with the flags and bits of its first metric on hashed words, and scored
    with as many other ``seeds`` (0: by formula alone); ``vocabulary`` are the words that the exact perplexity knows.

    Raises UsageError where there is no such metric, where the output can be read only once or has lines of buckets,
    which hold for one seed, and for a number of seeds out of range; DataError where the files have changed for the
    worse.
    """
    check_seeds(seeds)
    schemes = luck_schemes(hashed_scheme(schemes_of(evaluation)), seeds, exact=bool(vocabulary))
    again = reread(evaluation, schemes, vocabulary, sign=evaluation.signature is not None)
    return luck_of(again, seeds, len(vocabulary))


def check_seeds(seeds: int) -> None:
    """Raise UsageError for a number of seeds out of range."""
    if not 0 <= seeds <= MOST_SEEDS:
        raise UsageError(message=f"the number of seeds is from 0 to {MOST_SEEDS}, not {seeds}")


def luck_schemes(named: Named, seeds: int, *, exact: bool) -> list[Named]:
    """Give the metrics that :func:`luck_of` wants, made of a hashed one; ``exact`` asks for the vocabulary too."""
    scheme, metric = named
    again = [(scheme, reseeded(metric, seed)) for seed in range(1, seeds + 1)]
    return [profile_scheme(named), *again, *([(scheme, unknown_words(metric))] if exact else [])]


def luck_of(evaluation: Evaluation, seeds: int, vocabulary: int) -> Luck:
    """Compute the luck of an output that was scored with :func:`luck_schemes`, over so many words of a vocabulary.

    Raises UsageError for lines of buckets.
    """
    first, *others = evaluation.scores
    statistics = profile_of(evaluation)
    _refuse_vectors(statistics, evaluation)
    kept = np.isfinite(statistics.column("seed_mean"))
    lines = int(kept.sum())
    loss = _mean(statistics.column("loss")[kept])
    losses = [_mean(np.frombuffer(other.statistics.columns[0])[kept]) for other in others[:seeds]]
    sd = math.sqrt(float(statistics.column("seed_variance")[kept].sum())) / max(1, lines)
    measured = _spread(first.metric, loss, fmean(losses), stdev(losses)) if len(losses) > 1 and lines else None
    formula = _spread(first.metric, loss, _mean(statistics.column("seed_mean")[kept]), sd)
    low, high = sorted(_score(first.metric, formula.loss + sign * NORMAL * formula.sd) for sign in (-1, 1))
    return Luck(
        test=evaluation.split.name,
        file=evaluation.output.name,
        metric=first.name,
        unit=first.unit,
        direction=first.direction,
        bits=first.metric.bits or DEFAULT_BITS,
        lines=lines,
        left_out=statistics.lines - lines,
        score=_score(first.metric, loss),
        loss=loss,
        seeds=seeds,
        scores=tuple(_score(first.metric, of_seed) for of_seed in losses),
        measured=measured,
        formula=formula,
        low=low,
        high=high,
        exact=_exact(evaluation, statistics, vocabulary) if vocabulary else None,
        signature=_signature(evaluation),
    )


def _refuse_vectors(statistics: ProfileStatistics, evaluation: Evaluation) -> None:
    vectors = int(statistics.column("vector").sum())
    if vectors:
        raise UsageError(
            message=f"{shown_path(evaluation.output.path)} has {vectors} of {statistics.lines} lines of buckets, "
            "which hold for one seed of the hash: what others would give cannot be told"
        )


def _signature(evaluation: Evaluation) -> str | None:
    """Give the signature of the score alone."""
    if evaluation.signature is None:
        return None
    from dataclasses import replace

    signed = evaluation.signature
    return str(replace(signed, metrics=signed.metrics[:1], bits=signed.bits[:1]))


def _mean(losses: Array) -> float:
    """Give the mean; NaN where there is none."""
    return math.fsum(losses) / len(losses) if len(losses) else math.nan


def _score(metric: Metric, loss: float) -> float:
    """Give the metric's value for a mean loss."""
    return metric.of_line(loss)


def _spread(metric: Metric, loss: float, mean: float, sd: float) -> Spread:
    return Spread(score=_score(metric, mean), loss=mean, sd=sd, z=(loss - mean) / sd if sd > NOISE else None)


def _exact(evaluation: Evaluation, statistics: ProfileStatistics, vocabulary: int) -> Exact:
    bits = evaluation.scores[0].metric.bits or DEFAULT_BITS
    unknown = np.frombuffer(evaluation.scores[-1].statistics.columns[0]) > 0
    mass, rest, words = (statistics.column(name) for name in ("word_mass", "rest", "words"))
    listed = statistics.column("listed") > 0
    masses = np.where(listed, mass, rest / np.maximum(1, vocabulary - words))
    finite = (listed | ~unknown) & (masses > 0)
    hashed = _mean(statistics.column("loss")[finite])
    unlisted = float((~listed[finite]).mean()) if finite.any() else math.nan
    return Exact(
        vocabulary=vocabulary,
        infinite=statistics.lines - int(finite.sum()),
        listed=exp(_mean(-np.log(masses[finite]))),
        from_hashed=exp(hashed + unlisted * math.log(vocabulary / (1 << bits))),
    )
