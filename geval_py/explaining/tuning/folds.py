"""Lines that were held out: what is tuned on the others is tried on them, and whether it helps is told by them.

Lines of one document are kept together, in folds and in intervals: they are alike, and say less than as many lines of
others do. The interval of a mean difference is that of cluster-robust variance (Cameron and Miller, "A Practitioner's
Guide to Cluster-Robust Inference", 2015), where every line may be a document of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geval_py.errors import UsageError
from geval_py.explaining.tuning.searching import students_quantile
from geval_py.reading.inputs import InputText
from geval_py.reading.items import column_name
from geval_py.scoring.evaluation import Evaluation
from geval_py.text import nearest, visible

Array = npt.NDArray[np.float64]
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


def document_numbers(evaluation: Evaluation, column: str) -> Integers:
    """Give each line's document a number, from 0: a document is the lines on which a column says the same.

    ``column`` is one of the input, by its name in the header or its number from 1. Raises UsageError where there is
    no input, no such column, or but one document; LineCountError for an input of another number of lines.
    """
    split = evaluation.split
    if split.input is None:
        raise UsageError(message="a column of the input tells the documents, and there is no input file")
    text = InputText(split, keep=False)
    rows = [line.split("\t") for line in text.lines()]
    text.check_count(len(rows), evaluation.line_count)
    names = [column_name(split.in_header, index) for index in range(max(map(len, rows)))]
    if column in names:
        index = names.index(column)
    elif column.isascii() and column.isdigit() and 1 <= int(column) <= len(names):
        index = int(column) - 1
    else:
        close = nearest(column, names)
        advice = f"did you mean {visible(close)}? " if close else ""
        raise UsageError(
            message=f"the input has no column `{visible(column)}'\n  {advice}there are {visible(', '.join(names))}"
        )
    return numbered([row[index] if index < len(row) else "" for row in rows])


def numbered(values: Sequence[object]) -> Integers:
    """Give equal values the same number, from 0 as they come; raises UsageError where all are equal."""
    numbers: dict[object, int] = {}
    found = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
    if len(numbers) < 2:
        raise UsageError(message="all lines are of one document: none can be held out")
    return found
