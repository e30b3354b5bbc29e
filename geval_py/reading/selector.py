r"""Parts of JSON lines as the lines of answers and outputs: ``--selector``.

    {"root": {"items": ["a b", {"y": 0.5, "x": 1}]}}    --selector root/items    "a␣b" {"x":1,"y":0.5}
    {"root": {"name": "Oslo"}}                          --selector root/name     "Oslo"

The keys of a selector lead from map to map. What is found is written as compact JSON with sorted keys, in GEval's way
(GEval.Selector of 1.42.2, with the libraries aeson and aeson-pretty). The items of a list are the words of a line.
White space inside an item becomes U+2423, so that it remains one word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from geval_py.errors import UnreadableFileError
from geval_py.reading import rows
from geval_py.reading.files import File
from geval_py.reading.items import lines_of
from geval_py.text import SPACES, shorten

SPACE = "\u2423"  # OPEN BOX, in the place of white space inside an item
REPLACEMENT = "\ufffd"
MAX_EXPONENT = 1_000_000  # a greater one is not a number that anyone means
_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_ESCAPES = {  # for str.translate
    **dict.fromkeys(range(0xD800, 0xE000), REPLACEMENT),  # surrogates
    **{code: f"\\u{code:04x}" for code in range(0x20)},
    **str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}),
}


class _Number(str):
    """A number as it is written in JSON."""

    __slots__ = ()


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def read_selected(file: File, selector: str) -> Iterator[bytes]:
    """Yield the parts that a selector finds in a file of JSON lines, each as a line; raises UnreadableFileError."""
    keys = selector.split("/")
    try:
        for row, value in rows.json_rows(file, parse_float=_Number, parse_int=_Number, parse_constant=_refused):
            for place, key in enumerate(keys, 1):
                if not isinstance(value, dict) or key not in value:
                    raise row.error(f"there is no {rows.quoted('/'.join(keys[:place]))}")
                value = value[key]
            try:
                if isinstance(value, list):
                    words = (_written(item).replace(SPACE, f"\\u{ord(SPACE):04x}") for item in value)
                    line = " ".join([re.sub(f"[{SPACES}]", SPACE, word) for word in words])
                else:
                    line = _written(value)
            except RecursionError:
                raise row.error("its lists and maps are nested too deeply") from None
            except ValueError as error:
                raise row.error(str(error)) from None
            yield lines_of([line])
    except UnreadableFileError as error:
        error.what = "selector failed:"
        raise


def _written(value: object) -> str:
    """Write a decoded value as compact JSON, with sorted keys."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{_quoted(key)}:{_written(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, _Number):
        return _written_number(value)
    if isinstance(value, str):
        return _quoted(value)
    return "null" if value is None else str(value).lower()


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _written_number(written: str) -> str:
    """Write a number as aeson does: whole ones up to 1e19 in full, others with a point, far ones by powers of ten.

    >>> [_written_number(text) for text in ("12", "1e3", "12.50", "0.05", "-1e20", "12345678.5", "-0", "0.0")]
    ['12', '1000', '12.5', '5.0e-2', '-1.0e20', '1.23456785e7', '0', '0.0']
    """
    ((sign, whole, fraction, power),) = _NUMBER.findall(written)
    if len(power) > len(str(MAX_EXPONENT)):
        raise ValueError(f"the exponent of {shorten(written)} is too far from 0")
    exponent = int(power or 0) - len(fraction)
    coefficient = (whole + fraction).lstrip("0")
    digits = coefficient.rstrip("0") or "0"
    point = len(coefficient) + exponent if coefficient else 0  # the value is 0.DIGITS times ten to this power
    sign = sign if coefficient else ""
    is_great = point > 20 or (point == 20 and digits > "1")  # above 1e19
    if exponent >= 0 and not is_great:
        return sign + digits.ljust(point, "0")
    if is_great or point < 0 or point > 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}e{point - 1}"
    if point == 0:
        return f"{sign}0.{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
