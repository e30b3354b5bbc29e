"""Charts of probabilities against what came true, with the band of honest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from geval_py.showing.report.charts import PERCENT, WIDTH, Chart, data, described, layered
from geval_py.showing.report.wording import percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from geval_py.explaining.calibration.forecasts import Points
    from geval_py.showing.report.palette import Palette

LEAST = 1e-4  # the least probability on a logarithmic axis


def reliability(
    points: Points, palette: Palette, *, x_name: str, y_name: str, logarithmic: bool = False, steps: bool = False
) -> Chart:
    """Draw what came true by the probability that was given, the diagonal, and the band of honest probabilities.

    Points outside of the band are in the colour of what is bad. ``steps`` joins the points, which are the ends of the
    steps of a curve, in place of dots.
    """
    x, y = (_axis(field, name, logarithmic) for field, name in (("x:Q", x_name), ("y:Q", y_name)))
    values = data(_row(row, logarithmic, palette) for row in points.rows())
    ends = data([{"x": end, "y": end} for end in (LEAST if logarithmic else 0.0, 1.0)])
    diagonal = alt.Chart(ends).mark_line(color=palette.soft, strokeDash=[3, 3], strokeWidth=1, aria=False)
    band = alt.Chart(values).mark_area(color=palette.accent, opacity=0.16, aria=False)
    layers = [band.encode(x=x, y=alt.Y("low:Q"), y2="high:Q"), diagonal.encode(x=x, y=y)]
    layers += _curve(values, x, y, palette) if steps else _dots(values, x, y, palette)
    return layered(layers, palette, width=WIDTH - 60, height=230)


def _curve(values: alt.InlineData, x: alt.X, y: alt.Y, palette: Palette) -> Iterator[alt.Chart]:
    yield alt.Chart(values).mark_line(color=palette.accent, strokeWidth=2.5, aria=False).encode(x=x, y=y)
    hidden = alt.Chart(values).mark_circle(color=palette.accent, size=16, opacity=1)
    yield hidden.encode(x=x, y=y, **described())


def _dots(values: alt.InlineData, x: alt.X, y: alt.Y, palette: Palette) -> Iterator[alt.Chart]:
    yield alt.Chart(values).mark_line(color=palette.accent, strokeWidth=1, aria=False).encode(x=x, y=y)
    dots = alt.Chart(values).mark_circle(size=70, opacity=1, stroke=palette.raised, strokeWidth=1)
    yield dots.encode(x=x, y=y, color=alt.Color("colour:N", scale=None), **described())


def _row(row: dict[str, float], logarithmic: bool, palette: Palette) -> dict[str, Any]:
    least = LEAST if logarithmic else 0.0
    outside = not row["low"] <= row["y"] <= row["high"]
    drawn: dict[str, Any] = {name: min(1.0, max(least, row[name])) for name in ("x", "y", "low", "high")}
    said = (
        f"given {percent(row['x'])}, true {percent(row['y'])}, honest {percent(row['low'])} to {percent(row['high'])}"
    )
    return drawn | {"said": f"{said}, of {row['n']:,}", "colour": palette.bad if outside else palette.accent}


def _axis(field: str, name: str, logarithmic: bool) -> Any:
    """Give the axis of a field of probabilities, from 0 or, where it is logarithmic, 0.01 %, to 1."""
    kind = alt.X if field.startswith("x") else alt.Y
    values = [LEAST, 1e-3, 1e-2, 0.1, 1.0] if logarithmic else [0.0, 0.25, 0.5, 0.75, 1.0]
    scale = alt.Scale(type="log" if logarithmic else "linear", domain=[values[0], 1.0], nice=False)
    return kind(
        field,
        scale=scale,
        axis=alt.Axis(
            values=values,
            labelExpr=PERCENT,
            title=name,
            domain=False,
            ticks=False,
        ),
    )
