"""Comparison: whether one output of a test set is better than another, by more than chance.

    evaluations ──> a sample of line statistics ──> differences, tests, groups ──> tables

Only the first metric is compared. :mod:`geval_py.explaining.statistics` describes the tests,
:mod:`geval_py.explaining.significance` the groups.
"""

from __future__ import annotations

import math
import operator
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np

from geval_py.errors import UsageError
from geval_py.explaining.documents import (
    Documents,
    DocumentsBy,
    choose_documents,
    notes_on_columns,
    notes_on_documents,
    notes_on_intervals,
)
from geval_py.explaining.significance import (
    LEVEL,
    MIN_TESTED_LINES,
    Interval,
    group_letters,
    holm,
    undistinguished_groups,
)
from geval_py.explaining.statistics import (
    BaselineTest,
    LineSample,
    against_baseline,
    comparable_parts,
    intervals,
    line_shares,
    optimism,
    pair_p_values,
    ranking_p_values,
    sample_of,
)
from geval_py.reading import config
from geval_py.reading.outputs import (
    DERIVED,
    RUNS,
    Output,
    by_runs,
    find_output,
    output_at,
    own_names,
    unique_names,
)
from geval_py.scoring import blocks, scores
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.score_tables import short_name
from geval_py.tables import formats, numbers
from geval_py.tables.table import Bold, Column, Table, plain_table
from geval_py.text import shown, some_of, visible

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.reports.charts import Chart

Baseline: TypeAlias = "str | os.PathLike[str] | SupportsIndex | None"  # a name or path, an index, or the best known


_STARS = (0.05, 0.01, 0.001)  # a star for each that p is below
SIGNIFICANT_DIGITS = 4  # of a number without an interval, or with one of no width
SCORE, DIFFERENCE, NOT_WORSE = "score [95 %]", "diff. [95 %]", "not worse"
UNSAID = ("share", "correlation", "answers' unit", "its square")  # units that are not written behind a number
NOT_PRINTED = ("compared", "score there", "won", "lost", "tied")  # in a paper


