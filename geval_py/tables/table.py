"""One table in many formats: aligned or TAB-separated text, Markdown, LaTeX, CSV, HTML.

Rows are written one by one, so a table may be of any length; only aligned text needs all rows for its widths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from geval_py.tables import escapes, numbers
from geval_py.tables.layout import laid_out
from geval_py.text import Alignment, display_width, visible

_MARKDOWN_RULES: dict[Alignment, str] = {"left": "---", "centre": ":---:", "right": "---:"}
_HTML_CELLS: dict[Alignment, str] = {
    "left": "<td>",
    "centre": '<td style="text-align: center">',
    "right": '<td style="text-align: right">',
}


def written(value: object) -> str:
    """Write a value as escaped text."""
    return visible(str(value))


class Bold(str):
    """A cell that is bold in Markdown and in LaTeX."""

    __slots__ = ()


class Column(NamedTuple):
    """A column: its name, the unit of its values, its alignment, and the function that writes a value.

    A column that is aligned left holds text, any other holds numbers. None is written as an empty cell.
    """

    name: str
    unit: str = ""
    alignment: Alignment = "left"
    write: Callable[[Any], str] = written

    @property
    def heading(self) -> str:
        """The name with the unit, for people."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


class Table:
    """Columns, and rows with one value per column; rows that are an iterator can be written only once.

    ``not_printed`` are the headings of columns that a page of a paper has no room for. Each method yields pieces of
    text, of whole lines.
    """

    def __init__(
        self, columns: Sequence[Column], rows: Iterable[Sequence[object]], not_printed: Sequence[str] = ()
    ) -> None:
        self.columns, self.rows, self.not_printed = columns, rows, not_printed

    def without(self, headings: Collection[str]) -> Table:
        """Return the table without some columns."""
        kept = [n for n, column in enumerate(self.columns) if column.heading not in headings]
        rows = ([row[n] for n in kept] for row in self.rows)
        return Table([self.columns[n] for n in kept], rows)

    def tabs(self) -> Iterator[str]:
        """Write rows without a header, cells separated by TABs; a TAB inside a cell becomes ``<tab>``, as GEval's."""
        for row in self.cells():
            yield "\t".join([cell.replace("\t", "<tab>") for cell in row]) + "\n"

    def text(self, *, header: bool = True) -> Iterator[str]:
        """Write columns of equal width, two spaces apart; all are flush left, since numbers differ in decimals."""
        rows: list[Sequence[str]] = [[column.heading for column in self.columns]] if header else []
        rows += self.cells()
        widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            padded = (cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True))
            yield "  ".join(padded).rstrip() + "\n"

    def terminal(self, width: int, *, header: bool = True) -> Iterator[str]:
        """Write columns that fit into a terminal's width, below their names; see :mod:`geval_py.tables.layout`."""
        headings = [column.heading for column in self.columns]
        are_texts = [column.alignment == "left" for column in self.columns]
        yield from laid_out(headings, are_texts, self.cells(), width, header=header)

    def markdown(self) -> Iterator[str]:
        """Write a table in GitHub's Markdown."""
        head = [escapes.markdown_text(column.heading) for column in self.columns]
        rule = [_MARKDOWN_RULES[column.alignment] for column in self.columns]
        yield from (f"| {' | '.join(cells)} |\n" for cells in (head, rule))
        for row in self.cells():
            cells = zip(row, map(escapes.markdown_text, row), strict=True)
            yield f"| {' | '.join(f'**{text}**' if isinstance(cell, Bold) else text for cell, text in cells)} |\n"

    def latex(self) -> Iterator[str]:
        r"""Write a LaTeX tabular that needs the package booktabs."""
        escaped = [
            escapes.latex_text if column.alignment == "left" else escapes.latex_number for column in self.columns
        ]

        def line(cells: Iterable[str]) -> str:
            row = " & ".join(cells)  # one that begins with [ or * would be an argument of the row end before it
            return ("{}" if row.startswith(("[", "*")) else "") + row + " \\\\\n"

        yield rf"\begin{{tabular}}{{{''.join(column.alignment[0] for column in self.columns)}}}" + "\n"
        yield "\\toprule\n" + line(escapes.latex_text(column.heading) for column in self.columns) + "\\midrule\n"
        for row in self.cells():
            pairs = zip(escaped, row, strict=True)
            yield line(
                rf"\textbf{{{escape(cell)}}}" if isinstance(cell, Bold) else escape(cell) for escape, cell in pairs
            )
        yield "\\bottomrule\n\\end{tabular}\n"

    def csv(self) -> Iterator[str]:
        """Write CSV (RFC 4180, but with LF) for programs: names without units, numbers with all digits.

        An apostrophe precedes text that a spreadsheet would take for a formula.
        """
        import csv

        echo: Any = SimpleNamespace(write=str)  # so that the writer returns what it writes
        writer = csv.writer(echo)  # its line end must be \r\n, so that it quotes cells with either character

        def line(cells: Iterable[object]) -> str:
            text: str = writer.writerow(cells)
            return text.removesuffix("\r\n") + "\n"

        yield line(escapes.csv_text(written(column.name)) for column in self.columns)
        for row in self.rows:
            yield line(
                escapes.csv_text(column.write(value))
                if isinstance(value, str)
                else numbers.exact(value)
                if isinstance(value, float) and not math.isfinite(value)
                else value
                for column, value in zip(self.columns, row, strict=True)
            )

    def html(self) -> Iterator[str]:
        """Write an HTML table with all text escaped."""
        yield "<table>\n<thead>\n"
        yield f"<tr>{''.join(f'<th>{escapes.html_text(column.heading)}</th>' for column in self.columns)}</tr>\n"
        yield "</thead>\n<tbody>\n"
        starts = [_HTML_CELLS[column.alignment] for column in self.columns]
        for row in self.cells():
            cells = (f"{start}{escapes.html_text(cell)}</td>" for start, cell in zip(starts, row, strict=True))
            yield f"<tr>{''.join(cells)}</tr>\n"
        yield "</tbody>\n</table>\n"

    def cells(self) -> Iterator[list[str]]:
        """Yield the written cells of each row, for other formats."""
        writers = [column.write for column in self.columns]
        for row in self.rows:
            yield ["" if value is None else write(value) for write, value in zip(writers, row, strict=True)]

    def by_name(self) -> Iterator[dict[str, Any]]:
        """Yield the values of each row by the names of their columns."""
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.rows)


def named_columns(names: Iterable[str], alignment: Alignment = "left") -> list[Column]:
    """Return columns of text or, with the alignment of numbers, of figures, whose values are written as they are."""
    return [Column(name, alignment=alignment) for name in names]


def plain_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table for programs, of unchanged values."""
    return Table([Column(name, write=str) for name in names], rows)
