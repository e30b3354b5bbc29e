"""The panels of a page, and how figures are written in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from geval_py.explaining.losses import Outcome
from geval_py.reports.drawing import Chart
from geval_py.scoring.metrics.base import exp
from geval_py.tables.table import Column, Table, written

OUTCOMES = {
    Outcome.RIGHT: "first guess right",
    Outcome.LISTED: "listed, not first",
    Outcome.MISSED: "not listed",
    Outcome.NO_GUESS: "no guess",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A question and its answer: a sentence, a chart (None without anything to draw), its data, the method.

    ``key`` is its name in links and files. ``finding`` is a shorter sentence for the head of the page, "" for none.
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
class Key:
    """An entry of a chart's legend: a colour, by its name in the style sheet, and its meaning."""

    colour: str
    text: str


def table_of(head: Iterable[tuple[str, str]], rows: Iterable[Sequence[object]]) -> Table:
    """Return the table of a panel; ``head`` has each column's name and kind: text, count, figure or share."""
    return Table([COLUMNS[kind](name) for name, kind in head], list(rows))


COLUMNS = {
    "text": lambda name: Column(name=name, write=written),
    "count": lambda name: Column(name=name, alignment="right", write="{:,}".format),
    "figure": lambda name: Column(name=name, alignment="right", write=figure),
    "share": lambda name: Column(name=name, alignment="right", write=percent),
}


def figure(value: float | None) -> str:
    """Write a figure with three digits, or all digits before the point; a dash for None and NaN.

    >>> figure(2311.7), figure(41.54), figure(4.4), figure(0.05231), figure(None), figure(float("inf"))
    ('2,312', '41.5', '4.40', '0.0523', '–', '∞')
    """
    if value is None or math.isnan(value):
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        return f"{value:.2e}".replace("-", "−")
    decimals = 0 if size >= 99.95 or not size else max(0, 2 - math.floor(math.log10(size)))
    return f"{value:,.{decimals}f}".replace("-", "−")


def perplexity(loss: float | None) -> str:
    """Write a mean loss, in nats, as a perplexity."""
    return "–" if loss is None else figure(exp(loss))


def percent(share: float) -> str:
    """Write a share as a percentage.

    >>> percent(0.4449), percent(0.0589), percent(0.0), percent(0.0004)
    ('44 %', '5.9 %', '0 %', '<0.1 %')
    """
    if 0 < share < 0.0005:
        return "<0.1 %"
    written = f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"
    return f"{written.removesuffix('.0')} %"


def p_text(p: float) -> str:
    """Write a p or q value.

    >>> p_text(0.00001), p_text(0.012)
    ('<0.001', '0.012')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
