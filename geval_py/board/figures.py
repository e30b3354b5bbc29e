"""Figures that are shown: rounded to significant digits, and written with as many."""

from __future__ import annotations

import math

from geval_py.showing.numbers import MOST_PLAIN, fixed, shortest, special


def significant(value: float | None, digits: int) -> float | None:
    """Round to significant digits, half-even; None of None, of what is no number, and for 0 digits.

    >>> significant(549.9369, 4), significant(0.00181838, 2), significant(math.inf, 3), significant(549.9, 0)
    (549.9, 0.0018, inf, None)
    """
    if value is None or digits == 0 or math.isnan(value):
        return None
    if math.isinf(value):
        return value
    return float(f"{value:.{digits - 1}e}") + 0.0


def figure(value: float | None, digits: int) -> str:
    """Write a rounded value with all its significant digits, zeros at the end too; "" for None.

    >>> figure(549.9, 4), figure(550.0, 4), figure(0.00182, 3), figure(8100.0, 2), figure(0.0, 4)
    ('549.9', '550.0', '0.00182', '8100', '0')
    """
    if value is None:
        return ""
    if not math.isfinite(value):
        return special(value)
    if abs(value) >= MOST_PLAIN:
        return shortest(value)
    return fixed(value, decimals(value, digits))


def decimals(value: float, digits: int) -> int:
    """Give the decimals that a finite value with so many significant digits has; 0 for 0."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def difference(one: float, other: float, digits: int) -> str:
    """Write how far two finite rounded values are apart, as exactly as the coarser of them.

    >>> difference(549.9, 560.25, 4), difference(99.99, 100.5, 4)
    ('10.4', '0.5')
    """
    return fixed(abs(one - other), min(decimals(value, digits) for value in (one, other)))
