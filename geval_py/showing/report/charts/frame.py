"""What all charts of a report have in common: their width, their look, marks that are described in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt

from geval_py.showing.report.palette import Palette

WIDTH = 400
FONT = 11
LABELS = 108  # pixels for the labels of rows
MOST_TICKS = 20  # beyond which Vega would leave some of ours out
PERCENT = "format(100 * datum.value, '~g') + ' %'"  # an expression of Vega's for the labels of an axis

Chart = alt.LayerChart | alt.HConcatChart


def data(rows: Iterable[dict[str, Any]]) -> alt.InlineData:
    """Give rows to a chart as they are."""
    return alt.InlineData(values=list(rows))


def described() -> dict[str, Any]:
    """Describe a mark by the field ``said``."""
    return {"description": alt.Description("said:N"), "tooltip": alt.Tooltip("said:N", title=" ")}


def look(palette: Palette) -> alt.Config:
    """Give the look of all charts: no frame, thin lines, the page's colours."""
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
    """Lay charts over each other, the first at the bottom, in so many pixels."""
    return alt.LayerChart(layer=list(layers), width=width, height=height, config=look(palette))
