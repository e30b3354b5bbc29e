"""One table, in the format that its reader takes: aligned or TAB-separated text, Markdown, LaTeX, CSV, HTML.

Rows are written one by one, so a table may have any number; but for aligned text, which must know the widest cell.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from geval_py.tables.escapes import csv_text, html_text, latex_number, latex_text, markdown_text, tab_text
from geval_py.tables.numbers import special
from geval_py.tables.terminals import laid_out
from geval_py.text import display_width, visible

if TYPE_CHECKING:
    from geval_py.tables.terminals import Alignment


_LATEX_COLUMNS: dict[Alignment, str] = {"left": "l", "centre": "c", "right": "r"}
_MARKDOWN_RULES: dict[Alignment, str] = {"left": "---", "centre": ":---:", "right": "---:"}
_HTML_CELLS: dict[Alignment, str] = {
    "left": "<td>",
    "centre": '<td style="text-align: center">',
    "right": '<td style="text-align: right">',
}


def written(value: object) -> str:
    """Write a value as text that no terminal acts on."""
    return visible(str(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its name and the unit of its values, how it is aligned, and how a value is written.

    What is aligned left is text; what is not is numbers. A value of None is written as an empty cell.
    """

    name: str
    unit: str = ""
    alignment: Alignment = "left"
    write: Callable[[Any], str] = written

    @property
    def heading(self) -> str:
        """The name, for people with the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, and rows with a value a column; the rows may be an iterator, which is used up by writing it once.

    ``at_a_time`` rows are written at once: one where they are still being made, more where there are many.
    Each method gives the table as pieces of text, of whole lines.
    """

    columns: Sequence[Column]
    rows: Iterable[Sequence[object]]
    at_a_time: int = 1

    def tabs(self) -> Iterator[str]:
        """Write a line a row, without a header; TABs part the cells, and one inside is ``<tab>``, as GEval does."""
        for block in self._blocks():
            cells = [map(tab_text, column) if "\t" in "".join(column) else column for column in block]
            yield "\n".join(map("\t".join, zip(*cells, strict=True))) + "\n"

    def text(self, *, header: bool = True) -> Iterator[str]:
        """Write columns of equal width, two spaces between them; all flush left, since numbers differ in decimals."""
        rows: list[Sequence[str]] = [[column.heading for column in self.columns]] if header else []
        rows += self.cells()
        widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            padded = (cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True))
            yield "  ".join(padded).rstrip() + "\n"

    def terminal(self, width: int, *, header: bool = True) -> Iterator[str]:
        """Write columns that fit into a terminal's width, below their names; see :func:`laid_out`."""
        head = [[column.heading for column in self.columns]] if header else []
        yield from laid_out(chain(head, self.cells()), [column.alignment for column in self.columns], width)

    def markdown(self) -> Iterator[str]:
        """Write a table of GitHub's Markdown."""
        yield _markdown_row(markdown_text(column.heading) for column in self.columns)
        yield _markdown_row(_MARKDOWN_RULES[column.alignment] for column in self.columns)
        for row in self.cells():
            yield _markdown_row(map(markdown_text, row))

    def latex(self) -> Iterator[str]:
        r"""Write a LaTeX tabular, which needs no package."""
        escapes = [latex_text if column.alignment == "left" else latex_number for column in self.columns]
        yield rf"\begin{{tabular}}{{{''.join(_LATEX_COLUMNS[column.alignment] for column in self.columns)}}}" + "\n"
        yield "\\hline\n"
        yield _latex_row(latex_text(column.heading) for column in self.columns)
        yield "\\hline\n"
        for row in self.cells():
            yield _latex_row(escape(cell) for escape, cell in zip(escapes, row, strict=True))
        yield "\\hline\n\\end{tabular}\n"

    def csv(self) -> Iterator[str]:
        """Write CSV (RFC 4180, but with plain line ends) for programs: bare names, and numbers with all their digits.

        Text that a spreadsheet would take for a formula has an apostrophe before it.
        """
        head = [csv_text(written(column.name)) for column in self.columns]
        rows = ([_csv_cell(*pair) for pair in zip(self.columns, row, strict=True)] for row in self.rows)
        yield from _csv_lines(chain([head], rows))

    def html(self) -> Iterator[str]:
        """Write an HTML table; all text is escaped."""
        yield "<table>\n<thead>\n"
        yield f"<tr>{''.join(f'<th>{html_text(column.heading)}</th>' for column in self.columns)}</tr>\n"
        yield "</thead>\n<tbody>\n"
        starts = [_HTML_CELLS[column.alignment] for column in self.columns]
        for row in self.cells():
            cells = (f"{start}{html_text(cell)}</td>" for start, cell in zip(starts, row, strict=True))
            yield f"<tr>{''.join(cells)}</tr>\n"
        yield "</tbody>\n</table>\n"

    def cells(self) -> Iterator[tuple[str, ...]]:
        """Write the cells of each row, for a format of one's own."""
        for block in self._blocks():
            yield from zip(*block, strict=True)

    def _blocks(self) -> Iterator[list[list[str]]]:
        """Write the cells of some rows at a time, column by column, which is faster for many rows than row by row."""
        rows = iter(self.rows)
        while some := list(islice(rows, self.at_a_time)):
            columns = zip(*some, strict=True)
            yield [_written(column, values) for column, values in zip(self.columns, columns, strict=True)]


def _written(column: Column, values: Sequence[object]) -> list[str]:
    if None in values:
        return ["" if value is None else column.write(value) for value in values]
    return list(map(column.write, values))


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _latex_row(cells: Iterable[str]) -> str:
    """Join cells; a row that begins with [ or * would be an argument of the row end before it."""
    row = " & ".join(cells)
    return ("{}" if row.startswith(("[", "*")) else "") + row + " \\\\\n"


def _csv_cell(column: Column, value: object) -> object:
    if isinstance(value, str):
        return csv_text(column.write(value))
    return special(value) if isinstance(value, float) and not math.isfinite(value) else value


def _csv_lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    line = io.StringIO(newline="")
    writer = csv.writer(line)
    for row in rows:
        writer.writerow(row)  # only cells with a character of its line end, \r\n, are quoted for that
        yield line.getvalue().removesuffix("\r\n") + "\n"
        line.seek(0)
        line.truncate()


def plain_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Make a table of values as they are, such as programs read."""
    return Table([Column(name=name, write=str) for name in names], rows)
