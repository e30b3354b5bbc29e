"""Cross-validation of mixtures: folds of lines, and the change on held-out lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.documents import DocumentsBy, choose_documents, notes_on_documents
from geval_py.explaining.significance import LEVEL, mean_of
from geval_py.explaining.statistics import spread_of_mean
from geval_py.scoring.metrics.base import NOISE, Array, Flags, Integers
from geval_py.scoring.scores import Evaluation, Score, head_of
from geval_py.tables import numbers
from geval_py.text import visible

FOLDS = 10
FEW_LINES = 100
MIN_GAIN = 1e-4  # nats a line: a smaller gain is not worth a file


def hashed_bits(evaluation: Evaluation) -> int:
    """Return the bits of the first metric's hash; raises UsageError for a metric that is not hashed, or has flags."""
    first = evaluation.scores[0]
    if first.metric.bits is None or first.scheme.text_flags or first.scheme.selecting_flags:
        raise UsageError(
            message="mixing needs a hashed metric without flags that choose or change lines, such as "
            f"PerplexityHashed, not {visible(first.scheme.text)}"
        )
    return first.metric.bits


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
        notes.append(f"the result of mixing on {numbers.counted(lines, 'line')} may be due to chance")
        if not force:
            raise UsageError(message=f"{notes[0]}; take {FEW_LINES} lines or more, or give", arguments=("force",))
    if lines < 2:
        raise UsageError(message="there is one line, and it cannot be held out: take two lines or more")
    of_file = choose_documents(evaluations[0], documents)
    notes += notes_on_documents(of_file)
    several = of_file and of_file.several()
    return Folds.of(np.arange(lines) if several is None else several.of_line, seed), notes


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


def described(evaluation: Evaluation, folds: Folds, seed: int) -> dict[str, Any]:
    """Return the fields of a result: the test set, the metric, and how lines were held out."""
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
