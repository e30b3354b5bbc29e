"""The kinds of charts in a report: reliability curves, histograms, joined bars, bars, rows of dots with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geval_py.errors import UsageError
from geval_py.explaining.significance import LEAST_LINES
from geval_py.reading.outputs import unique_names
from geval_py.reports import scales
from geval_py.reports.drawing import (
    BELOW,
    LEGEND_ROW,
    NOTEBOOK,
    Chart,
    Frame,
    Palette,
    Tick,
    described,
    element,
    legend,
    path,
    text,
    unsaid,
    x_axis,
    y_axis,
)
from geval_py.reports.panels import figure, percent
from geval_py.reports.scales import Scale, tick_text
from geval_py.scoring.metrics.base import exp
from geval_py.scoring.metrics.labels import calibration_curve
from geval_py.tables.escapes import short
from geval_py.tables.names import cut_names
from geval_py.tables.numbers import counted
from geval_py.text import display_width, visible

if TYPE_CHECKING:
    from geval_py.explaining.reliability import Points
    from geval_py.scoring.metrics.base import Metric
    from geval_py.scoring.scores import ScoredOutput

WIDTH = 400  # pixels, as all lengths here
DASHED = "3 3"


def _percent_ticks(values: Iterable[float]) -> list[Tick]:
    return [(value, [f"{100 * value:g} %"]) for value in values]


def _number_ticks(values: Iterable[float]) -> list[Tick]:
    return [(value, [tick_text(value)]) for value in values]


# Reliability: probabilities against frequencies, with the band of honest probabilities


LEAST = 1e-4  # the least probability on a logarithmic axis


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
    frame = Frame(left=46, right=386, top=24, bottom=224)
    x = Scale(low=low, high=right, start=frame.left, end=frame.right, logarithmic=logarithmic)
    y = Scale(low=low, high=top, start=frame.bottom, end=frame.top, logarithmic=logarithmic)
    rows = list(points.rows())
    upper = [(x.at(row["x"]), y.at(row["high"])) for row in rows]
    lower = [(x.at(row["x"]), y.at(row["low"])) for row in reversed(rows)]
    curve = [(x.at(row["x"]), y.at(row["y"])) for row in rows]
    end = min(right, top)
    diagonal = path([(x.at(low), y.at(low)), (x.at(end), y.at(end))])
    parts = [
        x_axis(frame, x, _reliability_ticks(low, right), palette, x_name),
        y_axis(frame, y, _reliability_ticks(low, top), palette, y_name),
        unsaid(
            *([element("path", d=f"{path([*upper, *lower])}Z", fill=palette.accent, fill_opacity=0.16)] if rows else
            []), element("path", d=diagonal, stroke=palette.soft, stroke_dasharray=DASHED, fill="none"),
            *([element("path", d=path(curve), stroke=palette.accent, stroke_width=2.5 if steps else 1, fill="none")]
              if rows else []),
        ),
    ]  # fmt: skip
    for row, (at, height) in zip(rows, curve, strict=True):
        colour = palette.accent if steps or row["low"] <= row["y"] <= row["high"] else palette.bad
        edge = {} if steps else {"stroke": palette.raised}
        said = f"given {percent(row['x'])}, true {percent(row['y'])}"
        said += f", honest {percent(row['low'])} to {percent(row['high'])}, of {row['n']:,}"
        parts.append(
            described("circle", "circle", said, cx=at, cy=height, r=2.3 if steps else 4.7, fill=colour, **edge)
        )
    return Chart(WIDTH, frame.bottom + BELOW, tuple(parts), palette.ground)


MOST_NAME = 28  # characters in a legend


def curves(of: Sequence[tuple[str, Sequence[tuple[float, float]]]], palette: Palette, title: str) -> Chart:
    """Draw curves of shares in [0, 1], by their names, and the diagonal, which is perfect; NaN is left out."""
    frame = Frame(left=46, right=386, top=46, bottom=386)
    x = Scale(low=0.0, high=1.0, start=frame.left, end=frame.right)
    y = Scale(low=0.0, high=1.0, start=frame.bottom, end=frame.top)
    ticks = _percent_ticks(scales.round_ticks(0.0, 1.0))
    diagonal = path([(x.at(0.0), y.at(0.0)), (x.at(1.0), y.at(1.0))])
    parts = [
        unsaid(text(frame.left, 12, short(title, 56), palette.ink)),
        x_axis(frame, x, ticks, palette, "given probability"),
        y_axis(frame, y, ticks, palette, "came true"),
        unsaid(element("path", d=diagonal, stroke=palette.soft, stroke_dasharray=DASHED, fill="none")),
    ]
    colours = (palette.accent, palette.bad, palette.good, palette.none, palette.ink, palette.listed)
    entries = [(palette.soft, "perfect")]
    dashed: list[str | None] = [DASHED]
    for number, (name, points) in enumerate(of):
        colour = colours[number % len(colours)]
        entries.append((colour, short(name, MOST_NAME)))
        places = [(x.at(at), y.at(height)) for at, height in points if math.isfinite(height)]
        dashes = None if number < len(colours) else str(1 + number // len(colours))
        dashed.append(dashes)
        if places:
            parts.append(described("path", "curve", short(name), d=path(places), stroke=colour, stroke_width=1.7,
                                   stroke_dasharray=dashes, fill="none"))  # fmt: skip
    height = frame.bottom + BELOW
    keys = legend(entries, height + 4, WIDTH, palette, dashed)
    return Chart(WIDTH, height + 8 + LEGEND_ROW * ((len(entries) + 1) // 2), (*parts, *keys), palette.ground)


def write_graphs(path: str, evaluations: Sequence[ScoredOutput]) -> None:
    """Draw the calibration of outputs, as GEval does for ``--plot-graph``: a file for each metric that has a curve.

    The first file has the name given, the others a number before its ending.
    """
    graphs: dict[tuple[int, str], list[tuple[str, list[tuple[float, float]]]]] = {}
    for evaluation, name in zip(evaluations, unique_names([of.output for of in evaluations]), strict=True):
        for place, score in enumerate(evaluation.scores):
            if score.metric.has_curve:
                graphs.setdefault((place, score.name), []).append(
                    (visible(name), calibration_curve(score.statistics))
                )
    stem = path.removesuffix(".svg")
    for number, ((_, name), of) in enumerate(graphs.items()):
        chart = curves(of, NOTEBOOK, f"calibration, {visible(name)}")
        chart.save(f"{stem}-{number}.svg" if number else path)


def check_graphs(metrics: Sequence[Metric]) -> None:
    """Raise UsageError if no metric has a curve that :func:`write_graphs` draws."""
    if any(metric.has_curve for metric in metrics):
        return
    message = "--plot-graph draws the curve of Probabilistic-MultiLabel-F1 and the like; no metric here has one"
    if any(metric.is_of_words or metric.has_entries for metric in metrics):
        advice = "geval calibration shows how far distributions over words can be trusted, and geval report draws it"
    else:
        advice = "-a Probabilistic-MultiLabel-F1 scores labels with it"
    raise UsageError(message=f"{message}\n  {advice}")


def quarters(values: Sequence[float]) -> float:
    """Return the least multiple of 1/4 that no share exceeds, at least 1/4.

    >>> quarters([0.12, 0.31]), quarters([])
    (0.5, 0.25)
    """
    return max(0.25, math.ceil(max(values, default=0.0) * 4) / 4)


def _reliability_ticks(low: float, high: float) -> list[Tick]:
    """Return the powers of ten on a logarithmic axis of probabilities, which begins above 0, or round values."""
    powers = [10.0**power for power in range(-4, 1)]
    return _percent_ticks([power for power in powers if power >= low] if low else scales.round_ticks(0.0, high))


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


def _with_legend(parts: Iterable[str], blocks: Sequence[Block], height: float, palette: Palette) -> Chart:
    """Return a chart with a legend of the colours of blocks below it, if the palette has one."""
    entries = [(colour, name) for name, colour in {block.name: block.colour for block in blocks}.items()]
    if not palette.legends:
        return Chart(WIDTH, height, tuple(parts), palette.ground)
    rows = (len(entries) + 1) // 2
    keys = legend(entries, height + 4, WIDTH, palette)
    return Chart(WIDTH, height + 8 + LEGEND_ROW * rows, (*parts, *keys), palette.ground)


def histogram(
    blocks: Sequence[Block], marks: Sequence[tuple[float, str]], palette: Palette, title: str | None = None
) -> Chart:
    """Draw shares of the lines by their loss, stacked by colour; ``marks`` name losses, such as the mean.

    With a ``title``, the figures are not losses but have this name, and the axis begins at the least of them.
    """
    frame = Frame(left=44, right=392, top=30, bottom=220)
    highest = max([block.end for block in blocks] + [at for at, _ in marks], default=1.0)
    lowest = 0.0 if title is None else min([block.start for block in blocks], default=0.0)
    x = Scale(low=lowest, high=highest, start=frame.left, end=frame.right)
    stacked: dict[float, float] = {}
    for block in blocks:
        stacked[block.start] = stacked.get(block.start, 0.0) + block.share
    shares = _ticks_above(max(stacked.values(), default=1.0))
    y = Scale(low=0.0, high=shares[-1], start=frame.bottom, end=frame.top)
    values = scales.round_ticks(lowest, highest, 6)
    # Two rows of labels: nats, and below them the perplexity of a line with that loss.
    ticks = [(value, [f"{value:g}", _brief(exp(value))]) for value in values]
    parts = [
        x_axis(frame, x, ticks if title is None else _number_ticks(values), palette,
               title or "loss of the line in nats; below, its perplexity"),
        y_axis(frame, y, _percent_ticks(shares), palette),
    ]  # fmt: skip
    below: dict[float, float] = {}
    for block in blocks:
        start = below.get(block.start, 0.0)
        below[block.start] = start + block.share
        left, bottom, up = x.at(block.start), y.at(start), y.at(start + block.share)
        width = max(1.0, x.at(block.end) - left - 1)
        parts.append(described("rect", "bar", block.said, x=left + 0.5, y=up, width=width, height=bottom - up,
                               fill=block.colour))  # fmt: skip
    for number, (at, name) in enumerate(sorted(marks)):
        place = x.at(at)
        said = f"{name}: {figure(at)}{' nats' if title is None else ''}"
        parts.append(described("line", "rule", said, x1=place, x2=place, y1=frame.top, y2=frame.bottom,
                               stroke=palette.ink, stroke_dasharray=DASHED))  # fmt: skip
        reach = (at - lowest) / ((highest - lowest) or 1.0)
        to_the_left = (not number and (title is None or reach > 0.1)) or reach > 0.7
        above = -20 if number and to_the_left else -7  # so that two names do not overlap
        words = text(place, frame.top + above, name, palette.ink, anchor="end" if to_the_left else None)
        parts.append(unsaid(words))
    return _with_legend(parts, blocks, frame.bottom + BELOW + (13 if title is None else 0), palette)


def _ticks_above(share: float) -> list[float]:
    """Return about four round values from 0, of which the last is not below a share."""
    step = (scales.round_ticks(0.0, share, 4) or [0.0])[1:2] or [share or 1.0]
    return [round(n * step[0], 12) for n in range(math.ceil(share / step[0] - 1e-9) + 1)]


def _brief(number: float) -> str:
    """Write a number above 10,000 with two digits and a letter.

    >>> _brief(403.4), _brief(162755.0), _brief(3.3e6)
    ('403', '160k', '3.3M')
    """
    if number < 1e4:
        return f"{number:,.0f}"
    if number >= 1e18:
        return "∞" if math.isinf(number) else f"{number:.0e}"
    power = min(int(math.log10(number) // 3), 4)
    return f"{float(f'{number:.2g}') / 1000**power:,g}{' kMGT'[power]}"


def joined_bars(above: Sequence[Block], below: Sequence[Block], names: tuple[str, str], palette: Palette) -> Chart:
    """Draw two bars, each divided into shares of 1, and join the parts of the same name by ribbons."""
    tall, tops = 48.0, (16.0, 108.0)
    x = Scale(low=0.0, high=1.0, start=2.0, end=WIDTH - 2.0)
    ribbons, bars = [], []
    for one, other in zip(above, below, strict=True):
        corners = [(x.at(one.start), tops[0] + tall), (x.at(one.end), tops[0] + tall),
                   (x.at(other.end), tops[1]), (x.at(other.start), tops[1])]  # fmt: skip
        ribbons.append(element("path", d=f"{path(corners)}Z", fill=one.colour, fill_opacity=0.16))
    for blocks, top, name in zip((above, below), tops, names, strict=True):
        ribbons.append(text(2, top - 8, name, palette.ink))
        for block in blocks:
            left, right = x.at(block.start), x.at(block.end)
            bars.append(described("rect", "bar", block.said, x=left, y=top, width=right - left, height=tall,
                                  fill=block.colour, stroke=palette.raised))  # fmt: skip
            if block.share >= 0.09:
                words = percent(block.share)
                at = (left + right) / 2, top + tall / 2
                bars.append(unsaid(text(*at, words, palette.on_fill, anchor="middle", bold=True)))
    return _with_legend([unsaid(*ribbons), *bars], [*above, *below], tops[1] + tall + 4, palette)


# Rows: of bars with a text above them, and of dots with intervals


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

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval, if both are finite: others are not drawn."""
        if self.low is None or self.high is None or not math.isfinite(self.low) or not math.isfinite(self.high):
            return None
        return self.low, self.high


