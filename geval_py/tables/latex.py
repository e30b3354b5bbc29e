r"""Tables for LaTeX, with the package booktabs, that fit into the text of a page where they can.

The columns that a table names as ``not_printed`` are left out. In a table environment, one that is still too wide is
set in ``\small`` or ``\footnotesize``. A comment says what was left out, and what else would make it fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from geval_py.tables.escapes import latex_text
from geval_py.tables.layout import legend_without
from geval_py.tables.table import Bold, Column, Table
from geval_py.text import display_width, visible

TEXT_WIDTH = 345.0  # points, of the classes article and report in ten points, in one column
SIZES = {"": 1.0, "\\small\n": 0.926, "\\footnotesize\n": 0.862}  # the width of a digit, by that of ten points
SPACE = 12.0  # points between two columns, in any size
# Characters of Computer Modern Roman by their widths, in 36ths of 10 points; others are about as wide as n.
_WIDTHS = {
    character: width
    for width, characters in {
        10: "!',.:;[]ijl|",
        12: " -f",
        14: "()rst",
        16: "ceIz",
        18: '0123456789agoJ*/$"_?~^#`',
        19: "kqvxy{}\\",
        20: "bdhnpuS",
        22: "LZ",
        25: "BCEFPRTA",
        26: "w",
        28: "+=<>&@DGHKNOQUVXY",
        30: "m%",
        36: "MW",
    }.items()
    for character in characters
}
_OTHER = 20
_SIGN, _STAR, _BOLD = 28, 14, 1.15  # a minus sign or ±, a star above the line, bold letters


def document(
    whole: Table,
    legend: Iterable[str],
    notes: Sequence[str],
    signatures: Iterable[str],
    caption: str | None,
    label: str | None,
) -> Iterator[str]:
    r"""Write a tabular and, as comments, the package it needs, the signatures, the legend and the notes.

    With a ``caption``, which is escaped, or a ``label`` it stands in a table environment, and the legend below it is
    typeset. A label alone has an empty caption, without which ``\ref`` would show the section's number.
    """
    left_out = [column.heading for column in whole.columns if column.heading in whole.not_printed]
    table, legend = whole.without(left_out), legend_without(legend, set(left_out))
    size, width = _fitting_size(table)
    is_set = caption is not None or label is not None
    below = [f"Note: {note}." for note in notes]
    if left_out:
        below.append(f"Left out, since a page is narrow: {', '.join(left_out)}. CSV and JSON have them.")
    if size is None or (size and not is_set):
        letters = size.strip() if size else "shorter names or smaller letters"
        below.append(f"About {width:.0f} pt wide; the text of a page has {TEXT_WIDTH:.0f} pt: take {letters}.")
    yield "% needs \\usepackage{booktabs}\n"
    yield from (f"% {line}\n" for line in signatures)
    if not is_set:
        yield from table.latex()
        yield from (f"% {line}\n" for line in (*legend, *below))
        return
    yield f"\\begin{{table}}\n\\centering\n\\caption{{{latex_text(visible(caption or ''))}}}\n"
    yield "" if label is None else f"\\label{{{label}}}\n"
    yield size or ""
    yield from table.latex()
    if typeset := [f"{latex_text(line)}\n" for line in legend if line]:
        yield "\n\\smallskip\n\\begin{minipage}{\\linewidth}\n\\footnotesize\n"
        yield from typeset
        yield "\\end{minipage}\n"
    yield "\\end{table}\n"
    yield from (f"% {line}\n" for line in below)


def _fitting_size(table: Table) -> tuple[str | None, float]:
    """Return the largest size in which a table fits, None if none does, and its width in ten points.

    A table whose rows are still being made fits: it is too long to be looked at.
    """
    if not isinstance(table.rows, Sequence):
        return "", 0.0
    headings = ([latex_width(column.heading) for column in table.columns],)
    rows = [[_cell_width(*of) for of in zip(table.columns, row, strict=True)] for row in table.cells()]
    letters = sum(map(max, zip(*headings, *rows, strict=True)))
    spaces = SPACE * len(table.columns)  # half of one on each side
    fitting = (size for size, factor in SIZES.items() if factor * letters + spaces <= TEXT_WIDTH)
    return next(fitting, None), letters + spaces


def _cell_width(column: Column, cell: str) -> float:
    width = latex_width(cell, is_number=column.alignment != "left")
    return _BOLD * width if isinstance(cell, Bold) else width


def latex_width(text: str, *, is_number: bool = False) -> float:
    """Estimate the width of a text in points, in Computer Modern of ten points, to about 5 %.

    >>> round(latex_width("out-model=unigram.tsv")), round(latex_width("-153*** [-227, -78]", is_number=True))
    (104, 90)
    """
    widths = _WIDTHS | {"-": _SIGN, "±": _SIGN, "*": _STAR} if is_number else _WIDTHS
    return sum(widths.get(character, _OTHER * max(1, display_width(character))) for character in text) / 3.6
