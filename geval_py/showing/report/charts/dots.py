"""A chart of rows: in each a dot with its interval, and a bar of the number of lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from geval_py.showing.report.charts.axes import linear_axis, linear_domain, log_axis, log_domain
from geval_py.showing.report.charts.frame import LABELS, WIDTH, Chart, data, described, layered, look
from geval_py.showing.report.palette import Palette
from geval_py.showing.report.wording import figure
from geval_py.showing.templating import short

COUNTS = 44  # pixels for bars of numbers of lines
ROW = 23
MOST_LABEL = 15  # characters
LEAST_LINES = 10  # of a row whose interval is drawn whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a chart: its label, a value and its interval, how many lines it is of, in words; its colour.

    ``points`` are other values, drawn small.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    lines: int | None = None
    said: str
    colour: str = ""
    points: tuple[float, ...] = ()


def unique_labels(labels: Iterable[str], limit: int = MOST_LABEL) -> list[str]:
    """Shorten labels, and number those that became the same: a row of a chart has a label of its own."""
    found: list[str] = []
    for label in labels:
        cut, number = short(label, limit), 1
        while cut in found:
            number += 1
            cut = f"{short(label, limit - 3)} {number}"
        found.append(cut)
    return found


def dots(
    rows: Sequence[Row],
    palette: Palette,
    *,
    rule: float | None = None,
    rule_name: str = "all lines",
    title: str = "perplexity",
    logarithmic: bool = True,
) -> Chart:
    """Draw a dot with its interval in each row; in front, bars of the numbers of lines, if the rows have these.

    ``rule`` is a value that is drawn through all rows, such as that of all lines.
    """
    labels = unique_labels(row.label for row in rows)
    values = data(_row(row, label, palette) for row, label in zip(rows, labels, strict=True))
    sure = [row for row in rows if row.lines is None or row.lines >= LEAST_LINES]  # who has few has a wide interval
    ends = [
        rule,
        *(value for row in rows for value in (row.value, *row.points)),
        *(end for row in sure for end in (row.low, row.high)),
    ]
    domain = log_domain(ends) if logarithmic else linear_domain(ends)
    x = log_axis(domain, title) if logarithmic else linear_axis(domain, title)
    small = [
        {"label": label, "value": point} for row, label in zip(rows, labels, strict=True) for point in row.points
    ]
    axis = alt.Axis(title=None, domain=False, ticks=False, minExtent=LABELS, maxExtent=LABELS, labelColor=palette.ink)
    height = ROW * len(rows)
    if not any(row.lines is not None for row in rows):
        y = alt.Y("label:N", sort=labels, axis=axis)
        layers = list(_dot_layers(values, x, y, palette, rule, rule_name))
        if small:
            ticks_of_points = alt.Chart(data(small)).mark_tick(color=palette.soft, height=9, opacity=0.7, aria=False)
            layers.append(ticks_of_points.encode(x=x, y=y))
        return layered(layers, palette, width=WIDTH - LABELS - 12, height=height)
    hidden = alt.Y("label:N", sort=labels, axis=None)
    right = alt.LayerChart(
        layer=list(_dot_layers(values, x, hidden, palette, rule, rule_name)),
        width=WIDTH - LABELS - COUNTS - 24,
        height=height,
    )
    left = _count_bars(values, alt.Y("label:N", sort=labels, axis=axis), palette, height)
    return alt.HConcatChart(hconcat=[left, right], spacing=12, config=look(palette))


def _dot_layers(
    values: alt.InlineData, x: alt.X, y: alt.Y, palette: Palette, rule: float | None, rule_name: str
) -> Iterator[alt.Chart]:
    if rule is not None:
        row = data([{"value": rule, "said": f"{rule_name}: {figure(rule)}"}])
        yield alt.Chart(row).mark_rule(color=palette.soft, strokeDash=[3, 3]).encode(x=x, **described())
    base, colour = alt.Chart(values), alt.Color("colour:N", scale=None)
    intervals = base.transform_filter("isValid(datum.low)").transform_calculate(value="datum.low")
    thick = intervals.mark_rule(strokeWidth=2.5, strokeOpacity=0.55, clip=True, aria=False)
    yield thick.encode(x=x, x2="high:Q", y=y, color=colour)
    yield base.mark_circle(size=60, opacity=1).encode(x=x, y=y, color=colour, **described())


def _count_bars(values: alt.InlineData, y: alt.Y, palette: Palette, height: int) -> alt.Chart:
    """Draw the numbers of lines, small, with the word below them in place of a scale."""
    axis = alt.Axis(
        values=[0], labelExpr="'lines'", labelAlign="left", grid=False, domain=False, ticks=False, title=None
    )
    bar: alt.Chart = alt.Chart(values, width=COUNTS, height=height).mark_bar(height=11, color=palette.track)
    return bar.encode(x=alt.X("lines:Q", axis=axis), y=y, description=alt.Description("counted:N"))


def _row(row: Row, label: str, palette: Palette) -> dict[str, Any]:
    bounded = all(end is not None and math.isfinite(end) for end in (row.low, row.high))
    return {
        "label": label,
        "value": row.value if math.isfinite(row.value) else None,
        "low": row.low if bounded else None,
        "high": row.high if bounded else None,
        "lines": row.lines,
        "said": row.said,
        "counted": f"{short(row.label)}: {row.lines} lines",
        "colour": row.colour or palette.accent,
    }
