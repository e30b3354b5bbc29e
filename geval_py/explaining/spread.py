"""Documents, how far the mean of their lines may be from the true one, and whether the lines of one are alike.

A document is the lines on which a column of the input is the same, such as the lines of one file.

Let there be N lines in G documents, n_g of them in document g, with a figure for each line, such as its loss. Let m
be their mean, and S_g the sum over the document of the differences from m. The variance of m is estimated by CR2,

    V = sum over g of (a_g S_g)^2 / N^2,    a_g = (1 - n_g / N)^(-1/2),

and (mean - m) / sqrt(V) has about Student's distribution, with Satterthwaite's degrees of freedom. These depend on
how unequal the documents are, and on how alike their lines are, which the analysis of variance estimates (Bell and
McCaffrey, "Bias reduction in standard errors for linear regression with multi-stage samples", 2002; Imbens and
Kolesár, "Robust standard errors in small samples", 2016; Pustejovsky and Tipton, "Small-sample methods for
cluster-robust variance estimation", 2018). If all documents have as many lines, the degrees are G - 1.

Lines that are by themselves may be few, and their losses are skewed: most are small, and a few are large. With s the
standard deviation of the lines and g their skewness, not (m - mean) / s but

    u + g u^2 / 3 + g^2 u^3 / 27 + g / (6 N),    u = (m - mean) / s,

is nearly as symmetrical as Student's t / sqrt(N) (Hall, "On the removal of skewness by transformation", 1992).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.significance import Array, Integers, beta_cdf, t_quantile, t_tails
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.scoring.scores import MetricScore


LEAST_SKEWED = 1e-6  # of skewness times distance: below, the cube root would lose digits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Documents:
    """The documents of the scored lines.

    ``column`` is the name or the number of the input's column; ``of_line`` has the document of each scored line,
    numbered from 0 in order of appearance; ``count`` is the number of documents.
    """

    column: str
    of_line: Integers
    count: int

    @classmethod
    def of(cls, column: str, values: Iterable[Hashable]) -> Documents:
        """Make documents from the values of a column, one a line."""
        numbers: defaultdict[Hashable, int] = defaultdict(count().__next__)
        of_line = np.fromiter(map(numbers.__getitem__, values), np.int64)
        return cls(column=column, of_line=of_line, count=len(numbers))

    @property
    def are_lines(self) -> bool:
        """Whether each line is a document of its own, which is the same as no documents."""
        return self.count == len(self.of_line)

    @property
    def effective(self) -> float:
        """The number of documents with as many lines each that would be as good for an interval."""
        sizes = np.bincount(self.of_line).astype(np.float64)
        return float(sizes.sum() ** 2 / (sizes @ sizes))

    @property
    def nothing_gained(self) -> str:
        """The note for documents that are single lines."""
        return f"each line is a document of its own by the column {visible(self.column)}: the same as no documents"

    def several(self) -> Documents | None:
        """Return the documents, or None if each line is one; raises UsageError if all lines are one document."""
        if self.are_lines:
            return None
        if self.count == 1:
            column, lines = visible(self.column), len(self.of_line)
            raise UsageError(
                message=f"all {lines} lines are of one document, since the column {column} is the same on all of them"
                "\n  an interval by documents needs two or more"
            )
        return self

    def of_score(self, score: MetricScore) -> Documents:
        """Keep the lines that a metric scored, of all lines of the file."""
        return self if score.line_numbers is None else self.only(np.array(score.line_numbers) - 1)

    def only(self, places: Sequence[int] | Integers) -> Documents:
        """Keep the lines at some places, counted from 0, in this order."""
        values = self.of_line[np.asarray(places, np.int64)]
        numbers, first, of_line = np.unique(values, return_index=True, return_inverse=True)
        rank = np.empty(len(numbers), np.int64)
        rank[np.argsort(first)] = np.arange(len(numbers))
        return Documents(column=self.column, of_line=rank[of_line], count=len(numbers))


@dataclass(frozen=True, slots=True)
class Spread:
    """How far a mean of lines in documents may be from the true one: its standard deviation, and the degrees."""

    deviation: float
    degrees: float

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval."""
        return t_quantile(self.degrees) * self.deviation

    def p_value(self, difference: float) -> float:
        """Test whether a mean that is so far from 0 differs from it by chance; 1 if it is 0."""
        if difference == 0.0:
            return 1.0
        return t_tails(difference / self.deviation, self.degrees) if self.deviation > 0.0 else 0.0


def spread_of_mean(values: Array, of_line: Integers) -> Spread:
    """Estimate how far the mean of the values is from the true one; ``of_line`` numbers two documents or more."""
    lines, centred = len(values), values - values.mean()
    sizes = np.bincount(of_line).astype(np.float64)
    sums = np.bincount(of_line, centred).astype(np.float64)
    adjustments = 1 / (1 - sizes / lines)  # the squares of a_g
    deviation = math.sqrt(float(adjustments @ sums**2)) / lines
    return Spread(deviation, _degrees(sizes, adjustments, _alikeness(centred, sizes, sums)))


