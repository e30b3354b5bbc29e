"""What the rules find in blocks of lines of word gaps: counts, and the lines of the first places.

Most rules are patterns of the kernel's flags, so that lines are counted without being parsed. A line is parsed in
Python only to find the place of a problem, or odd characters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from geval_py.checking import places
from geval_py.checking.rules import FLAG_RULES, place_of
from geval_py.reading.lines import decode_lines, is_utf8
from geval_py.reading.schemes import DEFAULT_BITS
from geval_py.scoring import kernel
from geval_py.scoring.kernel import backends

if TYPE_CHECKING:
    from typing import Any

    from geval_py.checking.places import Place
    from geval_py.checking.targets import Target
    from geval_py.scoring.blocks import Block

# Lines that do not show whether their author writes probabilities or logarithms; a vector always holds logarithms.
NO_CHOICE_OF_SCALE = (
    kernel.MALFORMED | kernel.ALL_ZERO | kernel.LOOKS_LIKE_PROBABILITIES | kernel.REST_ALONE | kernel.VECTOR
)
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
HEAD_LINES = 2000  # of the beginning, compared with the expected words one line up and down
# Odd characters beyond ASCII, as UTF-8. The patterns begin with fixed bytes, so that the search is fast.
_ODD_BYTES = (
    re.compile(rb"\xc2[\x80-\xa0]"),
    re.compile(rb"\xe2\x80[\x87\x8b-\x8f\xa8-\xaf]"),
    re.compile(rb"\xe2\x81[\xa6-\xa9]"),
    re.compile(rb"\xef\xbb\xbf"),
)
_SPACE = re.compile(b" ")


@dataclass(slots=True)
class Findings:
    """What was found in some consecutive lines.

    ``counts`` has the number of lines that break a rule, by its code, and other facts, by their names. ``places``
    holds the first ``max_places`` lines: number, text, and what else the rule's function of places takes. ``scales``
    are the number of lines with probabilities, and with logarithms, and the number of the first. ``texts`` and
    ``words`` are those of the lines of the file's head, and of the answers beside them; ``is_binary`` if no line
    there is text.
    """

    max_places: int
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[tuple[Any, ...] | Place]] = field(default_factory=dict)
    scales: dict[str, tuple[int, int]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    is_binary: bool = False

    def add(self, name: str, block: BlockLines, index: int, *more: object, lines: int = 1, code: str = "") -> None:
        """Count lines by the code of a rule, or another name; keep one as a place of the rule, if one is wanted."""
        self.counts[name] += lines
        kept = self.places.setdefault(name, [])
        if len(kept) < self.max_places:
            text, line = block.text(index), block.first_line + index
            is_long = len(text) > places.MAX_LINE
            kept.append(place_of(code or name, text, line, *more) if is_long else (line, text, *more))

    def extend(self, later: Findings) -> None:
        """Add what was found in the next lines."""
        self.lines += later.lines
        self.counts.update(later.counts)
        for code, kept in later.places.items():
            mine = self.places.setdefault(code, [])
            mine += kept[: self.max_places - len(mine)]
        for scale, (lines, first) in later.scales.items():
            before, first = self.scales.get(scale, (0, first))
            self.scales[scale] = before + lines, first
        self.texts += later.texts
        self.words += later.words
        self.is_binary |= later.is_binary


class BlockLines:
    """The lines of a block, which are split and decoded only when one is needed; places count from 0."""

    def __init__(self, block: Block) -> None:
        self._outputs, self._expected, self._known = block.outputs, block.expected, block.known
        self.first_line, self.lines = block.first_line, block.lines

    @cached_property
    def raw(self) -> list[bytes]:
        """The lines as they are stored, without their line ends."""
        return bytes(self._outputs).split(b"\n")[: self.lines]

    @cached_property
    def words(self) -> list[str]:
        """The expected words of the lines that have one."""
        return decode_lines(self._expected)[: self._known]

    def text(self, index: int) -> str:
        """Return a line as it is read: decoded, without carriage returns."""
        return str(self.raw[index], "utf-8", "replace").replace("\r", "")


def begin_block(block: Block, lines: BlockLines, findings: Findings, *, all_malformed: bool) -> None:
    """Count the lines of a block, keep those of the file's head, and see whether the file is text."""
    findings.lines += block.lines
    head = range(min(block.lines, HEAD_LINES + 1 - block.first_line))
    findings.texts += map(lines.text, head)
    findings.words += lines.words[: len(head)] if head else []
    if block.first_line == 1:
        data = bytes(block.outputs)
        findings.is_binary = all_malformed and (b"\0" in data or data.startswith(UTF_16_MARKS))


