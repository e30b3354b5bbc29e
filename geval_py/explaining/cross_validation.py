"""Cross-validation for tuning and mixing: folds of lines, the change on held-out lines, the search for parameters.

NLopt is imported where it is first used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.documents import DocumentsBy, choose_documents, notes_on_documents
from geval_py.explaining.guesses import Guesses, hashed_bits, logistic
from geval_py.explaining.significance import LEVEL, TINY, Array, Flags, Integers
from geval_py.explaining.statistics import spread_of_mean
from geval_py.scoring.metrics.base import NOISE
from geval_py.scoring.recipes import BY_LINE, MAX_PART, MIN_PART, MIN_SCALE, ByLine, Parameters
from geval_py.scoring.scores import head_of
from geval_py.tables import numbers

if TYPE_CHECKING:
    from geval_py.scoring.scores import MetricScore, ScoredOutput

Objective: TypeAlias = "Callable[[Array], tuple[float, Array]]"  # a value and its gradient
FOLDS = 10
FEW_LINES = 100
MIN_GAIN = 1e-4  # nats a line: a smaller gain is not worth a file
MAX_TEMPERATURE = 10.0  # and its inverse is the least
STARTS = {"lambda": 0.05, "nu": 0.3}
RIDGE = 1e-5  # of the squares of the weights by line
MAX_WEIGHT = 30.0  # by line
MAX_STEPS = 1000  # of a search
SAMPLE = 50_000  # lines, or more, on which a search begins
MAX_NEWTON_STEPS = 20
MAX_LEFT = 1e-11  # nats a line, twice what the last step gains

# Folds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Folds:
    """Lines in folds: ``of_line`` has each line's fold, from 0; ``groups`` its document's number, from 0."""

    of_line: Integers
    groups: Integers
    count: int

    @classmethod
    def of(cls, groups: Integers, seed: int) -> Folds:
        """Deal documents (two or more) at random into ten folds, or one fold a document if there are fewer."""
        documents = int(groups.max()) + 1
        count = min(FOLDS, documents)
        fold_of = np.random.default_rng(seed).permutation(documents) % count
        return cls(of_line=fold_of[groups], groups=groups, count=count)

    def __iter__(self) -> Iterator[Flags]:
        """Yield each fold as flags: which lines are held out."""
        return (self.of_line == fold for fold in range(self.count))


def folds_of(
    evaluations: Sequence[ScoredOutput], documents: DocumentsBy, seed: int, *, force: bool = False
) -> tuple[Folds, list[str]]:
    """Deal the lines of evaluations of one test set into folds, keeping documents whole; return folds and notes.

    Raises UsageError for a metric that is not hashed, for few lines without ``force``, for one line or one document,
    and for another number of documents than lines, and the errors of
    :func:`geval_py.explaining.documents.documents_in` for a column.
    """
    hashed_bits(evaluations[0])
    lines, notes = evaluations[0].line_count, []
    if lines < FEW_LINES:
        notes.append(f"the result of tuning on {numbers.counted(lines, 'line')} may be due to chance")
        if not force:
            raise UsageError(message=f"{notes[0]}; take {FEW_LINES} lines or more, or give", arguments=("force",))
    if lines < 2:
        raise UsageError(message="there is one line, and it cannot be held out: take two lines or more")
    of_file, dependence = choose_documents(evaluations, documents)
    chosen = of_file and of_file.of_score(evaluations[0].scores[0])
    notes += notes_on_documents(chosen, dependence, "they are held out together")
    if dependence is None:
        chosen = chosen and chosen.several()
    return Folds.of(np.arange(lines) if chosen is None else chosen.of_line, seed), notes


# The change on held-out lines


class Change(NamedTuple):
    """A mean difference of losses in nats, negative if the score improves, and its 95 % interval; may be infinite.

    The ends are NaN if all lines change alike: nothing then shows how far the true change may be.
    ``p_value`` is a bound of how often lines would change so much for the better by luck, in (0, 1].
    """

    mean: float
    low: float
    high: float
    p_value: float

    @property
    def is_better(self) -> bool:
        """Whether the change is for the better, by the p-value or by the interval, and matters."""
        return (self.p_value <= LEVEL or self.high < 0.0) and self.mean <= -MIN_GAIN

    def verdict(self, *, taken: bool) -> str:
        """Return what to do. Of simulated changes whose interval holds 0, every tenth or so was for the worse."""
        return "leave it" if not taken else "take it" if self.high < 0.0 else "probably better"

    def to_dict(self) -> dict[str, float]:
        return {name: ten_digits(value) for name, value in self._asdict().items()}

    def cells(self) -> tuple[str, str, str]:
        """Return the mean, the interval and the p-value as text."""
        ends = "" if math.isnan(self.low) else f"[{numbers.fixed(self.low, 4)}, {numbers.fixed(self.high, 4)}]"
        return numbers.fixed(self.mean, 4), ends, numbers.p_value_text(self.p_value)


def change_of(losses: Array, base: Array, groups: Integers) -> Change:
    """Compute the mean difference of two columns of losses on the same lines, and its interval by documents.

    Let the new losses be G nats less in all. If the old probabilities were right, answers that the new ones make
    exp(G) times likelier or more would be drawn with a probability of exp(-G) at most (Markov's inequality). This is
    the p-value, with G divided by how much the variance of the change is greater by documents than by lines. The
    interval alone would refuse most changes that few lines profit from.

    If an infinite loss becomes finite, or the other way round, the change is infinite; lines that are infinite in
    both columns count as no change.
    """
    fixed, broken = np.isinf(base) & ~np.isinf(losses), np.isinf(losses) & ~np.isinf(base)
    if fixed.any() or broken.any():
        end = math.inf if broken.any() else -math.inf
        return Change(end, low=-math.inf if fixed.any() else end, high=end, p_value=math.exp(min(0.0, end)))
    differences = np.where(np.isinf(base), 0.0, losses - np.where(np.isinf(base), 0.0, base))
    mean, lines = float(differences.mean()), len(differences)
    spread, by_line = spread_of_mean(differences, groups), float(differences.var(ddof=1)) / lines
    more = max(1.0, spread.deviation**2 / by_line) if by_line > 0.0 else 1.0
    half = spread.half_width
    # The same NaN, so that equal changes compare equal.
    low, high = (math.nan, math.nan) if half <= NOISE * abs(mean) else (mean - half, mean + half)
    return Change(mean, low, high, p_value=math.exp(min(0.0, mean * lines / more)))


def score_of(score: MetricScore, losses: Array) -> float:
    """Compute the value of a metric of losses on some lines."""
    return float(score.metric.measure.formula([mean_loss(losses)], 1))


def mean_loss(losses: Array) -> float:
    """Return the mean of losses; inf if any is infinite."""
    return float(losses.mean())


def ten_digits(value: float) -> float:
    """Round a figure to ten digits: later digits depend on the processor."""
    return float(f"{value:.10g}")


# The search for parameters: those with the least loss on some lines


def fit(guesses: Guesses, names: Sequence[str], lines: Flags, start: Parameters) -> Parameters:
    """Find the best values of the named parameters on some lines; the others keep the values of ``start``.

    The search is for the logarithm of a temperature and the logits of lambda and nu. By line, these are sums of a
    line's figures with weights, which a ridge keeps small; otherwise a constant. Lines whose loss stays infinite
    whatever is tuned (no entry in the bucket, no rest, and no lambda) are left out.
    """
    is_by_line, has_temperature = BY_LINE in names, "temperature" in names and BY_LINE not in names
    if not is_by_line and "lambda" not in names:
        lines = lines & np.isfinite(guesses.losses(start))
    fitted = np.flatnonzero(lines)
    if not len(fitted):
        return start
    x, centres, scales = np.ones((1, len(fitted))), np.empty(0), np.empty(0)
    if is_by_line:
        figures = guesses.figures.take(fitted, axis=1)
        centres, scales = figures.mean(axis=1), figures.std(axis=1)
        scales[scales < MIN_SCALE] = 1.0
        centres, scales = (np.array([float(f"{value:.4g}") for value in row.tolist()]) for row in (centres, scales))
        x = guesses.places(centres, scales, fitted)
    values = {"lambda": start.lambda_, "nu": start.nu}
    by_line_too = ("lambda", "nu") if guesses.frequent else ("lambda",)  # nu is of words
    parts = [name for name in values if name in (by_line_too if is_by_line else names)]
    begin = [weight for name in parts for weight in (_logit(values[name] or STARTS[name]), *[0.0] * (len(x) - 1))]
    most = MAX_WEIGHT if is_by_line else -_logit(MIN_PART)
    bounds = [most] * len(begin)
    if has_temperature:
        begin.insert(0, math.log(start.temperature))
        bounds.insert(0, math.log(MAX_TEMPERATURE))
    ridge, (alike, slope), rests = RIDGE if is_by_line else 0.0, guesses.spread(), guesses.rests[fitted]
    columns = x, rests, guesses.tempered_hits(start.temperature)[fitted], slope[fitted], 1.0 - rests

    def objective(places: Array, step: int = 1) -> tuple[float, Array]:
        """Compute the mean loss of every step-th line and the ridge, and their gradient."""
        x, rests, listed, slope, missing = (column[..., ::step] for column in columns)
        own_x = x if is_by_line else x[:, :1]  # a constant is computed once
        weights = dict(zip(parts, places[has_temperature:].reshape(len(parts), len(x)), strict=True))
        free: dict[str, float | Array] = {name: logistic(row @ own_x) for name, row in weights.items()}
        lambda_, nu = (free.get(name, values[name]) for name in ("lambda", "nu"))
        tempered, by_temperature = listed, listed
        if has_temperature:
            tempered, by_temperature = (column[fitted] for column in guesses.tempered(math.exp(places[0])))
        spread, rest = alike + nu * slope, rests + lambda_ * missing
        masses = np.maximum((1.0 - lambda_) * tempered + rest * spread, TINY)
        gradient = [-np.mean((1.0 - lambda_) * by_temperature / masses)] if has_temperature else []
        for name, row in weights.items():
            derivative = missing * spread - tempered if name == "lambda" else rest * slope
            part = free[name]
            gradient.extend(2 * ridge * row - x @ (derivative * part * (1.0 - part) / masses) / len(masses))
        return ridge * float(places @ places) - float(np.mean(np.log(masses))), np.array(gradient)

    step = 1 if has_temperature else len(fitted) // SAMPLE
    sampled = partial(objective, step=step)
    places = minimum_near(sampled, objective, begin, bounds) if step > 1 else minimum(objective, begin, bounds)
    if is_by_line:
        numbers = [float(f"{weight:.4g}") for weight in places]
        by_line = ByLine(
            centres=tuple(centres.tolist()),
            scales=tuple(scales.tolist()),
            lambda_=tuple(numbers[: len(x)]),
            nu=tuple(numbers[len(x) :] or [0.0] * len(x)),
        )
        return replace(start, lambda_=0.0, nu=0.0, by_line=by_line)
    temperature = float(f"{math.exp(places.pop(0)):.4g}") if has_temperature else start.temperature
    for name, place in zip(parts, places, strict=True):  # further digits are noise of the search
        values[name] = min(max(float(f"{1.0 / (1.0 + math.exp(-place)):.4g}"), MIN_PART), MAX_PART)
    return replace(start, temperature=temperature, lambda_=values["lambda"], nu=values["nu"])


def _logit(part: float) -> float:
    part = min(max(part, MIN_PART), MAX_PART)
    return math.log(part / (1.0 - part))


def minimum(function: Objective, start: Sequence[float], bounds: Sequence[float]) -> list[float]:
    """Find the least value of a function with its gradient, no further from 0 than the bounds, by L-BFGS.

    By NLopt, whose method is of L. Lukšan. SciPy's finds the same values, but takes a third of a second to import.
    """
    import nlopt

    best = (math.inf, list(start))

    def fill(places: Array, gradient: Array) -> float:
        nonlocal best
        value, gradient[:] = function(places)
        best = min(best, (value, places.tolist()))
        return value

    search = nlopt.opt(nlopt.LD_LBFGS, len(start))
    search.set_min_objective(fill)
    search.set_lower_bounds(np.negative(bounds))
    search.set_upper_bounds(bounds)
    search.set_ftol_rel(1e-12)
    search.set_maxeval(MAX_STEPS)
    # Near a minimum, nothing nearby may be better.
    with suppress(nlopt.runtime_error, nlopt.roundoff_limited, nlopt.RoundoffLimited):
        search.optimize(np.array(start))
    return best[1]


def minimum_near(
    sampled: Objective, function: Objective, start: Sequence[float], bounds: Sequence[float]
) -> list[float]:
    """Find the minimum of a function from that of a sample of its terms, by steps of Newton's method.

    The second derivatives are those of the sample. If these steps do not lead to a minimum within the bounds, the
    whole function is searched from the start.
    """
    places, before = np.array(minimum(sampled, start, bounds)), math.inf
    apart = 1e-4 * np.eye(len(start))
    hessian = np.array([sampled(places + each)[1] - sampled(places - each)[1] for each in apart]) / 2e-4
    for _ in range(MAX_NEWTON_STEPS if np.linalg.cond(hessian) < 1e12 else 0):
        value, gradient = function(places)
        step = np.linalg.solve(hessian, gradient)
        gain = float(gradient @ step)
        places = places - step
        if value > before or gain < 0.0 or (np.abs(places) >= bounds).any():
            break
        if gain <= MAX_LEFT:
            return [float(place) for place in places]
        before = value
    return minimum(function, start, bounds)


# The fields and sentences that tuning and mixing share


def described(evaluation: ScoredOutput, folds: Folds, seed: int) -> dict[str, Any]:
    """Return the fields that tuning and mixing share: the test set, the metric, and how lines were held out."""
    lines, documents = evaluation.line_count, int(folds.groups.max()) + 1
    return head_of(evaluation) | {
        "lines": lines,
        "folds": folds.count,
        "documents": None if documents == lines else documents,
        "seed": seed,
        "header": evaluation.split.output_header,
    }


def folds_text(documents: int | None, folds: int, seed: int) -> str:
    """Describe how lines were held out."""
    kept = "lines" if documents is None else f"{documents} documents"
    return f"held out in {folds} folds of {kept}, seed {seed}"


def score_text(value: float) -> str:
    """Write a score with two decimals or, if it is small, four digits.

    >>> score_text(174.595), score_text(5.1624), score_text(0.0057275)
    ('174.60', '5.162', '0.005728')
    """
    small = math.isfinite(value) and 0 < abs(value) < 10
    return numbers.fixed(value, 3 - math.floor(math.log10(abs(value))) if small else 2)
