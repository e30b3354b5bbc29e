"""Scales of charts: values to pixels, and the round values that are marked on an axis."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

from geval_py.board.site.rendering import day, short_day

LOGARITHMIC_FROM = 8.0  # where the largest value is so many times the least
_DAYS = (1, 2, 7, 14, 30, 61, 91, 182, 365, 730, 1826)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Values from ``low`` to ``high`` mapped to pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Give the pixel of a value, to a tenth; what lies outside is drawn at the edge."""
        low, high = self._of(self.low), self._of(self.high)
        part = 0.5 if high == low else (self._of(value) - low) / (high - low)
        return round(self.start + min(max(part, 0.0), 1.0) * (self.end - self.start), 1)

    def _of(self, value: float) -> float:
        return math.log(max(value, self.low)) if self.logarithmic else value

    def ticks(self, most: int = 5) -> list[float]:
        """Give round values on the scale, at most some of them."""
        return _decades(self.low, self.high, most) if self.logarithmic else _rounds(self.low, self.high, most)


def scale_of(values: Iterable[float], start: float, end: float, *, margin: float = 0.04) -> Scale | None:
    """Make a scale on which all finite values lie; None where there is none."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    logarithmic = low > 0 and high / low >= LOGARITHMIC_FROM
    if logarithmic:
        room = (high / low) ** margin
        return Scale(low=low / room, high=high * room, start=start, end=end, logarithmic=True)
    room = (high - low) * margin or abs(high) * margin or 1.0
    return Scale(low=low - room, high=high + room, start=start, end=end)


def _rounds(low: float, high: float, most: int) -> list[float]:
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10, 20) if (high - low) / (power * factor) <= most)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for factors in ((1,), (1, 3), (1, 2, 5)):
        values = [factor * 10.0**power for power in powers for factor in factors]
        inside = [value for value in values if low <= value <= high]
        if len(inside) <= most or not found:
            found = inside
    return found[:: -(-len(found) // most) or 1]


def tick_text(value: float) -> str:
    """Write a round value as short as it goes.

    >>> tick_text(150.0), tick_text(1024.0), tick_text(0.30000000000000004)
    ('150', '1,024', '0.3')
    """
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3g}".replace("-", "−")
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on an axis and its text."""

    at: float
    text: str


def days(scale: Scale, most: int) -> Iterable[Tick]:
    """Mark days at midnight UTC; where all is within one day, its beginning is marked by its name."""
    first, last = (datetime.fromtimestamp(value, UTC) for value in (scale.low, scale.high))
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    number = (last - midnight).days + 1
    if number < 1:
        return [Tick(at=(scale.start + scale.end) / 2, text=day(first))]
    step = next((step for step in _DAYS if number / step <= most), number)
    marks = [midnight + timedelta(days=later) for later in range(0, number, step)]
    write = day if first.year != last.year else short_day
    return [Tick(at=scale.at(mark.timestamp()), text=write(mark)) for mark in marks]


# Where the marks of a chart stand; templates/charts.html draws them as SVG.


MOST_CATEGORIES = 10
MOST_DOTS = 1500  # of a chart
FARTHEST = 1.4  # times the scores: baselines within are drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An interval bar of a row: pixels of its ends and of the score; ``beyond`` is an arrow off the scale."""

    start: float
    end: float
    middle: float
    beyond: str = ""


def bar_of(scale: Scale | None, value: float | None, low: float | None, high: float | None) -> Bar | None:
    """Draw an interval on the scale of its table; None for what is not finite."""
    ends = [value if end is None else end for end in (low, value, high)]
    if scale is None or any(end is None or not math.isfinite(end) for end in ends):
        return None
    start, middle, end = (scale.at(end) for end in ends if end is not None)
    beyond = ""
    if value is not None and not scale.low <= value <= scale.high:
        at, back = (scale.start, 5) if value < scale.low else (scale.end, -5)
        start = end = middle = at
        beyond = f"M{at + back} 3L{at} 8L{at + back} 13"
    return Bar(start=start, end=end, middle=middle, beyond=beyond)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A horizontal line at a baseline's score."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing of ``width`` by ``height`` pixels: dots and steps as SVG paths, ticks of both axes, rules."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]
    dots: str
    steps: str = ""
    records: str = ""
    rules: tuple[Rule, ...] = ()
    x_name: str = ""
    y_name: str = ""
    rows: bool = False


def dots_path(points: Iterable[tuple[float, float]]) -> str:
    """Write dots as strokes without length, which a round end makes dots; those on one pixel are drawn once.

    Where there are too many even so, pixels are taken together.
    """
    exact = list(points)
    for pixels in count(1):
        seen = dict.fromkeys((round(x / pixels) * pixels, round(y / pixels) * pixels) for x, y in exact)
        if len(seen) <= MOST_DOTS:
            break
    return "".join(f"M{x} {y}h0" for x, y in seen)


