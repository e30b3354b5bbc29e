"""Mend lines where that can be done without guessing.

A line keeps its number, its words and their order; a number that does not change keeps its digits. Of the rules of
:mod:`geval_py.checking.rules`, these are mended: E112, W201 (tiny overshoots), W202, W203, W204 (if a rest mass is
given), W206, W207, W210 and W211. All but W201, W204 and W211 keep the loss of every word (for E112, that of the
line without its stray spaces). What was mended once is not mended again.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence

from geval_py.checking.rules import RULES
from geval_py.errors import MalformedLineError, UsageError
from geval_py.reading.distribution import LEAST_TOTAL, TOLERANCE, are_probabilities, sum_in_order
from geval_py.reading.wordprobs import REST, parse_line
from geval_py.scoring.kernel.reference import OVERSHOOT, is_explained, numbers_of, rounding

FIXABLE = frozenset(rule.code for rule in RULES if rule.fixable)
_UNCHANGED: frozenset[str] = frozenset()


def fix_line(
    text: str, *, rest_mass: float | None = None, rules: Collection[str] = FIXABLE
) -> tuple[str, frozenset[str]]:
    """Mend one line, without its line end; give it with the codes of the rules that were applied.

    ``rest_mass``, in (0, 1), is what a line that leaves nothing for other words is to leave. A line that is not in
    the format, of logarithms or a vector loses its stray spaces at most, and those only if it is in the format then.
    ``rules`` are the codes of the only rules to apply. Without W206, a line that repeats a word loses stray spaces at
    most; a line whose sum stays off, for want of W202 or W203, is given no rest.

    Raises UsageError on a rest mass outside (0, 1).

    >>> fix_line("the:1.5e0  :1.5")
    ('the:1.5e0 :1.5', frozenset({'E112'}))
    >>> fix_line("the:1 a:0 :1")[0]
    'the:0.5 :0.5'
    >>> fix_line("the:1", rest_mass=0.01)
    ('the:0.99 :0.01', frozenset({'W204'}))
    >>> fix_line("the:1 a:0 :1", rules=["W207"])[0]
    'the:1 :1'
    """
    check_rest_mass(rest_mass)
    tidy = " ".join(filter(None, text.split(" "))) if "E112" in rules else text
    try:
        line = parse_line(tidy)
    except MalformedLineError:
        return text, _UNCHANGED
    spaces = frozenset({"E112"}) if tidy != text else _UNCHANGED
    if line.words is None:
        return tidy, spaces
    masses, codes = _mend_entries(line.words, line.values, rest_mass if "W204" in rules else None, rules, tidy)
    return (_write_entries(masses, tidy) if codes else tidy), spaces | codes


def check_rest_mass(rest_mass: float | None) -> None:
    """Raise UsageError for a rest mass that is not between 0 and 1."""
    if rest_mass is not None and not 0 < rest_mass < 1:
        raise UsageError(message=f"the rest mass is {rest_mass!r}, which is not between 0 and 1 (both excluded)")


def _mend_entries(
    words: Sequence[str], values: Sequence[float], rest_mass: float | None, rules: Collection[str], text: str
) -> tuple[dict[str, float], frozenset[str]]:
    """Give the mended mass of each word, in order, and the codes of the rules applied; no codes: leave the line."""
    values, clipped = _clip(values) if "W201" in rules else (list(values), _UNCHANGED)
    repetition = _repetition(words, values)
    if not are_probabilities(values) or ("W206" in repetition and "W206" not in rules):
        return {}, _UNCHANGED
    added = _add_up(words, values)
    total = sum_in_order(values)
    if _is_below_one(added) != (total < LEAST_TOTAL):  # by rounding; it would be another distribution
        return {}, _UNCHANGED
    off = _off_rule(total, added, numbers_of(text))
    codes = clipped | ((repetition | off) & frozenset(rules))
    kept = {word: mass for word, mass in added.items() if mass or not word or "W207" not in rules}
    if off <= frozenset(rules) and (off or (codes and _must_be_divided(kept, text, rules))):
        masses = _scale(kept, 1.0, _total(kept))
    elif max(kept.values()) > 1.0:  # it would be a logarithm
        return {}, _UNCHANGED
    elif not off <= frozenset(rules):
        return kept, codes
    else:
        masses = kept
    if masses is None:
        return {}, _UNCHANGED
    with_rest = _leave_rest(masses, rest_mass) if rest_mass is not None else None
    return (masses, codes) if with_rest is None else (with_rest, codes | {"W204"})


def _clip(values: Sequence[float]) -> tuple[list[float], frozenset[str]]:
    """Clip to [0, 1] what overshoots it by rounding (W201)."""
    low, high = min(values), max(values)
    inside = sum(0.0 <= value <= 1.0 for value in values)
    looks_like_probabilities = high >= 0.5 or (high > 0.0 and 2 * inside > len(values))
    if (low < 0.0 or high > 1.0) and looks_like_probabilities and low >= -OVERSHOOT and high <= 1.0 + OVERSHOOT:
        return [min(max(value, 0.0), 1.0) for value in values], frozenset({"W201"})
    return list(values), _UNCHANGED


def _add_up(words: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    """Add up the values of each word, the rest too, at its first place (W206)."""
    masses: dict[str, float] = {}
    for word, value in zip(words, values, strict=True):
        masses[word] = masses.get(word, 0.0) + value
    return masses


def _repetition(words: Sequence[str], values: Sequence[float]) -> frozenset[str]:
    """Tell which of W206 and W207 hold; both go when values are added up and zeros dropped."""
    codes = {"W206"} if len(set(words)) < len(words) else set()
    if 0.0 in values and any(word and value == 0.0 for word, value in zip(words, values, strict=True)):
        codes.add("W207")
    return frozenset(codes)


def _total(masses: Mapping[str, float]) -> float:
    return sum_in_order(list(masses.values()))


def _is_below_one(masses: Mapping[str, float]) -> bool:
    return _total(masses) < LEAST_TOTAL


def _off_rule(total: float, masses: Mapping[str, float], numbers: Sequence[str]) -> frozenset[str]:
    """Tell which of W202 and W203 holds, if any, of a total of numbers that are written so."""
    above = total > 1.0 + TOLERANCE
    if not above and not (REST in masses and total < LEAST_TOTAL):
        return _UNCHANGED
    if is_explained(total, rounding(numbers)):
        return _UNCHANGED
    return frozenset({"W202" if above else "W203"})


def _must_be_divided(masses: Mapping[str, float], text: str, rules: Collection[str]) -> bool:
    """Tell whether what was added up or dropped would leave a line that another run, with the rules, had to mend.

    Of fewer numbers rounding explains less, and a word that was added up to more than 1 would be a logarithm.
    """
    if max(masses.values()) > 1.0:
        return "W202" in rules
    return bool(_off_rule(_total(masses), masses, _write_numbers(masses, text)) & frozenset(rules))


def _scale(masses: Mapping[str, float], factor: float, total: float) -> dict[str, float] | None:
    """Multiply and divide all masses; None if one became subnormal: it would lose digits, or all."""
    scaled = {word: mass * factor / total for word, mass in masses.items()}
    lost = any(mass > 0.0 and scaled[word] < sys.float_info.min for word, mass in masses.items())
    return None if lost else scaled


def _leave_rest(masses: dict[str, float], rest_mass: float) -> dict[str, float] | None:
    """Take the rest's mass from all words alike (W204); None if there is some for it already."""
    if masses.get(REST) or (REST not in masses and _is_below_one(masses)):
        return None
    words = {word: mass for word, mass in masses.items() if word}
    scaled = _scale(words, 1.0 - rest_mass, _total(words))
    return None if scaled is None else {**masses, **scaled, REST: rest_mass}


def _write_entries(masses: Mapping[str, float], text: str) -> str:
    """Write a line; a mass that is as it was in ``text`` has the digits that it had there."""
    numbers = _write_numbers(masses, text)
    return " ".join(f"{word}:{number}" for word, number in zip(masses, numbers, strict=True))


def _write_numbers(masses: Mapping[str, float], text: str) -> list[str]:
    written: dict[str, str] = {}
    for token in text.split(" "):
        word, _, number = token.rpartition(":")
        written.setdefault(word, number)
    return [_digits(mass, written.get(word)) for word, mass in masses.items()]


def _digits(mass: float, written: str | None) -> str:
    if written is not None and float(written) == mass:
        return written
    return repr(mass).removesuffix(".0")
