"""Comparison: whether one output of a test set is better than another, by more than chance.

    evaluations ──> a sample of line statistics ──> differences, tests, groups ──> tables

Several test sets are compared one by one and, with all lines together, as one. Only the first metric is compared.
:mod:`geval_py.explaining.statistics` describes the tests, :mod:`geval_py.explaining.significance` the groups.
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
    TINY,
    Interval,
    group_letters,
    holm,
    undistinguished_groups,
)
from geval_py.explaining.statistics import (
    MAX_SIGNED,
    Estimator,
    LineSample,
    PairTest,
    change_for,
    effect_of,
    line_shares,
    optimism,
    pair_tests,
    sample_of,
    unit_of_change,
)
from geval_py.reading import config
from geval_py.reading.outputs import (
    MIXED,
    RUNS,
    Output,
    by_runs,
    find_output,
    output_at,
    own_names,
    short_names,
    unique_names,
)
from geval_py.scoring import blocks, scores
from geval_py.scoring.metrics.base import LineStatistics
from geval_py.scoring.score_tables import short_name
from geval_py.tables import formats, numbers
from geval_py.tables.table import Bold, Column, Table, plain_table
from geval_py.text import counted, named, shown, some_of, visible

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.reports.charts import Chart

Baseline: TypeAlias = "str | os.PathLike[str] | SupportsIndex | None"  # a name or path, an index, or the best known


_STARS = (0.05, 0.01, 0.001)  # a star for each that p is below
SIGNIFICANT_DIGITS = 4  # of a number without an interval, or with one of no width
SCORE, DIFFERENCE, NOT_WORSE, RUNS_SCORE = "score [95 %]", "diff. [95 %]", "not worse", "runs' mean ± sd"
FEW_DEGREES = 8  # of freedom: with fewer, a test has little power
MAX_SKEWNESS = 0.5  # of a mean difference: beyond, intervals and p are not reliable
UNSAID = ("share", "correlation", "answers' unit", "its square")  # units that are not written behind a number
NOT_PRINTED = ("compared", "score there", "p infinite", "won", "lost", "tied")  # in a paper


@dataclass(frozen=True, kw_only=True)
class System:
    """One output of a comparison.

    ``score`` and its 95 % ``interval`` are over all lines, of which ``infinite`` have an infinite loss (or another
    infinite statistic); ``finite_score`` is over the lines ``compared``: those that are finite in this system and in
    the baseline. A system has ``runs``, if they are told apart: ``run_mean`` and ``run_deviation`` are the mean and
    the standard deviation of their scores.

    Against the baseline, on all lines: the shares of lines ``won`` (a lower loss or, for a metric of other
    statistics, a better score of the line; any finite line beats an infinite one), ``lost`` and ``tied`` (also two
    infinite lines), and ``p_infinite``, the p-value of the exact sign test of the numbers of infinite losses. On the
    lines compared: the ``difference`` is the finite score minus the baseline's, in the metric's unit. The ``effect``
    is what is shown, with its 95 % ``effect_interval``: the difference or, for perplexities and likelihoods, how much
    the score is above the baseline's in per cent. ``p_value`` is two-sided and not corrected for the number of
    systems. Its test has a ``standard_error`` of the difference (of perplexities and likelihoods: of the difference
    of the mean losses, in nats), ``degrees_of_freedom`` and, by line, the ``skewness`` of the mean difference.

    All are None for the baseline. Figures of the lines compared are None if there is no such line, and so is a
    difference of infinite scores. The difference and its p-value are None, too, if it favours the system with more
    infinite lines. ``run_share`` is the share of the difference's variance that is due to training runs. A true
    effect of ``least_detectable`` would be significant at 5 % in 80 % of cases; ``lines_needed`` is the number of
    lines for another such effect, inf if more lines are not enough. ``p_no_worse`` is the one-sided p-value of the
    test that the system is not worse by some margin.

    The ``evaluation`` has the signature; it is None if the system has several runs or test sets.
    """

    name: str
    score: float
    interval: Interval
    infinite: int
    runs: int | None = None
    run_mean: float | None = None
    run_deviation: float | None = None
    compared: int = 0
    finite_score: float | None = None
    difference: float | None = None
    effect: float | None = None
    effect_interval: Interval | None = None
    p_value: float | None = None
    p_infinite: float | None = None
    standard_error: float | None = None
    degrees_of_freedom: float | None = None
    skewness: float | None = None
    won: float | None = None
    lost: float | None = None
    tied: float | None = None
    run_share: float | None = None
    least_detectable: float | None = None
    lines_needed: float | None = None
    p_no_worse: float | None = None
    evaluation: scores.Evaluation | None = field(default=None, compare=False, repr=False)

    @property
    def signature(self) -> scores.Signature | None:
        """What the score depends on: two equal signatures mean the same score; files are hashed for it."""
        return None if self.evaluation is None else self.evaluation.signature

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return formats.json_fields(self, "evaluation") | {"signature": self.signature}


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(formats.Tabular):
    """A comparison of outputs on the same lines, the best output first. Printed as a table.

    ``test`` is the name of the test set; scores are of a ``metric``, in its ``unit``; ``direction`` says which are
    better. Of ``lines`` lines, ``compared`` have finite statistics, such as losses, for every system. Differences are
    tested by a ``method``, and shown as effects in the ``effect_unit``. ``groups`` are the greatest sets of systems,
    by name, of which no two differ significantly (Holm's correction for all pairs, 5 %). If intervals and tests are
    by documents, ``documents`` is their column and ``compared_documents`` their number.

    ``optimism`` is by how much the best of ``tries`` equally good systems would seem better than their mean, in the
    metric's unit (None for two systems and for other metrics). ``runs`` is the parameter that tells a system's
    training runs apart, if there is one: scores and shares are then of losses averaged over the runs; they are
    ``paired_runs`` if equal seeds are compared. ``no_worse_than`` is the margin of each system's ``p_no_worse``, and
    ``detect`` the effect of its ``lines_needed``.

    A comparison on the lines of several test sets has one on each of these ``sets``.

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
    method: str
    effect_unit: str
    optimism: float | None
    tries: int
    runs: str | None
    paired_runs: bool
    no_worse_than: float | None
    detect: float | None
    systems: tuple[System, ...]
    groups: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    of_losses: bool
    sets: tuple[Comparison, ...] = ()
    precision: int | None = field(default=None, compare=False)
    names: Mapping[str, str] = field(default_factory=dict, compare=False)
    marks: bool = field(default=False, compare=False)

    def markdown(self) -> Iterator[str]:
        return formats.Tabular.markdown(replace(self, marks=True))

    def latex(self, caption: str | None = None, label: str | None = None) -> Iterator[str]:
        return formats.Tabular.latex(replace(self, marks=True), caption, label)

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
        """Return the names of the systems in tables and charts: those that a user gave, or short ones."""
        own = [system.name for system in self.systems]
        return {**dict(zip(own, short_names(list(map(output_at, own))), strict=True)), **self.names}

    def with_names(self, names: Mapping[str, str], *, precision: int | None = None) -> Comparison:
        """Return the same comparison, which tables for people show with other names and digits; raises UsageError."""
        own = [system.name for system in self.systems]
        new = own_names(names, own, list(map(output_at, own)), "compared")
        return replace(self, names={**self.names, **new}, precision=precision)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per system, in the same order; an interval is two columns, low and high.

        The column ``groups`` holds the numbers, from 0, of the system's groups, and ``output`` the name that
        :meth:`geval_py.Evaluations.to_frame` has, by which the two can be merged.
        """
        import pandas as pd

        return pd.DataFrame([comparison.row(system) | of_set for comparison, system, of_set in self.rows()])

    def rows(self) -> Iterator[tuple[Comparison, System, dict[str, str]]]:
        """Yield each system with its comparison; of several sets, once for each, with its name, and for all lines."""
        comparisons = [
            replace(comparison, precision=self.precision, names=self.short_names(), marks=self.marks)
            for comparison in (*self.sets, self)
        ]
        for name in (system.name for system in self.systems):
            for comparison in comparisons:
                test = "all" if comparison.sets else comparison.test
                of_set = {"set": test} if self.sets else {}
                yield from ((comparison, system, of_set) for system in comparison.systems if system.name == name)

    def row(self, system: System) -> dict[str, Any]:
        """Return a system's row of that table."""
        row: dict[str, Any] = {"system": system.name}
        for name, value in vars(system).items():
            prefix = name.removesuffix("interval")
            if prefix != name:
                row |= {f"{prefix}low": value and value.low, f"{prefix}high": value and value.high}
            elif name not in ("name", "evaluation"):
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
            raise UsageError("there is no difference to draw: no line is finite in all outputs")
        return chart

    @property
    def has_line_scores(self) -> bool:
        """Whether lines have scores by themselves, by which they are won or lost: not with a correlation."""
        return self.of_losses or any(system.won or system.lost for system in self.systems)

    @property
    def is_tested(self) -> bool:
        """Whether the baseline and another system have finite lines in common."""
        return any(system.compared for system in self.systems if system.name != self.baseline)

    def table(self) -> Table:
        """Return the table for people: a row per system.

        Columns about infinite losses are left out if all lines are finite, columns about lines compared if none are.
        """
        infinite, tested = self.compared < self.lines, self.is_tested
        names = ["system", "set"] if self.sets else ["system"]
        names += ["runs", RUNS_SCORE] if self.runs else []
        names += [SCORE, "infinite", "p infinite"] if infinite else [SCORE]
        names += ["compared", "score there"] if tested and infinite else []
        names += [DIFFERENCE, "p"] if tested else []
        names += [NOT_WORSE] if tested and self.no_worse_than is not None else []
        names += ["won", "lost", "tied"] if self.has_line_scores else []
        names += ["group"] if tested else []
        columns = [
            Column(name, alignment="left" if name in ("system", "set", "group") else "right", write=lambda cell: cell)
            for name in names
        ]
        rows = [
            [(comparison.cells(system) | of_set)[column.name] for column in columns]
            for comparison, system, of_set in self.rows()
        ]
        return Table(columns, rows, not_printed=NOT_PRINTED)

    def cells(self, system: System) -> dict[str, str]:
        """Write the cells of a system, by their columns."""

        def number(value: float | None, interval: Interval | None) -> str:
            if value is None:
                return ""
            if self.precision is not None:
                return numbers.fixed(value, self.precision)
            if interval is None or abs(value) >= numbers.MAX_PLAIN or not 0 < interval.half_width < math.inf:
                return numbers.significant(value, SIGNIFICANT_DIGITS)
            return numbers.fixed(value, numbers.decimals_of(interval.half_width, 2))

        def measured(value: float | None, interval: Interval | None, mark: str = "") -> str:
            ends = ""
            if value is not None and interval is not None and not math.isnan(interval.low):
                ends = f" [{number(interval.low, interval)}, {number(interval.high, interval)}]"
            return f"{number(value, interval)}{mark}{ends}"

        p, effect = system.p_value, system.effect
        mark = " %" if self.effect_unit == "%" and effect is not None else ""
        mark += "*" * sum(p < least for least in _STARS) if self.marks and p is not None else ""
        versus = measured(effect, system.effect_interval, mark)
        score = measured(system.score, system.interval)
        is_best = self.marks and system.score == self.systems[0].score and math.isfinite(system.score)
        no_worse = numbers.p_value(system.p_no_worse)
        deviation = "" if system.run_deviation is None else f" ± {numbers.significant(system.run_deviation, 2)}"
        return {
            "system": visible(self.names[system.name]),
            "runs": str(system.runs),
            RUNS_SCORE: f"{number(system.run_mean, system.interval)}{deviation}",
            SCORE: Bold(score) if is_best else score,
            "infinite": str(system.infinite),
            "p infinite": numbers.p_value(system.p_infinite),
            "compared": str(system.compared),
            "score there": number(system.finite_score, system.interval),
            DIFFERENCE: "baseline" if system.name == self.baseline else f"{'+' * ((effect or 0.0) > 0)}{versus}",
            "p": numbers.p_value(p),
            NOT_WORSE: no_worse and f"{'yes' if (system.p_no_worse or 0.0) < LEVEL else 'no'} ({no_worse})",
            **{name: share_text(getattr(system, name)) for name in ("won", "lost", "tied")},
            "group": group_letters(self.row(system)["groups"]),
        }

    def records(self) -> Table:
        rows = []
        for comparison, system, of_set in self.rows():
            row = comparison.row(system)
            groups = " ".join(map(str, row["groups"]))
            rows.append(of_set | row | {"groups": groups, "signature": system.signature or ""})
        return plain_table(list(rows[0]), [list(row.values()) for row in rows])

    def _range(self, name: str, write: Callable[[float], str], between: str = " to ") -> str:
        """Write the least and the greatest of a figure of the systems; "" if none has it."""
        values = [value for system in self.systems if (value := getattr(system, name)) is not None]
        return between.join(dict.fromkeys(map(write, (min(values), max(values))))) if values else ""

    def signatures(self) -> Iterator[str]:
        return scores.signature_lines(
            (" of ".join([system.name, *of_set.values()]), system.signature) for _, system, of_set in self.rows()
        )

    def legend(self) -> Iterator[str]:
        infinite, unit = self.compared < self.lines, unit_text(self.effect_unit)
        yield visible(
            f"{self.metric} ({self.unit}, {self.direction} is better) of {counted(self.lines, 'line')} of "
            f"{self.test}; the baseline is {self.short_names()[self.baseline]}."
        )
        if self.sets:
            yield (
                "all: the lines of all sets together; a set counts by its number of lines. What is said below of "
                "documents, degrees of freedom, the best of n and the minimum detectable difference is of these rows."
            )
        if self.documents is not None:
            yield visible(
                f"Intervals and tests are computed by document: {self.compared_documents} documents, named by the "
                f"column {self.documents}."
            )
        if self.runs is not None:
            yield visible(
                f"Outputs that differ only in {self.runs} are training runs of one system. The statistics of each "
                "line, such as its loss, are averaged over the runs (the predictions are not). Intervals and tests "
                "generalise to new training runs and new lines."
            )
            if self.paired_runs:
                yield "Runs are paired: equal seeds are compared, so what a seed does to all systems cancels."
            yield f"{RUNS_SCORE}: the mean of the runs' scores and their standard deviation."
            if shares := self._range("run_share", share_text):
                yield (
                    f"{shares} of the variance of the estimated difference is due to training runs; more lines do "
                    "not reduce it."
                )
        if infinite:
            yield "p infinite: exact sign test of the numbers of infinite losses or scores. Groups allow for it, too."
            if self.is_tested:
                yield (
                    "Differences, their tests and score there are of the lines compared, which are finite in both "
                    "outputs; none is shown if it favours the output with more infinite losses or scores. All other "
                    f"columns are of all {self.lines} lines."
                )
        if self.of_losses:
            yield "won: lines with a lower loss than the baseline's; the score also depends on how much lower."
        elif self.has_line_scores:
            yield f"won: lines with a better {self.metric} of their own; the score is of all lines together."
        if self.is_tested:
            if self.effect_unit == "%":
                yield f"{DIFFERENCE}: how much the score is above (+) or below (-) the baseline's, in per cent of it."
            degrees = self._range("degrees_of_freedom", lambda value: numbers.significant(value, 2))
            of_test = f", {degrees} degrees of freedom" if degrees and "exact" not in self.method else ""
            yield f"p: of no difference from the baseline, two-sided; {self.method}{of_test}."
            yield (
                "group: systems that share a letter do not differ significantly (all pairs, Holm's correction, 5 % "
                "level)."
            )
        if self.optimism is not None:
            yield (
                f"best of {self.tries}: if all {self.tries} were equally good and as correlated as these, the best "
                f"would on average score {numbers.significant(self.optimism, 2)}{unit_text(self.unit)} better than "
                "their mean (selection by chance)."
            )
        if self.no_worse_than is not None:
            yield (
                f"{NOT_WORSE}: non-inferiority test with a margin of {self.no_worse_than:g}{unit} (one-sided p, 5 % "
                "level, not corrected for the number of systems)."
            )
        if detectable := self._range("least_detectable", self.detectable_text, ", up to "):
            yield f"Minimum detectable difference: {detectable} (80 % power, 5 % level)."
        if self.detect is not None and (needed := self._range("lines_needed", lambda value: f"{value:,.0f}")):
            needed += " such lines (inf: only more training runs help)" if "inf" in needed else " such lines"
            yield f"To detect a difference of {self.detect:g}{unit} in 80 % of cases takes about {needed}."
        if self.marks:
            yield "bold: the best score."
            if self.is_tested:
                yield (
                    "* p < 0.05, ** p < 0.01, *** p < 0.001, against the baseline, not corrected for the number of "
                    "systems."
                )

    def detectable_text(self, difference: float) -> str:
        """Write a least detectable difference; a ratio in both directions, as far from 1 on the log scale."""
        text = f"{numbers.significant(difference, 2)}{unit_text(self.effect_unit)}"
        if self.effect_unit != "%":
            return text
        sign = 1 if self.direction == "lower" else -1
        better = 1 / max(TINY, 1 / difference + sign / 100)
        return f"{text} worse or {numbers.significant(better, 2)} % better"


def unit_text(unit: str) -> str:
    """Write a unit behind a number; some are not written."""
    return "" if unit in UNSAID else f" {unit}"


def compare_systems(
    estimator: Estimator,
    own_scores: Sequence[float],
    names: Sequence[str],
    *,
    baseline: int,
    no_worse_than: float | None = None,
    detect: float | None = None,
) -> tuple[list[System], list[tuple[str, ...]]]:
    """Test systems in pairs, and group them; ``baseline`` is the index of one, and ``own_scores`` are of all lines.

    Returns the systems, the best first, and the groups that do not differ significantly.
    """
    sample = estimator.sample
    count, sign = sample.systems, sample.metric.measure.sign
    infinite, shares = sample.infinite, line_shares(sample, baseline)
    pairs = [(b, a) if a == baseline else (a, b) for a, b in combinations(range(count), 2)]
    with_itself = (baseline, baseline)  # on its finite lines
    tests = pair_tests(estimator, [*pairs, with_itself])

    def system_of(n: int) -> System:
        test = tests[n, baseline]
        if test.lines == sample.lines:
            test = test._replace(scores=(own_scores[n], own_scores[baseline]))
        system = System(
            name=names[n],
            score=own_scores[n],
            interval=estimator.interval(n),
            infinite=int(infinite[:, n].sum()),
            compared=test.lines,
            finite_score=test.scores and test.scores[0],
        )
        if sample.runs:
            runs = sample.runs[n]
            run_scores = runs.scores(runs.totals())[0]
            deviation = float(run_scores.std(ddof=1)) if runs.systems > 1 and np.isfinite(run_scores).all() else None
            system = replace(system, runs=runs.systems, run_mean=float(run_scores.mean()), run_deviation=deviation)
        if n == baseline:
            return system
        won, lost, tied = shares[n]
        figures = _effect_figures(sample, system, test, no_worse_than, detect)
        return replace(system, p_infinite=test.p_infinite, won=won, lost=lost, tied=tied, **figures)

    def badness(n: int) -> tuple[bool, float, int, float]:
        """Sort by score, infinite lines, score on the lines compared; undefined scores are last, in their order."""
        system = systems[n]
        finite_score = (system.finite_score or 0.0) if system.infinite else 0.0
        return math.isnan(system.score), sign * system.score, system.infinite, sign * finite_score

    systems = list(map(system_of, range(count)))
    order = sorted(range(count), key=badness)
    place = {n: position for position, n in enumerate(order)}
    corrected = zip(pairs, holm([tests[pair].p_value for pair in pairs]), strict=True)
    distinct = frozenset((min(place[a], place[b]), max(place[a], place[b])) for (a, b), p in corrected if p < LEVEL)
    groups = undistinguished_groups(count, distinct)
    return [systems[n] for n in order], [tuple(names[order[n]] for n in group) for group in groups]


def _effect_figures(
    sample: LineSample, system: System, test: PairTest, no_worse_than: float | None, detect: float | None
) -> dict[str, Any]:
    """Return a system's figures of the difference from the baseline; none where there is none to show."""
    change = test.change
    if change is None or test.scores is None:
        return {}
    difference, spread = test.scores[0] - test.scores[1], change.spread
    low, high = sorted(effect_of(sample, end) for end in change.ends)
    figures: dict[str, Any] = {
        "difference": None if math.isnan(difference) else difference,
        "effect": effect_of(sample, change.change) if sample.is_ratio else difference,
        "effect_interval": replace(system.interval, low=low, high=high),
        "p_value": change.p_value,
    }
    if no_worse_than is not None:
        figures["p_no_worse"] = change.p_of_more(change_for(sample, no_worse_than))
    if 0.0 < spread.deviation < math.inf:  # there are lines that differ
        unit = 1.0 if sample.is_ratio else abs(unit_of_change(sample))
        figures |= {
            "standard_error": unit * spread.deviation,
            "degrees_of_freedom": spread.degrees,
            "skewness": spread.skewness if sample.is_by_line else None,
            "run_share": spread.run_share if sample.runs else None,
            "least_detectable": abs(effect_of(sample, spread.least_detectable)),
            "lines_needed": None if detect is None else spread.lines_needed(test.lines, change_for(sample, detect)),
        }
    return figures


def _mean(runs: Sequence[LineStatistics]) -> LineStatistics:
    """Return the means of the statistics of a system's runs."""
    columns = np.mean([run.columns for run in runs], axis=0)
    return LineStatistics(tuple(array("d", column) for column in columns), runs[0].details)


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
        raise UsageError(visible(str(error))) from error


def compare(
    *outputs: scores.Evaluation | Iterable[scores.Evaluation],
    baseline: Baseline = None,
    samples: int = config.DEFAULT_SAMPLES,
    seed: int = config.DEFAULT_SEED,
    documents: DocumentsBy = None,
    runs: str | None = None,
    paired_runs: bool = False,
    no_worse_than: float | None = None,
    detect: float | None = None,
    tries: int | None = None,
    progress: blocks.Progress | None = None,
) -> Comparison:
    """Compare evaluations, given one by one or as a list, with a baseline and with each other.

    ``baseline`` is an output's name or path, its index, or a shorter name that fits only one output: ``"unigram"`` or
    ``"model=unigram"`` for ``out-model=unigram.tsv``. By default, it is the best output of ``geval baseline`` or,
    without one, the first that was neither tuned nor mixed. For corpus-level metrics such as correlations,
    ``samples`` is the number of bootstrap resamples, and ``seed`` is for the random numbers; ``progress`` is called
    now and then.

    ``documents`` is a column of the input (its name or number, from 1), columns that nest (``"FileId,Newspaper"``
    means the coarsest) or one value per line: lines with the same value belong together, and intervals and tests are
    by documents. By default the column is the one that config.txt declares, or one with a usual name such as FileId;
    False takes each line by itself. Two systems are compared on the lines that are finite in both; the shares won,
    lost and tied are of all lines.

    ``runs`` is a parameter of the outputs' names, such as ``"seed"``: outputs that differ only in it are training
    runs of one system. With ``paired_runs``, all systems have the same seeds, and equal ones are compared.
    ``no_worse_than`` and ``detect`` are differences above 0, in per cent of the baseline's score for perplexities and
    likelihoods and otherwise in the metric's unit: whether a system is not worse than the baseline by more, and how
    many lines detect such a difference. The best of many outputs seems better than it is; ``tries`` is their number,
    if not all are here.

    Raises UsageError for fewer than two evaluations or systems, other values, different answers or metrics, an
    unknown baseline, column or parameter, samples, a seed or a difference out of range, a single document or run,
    different seeds of paired runs, and tries that are fewer than systems, with ``runs`` or without a mean loss;
    LineCountError for different numbers of lines.
    """
    evaluations = scores.checked_evaluations(outputs, "compare")
    config.check_sampling(samples, seed)
    if not all(0.0 < one < math.inf for one in (no_worse_than, detect) if one is not None):
        raise UsageError("a difference is a number above 0")
    files = [evaluation.output for evaluation in evaluations]
    members: list[tuple[int, ...]] = [(n,) for n in range(len(files))]
    if runs is not None:
        files, members = _systems(files, runs, is_paired=paired_runs)
    elif paired_runs:
        raise UsageError("paired runs need the parameter that tells them apart, such as seed: runs")
    if len(members) < 2:
        what = "outputs" if runs is None else "systems"
        raise UsageError(f"a comparison takes two {what} or more; there is {len(members) or 'none'}")
    if tries is not None and tries < len(members):
        raise UsageError(f"{tries} tries are fewer than the {len(members)} systems that are compared")
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
            raise UsageError(
                f"training runs do not work with {metric.name}, which is not computed from contributions of "
                "single lines\n  use a mean loss, Accuracy, F1 or BLEU"
            )
        samples_of_runs = tuple(sample_of(metric, one, of_line) for one in of_runs)
        sample = replace(sample, runs=samples_of_runs, paired_runs=paired_runs)
    if tries and (runs or not sample.is_of_mean_loss):
        raise UsageError("the best of many tries is estimated only for a mean loss, without training runs")
    systems, groups = compare_systems(
        Estimator(sample, samples, seed, progress),
        [metric.value(system) for system in statistics],
        names,
        baseline=index,
        no_worse_than=no_worse_than,
        detect=detect,
    )
    signed = {name: evaluations[one[0]] for name, one in zip(names, members, strict=True) if len(one) == 1}
    comparison = Comparison(
        **scores.head_of(evaluations[0]),
        lines=evaluations[0].line_count,
        compared=int((~sample.infinite).all(axis=1).sum()),
        baseline=names[index],
        samples=samples,
        seed=seed,
        documents=grouped and grouped.column,
        compared_documents=grouped and grouped.count,
        method=test_method(sample, samples, seed),
        effect_unit="%" if sample.is_ratio else first.unit,
        optimism=optimism(sample, tries) if runs is None else None,
        tries=tries or len(members),
        runs=runs,
        paired_runs=paired_runs,
        no_worse_than=no_worse_than,
        detect=detect,
        systems=tuple(replace(system, evaluation=signed.get(system.name)) for system in systems),
        groups=tuple(groups),
        notes=(),
        of_losses=metric.measure.of_losses,
    )
    return replace(comparison, notes=tuple(_notes(evaluations, comparison, of_file, documents)))


def compare_sets(
    sets: Sequence[Sequence[scores.Evaluation]],
    *,
    baseline: Baseline = None,
    documents: DocumentsBy = None,
    **options: Any,
) -> Comparison:
    """Compare the outputs of several test sets, which are found by their names, set by set and on all lines together.

    The other arguments are those of :func:`geval_py.compare`, and so are the errors. Outputs that are not in all sets
    are left out, with a note.
    """
    by_name = [
        dict(zip(unique_names([one.output for one in evaluations]), evaluations, strict=True)) for evaluations in sets
    ]
    names = [name for name in by_name[0] if all(name in others for others in by_name)]
    if len(names) < 2:
        both = f"only {visible(names[0])} is" if names else "no output is"
        raise UsageError(f"{both} in all test sets: give outputs the same names")
    compared, labels = list[Comparison](), list[tuple[int, int]]()
    for n, evaluations in enumerate(by_name):
        own = [evaluations[name] for name in names]
        compared.append(compare(own, baseline=baseline, documents=documents, **options))
        baseline = compared[0].baseline
        of_file = choose_documents(own[0], documents)
        of_scored = (
            range(own[0].line_count) if of_file is None else of_file.of_score(own[0].scores[0]).of_line.tolist()
        )
        labels += [(n, label) for label in of_scored]
    joined = [_joined([evaluations[name] for evaluations in by_name]) for name in names]
    column = next((one.documents for one in compared if one.documents is not None), None)
    together = compare(joined, baseline=baseline, documents=False if column is None else labels, **options)
    systems = tuple(replace(system, evaluation=None) for system in together.systems)
    missing = [name for evaluations in by_name for name in evaluations if name not in names]
    notes = [f"not in all test sets, and left out: {some_of(dict.fromkeys(missing))}"] if missing else []
    notes += [f"{comparison.test}: {note}" for comparison in compared for note in comparison.notes]
    unique_notes = tuple(dict.fromkeys([*notes, *together.notes]))
    return replace(together, documents=column, systems=systems, sets=tuple(compared), notes=unique_notes)


def _joined(evaluations: Sequence[scores.Evaluation]) -> scores.Evaluation:
    """Return the evaluation of an output on the scored lines of several test sets."""
    first, statistics = evaluations[0], LineStatistics()
    for evaluation in evaluations:
        statistics.extend(evaluation.scores[0].statistics)
    score = first.scores[0]
    whole = scores.Score(score.name, score.metric.value(statistics), score.metric, score.scheme, statistics)
    split = first.split._replace(name=", ".join(evaluation.split.name for evaluation in evaluations))
    return scores.Evaluation(split, first.output, [whole], statistics.lines)


def test_method(sample: LineSample, samples: int, seed: int) -> str:
    """Name the test of a sample's pairs."""
    units = "lines" if sample.documents is None else "documents"
    if sample.is_drawn:
        return f"paired t test with a bootstrap standard error ({samples:,} resamples of the {units}, seed {seed})"
    figures = "" if sample.is_of_mean_loss else " of the lines' jackknife pseudo-values"
    if sample.runs:
        crossed = f"with crossed variances of training runs and {units} (Obuchowski and Rockette)"
        return f"{'paired ' * sample.paired_runs}t test{figures} {crossed}"
    if sample.documents is not None:
        return f"cluster-robust paired t test (CR2){figures}"
    if sample.is_of_shares:
        return "exact McNemar test (binomial test of the lines that only one of the two gets right)"
    if sample.is_of_mean_loss and sample.lines <= MAX_SIGNED:
        return "exact sign-flip test of the lines"
    return f"paired t test{figures or ' by line'}, corrected for skewness (Hall)"


def _systems(
    outputs: Sequence[Output], parameter: str, *, is_paired: bool
) -> tuple[list[Output], list[tuple[int, ...]]]:
    """Return the systems that have runs, as outputs without the parameter of these, and the indices of their runs.

    Paired runs are in the order of their seeds, which all systems must have in common.
    """
    groups = by_runs(outputs, parameter)
    names = {os.path.basename(path): [outputs[n].name for n in runs] for path, runs in groups.items()}
    single = [name for name, runs in names.items() if len(runs) == 1 and runs != [name]]
    if single or len(groups) == len(outputs):
        those = f"there is a single one of {some_of(single)}" if single else "there are none"
        what = f"outputs whose names differ only in {visible(parameter)}"
        raise UsageError(f"a system takes two training runs or more, {what}\n  {those}")
    systems, members = list(map(output_at, groups)), list(map(tuple, groups.values()))
    if is_paired:
        seeds = [{outputs[n].parameters.get(parameter, ""): n for n in runs} for runs in groups.values()]
        for path, own in zip(groups, seeds, strict=True):
            if own.keys() != seeds[0].keys():
                both = f"{visible(os.path.basename(path))} has {some_of(own)}, not {some_of(seeds[0])}"
                raise UsageError(f"paired runs are of the same {visible(parameter)} in all systems\n  {both}")
        members = [tuple(own[seed] for seed in seeds[0]) for own in seeds]
    return systems, members


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
        return next((n for n, output in enumerate(outputs) if MIXED not in output.parameters), 0)
    try:
        if isinstance(baseline, bool):
            raise TypeError
        index = operator.index(baseline)
    except TypeError:
        message = f"the baseline is an output's name or its index, not {shown(baseline)}"
        raise UsageError(message) from None
    if not 0 <= index < len(outputs):
        raise UsageError(f"there is no output {index}: they are numbered from 0 to {len(outputs) - 1}")
    return index


def _notes(
    evaluations: Sequence[scores.Evaluation],
    comparison: Comparison,
    of_file: Documents | None,
    by: DocumentsBy,
) -> Iterator[str]:
    """Yield notes on documents, intervals, lines and tests; documents are of the whole file."""
    documents = of_file and of_file.of_score(evaluations[0].scores[0])
    yield from notes_on_documents(documents)
    yield from notes_on_columns(evaluations[0], of_file, by)
    yield from notes_on_intervals(of_file, (evaluation.scores[0] for evaluation in evaluations))
    lines, runs = comparison.lines, comparison.runs
    files = [evaluation.output for evaluation in evaluations]
    what = "loss" if comparison.of_losses else "score"
    together = max(system.compared for system in comparison.systems if system.won is not None)
    names = unique_names(files)
    if runs is None:
        for parameter in RUNS:
            if len(by_runs(files, parameter)) < len({output.path for output in files}):
                only = f"some outputs differ only in {parameter}: if they are training runs of one system"
                yield f"{only}, use --runs {parameter}"
    elif fixed := [output.name for output in files if runs not in output.parameters and not output.is_baseline]:
        yield f"without {visible(runs)} in the name, and so not training runs: {some_of(map(named, fixed))}"
    for same in equal_systems(evaluation.scores[0].statistics for evaluation in evaluations):
        *others, last = (names[n] for n in same)
        all_of = f"{visible(', '.join(others))} and {visible(last)}"
        yield f"{some_of([*others, last], 3) if len(others) > 3 else all_of} have the same {what} on every line"
    degrees = min(one.degrees_of_freedom or math.inf for one in comparison.systems)
    if comparison.compared_documents is not None and runs is None and degrees < FEW_DEGREES:
        count = comparison.compared_documents
        reason = "few" if degrees > (count - 1) / 2 else "of very unequal sizes"
        power = f"the test by document has little power ({degrees:.1f} degrees of freedom)"
        yield f"{power}, since the {count} documents are {reason}"
    few = {
        system.name: count
        for system in comparison.systems
        if 0 < (count := round(((system.won or 0.0) + (system.lost or 0.0)) * lines)) < MIN_TESTED_LINES
    }
    if not together:
        yield f"no line has a finite {what} in two systems: there is no difference to test"
    elif together < MIN_TESTED_LINES:
        yield f"a test on {counted(together, 'line')} is not reliable"
    elif few:
        most = f"{'at most ' * (len(few) > 1)}{counted(max(few.values()), 'line')}"
        differ = f"{some_of(list(few))} and the baseline differ on {most}"
        yield f"{differ}: the interval of the difference may be too narrow"
    skewed = [
        system.name
        for system in comparison.systems
        if system.name not in few and abs(system.skewness or 0.0) > MAX_SKEWNESS
    ]
    if skewed and lines > MAX_SIGNED:
        differ = f"{some_of(skewed)} {'differs' if len(skewed) == 1 else 'differ'} from the baseline"
        yield f"a few lines decide how {differ}: the interval of the difference and p are less reliable"


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