def bars(rows: Sequence[Row], palette: Palette, right: Sequence[str]) -> Chart:
    """Draw a bar in each row, with its label above and a text at the right; values and intervals are shares."""
    tall = 31
    highest = max([row.high or row.value for row in rows], default=0.0) * 1.04 or 1.0
    lowest = min([row.low if row.low is not None else row.value for row in rows] + [0.0])
    frame = Frame(left=6, right=394, top=2, bottom=2 + tall * len(rows))
    x = Scale(low=lowest, high=highest, start=frame.left, end=frame.right)
    parts = [x_axis(frame, x, _percent_ticks(scales.round_ticks(lowest, highest)), palette)]
    for number, (row, note) in enumerate(zip(rows, right, strict=True)):
        y = frame.top + tall * number + 22
        start, end = sorted((x.at(0.0), x.at(row.value)))
        colour = row.colour or palette.bad
        parts.append(described("rect", "bar", row.said, x=start, y=y - 3.5, width=end - start, height=7, fill=colour))
        drawn = [text(frame.left, y - 13, short(row.label, 30), palette.ink),
                 text(frame.right, y - 13, note, palette.soft, anchor="end")]  # fmt: skip
        if row.interval:
            low, high = map(x.at, row.interval)
            drawn.append(element("line", x1=low, x2=high, y1=y, y2=y, stroke=palette.ink, stroke_width=1.3))
        parts.append(unsaid(*drawn))
    return Chart(WIDTH, frame.bottom + BELOW - 14, tuple(parts), palette.ground)


