"""One table in many formats: aligned or TAB-separated text, Markdown, LaTeX, CSV, HTML.

Rows are written one by one, so a table may be of any length; only aligned text needs all rows for its widths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice

from geval_py.tables import escapes, numbers
from geval_py.text import Alignment, display_width, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from geval_py.tables.layout import Cut

_LATEX_COLUMNS: dict[Alignment, str] = {"left": "l", "centre": "c", "right": "r"}
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


class Column(Value):
    """A column: its name, the unit of its values, its alignment, and the function that writes a value.

    A column that is aligned left holds text, any other holds numbers. None is written as an empty cell. ``cut`` says
    where a terminal that is too narrow cuts its cells: names in the ``middle``, since they stay distinct. A column
    ``instead_of`` another, by its heading, is only for a terminal, which shows it where that one has to go.
    """

    name: str
    unit: str = ""
    alignment: Alignment = "left"
    write: Callable[[Any], str] = written
    cut: Cut = "end"
    instead_of: str = ""

    @property
    def heading(self) -> str:
        """The name with the unit, for people."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def cells(self, values: Sequence[object]) -> list[str]:
        """Write values as cells."""
        if None in values:
            return ["" if value is None else self.write(value) for value in values]
        return list(map(self.write, values))


class Table:
    """Columns, and rows with one value per column; rows that are an iterator can be written only once.

    Rows are written ``at_a_time``: one by one if they are still being computed, more at once if there are many.
    ``may_go`` names the columns that a terminal may leave out if it is too narrow, the last one first: without it,
    all but the first. ``not_printed`` are the headings of columns that a page of a paper has no room for. Each method
    yields pieces of text, of whole lines.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[object]],
        at_a_time: int = 1,
        may_go: Sequence[str] | None = None,
        not_printed: Sequence[str] = (),
    ) -> None:
        self.columns, self.rows, self.at_a_time = columns, rows, at_a_time
        self.may_go, self.not_printed = may_go, not_printed

    def without(self, headings: Collection[str]) -> Table:
        """Return the table without some columns."""
        if not headings:
            return self
        kept = [n for n, column in enumerate(self.columns) if column.heading not in headings]
        rows = [[row[n] for n in kept] for row in self.rows]
        return Table([self.columns[n] for n in kept], rows, self.at_a_time, self.may_go)

    def tabs(self) -> Iterator[str]:
        """Write rows without a header, cells separated by TABs; a TAB inside a cell becomes ``<tab>``, as GEval's."""
        for block in self._blocks():
            cells = [map(escapes.tab_text, column) if "\t" in "".join(column) else column for column in block]
            yield "\n".join(map("\t".join, zip(*cells, strict=True))) + "\n"

    def text(self, *, header: bool = True) -> Iterator[str]:
        """Write columns of equal width, two spaces apart; all are flush left, since numbers differ in decimals."""
        rows: list[Sequence[str]] = [[column.heading for column in self.columns]] if header else []
        rows += self.cells()
        widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            padded = (cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True))
            yield "  ".join(padded).rstrip() + "\n"

    def terminal(
        self, width: int, *, header: bool = True, whole: str = "--format csv", legend: Sequence[str] = ()
    ) -> Iterator[str]:
        """Write columns that fit into a terminal's width, below their names; see :mod:`geval_py.tables.layout`.

        ``whole`` is what a user adds to the command to see all columns. The ``legend`` stands below.
        """
        from geval_py.tables.layout import Shape, laid_out

        shapes = [
            Shape(heading=of.heading, alignment=of.alignment, cut=of.cut, instead_of=of.instead_of)
            for of in self.columns
        ]
        places = range(len(shapes))
        names = dict.fromkeys(self.may_go or ())
        may_go = [n for name in names for n in places if self.columns[n].name == name]
        going = places[1:] if self.may_go is None else may_go
        yield from laid_out(shapes, self.cells(), width, header=header, may_go=going, whole=whole, legend=legend)

    def markdown(self) -> Iterator[str]:
        """Write a table in GitHub's Markdown."""
        head = [escapes.markdown_text(column.heading) for column in self.columns]
        rule = [_MARKDOWN_RULES[column.alignment] for column in self.columns]
        for cells in chain([head, rule], (map(_markdown_cell, row) for row in self.cells())):
            yield f"| {' | '.join(cells)} |\n"

    def latex(self) -> Iterator[str]:
        r"""Write a LaTeX tabular that needs the package booktabs."""
        aligned_left = [column.alignment == "left" for column in self.columns]
        escaped = [escapes.latex_text if is_text else escapes.latex_number for is_text in aligned_left]
        yield rf"\begin{{tabular}}{{{''.join(_LATEX_COLUMNS[column.alignment] for column in self.columns)}}}" + "\n"
        yield "\\toprule\n"
        yield _latex_row(escapes.latex_text(column.heading) for column in self.columns)
        yield "\\midrule\n"
        for row in self.cells():
            yield _latex_row(_latex_cell(*pair) for pair in zip(escaped, row, strict=True))
        yield "\\bottomrule\n\\end{tabular}\n"

    def csv(self) -> Iterator[str]:
        """Write CSV (RFC 4180, but with LF) for programs: names without units, numbers with all digits.

        An apostrophe precedes text that a spreadsheet would take for a formula.
        """
        head = [escapes.csv_text(written(column.name)) for column in self.columns]
        rows = ([_csv_cell(*pair) for pair in zip(self.columns, row, strict=True)] for row in self.rows)
        yield from _csv_lines(chain([head], rows))

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

    def cells(self) -> Iterator[tuple[str, ...]]:
        """Yield the written cells of each row, for other formats."""
        for block in self._blocks():
            yield from zip(*block, strict=True)

    def _blocks(self) -> Iterator[list[list[str]]]:
        """Write cells column by column, some rows at a time: faster than row by row."""
        rows = iter(self.rows)
        while some := list(islice(rows, self.at_a_time)):
            columns = zip(*some, strict=True)
            yield [column.cells(values) for column, values in zip(self.columns, columns, strict=True)]


def _markdown_cell(cell: str) -> str:
    text = escapes.markdown_text(cell)
    return f"**{text}**" if isinstance(cell, Bold) else text


def _latex_cell(escape: Callable[[str], str], cell: str) -> str:
    return rf"\textbf{{{escape(cell)}}}" if isinstance(cell, Bold) else escape(cell)


def _latex_row(cells: Iterable[str]) -> str:
    row = " & ".join(cells)  # one that begins with [ or * would be an argument of the row end before it
    return ("{}" if row.startswith(("[", "*")) else "") + row + " \\\\\n"


def _csv_cell(column: Column, value: object) -> object:
    if isinstance(value, str):
        return escapes.csv_text(column.write(value))
    return numbers.special(value) if isinstance(value, float) and not math.isfinite(value) else value


def _csv_lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    import csv
    import io

    line = io.StringIO(newline="")
    writer = csv.writer(line)
    for row in rows:
        writer.writerow(row)  # its line end must be \r\n, so that it quotes cells with either character
        yield line.getvalue().removesuffix("\r\n") + "\n"
        line.seek(0)
        line.truncate()


def plain_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table for programs, of unchanged values."""
    return Table([Column(name=name, write=str) for name in names], rows)
