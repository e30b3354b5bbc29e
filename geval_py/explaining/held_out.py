"""What tuning takes from scipy, which is imported where it is first used: an extra adds it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from geval_py.errors import UsageError
from geval_py.explaining.dependence import find_dependence
from geval_py.explaining.documents import Documents, documents_of
from geval_py.explaining.guesses import Guesses, hashed_bits
from geval_py.reading.derived import Parameters
from geval_py.scoring.scores import MetricScore, ScoredOutput
from geval_py.tables.numbers import fixed
from geval_py.tables.table import Column, Table
from geval_py.text import visible

Array = npt.NDArray[np.float64]


def students_quantile(probability: float, freedom: int) -> float:
    """Give the quantile of Student's t distribution with so many degrees of freedom."""
    try:
        from scipy.special import stdtrit
    except ImportError as error:
        raise _missing() from error
    return float(stdtrit(freedom, probability))


def minimum(
    function: Callable[[Array], tuple[float, Array]], start: Sequence[float], bounds: Sequence[tuple[float, float]]
) -> list[float]:
    """Find where a function, given with its gradient, is least inside of bounds: by L-BFGS-B.

    Byrd, Lu, Nocedal and Zhu, "A Limited Memory Algorithm for Bound Constrained Optimization", 1995.
    """
    try:
        from scipy.optimize import minimize
    except ImportError as error:
        raise _missing() from error
    options = {"ftol": 1e-12, "gtol": 1e-7}
    found = minimize(function, np.array(start), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return [float(value) for value in found.x]


def _missing() -> UsageError:
    return UsageError(message="tuning and mixing need scipy\n  pip install ./geval-py[report]")


# Lines that were held out: what is tuned on the others is tried on them, and whether it helps is told by them.


Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
FOLDS = 10
CONFIDENCE = 0.95
LEAST_GAIN = 1e-4  # nats a line: what brings less is not worth a file


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Folds:
    """Lines in folds: ``of_line`` has each line's fold, from 0; ``groups`` its document's number, from 0."""

    of_line: Integers
    groups: Integers
    count: int

    @classmethod
    def of(cls, groups: Integers, seed: int) -> Folds:
        """Deal documents (two or more) at random into ten folds, or as many as there are if they are fewer."""
        documents = int(groups.max()) + 1
        count = min(FOLDS, documents)
        fold_of = np.random.default_rng(seed).permutation(documents) % count
        return cls(of_line=fold_of[groups], groups=groups, count=count)

    @property
    def documents(self) -> int | None:
        """The number of documents; None where each line is one of its own."""
        count = int(self.groups.max()) + 1
        return None if count == len(self.groups) else count

    def __iter__(self) -> Iterator[Flags]:
        """Give each fold, as flags: which lines are held out."""
        return (self.of_line == fold for fold in range(self.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A mean difference of losses in nats, below 0 for the better, and its 95 % interval; possibly infinite."""

    mean: float
    low: float
    high: float

    @property
    def is_better(self) -> bool:
        """Whether the interval lies below 0, which guards against luck, and the change is worth speaking of."""
        return self.high < 0.0 and self.mean <= -LEAST_GAIN

    def to_dict(self) -> dict[str, float]:
        """Give the fields by name."""
        return {name: worth_showing(getattr(self, name)) for name in ("mean", "low", "high")}


def worth_showing(value: float) -> float:
    """Round a figure to ten digits: those behind hang on the processor."""
    return float(f"{value:.10g}")


def change_of(losses: Array, base: Array, groups: Integers) -> Change:
    """Give the mean difference of two columns of losses on the same lines, and its interval by documents.

    A finite loss in place of an infinite one is a change without end, and so is the other way round; lines that are
    infinite in both count as no change.
    """
    mended, broken = np.isinf(base) & ~np.isinf(losses), np.isinf(losses) & ~np.isinf(base)
    if mended.any() or broken.any():
        end = math.inf if broken.any() else -math.inf
        return Change(mean=end, low=-math.inf if mended.any() else end, high=end)
    differences = np.where(np.isinf(base), 0.0, losses - np.where(np.isinf(base), 0.0, base))
    differences[np.isinf(base)] = 0.0
    mean = float(differences.mean())
    sums = np.bincount(groups, differences - mean)
    count = len(sums)
    deviation = math.sqrt(count / (count - 1) * float(sums @ sums)) / len(differences)
    half = students_quantile(1 - (1 - CONFIDENCE) / 2, count - 1) * deviation
    return Change(mean=mean, low=mean - half, high=mean + half)


# What tuning and mixing are given, checked: enough lines, and which of them are held out together.


FEW_LINES = 100

# A column that tells the documents, or a number a line; None: those that matter, if any; False: none.
HeldTogether: TypeAlias = "str | int | Sequence[int] | Integers | Literal[False] | None"


def notes_on_lines(evaluation: ScoredOutput, force: bool) -> list[str]:
    """Warn where there are few lines.

    Raises UsageError where they are too few, unless it is forced, and for a metric that is not hashed.
    """
    hashed_bits(evaluation)
    lines = evaluation.line_count
    if lines >= FEW_LINES:
        return []
    few = f"{lines} lines are few to tune on: what is found may be luck"
    if force:
        return [few]
    raise UsageError(message=f"{few}; take {FEW_LINES} lines or more, or force it")


def folds_of(evaluations: Sequence[ScoredOutput], together: HeldTogether, seed: int) -> tuple[Folds, list[str]]:
    """Deal the lines of evaluations of one set into folds, those of a document together; gives them and notes.

    Raises UsageError where all lines are of one document, for another number of documents than of lines, and what
    :func:`documents_of` raises for a column.
    """
    documents, notes = _documents(evaluations, together, seed)
    lines = evaluations[0].line_count
    return Folds.of(np.arange(lines) if documents is None else documents.of_line, seed), notes


def _documents(
    evaluations: Sequence[ScoredOutput], together: HeldTogether, seed: int
) -> tuple[Documents | None, list[str]]:
    if together is False:
        return None, []
    if together is None:
        found = find_dependence(evaluations, seed=seed)
        if found is None:
            return None, []
        return found.documents, [f"lines with the same {visible(found.column)} are alike: they are held out together"]
    if isinstance(together, (str, int)):
        told = documents_of(evaluations[0], together)
        return told.several(), [told.nothing_gained] if told.are_lines else []
    return _numbered(together, evaluations[0].line_count), []


def _numbered(numbers: Sequence[int] | Integers, lines: int) -> Documents:
    if len(numbers) != lines:
        raise UsageError(message=f"{len(numbers)} documents, but {lines} lines: give a number a line")
    told = Documents.of("", numbers)
    if told.count < 2:
        raise UsageError(message="all lines are of one document: none can be held out")
    return told


def score_of(score: MetricScore, losses: Array) -> float:
    """Give the value that a metric made of losses has for some lines."""
    mean = np.inf if np.isinf(losses).any() else float(losses.mean())
    return float(score.metric.measure.formula([mean], 1))


def described(evaluation: ScoredOutput, folds: Folds, seed: int) -> dict[str, Any]:
    """Give what is said of the lines in the same fields of both: whose they are, how scored, and how held out."""
    first = evaluation.scores[0]
    return {
        "test": evaluation.split.name,
        "metric": first.name,
        "unit": first.unit,
        "direction": first.direction,
        "lines": evaluation.line_count,
        "folds": folds.count,
        "documents": folds.documents,
        "seed": seed,
        "header": evaluation.split.output_header,
    }


# The search for parameters: those under which some lines lose least.


LEAST_PART, MOST_PART = 1e-6, 1 - 1e-6  # of lambda and nu
MOST_TEMPERATURE = 10.0  # and its inverse is the least
LEAST_MASS = 1e-300
STARTS = {"temperature": 1.0, "lambda": 0.05, "nu": 0.3}


def fit(guesses: Guesses, names: Sequence[str], lines: Flags, start: Parameters) -> Parameters:
    """Find the parameters of these names that are best on some lines; the others stay as the start has them.

    Lines whose loss would be infinite whatever is tuned (nothing is listed, there is no rest, and no lambda) are left
    out.
    """
    if "lambda" not in names:
        lines = lines & (np.isfinite(guesses.losses(start)))
    if not lines.any():
        return start
    objective = _Objective(guesses, names, lines, start)
    begin = [_free(name, value if value != _NEUTRAL[name] else STARTS[name]) for name, value in objective.named]
    found = minimum(objective, begin, [_bounds(name) for name in names])
    return objective.with_values({name: _rounded(name, place) for name, place in zip(names, found, strict=True)})


def held_out(guesses: Guesses, names: Sequence[str], folds: Folds, start: Parameters) -> Array:
    """Give each line's loss under what was found on the other folds."""
    losses = np.empty(guesses.lines)
    for out in folds:
        losses[out] = guesses.losses(fit(guesses, names, ~out, start))[out]
    return losses


def best(guesses: Guesses, candidates: Iterable[Parameters]) -> Parameters:
    """Give those of several parameters, of equal ones the first, under which all lines lose least."""
    return min(candidates, key=lambda parameters: mean_loss(guesses.losses(parameters)))


def mean_loss(losses: Array) -> float:
    """Give the mean of losses; inf where one is."""
    return inf if np.isinf(losses).any() else float(losses.mean())


_NEUTRAL = Parameters().named


class _Objective:
    """The mean loss of some lines, and its gradient, by the free parameters."""

    def __init__(self, guesses: Guesses, names: Sequence[str], lines: Flags, start: Parameters) -> None:
        self._guesses, self._names, self._lines, self._start = guesses, names, lines, start
        self.named = [(name, start.named[name]) for name in names]

    def parameters(self, free: Sequence[float]) -> Parameters:
        """Give the parameters at a place of the search."""
        return self.with_values({name: _bound(name, place) for name, place in zip(self._names, free, strict=True)})

    def with_values(self, free: Mapping[str, float]) -> Parameters:
        """Give the parameters with the values of those that are free."""
        values = {**self._start.named, **free}
        return self._start.replace(temperature=values["temperature"], lambda_=values["lambda"], nu=values["nu"])

    def __call__(self, free: Array) -> tuple[float, Array]:
        at = self.parameters(free.tolist())
        guesses, lines = self._guesses, self._lines
        if "temperature" in self._names:
            listed, by_temperature = guesses.listed(log(at.temperature))
        else:
            listed, by_temperature = guesses.hits, guesses.hits
        spread, by_nu = guesses.spread(at.nu)
        rest = (1.0 - at.lambda_) * guesses.rests + at.lambda_
        masses = np.maximum((1.0 - at.lambda_) * listed + rest * spread, LEAST_MASS)[lines]
        slopes = {
            "temperature": (1.0 - at.lambda_) * by_temperature,
            "lambda": at.lambda_ * (1.0 - at.lambda_) * ((1.0 - guesses.rests) * spread - listed),
            "nu": at.nu * (1.0 - at.nu) * rest * by_nu,
        }
        gradient = [-float(np.mean(slopes[name][lines] / masses)) for name in self._names]
        return -float(np.mean(np.log(masses))), np.array(gradient)


def _free(name: str, value: float) -> float:
    """Give a parameter's place in the search."""
    if name == "temperature":
        return log(value)
    value = min(max(value, LEAST_PART), MOST_PART)
    return log(value / (1.0 - value))


def _bound(name: str, place: float) -> float:
    """Give the parameter at a place in the search."""
    return exp(place) if name == "temperature" else 1.0 / (1.0 + exp(-place))


def _rounded(name: str, place: float) -> float:
    """Round the parameter at a place to four digits, which lose nothing: more are noise of the search."""
    value = float(f"{_bound(name, place):.4g}")
    return value if name == "temperature" else min(max(value, LEAST_PART), MOST_PART)


def _bounds(name: str) -> tuple[float, float]:
    if name == "temperature":
        return -log(MOST_TEMPERATURE), log(MOST_TEMPERATURE)
    return _free(name, LEAST_PART), _free(name, MOST_PART)


# What tuning and mixing would bring, as text: a table, and below it what it says.


VERDICTS = {True: "take it", False: "leave it"}


def _laid_out(
    columns: list[Column], rows: list[list[object]], below: list[str], *, infinite: bool, width: int | None
) -> str:
    """Lay out a table and what stands below it; the third column is left out where no loss is infinite."""
    if not infinite:
        columns, rows = [*columns[:2], *columns[3:]], [[*row[:2], *row[3:]] for row in rows]
    table = Table(columns, rows)
    lines = table.text() if width is None else table.terminal(width)
    return "".join([*lines, "\n", *(f"{line}\n" for line in below)])


def _how(documents: int | None, folds: int, seed: int) -> str:
    kept = "lines" if documents is None else f"{documents} documents"
    return f"held out in {folds} folds of {kept}, seed {seed}"


def _score(value: float) -> str:
    """Write a score with two decimals or, if it is small, four digits.

    >>> _score(174.595), _score(5.1624), _score(0.0057275)
    ('174.60', '5.162', '0.005728')
    """
    small = math.isfinite(value) and 0 < abs(value) < 10
    return fixed(value, 3 - math.floor(math.log10(abs(value))) if small else 2)


def _change(change: Change) -> tuple[str, str]:
    low, mean, high = (fixed(value, 4) for value in (change.low, change.mean, change.high))
    return mean, f"[{low}, {high}]"
