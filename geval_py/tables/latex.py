r"""Tables for LaTeX, with the package booktabs and, to fit into the text of a page, adjustbox.

The columns that a table names as ``not_printed`` are left out; a comment says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from geval_py.tables.escapes import latex_text
from geval_py.tables.layout import legend_without
from geval_py.tables.table import Table
from geval_py.text import visible


def document(
    whole: Table,
    legend: Iterable[str],
    notes: Sequence[str],
    signatures: Iterable[str],
    caption: str | None,
    label: str | None,
) -> Iterator[str]:
    r"""Write a tabular and, as comments, the packages it needs, the signatures, the legend and the notes.

    With a ``caption``, which is escaped, or a ``label`` it stands in a table environment, no wider than the text of
    the page, and the legend below it is typeset. A label alone has an empty caption, without which ``\ref`` would
    show the section's number.
    """
    left_out = [column.heading for column in whole.columns if column.heading in whole.not_printed]
    table = whole.without(left_out) if left_out else whole
    legend = legend_without(legend, set(left_out))
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
