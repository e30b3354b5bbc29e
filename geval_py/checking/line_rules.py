"""The rules of lines: what the kernel flagged, which error it is, and characters that should not be there.

Most rules are a pattern of the kernel's flags and are counted without parsing a line; a line is parsed in Python only
where a flag is not the whole truth (which character it is), or to show its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from geval_py.checking.findings import Findings, Seen
from geval_py.checking.places import lists_word, odd_character_in, place_of
from geval_py.checking.targets import Target
from geval_py.reading.lines import Bytes, LineReader
from geval_py.scoring.kernel import (
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
from geval_py.text import visible


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


# Why an output may have another number of lines than there are items.


def line_count_causes(
    findings: Findings, lines: int, items: int, texts: Sequence[str], words: Sequence[str], input_path: str | None
) -> Iterator[str]:
    """Give the likely causes; ``texts`` and ``words`` are the first lines of the output and of the answers."""
    if findings.counted("E111") and lines > items:
        yield "there are empty lines"
    if findings.counted("W215"):
        yield "the first line is a header"
    if any(re.fullmatch('".+"', text) for text in texts):
        yield "there are quotes, as of a CSV writer: read and write with QUOTE_NONE"
    elif lines < items and _has_quotes(input_path):
        yield "the input has quotes, at which a CSV reader merges lines: read it with QUOTE_NONE"
    shift = _shift(texts, words)
    if shift:
        yield f"the outputs fit the expected words better when moved by one line {shift}"


def _has_quotes(input_path: str | None) -> bool:
    if input_path is None:
        return False
    with LineReader(input_path) as inputs:
        return re.search(rb'(?:^|\t)"', inputs.block(), re.MULTILINE) is not None


def _shift(texts: Sequence[str], words: Sequence[str]) -> str:
    """Tell whether more expected words are listed one line up or down; "" if not."""
    hits = {
        "": sum(map(lists_word, texts, words)),
        "up": sum(map(lists_word, texts[1:], words)),
        "down": sum(map(lists_word, texts, words[1:])),
    }
    best = max(hits, key=lambda way: hits[way])
    return best if hits[best] > max(3, 2 * hits[""]) else ""


# What is said of an output as a whole: how it begins, how many lines it has and why, and of mixed scales.


UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LINES_FOR_SHIFT = 2000  # how many of the first lines are compared with the expected words, one line up and down


class NotTextError(Exception):
    """No line of the file can be read, and it is not text."""


class FileRules:
    """Looks at one output as a whole; ``lines`` counts those that were seen."""

    def __init__(self, target: Target, findings: Findings) -> None:
        self._target, self._findings = target, findings
        self.lines = 0
        self._logarithm_lines = self._probability_lines = 0
        self._first_texts: list[str] = []
        self._first_words: list[str] = []

    def begin(self, seen: Seen) -> None:
        """Look at how the output begins, in its first block as one reader reads it; raises NotTextError."""
        data = bytes(seen.block.outputs)
        is_binary = b"\0" in data or data.startswith(UTF_16_MARKS)
        if is_binary and all(flags & MALFORMED for flags in seen.flags):
            raise NotTextError
        self._first_texts = [seen.text(index) for index in range(min(LINES_FOR_SHIFT, seen.block.lines))]
        self._first_words = seen.words()[:LINES_FOR_SHIFT]
        name = self._target.header
        field = self._first_texts[0].split("\t")[0]
        if name is not None and not self._target.header_is_skipped and field.casefold() == name.casefold():
            message = f"the first line is the header's name, `{visible(name)}`, and is read as the first item"
            self._findings.add_file("W215", message, line=1, column=1, token=field)

    def see(self, seen: Seen) -> None:
        """Look at the next block."""
        self.lines += seen.block.lines
        self._count_scales(seen)

    def _count_scales(self, seen: Seen) -> None:
        for flags, lines in seen.combinations.items():
            if flags & (MALFORMED | ALL_ZERO | LOOKS_LIKE_PROBABILITIES | REST_ALONE):
                continue
            if flags & LOGARITHMS:
                self._logarithm_lines += lines
            else:
                self._probability_lines += lines

    def later(self, findings: Findings) -> FileRules:
        """Give the same for later lines."""
        return FileRules(self._target, findings)

    def extend(self, later: FileRules) -> None:
        """Add what was seen in the next lines."""
        self.lines += later.lines
        self._logarithm_lines += later._logarithm_lines
        self._probability_lines += later._probability_lines

    def conclude(self, items: int | None) -> None:
        """Say what can be told when all lines are seen; ``items`` is how many there should be, None if unknown."""
        findings = self._findings
        if self.lines == 0:
            findings.add_file("E102", "the output has no line")
        elif items is not None and self.lines != items:
            few = self.lines < items
            message = f"the output has {self.lines} lines, there are {items} items{self._causes(items)}"
            findings.add_file("E103" if few else "E104", message, line=self.lines if few else items + 1, column=1)
        if self._logarithm_lines and self._probability_lines:
            message = f"{self._probability_lines} lines hold probabilities, {self._logarithm_lines} logarithms"
            findings.add_file("W213", message)

    def _causes(self, items: int) -> str:
        causes = line_count_causes(
            self._findings, self.lines, items, self._first_texts, self._first_words, self._target.input
        )
        return "".join(f"; {cause}" for cause in causes)
