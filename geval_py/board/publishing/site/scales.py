"""Scales of charts: values to pixels, and the round values that are marked on an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from geval_py.board.publishing.site.figures import day, short_day

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