@dataclass(frozen=True, kw_only=True)
class System:
    """One output of a comparison.

    ``score`` and its 95 % ``interval`` are over all lines, of which ``infinite`` have an infinite loss (or another
    infinite statistic); ``finite_score`` is over the lines ``compared``: those that are finite in this system and in
    the baseline. A system has ``runs``, if they are told apart.

    Against the baseline, on all lines: the shares of lines ``won`` (a lower loss or, for a metric of other
    statistics, a better score of the line; any finite line beats an infinite one), ``lost`` and ``tied`` (also two
    infinite lines). On the lines compared: the ``difference`` (finite score minus the baseline's, in the metric's
    unit) with its 95 % interval, and the p-values of both tests (two-sided, not corrected for the number of systems;
    by documents, and for many lines, ``p_bootstrap`` is of a t test). All are None for the baseline. Figures of the
    lines compared are None if there is no such line, and so is a difference of infinite scores. The difference and
    its p-values are None, too, if it favours the system with more infinite lines. ``run_share`` is the share of the
    difference's variance that is due to training runs. A true difference of ``least_detectable`` would be significant
    at 5 % in 80 % of cases; ``lines_needed`` is the number of lines for another such difference, inf if more lines
    are not enough. ``p_no_worse`` is the one-sided p-value of the test that the system is not worse by some margin.

    Two equal ``signature`` mean the same score; it is None if none was asked for, or the system has several runs.
    """

    name: str
    score: float
    interval: Interval
    infinite: int
    compared: int = 0
    finite_score: float | None = None
    difference: float | None = None
    difference_interval: Interval | None = None
    p_bootstrap: float | None = None
    p_randomisation: float | None = None
    won: float | None = None
    lost: float | None = None
    tied: float | None = None
    runs: int | None = None
    run_share: float | None = None
    least_detectable: float | None = None
    lines_needed: float | None = None
    p_no_worse: float | None = None
    signature: scores.Signature | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(formats.Tabular):
    """A comparison of outputs on the same lines, the best output first. Printed as a table.

    ``test`` is the name of the test set; scores are of a ``metric``, in its ``unit``; ``direction`` says which are
    better. Of ``lines`` lines, ``compared`` have finite statistics, such as losses, for every system. ``groups`` are
    the greatest sets of systems, by name, of which no two differ significantly (approximate randomisation of all
    pairs or, by documents or runs, t tests; Holm's correction, 5 %; a system that is finite on all lines is better
    than one that is not, without a test). If intervals and tests are by documents, ``documents`` is their column and
    ``compared_documents`` their number.

    ``optimism`` is by how much the best of as many equally good systems would seem better than their mean, in the
    metric's unit (None for two systems and for other metrics), and ``p_best`` the p-value of the best one against the
    baseline, corrected for the choice among all (None if the baseline is best). ``runs`` is the parameter that tells
    a system's training runs apart, if there is one: scores and shares are then of losses averaged over the runs.
    ``no_worse_than`` is the margin of each system's ``p_no_worse``, and ``detect`` the difference of its
    ``lines_needed``, both in the metric's unit.

    ``notes`` are warnings, for people. ``of_losses`` is whether lines are compared by their losses, not by other
    statistics. Shown scores have ``precision`` digits after the point or, without it, as many as their intervals make
    worth showing. ``names`` replace systems' names in tables for people; ``marks`` shows what is significant there,
    and the best score.
    """

    test: str
    metric: str
    unit: str
    direction: str
    lines: int
    compared: int
    baseline: str
    samples: int
    seed: int
    documents: str | None
    compared_documents: int | None
    optimism: float | None
    p_best: float | None
    runs: str | None
    no_worse_than: float | None
    detect: float | None
    systems: tuple[System, ...]
    groups: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    of_losses: bool
    precision: int | None = field(default=None, compare=False)
    names: Mapping[str, str] = field(default_factory=dict, compare=False)
    marks: bool = field(default=False, compare=False)

    def markdown(self) -> Iterator[str]:
        return formats.Tabular.markdown(replace(self, marks=True))

    def latex(self, caption: str | None = None, label: str | None = None) -> Iterator[str]:
        shown = replace(self, names={**self.short_names(), **self.names}, marks=True)
        return formats.Tabular.latex(shown, caption, label)

    def to_markdown(self, names: Mapping[str, str] | None = None) -> str:
        """Write a Markdown table, the best score bold with marks of significance; ``names`` are as in to_latex."""
        return "".join(self.with_names(names or {}).markdown())

    def to_latex(
        self, caption: str | None = None, label: str | None = None, names: Mapping[str, str] | None = None
    ) -> str:
        """Write a LaTeX table, with the package booktabs, the best score bold and marks of significance.

        A ``caption``, which is escaped, or a ``label`` puts it into a table environment. ``names`` are shown instead
        of the systems' own, by which they are given, or by a shorter name, as a baseline. Raises UsageError for an
        output that is not there, and for a label with other characters than letters, digits and ``:._/+-``.
        """
        return "".join(self.with_names(names or {}).latex(caption, checked_label(label)))

    def short_names(self) -> dict[str, str]:
        """Return the names for a paper or a chart, without ``out-`` and ``.tsv``."""
        return {system.name: short_name(system.name) for system in self.systems}

    def with_names(self, names: Mapping[str, str]) -> Comparison:
        """Return the same comparison, which tables for people show with other names; raises UsageError."""
        own = [system.name for system in self.systems]
        new = own_names(names, own, list(map(output_at, own)), "compared")
        return replace(self, names={**self.names, **new})

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per system, in the same order; an interval is two columns, low and high.

        The column ``groups`` holds the numbers, from 0, of the system's groups, and ``output`` the name that
        :meth:`geval_py.Evaluations.to_frame` has, by which the two can be merged.
        """
        import pandas as pd

        return pd.DataFrame([self.row(system) for system in self.systems])

    def row(self, system: System) -> dict[str, Any]:
        """Return a system's row of that table."""
        row: dict[str, Any] = {"system": system.name}
        for name, value in vars(system).items():
            prefix = name.removesuffix("interval")
            if prefix != name:
                row |= {f"{prefix}low": value and value.low, f"{prefix}high": value and value.high}
            elif name not in ("name", "signature"):
                row[name] = value
        groups = tuple(n for n, group in enumerate(self.groups) if system.name in group)
        return row | {"groups": groups, "output": short_name(system.name)}

    def to_dict(self) -> dict[str, Any]:
        return formats.json_fields(self, "of_losses", "precision", "names", "marks")

    def chart(self) -> Chart:
        """Draw the other systems' differences from the baseline with their intervals.

        Raises UsageError if no difference is finite.
        """
        from geval_py.reports.panels import differences

        _, chart = differences(self)
        if chart is None:
            raise UsageError(message="there is no difference to draw: no line is finite in all outputs")
        return chart

    @property
    def is_tested(self) -> bool:
        """Whether the baseline and another system have finite lines in common."""
        return any(system.compared for system in self.systems if system.name != self.baseline)

    @property
    def tests(self) -> list[str]:
        """The columns of the tests: by documents or runs, and for many lines, t tests; nothing is resampled.

        A t test by documents or runs has one p-value, which makes the groups, too.
        """
        intervals = [system.difference_interval for system in self.systems]
        if all(one is None or one.samples is not None for one in intervals):
            return ["p boot", "p rand"]
        return ["p t", "p rand"] if (self.documents or self.runs) is None else ["p t"]

    def table(self) -> Table:
        """Return the table for people: a row per system.

        Columns about infinite losses are left out if all lines are finite, columns about lines compared if none are.
        """
        some_infinite, tested = self.compared < self.lines, self.is_tested
        figures = [*(["runs"] if self.runs else []), SCORE, *(["infinite"] if some_infinite else [])]
        figures += ["compared", "score there"] if tested and some_infinite else []
        figures += [DIFFERENCE, *self.tests] if tested else []
        figures += [NOT_WORSE] if tested and self.no_worse_than is not None else []
        figures += ["won", "lost", "tied"]
        columns = [Column(name, alignment="right", write=lambda cell: cell) for name in figures]
        columns.insert(0, Column("system", write=lambda cell: cell))
        columns += [Column("group")] if tested else []
        rows = [[cells[column.name] for column in columns] for cells in map(self._cells, self.systems)]
        return Table(columns, rows, not_printed=[*self.tests[:-1], *NOT_PRINTED])

    def _cells(self, system: System) -> dict[str, str]:
        """Write the cells of a system, by their columns."""

        def number(value: float | None, interval: Interval | None) -> str:
            if value is None:
                return ""
            if self.precision is not None:
                return numbers.fixed(value, self.precision)
            if interval is None or abs(value) >= numbers.MAX_PLAIN or not 0 < interval.half_width < math.inf:
                return numbers.significant(value, SIGNIFICANT_DIGITS)
            return numbers.fixed(value, numbers.decimals_of(interval.half_width, 2))

        def measured(value: float | None, interval: Interval | None, stars: str = "") -> str:
            ends = ""
            if value is not None and interval is not None and not math.isnan(interval.low):
                ends = f" [{number(interval.low, interval)}, {number(interval.high, interval)}]"
            return f"{number(value, interval)}{stars}{ends}"

        p, difference = system.p_randomisation, system.difference
        stars = "*" * sum(p < least for least in _STARS) if self.marks and p is not None else ""
        versus = measured(difference, system.difference_interval, stars)
        score = measured(system.score, system.interval)
        is_best = self.marks and system.score == self.systems[0].score and math.isfinite(system.score)
        no_worse = numbers.p_value(system.p_no_worse)
        return {
            "system": visible(self.names.get(system.name, system.name)),
            "runs": str(system.runs),
            SCORE: Bold(score) if is_best else score,
            "infinite": str(system.infinite),
            "compared": str(system.compared),
            "score there": number(system.finite_score, system.interval),
            DIFFERENCE: "baseline" if system.name == self.baseline else f"{'+' * ((difference or 0.0) > 0)}{versus}",
            self.tests[0]: numbers.p_value(system.p_bootstrap),
            "p rand": numbers.p_value(p),
            NOT_WORSE: no_worse and f"{'yes' if (system.p_no_worse or 0.0) < LEVEL else 'no'} ({no_worse})",
            **{name: share_text(getattr(system, name)) for name in ("won", "lost", "tied")},
            "group": group_letters(self.row(system)["groups"]),
        }

    def records(self) -> Table:
        rows = [self.row(system) | {"signature": str(system.signature or "")} for system in self.systems]
        for row in rows:
            row["groups"] = " ".join(map(str, row["groups"]))
        return plain_table(list(rows[0]), [list(row.values()) for row in rows])

    @property
    def unit_text(self) -> str:
        """The unit, as it is written behind a number."""
        return "" if self.unit in UNSAID else f" {self.unit}"

    def _range(self, name: str, write: Callable[[float], str]) -> str:
        """Write the least and the greatest of a figure of the systems; "" if none has it."""
        values = [value for system in self.systems if (value := getattr(system, name)) is not None]
        return " to ".join(dict.fromkeys(map(write, (min(values), max(values))))) if values else ""

    def signatures(self) -> Iterator[str]:
        return scores.signature_lines((system.name, system.signature) for system in self.systems)

    def legend(self) -> Iterator[str]:
        drawn = f"; {self.samples} samples, seed {self.seed}" if "p boot" in self.tests else ""
        yield visible(
            f"{self.metric} ({self.unit}, {self.direction} is better) of {numbers.counted(self.lines, 'line')} of "
            f"{self.test}; the baseline is {self.names.get(self.baseline, self.baseline)}{drawn}."
        )
        if self.documents is not None:
            yield visible(
                f"Intervals and tests are computed by document: {self.compared_documents} documents, named by the "
                f"column {self.documents}."
            )
        if self.runs is not None:
            yield visible(
                f"Outputs that differ only in {self.runs} are training runs of one system. Its score is computed "
                "from the mean of its runs on each line; intervals and tests allow for other runs."
            )
            if shares := self._range("run_share", share_text):
                yield f"{shares} of a difference's variance is due to training runs. More lines do not reduce it."
        if self.compared < self.lines and self.is_tested:
            what = "loss" if self.of_losses else "score"
            yield (
                f"Differences and tests are of the lines compared, with a finite {what} in the system and in the "
                f"baseline; the rest is of all {self.lines}."
            )
            yield "score there: of the lines compared."
            yield f"{DIFFERENCE}: none is shown where it favours the one of the two with more infinite lines."
        better, much = ("a lower loss", "lower") if self.of_losses else ("a better score", "better")
        yield f"won: lines with {better} than the baseline's; the score also depends on how much {much}."
        if self.is_tested:
            names = {"p boot": "paired bootstrap test", "p t": "paired t test", "p rand": "approximate randomisation"}
            yield from (f"{test}: {names[test]}, two-sided, against the baseline." for test in self.tests)
            decided = "; a finite score is better than an infinite one" if self.compared < self.lines else ""
            correction = f"({self.tests[-1]} of all pairs, Holm's correction, 5 % level{decided})"
            yield f"group: systems that share a letter do not differ significantly {correction}."
        if self.optimism is not None:
            tries, best = len(self.systems), self.systems[0].name
            yield (
                f"best of {tries}: of {tries} equally good systems, the best would seem better than their mean by "
                f"{numbers.significant(self.optimism, 2)} {self.unit}, by chance."
            )
            if self.p_best is not None:
                verdict = "is" if self.p_best < LEVEL else "is not"
                yield visible(
                    f"{self.names.get(best, best)} {verdict} significantly better than the baseline, corrected for "
                    f"the choice of the best of {tries} (p {numbers.p_value(self.p_best)})."
                )
        if self.no_worse_than is not None:
            margin = f"worse than the baseline by less than {self.no_worse_than:g}{self.unit_text}, or better"
            yield f"{NOT_WORSE}: {margin} (one-sided test with its p-value, 5 % level)."
        if detectable := self._range("least_detectable", lambda value: numbers.significant(value, 2)):
            meaning = "a true difference of this size would be significant in about 80 % of such test sets"
            yield f"Least detectable difference: {detectable}{self.unit_text} ({meaning})."
        if self.detect is not None and (needed := self._range("lines_needed", lambda value: f"{value:,.0f}")):
            needed += " such lines (inf: only more training runs help)" if "inf" in needed else " such lines"
            yield f"To detect a difference of {self.detect:g}{self.unit_text} in 80 % of cases takes about {needed}."
        if self.marks:
            yield "bold: the best score."
        if self.marks and self.is_tested:
            stars = ", ".join(f"{'*' * count} {self.tests[-1]} < {p}" for count, p in enumerate(_STARS, 1))
            yield f"{stars}, against the baseline, not corrected for the number of systems."


