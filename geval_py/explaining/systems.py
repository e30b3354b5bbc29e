"""Systems on the same lines: the score of each, and each against a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from geval_py.explaining.bootstrap import (
    Table,
    document_intervals,
    percentile_interval,
    resample_totals,
    scores_on,
    table_of,
)
from geval_py.explaining.paired import (
    bootstrap_p_values,
    difference_intervals,
    equal_systems,
    line_shares,
    randomisation_p_values,
)
from geval_py.explaining.resampling import Array, Totals
from geval_py.explaining.significance import LEVEL, Interval, holm, undistinguished_groups
from geval_py.scoring.blocks import Progress
from geval_py.scoring.metrics.base import LineStatistics, Metric
from geval_py.scoring.scores import Signature

if TYPE_CHECKING:
    from geval_py.explaining.documents import Documents


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One output among those compared.

    ``score`` and its 95 % ``interval`` are over all lines, of which ``infinite`` have an infinite loss, or another
    infinite statistic; ``finite_score`` is over the lines compared: those on which every system's are finite.

    Against the baseline, on all lines: the shares of lines ``won`` (a lower loss or, where a metric is made from
    other statistics, a better score of the line; any finite line is better than an infinite one), ``lost`` and
    ``tied`` (two infinite ones too). On the lines compared: the ``difference`` (finite score minus the baseline's, in
    the metric's unit) and its 95 % interval, and the p-values of both tests (two-sided, not corrected for the number
    of systems). All are None for the baseline; those of the lines compared also where no line is left, and a
    difference of infinite scores.

    Two equal ``signature`` mean the same score; it is None where it was not asked for.
    """

    name: str
    score: float
    interval: Interval
    infinite: int
    finite_score: float | None = None
    difference: float | None = None
    difference_interval: Interval | None = None
    p_bootstrap: float | None = None
    p_randomisation: float | None = None
    won: float | None = None
    lost: float | None = None
    tied: float | None = None
    signature: Signature | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the fields by name, intervals as dictionaries too; values may be inf."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = {n: value.to_dict() if isinstance(value, Interval) else value for n, value in values.items()}
        return shown | {"signature": None if self.signature is None else str(self.signature)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Systems, the best first, and the groups of those that cannot be told apart; ``lines`` were compared.

    ``documents`` is the number of those documents, None where lines were drawn. ``equal`` are the sets of systems
    that have the same statistics on every line.
    """

    systems: tuple[System, ...]
    groups: tuple[tuple[str, ...], ...]
    equal: tuple[tuple[str, ...], ...]
    lines: int
    documents: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Systems:
    """What is compared and how: a metric, a table of line statistics a system, which one is the baseline."""

    metric: Metric
    names: Sequence[str]
    statistics: Sequence[LineStatistics]
    baseline: int
    samples: int
    seed: int
    documents: Documents | None = None
    progress: Progress | None = None

    def rank(self) -> Ranking:
        """Score, test and group the systems; raises UsageError for samples or a seed out of range."""
        table = table_of(self.metric, self.statistics, self.documents)
        resampled = self._resample(table)
        systems = self._score(table, resampled)
        equal = self._named(equal_systems(table))
        finite = table.finite()
        if not finite.lines:
            ordered = tuple(systems[n] for n in self._order(systems))
            return Ranking(systems=ordered, groups=(), equal=equal, lines=0, documents=None)
        scores = [system.score for system in systems]
        if table.infinite.any():
            (scores,) = scores_on(self.metric, finite.observed()).tolist()
            resampled = self._resample(finite)
        systems = [replace(system, finite_score=score) for system, score in zip(systems, scores, strict=True)]
        order = self._order(systems)
        p_values = randomisation_p_values(
            self.metric, finite, samples=self.samples, seed=self.seed, progress=self.progress
        )
        systems = self._test(systems, scores, finite, resampled, p_values[self.baseline].tolist())
        groups = _groups(p_values[order][:, order])
        return Ranking(
            systems=tuple(systems[n] for n in order),
            groups=self._named([order[n] for n in group] for group in groups),
            equal=equal,
            lines=finite.lines,
            documents=None if finite.documents is None else finite.documents.count,
        )

    def _named(self, sets: Iterable[Iterable[int]]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.names[n] for n in indices) for indices in sets)

    def _resample(self, table: Table) -> Totals:
        return resample_totals(table, samples=self.samples, seed=self.seed, progress=self.progress)

    def _score(self, table: Table, resampled: Totals) -> list[System]:
        """Give each system's score on all lines, its interval, and its shares of lines against the baseline."""
        shares = line_shares(self.metric, table, self.baseline)
        values = scores_on(self.metric, resampled).T
        intervals = document_intervals(self.metric, table)
        infinite = table.infinite.sum(axis=0).tolist()
        systems = [
            System(
                name=name,
                score=self.metric.value(self.statistics[n]),
                interval=intervals[n] or percentile_interval(values[n], table, seed=self.seed),
                infinite=infinite[n],
            )
            for n, name in enumerate(self.names)
        ]
        for n, (won, lost, tied) in enumerate(shares):
            if n != self.baseline:
                systems[n] = replace(systems[n], won=won, lost=lost, tied=tied)
        return systems

    def _test(
        self,
        systems: Sequence[System],
        scores: Sequence[float],
        finite: Table,
        resampled: Totals,
        randomisation: Sequence[float],
    ) -> list[System]:
        """Add what each system is against the baseline on the lines compared.

        ``scores``, the ``finite`` statistics and their ``resampled`` sums are of those lines; ``randomisation`` are
        the p-values of that test.
        """
        intervals = difference_intervals(scores_on(self.metric, resampled), finite, self.baseline, seed=self.seed)
        bootstrap = bootstrap_p_values(self.metric, finite, resampled, self.baseline).tolist()
        tested = list(systems)
        for n, system in enumerate(systems):
            if n != self.baseline:
                difference = scores[n] - scores[self.baseline]
                tested[n] = replace(
                    system,
                    difference=None if math.isnan(difference) else difference,
                    difference_interval=intervals[n],
                    p_bootstrap=bootstrap[n],
                    p_randomisation=randomisation[n],
                )
        return tested

    def _order(self, systems: Sequence[System]) -> list[int]:
        """Give the indices of the systems, the best first; those of the same score by that on the finite lines.

        One whose score is not defined comes last.
        """
        sign = 1 if self.metric.measure.direction == "lower" else -1

        def place(n: int) -> tuple[bool, float, float]:
            score, finite = systems[n].score, systems[n].finite_score or 0.0
            return (True, 0.0, 0.0) if math.isnan(score) else (False, sign * score, sign * finite)

        return sorted(range(len(systems)), key=place)


def _groups(p_values: Array) -> list[tuple[int, ...]]:
    """Group systems in order of score by the p-values of all pairs, systems x systems."""
    pairs = list(combinations(range(len(p_values)), 2))
    corrected = holm([float(p_values[pair]) for pair in pairs])
    distinct = frozenset(pair for pair, p_value in zip(pairs, corrected, strict=True) if p_value < LEVEL)
    return undistinguished_groups(len(p_values), distinct)