def steps_path(points: Sequence[tuple[float, float]], end: float) -> str:
    """Write a line that goes on level until it changes, up to a pixel at the right."""
    if not points:
        return ""
    first, *others = points
    return f"M{first[0]} {first[1]}" + "".join(f"H{x}V{y}" for x, y in others) + f"H{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A scored output in the order of time."""

    when: datetime
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The size of a chart and its margins."""

    width: int
    height: int
    left: int = 52
    right: int = 12
    top: int = 28
    bottom: int = 42


WIDE, NARROW, CARD = Frame(width=860, height=340), Frame(width=340, height=260), Frame(width=400, height=250)


def progress_chart(
    arrivals: Sequence[Arrival],
    best: Sequence[Arrival],
    rules: Sequence[tuple[str, float]],
    y_name: str,
    frame: Frame,
) -> Chart | None:
    """Draw scores over time, with the best so far as steps, and baselines as lines; None where there is nothing."""
    finite = [one for one in arrivals if math.isfinite(one.value)]
    shown = [one.value for one in finite]
    near = [value for _, value in rules if shown and min(shown) / FARTHEST <= value <= max(shown) * FARTHEST]
    y = scale_of([*shown, *near], frame.height - frame.bottom, frame.top)
    x = scale_of([one.when.timestamp() for one in finite], frame.left, frame.width - frame.right, margin=0.02)
    if x is None or y is None:
        return None
    records = [(x.at(one.when.timestamp()), y.at(one.value)) for one in best]
    return Chart(
        name="best so far",
        width=frame.width,
        height=frame.height,
        left=frame.left,
        right=frame.width - frame.right,
        top=frame.top,
        bottom=frame.height - frame.bottom,
        x=tuple(days(x, 6 if frame.width > 500 else 3)),
        y=tuple(Tick(at=y.at(value), text=tick_text(value)) for value in y.ticks()),
        dots=dots_path((x.at(one.when.timestamp()), y.at(one.value)) for one in finite),
        steps=steps_path(records, frame.width - frame.right),
        records=dots_path(records),
        rules=tuple(Rule(at=y.at(value), text=name) for name, value in rules if y.low <= value <= y.high),
        x_name="time of arrival",
        y_name=y_name,
    )


def number_of(text: str) -> float | None:
    """Read a parameter's value as a finite number; None where it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def parameter_chart(name: str, points: Sequence[tuple[str, float]], y_name: str, frame: Frame = CARD) -> Chart | None:
    """Draw scores by the values of a parameter: numbers along an axis, words in a row each; None where all is one."""
    finite = [(value, score) for value, score in points if math.isfinite(score)]
    if len({value for value, _ in finite}) < 2:
        return None
    numbers = [number_of(value) for value, _ in finite]
    if all(number is not None for number in numbers):
        return _scatter(name, [n for n in numbers if n is not None], [score for _, score in finite], y_name, frame)
    return _rows(name, finite, y_name, frame)


def _scatter(name: str, xs: Sequence[float], ys: Sequence[float], y_name: str, frame: Frame) -> Chart | None:
    x = scale_of(xs, frame.left, frame.width - frame.right)
    y = scale_of(ys, frame.height - frame.bottom, frame.top)
    if x is None or y is None or x.low == x.high:
        return None
    return Chart(
        name=name,
        width=frame.width,
        height=frame.height,
        left=frame.left,
        right=frame.width - frame.right,
        top=frame.top,
        bottom=frame.height - frame.bottom,
        x=tuple(Tick(at=x.at(value), text=tick_text(value)) for value in x.ticks(4)),
        y=tuple(Tick(at=y.at(value), text=tick_text(value)) for value in y.ticks(4)),
        dots=dots_path((x.at(one), y.at(other)) for one, other in zip(xs, ys, strict=True)),
        x_name=name,
        y_name=y_name,
    )


def _rows(name: str, points: Sequence[tuple[str, float]], y_name: str, frame: Frame) -> Chart | None:
    common = [value for value, _ in Counter(value for value, _ in points).most_common(MOST_CATEGORIES)]
    left, row = 120, 26
    top = 12
    bottom = top + row * len(common)
    x = scale_of([score for value, score in points if value in common], left, frame.width - frame.right)
    if x is None:
        return None
    at = {value: top + row * number + row / 2 for number, value in enumerate(common)}
    return Chart(
        name=name,
        width=frame.width,
        height=bottom + frame.bottom,
        left=left,
        right=frame.width - frame.right,
        top=top,
        bottom=bottom,
        x=tuple(Tick(at=x.at(value), text=tick_text(value)) for value in x.ticks(4)),
        y=tuple(Tick(at=at[value], text=value) for value in common),
        dots=dots_path((x.at(score), at[value]) for value, score in points if value in at),
        x_name=y_name,
        rows=True,
    )
