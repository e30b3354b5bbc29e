"""Which rules mending applies to the lines of a block, told from the kernel's flags: most lines need not be parsed.

The twin of :func:`geval_py.checking.fixes.fix_line`, as far as flags tell.
"""

from __future__ import annotations

from collections.abc import Sequence

from geval_py.reading.distribution import DEFAULT_BITS
from geval_py.scoring.kernel import score_lines
from geval_py.scoring.kernel.flags import (
    ABOVE_ONE,
    BELOW_ONE,
    CARRIAGE_RETURN,
    HAS_REST,
    LOGARITHMS,
    LOOKS_LIKE_PROBABILITIES,
    MALFORMED,
    REPEATED,
    ROUNDED,
    STRAY_SPACE,
    TINY,
    VECTOR,
    WRONG_LENGTH,
    ZERO_ENTRY,
    ZERO_REST,
)

Codes = frozenset[str]
NOTHING: Codes = frozenset()
_RETURN = frozenset({"W210"})
_SPACE = frozenset({"E112"})


def codes_of_lines(lines: Sequence[bytes], rest_mass: float | None) -> list[Codes | None]:
    """Give for each line the codes of the rules that mending it applies; None where only mending it tells."""
    text = b"\n".join(lines)
    flags = _flags_of(text, len(lines))
    known = {each: codes_of(each, rest_mass) for each in set(flags)}
    if not _is_text(text):  # other lines are mended in part
        known = {each: codes if codes == NOTHING else None for each, codes in known.items()}
        return [known[each] for each in flags]
    codes = [known[each] for each in flags]
    if any(each & STRAY_SPACE for each in known):
        strays = [index for index, each in enumerate(flags) if each & STRAY_SPACE]
        found = _codes_without_spaces([lines[index] for index in strays], rest_mass)
        for index, of_line in zip(strays, found, strict=True):
            codes[index] = of_line
    return codes


def _flags_of(text: bytes, lines: int) -> Sequence[int]:
    return score_lines(text + b"\n", b"\n" * lines, DEFAULT_BITS, 1)[1]


def _is_text(data: bytes) -> bool:
    """Tell whether there is nothing but UTF-8, and no NUL."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def codes_of(flags: int, rest_mass: float | None) -> Codes | None:
    """Give the codes of the rules that mending applies to a line with such flags; None where flags do not tell.

    They do not of a line that overshoots [0,1] by rounding, repeats a word, has stray spaces, or has masses so small
    that dividing might lose them.
    """
    if flags & CARRIAGE_RETURN:
        others = codes_of(flags & ~CARRIAGE_RETURN, rest_mass)
        return None if others is None else others | _RETURN
    if flags & (STRAY_SPACE | LOOKS_LIKE_PROBABILITIES):
        return None
    if flags & (MALFORMED | LOGARITHMS | VECTOR):
        return NOTHING
    if flags & REPEATED:
        return None
    codes = _codes_of_probabilities(flags, rest_mass)
    return None if codes and flags & TINY else codes


def _codes_of_probabilities(flags: int, rest_mass: float | None) -> Codes:
    has_room = flags & BELOW_ONE or flags & HAS_REST
    holding = {
        "W202": flags & (ABOVE_ONE | ROUNDED) == ABOVE_ONE,
        "W203": flags & (BELOW_ONE | HAS_REST | ROUNDED) == BELOW_ONE | HAS_REST,
        "W204": rest_mass is not None and (flags & ZERO_REST or not has_room),
        "W207": flags & ZERO_ENTRY,
    }
    return frozenset(code for code, holds in holding.items() if holds)


def _codes_without_spaces(lines: Sequence[bytes], rest_mass: float | None) -> list[Codes | None]:
    """Give the codes for lines with stray spaces, which go if the line is in the format then."""
    text = b"\n".join(lines)
    flags = _flags_of(tidied(text), len(lines))
    known = {each: _codes_of_tidied(each, rest_mass) for each in set(flags)}
    codes = [known[each] for each in flags]
    if b"\r" in text:
        returns = (_RETURN if b"\r" in line else NOTHING for line in lines)
        codes = [None if of_line is None else of_line | more for of_line, more in zip(codes, returns, strict=True)]
    return codes


def _codes_of_tidied(flags: int, rest_mass: float | None) -> Codes | None:
    if flags & MALFORMED and not flags & WRONG_LENGTH:  # a vector's length is not a matter of its format
        return NOTHING
    codes = codes_of(flags, rest_mass)
    return None if codes is None else codes | _SPACE


def tidied(text: bytes) -> bytes:
    """Give lines without carriage returns and stray spaces."""
    text = text.replace(b"\r", b"")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return (b"\n" + text + b"\n").replace(b"\n ", b"\n").replace(b" \n", b"\n")[1:-1]


def mended_spacing(line: bytes, codes: Codes) -> bytes | None:
    """Mend a line of which nothing but spaces and carriage returns is to be mended; None if there is more."""
    if codes == _RETURN:
        return line.replace(b"\r", b"")
    return tidied(line) if codes <= _RETURN | _SPACE else None