def interval_of_mean(values: Array, of_line: Integers | None) -> tuple[float, float]:
    """Return the 95 % interval of the true mean; ``of_line`` numbers two documents or more, None for single lines.

    The single lines are two or more, and the interval allows for their skewness.
    """
    mean = float(values.mean())
    if of_line is not None:
        half = spread_of_mean(values, of_line).half_width
        return mean - half, mean + half
    deviation, skewness, lines = float(values.std(ddof=1)), _skewness(values), len(values)
    t = t_quantile(lines - 1) / math.sqrt(lines)
    low, high = (mean - deviation * _with_skewness(end - skewness / (6 * lines), skewness) for end in (t, -t))
    return low, high


def _with_skewness(y: float, skewness: float) -> float:
    """Solve u + g u^2 / 3 + g^2 u^3 / 27 = y for u, where g is the skewness."""
    if abs(skewness * y) < LEAST_SKEWED:
        return y - skewness * y * y / 3
    return 3 / skewness * (math.cbrt(1 + skewness * y) - 1)


def _skewness(values: Array) -> float:
    """Estimate the skewness without bias for normal values; 0 for two values, or equal ones."""
    lines, centred = len(values), values - values.mean()
    scale = float(np.abs(centred).max())
    if lines == 2 or scale == 0.0:
        return 0.0
    centred /= scale  # so that no cube is too great or too small for a double
    second, third = float((centred**2).mean()), float((centred**3).mean())
    return third / math.pow(second, 1.5) * math.sqrt(lines * (lines - 1)) / (lines - 2)


def _alikeness(centred: Array, sizes: Array, sums: Array) -> float:
    """Estimate the correlation of two lines of a document, by the analysis of variance; at least 0."""
    lines, documents = len(centred), len(sizes)
    if documents == lines:
        return 0.0
    between = float((sums**2 / sizes).sum())
    mean_within = max(0.0, float(centred @ centred) - between) / (lines - documents)
    typical_size = (lines - float(sizes @ sizes) / lines) / (documents - 1)
    shared = max(0.0, (between / (documents - 1) - mean_within) / typical_size)
    return shared / (shared + mean_within) if shared > 0.0 else 0.0


def _degrees(sizes: Array, adjustments: Array, alikeness: float) -> float:
    """Return Satterthwaite's degrees of freedom, at least 1.

    They are tr(A)^2 / tr(A^2) of A = a (I - p 1') v (I - 1 p') a, where a and v are diagonal matrices, v of the
    variances of the sums, and p are the documents' shares of the lines. The traces are written as sums.
    """
    p = sizes / sizes.sum()
    variances = sizes * (1 - alikeness) + alikeness * sizes**2
    total = float(variances.sum())
    trace = float(adjustments @ (variances - 2 * p * variances + total * p**2))
    pp, vv, pv = (float(adjustments @ product) for product in (p * p, variances**2, p * variances))
    own = adjustments**2 * variances
    squared = float(own @ (variances - 4 * p * variances + 2 * total * p**2))
    squared += 2 * pp * vv + total**2 * pp**2 + 2 * pv**2 - 4 * total * pp * pv
    return max(1.0, trace**2 / squared) if squared > 0.0 else 1.0


def widening(values: Array, of_line: Integers) -> float:
    """Divide the width of a mean's interval by documents by that of the interval by lines; 1 without a spread."""
    by_line = Spread(float(values.std(ddof=1)) / math.sqrt(len(values)), len(values) - 1).half_width
    return spread_of_mean(values, of_line).half_width / by_line if by_line > 0.0 else 1.0


def centred_ranks(values: Array) -> Array:
    """Return the ranks of values minus their mean; equal values share the mean of their ranks.

    >>> centred_ranks(np.array([7.0, 5.0, 7.0, 9.0])).tolist()
    [0.0, -1.5, 0.0, 1.5]
    """
    _, places, ties = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(ties) - (ties - 1) / 2)[places] - (len(values) + 1) / 2
    return ranks


def alike_p(ranks: Array, of_line: Integers) -> float:
    """Test whether the lines of a document are more alike than if lines were dealt out to documents at random.

    It is Kruskal and Wallis's test on :func:`centred_ranks`. Its statistic, divided by the greatest possible one, has
    about the beta distribution with the mean and the variance that it has when lines are dealt out (Wallace,
    "Simplified beta-approximations to the Kruskal-Wallis H test", 1959). 1 if all ranks are equal, or each line is a
    document, or all lines are one.
    """
    lines, sizes = len(ranks), np.bincount(of_line).astype(np.float64)
    documents, total = len(sizes), float(ranks @ ranks)
    if total == 0.0 or documents in (1, lines):
        return 1.0
    sums = np.bincount(of_line, ranks)
    statistic = (lines - 1) * float((sums**2 / sizes).sum()) / total
    mean = documents - 1
    unequal = 3.0 * documents**2 - 6 * documents + lines * (2.0 * documents**2 - 6 * documents + 1)
    variance = 2 * mean - 2 * unequal / (5 * lines * (lines + 1)) - 6 / 5 * float((1 / sizes).sum())
    greatest = (lines**3 - float((sizes**3).sum())) / (lines * (lines + 1))
    share = mean / greatest
    if variance <= 0.0 or not 0.0 < share < 1.0:
        return 1.0
    both = share * (1 - share) * greatest**2 / variance - 1
    return beta_cdf(1 - statistic / greatest, both * (1 - share), both * share) if both > 0.0 else 1.0
