"""Lines, a row each, as GEval shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from geval_py.showing.escapes import terminal_text
from geval_py.showing.numbers import plain
from geval_py.showing.tables import Column, Table

if TYPE_CHECKING:
    from geval_py.explaining.lines import Line, LineDifference
    from geval_py.showing.features import Marker

AT_A_TIME = 8  # rows that are written at once: few, since a line may have megabytes


def lines_table(lines: Iterable[Line], *, for_terminal: bool = False) -> Table:
    """Make a table with a row a line: score, input, expected, output."""
    rows = ((score, *item) for _, score, _, item in lines)
    return Table(_columns(["input", "expected", "output"], for_terminal), rows, at_a_time=AT_A_TIME)


def marked_table(lines: Iterable[Line], marker: Marker) -> Table:
    """Make the same table with marks on the words, for a terminal."""
    rows = ((score, *marker.item(item)) for _, score, _, item in lines)
    return Table(_columns(["input", "expected", "output"], for_terminal=False), rows, at_a_time=AT_A_TIME)


def differences_table(differences: Iterable[LineDifference], *, for_terminal: bool = False) -> Table:
    """Make a table with a row a line in two outputs: the difference, input, expected, the other's output, this."""
    rows = (
        (difference, line.item.input, line.item.expected, other.item.output, line.item.output)
        for difference, line, other in differences
    )
    return Table(_columns(["input", "expected", "other output", "output"], for_terminal), rows, at_a_time=AT_A_TIME)


def _columns(texts: Iterable[str], for_terminal: bool) -> list[Column]:
    """Give the column of scores, and those of texts: as they stand, or without what a terminal would act on."""
    write = terminal_text if for_terminal else str
    return [Column(name="score", alignment="right", write=plain), *(Column(name=name, write=write) for name in texts)]
