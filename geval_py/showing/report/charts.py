"""The charts of a report, in Altair, from values that are computed already.

Each is as wide as a card of the page; every mark is described in words, for screen readers and as its tooltip. Axes
of perplexities are logarithmic, with ticks of our own: those of Vega crowd.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from geval_py.showing.report.palette import Palette
from geval_py.showing.report.wording import figure, percent
from geval_py.showing.templating import short

WIDTH = 400
FONT = 11
LABELS = 108  # pixels for the labels of rows
COUNTS = 44  # pixels for bars of numbers of lines
ROW = 23
MOST_TICKS = 20  # beyond which Vega would leave some of ours out
MOST_LABEL = 15  # characters
PERCENT = "format(100 * datum.value, '~g') + ' %'"  # an expression of Vega's for the labels of an axis
LEAST_LINES = 10  # of a row whose interval is drawn whole

Chart = alt.LayerChart | alt.HConcatChart


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


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Give round values for a logarithmic axis, at most some of them.

    >>> ticks(40.0, 3000.0), ticks(144.0, 159.0)
    ([100.0, 1000.0], [145.0, 150.0, 155.0])
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
        axis=alt.Axis(values=ticks(low, high), format=",", title=title, domain=False, ticks=False),
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
        axis=alt.Axis(values=round_ticks(low, high), title=title, domain=False, ticks=False),
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a bar or histogram, from ``start`` to ``end`` along its axis; ``share`` is its height or its size."""

    start: float
    end: float
    share: float
    name: str
    colour: str
    said: str


def _colours(blocks: Sequence[Block], palette: Palette) -> alt.Color:
    colours = {block.name: block.colour for block in blocks}
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color("name:N", scale=scale, legend=alt.Legend() if palette.legends else None)


def histogram(blocks: Sequence[Block], marks: Sequence[tuple[float, str]], palette: Palette) -> Chart:
    """Draw shares of the lines by their loss, stacked by colour; ``marks`` are losses to name, such as the mean."""
    rows = ({"low": b.start, "high": b.end, "share": b.share, "name": b.name, "order": n, "said": b.said}
            for n, b in enumerate(blocks))  # fmt: skip
    highest = max([block.end for block in blocks] + [at for at, _ in marks], default=1.0)
    # Two rows of labels: nats, and below them the perplexity of a line with that loss.
    two = "[datum.label, exp(datum.value) < 1e4 ? format(exp(datum.value), ',.0f') : format(exp(datum.value), '.0s')]"
    x = alt.X("low:Q", bin=alt.BinParams(binned=True), scale=alt.Scale(domain=[0, highest], nice=False),
              axis=alt.Axis(values=round_ticks(0.0, highest, 6), labelExpr=two, grid=False, ticks=False,
                            title="loss of the line in nats; below, its perplexity"))  # fmt: skip
    y = alt.Y("share:Q", axis=alt.Axis(labelExpr=PERCENT, title=None, domain=False, ticks=False, tickCount=4))
    bars = alt.Chart(data(rows)).mark_bar(binSpacing=1).encode(
        x=x, x2="high:Q", y=y, color=_colours(blocks, palette), order=alt.Order("order:Q"), **described()
    )  # fmt: skip
    layers: list[alt.Chart] = [bars]
    for number, (at, name) in enumerate(sorted(marks)):
        row = data([{"at": at, "said": f"{name}: {figure(at)} nats"}])
        rule = alt.Chart(row).mark_rule(color=palette.ink, strokeDash=[3, 3]).encode(x="at:Q", **described())
        to_the_left = not number or at > highest * 0.7
        above = -20 if number and to_the_left else -7  # two names are not written over each other
        text = alt.Chart(row).mark_text(
            text=name,
            align="right" if to_the_left else "left",
            fontSize=FONT,
            color=palette.ink,
        )
        layers += [rule, text.encode(x="at:Q", y=alt.value(above))]
    return layered([*layers], palette, width=WIDTH - 48, height=190)


def joined_bars(above: Sequence[Block], below: Sequence[Block], names: tuple[str, str], palette: Palette) -> Chart:
    """Draw two bars, each parted in shares of 1, and join the parts of the same name by ribbons."""
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
        color=palette.on_fill, fontSize=FONT, fontWeight="bold", baseline="middle"
    ).encode(x=alt.X("middle:Q", axis=None), y=alt.Y("centre:Q", axis=None), text="text:N").transform_calculate(
        centre="(datum.top + datum.bottom) / 2")  # fmt: skip
    heads = alt.Chart(data({"y": y, "text": name} for y, name in zip((1.0, tall), names, strict=True))).mark_text(
        align="left", baseline="bottom", dy=-3, fontSize=FONT, color=palette.ink
    ).encode(x=alt.value(0), y=alt.Y("y:Q", axis=None), text="text:N")  # fmt: skip
    return layered([ribbon, bars, texts, heads], palette, width=WIDTH - 4, height=140)


def bars(rows: Sequence[Row], palette: Palette, right: Sequence[str]) -> Chart:
    """Draw a bar in each row, its label above it, and a text at its right; values and intervals are shares."""
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
    axis = alt.Axis(values=round_ticks(lowest, highest), labelExpr=PERCENT, title=None, domain=False, ticks=False)
    drawn = base.mark_bar(height=7, yOffset=6).encode(
        y=y, x=alt.X("value:Q", scale=domain, axis=axis), color=alt.Color("colour:N", scale=None), **described()
    )  # fmt: skip
    spans = base.mark_rule(yOffset=6, color=palette.ink, strokeWidth=1.3).encode(
        y=y, x=alt.X("low:Q", scale=domain, axis=axis), x2="high:Q"
    ).transform_filter("isValid(datum.low)")  # fmt: skip
    texts = base.mark_text(align="left", baseline="middle", dy=-6, fontSize=FONT, color=palette.ink).encode(
        y=y, x=alt.value(0), text="label:N"
    )
    width = WIDTH - 12
    notes = base.mark_text(align="right", baseline="middle", dy=-6, fontSize=FONT, color=palette.soft).encode(
        y=y, x=alt.value(width), text="right:N"
    )
    height = 31 * len(rows)
    return layered([drawn, spans, texts, notes], palette, width=width, height=height)
