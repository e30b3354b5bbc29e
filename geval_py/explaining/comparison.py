"""Compare outputs of one test set: whether one is better than another, or was lucky.

    evaluations ──> line statistics, a table a system ──> differences, tests, groups

All is computed on the first metric. The tests are described in :mod:`geval_py.explaining.paired`, the
groups in :mod:`geval_py.explaining.significance`.
"""

from __future__ import annotations

import math
import operator
import os
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from geval_py.errors import UsageError
from geval_py.explaining.significance import LEVEL, samples_needed
from geval_py.reading.options import DEFAULT_SAMPLES, DEFAULT_SEED, check_sampling
from geval_py.reading.outputs import Output, by_accepted_names, unique_names
from geval_py.scoring.blocks import Progress
from geval_py.scoring.scores import MetricScore, ScoredOutput, checked_evaluation
from geval_py.tables.formats import Tabular
from geval_py.tables.numbers import MOST_PLAIN, decimals_of, fixed, shortest
from geval_py.tables.table import Column, Table, plain_table
from geval_py.text import named, nearest, shown, visible

if TYPE_CHECKING:
    import pandas as pd

    from geval_py.explaining.documents import Documents
    from geval_py.explaining.significance import Interval
    from geval_py.explaining.systems import Ranking, System
    from geval_py.tables.terminals import Alignment