LABELS = 108  # for the labels of rows, if they are short
CHARACTER = 6.9  # the width of one in a label
COUNTS = 44  # for bars of numbers of lines
ROW = 23
MOST_LABEL = 20  # characters


def unique_labels(labels: Iterable[str]) -> list[str]:
    """Cut labels in the middle, at one place that keeps them distinct, and number those that become equal."""
    texts = [short(label, 10 * MOST_LABEL) for label in labels]
    cut = cut_names(texts, MOST_LABEL)
    found: list[str] = []
    for text_ in texts:
        label, number = cut[text_], 1
        while label in found:
            number += 1
            label = f"{short(text_, MOST_LABEL - 3)} {number}"
        found.append(label)
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
    sure = [row for row in rows if row.lines is None or row.lines >= LEAST_LINES]  # others have too wide intervals
    ends = [
        rule,
        *(value for row in rows for value in (row.value, *row.points)),
        *(end for row in sure for end in (row.low, row.high)),
    ]
    low, high = (scales.log_domain if logarithmic else scales.linear_domain)(ends)
    counts = any(row.lines is not None for row in rows)
    labels = unique_labels(row.label for row in rows)
    middle = max(LABELS, 5 + CHARACTER * max(map(display_width, labels), default=0))  # between labels and counts
    left = middle + (COUNTS + 12 if counts else 0)
    frame = Frame(left=left, right=WIDTH - 10, top=2, bottom=2 + ROW * len(rows))
    x = Scale(low=low, high=high, start=frame.left, end=frame.right, logarithmic=logarithmic)
    ticks = (scales.log_ticks if logarithmic else scales.round_ticks)(low, high)
    parts = [x_axis(frame, x, _number_ticks(ticks), palette, title)]
    if counts:
        parts.append(unsaid(text(middle, frame.bottom + 11, "lines", palette.soft)))
    if rule is not None:
        at = x.at(rule)
        parts.append(described("line", "rule", f"{rule_name}: {figure(rule)}", x1=at, x2=at, y1=frame.top,
                               y2=frame.bottom, stroke=palette.soft, stroke_dasharray=DASHED))  # fmt: skip
    most = max((row.lines or 0 for row in rows), default=0) or 1
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = frame.top + ROW * (number + 0.5)
        parts.append(text(middle - 5, y, label, palette.ink, anchor="end"))
        if counts:
            said = f"{short(row.label)}: {counted(row.lines or 0, 'line')}"
            parts.append(described("rect", "bar", said, x=middle, y=y - 5.5, width=COUNTS * (row.lines or 0) / most,
                                   height=11, fill=palette.track))  # fmt: skip
        parts += _dot(row, x, y, palette)
    return Chart(WIDTH, frame.bottom + BELOW, tuple(parts), palette.ground)


def _dot(row: Row, x: Scale, y: float, palette: Palette) -> Iterator[str]:
    """Draw the interval of a row, its value and its points; what is infinite is not drawn."""
    colour = row.colour or palette.accent
    if row.interval:
        low, high = map(x.at, row.interval)
        yield unsaid(
            element("line", x1=low, x2=high, y1=y, y2=y, stroke=colour, stroke_width=2.5, stroke_opacity=0.55)
        )
    if math.isfinite(row.value):
        yield described("circle", "circle", row.said, cx=x.at(row.value), cy=y, r=4, fill=colour)
    places = [x.at(point) for point in row.points if math.isfinite(point)]
    if places:
        ticks = "".join(f"M{place} {y - 4.5}v9" for place in places)
        yield unsaid(element("path", d=ticks, stroke=palette.soft, stroke_opacity=0.7))
