"""The kinds of charts in a report: reliability curves, histograms, joined bars, bars, rows of dots with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt

from geval_py.explaining.significance import LEAST_LINES
from geval_py.reports import axes, scales
from geval_py.reports.axes import FONT, Chart, Palette, data, described, figure, layered, percent
from geval_py.tables.escapes import short
from geval_py.tables.numbers import counted

if TYPE_CHECKING:
    from geval_py.explaining.reliability import Points


# Reliability: probabilities against frequencies, with the band of honest probabilities


ABOVE = {"titleAngle": 0, "titleAlign": "left", "titleX": 0, "titleY": -9}  # a vertical axis's name, written level
LEAST = 1e-4  # the least probability on a logarithmic axis
COUNTS = 44  # pixels for bars of numbers of lines
ROW = 23
MOST_LABEL = 15  # characters


def reliability(
    points: Points, palette: Palette, *, x_name: str, y_name: str, logarithmic: bool = False, steps: bool = False
) -> Chart:
    """Draw frequencies against the given probabilities, the diagonal, and the band of honest probabilities.

    Points outside of the band are drawn in the palette's bad colour. With ``steps``, the points are the ends of the
    steps of a curve, and are joined instead of drawn as dots.
    """
    least = min((value for value in (*points.x, *points.y) if value > 0), default=LEAST)
    low = max(LEAST, 10.0 ** math.floor(math.log10(least))) if logarithmic else 0.0
    right, top = (1.0, 1.0) if logarithmic else (quarters(points.x), quarters([*points.y, *points.high]))
    x, y = alt.X("x:Q", **_axis(x_name, low, right)), alt.Y("y:Q", **_axis(y_name, low, top, **ABOVE))
    values = data(_reliability_row(row, low, palette) for row in points.rows())
    ends = data([{"x": end, "y": end} for end in (low, min(right, top))])
    diagonal = alt.Chart(ends).mark_line(color=palette.soft, strokeDash=[3, 3], strokeWidth=1, aria=False)
    band = alt.Chart(values).mark_area(color=palette.accent, opacity=0.16, aria=False)
    layers = [band.encode(x=x, y=alt.Y("low:Q"), y2="high:Q"), diagonal.encode(x=x, y=y)]
    layers += _curve(values, x, y, palette) if steps else _dots(values, x, y, palette)
    return layered(layers, palette, width=axes.WIDTH - 60, height=200)


def _curve(values: alt.InlineData, x: alt.X, y: alt.Y, palette: Palette) -> Iterator[alt.Chart]:
    yield alt.Chart(values).mark_line(color=palette.accent, strokeWidth=2.5, aria=False).encode(x=x, y=y)
    hidden = alt.Chart(values).mark_circle(color=palette.accent, size=16, opacity=1)
    yield hidden.encode(x=x, y=y, **described())


def _dots(values: alt.InlineData, x: alt.X, y: alt.Y, palette: Palette) -> Iterator[alt.Chart]:
    yield alt.Chart(values).mark_line(color=palette.accent, strokeWidth=1, aria=False).encode(x=x, y=y)
    dots = alt.Chart(values).mark_circle(size=70, opacity=1, stroke=palette.raised, strokeWidth=1)
    yield dots.encode(x=x, y=y, color=alt.Color("colour:N", scale=None), **described())


def _reliability_row(row: dict[str, float], least: float, palette: Palette) -> dict[str, Any]:
    outside = not row["low"] <= row["y"] <= row["high"]
    drawn: dict[str, Any] = {name: min(1.0, max(least, row[name])) for name in ("x", "y", "low", "high")}
    found = f"given {percent(row['x'])}, true {percent(row['y'])}"
    said = f"{found}, honest {percent(row['low'])} to {percent(row['high'])}, of {row['n']:,}"
    return drawn | {"said": said, "colour": palette.bad if outside else palette.accent}


def quarters(values: Sequence[float]) -> float:
    """Return the least multiple of 1/4 that no share exceeds, at least 1/4.

    >>> quarters([0.12, 0.31]), quarters([])
    (0.5, 0.25)
    """
    return max(0.25, math.ceil(max(values, default=0.0) * 4) / 4)


def _axis(name: str, low: float, high: float, **placed: Any) -> dict[str, Any]:
    """Return the scale and the axis of probabilities; logarithmic if it begins above 0."""
    powers = [10.0**power for power in range(-4, 1)]
    axis = alt.Axis(
        values=[value for value in powers if value >= low] if low else scales.round_ticks(0.0, high),
        labelExpr=axes.PERCENT,
        title=name,
        domain=False,
        ticks=False,
        labelOverlap=False,
        **placed,
    )
    return {"scale": alt.Scale(type="log" if low else "linear", domain=[low, high], nice=False), "axis": axis}


# Shares: histogram, joined bars, bars with a text above them


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a bar or histogram, from ``start`` to ``end`` along its axis; ``share`` is its height or its size.

    ``said`` describes it in words.
    """

    start: float
    end: float
    share: float
    name: str
    colour: str
    said: str


