"""What all charts of a report share: colours, size, fonts, axes.

A chart in a page names the variables of the page's style sheet as its colours, so that dark mode works; a chart in a
notebook has colours of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from geval_py.explaining.losses import Outcome
from geval_py.reports import scales


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

WIDTH = 400
FONT = 11
LABELS = 108  # pixels for the labels of rows
MOST_TICKS = 20  # with less, Vega would leave out some of our ticks
PERCENT = "format(100 * datum.value, '~g') + ' %'"  # an expression of Vega's for the labels of an axis
Chart = alt.LayerChart | alt.HConcatChart


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


# Axes with our own ticks: Vega's are too dense on a logarithmic axis


NUMBER = "format(datum.value, ',~r')"  # an expression of Vega's for the labels of an axis


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
