"""The colours of charts: in a page by the names of its style sheet, so that dark works; in a notebook as they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from geval_py.explaining.losses import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """A colour for each part that a chart may have; ``legends`` tells whether charts draw their own legends."""

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
        """Give the colour of what became of a line."""
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

# What all charts of a report have in common: their width, their look, marks that are described in words.
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


# Axes with ticks of our own: on a logarithmic one, Vega's crowd.


NUMBER = "format(datum.value, ',~r')"  # an expression of Vega's for the labels of an axis


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Give round values for a logarithmic axis, at most some of them.

    >>> ticks(40.0, 3000.0), ticks(144.0, 159.0)
    ([100.0, 300.0, 1000.0, 3000.0], [145.0, 150.0, 155.0])
    """
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for factors in ((1,), (1, 3), (1, 2, 5)):
        inside = [f * 10.0**power for power in powers for f in factors if low <= f * 10.0**power <= high]
        if len(inside) > most and found:
            break
        found = inside
    return found[:: -(-len(found) // most) or 1] if len(found) > 1 else round_ticks(low, high, most)


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Give round values at equal distances, for what spans less than a power of ten."""
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (power * factor) <= most)
    return [round(n * step, 12) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def log_domain(values: Iterable[float | None]) -> list[float]:
    """Give the ends of a logarithmic axis that holds all values which are finite and above 0, with some room."""
    finite = [value for value in values if value is not None and math.isfinite(value) and value > 0]
    if not finite:
        return [1.0, 10.0]
    low, high = min(finite), max(finite)
    room = max((high / low) ** 0.06, 1.02)
    return [low / room, high * room]


def log_axis(domain: Sequence[float], title: str | None = "perplexity") -> alt.X:
    """Give a logarithmic axis below a chart, for the field ``value``."""
    low, high = domain
    return alt.X(
        "value:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=ticks(low, high), labelExpr=NUMBER, title=title, domain=False, ticks=False),
    )


def linear_domain(values: Iterable[float | None]) -> list[float]:
    """Give the ends of an axis that holds all values which are finite, with some room."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    room = (high - low) * 0.06 or 1.0
    return [low - room, high + room]


def linear_axis(domain: Sequence[float], title: str | None) -> alt.X:
    """Give an axis below a chart, for the field ``value``."""
    low, high = domain
    return alt.X(
        "value:Q",
        scale=alt.Scale(domain=[low, high], nice=False),
        axis=alt.Axis(values=round_ticks(low, high), labelExpr=NUMBER, title=title, domain=False, ticks=False),
    )