def _colours(blocks: Sequence[Block], palette: Palette) -> alt.Color:
    colours = {block.name: block.colour for block in blocks}
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    legend = alt.Legend(title=None, symbolType="square", symbolOpacity=1) if palette.legends else None
    return alt.Color("name:N", scale=scale, legend=legend)


def histogram(
    blocks: Sequence[Block], marks: Sequence[tuple[float, str]], palette: Palette, title: str | None = None
) -> Chart:
    """Draw shares of the lines by their loss, stacked by colour; ``marks`` name losses, such as the mean.

    With a ``title``, the figures are not losses but have this name, and the axis begins at the least of them.
    """
    rows = ({"low": b.start, "high": b.end, "share": b.share, "name": b.name, "order": n, "said": b.said}
            for n, b in enumerate(blocks))  # fmt: skip
    highest = max([block.end for block in blocks] + [at for at, _ in marks], default=1.0)
    lowest = 0.0 if title is None else min([block.start for block in blocks], default=0.0)
    # Two rows of labels: nats, and below them the perplexity of a line with that loss.
    two = "[format(datum.value, '~g'), format(exp(datum.value), exp(datum.value) < 1e4 ? ',.0f' : '.0s')]"
    x = alt.X("low:Q", bin=alt.BinParams(binned=True), scale=alt.Scale(domain=[lowest, highest], nice=False),
              axis=alt.Axis(values=scales.round_ticks(lowest, highest, 6),
                            labelExpr=two if title is None else axes.NUMBER,
                            grid=False, ticks=False,
                            title=title or "loss of the line in nats; below, its perplexity"))  # fmt: skip
    y = alt.Y("share:Q", axis=alt.Axis(labelExpr=axes.PERCENT, title=None, domain=False, ticks=False, tickCount=4))
    bars = alt.Chart(data(rows)).mark_bar(binSpacing=1).encode(
        x=x, x2="high:Q", y=y, color=_colours(blocks, palette), order=alt.Order("order:Q"), **described()
    )  # fmt: skip
    layers: list[alt.Chart] = [bars]
    for number, (at, name) in enumerate(sorted(marks)):
        row = data([{"at": at, "said": f"{name}: {figure(at)}{' nats' if title is None else ''}"}])
        rule = alt.Chart(row).mark_rule(color=palette.ink, strokeDash=[3, 3]).encode(x="at:Q", **described())
        reach = (at - lowest) / ((highest - lowest) or 1.0)
        to_the_left = (not number and (title is None or reach > 0.1)) or reach > 0.7
        above = -20 if number and to_the_left else -7  # so that two names do not overlap
        text = alt.Chart(row).mark_text(
            text=name, align="right" if to_the_left else "left", fontSize=FONT, color=palette.ink, aria=False
        )
        layers += [rule, text.encode(x="at:Q", y=alt.value(above))]
    return layered([*layers], palette, width=axes.WIDTH - 48, height=190)


