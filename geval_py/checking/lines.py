"""The rules of lines: what the kernel flagged, which error it is, and characters that should not be there.

Most rules are a pattern of the kernel's flags and are counted without parsing a line; a line is parsed in Python only
where a flag is not the whole truth (which error it is, which character), or to show its place.
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from geval_py.checking.findings import Findings
from geval_py.checking.places import error_code, error_place, odd_character_in, place_of
from geval_py.checking.seen import Seen
from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes
from geval_py.scoring.kernel.flags import (
    ABOVE_ONE,
    ALL_ZERO,
    BELOW_ONE,
    CARRIAGE_RETURN,
    CONTROL,
    HAS_REST,
    LOGARITHMS,
    LOOKS_LIKE_PROBABILITIES,
    MALFORMED,
    NOT_ASCII,
    REPEATED,
    REST_ALONE,
    SEPARATOR,
    VECTOR,
    ZERO_ENTRY,
    ZERO_REST,
)
from geval_py.scoring.kernel.reference import line_loss
from geval_py.scoring.metrics.hashed import DEFAULT_BITS


class FlagRule(NamedTuple):
    """A rule that holds where all of some flags are set and none of some others."""

    code: str
    has: int
    lacks: int


FLAG_RULES = (
    FlagRule("W201", LOOKS_LIKE_PROBABILITIES, 0),
    FlagRule("W202", ABOVE_ONE, LOGARITHMS),
    FlagRule("W203", HAS_REST | BELOW_ONE, LOGARITHMS),
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
    if seen.has(MALFORMED):
        _sort_out_errors(seen, findings)
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


def _sort_out_errors(seen: Seen, findings: Findings) -> None:
    for index, flags in enumerate(seen.flags):
        if not flags & MALFORMED:
            continue
        if not seen.raw(index).strip(b"\r") and not findings.wants_places("E111"):
            findings.count("E111", 1)
        else:
            error = _error_of(seen.text(index), seen.number(index))
            findings.add(error_code(error), partial(error_place, error))


def _error_of(text: str, line: int) -> MalformedLineError:
    """Parse a malformed line again, for its error."""
    try:
        line_loss(text, "", DEFAULT_BITS, line)
    except MalformedLineError as error:
        return error
    raise AssertionError(f"line {line} is malformed only to the native kernel")


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
