"""Axes with ticks of our own: on a logarithmic one, Vega's crowd."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import altair as alt

NUMBER = "format(datum.value, ',~r')"  # an expression of Vega's for the labels of an axis


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Give round values for a logarithmic axis, at most some of them.

    >>> ticks(40.0, 3000.0), ticks(144.0, 159.0)
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
        axis=alt.Axis(values=ticks(low, high), labelExpr=NUMBER, title=title, domain=False, ticks=False),
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
        axis=alt.Axis(values=round_ticks(low, high), labelExpr=NUMBER, title=title, domain=False, ticks=False),
    )
