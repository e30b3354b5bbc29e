"""Output formats: one registry, FORMATS, for every command that has ``--format``.

A command returns a value with the methods of :class:`Tabular`; ``FORMATS[name](value, width)`` yields its text. A new
format is one entry in FORMATS: every command then takes its name, and shows it in its help.
"""

from __future__ import annotations

from geval_py.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, ClassVar

    from geval_py.tables.table import Table


class Tabular:
    """A value that every output format can show.

    ``table`` and ``legend`` are for people, ``records`` and ``to_dict`` for programs. ``notes`` are warnings: a
    command writes them to standard error; formats that end in a file, and Python, show them below the legend.
    """

    __slots__ = ()
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the table for people."""
        raise NotImplementedError

    def signatures(self) -> Iterator[str]:
        """Yield what the scores depend on, for comments: a line an output, with its file's name."""
        return iter(())

    def legend(self) -> Iterator[str]:
        """Yield the lines that stand below the table, without line ends."""
        return iter(())

    def records(self) -> Table:
        """Return the table for programs: bare names, and numbers with all their digits."""
        return self.table()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, but for the version if that is not the value's own; values may be inf."""
        raise NotImplementedError

    def text(self, width: int | None = None) -> Iterator[str]:
        """Write an aligned table, which fits into a terminal's ``width`` if there is one, and the legend below it."""
        table, legend = self.table(), list(self.legend())
        if width is not None:
            yield from table.terminal(width, legend=legend)
            return
        yield from table.text()
        yield from (f"{line}\n" for line in (["", *legend] if legend else []))

    def markdown(self) -> Iterator[str]:
        """Write a Markdown table, and below it the legend and the notes."""
        from geval_py.tables.escapes import markdown_text

        below = self._below()
        yield from self.table().markdown()
        yield from (f"{markdown_text(line)}\n" for line in (["", *below] if below else []))

    def latex(self, caption: str | None = None, label: str | None = None) -> Iterator[str]:
        """Write a LaTeX table, in a table environment with a caption or a label; see ``geval_py.tables.latex``."""
        from geval_py.tables.latex import document

        yield from document(self.table(), self.legend(), self.notes, self.signatures(), caption, label)

    def html(self) -> Iterator[str]:
        """Write an HTML table, and below it the legend and the notes; all text is escaped."""
        from geval_py.tables.escapes import html_text

        below = self._below()
        yield from self.table().html()
        yield f"<p>{'<br>'.join(map(html_text, below))}</p>\n" if below else ""

    def __str__(self) -> str:
        notes = (f"Note: {note}.\n" for note in self.notes)
        return "".join([*self.text(), *notes]).removesuffix("\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show the table in Jupyter."""
        return "".join(self.html())

    def _below(self) -> list[str]:
        return [*self.legend(), *(f"Note: {note}." for note in self.notes)]


class Listing(Tabular):
    """Rows that are made one by one, possibly millions; ``to_dict`` is what precedes their list in JSON."""

    __slots__ = ()
    name: ClassVar[str]  # of the list

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the items of the list in a JSON document."""
        raise NotImplementedError

    def text(self, width: int | None = None) -> Iterator[str]:
        """Write columns that fit into a terminal's ``width``; without one, as GEval does: TABs, and no header."""
        return self.table().tabs() if width is None else Tabular.text(self, width)


class Shown(Tabular):
    """A value whose methods are given as functions; methods that are not given are taken from the value ``of``."""

    def __init__(
        self,
        of: Tabular | None = None,
        *,
        to_dict: Callable[[], dict[str, Any]] | None = None,
        table: Callable[[], Table] | None = None,
        records: Callable[[], Table] | None = None,
        legend: Callable[[], Iterable[str]] | None = None,
        text: Callable[[int | None], Iterable[str]] | None = None,
        latex: Callable[[], Iterable[str]] | None = None,
        signatures: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        self.listing = of if isinstance(of, Listing) else None
        names = ("notes", "table", "signatures", "records", "legend", "text", "markdown", "latex", "html")
        methods = {} if of is None else {name: getattr(of, name) for name in names}
        given = {
            "to_dict": to_dict,
            "table": table,
            "records": records,
            "legend": legend,
            "text": text,
            "latex": latex,
            "signatures": signatures,
        }
        vars(self).update(methods | {name: method for name, method in given.items() if method is not None})

    def table(self) -> Table:
        """Return the document's figures, where no table is given."""
        return figures(self.to_dict())


def figures(document: dict[str, Any]) -> Table:
    """Return a table with a row for each figure of a document; the names of nested figures are joined by dots.

    >>> print("".join(figures({"a": 1, "b": {"c": [2, "x"]}}).text()), end="")
    figure  value
    a       1
    b.c.0   2
    b.c.1   x
    """
    from geval_py.tables.table import Column, Table

    def rows(value: Any, name: str) -> Iterator[tuple[str, object]]:
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in inside:
            if isinstance(item, (dict, list, tuple)):
                yield from rows(item, f"{name}{key}.")
            else:
                yield f"{name}{key}", item

    return Table([Column(name="figure"), Column(name="value")], list(rows(document, "")))


def _json(value: Tabular, _: int | None) -> Iterator[str]:
    """Write the JSON document of a value; the first key of each is the version."""
    from geval_py.tables.escapes import json_list_text, json_text

    document = {"version": __version__} | value.to_dict()
    listing = value.listing if isinstance(value, Shown) else value
    if isinstance(listing, Listing):
        yield from json_list_text(document, listing.name, listing.documents())
    else:
        yield json_text(document)


FORMATS: dict[str, Callable[[Tabular, int | None], Iterable[str]]] = {  # the terminal's width is None elsewhere
    "text": lambda value, width: value.text(width),
    "json": _json,
    "csv": lambda value, _: value.records().csv(),
    "markdown": lambda value, _: value.markdown(),
    "latex": lambda value, _: value.latex(),
    "html": lambda value, _: value.html(),
}
FOR_PEOPLE = ("text", "markdown", "latex", "html")  # the others are for programs: all digits
UNSIGNED = ("text", "markdown", "html")  # the others have signatures, which cost time
