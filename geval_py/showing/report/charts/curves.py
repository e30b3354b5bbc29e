"""Charts of probabilities against what came true, with the band of honest ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt

from geval_py.showing.report.charts.axes import round_ticks
from geval_py.showing.report.charts.frame import PERCENT, WIDTH, Chart, data, described, layered
from geval_py.showing.report.wording import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from geval_py.explaining.calibration.forecasts import Points
    from geval_py.showing.report.palette import Palette

ABOVE = {"titleAngle": 0, "titleAlign": "left", "titleX": 0, "titleY": -9}  # a vertical axis's name, to be read
LEAST = 1e-4  # the least probability on a logarithmic axis


def reliability(
    points: Points, palette: Palette, *, x_name: str, y_name: str, logarithmic: bool = False, steps: bool = False
) -> Chart:
    """Draw what came true by the probability that was given, the diagonal, and the band of honest probabilities.

    Points outside of the band are in the colour of what is bad. ``steps`` joins the points, which are the ends of the
    steps of a curve, in place of dots.
    """
    low = _least(points) if logarithmic else 0.0
    right, top = (1.0, 1.0) if logarithmic else (quarters(points.x), quarters([*points.y, *points.high]))
    x, y = alt.X("x:Q", **_axis(x_name, low, right)), alt.Y("y:Q", **_axis(y_name, low, top, **ABOVE))
    values = data(_row(row, low, palette) for row in points.rows())
    ends = data([{"x": end, "y": end} for end in (low, min(right, top))])
    diagonal = alt.Chart(ends).mark_line(color=palette.soft, strokeDash=[3, 3], strokeWidth=1, aria=False)
    band = alt.Chart(values).mark_area(color=palette.accent, opacity=0.16, aria=False)
    layers = [band.encode(x=x, y=alt.Y("low:Q"), y2="high:Q"), diagonal.encode(x=x, y=y)]
    layers += _curve(values, x, y, palette) if steps else _dots(values, x, y, palette)
    return layered(layers, palette, width=WIDTH - 60, height=200)


def _curve(values: alt.InlineData, x: alt.X, y: alt.Y, palette: Palette) -> Iterator[alt.Chart]:
    yield alt.Chart(values).mark_line(color=palette.accent, strokeWidth=2.5, aria=False).encode(x=x, y=y)
    hidden = alt.Chart(values).mark_circle(color=palette.accent, size=16, opacity=1)
    yield hidden.encode(x=x, y=y, **described())


def _dots(values: alt.InlineData, x: alt.X, y: alt.Y, palette: Palette) -> Iterator[alt.Chart]:
    yield alt.Chart(values).mark_line(color=palette.accent, strokeWidth=1, aria=False).encode(x=x, y=y)
    dots = alt.Chart(values).mark_circle(size=70, opacity=1, stroke=palette.raised, strokeWidth=1)
    yield dots.encode(x=x, y=y, color=alt.Color("colour:N", scale=None), **described())


def _row(row: dict[str, float], least: float, palette: Palette) -> dict[str, Any]:
    outside = not row["low"] <= row["y"] <= row["high"]
    drawn: dict[str, Any] = {name: min(1.0, max(least, row[name])) for name in ("x", "y", "low", "high")}
    found = f"given {percent(row['x'])}, true {percent(row['y'])}"
    said = f"{found}, honest {percent(row['low'])} to {percent(row['high'])}, of {row['n']:,}"
    return drawn | {"said": said, "colour": palette.bad if outside else palette.accent}


def _least(points: Points) -> float:
    """Give the power of ten at which a logarithmic axis begins: below what is above 0, but for what is very small."""
    least = min((value for value in (*points.x, *points.y) if value > 0), default=LEAST)
    return max(LEAST, 10.0 ** math.floor(math.log10(least)))


def quarters(values: Sequence[float]) -> float:
    """Give the least quarter of 1 that is not below any of some shares.

    >>> quarters([0.12, 0.31]), quarters([])
    (0.5, 0.25)
    """
    return max(0.25, math.ceil(max(values, default=0.0) * 4) / 4)


def _axis(name: str, low: float, high: float, **placed: Any) -> dict[str, Any]:
    """Give the scale and the axis of probabilities; one that begins above 0 is logarithmic."""
    powers = [10.0**power for power in range(-4, 1)]
    axis = alt.Axis(
        values=[value for value in powers if value >= low] if low else round_ticks(0.0, high),
        labelExpr=PERCENT,
        title=name,
        domain=False,
        ticks=False,
        labelOverlap=False,
        **placed,
    )
    return {"scale": alt.Scale(type="log" if low else "linear", domain=[low, high], nice=False), "axis": axis}
