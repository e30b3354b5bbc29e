"""Charts as SVG, for reports, notebooks and the pages of a board, and how figures are written in them.

In this order: figures, scales with their ticks, :class:`Chart` and its elements, the kinds of charts, and the graphs
of ``--plot-graph``. Colours are variables of a page's style sheet, so that dark mode works; the file of a chart alone
has those of :data:`COLOURS`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from xml.sax.saxutils import quoteattr

from geval_py.errors import MissingPackageError, UsageError
from geval_py.explaining.significance import MIN_LINES
from geval_py.reading import rewriting
from geval_py.reading.outputs import unique_names
from geval_py.scoring.metrics.base import exp
from geval_py.scoring.metrics.labels import calibration_curve
from geval_py.tables.escapes import short
from geval_py.tables.numbers import percent
from geval_py.text import counted, display_width, named, visible
from geval_py.version import installs

if TYPE_CHECKING:
    from geval_py.explaining.calibration import Verdict
    from geval_py.scoring.scores import Evaluation

# Figures


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


# Scales

LOGARITHMIC_FROM = 8.0  # a scale is logarithmic if the greatest value is so many times the least
Tick = tuple[float, str]  # a value, and what is written at it, in several rows if there are line ends


def tick_text(value: float) -> str:
    """Write a round value as briefly as possible.

    >>> tick_text(150.0), tick_text(1024.0), tick_text(0.30000000000000004)
    ('150', '1,024', '0.3')
    """
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3g}".replace("-", "−")
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


def _percent_tick(value: float) -> str:
    return f"{100 * value:g} %"


class Scale(NamedTuple):
    """Maps values from ``low`` to ``high`` to pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value, rounded to a tenth; values outside are drawn at the edge."""
        inside = min(max(value, self.low), self.high)
        low, high, at = (math.log(one) if self.logarithmic else one for one in (self.low, self.high, inside))
        part = 0.5 if high == low else (at - low) / (high - low)
        return round(self.start + part * (self.end - self.start), 1)

    def ticks(self, most: int = 5, write: Callable[[float], str] = tick_text) -> list[Tick]:
        """Return round values on the scale, at most ``most``, and their texts."""
        values = (log_ticks if self.logarithmic else round_ticks)(self.low, self.high, most)
        return [(value, write(value)) for value in values]


def scale_of(
    values: Iterable[float | None], start: float, end: float, *, margin: float = 0.04, logarithmic: bool | None = None
) -> Scale:
    """Return a scale that holds all finite values, or positive ones if it is logarithmic; from 1 to 10 without any.

    If that is not told, a scale is logarithmic where its greatest value is at least eight times the least, above 0.
    """
    finite = [one for one in values if one is not None and math.isfinite(one) and (one > 0 or not logarithmic)]
    low, high = min(finite, default=1.0), max(finite, default=10.0)
    if logarithmic or (logarithmic is None and low > 0 and high / low >= LOGARITHMIC_FROM):
        room = max((high / low) ** margin, 1.02)
        return Scale(low / room, high * room, start, end, logarithmic=True)
    room = (high - low) * margin or abs(high) * margin or 1.0
    return Scale(low - room, high + room, start, end)


def log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round values for a logarithmic axis, at most ``most``.

    >>> log_ticks(40.0, 3000.0), log_ticks(144.0, 159.0)
    ([100.0, 300.0, 1000.0, 3000.0], [145.0, 150.0, 155.0])
    """
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for factors in ((1,), (1, 3), (1, 2, 5)):
        round_values = (factor * 10.0**power for power in powers for factor in factors)
        inside = [value for value in round_values if low <= value <= high]
        if len(inside) > most and ticks:
            break
        ticks = inside
    return ticks[:: -(-len(ticks) // most) or 1] if len(ticks) > 1 else round_ticks(low, high, most)


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round values at equal distances, at most ``most``."""
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (power * factor) <= most)
    return [round(n * step, 12) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


# A chart and its elements

WIDTH = 400  # pixels, as all lengths here
PNG_SCALE = 3  # pixels of a PNG for each of these: 1,200 across
FONT = 11
LETTER = 6.5  # the width of a character, about
BELOW = 36  # what an axis with a name takes below a chart
LEGEND_ROW = 18
DASHED = "3 3"
LegendEntry: TypeAlias = tuple[str, Mapping[str, str | None]]  # a name, and the style of its colour or line

COLOURS = {
    "raised": "#ffffff",
    "ink": "#17191c",
    "soft": "#555a61",
    "line": "#e2e0d8",
    "track": "#cfccc3",
    "accent": "#1c5fb0",
    "good": "#10765c",
    "listed": "#3a78bd",
    "bad": "#c2560c",
    "none": "#6b7078",
    "on-fill": "#ffffff",
}
RAISED, INK, SOFT, LINE, TRACK, ACCENT, GOOD, LISTED, BAD, NONE, ON_FILL = (f"var(--{name})" for name in COLOURS)
_VARIABLE = re.compile(r'(?<==")var\(--([a-z-]+)\)(?=")')


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, which Jupyter shows; its marks have descriptions, for screen readers and under the pointer.

    ``width`` and ``height`` are in pixels, ``parts`` are elements of SVG.
    """

    width: float
    height: float
    parts: tuple[str, ...]

    def element(self, name: str, kind: str = "") -> str:
        """Return the chart as an element of a page, with ``name`` for screen readers and a further CSS class."""
        words = f'class="{f"chart {kind}".strip()}" role="graphics-document" aria-label={quoteattr(name)}'
        return f"<svg {words} {self._size}>{''.join(self.parts)}</svg>"

    @property
    def svg(self) -> str:
        """The chart as the text of an SVG file."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" {self._size}>'
        parts = "".join([_element("rect", width="100%", height="100%", fill=RAISED), *self.parts])
        return f"{head}{_VARIABLE.sub(lambda name: COLOURS[name[1]], parts)}</svg>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart to a file, as SVG, PNG or PDF by its ending.

        Raises UsageError for another ending and if the file cannot be written, and MissingPackageError if the extra
        ``charts``, which makes PNG and PDF, is not installed.
        """
        place, data = os.fspath(path), self.svg.encode()
        ending = os.path.splitext(place)[1].lower()
        if ending not in (".svg", ".png", ".pdf"):
            raise UsageError(f"Cannot write {named(place)}: charts are saved as .svg, .png or .pdf")
        if ending != ".svg":
            try:
                import vl_convert
            except ImportError as error:
                message = f"charts are saved as PNG and PDF by vl-convert, of the extra charts: {installs('charts')}"
                raise MissingPackageError(message, package="vl-convert-python") from error
            to_png = vl_convert.svg_to_png
            data = to_png(self.svg, scale=PNG_SCALE) if ending == ".png" else vl_convert.svg_to_pdf(self.svg)
        with rewriting.written_whole(place) as file:
            file.write(data)

    @property
    def _size(self) -> str:
        width, height = _length(self.width), _length(self.height)
        return f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Chart: {self.width:g} x {self.height:g} pixels, {len(self.parts)} elements>"


def _element(tag: str, *inner: str, **attributes: float | str | None) -> str:
    """Return an element of SVG around markup; `_` stands for `-` in names, and what is None is left out.

    >>> _element("line", x2=1.005, stroke_width=2, stroke=None)
    '<line x2="1" stroke-width="2"/>'
    """
    written = "".join(
        f" {name.replace('_', '-')}={quoteattr(value if isinstance(value, str) else _length(value))}"
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(inner)}</{tag}>" if inner else f"<{tag}{written}/>"


def _mark(tag: str, kind: str, said: str, **attributes: float | str | None) -> str:
    """Return a mark with a description in words; ``kind`` is what screen readers call it."""
    title = f"<title>{escape(said, quote=False)}</title>"
    return _element(tag, title, role="graphics-symbol", aria_roledescription=kind, **attributes)


def _unsaid(*parts: str) -> str:
    """Group parts that screen readers pass over."""
    return _element("g", *parts, aria_hidden="true")


def _text(x: float, y: float, words: str, colour: str, anchor: str | None = None, *, bold: bool = False) -> str:
    """Write words with their middle at the height y; ``anchor`` is None for start, or middle, or end."""
    weight = "bold" if bold else None
    return _element("text", escape(words, quote=False), x=x, y=y, dy="0.35em", fill=colour, font_size=FONT,
                    font_weight=weight, text_anchor=anchor)  # fmt: skip


def _path(points: Iterable[tuple[float, float]]) -> str:
    """Return the commands that join points.

    >>> _path([(0, 1), (2, 3.456)])
    'M0 1L2 3.46'
    """
    return f"M{'L'.join(f'{_length(x)} {_length(y)}' for x, y in points)}"


def _length(number: float) -> str:
    """Write a length, to a hundredth of a pixel."""
    return f"{number:.2f}".rstrip("0").rstrip(".") if number else "0"


def _axes(
    x: Scale, y: Scale, x_ticks: Iterable[Tick], y_ticks: Iterable[Tick], x_title: str = "", y_title: str = ""
) -> list[str]:
    """Draw lines through a chart at ticks and what they mean, below it and at its left, and the names of the axes."""
    top, bottom = sorted((y.start, y.end))
    across, down, rows = [], [], 1
    for value, words in x_ticks:
        at, lines = x.at(value), words.split("\n")
        half = max(map(len, lines)) * LETTER / 2
        place, anchor = (x.end + 8, "end") if at + half > x.end + 8 else (at, "middle")
        down.append(_element("line", x1=at, x2=at, y1=top, y2=bottom, stroke=LINE))
        down += [_text(place, bottom + 11 + 13 * row, line, SOFT, anchor) for row, line in enumerate(lines)]
        rows = max(rows, len(lines))
    if x_title:
        middle = (x.start + x.end) / 2
        down.append(_text(middle, bottom + 29 + 13 * (rows - 1), short(x_title, 56), SOFT, "middle"))
    for value, words in y_ticks:
        across.append(_element("line", x1=x.start, x2=x.end, y1=y.at(value), y2=y.at(value), stroke=LINE))
        across.append(_text(x.start - 5, y.at(value), words, SOFT, "end"))
    if y_title:
        across.append(_text(x.start, top - 12, short(y_title, 56), SOFT))
    return [_element("g", *parts) for parts in (down, across) if parts]


def _with_legend(height: float, parts: Sequence[str], entries: Iterable[LegendEntry]) -> Chart:
    """Return a chart with names in two columns below it, each beside a square that is filled, or a line, as told."""
    keys, named = [], [entry for entry in entries if entry[0]]
    for number, (name, style) in enumerate(named):
        x, y = WIDTH / 2 * (number % 2) + 4, height + 4 + LEGEND_ROW * (number // 2 + 0.5)
        if "fill" in style:
            keys.append(_element("rect", x=x, y=y - 5, width=10, height=10, **style))
        else:
            keys.append(_element("line", x1=x - 3, x2=x + 12, y1=y, y2=y, stroke_width=1.7, **style))
        keys.append(_text(x + 15, y, name, INK))
    more = 8 + LEGEND_ROW * ((len(named) + 1) // 2) if named else 0
    return Chart(WIDTH, height + more, (*parts, *keys))


# Rows of dots with intervals

LABELS = 108  # for the labels of rows, if they are short
CHARACTER = 6.9  # the width of one in a label
COUNTS = 44  # for bars of numbers of lines
ROW = 23
MAX_LABEL = 20  # characters


class ChartRow(NamedTuple):
    """A row of a chart and of its table: a label, a value and its interval, the number of lines it stands for.

    ``note`` is said behind the value; ``points`` are other values, drawn small.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    lines: int | None = None
    note: str = ""
    colour: str = ACCENT
    points: tuple[float, ...] = ()


def dots(
    rows: Sequence[ChartRow],
    *,
    title: str,
    rule: float | None = None,
    rule_name: str = "all lines",
    logarithmic: bool | None = False,
    write: Callable[[float], str] = figure,
) -> Chart:
    """Draw a dot with its interval in each row and, if the rows have numbers of lines, bars of these at the left.

    ``rule`` is a value drawn through all rows, such as the value of all lines. ``write`` is :func:`figure` or
    :func:`percent`. What is infinite is not drawn.
    """
    sure = [row for row in rows if row.lines is None or row.lines >= MIN_LINES]  # others have too wide intervals
    ends = [rule, *(value for row in rows for value in (row.value, *row.points))]
    ends += [end for row in sure for end in (row.low, row.high)]
    labels = unique_labels(row.label for row in rows)
    middle = max(LABELS, 5 + CHARACTER * max(map(display_width, labels), default=0))  # between labels and counts
    counts = any(row.lines is not None for row in rows)
    x = scale_of(ends, middle + (COUNTS + 12 if counts else 0), WIDTH - 10, margin=0.06, logarithmic=logarithmic)
    y = Scale(0, len(rows), 2, 2 + ROW * len(rows))
    parts = _axes(x, y, x.ticks(write=_percent_tick if write is percent else tick_text), (), title)
    if counts:
        parts.append(_unsaid(_text(middle, y.end + 11, "lines", SOFT)))
    if rule is not None:
        at = x.at(rule)
        parts.append(_mark("line", "rule", f"{rule_name}: {write(rule)}", x1=at, x2=at, y1=y.start, y2=y.end,
                           stroke=SOFT, stroke_dasharray=DASHED))  # fmt: skip
    most = max((row.lines or 0 for row in rows), default=0) or 1
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        height, said = y.at(number + 0.5), short(row.label)
        parts.append(_text(middle - 5, height, label, INK, "end"))
        if row.lines is not None:
            width = COUNTS * row.lines / most
            parts.append(_mark("rect", "bar", f"{said}: {counted(row.lines, 'line')}", x=middle, y=height - 5.5,
                               width=width, height=11, fill=TRACK))  # fmt: skip
        if row.low is not None and row.high is not None and math.isfinite(row.low) and math.isfinite(row.high):
            parts.append(_unsaid(_element("line", x1=x.at(row.low), x2=x.at(row.high), y1=height, y2=height,
                                          stroke=row.colour, stroke_width=2.5, stroke_opacity=0.55)))  # fmt: skip
        if math.isfinite(row.value):
            said += f": {write(row.value)}" + (f", {row.note}" if row.note else "")
            parts.append(_mark("circle", "circle", said, cx=x.at(row.value), cy=height, r=4, fill=row.colour))
        small = [f"M{x.at(point)} {height - 4.5}v9" for point in row.points if math.isfinite(point)]
        if small:
            parts.append(_unsaid(_element("path", d="".join(small), stroke=SOFT, stroke_opacity=0.7)))
    return Chart(WIDTH, y.end + BELOW, tuple(parts))


def unique_labels(labels: Iterable[str]) -> list[str]:
    """Shorten labels in the middle, and number those that become equal."""
    unique: list[str] = []
    for text in labels:
        label, number = short(text, MAX_LABEL), 1
        while label in unique:
            number += 1
            label = f"{short(text, MAX_LABEL - 3)} {number}"
        unique.append(label)
    return unique


# Shares: histograms and stacked bars


class BarPart(NamedTuple):
    """A part of a bar or histogram, from ``start`` to ``end`` along its axis; ``share`` is its height or its size.

    ``said`` describes it in words; ``name`` is that of its colour in the legend, if it is in one.
    """

    start: float
    end: float
    share: float
    said: str
    name: str = ""
    colour: str = ACCENT


def histogram(blocks: Sequence[BarPart], marks: Sequence[tuple[float, str]], title: str | None = None) -> Chart:
    """Draw shares of the lines by their loss, stacked by colour; ``marks`` name losses, such as the mean.

    With a ``title``, the figures are not losses but have this name, and the axis begins at the least of them.
    """
    highest = max([block.end for block in blocks] + [at for at, _ in marks], default=1.0)
    lowest = 0.0 if title is None else min([block.start for block in blocks], default=0.0)
    x = Scale(lowest, highest, 44, 392)
    tops: dict[float, float] = {}  # of the blocks that stand on each other
    bottoms = []
    for block in blocks:
        bottoms.append(tops.get(block.start, 0.0))
        tops[block.start] = bottoms[-1] + block.share
    most = max(tops.values(), default=1.0)
    # About four round values from 0, of which the last is not below the highest share.
    step = (round_ticks(0.0, most, 4)[1:2] or [most or 1.0])[0]
    shares = [round(n * step, 12) for n in range(math.ceil(most / step - 1e-9) + 1)]
    y = Scale(0.0, shares[-1], 220, 30)
    # Two rows of labels: nats, and below them the perplexity of a line with that loss.
    ticks = x.ticks(5, tick_text if title else lambda value: f"{value:g}\n{figure(exp(value))}")
    title_of_x = title or "loss of the line in nats; below, its perplexity"
    parts = _axes(x, y, ticks, [(share, _percent_tick(share)) for share in shares], title_of_x)
    for block, start in zip(blocks, bottoms, strict=True):
        left, bottom, up = x.at(block.start), y.at(start), y.at(start + block.share)
        width = max(1.0, x.at(block.end) - left - 1)
        parts.append(_mark("rect", "bar", block.said, x=left + 0.5, y=up, width=width, height=bottom - up,
                           fill=block.colour))  # fmt: skip
    for number, (value, name) in enumerate(sorted(marks)):
        at = x.at(value)
        said = f"{name}: {figure(value)}{' nats' if title is None else ''}"
        parts.append(_mark("line", "rule", said, x1=at, x2=at, y1=y.end, y2=y.start, stroke=INK,
                           stroke_dasharray=DASHED))  # fmt: skip
        anchor = "end" if at > (x.start + x.end) / 2 else None
        parts.append(_unsaid(_text(at, y.end - 7 - 13 * number, name, INK, anchor)))  # names do not overlap
    entries = {block.name: {"fill": block.colour} for block in blocks}
    return _with_legend(y.start + BELOW + (13 if title is None else 0), parts, entries.items())


def stacked_bars(bars: Sequence[tuple[str, Sequence[BarPart]]]) -> Chart:
    """Draw named bars, each divided into shares of 1."""
    x = Scale(0.0, 1.0, 2, WIDTH - 2)
    parts = []
    for number, (name, blocks) in enumerate(bars):
        top = 16 + 62 * number
        parts.append(_unsaid(_text(2, top - 8, name, INK)))
        for block in blocks:
            left, right = x.at(block.start), x.at(block.end)
            parts.append(_mark("rect", "bar", block.said, x=left, y=top, width=right - left, height=36,
                               fill=block.colour, stroke=RAISED))  # fmt: skip
            if block.share >= 0.09:
                words = percent(block.share)
                parts.append(_unsaid(_text((left + right) / 2, top + 18, words, ON_FILL, "middle", bold=True)))
    entries = {block.name: {"fill": block.colour} for _, blocks in bars for block in blocks}
    return _with_legend(62 * len(bars), parts, entries.items())


# Points and curves

MAX_POINTS = 1500  # of a scatter plot
MAX_NAME = 28  # characters in a legend
LEAST = 1e-4  # the least probability on a logarithmic axis


def scatter(
    points: Sequence[tuple[float, float]],
    *,
    x_title: str,
    y_title: str,
    width: float = WIDTH,
    x_ticks: Callable[[Scale], Iterable[Tick]] | None = None,
    best: Sequence[tuple[float, float]] = (),
    rules: Sequence[tuple[float, str]] = (),
) -> Chart:
    """Draw points, the ``best`` of them as steps up to the right edge, and named ``rules`` across."""
    height = 250 if width <= WIDTH else 340
    x = scale_of([at for at, _ in points], 52, width - 12)
    y = scale_of([*(value for value, _ in rules), *(value for _, value in points)], height - 42, 28)
    parts = _axes(x, y, x.ticks(4) if x_ticks is None else x_ticks(x), y.ticks(), x_title, y_title)
    for value, name in rules:
        at = y.at(value)
        parts.append(_element("line", x1=x.start, x2=x.end, y1=at, y2=at, stroke=SOFT, stroke_dasharray="4 4"))
        parts.append(_text(x.end, at - 9, short(name, 32), SOFT, "end"))
    look = {"fill": "none", "stroke_linecap": "round"}
    colour = SOFT if best else ACCENT
    parts.append(_element("path", d=_dots(points, x, y), stroke=colour, stroke_opacity=0.55, stroke_width=6, **look))
    if best:
        (first, value), *later = [(x.at(at), y.at(value)) for at, value in best]
        steps = f"M{first} {value}" + "".join(f"H{at}V{height}" for at, height in later) + f"H{x.end}"
        parts.append(_element("path", d=steps, stroke=ACCENT, stroke_width=2.5, fill="none"))
        parts.append(_element("path", d=_dots(best, x, y), stroke=ACCENT, stroke_width=9, **look))
    return Chart(width, height, (_unsaid(*parts),))


def _dots(points: Iterable[tuple[float, float]], x: Scale, y: Scale) -> str:
    """Write dots as strokes without length, which a round line cap makes dots; equal pixels are drawn once.

    If there are too many, dots are rounded to larger pixels.
    """
    exact = [(x.at(at), y.at(value)) for at, value in points]
    for pixels in count(1):
        seen = dict.fromkeys((round(x / pixels) * pixels, round(y / pixels) * pixels) for x, y in exact)
        if len(seen) <= MAX_POINTS:
            break
    return "".join(f"M{x} {y}h0" for x, y in seen)


def reliability(bins: Sequence[Verdict], *, x_title: str, y_title: str, logarithmic: bool = False) -> Chart:
    """Draw observed shares against the given probabilities, the diagonal, and the band of calibrated probabilities.

    Points outside of the band have a colour of their own.
    """
    least = min((share for part in bins for share in (part.claimed, part.observed) if share > 0), default=LEAST)
    low = max(LEAST, 10.0 ** math.floor(math.log10(least))) if logarithmic else 0.0
    right, top = 1.0, 1.0
    if not logarithmic:
        right = _quarters([part.claimed for part in bins])
        top = _quarters([max(part.observed, part.high) for part in bins])
    x = Scale(low, right, 46, 386, logarithmic=logarithmic)
    y = Scale(low, top, 224, 24, logarithmic=logarithmic)
    powers = [(10.0**power, _percent_tick(10.0**power)) for power in range(-4, 1) if 10.0**power >= low]
    x_ticks, y_ticks = (powers if logarithmic else scale.ticks(write=_percent_tick) for scale in (x, y))
    upper = [(x.at(part.claimed), y.at(part.high)) for part in bins]
    lower = [(x.at(part.claimed), y.at(part.low)) for part in bins]
    curve = [(x.at(part.claimed), y.at(part.observed)) for part in bins]
    shapes = [_diagonal(x, y)]
    if bins:
        band = f"{_path([*upper, *reversed(lower)])}Z"
        shapes.insert(0, _element("path", d=band, fill=ACCENT, fill_opacity="0.16"))
        shapes.append(_element("path", d=_path(curve), stroke=ACCENT, stroke_width=1, fill="none"))
    parts = [*_axes(x, y, x_ticks, y_ticks, x_title, y_title), _unsaid(*shapes)]
    for part, (at, height) in zip(bins, curve, strict=True):
        colour = ACCENT if part.is_calibrated else BAD
        said = f"given {percent(part.claimed)}, observed {percent(part.observed)}"
        said += f", calibrated range {percent(part.low)} to {percent(part.high)}, of {part.n:,}"
        parts.append(_mark("circle", "circle", said, cx=at, cy=height, r=4.7, fill=colour, stroke=RAISED))
    legend: list[LegendEntry] = [
        ("within the band", {"fill": ACCENT}),
        ("outside of the band", {"fill": BAD}),
        ("calibrated, 95 %", {"fill": ACCENT, "fill_opacity": "0.3"}),
    ]
    return _with_legend(y.start + BELOW, parts, legend)


def _diagonal(x: Scale, y: Scale) -> str:
    """Draw where both axes have the same value."""
    points = [(x.at(end), y.at(end)) for end in (x.low, min(x.high, y.high))]
    return _element("path", d=_path(points), stroke=SOFT, stroke_dasharray=DASHED, fill="none")


def _quarters(values: Sequence[float]) -> float:
    """Return the least multiple of 1/4 that no share exceeds, at least 1/4.

    >>> _quarters([0.12, 0.31]), _quarters([])
    (0.5, 0.25)
    """
    return max(0.25, math.ceil(max(values, default=0.0) * 4) / 4)


# The graphs of --plot-graph


def calibration_graphs(evaluations: Sequence[Evaluation]) -> list[Chart]:
    """Draw the calibration of outputs as ``geval --plot-graph`` does: a chart for each metric that has a curve."""
    names = [visible(name) for name in unique_names([evaluation.output for evaluation in evaluations])]
    graphs = []
    for scores in zip(*(evaluation.scores for evaluation in evaluations), strict=True):  # metric by metric
        pairs = zip(names, scores, strict=True)
        curves = {name: calibration_curve(score.statistics) for name, score in pairs if score.error is None}
        if scores[0].metric.has_curve and curves:
            graphs.append(calibration_graph(curves, f"calibration, {visible(scores[0].name)}"))
    return graphs


def calibration_graph(curves: Mapping[str, Sequence[tuple[float, float]]], title: str) -> Chart:
    """Draw curves of shares in [0, 1], by their names, and the diagonal, which is perfect; NaN is left out."""
    x, y = Scale(0.0, 1.0, 46, 386), Scale(0.0, 1.0, 386, 46)
    ticks = x.ticks(write=_percent_tick)
    parts = [
        _unsaid(_text(x.start, 12, short(title, 56), INK)),
        *_axes(x, y, ticks, ticks, "given probability", "came true"),
        _unsaid(_diagonal(x, y)),
    ]
    colours = (ACCENT, BAD, GOOD, NONE, INK, LISTED)
    legend: list[LegendEntry] = [("perfect", {"stroke": SOFT, "stroke_dasharray": DASHED})]
    for number, (name, points) in enumerate(curves.items()):
        dashes = None if number < len(colours) else str(1 + number // len(colours))
        style: dict[str, str | None] = {"stroke": colours[number % len(colours)], "stroke_dasharray": dashes}
        legend.append((short(name, MAX_NAME), style))
        places = [(x.at(at), y.at(height)) for at, height in points if math.isfinite(height)]
        if places:
            parts.append(_mark("path", "curve", short(name), d=_path(places), stroke_width=1.7, fill="none", **style))
    return _with_legend(y.start + BELOW, parts, legend)
