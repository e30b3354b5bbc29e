"""Cross-validation for tuning and mixing: folds of lines, the change on held-out lines, the search for parameters.

NLopt is imported where it is first used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.documents import DocumentsBy, choose_documents, notes_on_documents
from geval_py.explaining.guesses import Guesses, hashed_bits, logistic
from geval_py.explaining.significance import LEVEL, TINY, mean_of
from geval_py.explaining.statistics import spread_of_mean
from geval_py.scoring.metrics.base import NOISE, Array, Flags, Integers
from geval_py.scoring.recipes import BY_LINE, MAX_PART, MIN_PART, MIN_SCALE, ByLine, Parameters
from geval_py.scoring.scores import Evaluation, Score, head_of
from geval_py.tables import numbers

FOLDS = 10
FEW_LINES = 100
MIN_GAIN = 1e-4  # nats a line: a smaller gain is not worth a file
MAX_TEMPERATURE = 10.0  # and its inverse is the least
STARTS = {"lambda": 0.05, "nu": 0.3}
RIDGE = 1e-5  # of the squares of the weights by line
MAX_WEIGHT = 30.0  # by line
MAX_STEPS = 1000  # of a search
SAMPLE = 50_000  # lines, or more, on which a search begins
CHUNK = 1 << 13  # lines whose numbers stay in the processor's cache
MAX_NEWTON_STEPS = 20
MAX_LEFT, MAX_LEFT_OUTSIDE = 1e-10, 1e-6  # nats a line, twice what the last step gains; little is left after it

# Folds


@dataclass(frozen=True, eq=False)
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
        return cls(fold_of[groups], groups, count)

    def __iter__(self) -> Iterator[Flags]:
        """Yield each fold as flags: which lines are held out."""
        return (self.of_line == fold for fold in range(self.count))


def folds_of(
    evaluations: Sequence[Evaluation], documents: DocumentsBy, seed: int, *, force: bool = False
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
    of_file = choose_documents(evaluations[0], documents)
    notes += notes_on_documents(of_file)
    several = of_file and of_file.several()
    return Folds.of(np.arange(lines) if several is None else several.of_line, seed), notes


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
        return numbers.fixed(self.mean, 4), ends, numbers.p_value(self.p_value)


def change_of(losses: Array, base: Array, groups: Integers) -> Change:
    """Compute the mean difference of two columns of losses on the same lines, and its interval by documents.

    Let the new losses be G nats less in all. If the old probabilities were right, answers that the new ones make
    exp(G) times likelier or more would be drawn with a probability of exp(-G) at most (Markov's inequality). This is
    the p-value, with G divided by how much the variance of the change is greater by documents than by lines. The
    interval alone would refuse most changes that few lines profit from.

    If an infinite loss becomes finite, or the other way round, the change is infinite; lines that are infinite in
    both columns count as no change.
    """
    infinite, was_infinite = np.isinf(losses), np.isinf(base)
    fixed, broken = was_infinite & ~infinite, infinite & ~was_infinite
    if fixed.any() or broken.any():
        end = math.inf if broken.any() else -math.inf
        return Change(end, low=-math.inf if fixed.any() else end, high=end, p_value=math.exp(min(0.0, end)))
    differences = np.subtract(losses, base, out=np.zeros(len(base)), where=~infinite)
    mean, lines = mean_of(differences), len(differences)
    spread, by_line = spread_of_mean(differences, groups), float(differences.var(ddof=1)) / lines
    more = max(1.0, spread.deviation**2 / by_line) if by_line > 0.0 else 1.0
    half = spread.half_width
    # The same NaN, so that equal changes compare equal.
    low, high = (math.nan, math.nan) if half <= NOISE * abs(mean) else (mean - half, mean + half)
    return Change(mean, low, high, p_value=math.exp(min(0.0, mean * lines / more)))


def score_of(score: Score, losses: Array) -> float:
    """Compute the value of a metric of losses on some lines."""
    return score.metric.of_line(mean_of(losses))


def ten_digits(value: float) -> float:
    """Round a figure to ten digits: later digits depend on the processor."""
    return float(f"{value:.10g}")


# The search for parameters: those with the least loss on some lines


def fit(guesses: Guesses, names: Sequence[str], start: Parameters, of_line: Integers) -> list[Parameters]:
    """Find the best values of the named parameters on all lines, and on those outside each fold.

    The others keep the values of ``start``. Of many lines, Newton's method begins at the minimum on a sample of them;
    outside a fold, at the minimum on all lines, where the derivatives are sums over the folds, computed once.
    """
    search = Search(guesses, names, start, of_line)
    folds, lines = range(len(search.ends) - 1), search.ends[-1]
    if lines < 2 * SAMPLE:
        return [search.parameters(search.minimum(fold)) for fold in (None, *folds)]
    places = search.minimum_near(search.sample(lines // SAMPLE).minimum(), MAX_LEFT)
    sums = search.sums(places)
    outside = (search.minimum_near(places, MAX_LEFT_OUTSIDE, fold, sums) for fold in folds)
    return [search.parameters(each) for each in (places, *outside)]


class Search:
    """The mean loss of lines, with its derivatives, at places: numbers that stand for parameters.

    These are the logarithm of a temperature and the logits of lambda and nu. By line, the logits are sums of a line's
    figures with weights, which a ridge keeps small. Lines whose loss stays infinite whatever is tuned (no entry in
    the bucket, no rest, and no lambda) are left out. Lines stand fold by fold, between the ``ends``.
    """

    def __init__(self, guesses: Guesses, names: Sequence[str], start: Parameters, of_line: Integers) -> None:
        self.guesses, self.start, self.is_by_line = guesses, start, BY_LINE in names
        self.lines = np.argsort(of_line, kind="stable")
        if not self.is_by_line and "lambda" not in names:
            self.lines = self.lines[np.isfinite(guesses.losses(start))[self.lines]]
        folds = np.arange(1, int(of_line.max()) + 2)
        self.ends = [0, *np.searchsorted(of_line[self.lines], folds).tolist()]
        self.fixed = {"lambda": start.lambda_, "nu": start.nu}
        by_line_too = ("lambda", "nu") if guesses.frequent else ("lambda",)  # nu is of words
        self.parts = [name for name in self.fixed if name in (by_line_too if self.is_by_line else names)]
        self.begin = [_logit(self.fixed[name] or STARTS[name]) for name in self.parts]
        self.bounds, self.ridge = [-_logit(MIN_PART)] * len(self.parts), 0.0
        self.x, listed = np.ones((1, len(self.lines))), [guesses.tempered_hits(start.temperature)]
        if self.is_by_line:
            centres, scales = guesses.figures.mean(axis=1), guesses.figures.std(axis=1)
            scales[scales < MIN_SCALE] = 1.0
            self.centres, self.scales = (
                tuple(float(f"{value:.4g}") for value in row.tolist()) for row in (centres, scales)
            )
            self.x, self.ridge = guesses.places(self.centres, self.scales, self.lines), RIDGE
            self.begin = [weight for logit in self.begin for weight in (logit, *[0.0] * len(centres))]
            self.bounds = [MAX_WEIGHT] * len(self.begin)
        elif "temperature" in names:
            self.parts.insert(0, "temperature")
            self.begin.insert(0, math.log(start.temperature))
            self.bounds.insert(0, math.log(MAX_TEMPERATURE))
            listed = []
        self.columns = np.array([column[self.lines] for column in (guesses.rests, guesses.spread()[1], *listed)])

    def sample(self, step: int) -> Search:
        """Return the search on every step-th line, as one fold; of a temperature, which needs all entries, on all."""
        some = copy(self)
        if "temperature" not in self.parts:
            some.x, some.columns = self.x[:, ::step].copy(), self.columns[:, ::step].copy()
        some.ends = [0, some.x.shape[1]]
        return some

    def sums(self, places: Array) -> Array:
        """Return a row for each fold: its number of lines, and the sums of losses, gradients, second derivatives."""
        columns, alike = self.columns, self.guesses.spread()[0]
        if "temperature" in self.parts:
            tempered = self.guesses.tempered(math.exp(places[0]))
            columns = np.vstack([columns, *(column[self.lines] for column in tempered)])
        weights = dict(zip(self.parts, places.reshape(len(self.parts), -1), strict=True))
        rows = np.zeros((len(self.ends) - 1, 2 + len(places) * (1 + len(places))))
        for row, begin, end in zip(rows, self.ends, self.ends[1:], strict=False):
            for at in range(begin, end, CHUNK):
                some = slice(at, min(end, at + CHUNK))
                row += loss_sums(weights, self.fixed, alike, self.x[:, some], columns[:, some])
        return rows

    def mean(self, places: Array, fold: int | None = None, sums: Array | None = None) -> tuple[float, Array, Array]:
        """Return the mean loss, its gradient and its second derivatives, on lines outside a fold if one is given."""
        sums = self.sums(places) if sums is None else sums
        row = sums.sum(axis=0) - (0.0 if fold is None else sums[fold])
        size, (value, gradient, curvature) = len(places), np.split(row[1:] / max(1.0, row[0]), [1, 1 + len(places)])
        curvature = curvature.reshape(size, size) + 2 * self.ridge * np.eye(size)
        return float(value[0] + self.ridge * places @ places), gradient + 2 * self.ridge * places, curvature

    def minimum(self, fold: int | None = None) -> Array:
        """Find the minimum by L-BFGS.

        By NLopt, whose method is of L. Lukšan. SciPy's finds the same values, but takes 0.3 seconds to import.
        """
        import nlopt

        best = math.inf, self.begin

        def fill(places: Array, gradient: Array) -> float:
            nonlocal best
            value, gradient[:], _ = self.mean(places, fold)
            best = min(best, (value, places.tolist()))
            return value

        search = nlopt.opt(nlopt.LD_LBFGS, len(self.begin))
        search.set_min_objective(fill)
        search.set_lower_bounds(np.negative(self.bounds))
        search.set_upper_bounds(self.bounds)
        search.set_ftol_rel(1e-12)
        search.set_maxeval(MAX_STEPS)
        # Near a minimum, nothing nearby may be better.
        with suppress(nlopt.runtime_error, nlopt.roundoff_limited, nlopt.RoundoffLimited):
            search.optimize(self.begin)
        return np.array(best[1])

    def minimum_near(self, start: Array, left: float, fold: int | None = None, sums: Array | None = None) -> Array:
        """Find the minimum, near a start, by Newton's method; ``sums`` are those at the start, if they are known.

        The last step gains at most ``left`` nats a line. If steps lead to no minimum, the search is by L-BFGS.
        """
        places, before = start, math.inf
        for _ in range(MAX_NEWTON_STEPS):
            value, gradient, curvature = self.mean(places, fold, sums)
            free = (np.abs(places) < self.bounds) | (places * gradient > 0.0)
            step = np.zeros(len(places))
            step[free] = np.linalg.pinv(curvature[np.ix_(free, free)], hermitian=True) @ gradient[free]
            gain, sums = float(gradient @ step), None
            if not value <= before + NOISE or gain < -left:
                break
            places, before = np.clip(places - step, np.negative(self.bounds), self.bounds), value
            if gain <= left:
                return places
        return self.minimum(fold)

    def parameters(self, places: Array) -> Parameters:
        """Return the parameters, whose numbers have four digits: further ones are noise of the search."""
        if self.is_by_line:
            rows = [tuple(float(f"{weight:.4g}") for weight in row) for row in places.reshape(len(self.parts), -1)]
            rows += [(0.0,) * len(self.x)] * (2 - len(rows))
            by_line = ByLine(self.centres, self.scales, *rows)
            return replace(self.start, lambda_=0.0, nu=0.0, by_line=by_line)
        values: dict[str, Any] = dict(self.fixed)
        for name, place in zip(self.parts, places.tolist(), strict=True):
            if name == "temperature":
                values[name] = float(f"{math.exp(place):.4g}")
            else:
                part = float(f"{1.0 / (1.0 + math.exp(-place)):.4g}")
                values[name] = min(max(part, MIN_PART), MAX_PART)
        return replace(self.start, lambda_=values.pop("lambda"), **values)


def loss_sums(weights: dict[str, Array], fixed: dict[str, float], alike: float, x: Array, columns: Array) -> Array:
    """Return, in a row, the number of lines, the sum of their losses, the gradient's and the second derivatives'.

    ``x`` has a column for each line, and ``weights`` a row for each part that is free. The second derivatives of the
    mass by the temperature are left out: their mean is about 0 where the probabilities are right.
    """
    rests, slope, listed, *tempered = columns
    parts = {name: logistic(row @ x) for name, row in weights.items() if name != "temperature"}
    lambda_, nu = (parts.get(name, fixed[name]) for name in ("lambda", "nu"))
    missing, by_lambda, by_nu = 1.0 - rests, lambda_ * (1.0 - lambda_), nu * (1.0 - nu)
    spread, rest = alike + nu * slope, rests + lambda_ * missing
    masses = np.maximum((1.0 - lambda_) * listed + rest * spread, TINY)
    # The derivatives of the mass by the temperature's logarithm and by the logits, divided by the mass.
    first = {"lambda": (missing * spread - listed) * by_lambda / masses, "nu": rest * slope * by_nu / masses}
    if tempered:
        first["temperature"] = (1.0 - lambda_) * tempered[0] / masses
    second = {(name, name): first[name] * (1.0 - 2.0 * part) for name, part in parts.items()}
    second["nu", "lambda"] = missing * slope * by_lambda * by_nu / masses
    curvature = np.empty((len(weights), len(x), len(weights), len(x)))
    for i, one in enumerate(weights):
        for j, other in enumerate([*weights][: i + 1]):
            bend = first[one] * first[other] - second.get((one, other), 0.0)
            curvature[i, :, j] = curvature[j, :, i] = (x * bend) @ x.T
    gradient = [-(x @ first[name]) for name in weights]
    return np.concatenate([[len(masses), -np.log(masses).sum()], *gradient, curvature.ravel()])


def _logit(part: float) -> float:
    return math.log(part / (1.0 - part))


# The fields and sentences that tuning and mixing share


def described(evaluation: Evaluation, folds: Folds, seed: int) -> dict[str, Any]:
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
    """Write a score with five significant digits.

    >>> score_text(174.595), score_text(5.1624), score_text(0.0057275)
    ('174.60', '5.1624', '0.0057275')
    """
    return numbers.significant(value, 5)
