"""Charts of shares: a histogram, bars that are joined, bars with a text above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from geval_py.showing.report.charts.axes import NUMBER, round_ticks
from geval_py.showing.report.charts.dots import Row
from geval_py.showing.report.charts.frame import FONT, PERCENT, WIDTH, Chart, data, described, layered
from geval_py.showing.report.palette import Palette
from geval_py.showing.report.wording import figure, percent
from geval_py.showing.templating import short


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
    legend = alt.Legend(title=None, symbolType="square", symbolOpacity=1) if palette.legends else None
    return alt.Color("name:N", scale=scale, legend=legend)


def histogram(
    blocks: Sequence[Block], marks: Sequence[tuple[float, str]], palette: Palette, title: str | None = None
) -> Chart:
    """Draw shares of the lines by their loss, stacked by colour; ``marks`` are losses to name, such as the mean.

    With a ``title`` they are other figures, of this name, and the axis begins at the least of them.
    """
    rows = ({"low": b.start, "high": b.end, "share": b.share, "name": b.name, "order": n, "said": b.said}
            for n, b in enumerate(blocks))  # fmt: skip
    highest = max([block.end for block in blocks] + [at for at, _ in marks], default=1.0)
    lowest = 0.0 if title is None else min([block.start for block in blocks], default=0.0)
    # Two rows of labels: nats, and below them the perplexity of a line with that loss.
    two = "[format(datum.value, '~g'), format(exp(datum.value), exp(datum.value) < 1e4 ? ',.0f' : '.0s')]"
    x = alt.X("low:Q", bin=alt.BinParams(binned=True), scale=alt.Scale(domain=[lowest, highest], nice=False),
              axis=alt.Axis(values=round_ticks(lowest, highest, 6), labelExpr=two if title is None else NUMBER,
                            grid=False, ticks=False,
                            title=title or "loss of the line in nats; below, its perplexity"))  # fmt: skip
    y = alt.Y("share:Q", axis=alt.Axis(labelExpr=PERCENT, title=None, domain=False, ticks=False, tickCount=4))
    bars = alt.Chart(data(rows)).mark_bar(binSpacing=1).encode(
        x=x, x2="high:Q", y=y, color=_colours(blocks, palette), order=alt.Order("order:Q"), **described()
    )  # fmt: skip
    layers: list[alt.Chart] = [bars]
    for number, (at, name) in enumerate(sorted(marks)):
        row = data([{"at": at, "said": f"{name}: {figure(at)}{' nats' if title is None else ''}"}])
        rule = alt.Chart(row).mark_rule(color=palette.ink, strokeDash=[3, 3]).encode(x="at:Q", **described())
        reach = (at - lowest) / ((highest - lowest) or 1.0)
        to_the_left = (not number and (title is None or reach > 0.1)) or reach > 0.7
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
