"""The rules of lines: what the kernel flagged, which error it is, and characters that should not be there.

Most rules are a pattern of the kernel's flags and are counted without parsing a line; a line is parsed in Python only
where a flag is not the whole truth (which character it is), or to show its place.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from geval_py.checking.findings import Findings
from geval_py.checking.places import odd_character_in, place_of
from geval_py.checking.seen import Seen
from geval_py.reading.lines import Bytes
from geval_py.scoring.kernel.flags import (
    ABOVE_ONE,
    ALL_ZERO,
    BELOW_ONE,
    CARRIAGE_RETURN,
    CONTROL,
    EMPTY_LINE,
    HAS_REST,
    LOGARITHMS,
    LOOKS_LIKE_PROBABILITIES,
    MALFORMED,
    NO_COLON,
    NOT_A_NUMBER,
    NOT_ASCII,
    NUMBER_TOO_LARGE,
    REPEATED,
    REST_ALONE,
    ROUNDED,
    SEPARATOR,
    STRAY_SPACE,
    VECTOR,
    WRONG_LENGTH,
    ZERO_ENTRY,
    ZERO_REST,
)


class FlagRule(NamedTuple):
    """A rule that holds where all of some flags are set and none of some others."""

    code: str
    has: int
    lacks: int


FLAG_RULES = (
    FlagRule("E111", EMPTY_LINE, 0),
    FlagRule("E112", STRAY_SPACE, 0),
    FlagRule("E113", NO_COLON, 0),
    FlagRule("E114", NOT_A_NUMBER, 0),
    FlagRule("E115", WRONG_LENGTH, 0),
    FlagRule("E116", NUMBER_TOO_LARGE, 0),
    FlagRule("W201", LOOKS_LIKE_PROBABILITIES, 0),
    FlagRule("W202", ABOVE_ONE, LOGARITHMS | ROUNDED),
    FlagRule("W203", HAS_REST | BELOW_ONE, LOGARITHMS | ROUNDED),
    FlagRule("W204", 0, HAS_REST | BELOW_ONE | MALFORMED | VECTOR | ALL_ZERO),
    FlagRule("W204", ZERO_REST, 0),
    FlagRule("W205", ALL_ZERO, 0),
    FlagRule("W206", REPEATED, 0),
    FlagRule("W207", ZERO_ENTRY, LOGARITHMS),
    FlagRule("W209", SEPARATOR, 0),
    FlagRule("W210", CARRIAGE_RETURN, 0),
    FlagRule("W214", REST_ALONE, 0),
)
# Odd characters beyond ASCII, as UTF-8: patterns that begin with fixed bytes, which are searched for fast.
_ODD_BYTES = (
    re.compile(rb"\xc2[\x80-\xa0]"),
    re.compile(rb"\xe2\x80[\x87\x8b-\x8f\xa8-\xaf]"),
    re.compile(rb"\xe2\x81[\xa6-\xa9]"),
    re.compile(rb"\xef\xbb\xbf"),
)


def check_lines(seen: Seen, findings: Findings) -> None:
    """Apply the rules of lines to a block."""
    for rule in FLAG_RULES:
        _apply(rule, seen, findings)
    _look_at_characters(seen, findings)


def _apply(rule: FlagRule, seen: Seen, findings: Findings) -> None:
    holding = {flags for flags in seen.combinations if flags & rule.has == rule.has and not flags & rule.lacks}
    if not holding:
        return
    findings.count(rule.code, sum(seen.combinations[flags] for flags in holding))
    wanted = findings.wants_places(rule.code)
    for index, flags in enumerate(seen.flags):
        if not wanted:
            break
        if flags in holding:
            wanted -= 1
            _show(rule.code, seen, index, findings)


def _show(code: str, seen: Seen, index: int, findings: Findings) -> None:
    findings.show(code, lambda: place_of(code, seen.text(index), seen.number(index)))


def _look_at_characters(seen: Seen, findings: Findings) -> None:
    look = _suspect_flags(seen)
    if not look:
        return
    for index, flags in enumerate(seen.flags):
        if flags & look and not flags & MALFORMED:
            if not _is_utf8(seen.raw(index)):
                findings.count("W212", 1)
                _show("W212", seen, index, findings)
            if odd_character_in(seen.text(index)):
                findings.count("W208", 1)
                _show("W208", seen, index, findings)


def _suspect_flags(seen: Seen) -> int:
    """Give the flags of the lines that may have an odd character; 0 if the block has none."""
    look = CONTROL if seen.has(CONTROL) else 0
    if seen.has(NOT_ASCII):
        data = seen.block.outputs
        if not _is_utf8(data) or any(pattern.search(data) for pattern in _ODD_BYTES):
            look |= NOT_ASCII
    return look


def _is_utf8(data: Bytes) -> bool:
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