def rank(
    sample: LineSample,
    own_scores: Sequence[float],
    names: Sequence[str],
    *,
    baseline: int,
    samples: int,
    seed: int,
    no_worse_than: float | None = None,
    detect: float | None = None,
    progress: blocks.Progress | None = None,
) -> tuple[list[System], list[tuple[str, ...]], float | None]:
    """Test systems in pairs, and group them; ``baseline`` is the index of one, and ``own_scores`` are of all lines.

    Returns the systems, the best first, the groups that do not differ significantly, and the p-value of the best.
    """
    count, sign = sample.systems, sample.metric.measure.sign
    failures = sample.infinite.sum(axis=0).tolist()
    own_intervals = intervals(sample, samples=samples, seed=seed, progress=progress)
    rows: list[dict[str, Any]] = [
        {
            "name": names[n],
            "score": own_scores[n],
            "interval": own_intervals[n],
            "infinite": failures[n],
            "runs": sample.runs[n].systems if sample.runs else None,
        }
        for n in range(count)
    ]
    for n, (won, lost, tied) in enumerate(line_shares(sample, baseline)):
        if n != baseline:
            rows[n].update(won=won, lost=lost, tied=tied)
    pairs = list(combinations(range(count), 2))
    p_values = pair_p_values(sample, pairs, samples=samples, seed=seed, progress=progress)
    against = [(min(n, baseline), max(n, baseline)) for n in range(count)]  # also the baseline's own finite lines
    for part, place, together in comparable_parts(sample, against):
        tests: list[BaselineTest] = []
        part_scores, is_whole = part.scores(part.totals())[0].tolist(), part.lines == sample.lines
        score_of = {n: own_scores[n] if is_whole else part_scores[at] for n, at in place.items()}
        for pair in together:
            n, p_value = sum(pair) - baseline, p_values.get(pair)
            rows[n].update(compared=part.lines, finite_score=score_of[n])
            if p_value is not None:
                tests = tests or against_baseline(
                    part, place[baseline], samples=samples, seed=seed, progress=progress
                )
                difference = score_of[n] - score_of[baseline]
                difference_interval, p_bootstrap, spread = tests[place[n]]
                rows[n].update(
                    difference=None if math.isnan(difference) else difference,
                    difference_interval=difference_interval,
                    p_bootstrap=p_bootstrap,
                    p_randomisation=p_value,
                )
                if no_worse_than is not None and not math.isnan(difference):
                    rows[n].update(p_no_worse=spread.p_of_less(sign * difference - no_worse_than))
                if spread.deviation > 0.0:  # there are lines that differ
                    rows[n].update(
                        run_share=spread.run_share if sample.runs else None,
                        least_detectable=spread.least_detectable,
                        lines_needed=None if detect is None else spread.lines_needed(part.lines, detect),
                    )

    def place_of(n: int) -> tuple[bool, float, int, float]:
        """Sort by score, infinite lines, score on the lines compared; undefined scores are last, in their order."""
        finite_score = (rows[n].get("finite_score") or 0.0) if failures[n] else 0.0
        return math.isnan(own_scores[n]), sign * own_scores[n], failures[n], sign * finite_score

    best, *_ = order = sorted(range(count), key=place_of)
    p_of = ranking_p_values(sample, p_values)
    corrected = holm([p_of[min(order[a], order[b]), max(order[a], order[b])] for a, b in pairs])
    groups = undistinguished_groups(
        count, frozenset(pair for pair, p in zip(pairs, corrected, strict=True) if p < LEVEL)
    )
    p_best = None if best == baseline else min(1.0, (count - 1) * p_of[min(best, baseline), max(best, baseline)])
    return [System(**rows[n]) for n in order], [tuple(names[order[n]] for n in group) for group in groups], p_best


