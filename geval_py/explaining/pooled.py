"""The difference of two systems, pooled over several test sets, and how much the sets differ in it.

R. DerSimonian and N. Laird, "Meta-analysis in clinical trials", 1986: the true difference may vary from set to set,
with a variance that is estimated from how far the sets' differences are apart. The heterogeneity I^2 is the share of
this spread that is not chance (Higgins and Thompson, "Quantifying heterogeneity in a meta-analysis", 2002).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.comparison import Baseline, find_baseline
from geval_py.explaining.documents import DocumentsBy, choose_documents
from geval_py.explaining.significance import NORMAL_QUANTILE, dot, mean_of, sum_of
from geval_py.explaining.statistics import sample_of, spread_of_mean
from geval_py.reading.outputs import unique_names
from geval_py.scoring.metrics.base import Array
from geval_py.scoring.scores import Evaluation, check_comparable
from geval_py.tables import formats, numbers
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import some_of, visible

if TYPE_CHECKING:
    import pandas as pd


class PooledDifference(NamedTuple):
    """A system's mean loss minus the baseline's, over some test sets: in nats or, for a share, of its misses.

    ``low`` and ``high`` are the ends of the 95 % interval, ``p_value`` is two-sided; ``heterogeneity`` is in [0, 1].
    """

    name: str
    sets: int
    difference: float
    low: float
    high: float
    p_value: float
    heterogeneity: float

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return self._asdict()


@dataclass(frozen=True, kw_only=True, repr=False)
class PooledComparison(formats.Tabular):
    """Differences of systems from a baseline, pooled over test sets, the best first. Printed as a table.

    ``in_nats`` is whether losses are in nats; tables then show the change of the perplexity.
    """

    metric: str
    baseline: str
    sets: tuple[str, ...]
    systems: tuple[PooledDifference, ...]
    in_nats: bool

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per system, in the same order, and a column for each of its figures."""
        import pandas as pd

        return pd.DataFrame(self.systems)

    def records(self) -> Table:
        return plain_table(PooledDifference._fields, self.systems)

    def table(self) -> Table:
        head = ["system", "sets", "diff. [95 %]", "p", "I²"]
        rows = []
        for one in self.systems:
            ends = (math.expm1(end) if self.in_nats else end for end in one[2:5])
            difference, low, high = (f"{100 * end:+.1f}" for end in ends)
            p_value, heterogeneity = numbers.p_value(one.p_value), f"{100 * one.heterogeneity:.0f} %"
            rows.append([one.name, one.sets, f"{difference} % [{low}, {high}]", p_value, heterogeneity])
        columns = [Column(name, alignment="left" if name == "system" else "right") for name in head]
        return Table(columns, rows)

    def legend(self) -> Iterator[str]:
        what = "perplexity" if self.in_nats else "share of misses"
        yield visible(
            f"{self.metric} of {numbers.counted(len(self.sets), 'test set')}: {some_of(self.sets)}; "
            f"the baseline is {self.baseline}."
        )
        yield f"diff.: how much the {what} differs from the baseline's, pooled over the sets (DerSimonian and Laird)."
        yield "I²: the estimated share of the variation between the sets that is not due to the choice of lines."


def pool(differences: Sequence[float], deviations: Sequence[float]) -> tuple[float, float, float]:
    """Return the pooled difference, its standard deviation, and I^2, of the sets' differences (two or more).

    >>> [round(figure, 4) for figure in pool([0.1, 0.3], [0.05, 0.05])]
    [0.2, 0.1, 0.875]
    """
    values, weights = np.array(differences), 1 / np.square(deviations)
    total = sum_of(weights)
    spread = dot(weights, (values - dot(weights, values) / total) ** 2)
    excess = max(0.0, spread - (len(values) - 1))
    weights = 1 / (1 / weights + excess / (total - dot(weights, weights) / total))
    return (
        dot(weights, values) / sum_of(weights),
        sum_of(weights) ** -0.5,
        excess / spread if spread else 0.0,
    )


def compare_sets(
    sets: Sequence[Sequence[Evaluation]], *, baseline: Baseline = None, documents: DocumentsBy = None
) -> PooledComparison:
    """Pool the differences of the outputs of several test sets, which are found by their names, from a baseline.

    The first metric is compared. Lines that are infinite in either output are left out, and so are outputs of one set
    only. Raises UsageError for fewer than two sets, metrics that are not made from one mean loss, no output that two
    sets have beside the baseline, and the errors of :func:`geval_py.compare`.
    """
    if len(sets) < 2:
        raise UsageError(message=f"pooling takes two test sets or more; there is {len(sets) or 'none'}")
    name, by_system = "", dict[str, list[tuple[float, float]]]()
    for evaluations in sets:
        check_comparable(evaluations)
        outputs = [evaluation.output for evaluation in evaluations]
        names, index = unique_names(outputs), find_baseline(name or baseline, evaluations, outputs)
        name = names[index]
        of_file = choose_documents(evaluations[0], documents)
        first = evaluations[0].scores[0]
        grouped = of_file and of_file.of_score(first).several()
        statistics = [evaluation.scores[0].statistics for evaluation in evaluations]
        sample = sample_of(first.metric, statistics, grouped and grouped.of_line)
        if not sample.is_of_mean_loss:
            raise UsageError(message=f"{first.name} cannot be pooled: it is not made from one mean loss")
        for own, column in zip(names, sample.statistics[0].T, strict=True):
            differences: Array = column - sample.statistics[0, :, index]
            finite = np.isfinite(differences)
            of_line = np.unique(sample.unit_of_line[finite], return_inverse=True)[1]
            if own != name and len(of_line) and of_line.max() > 0:
                deviation = spread_of_mean(differences[finite], of_line).deviation
                if deviation > 0.0:
                    by_system.setdefault(own, []).append((mean_of(differences[finite]), deviation))
    systems = []
    for own, figures in by_system.items():
        if len(figures) > 1:
            difference, deviation, heterogeneity = pool(*zip(*figures, strict=True))
            half, p_value = NORMAL_QUANTILE * deviation, math.erfc(abs(difference) / deviation / math.sqrt(2))
            ends = difference - half, difference + half
            systems.append(PooledDifference(own, len(figures), difference, *ends, p_value, heterogeneity))
    if not systems:
        raise UsageError(message=f"no output but {visible(name)} is in two test sets: give outputs the same names")
    return PooledComparison(
        metric=first.name,
        baseline=name,
        sets=tuple(evaluations[0].split.expected.name for evaluations in sets),
        systems=tuple(sorted(systems, key=lambda one: one.difference)),
        in_nats=first.metric.measure.in_nats,
    )
