"""What a panel is, and a section of panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from geval_py.showing.report.wording import figure, percent
from geval_py.showing.tables import Column, Table, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from geval_py.showing.report.charts.frame import Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An entry of a chart's legend: a colour, by its name in the style sheet, and what it stands for."""

    colour: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A question and its answer: a sentence, a chart (None where there is nothing to draw), its data, how it is made.

    ``key`` is its name in addresses and files. ``finding`` is a shorter sentence for the head of the page, "" for
    none.
    """

    key: str
    question: str
    sentence: str
    chart: Chart | None
    table: Table
    method: str
    legend: tuple[Key, ...] = ()
    finding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


def table_of(head: Iterable[tuple[str, str]], rows: Iterable[Sequence[object]]) -> Table:
    """Make the table of a panel: of each column its name, and what its values are.

    They are a "text", a "count", a "figure" or a "share".
    """
    return Table([_COLUMNS[kind](name) for name, kind in head], list(rows))


_COLUMNS = {
    "text": lambda name: Column(name=name, write=written),
    "count": lambda name: Column(name=name, alignment="right", write="{:,}".format),
    "figure": lambda name: Column(name=name, alignment="right", write=figure),
    "share": lambda name: Column(name=name, alignment="right", write=percent),
}