def _mean(runs: Sequence[LineStatistics]) -> LineStatistics:
    """Return the means of the statistics of a system's runs."""
    columns = np.mean([run.columns for run in runs], axis=0)
    return LineStatistics(tuple(array("d", column) for column in columns), runs[0].classes)


def equal_systems(systems: Iterable[LineStatistics]) -> list[tuple[int, ...]]:
    """Find the sets, of two systems at least, with the same statistics on every line."""
    alike: dict[tuple[bytes, str], list[int]] = {}
    for n, system in enumerate(systems):
        columns = (np.array(system.columns) + 0.0).tobytes()  # -0 is 0
        alike.setdefault((columns, repr(system.details)), []).append(n)
    return [tuple(same) for same in alike.values() if len(same) > 1]


def checked_label(label: str | None) -> str | None:
    """Return a label of LaTeX; raises UsageError for other characters than letters, digits and ``:._/+-``."""
    try:
        return None if label is None else config.checked_label(label)
    except ValueError as error:
        raise UsageError(message=visible(str(error))) from error


def compare(
    *outputs: scores.Evaluation | Iterable[scores.Evaluation],
    baseline: Baseline = None,
    samples: int = config.DEFAULT_SAMPLES,
    seed: int = config.DEFAULT_SEED,
    documents: DocumentsBy = None,
    runs: str | None = None,
    no_worse_than: float | None = None,
    detect: float | None = None,
    progress: blocks.Progress | None = None,
) -> Comparison:
    """Compare evaluations, given one by one or as a list, with a baseline and with each other.

    ``baseline`` is an output's name or path, its index, or a shorter name that fits only one output: ``"unigram"`` or
    ``"model=unigram"`` for ``out-model=unigram.tsv``. By default, it is the best output of ``geval baseline`` or,
    without one, the first that was neither tuned nor mixed. ``samples`` is the number of resamples for the bootstrap
    test and, of metrics that are not made from one mean loss, for intervals and approximate randomisation. ``seed``
    is for the random numbers; ``progress`` is called now and then.

    ``documents`` is a column of the input (its name or number, from 1), columns that nest (``"FileId,Newspaper"``
    means the coarsest) or one value per line: lines with the same value belong together, and intervals and tests are
    by documents. By default the column is the one that config.txt declares, or one with a usual name such as FileId;
    False takes each line by itself. Two systems are compared on the lines that are finite in both; the shares won,
    lost and tied are of all lines.

    ``runs`` is a parameter of the outputs' names, such as ``"seed"``: outputs that differ only in it are training
    runs of one system. ``no_worse_than`` and ``detect`` are differences in the metric's unit, above 0: whether a
    system is not worse than the baseline by more, and how many lines detect such a difference.

    Raises UsageError for fewer than two evaluations or systems, other values, different answers or metrics, an
    unknown baseline, column or parameter, samples, a seed or a difference out of range, a single document or run;
    LineCountError for different numbers of lines.
    """
    evaluations = scores.checked_evaluations(outputs, "compare")
    config.check_sampling(samples, seed)
    if not all(0.0 < one < math.inf for one in (no_worse_than, detect) if one is not None):
        raise UsageError(message="a difference is a number above 0")
    files = [evaluation.output for evaluation in evaluations]
    members: list[tuple[int, ...]] = [(n,) for n in range(len(files))]
    if runs is not None:
        files, members = _systems(files, runs)
    if len(members) < 2:
        what = "outputs" if runs is None else "systems"
        raise UsageError(message=f"a comparison takes two {what} or more; there is {len(members) or 'none'}")
    scores.check_comparable(evaluations)
    names, first = unique_names(files), evaluations[0].scores[0]
    index = find_baseline(baseline, [evaluations[one[0]] for one in members], files)
    of_file = choose_documents(evaluations[0], documents)
    grouped = of_file and of_file.of_score(first).several()
    metric, of_line = first.metric, grouped and grouped.of_line
    of_runs = [[evaluations[run].scores[0].statistics for run in one] for one in members]
    statistics = [one[0] if runs is None else _mean(one) for one in of_runs]
    sample = sample_of(metric, statistics, of_line)
    if runs is not None:
        if np.isnan(sample.line_figures()).any():
            raise UsageError(message=f"training runs cannot be compared by {metric.name}: it is not of single lines")
        sample = replace(sample, runs=tuple(sample_of(metric, one, of_line) for one in of_runs))
    systems, groups, p_best = rank(
        sample,
        [metric.value(system) for system in statistics],
        names,
        baseline=index,
        samples=samples,
        seed=seed,
        no_worse_than=no_worse_than,
        detect=detect,
        progress=progress,
    )
    singles = [(name, n) for name, (n, *more) in zip(names, members, strict=True) if not more]
    signatures = {name: scores.Signature(evaluations[n]) for name, n in singles}
    comparison = Comparison(
        **scores.head_of(evaluations[0]),
        lines=evaluations[0].line_count,
        compared=int((~sample.infinite).all(axis=1).sum()),
        baseline=names[index],
        samples=samples,
        seed=seed,
        documents=grouped and grouped.column,
        compared_documents=grouped and grouped.count,
        optimism=optimism(sample) if runs is None else None,
        p_best=p_best,
        runs=runs,
        no_worse_than=no_worse_than,
        detect=detect,
        systems=tuple(replace(system, signature=signatures.get(system.name)) for system in systems),
        groups=tuple(groups),
        notes=(),
        of_losses=metric.measure.of_losses,
    )
    return replace(comparison, notes=tuple(_notes(evaluations, comparison, sample.are_drawn, of_file, documents)))