def joined_bars(above: Sequence[Block], below: Sequence[Block], names: tuple[str, str], palette: Palette) -> Chart:
    """Draw two bars, each divided into shares of 1, and join the parts of the same name by ribbons."""
    tall, gap = 0.34, 0.32  # of the height
    rows = [
        {"start": b.start, "end": b.end, "name": b.name, "said": b.said, "top": top, "bottom": top - tall,
         "middle": (b.start + b.end) / 2, "text": percent(b.share) if b.share >= 0.09 else ""}
        for blocks, top in ((above, 1.0), (below, tall)) for b in blocks
    ]  # fmt: skip
    ribbons = [
        {"start": b.start, "end": b.end, "name": b.name, "y": y}
        for blocks, y in ((above, tall + gap), (below, tall)) for b in blocks
    ]  # fmt: skip
    hidden_x = alt.X("start:Q", axis=None, scale=alt.Scale(domain=[0, 1]))
    colours = _colours([*above, *below], palette)
    ribbon = alt.Chart(data(ribbons)).mark_area(orient="horizontal", opacity=0.16, aria=False).encode(
        x=hidden_x, x2="end:Q", y=alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, 1])), color=colours
    )  # fmt: skip
    bars = alt.Chart(data(rows)).mark_rect(stroke=palette.raised).encode(
        x=hidden_x, x2="end:Q", y=alt.Y("bottom:Q", axis=None), y2="top:Q", color=colours, **described()
    )  # fmt: skip
    texts = alt.Chart(data(rows)).mark_text(
        color=palette.on_fill, fontSize=FONT, fontWeight="bold", baseline="middle", aria=False
    ).encode(x=alt.X("middle:Q", axis=None), y=alt.Y("centre:Q", axis=None), text="text:N").transform_calculate(
        centre="(datum.top + datum.bottom) / 2")  # fmt: skip
    heads = alt.Chart(data({"y": y, "text": name} for y, name in zip((1.0, tall), names, strict=True))).mark_text(
        align="left", baseline="bottom", dy=-3, fontSize=FONT, color=palette.ink, aria=False
    ).encode(x=alt.value(0), y=alt.Y("y:Q", axis=None), text="text:N")  # fmt: skip
    return layered([ribbon, bars, texts, heads], palette, width=axes.WIDTH - 4, height=140)


def bars(rows: Sequence[Row], palette: Palette, right: Sequence[str]) -> Chart:
    """Draw a bar in each row, with its label above and a text at the right; values and intervals are shares."""
    values = [
        {"row": number, "label": short(row.label, 30), "value": row.value, "low": row.low, "high": row.high,
         "right": text, "said": row.said, "colour": row.colour or palette.bad}
        for number, (row, text) in enumerate(zip(rows, right, strict=True))
    ]  # fmt: skip
    highest = max([row.high or row.value for row in rows], default=0.0) * 1.04 or 1.0
    lowest = min([row.low if row.low is not None else row.value for row in rows] + [0.0])
    base = alt.Chart(data(values))
    y = alt.Y("row:O", axis=None, scale=alt.Scale(paddingInner=0.0, paddingOuter=0.1))
    domain = alt.Scale(domain=[lowest, highest], nice=False)
    axis = alt.Axis(
        values=scales.round_ticks(lowest, highest), labelExpr=axes.PERCENT, title=None, domain=False, ticks=False
    )
    drawn = base.mark_bar(height=7, yOffset=6).encode(
        y=y, x=alt.X("value:Q", scale=domain, axis=axis), color=alt.Color("colour:N", scale=None), **described()
    )  # fmt: skip
    spans = base.mark_rule(yOffset=6, color=palette.ink, strokeWidth=1.3, aria=False).encode(
        y=y, x=alt.X("low:Q", scale=domain, axis=axis), x2="high:Q"
    ).transform_filter("isValid(datum.low)")  # fmt: skip
    texts = base.mark_text(
        align="left", baseline="middle", dy=-6, fontSize=FONT, color=palette.ink, aria=False
    ).encode(y=y, x=alt.value(0), text="label:N")
    width = axes.WIDTH - 12
    notes = base.mark_text(
        align="right", baseline="middle", dy=-6, fontSize=FONT, color=palette.soft, aria=False
    ).encode(y=y, x=alt.value(width), text="right:N")
    height = 31 * len(rows)
    return layered([drawn, spans, texts, notes], palette, width=width, height=height)


