"""A comparison of systems, as text, Markdown, LaTeX or HTML: a table, and below it what its columns are."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geval_py.showing.escapes import html_text, markdown_text
from geval_py.showing.numbers import MOST_PLAIN, decimals_of, fixed, shortest
from geval_py.showing.tables import Column, Table
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.explaining.comparison import Comparison
    from geval_py.explaining.statistics.interval import Interval
    from geval_py.explaining.statistics.systems import System
    from geval_py.showing.terminals import Alignment

SIGNIFICANT_DIGITS = 4  # of a number whose interval does not tell how many are worth showing
_LETTERS = string.ascii_letters


def comparison_text(
    comparison: Comparison, precision: int | None = None, *, width: int | None = None, notes: bool = False
) -> str:
    """Write an aligned table, and below it a legend; with ``notes``, these too.

    A table for a terminal, which has a ``width``, fits into it. For ``precision`` see :func:`comparison_table`.
    """
    below = [*_legend(comparison), *(_notes(comparison) if notes else ())]
    table = comparison_table(comparison, precision)
    rows = table.text() if width is None else table.terminal(width)
    return "".join([*rows, "\n", *(f"{line.rstrip()}\n" for line in below)])


def comparison_markdown(comparison: Comparison, precision: int | None = None) -> str:
    """Write a Markdown table, and below it the legend and the notes."""
    below = (f"{markdown_text(line)}\n" for line in (*_legend(comparison), *_notes(comparison)))
    return "".join([*comparison_table(comparison, precision).markdown(), "\n", *below])


def comparison_latex(comparison: Comparison, precision: int | None = None) -> str:
    r"""Write a LaTeX tabular, which needs no package, and below it the legend and the notes as comments."""
    below = (f"% {line}\n" for line in (*_legend(comparison), *_notes(comparison)))
    return "".join([*comparison_table(comparison, precision).latex(), *below])


def comparison_html(comparison: Comparison) -> str:
    """Write an HTML table, for notebooks, and below it the legend and the notes; all text is escaped."""
    below = "<br>".join(map(html_text, (*_legend(comparison), *_notes(comparison))))
    return "".join([*comparison_table(comparison).html(), f"<p>{below}</p>"])


def comparison_table(comparison: Comparison, precision: int | None = None) -> Table:
    """Make the table for people: a row a system.

    Scores have ``precision`` digits after the point or, without it, as many as their intervals make worth showing.
    What only infinite losses ask for, and what no line is left for, is left out.
    """
    some_infinite, some_finite = comparison.compared < comparison.lines, comparison.compared > 0
    shown = [
        column
        for column in _COLUMNS
        if (some_infinite or not column.if_infinite) and (some_finite or not column.of_finite)
    ]
    return Table(
        [Column(name=column.name.format(comparison.compared), alignment=column.alignment) for column in shown],
        [[column.cell(system, _Digits(comparison, precision)) for column in shown] for system in comparison.systems],
    )


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


def _legend(comparison: Comparison) -> Iterator[str]:
    yield visible(
        f"{comparison.metric} ({comparison.unit}, {comparison.direction} is better) of {comparison.lines} lines of "
        f"{comparison.test}; the baseline is {comparison.baseline}; {comparison.samples} samples, "
        f"seed {comparison.seed}."
    )
    if comparison.documents is not None:
        yield visible(
            f"Intervals and tests are by document: {comparison.compared_documents} of them, told by the column "
            f"{comparison.documents}."
        )
    if 0 < comparison.compared < comparison.lines:
        what = "loss" if comparison.of_losses else "score"
        *names, last = (c.name.format(comparison.compared) for c in _COLUMNS if c.of_finite)
        yield (
            f"{', '.join(names)} and {last} are of the {comparison.compared} lines with a finite {what} for all; "
            f"the rest is of all {comparison.lines}."
        )
    better = "a lower loss" if comparison.of_losses else "a better score"
    yield f"won: lines with {better} than the baseline's; the score weighs by how much, so fewer may be better."
    if comparison.compared:
        yield "p boot: paired bootstrap test; p rand: approximate randomisation; two-sided, against the baseline."
        yield "group: systems that share a letter cannot be told apart (p rand of all pairs, Holm's correction, 5 %)."


def _notes(comparison: Comparison) -> Iterator[str]:
    return (f"Note: {note}." for note in comparison.notes)
