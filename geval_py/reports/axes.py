"""What the charts and the panels of a report share.

First the look of all charts: colours, size, fonts, and axes with our own ticks, since Vega's are too dense on a
logarithmic axis. A chart in a page names the variables of the page's style sheet as its colours, so that dark mode
works; a chart in a notebook has colours of its own. Then the panels of a page, and how figures are written in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from geval_py.explaining.losses import Outcome
from geval_py.reports import scales
from geval_py.scoring.metrics.base import exp
from geval_py.tables.table import Column, Table, written

WIDTH = 400
FONT = 11
LABELS = 108  # pixels for the labels of rows
MOST_TICKS = 20  # with less, Vega would leave out some of our ticks
NUMBER = "format(datum.value, ',~r')"  # an expression of Vega's for the labels of an axis
PERCENT = "format(100 * datum.value, '~g') + ' %'"  # an expression of Vega's for the labels of an axis
Chart = alt.LayerChart | alt.HConcatChart


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """A colour for each part of charts; with ``legends``, charts draw their own legends."""

    ground: str
    raised: str
    ink: str
    soft: str
    line: str
    track: str
    accent: str
    good: str
    listed: str
    bad: str
    none: str
    on_fill: str
    legends: bool

    def of_outcome(self, outcome: Outcome) -> str:
        """Return the colour of the outcome of a line."""
        return (self.good, self.listed, self.bad, self.none)[outcome]


PAGE = Palette(
    ground="transparent",
    raised="var(--raised)",
    ink="var(--ink)",
    soft="var(--soft)",
    line="var(--line)",
    track="var(--track)",
    accent="var(--accent)",
    good="var(--good)",
    listed="var(--listed)",
    bad="var(--bad)",
    none="var(--none)",
    on_fill="var(--on-fill)",
    legends=False,
)
NOTEBOOK = Palette(
    ground="#ffffff",
    raised="#ffffff",
    ink="#17191c",
    soft="#555a61",
    line="#e2e0d8",
    track="#cfccc3",
    accent="#1c5fb0",
    good="#10765c",
    listed="#3a78bd",
    bad="#c2560c",
    none="#6b7078",
    on_fill="#ffffff",
    legends=True,
)


def data(rows: Iterable[dict[str, Any]]) -> alt.InlineData:
    """Return rows as the data of a chart."""
    return alt.InlineData(values=list(rows))


def described() -> dict[str, Any]:
    """Return the channels that describe a mark by the field ``said``, as a tooltip and for screen readers."""
    return {"description": alt.Description("said:N"), "tooltip": alt.Tooltip("said:N", title=" ")}


def look(palette: Palette) -> alt.Config:
    """Return the look of all charts: no frame, thin lines, the palette's colours."""
    axis = alt.AxisConfig(
        labelColor=palette.soft,
        titleColor=palette.soft,
        gridColor=palette.line,
        domainColor=palette.line,
        tickColor=palette.line,
        labelFontSize=FONT,
        titleFontSize=FONT,
        titleFontWeight="normal",
        labelLimit=LABELS + 8,
        labelPadding=5,
        titlePadding=7,
        tickCount=MOST_TICKS,
    )
    legend = alt.LegendConfig(orient="bottom", columns=2, labelFontSize=FONT, labelColor=palette.ink)
    view = alt.ViewConfig(stroke=None)
    return alt.Config(background=palette.ground, padding=2, font="sans-serif", axis=axis, legend=legend, view=view)


def layered(layers: Iterable[alt.Chart], palette: Palette, *, width: int, height: int) -> alt.LayerChart:
    """Draw charts over each other, the first at the bottom; sizes in pixels."""
    return alt.LayerChart(layer=list(layers), width=width, height=height, config=look(palette))


def log_axis(domain: Sequence[float], title: str | None = "perplexity") -> alt.X:
    """Return a logarithmic axis below a chart, for the field ``value``."""
    low, high = domain
    return alt.X(
        "value:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=scales.log_ticks(low, high), labelExpr=NUMBER, title=title, domain=False, ticks=False),
    )


def linear_axis(domain: Sequence[float], title: str | None) -> alt.X:
    """Return a linear axis below a chart, for the field ``value``."""
    low, high = domain
    return alt.X(
        "value:Q",
        scale=alt.Scale(domain=[low, high], nice=False),
        axis=alt.Axis(values=scales.round_ticks(low, high), labelExpr=NUMBER, title=title, domain=False, ticks=False),
    )


# Panels, and figures in sentences

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
