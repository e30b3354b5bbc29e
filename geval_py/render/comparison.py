"""A comparison of systems, as text, Markdown or LaTeX: a table, and below it what its columns are."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from geval_py.errors import display_width, visible
from geval_py.render.numbers import decimals_of, fixed

if TYPE_CHECKING:
    from geval_py.analysis.interval import Interval
    from geval_py.analysis.systems import System
    from geval_py.compare import Comparison

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
_MARKDOWN_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{special: f"\\{special}" for special in "\\`*_[]|~$#"}}
)


def comparison_text(comparison: Comparison) -> str:
    """Write an aligned table, and a legend below it."""
    rows = _table(comparison)
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "".join(f"{line.rstrip()}\n" for line in [*lines, "", *_legend(comparison)])


def comparison_markdown(comparison: Comparison) -> str:
    """Write a Markdown table, and below it the legend and the notes."""
    header, *rows = ([cell.translate(_MARKDOWN_ESCAPES) for cell in row] for row in _table(comparison))
    lines = [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]
    below = [*_legend(comparison), *(f"Note: {note}." for note in comparison.notes)]
    return "".join(f"{line}\n" for line in [*lines, "", *(text.translate(_MARKDOWN_ESCAPES) for text in below)])


def comparison_latex(comparison: Comparison) -> str:
    r"""Write a LaTeX tabular, which needs no package, and below it the legend and the notes as comments."""
    header, *rows = ([_latex_cell(cell) for cell in row] for row in _table(comparison))
    body = [r"\hline", _latex_row(header), r"\hline", *map(_latex_row, rows), r"\hline"]
    below = [*_legend(comparison), *(f"Note: {note}." for note in comparison.notes)]
    columns = "l" * len(header)
    lines = [rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}", *(f"% {text}" for text in below)]
    return "".join(f"{line}\n" for line in lines)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(text: str) -> str:
    """Escape a cell; one that begins with [ or * would be an argument of the row end before it."""
    return ("{}" if text.startswith(("[", "*")) else "") + text.translate(_LATEX_ESCAPES)


def _table(comparison: Comparison) -> list[list[str]]:
    """Give the cells, the header first; text from strangers without what a terminal would act on."""
    hidden = () if comparison.compared < comparison.lines else ("infinite", "finite score")
    columns = [(name, cell) for name, cell in _COLUMNS if name not in hidden]
    rows = [[visible(cell(system, comparison)) for _, cell in columns] for system in comparison.systems]
    return [[name for name, _ in columns], *rows]


Cell = Callable[["System", "Comparison"], str]

_COLUMNS: tuple[tuple[str, Cell], ...] = (
    ("system", lambda system, _: system.name),
    ("score", lambda system, _: _measured(system.score, system.interval)),
    ("95 % interval", lambda system, _: _ends(system.interval)),
    ("infinite", lambda system, _: str(system.infinite)),
    ("finite score", lambda system, _: _measured(system.finite_score, system.interval)),
    ("difference", lambda system, comparison: _difference(system, comparison)),
    ("95 % interval", lambda system, _: _ends(system.difference_interval)),
    ("p boot", lambda system, _: p_value_text(system.p_bootstrap)),
    ("p rand", lambda system, _: p_value_text(system.p_randomisation)),
    ("won", lambda system, _: _share(system.won)),
    ("lost", lambda system, _: _share(system.lost)),
    ("tied", lambda system, _: _share(system.tied)),
    ("group", lambda system, comparison: _groups(system, comparison)),
)


def _measured(value: float | None, interval: Interval | None) -> str:
    return "" if value is None else fixed(value, _decimals(value, interval))


def _ends(interval: Interval | None) -> str:
    if interval is None:
        return ""
    low, high = (fixed(end, _decimals(end, interval)) for end in (interval.low, interval.high))
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


def _share(share: float | None) -> str:
    return "" if share is None else f"{fixed(100 * share, 1)} %"


def _groups(system: System, comparison: Comparison) -> str:
    return "".join(_label(n) for n, group in enumerate(comparison.groups) if system.name in group)


def _label(group: int) -> str:
    return _LETTERS[group] if group < len(_LETTERS) else f"({group + 1})"


def _legend(comparison: Comparison) -> Iterator[str]:
    compared = f"{comparison.lines} lines"
    if comparison.compared < comparison.lines:
        compared += f", {comparison.compared} of them compared"
    yield visible(
        f"{comparison.metric} ({comparison.unit}, {comparison.direction} is better) of {compared}; "
        f"the baseline is {comparison.baseline}; {comparison.samples} samples, seed {comparison.seed}."
    )
    yield "p boot: paired bootstrap test; p rand: approximate randomisation; two-sided, against the baseline."
    yield "won: lines with a lower loss than the baseline's."
    yield "group: systems that share a letter cannot be told apart (p rand of all pairs, Holm's correction, 5 %)."