def check_words(blocks: Iterable[Block], target: Target, max_places: int) -> Findings:
    """Check lines of distributions over words."""
    findings = Findings(max_places)
    for block in blocks:
        losses, flags = backends.score_lines(block.outputs, block.expected, DEFAULT_BITS, block.first_line)
        kinds = Counter(flags)  # the number of lines with each combination of flags
        present = 0
        for kind in kinds:
            present |= kind
        lines = BlockLines(block)
        begin_block(block, lines, findings, all_malformed=all(kind & kernel.MALFORMED for kind in kinds))
        for kind, count in kinds.items():
            if not kind & NO_CHOICE_OF_SCALE:
                scale = "logarithms" if kind & kernel.LOGARITHMS else "probabilities"
                first = block.first_line + flags.index(kind)
                before, first = findings.scales.get(scale, (0, first))  # kinds are in the order of their first lines
                findings.scales[scale] = before + count, first
        for rule in FLAG_RULES:
            breaking = {kind for kind in kinds for has, lacks in rule.flags if kind & has == has and not kind & lacks}
            if breaking:
                findings.counts[rule.code] += sum(kinds[kind] for kind in breaking)
                wanted = max_places - len(findings.places.get(rule.code, ()))
                for index, kind in enumerate(flags if wanted else ()):
                    if kind in breaking:
                        findings.add(rule.code, lines, index, lines=0)
                        wanted -= 1
                        if not wanted:
                            break
        if target.reader is not None and present & kernel.VECTOR:
            for index in _with_flag(flags, kernel.VECTOR):
                message = f"{target.reader.name} compares words, which a vector of buckets does not have; "
                message += "write `word:probability` entries"
                findings.add("E117", lines, index, 1, lines.text(index).partition(" ")[0], message)
        if _SPACE.search(block.outputs):
            findings.counts["spaces"] = 1
        elif present & kernel.SEPARATOR:  # perhaps TABs separate the entries of all lines
            for index in _with_flag(flags, kernel.SEPARATOR):
                if b"\t" in lines.raw[index]:
                    findings.add("E118", lines, index)
                else:
                    findings.counts["separators"] += 1
        _check_characters(block, flags, present, lines, findings)
        if target.expected is not None and target.words_are_plain:
            _check_answers(losses, flags, present, lines, findings)
    return findings


def _with_flag(flags: Sequence[int], flag: int) -> list[int]:
    return [index for index, kind in enumerate(flags) if kind & flag]


def _check_characters(
    block: Block, flags: Sequence[int], present: int, lines: BlockLines, findings: Findings
) -> None:
    """Find bytes that are not UTF-8 (W212), and odd characters (W208)."""
    suspicious = present & kernel.CONTROL
    if present & kernel.NOT_ASCII and (
        not is_utf8(block.outputs) or any(pattern.search(block.outputs) for pattern in _ODD_BYTES)
    ):
        suspicious |= kernel.NOT_ASCII
    for index in _with_flag(flags, suspicious) if suspicious else ():
        if not flags[index] & kernel.MALFORMED:
            if not is_utf8(lines.raw[index]):
                findings.add("W212", lines, index)
            if places.odd_character_in(lines.text(index)):
                findings.add("W208", lines, index)


def _check_answers(
    losses: Sequence[float], flags: Sequence[int], present: int, lines: BlockLines, findings: Findings
) -> None:
    """Find expected words without mass (W301), and those that are listed in another case only (W302).

    All lines with expected words in capitals are kept too, in case the output has no capitals anywhere.
    """
    findings.counts["answers"] += len(lines.words)
    if inf in losses:
        for index, word in enumerate(lines.words):
            if losses[index] == inf:
                findings.add("W301", lines, index, word)
    for index, word in enumerate(lines.words):
        if word == word.lower() or flags[index] & (kernel.MALFORMED | kernel.VECTOR):
            continue
        text, casefolded = lines.text(index), word.casefold()
        if all(token.startswith(":") for token in text.split(" ")):
            continue
        findings.add("expected capitals", lines, index, word, code="W302")
        if f" {casefolded}:" in f" {text.casefold()}":
            entries = [token.rpartition(":")[0] for token in text.split(" ")]
            if word not in entries and any(entry.casefold() == casefolded for entry in entries):
                findings.add("W302", lines, index, word)
    if present & (kernel.CAPITAL | kernel.NOT_ASCII) and not findings.counts["capitals"]:
        for index in _with_flag(flags, kernel.CAPITAL | kernel.NOT_ASCII):
            words = (token.rpartition(":")[0] for token in lines.text(index).split(" "))
            if any(word != word.lower() for word in words):  # the E of an exponent is no capital
                findings.counts["capitals"] = 1
                break
