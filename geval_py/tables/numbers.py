"""Numbers as text, written as GEval writes them."""

from __future__ import annotations

import math

MAX_PLAIN = 1e15  # estimates from here on are written with an exponent


def shortest(value: float) -> str:
    """Write the shortest digits that read back the same; as in GEval, with an exponent below 0.1 and from 10^7.

    >>> shortest(0.001818390380192753), shortest(549.9369172278606), shortest(1e7)
    ('1.818390380192753e-3', '549.9369172278606', '1.0e7')
    """
    if not math.isfinite(value):
        return special(value)
    if value == 0:
        return "0.0"
    if 0.1 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal

    decimal = Decimal(repr(value)).normalize()
    sign, digits = "-" if value < 0 else "", "".join(map(str, decimal.as_tuple().digits))
    return f"{sign}{digits[0]}.{digits[1:] or '0'}e{decimal.adjusted()}"


def plain(value: float) -> str:
    """Write a number with the shortest digits that read back the same, never with an exponent.

    >>> plain(3.904297851074462e-4), plain(1e22)
    ('0.0003904297851074462', '10000000000000000000000.0')
    """
    if not math.isfinite(value):
        return special(value)
    text = repr(value + 0.0)
    if "e" in text:
        from decimal import Decimal

        text = format(Decimal(text), "f")
    return text if "." in text else text + ".0"


def fixed(value: float, precision: int) -> str:
    """Write a number with ``precision`` digits after the point, rounded half-even on its shortest digits.

    >>> fixed(0.005, 2), fixed(0.025, 2), fixed(0.035, 2)
    ('0.00', '0.02', '0.04')
    """
    if not math.isfinite(value):
        return special(value)
    decimals = repr(value).partition(".")[2]
    if len(decimals) > precision and "e" not in decimals and decimals[precision:] != "5":
        # Python rounds the binary value, which differs only where the shortest digits are halfway.
        text = f"{value:.{precision}f}"
    else:
        from decimal import ROUND_HALF_EVEN, Context, Decimal

        step = Decimal(1).scaleb(-precision)
        context = Context(prec=400 + precision, rounding=ROUND_HALF_EVEN)
        text = format(Decimal(repr(value)).quantize(step, context=context), "f")
    return text.removeprefix("-") if not text.strip("-0.") else text


def short(value: float) -> str:
    """Write a number with six significant digits.

    >>> short(7547.169811320753), short(4.0), short(math.inf)
    ('7547.17', '4', 'Infinity')
    """
    return f"{value:.6g}" if math.isfinite(value) else special(value)


def shorter(text: str) -> str:
    """Write a number that has a point once more, with six significant digits.

    >>> shorter("0.00030945591426049790"), shorter("1234567")
    ('0.000309456', '1234567')
    """
    return short(float(text)) if "." in text else text


def number(value: float, precision: int | None = None, *, percentage: bool = False) -> str:
    """Write a score with ``precision`` digits after the point, or the shortest.

    A percentage is the score times 100, with two digits fewer.
    """
    if percentage and math.isfinite(value):
        from decimal import Decimal

        value = float(Decimal(repr(value)).scaleb(2))
        precision = None if precision is None else max(0, precision - 2)
    return shortest(value) if precision is None else fixed(value, precision)


def with_half_width(middle: float, half: float, precision: int | None = None, *, percentage: bool = False) -> str:
    """Write an interval as ``middle±half``, with two significant digits of ``half``, or ``precision`` if fewer.

    If the middle is not finite, it is written alone.
    """
    if not math.isfinite(middle):
        return special(middle)
    if abs(middle) >= MAX_PLAIN:
        return "±".join(shortest(float(f"{value:.1e}")) for value in (middle, half))
    shown = decimals(half, 2) if half else 1
    shown = shown if precision is None else min(shown, precision)
    return "±".join(number(value, shown, percentage=percentage) for value in (middle, half))


def special(value: float) -> str:
    """Write an infinity or NaN."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def p_value(p: float) -> str:
    """Write a probability with 20 digits after the point: the shortest digits, padded with zeros.

    >>> p_value(0.0003094559142604979)
    '0.00030945591426049790'
    """
    if p >= 1e-4:
        return repr(p).ljust(22, "0")  # 17 digits at most, the first of them at the fourth place
    return fixed(p, 20)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a number of things; the board's pages give the plural of "entry".

    >>> counted(1, "line"), counted(2322, "line"), counted(2, "entry", "entries")
    ('1 line', '2,322 lines', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def p_value_text(p_value: float | None) -> str:
    """Write a p-value with four decimals, or as smaller than 0.0001.

    >>> p_value_text(0.01234), p_value_text(1 / 10001), p_value_text(1.0)
    ('0.0123', '<0.0001', '1.0000')
    """
    if p_value is None:
        return ""
    return "<0.0001" if p_value < 0.0001 else fixed(p_value, 4)


def percent(share: float | None) -> str:
    """Write a share as a percentage; a dash for None and NaN.

    >>> percent(0.4449), percent(0.0589), percent(0.0), percent(0.0004)
    ('44 %', '5.9 %', '0 %', '<0.1 %')
    """
    if share is None or math.isnan(share):
        return "–"
    if 0 < share < 0.0005:
        return "<0.1 %"
    written = f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"
    return f"{written.removesuffix('.0')} %"


def significant(value: float | None, digits: int) -> float | None:
    """Round to significant digits, half-even; None for None, NaN and 0 digits.

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
    if abs(value) >= MAX_PLAIN:
        return shortest(value)
    return fixed(value, decimals(value, digits))


def decimals(value: float, digits: int) -> int:
    """Return the number of decimals of a finite value with these significant digits; 0 for the value 0."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def interval(low: float, high: float, digits: int) -> tuple[str, str]:
    """Write the ends of an interval, with no more digits than given, and than two digits of its width need.

    >>> interval(512.34, 598.12, 5), interval(8123.0, 14540.0, 4), interval(400.0, 700.0, 1)
    (('512', '598'), ('8100', '14500'), ('400', '700'))
    """
    width = high - low
    if not width or not math.isfinite(width):
        return figure(low, digits), figure(high, digits)
    most = 1 - math.floor(math.log10(abs(width)))  # decimals; below 0, the last digits before the point are zeros
    low_text, high_text = (
        fixed(rounded, min(decimals(end, digits), max(0, most)))
        if abs(rounded := round(end, most) + 0.0) < MAX_PLAIN
        else figure(end, digits)
        for end in (low, high)
    )
    return low_text, high_text


def difference(one: float, other: float, digits: int) -> str:
    """Write the distance of two finite rounded values, with the decimals of the coarser one.

    >>> difference(549.9, 560.25, 4), difference(99.99, 100.5, 4)
    ('10.4', '0.5')
    """
    return fixed(abs(one - other), min(decimals(value, digits) for value in (one, other)))
