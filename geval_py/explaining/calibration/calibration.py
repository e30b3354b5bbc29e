"""Whether an output means what it says: its probabilities against what came true.

An evaluation's output is read again for the profiles of its lines, and from them come the parts: the claim, all
listed words, the first guess, the rest and the sets.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from geval_py.explaining.calibration.corp import Corp, corp
from geval_py.explaining.calibration.forecasts import (
    DRAWS,
    Array,
    CalibrationError,
    Forecasts,
    Points,
    Reliability,
    Truths,
    calibration_error,
    reliability,
    words_reliability,
)
from geval_py.explaining.calibration.profiles import hashed_scheme, profile_of, profile_scheme, reread, schemes_of
from geval_py.scoring.evaluation import Evaluation
from geval_py.scoring.metrics.base import NOISE
from geval_py.scoring.metrics.profile import ProfileStatistics

if TYPE_CHECKING:
    from geval_py.scoring.columns import Named

LEVELS = (0.5, 0.8, 0.9)  # of the sets
NORMAL = 1.96  # standard errors on either side that hold 95 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an output expects of itself, and what it gets, on the lines with a finite loss.

    ``entropy`` is the loss that the distributions expect, ``loss`` the one they get, ``gap`` the difference, from
    ``low`` to ``high`` with 95 %: all are means in nats a word. ``z`` is the gap in standard errors: None where there
    is no spread. ``lines`` were counted; ``infinite`` are those with an infinite loss, left out.
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
        return math.exp(self.entropy)

    @property
    def perplexity(self) -> float:
        """The perplexity that it gets."""
        return math.exp(self.loss)

    @property
    def is_significant(self) -> bool:
        """Whether the gap is more than chance makes, in 95 % of cases."""
        return self.z is not None and abs(self.z) > NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Whether an output means what it says; printed, sentences and tables.

    ``test`` is the test set's name, ``file`` the output's, ``metric`` that whose flags and bits hold; ``lines`` were
    scored, of which ``vectors`` are lines of buckets, which count for the claim alone. ``signature`` is what was
    scored.

    ``claim`` is the loss that the distributions expect of themselves against the one they get; ``words`` are all
    listed words, ``guess`` the likeliest one of each line that lists any, with its error ``guess_error`` and its
    curve ``corp``; ``rest`` is the mass of all other words on these lines, against how often the word was not listed.
    ``sets`` has a point a level: how often the smallest set of words with that probability held the word (a word on
    its edge by the part that is needed). What there is nothing to say of is None.
    """

    test: str
    file: str
    metric: str
    lines: int
    vectors: int
    signature: str | None
    claim: Claim
    words: Reliability | None = field(repr=False)
    guess: Reliability | None = field(repr=False)
    guess_error: CalibrationError | None = field(repr=False)
    corp: Corp | None = field(repr=False)
    rest: Reliability | None = field(repr=False)
    sets: Points | None = field(repr=False)

    def __str__(self) -> str:
        from geval_py.showing.calibration import calibration_text

        return "".join(calibration_text(self)).removesuffix("\n")

    def to_dict(self) -> dict[str, Any]:
        """Give what ``--format json`` shows; values may be inf."""
        shown: dict[str, Any] = {
            name: getattr(self, name) for name in ("test", "file", "metric", "lines", "vectors", "signature")
        }
        claim = self.claim
        shown["claim"] = asdict(claim) | {
            "claimed_perplexity": claim.claimed_perplexity,
            "perplexity": claim.perplexity,
        }
        shown["words"] = self.words and self.words.to_dict()
        shown["guess"] = self.guess and self.guess.to_dict()
        shown["guess_error"] = self.guess_error and asdict(self.guess_error)
        shown["corp"] = self.corp and self.corp.to_dict()
        shown["rest"] = self.rest and self.rest.to_dict()
        shown["sets"] = self.sets and self.sets.rows()
        return shown


def calibration(evaluation: Evaluation) -> Calibration:
    """Tell whether an output means what it says: its probabilities against what came true.

    The evaluation's files are read again, with the flags and bits of its first metric on hashed words. Random numbers
    have a seed: the same output gives the same result.

    Raises UsageError where there is no such metric, where the output can be read only once, and where SciPy is
    missing; DataError where the files have changed for the worse.
    """
    schemes = calibration_schemes(hashed_scheme(schemes_of(evaluation)))
    return calibration_of(reread(evaluation, schemes, sign=evaluation.signature is not None))


def calibration_schemes(named: Named) -> list[Named]:
    """Give the metric that :func:`calibration_of` wants, made of a hashed one."""
    return [profile_scheme(named, DRAWS)]


def calibration_of(evaluation: Evaluation) -> Calibration:
    """Compute the calibration of an output that was scored with :func:`calibration_schemes`."""
    statistics = profile_of(evaluation)
    vectors = statistics.column("vector") > 0
    lists = statistics.column("words") > 0
    guess = _forecasts(statistics.column("guess_mass"), statistics.column("guess_right"), lists)
    rest = _forecasts(statistics.column("rest"), 1 - statistics.column("listed"), lists)
    return Calibration(
        test=evaluation.split.name,
        file=evaluation.output.name,
        metric=evaluation.scores[0].name,
        lines=statistics.lines,
        vectors=int(vectors.sum()),
        signature=None if evaluation.signature is None else str(evaluation.signature),
        claim=_claim(statistics),
        words=words_reliability(statistics),
        guess=None if guess is None else reliability(guess),
        guess_error=None if guess is None else calibration_error(guess),
        corp=None if guess is None else corp(guess),
        rest=None if rest is None else reliability(rest),
        sets=None if vectors.all() else _sets(statistics, ~vectors),
    )


def _forecasts(probabilities: Array, outcomes: Array, of: Truths) -> Forecasts | None:
    """Give the forecasts of some lines; None if there are none."""
    return Forecasts(probabilities[of], outcomes[of]) if of.any() else None


def _claim(statistics: ProfileStatistics) -> Claim:
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
    gap = float(gaps.mean())
    return Claim(
        lines=lines,
        infinite=len(losses) - lines,
        entropy=float(entropy.mean()),
        loss=float(loss.mean()),
        gap=gap,
        low=gap - NORMAL * error,
        high=gap + NORMAL * error,
        z=gap / error if error > NOISE else None,
    )


def _sets(statistics: ProfileStatistics, of_words: Truths) -> Points:
    """Tell how often the smallest sets held the word; the band is that of hits drawn with the level's chance."""
    ahead, among = (statistics.column(name)[of_words] for name in ("ahead", "among"))
    reached = np.maximum(among, np.finfo(float).tiny)  # an impossible word is held by no set that ends before it
    held = [float(np.clip((level - ahead) / reached, 0, 1).mean()) for level in LEVELS]
    widths = [NORMAL * math.sqrt(level * (1 - level) / len(ahead)) for level in LEVELS]
    return Points(
        x=list(LEVELS),
        y=held,
        low=[max(0.0, level - width) for level, width in zip(LEVELS, widths, strict=True)],
        high=[min(1.0, level + width) for level, width in zip(LEVELS, widths, strict=True)],
        n=[len(ahead)] * len(LEVELS),
    )
