"""A comparison of systems, as text, Markdown, LaTeX or HTML: a table, and below it what its columns are."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from geval_py.showing.numbers import MOST_PLAIN, decimals_of, fixed, shortest
from geval_py.text import display_width, visible

if TYPE_CHECKING:
    from geval_py.explaining.comparison import Comparison
    from geval_py.explaining.statistics.interval import Interval
    from geval_py.explaining.statistics.systems import System

SIGNIFICANT_DIGITS = 4  # of a number whose interval does not tell how many are worth showing
_LETTERS = string.ascii_letters

_LATEX_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        **{special: f"\\{special}" for special in "{}$&#_%"},
    }
)
_MARKDOWN_RULES = {"l": "---", "r": "---:", "c": ":---:"}
_MARKDOWN_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{special: f"\\{special}" for special in "\\`*_[]|~$#"}}
)


def comparison_text(comparison: Comparison, *, notes: bool = False) -> str:
    """Write an aligned table, and below it a legend; with ``notes``, these too."""
    rows = _table(comparison)
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    below = [*_legend(comparison), *(_notes(comparison) if notes else ())]
    return "".join(f"{line.rstrip()}\n" for line in [*lines, "", *below])


def comparison_markdown(comparison: Comparison) -> str:
    """Write a Markdown table, and below it the legend and the notes."""
    header, *rows = ([cell.translate(_MARKDOWN_ESCAPES) for cell in row] for row in _table(comparison))
    rule = [_MARKDOWN_RULES[column.alignment] for column in _shown_columns(comparison)]
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
    below = (text.translate(_MARKDOWN_ESCAPES) for text in (*_legend(comparison), *_notes(comparison)))
    return "".join(f"{line}\n" for line in [*lines, "", *below])


def comparison_latex(comparison: Comparison) -> str:
    r"""Write a LaTeX tabular, which needs no package, and below it the legend and the notes as comments."""
    header, *rows = _table(comparison)
    alignments = "".join(column.alignment for column in _shown_columns(comparison))
    body = [
        r"\hline",
        _latex_row(map(_latex_text, header)),
        r"\hline",
        *(_latex_row([_latex_text(name), *map(_latex_number, cells)]) for name, *cells in rows),
        r"\hline",
    ]
    below = (f"% {text}" for text in (*_legend(comparison), *_notes(comparison)))
    lines = [rf"\begin{{tabular}}{{{alignments}}}", *body, r"\end{tabular}", *below]
    return "".join(f"{line}\n" for line in lines)


def _latex_row(cells: Iterable[str]) -> str:
    """Join cells; a row that begins with [ or * would be an argument of the row end before it."""
    row = " & ".join(cells)
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"


def _latex_text(text: str) -> str:
    return text.translate(_LATEX_ESCAPES)


def _latex_number(text: str) -> str:
    r"""Write what stands in a cell of numbers, with the signs of mathematics.

    >>> _latex_number("[-213, Infinity]"), _latex_number("<1 %")
    ('[$-$213, $\\infty$]', '$<$1 \\%')
    """
    signs = re.sub("[-+<]?Infinity|[-+<]", lambda match: f"${match[0]}$", text)
    return signs.replace("Infinity", r"\infty").replace("%", r"\%")


def comparison_html(comparison: Comparison) -> str:
    """Write an HTML table, for notebooks, and below it the legend and the notes; all text is escaped."""
    import html

    import pandas as pd

    header, *rows = _table(comparison)
    with pd.option_context("display.max_colwidth", None):
        table = pd.DataFrame(rows, columns=header).to_html(index=False)
    return f"{table}\n<p>{'<br>'.join(html.escape(text) for text in (*_legend(comparison), *_notes(comparison)))}</p>"


def _table(comparison: Comparison) -> list[list[str]]:
    """Give the cells, the header first; text from strangers without what a terminal would act on."""
    columns = _shown_columns(comparison)
    rows = [[visible(column.cell(system, comparison)) for column in columns] for system in comparison.systems]
    return [[column.name.format(comparison.compared) for column in columns], *rows]


def _shown_columns(comparison: Comparison) -> list[_Column]:
    """Leave out what only infinite losses ask for, and what no line is left for."""
    some_infinite, some_finite = comparison.compared < comparison.lines, comparison.compared > 0
    return [
        column
        for column in _COLUMNS
        if (some_infinite or not column.if_infinite) and (some_finite or not column.of_finite)
    ]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its header (``{}`` is the number of lines compared), LaTeX's letter for its alignment, its cells.

    ``of_finite`` tells whether it is of the lines compared alone, ``if_infinite`` whether it is shown only where
    these are not all lines.
    """

    name: str
    alignment: Literal["l", "r", "c"]
    cell: Callable[[System, Comparison], str]
    of_finite: bool = False
    if_infinite: bool = False


_COLUMNS = (
    _Column("system", "l", lambda system, _: system.name),
    _Column("score", "r", lambda system, _: _measured(system.score, system.interval)),
    _Column("95 % interval", "c", lambda system, _: _ends(system.interval)),
    _Column("infinite", "r", lambda system, _: str(system.infinite), if_infinite=True),
    _Column(
        "score on {}",
        "r",
        lambda system, _: _measured(system.finite_score, system.interval),
        of_finite=True,
        if_infinite=True,
    ),
    _Column("diff.", "r", lambda system, comparison: _difference(system, comparison), of_finite=True),
    _Column("diff. 95 %", "c", lambda system, _: _ends(system.difference_interval), of_finite=True),
    _Column("p boot", "r", lambda system, _: p_value_text(system.p_bootstrap), of_finite=True),
    _Column("p rand", "r", lambda system, _: p_value_text(system.p_randomisation), of_finite=True),
    _Column("won", "r", lambda system, _: share_text(system.won)),
    _Column("lost", "r", lambda system, _: share_text(system.lost)),
    _Column("tied", "r", lambda system, _: share_text(system.tied)),
    _Column("group", "l", lambda system, comparison: _groups(system, comparison), of_finite=True),
)


def _measured(value: float | None, interval: Interval | None) -> str:
    return "" if value is None else _shown(value, interval)


def _shown(value: float, interval: Interval | None) -> str:
    if MOST_PLAIN <= abs(value) < math.inf:
        return shortest(float(f"{value:.{SIGNIFICANT_DIGITS - 1}e}"))
    return fixed(value, _decimals(value, interval))


def _ends(interval: Interval | None) -> str:
    if interval is None:
        return ""
    low, high = (_shown(end, interval) for end in (interval.low, interval.high))
    return f"[{low}, {high}]"


def _decimals(value: float, interval: Interval | None) -> int:
    """Give the decimals that the interval's half width makes worth showing, else those of the leading digits."""
    if interval is not None and math.isfinite(interval.half_width) and interval.half_width > 0:
        return decimals_of(interval.half_width)
    if value == 0 or not math.isfinite(value):
        return 0
    return max(0, SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(value))))


def _difference(system: System, comparison: Comparison) -> str:
    if system.name == comparison.baseline:
        return "baseline"
    text = _measured(system.difference, system.difference_interval)
    return f"+{text}" if system.difference is not None and system.difference > 0 else text


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
    if 0 < comparison.compared < comparison.lines:
        *names, last = (c.name.format(comparison.compared) for c in _COLUMNS if c.of_finite)
        yield (
            f"{', '.join(names)} and {last} are of the {comparison.compared} lines with a finite loss for all; "
            f"the rest is of all {comparison.lines}."
        )
    yield "won: lines with a lower loss than the baseline's; the score weighs by how much, so fewer may be better."
    if comparison.compared:
        yield "p boot: paired bootstrap test; p rand: approximate randomisation; two-sided, against the baseline."
        yield "group: systems that share a letter cannot be told apart (p rand of all pairs, Holm's correction, 5 %)."


def _notes(comparison: Comparison) -> Iterator[str]:
    return (f"Note: {note}." for note in comparison.notes)