def _systems(outputs: Sequence[Output], parameter: str) -> tuple[list[Output], list[tuple[int, ...]]]:
    """Return the systems that have runs, as outputs without the parameter of these, and the indices of their runs."""
    groups = by_runs(outputs, parameter)
    names = {os.path.basename(path): [outputs[n].name for n in runs] for path, runs in groups.items()}
    single = [name for name, runs in names.items() if len(runs) == 1 and runs != [name]]
    if single or len(groups) == len(outputs):
        those = f"there is a single one of {some_of(single)}" if single else "there are none"
        what = f"outputs whose names differ only in {visible(parameter)}"
        raise UsageError(message=f"a system takes two training runs or more, {what}\n  {those}")
    return list(map(output_at, groups)), list(map(tuple, groups.values()))


def find_baseline(baseline: Baseline, evaluations: Sequence[scores.Evaluation], outputs: Sequence[Output]) -> int:
    """Find a baseline among evaluations, as :func:`compare` does; raises UsageError.

    None stands for the best output of ``geval baseline`` or, without one, the first that was neither tuned nor mixed.
    ``outputs`` may be called otherwise than the evaluations'.
    """
    if isinstance(baseline, str | os.PathLike):
        return find_output(os.fspath(baseline), unique_names(outputs), outputs, "compared")
    if baseline is None:
        known = [n for n, output in enumerate(outputs) if output.is_baseline]
        if known:
            sign = evaluations[0].scores[0].metric.measure.sign
            return min(known, key=lambda n: sign * evaluations[n].scores[0].value)
        return next((n for n, output in enumerate(outputs) if not set(DERIVED) & set(output.parameters)), 0)
    try:
        if isinstance(baseline, bool):
            raise TypeError
        index = operator.index(baseline)
    except TypeError:
        message = f"the baseline is an output's name or its index, not {shown(baseline)}"
        raise UsageError(message=message) from None
    if not 0 <= index < len(outputs):
        raise UsageError(message=f"there is no output {index}: they are numbered from 0 to {len(outputs) - 1}")
    return index


