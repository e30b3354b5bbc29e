"""Numbers as text, written as GEval writes them."""

from __future__ import annotations

import math

MAX_PLAIN = 1e15  # from here on, significant digits are written with an exponent


def exact(value: float, *, exponent: bool = True) -> str:
    """Write the shortest digits that read back the same; as GEval, with an ``exponent`` below 0.1 and from 10^7.

    >>> exact(0.001818390380192753), exact(549.9369172278606), exact(1e7), exact(math.inf)
    ('1.818390380192753e-3', '549.9369172278606', '1.0e7', 'Infinity')
    >>> exact(3.904297851074462e-4, exponent=False), exact(1e22, exponent=False)
    ('0.0003904297851074462', '10000000000000000000000.0')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    text = repr(value + 0.0)  # 0.0 for -0.0
    has_exponent = exponent and value != 0 and not 0.1 <= abs(value) < 1e7
    if not has_exponent and "e" not in text:
        return text
    from decimal import Decimal

    decimal = Decimal(text)
    if not has_exponent:
        text = format(decimal, "f")
        return text if "." in text else text + ".0"
    digits = "".join(map(str, decimal.normalize().as_tuple().digits))
    return f"{'-' * (value < 0)}{digits[0]}.{digits[1:] or '0'}e{decimal.adjusted()}"


def fixed(value: float, decimals: int) -> str:
    """Write a number with ``decimals`` digits after the point, rounded half-even on its shortest digits.

    >>> fixed(0.005, 2), fixed(0.025, 2), fixed(0.035, 2), fixed(0.0003094559142604979, 20)
    ('0.00', '0.02', '0.04', '0.00030945591426049790')
    """
    if not math.isfinite(value):
        return exact(value)
    text = repr(value)
    digits = text.partition(".")[2]
    if "e" in text or digits[decimals:] == "5" or not decimals:
        from decimal import ROUND_HALF_EVEN, Context, Decimal

        context = Context(prec=400 + decimals, rounding=ROUND_HALF_EVEN)
        text = format(Decimal(text).quantize(Decimal(1).scaleb(-decimals), context=context), "f")
    elif len(digits) <= decimals:
        text += "0" * (decimals - len(digits))
    else:  # Python rounds the binary value, which differs only where the shortest digits are halfway
        text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def significant(value: float | None, digits: int = 6) -> str:
    """Write a number with significant digits, also zeros at the end, and all digits before the point; "" for None.

    >>> significant(549.9369, 4), significant(550.0, 4), significant(0.00182345, 3), significant(81234.5, 2)
    ('549.9', '550.0', '0.00182', '81234')
    >>> significant(0.0, 4), significant(1.2345e20, 2), significant(math.nan, 4)
    ('0', '1.2e20', 'NaN')
    """
    if value is None:
        return ""
    if math.isfinite(value) and abs(value) < MAX_PLAIN:
        return fixed(value, decimals_of(value, digits))
    return exact(rounded(value, digits) or value)


def p_value(p: float | None) -> str:
    """Write a p-value with four decimals, or as smaller than 0.0001; "" for None.

    >>> p_value(0.01234), p_value(1 / 10001), p_value(1.0)
    ('0.0123', '<0.0001', '1.0000')
    """
    if p is None:
        return ""
    return "<0.0001" if p < 0.0001 else fixed(p, 4)


def score_text(
    value: float, precision: int | None = None, half_width: float | None = None, *, percentage: bool = False
) -> str:
    """Write a score as GEval does: with ``precision`` digits after the point, or exactly.

    A percentage is the score times 100, with two digits fewer. With half the width of an interval, the score is its
    middle, both with two significant digits of the half width, or ``precision`` if that is fewer.

    >>> score_text(0.29), score_text(0.2912, 4, percentage=True), score_text(549.9, None, 12.34)
    ('0.29', '29.12', '550±12')
    """
    if half_width is not None and math.isfinite(value):
        if abs(value) >= MAX_PLAIN:
            return f"{significant(value, 2)}±{significant(half_width, 2)}"
        decimals = decimals_of(half_width, 2) if half_width else 1
        precision = decimals if precision is None else min(decimals, precision)
        return "±".join(score_text(number, precision, percentage=percentage) for number in (value, half_width))
    if percentage and math.isfinite(value):
        from decimal import Decimal

        value = float(Decimal(repr(value)).scaleb(2))
        precision = None if precision is None else max(0, precision - 2)
    return exact(value) if precision is None else fixed(value, precision)


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


def rounded(value: float | None, digits: int) -> float | None:
    """Round to significant digits, half-even; None for None, NaN and 0 digits.

    >>> rounded(549.9369, 4), rounded(0.00181838, 2), rounded(math.inf, 3), rounded(549.9, 0)
    (549.9, 0.0018, inf, None)
    """
    if value is None or digits == 0 or math.isnan(value):
        return None
    if math.isinf(value):
        return value
    return float(f"{value:.{digits - 1}e}") + 0.0


def decimals_of(value: float, digits: int) -> int:
    """Return the number of decimals of a finite value with these significant digits; 0 for the value 0."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def rounded_outward(low: float | None, high: float | None, digits: int) -> tuple[float | None, float | None]:
    """Round the ends of an interval to significant digits, the low one down and the high one up.

    So it contains its score, to however many digits that is rounded. None for None, and for 0 digits.

    >>> rounded_outward(512.34, 598.12, 3), rounded_outward(9.99, 9.99, 2), rounded_outward(-0.1234, math.inf, 2)
    ((512.0, 599.0), (9.9, 10.0), (-0.13, inf))
    """

    def end(value: float | None, rounding: str) -> float | None:
        if value is None or not digits or not value or not math.isfinite(value):
            return rounded(value, digits)
        return _to_decimals(value, digits - 1 - Decimal(repr(value)).adjusted(), rounding)

    from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

    return end(low, ROUND_FLOOR), end(high, ROUND_CEILING)


def _to_decimals(value: float, decimals: int, rounding: str) -> float:
    from decimal import Decimal

    return float(Decimal(repr(value)).quantize(Decimal((0, (1,), -decimals)), rounding)) + 0.0


def interval(low: float, high: float, digits: int) -> tuple[str, str]:
    """Write the ends of an interval, with no more digits than given, and than two digits of its width need.

    The low end is rounded down and the high end up.

    >>> interval(512.34, 598.12, 5), interval(8123.0, 14540.0, 4), interval(400.0, 700.0, 1)
    (('512', '599'), ('8100', '14600'), ('400', '700'))
    """
    from decimal import ROUND_CEILING, ROUND_FLOOR

    width = high - low
    if not width or not math.isfinite(width):
        return significant(low, digits), significant(high, digits)
    most = 1 - math.floor(math.log10(abs(width)))  # decimals; below 0, the last digits before the point are zeros
    low_text, high_text = (
        fixed(end, min(decimals_of(value, digits), max(0, most)))
        if abs(end := _to_decimals(value, most, rounding)) < MAX_PLAIN
        else significant(value, digits)
        for value, rounding in ((low, ROUND_FLOOR), (high, ROUND_CEILING))
    )
    return low_text, high_text


def difference(one: float, other: float, digits: int) -> str:
    """Write the distance of two finite rounded values, with the decimals of the coarser one.

    >>> difference(549.9, 560.25, 4), difference(99.99, 100.5, 4)
    ('10.4', '0.5')
    """
    return fixed(abs(one - other), min(decimals_of(value, digits) for value in (one, other)))