# Rows of dots with intervals, and bars of the numbers of lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a chart: a label, a value and its interval, the number of lines it stands for, its colour.

    ``said`` describes it in words. ``points`` are other values, drawn small.
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
    """Shorten labels and number equal ones: Vega merges rows with equal labels."""
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
    """Draw a dot with its interval in each row and, if the rows have numbers of lines, bars of these at the left.

    ``rule`` is a value drawn through all rows, such as the value of all lines.
    """
    labels = unique_labels(row.label for row in rows)
    values = data(_dot_row(row, label, palette) for row, label in zip(rows, labels, strict=True))
    sure = [row for row in rows if row.lines is None or row.lines >= LEAST_LINES]  # others have too wide intervals
    ends = [
        rule,
        *(value for row in rows for value in (row.value, *row.points)),
        *(end for row in sure for end in (row.low, row.high)),
    ]
    if logarithmic:
        x = axes.log_axis(scales.log_domain(ends), title)
    else:
        x = axes.linear_axis(scales.linear_domain(ends), title)
    small = [
        {"label": label, "value": point} for row, label in zip(rows, labels, strict=True) for point in row.points
    ]
    axis = alt.Axis(
        title=None, domain=False, ticks=False, minExtent=axes.LABELS, maxExtent=axes.LABELS, labelColor=palette.ink
    )
    height = ROW * len(rows)
    if not any(row.lines is not None for row in rows):
        y = alt.Y("label:N", sort=labels, axis=axis)
        layers = list(_dot_layers(values, x, y, palette, rule, rule_name))
        if small:
            ticks_of_points = alt.Chart(data(small)).mark_tick(color=palette.soft, height=9, opacity=0.7, aria=False)
            layers.append(ticks_of_points.encode(x=x, y=y))
        return layered(layers, palette, width=axes.WIDTH - axes.LABELS - 12, height=height)
    hidden = alt.Y("label:N", sort=labels, axis=None)
    right = alt.LayerChart(
        layer=list(_dot_layers(values, x, hidden, palette, rule, rule_name)),
        width=axes.WIDTH - axes.LABELS - COUNTS - 24,
        height=height,
    )
    left = _count_bars(values, alt.Y("label:N", sort=labels, axis=axis), palette, height)
    return alt.HConcatChart(hconcat=[left, right], spacing=12, config=axes.look(palette))


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
    """Draw the numbers of lines as small bars, with the word "lines" below instead of a scale."""
    axis = alt.Axis(
        values=[0], labelExpr="'lines'", labelAlign="left", grid=False, domain=False, ticks=False, title=None
    )
    bar: alt.Chart = alt.Chart(values, width=COUNTS, height=height).mark_bar(height=11, color=palette.track)
    return bar.encode(x=alt.X("lines:Q", axis=axis), y=y, description=alt.Description("counted:N"))


def _dot_row(row: Row, label: str, palette: Palette) -> dict[str, Any]:
    bounded = all(end is not None and math.isfinite(end) for end in (row.low, row.high))
    return {
        "label": label,
        "value": row.value if math.isfinite(row.value) else None,
        "low": row.low if bounded else None,
        "high": row.high if bounded else None,
        "lines": row.lines,
        "said": row.said,
        "counted": f"{short(row.label)}: {counted(row.lines or 0, 'line')}",
        "colour": row.colour or palette.accent,
    }
