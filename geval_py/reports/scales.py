"""Scales of the charts of reports and sites: where an axis begins and ends, its round ticks, the pixel of a value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

LOGARITHMIC_FROM = 8.0  # a scale is logarithmic if the greatest value is so many times the least


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
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

    def ticks(self, most: int = 5) -> list[float]:
        """Return round values on the scale, at most ``most``."""
        return (log_ticks if self.logarithmic else round_ticks)(self.low, self.high, most)


def scale_of(values: Iterable[float], start: float, end: float, *, margin: float = 0.04) -> Scale | None:
    """Return a scale that holds all finite values; None if there is none."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    if low > 0 and high / low >= LOGARITHMIC_FROM:
        room = (high / low) ** margin
        return Scale(low=low / room, high=high * room, start=start, end=end, logarithmic=True)
    room = (high - low) * margin or abs(high) * margin or 1.0
    return Scale(low=low - room, high=high + room, start=start, end=end)


def log_domain(values: Iterable[float | None]) -> list[float]:
    """Return the ends of a logarithmic axis for all values that are finite and positive, with some room."""
    finite = [value for value in values if value is not None and math.isfinite(value) and value > 0]
    if not finite:
        return [1.0, 10.0]
    low, high = min(finite), max(finite)
    room = max((high / low) ** 0.06, 1.02)
    return [low / room, high * room]


def linear_domain(values: Iterable[float | None]) -> list[float]:
    """Return the ends of a linear axis for all finite values, with some room."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    room = (high - low) * 0.06 or 1.0
    return [low - room, high + room]


def log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round values for a logarithmic axis, at most ``most``.

    >>> log_ticks(40.0, 3000.0), log_ticks(144.0, 159.0)
    ([100.0, 300.0, 1000.0, 3000.0], [145.0, 150.0, 155.0])
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
    """Return round values at equal distances, at most ``most``."""
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (power * factor) <= most)
    return [round(n * step, 12) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick_text(value: float) -> str:
    """Write a round value as briefly as possible.

    >>> tick_text(150.0), tick_text(1024.0), tick_text(0.30000000000000004)
    ('150', '1,024', '0.3')
    """
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3g}".replace("-", "−")
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")