def _notes(
    evaluations: Sequence[scores.Evaluation],
    comparison: Comparison,
    is_drawn: bool,
    of_file: Documents | None,
    by: DocumentsBy,
) -> Iterator[str]:
    """Yield notes on documents, intervals, lines, infinite losses and samples; documents are of the whole file."""
    yield from notes_on_documents(of_file and of_file.of_score(evaluations[0].scores[0]))
    yield from notes_on_columns(evaluations[0], of_file, by)
    yield from notes_on_intervals(of_file, (evaluation.scores[0] for evaluation in evaluations))
    lines, compared, runs = comparison.lines, comparison.compared, comparison.runs
    files = [evaluation.output for evaluation in evaluations]
    needed = round(math.comb(len(files), 2) / LEVEL)  # with fewer, the smallest p cannot pass Holm's correction
    unknown = max(evaluation.out_of_vocabulary for evaluation in evaluations)
    what = "loss" if comparison.of_losses else "score"
    infinite = f"the {what} of {lines - compared} of {lines} lines is infinite for some system"
    together = max(system.compared for system in comparison.systems if system.won is not None)
    names = unique_names(files)
    if runs is None:
        for parameter in RUNS:
            if len(by_runs(files, parameter)) < len({output.path for output in files}):
                only = f"some outputs differ only in {parameter}: if they are training runs of one system"
                yield f"{only}, use --runs {parameter}"
    elif fixed := [output.name for output in files if runs not in output.parameters and not output.is_baseline]:
        yield f"{some_of(fixed)} has no {visible(runs)} in its name: it counts as a system without training runs"
    for same in equal_systems(evaluation.scores[0].statistics for evaluation in evaluations):
        *others, last = (names[n] for n in same)
        all_of = f"{visible(', '.join(others))} and {visible(last)}"
        yield f"{some_of([*others, last], 3) if len(others) > 3 else all_of} have the same {what} on every line"
    if not together:
        yield f"{infinite}: no line is left for differences and tests"
    elif compared < lines:
        yield f"{infinite}: two systems are compared on the lines that are finite in both"
    if unknown and compared < lines:
        yield (
            f"{unknown} of {numbers.counted(lines, 'expected word')} {'is' if unknown == 1 else 'are'} not in the "
            "vocabulary; if an output does not list such a word, its loss is infinite"
        )
    if 0 < together < MIN_TESTED_LINES:
        yield f"a test on {numbers.counted(together, 'line')} is not reliable"
    elif few := {
        system.name: count
        for system in comparison.systems
        if 0 < (count := round(((system.won or 0.0) + (system.lost or 0.0)) * lines)) < MIN_TESTED_LINES
    }:
        most = f"{'at most ' * (len(few) > 1)}{numbers.counted(max(few.values()), 'line')}"
        differ = f"{some_of(list(few))} and the baseline differ on {most}"
        yield f"{differ}: the interval of the difference may be too narrow"
    if comparison.samples < needed and len(comparison.groups) == 1 and is_drawn:
        yield (
            f"with {comparison.samples} samples, no difference between two systems can be significant: use --samples "
            f"{needed} or more"
        )


def share_text(share: float | None) -> str:
    """Write a share in whole percents; only none is 0 % and only all is 100 %.

    >>> [share_text(share) for share in (None, 0.0, 1e-9, 0.0099, 0.01, 0.3502, 0.994, 0.996, 1.0)]
    ['', '0 %', '<1 %', '<1 %', '1 %', '35 %', '99 %', '99 %', '100 %']
    """
    if share is None:
        return ""
    if 0 < share < 0.01:
        return "<1 %"
    return f"{100 if share == 1 else min(99, round(100 * share))} %"