FEW_LINES = 20
Baseline: TypeAlias = "str | os.PathLike[str] | SupportsIndex | None"  # a name or path, an index, or the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Tabular):
    """Systems on the same lines, the best first; printed, or in Jupyter, as a table.

    ``test`` is the test set's name; ``metric``, ``unit`` and ``direction`` say what the scores are. Of ``lines``
    lines, ``compared`` are those on which every system's statistics, such as its loss, are finite. ``groups`` are the
    greatest sets of systems, by name, of which no two can be told apart (approximate randomisation of all pairs,
    Holm's correction, 5 %). Where whole documents were drawn, ``documents`` is the column that tells them, and
    ``compared_documents`` how many they are. ``notes`` are warnings, for people. ``of_losses`` tells that lines are
    compared by their losses, rather than by other statistics.
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
    systems: tuple[System, ...] = field(repr=False)
    groups: tuple[tuple[str, ...], ...] = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)
    of_losses: bool = field(repr=False)
    precision: int | None = field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str:
        return "".join(self.html())

    def to_frame(self) -> pd.DataFrame:
        """Make a table with a row a system, in the same order; an interval is two columns, low and high.

        The column ``groups`` holds the numbers, from 0, of the groups that the system is in.
        """
        import pandas as pd

        return pd.DataFrame([self.row(system) for system in self.systems])

    def row(self, system: System) -> dict[str, Any]:
        """Give a system's row of that table."""
        versus = system.difference_interval
        return {
            "system": system.name,
            "score": system.score,
            "low": system.interval.low,
            "high": system.interval.high,
            "infinite": system.infinite,
            "finite_score": system.finite_score,
            "difference": system.difference,
            "difference_low": versus.low if versus else None,
            "difference_high": versus.high if versus else None,
            "p_bootstrap": system.p_bootstrap,
            "p_randomisation": system.p_randomisation,
            "won": system.won,
            "lost": system.lost,
            "tied": system.tied,
            "groups": tuple(n for n, group in enumerate(self.groups) if system.name in group),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--format json`` shows; values may be inf."""
        names = [known.name for known in fields(self) if known.name not in ("of_losses", "precision")]
        systems = [system.to_dict() for system in self.systems]
        return {name: getattr(self, name) for name in names} | {"systems": systems}

    def table(self) -> Table:
        """Return the table for people: a row a system.

        Scores have ``precision`` digits after the point or, without it, as many as their intervals make worth
        showing. Columns about infinite losses, or about lines compared, are left out where there are none.
        """
        some_infinite, some_finite = self.compared < self.lines, self.compared > 0
        shown = [
            column
            for column in _COLUMNS
            if (some_infinite or not column.if_infinite) and (some_finite or not column.of_finite)
        ]
        columns = [Column(name=column.name.format(self.compared), alignment=column.alignment) for column in shown]
        digits = _Digits(self, self.precision)
        return Table(columns, [[column.cell(system, digits) for column in shown] for system in self.systems])

    def records(self) -> Table:
        """Return the table for programs: a row a system; ``groups`` has the numbers, from 0, of its groups."""
        rows = [self.row(system) | {"signature": str(system.signature)} for system in self.systems]
        for row in rows:
            row["groups"] = " ".join(map(str, row["groups"]))
        return plain_table(list(rows[0]), [list(row.values()) for row in rows])

    def legend(self) -> Iterator[str]:
        """Yield what the columns are."""
        yield visible(
            f"{self.metric} ({self.unit}, {self.direction} is better) of {self.lines} lines of "
            f"{self.test}; the baseline is {self.baseline}; {self.samples} samples, "
            f"seed {self.seed}."
        )
        if self.documents is not None:
            yield visible(
                f"Intervals and tests are by document: {self.compared_documents} of them, told by the column "
                f"{self.documents}."
            )
        if 0 < self.compared < self.lines:
            what = "loss" if self.of_losses else "score"
            *names, last = (c.name.format(self.compared) for c in _COLUMNS if c.of_finite)
            yield (
                f"{', '.join(names)} and {last} are of the {self.compared} lines with a finite {what} for all; "
                f"the rest is of all {self.lines}."
            )
        better = "a lower loss" if self.of_losses else "a better score"
        yield f"won: lines with {better} than the baseline's; the score weighs by how much, so fewer may be better."
        if self.compared:
            yield "p boot: paired bootstrap test; p rand: approximate randomisation; two-sided, against the baseline."
            yield (
                "group: systems that share a letter cannot be told apart (p rand of all pairs, Holm's correction, "
                "5 %)."
            )


def compare(
    evaluations: Iterable[ScoredOutput],
    *,
    baseline: Baseline = None,
    samples: int = DEFAULT_SAMPLES,
    seed: int = DEFAULT_SEED,
    documents: str | int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two evaluations or more with a baseline, and all with each other.

    ``baseline`` is an output's name or path, its index (by default the first), or a shorter name that is that of
    one output alone: ``"model=unigram"`` or ``"unigram"`` for ``out-model=unigram.tsv``. ``samples`` is the number
    of resamples of the lines for the intervals and the bootstrap test, and of exchanges for approximate
    randomisation; ``seed`` that of the random numbers; ``progress`` is called now and then.

    With ``documents``, a column of the input (its name or number, from 1), lines on which it is the same belong
    together: intervals are by documents, and the tests draw, or swap, whole ones. Lines on which some system's loss
    is infinite are counted, and left out of the differences and tests, but not of the shares won, lost and tied.

    Raises UsageError for fewer than two evaluations, what is none, different answers or metrics, a baseline, column,
    samples or seed that cannot be, a single document; LineCountError for different numbers of lines.
    """
    from geval_py.explaining.systems import Systems

    check_sampling(samples, seed)
    evaluations = tuple(map(checked_evaluation, evaluations))
    if len(evaluations) < 2:
        raise UsageError(message=f"a comparison takes two outputs or more; there is {len(evaluations) or 'none'}")
    check_comparable(evaluations)
    outputs = [evaluation.output for evaluation in evaluations]
    names = unique_names(outputs)
    index = _find_baseline(baseline, names, outputs)
    grouped = _documents(evaluations[0], documents)
    ranking = Systems(
        metric=evaluations[0].scores[0].metric,
        names=names,
        statistics=[evaluation.scores[0].statistics for evaluation in evaluations],
        baseline=index,
        samples=samples,
        seed=seed,
        documents=grouped and grouped.several(),
        progress=progress,
    ).rank()
    return _comparison(evaluations, names, names[index], ranking, samples=samples, seed=seed, documents=grouped)


def _documents(evaluation: ScoredOutput, column: str | int | None) -> Documents | None:
    from geval_py.explaining.documents import documents_of

    return None if column is None else documents_of(evaluation, column)


def _comparison(
    evaluations: Sequence[ScoredOutput],
    names: Sequence[str],
    baseline: str,
    ranking: Ranking,
    *,
    samples: int,
    seed: int,
    documents: Documents | None,
) -> Comparison:
    first = evaluations[0].scores[0]
    signatures = {name: of.signature for name, of in zip(names, evaluations, strict=True)}
    return Comparison(
        test=evaluations[0].split.name,
        metric=first.name,
        unit=first.unit,
        direction=first.direction,
        lines=evaluations[0].line_count,
        compared=ranking.lines,
        baseline=baseline,
        samples=samples,
        seed=seed,
        documents=None if ranking.documents is None or documents is None else documents.column,
        compared_documents=ranking.documents,
        systems=tuple(replace(system, signature=signatures[system.name]) for system in ranking.systems),
        groups=ranking.groups,
        notes=(*_document_notes(documents, ranking), *_notes(evaluations, ranking, samples)),
        of_losses=first.metric.measure.of_losses,
    )


def check_comparable(evaluations: Sequence[ScoredOutput]) -> None:
    """Raise UsageError for evaluations (at least one) with different answers or metrics, LineCountError for lines."""
    first = evaluations[0]
    for other in evaluations[1:]:
        both = f"{named(first.output.path)} and {named(other.output.path)} were scored with different"
        if os.path.realpath(first.split.expected) != os.path.realpath(other.split.expected):
            answers = f"{named(first.split.expected)} and {named(other.split.expected)}"
            raise UsageError(message=f"{both} answers: {answers}")
        if _what_is_scored(first.scores[0]) != _what_is_scored(other.scores[0]):
            metrics = f"{first.scores[0].scheme.text} and {other.scores[0].scheme.text}"
            raise UsageError(message=f"{both} metrics: {visible(metrics)}")
        first.check_same_lines(other)


def _what_is_scored(score: MetricScore) -> tuple[object, ...]:
    scheme = score.scheme
    return score.metric.name, scheme.text_flags, scheme.tokenizer, scheme.selecting_flags


def _find_baseline(baseline: Baseline, names: Sequence[str], outputs: Sequence[Output]) -> int:
    if baseline is None:
        return 0
    if isinstance(baseline, str | os.PathLike):
        return _find_name(os.fspath(baseline), names, outputs)
    index = _index(baseline)
    if not 0 <= index < len(names):
        raise UsageError(message=f"there is no output {index}: they are numbered from 0 to {len(names) - 1}")
    return index


def _index(baseline: SupportsIndex) -> int:
    """Give an index, be it numpy's; raises UsageError for what is none."""
    try:
        if not isinstance(baseline, bool):
            return operator.index(baseline)
    except TypeError:
        pass
    raise UsageError(message=f"the baseline is an output's name or its index, not {shown(baseline)}")


def _find_name(baseline: str, names: Sequence[str], outputs: Sequence[Output]) -> int:
    called = by_accepted_names(names, outputs)
    found = called.get(baseline) or called.get(os.path.normpath(baseline), [])
    if len(found) == 1:
        return found[0]
    if found:
        several = visible(", ".join(names[n] for n in found))
        raise UsageError(message=f"`{visible(baseline)}` names {len(found)} of the outputs compared\n  {several}")
    accepted = [name for name, indices in called.items() if len(indices) == 1]
    raise UsageError(message=_unknown_baseline(baseline, names, accepted))


def _unknown_baseline(baseline: str, names: Sequence[str], accepted: Sequence[str]) -> str:
    close = nearest(baseline, accepted)
    advice = f"did you mean {visible(close)}? " if close else ""
    return f"`{visible(baseline)}` is none of the outputs compared\n  {advice}there are {visible(', '.join(names))}"


def _document_notes(documents: Documents | None, ranking: Ranking) -> Iterator[str]:
    if documents is not None and documents.are_lines:
        yield documents.nothing_gained
    few = ranking.documents
    if few is not None and 2 ** (1 - few) > LEVEL:
        yield f"{few} document{'s' if few > 1 else ''}: of so few, p rand cannot be below {2 ** (1 - few):g}"


def _notes(evaluations: Sequence[ScoredOutput], ranking: Ranking, samples: int) -> Iterator[str]:
    lines, systems, compared = evaluations[0].line_count, len(evaluations), ranking.lines
    pairs = systems * (systems - 1) // 2
    unknown = max(evaluation.out_of_vocabulary for evaluation in evaluations)
    what = "loss" if evaluations[0].scores[0].metric.measure.of_losses else "score"
    infinite = f"the {what} of {lines - compared} of {lines} lines is infinite for some system"
    for *others, last in ranking.equal:
        yield f"{visible(', '.join(others))} and {visible(last)} have the same {what} on every line"
    if compared == 0:
        yield f"{infinite}: no line is left for differences and tests"
    elif compared < lines:
        yield f"{infinite}: the differences and tests are of the other {compared}"
    if unknown and compared < lines:
        yield (
            f"{unknown} of {lines} expected words are not in the vocabulary; where an output does not list them, "
            "its loss is infinite"
        )
    if 0 < compared < FEW_LINES:
        yield f"{compared} line{'s' if compared > 1 else ''}: a test on so few means little"
    if samples < samples_needed(pairs):
        yield (
            f"{samples} samples are too few for any of {pairs} pairs to be told apart: take {samples_needed(pairs)} "
            "or more"
        )


# A comparison of systems, as text, Markdown, LaTeX or HTML: a table, and below it what its columns are.


SIGNIFICANT_DIGITS = 4  # of a number whose interval does not tell how many are worth showing
_LETTERS = string.ascii_letters


@dataclass(frozen=True, slots=True)
class _Digits:
    """How the scores of a comparison are written: with so many digits after the point, or those worth showing."""

    comparison: Comparison
    precision: int | None

    def measured(self, value: float | None, interval: Interval | None, *, ends: bool = False) -> str:
        """Write a value and, where they are wanted, the ends of its interval: 227 [169, 303]."""
        if value is None:
            return ""
        text = self._written(value, interval)
        if not ends or interval is None:
            return text
        low, high = (self._written(end, interval) for end in (interval.low, interval.high))
        return f"{text} [{low}, {high}]"

    def difference(self, system: System) -> str:
        if system.name == self.comparison.baseline:
            return "baseline"
        text = self.measured(system.difference, system.difference_interval, ends=True)
        return f"+{text}" if system.difference is not None and system.difference > 0 else text

    def _written(self, value: float, interval: Interval | None) -> str:
        if self.precision is not None:
            return fixed(value, self.precision)
        if MOST_PLAIN <= abs(value) < math.inf:
            return shortest(float(f"{value:.{SIGNIFICANT_DIGITS - 1}e}"))
        return fixed(value, _decimals(value, interval))


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its header (``{}`` is the number of lines compared), its alignment, its cells.

    ``of_finite`` tells whether it is of the lines compared alone, ``if_infinite`` whether it is shown only where
    these are not all lines.
    """

    name: str
    alignment: Alignment
    cell: Callable[[System, _Digits], str]
    of_finite: bool = False
    if_infinite: bool = False


_COLUMNS = (
    _Column("system", "left", lambda system, _: system.name),
    _Column(
        "score [95 %]", "right", lambda system, digits: digits.measured(system.score, system.interval, ends=True)
    ),
    _Column("infinite", "right", lambda system, _: str(system.infinite), if_infinite=True),
    _Column(
        "score on {}",
        "right",
        lambda system, digits: digits.measured(system.finite_score, system.interval),
        of_finite=True,
        if_infinite=True,
    ),
    _Column("diff. [95 %]", "right", lambda system, digits: digits.difference(system), of_finite=True),
    _Column("p boot", "right", lambda system, _: p_value_text(system.p_bootstrap), of_finite=True),
    _Column("p rand", "right", lambda system, _: p_value_text(system.p_randomisation), of_finite=True),
    _Column("won", "right", lambda system, _: share_text(system.won)),
    _Column("lost", "right", lambda system, _: share_text(system.lost)),
    _Column("tied", "right", lambda system, _: share_text(system.tied)),
    _Column("group", "left", lambda system, digits: _groups(system, digits.comparison), of_finite=True),
)


def _decimals(value: float, interval: Interval | None) -> int:
    """Give the decimals that the interval's half width makes worth showing, else those of the leading digits."""
    if interval is not None and math.isfinite(interval.half_width) and interval.half_width > 0:
        return decimals_of(interval.half_width)
    if value == 0 or not math.isfinite(value):
        return 0
    return max(0, SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(value))))


def p_value_text(p_value: float | None) -> str:
    """Write a p-value with four decimals; a smaller one as such.

    >>> p_value_text(0.01234), p_value_text(1 / 10001), p_value_text(1.0)
    ('0.0123', '<0.0001', '1.0000')
    """
    if p_value is None:
        return ""
    return "<0.0001" if p_value < 0.0001 else fixed(p_value, 4)


def share_text(share: float | None) -> str:
    """Write a share in whole percents; 0 % and 100 % are none and all.

    >>> share_text(0.0), share_text(0.001), share_text(0.3502), share_text(0.999), share_text(1.0)
    ('0 %', '<1 %', '35 %', '99 %', '100 %')
    """
    if share is None:
        return ""
    if 0 < share < 0.01:
        return "<1 %"
    return f"{100 if share == 1 else min(99, round(100 * share))} %"


def _groups(system: System, comparison: Comparison) -> str:
    return "".join(_label(n) for n, group in enumerate(comparison.groups) if system.name in group)


def _label(group: int) -> str:
    return _LETTERS[group] if group < len(_LETTERS) else f"({group + 1})"
