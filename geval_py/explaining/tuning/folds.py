"""Lines that were held out: what is tuned on the others is tried on them, and whether it helps is told by them.

Lines of one document are kept together, in folds and in intervals: they are alike, and say less than as many lines of
others do. The interval of a mean difference is that of cluster-robust variance (Cameron and Miller, "A Practitioner's
Guide to Cluster-Robust Inference", 2015), where every line may be a document of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geval_py.explaining.tuning.searching import students_quantile

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
