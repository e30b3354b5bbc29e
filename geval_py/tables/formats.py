"""Output formats, for every command that has ``--format``.

A command returns a value with the methods of :class:`Tabular`, and each format is one of these. A new format is a
method and its name in FORMATS: every command then takes it, and shows it in its help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from geval_py.tables.escapes import html_text, json_list_text, json_text, latex_text, markdown_text
from geval_py.tables.table import Table
from geval_py.text import fitted, visible
from geval_py.version import __version__


class Tabular:
    """A value that every output format can show.

    ``table`` and ``legend`` are for people, ``records`` and ``to_dict`` for programs. ``notes`` are warnings: a
    command writes them to standard error; formats that end in a file, and Python, show them below the legend.

    A value whose rows are made one by one, perhaps millions, has a ``list_name``: that of the rows in its JSON
    document.
    """

    __slots__ = ()
    notes: tuple[str, ...] = ()
    list_name = ""

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
        return json_fields(self)

    def to_dicts(self) -> Iterator[dict[str, Any]]:
        """Yield the items of the list in a JSON document: the rows of the table for programs."""
        return self.records().by_name()

    def text(self, width: int | None = None) -> Iterator[str]:
        """Write an aligned table, which fits into a terminal's ``width`` if there is one, and the legend below it.

        Without a width, rows that are made one by one are written as GEval does: with TABs, and without a header.
        """
        table, legend = self.table(), list(self.legend())
        if width is None and self.list_name:
            yield from table.tabs()
            return
        yield from table.text() if width is None else table.terminal(width)
        yield from fitted(["", *legend] if legend else [], width)

    def json(self, before: Mapping[str, Any] | None = None, after: Mapping[str, Any] | None = None) -> Iterator[str]:
        """Write the JSON document, with the version and other fields ``before`` and ``after`` the value's own."""
        document = {"version": __version__, **(before or {})} | self.to_dict() | {**(after or {})}
        if self.list_name:
            yield from json_list_text(document, self.list_name, self.to_dicts())
        else:
            yield json_text(document)

    def csv(self) -> Iterator[str]:
        """Write the table for programs as CSV."""
        return self.records().csv()

    def markdown(self) -> Iterator[str]:
        """Write a Markdown table, and below it the legend and the notes."""
        below = self._below()
        yield from self.table().markdown()
        yield from (f"{markdown_text(line)}\n" for line in (["", *below] if below else []))

    def latex(self, caption: str | None = None, label: str | None = None) -> Iterator[str]:
        """Write a LaTeX table, in a table environment with a caption or a label; a comment names its packages."""
        yield from latex_document(self.table(), self.legend(), self.notes, self.signatures(), caption, label)

    def html(self) -> Iterator[str]:
        """Write an HTML table, and below it the legend and the notes; all text is escaped."""
        below = self._below()
        yield from self.table().html()
        yield f"<p>{'<br>'.join(map(html_text, below))}</p>\n" if below else ""

    def __str__(self) -> str:
        notes = (f"Note: {note}.\n" for note in self.notes)
        return "".join([*self.text(), *notes]).removesuffix("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show the table in Jupyter."""
        return "".join(self.html())

    def _below(self) -> list[str]:
        return [*self.legend(), *(f"Note: {note}." for note in self.notes)]


def json_fields(value: Any, *without: str) -> dict[str, Any]:
    """Return the fields of a dataclass for JSON, but for some: results as their documents."""
    from dataclasses import fields, is_dataclass  # which takes longer to import than Python to start

    def shown(one: Any) -> Any:
        if hasattr(one, "to_dict"):
            return one.to_dict()
        if isinstance(one, tuple):
            return list(map(shown, one))
        return json_fields(one) if is_dataclass(one) else one

    return {one.name: shown(getattr(value, one.name)) for one in fields(value) if one.name not in without}


def latex_document(
    whole: Table,
    legend: Iterable[str],
    notes: Sequence[str],
    signatures: Iterable[str],
    caption: str | None,
    label: str | None,
) -> Iterator[str]:
    r"""Write a tabular and, as comments, the packages it needs, the signatures, the legend and the notes.

    It needs booktabs and, to fit into the text of a page, adjustbox. The columns that a table names as
    ``not_printed`` are left out, with the lines of the legend that begin with their names; a comment says which.

    With a ``caption``, which is escaped, or a ``label`` it stands in a table environment, no wider than the text of
    the page, and the legend below it is typeset. A label alone has an empty caption, without which ``\ref`` would
    show the section's number.
    """
    left_out = [column.heading for column in whole.columns if column.heading in whole.not_printed]
    table = whole.without(left_out) if left_out else whole
    legend = [line for line in legend if line.partition(":")[0] not in left_out]
    below = [f"Note: {note}." for note in notes]
    if left_out:
        below.append(f"Left out, since a page is narrow: {', '.join(left_out)}. CSV and JSON have them.")
    is_set = caption is not None or label is not None
    yield f"% needs \\usepackage{{booktabs{',adjustbox' if is_set else ''}}}\n"
    yield from (f"% {line}\n" for line in signatures)
    if not is_set:
        yield from table.latex()
        yield from (f"% {line}\n" for line in (*legend, *below))
        return
    yield f"\\begin{{table}}\n\\centering\n\\caption{{{latex_text(visible(caption or ''))}}}\n"
    yield "" if label is None else f"\\label{{{label}}}\n"
    yield "\\begin{adjustbox}{max width=\\linewidth}\n"
    yield from table.latex()
    yield "\\end{adjustbox}\n"
    if typeset := [f"{latex_text(line)}\n" for line in legend if line]:
        yield "\n\\smallskip\n\\begin{minipage}{\\linewidth}\n\\footnotesize\n"
        yield from typeset
        yield "\\end{minipage}\n"
    yield "\\end{table}\n"
    yield from (f"% {line}\n" for line in below)


class Result(Tabular):
    """What a command has computed: a JSON document, tables for ``people`` and for ``programs``, and the legend.

    With ``as_tabs``, the text has the legend above the table, whose cells are separated by TABs in a pipe.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        people: Table,
        programs: Table | None = None,
        lines: Sequence[str] = (),
        as_tabs: bool = False,
    ) -> None:
        self.document, self.people, self.programs, self.lines, self.as_tabs = (
            document,
            people,
            programs,
            lines,
            as_tabs,
        )

    def table(self) -> Table:
        return self.people

    def records(self) -> Table:
        return self.programs or self.people

    def legend(self) -> Iterator[str]:
        return iter(self.lines)

    def to_dict(self) -> dict[str, Any]:
        return dict(self.document)

    def text(self, width: int | None = None) -> Iterator[str]:
        if not self.as_tabs:
            yield from Tabular.text(self, width)
            return
        rows = list(self.people.tabs() if width is None else self.people.terminal(width))
        yield from fitted([*self.lines, *([""] if self.lines and rows else ())], width)
        yield from rows


FORMATS = ("text", "json", "csv", "markdown", "latex", "html")  # methods of Tabular
ENDINGS = {"md": "markdown", "tex": "latex"}  # of formats with another name than their files' ending
FOR_PEOPLE = ("text", "markdown", "latex", "html")  # the others are for programs: all digits
UNSIGNED = ("text", "markdown", "html")  # the others have signatures, which cost time


def format_of(path: str, formats: Iterable[str] = FORMATS) -> str | None:
    """Return which of the formats the ending of a file names; None if it names none.

    >>> format_of("scores.md"), format_of("scores.csv"), format_of("scores")
    ('markdown', 'csv', None)
    """
    ending = path.rpartition(".")[2].lower()
    name = ENDINGS.get(ending, ending)
    return name if name in formats else None
