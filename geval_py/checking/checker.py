"""Check one output: read it once, let the kernel flag its lines, and look again at those that deserve it.

Most rules are a pattern of the kernel's flags and are counted without parsing a line; a line is parsed in Python only
where a flag is not the whole truth (which error it is, which character), or to show its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import NamedTuple

from geval_py.checking.blocks import Block, Lines, Seen, score
from geval_py.checking.causes import line_count_causes
from geval_py.checking.findings import Findings
from geval_py.checking.places import (
    case_mismatch,
    error_code,
    error_place,
    has_capital_word,
    impossible_word,
    lists_in_other_case_only,
    odd_character_in,
    place_of,
)
from geval_py.checking.rules import Place, Problem
from geval_py.errors import CorruptFileError, MalformedLineError, TooLargeError, UnreadableFileError
from geval_py.reading.distribution import DEFAULT_BITS
from geval_py.reading.lines import Bytes, LineReader, decode_lines
from geval_py.scoring.kernel import choose_backend, count_lines
from geval_py.scoring.kernel.flags import (
    ABOVE_ONE,
    ALL_ZERO,
    BELOW_ONE,
    CAPITAL,
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
from geval_py.scoring.parallel import Progress, available_cores, map_in_order
from geval_py.text import visible

DEFAULT_MAX_BYTES = 20 * 10**9
DEFAULT_MAX_PLACES = 20
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LINES_FOR_SHIFT = 2000  # how many of the first lines are compared with the expected words, one line up and down


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An output to check, and what is known of its test set.

    ``expected`` and ``input`` are None where there is none; ``header`` is the name that a header line would begin
    with, and ``header_is_skipped`` tells whether the challenge's options name it. ``words_are_plain`` is False where
    the challenge's metric changes the lines before it compares words, as ``l`` for lower case does: whether a word
    is found can then not be told from the lines as they are.
    """

    output: str
    expected: str | None = None
    input: str | None = None
    header: str | None = None
    in_header: str | None = None
    header_is_skipped: bool = False
    words_are_plain: bool = True


def check_output(
    target: Target,
    rules: Collection[str],
    *,
    max_places: int = DEFAULT_MAX_PLACES,
    max_bytes: int = DEFAULT_MAX_BYTES,
    progress: Progress | None = None,
) -> list[Problem]:
    """Check one output with some rules (by code); gives the problems in the order of the table.

    Whatever the output is, this does not fail: what cannot be read is a problem too. Raises DataError only for the
    test set's own files (expected, input).
    """
    findings = Findings(target.output, rules, max_places)
    checker = _Checker(target, findings)
    header = target.header if target.header_is_skipped else None
    try:
        with LineReader(target.output, header=header, max_bytes=max_bytes) as outputs:
            checker.check(outputs, progress)
    except (CorruptFileError, TooLargeError, UnreadableFileError) as error:
        if error.path != target.output:
            raise
        findings.forget()
        findings.add_file(*_unreadable(error))
    return findings.problems(checker.lines)


def _unreadable(error: CorruptFileError | TooLargeError | UnreadableFileError) -> tuple[str, str]:
    """Give the rule and the message for an output that cannot be read."""
    if isinstance(error, CorruptFileError):
        return "E105", f"corrupt {error.compression} file: {visible(error.reason)}"
    if isinstance(error, TooLargeError):
        return "E105", f"it unpacks to more than {error.max_bytes} bytes"
    return "E101", f"the output cannot be read: {visible(error.reason)}"


def without(target: Target, path: str) -> Target:
    """Leave a file of the test set that cannot be read out of a target."""
    return replace(
        target,
        expected=None if target.expected == path else target.expected,
        input=None if target.input == path else target.input,
    )


class _NotTextError(Exception):
    """No line of the file can be read, and it is not text."""


class _Checker:
    """Checks one output, block by block."""

    def __init__(self, target: Target, findings: Findings) -> None:
        self._target, self._findings = target, findings
        self.lines = 0
        self._logarithm_lines = self._probability_lines = 0
        self._output_has_capitals = False
        self._expected_capitals = 0
        self._capital_places: list[Callable[[], Place]] = []
        self._free: list[bytearray] = []
        self._first_texts: list[str] = []
        self._first_words: list[str] = []

    def check(self, outputs: LineReader, progress: Progress | None) -> None:
        if outputs.has_byte_order_mark:
            self._findings.add_file(
                "W211", "the file begins with a byte order mark", line=1, column=1, token="\ufeff"
            )
        expected = self._target.expected
        threads = available_cores() if choose_backend().parallel else 0
        try:
            if expected is None:
                for seen in map_in_order(score, self._blocks(outputs, None), threads):
                    self._see(seen, outputs, progress)
                items = self._count_input()
            else:
                header = self._target.header if self._target.header_is_skipped else None
                with LineReader(expected, header=header) as answers:
                    for seen in map_in_order(score, self._blocks(outputs, answers), threads):
                        self._see(seen, outputs, progress)
                    items = self._answers_taken + answers.count_rest()
        except _NotTextError:
            self._findings.forget()
            message = "no line can be read: this is not UTF-8 text (UTF-16, or a binary file?)"
            self._findings.add_file("E106", message, line=1, column=1)
            return
        self._whole_file(items)

    def _blocks(self, outputs: LineReader, answers: LineReader | None) -> Iterator[Block]:
        first_line, self._answers_taken = 1, 0
        buffer = bytearray()
        while size := outputs.read_block(buffer):
            block = memoryview(buffer)[:size]
            lines = count_lines(block)
            words = answers.take(lines) if answers else b""
            known = words.count(b"\n")
            self._answers_taken += known
            words += b"\n" * (lines - known)
            yield Block(first_line=first_line, outputs=block, words=words, known=known, buffer=buffer)
            first_line += lines
            buffer = self._free.pop() if self._free else bytearray()

    # ---- a block

    def _see(self, seen: Seen, outputs: LineReader, progress: Progress | None) -> None:
        block = seen.block
        if block.first_line == 1:
            self._look_at_beginning(seen)
        self.lines += len(seen.flags)
        combinations = Counter(seen.flags)
        self._count_scales(combinations)
        lines = Lines(block)
        for rule in FLAG_RULES:
            self._apply(rule, combinations, seen, lines)
        if any(flags & MALFORMED for flags in combinations):
            self._sort_out_errors(seen, lines)
        self._look_at_characters(seen, combinations, lines)
        if self._target.expected is not None and self._target.words_are_plain:
            self._compare_with_answers(seen, combinations, lines)
        if progress is not None and outputs.source.size is not None:
            progress(outputs.source.position or 0, outputs.source.size)
        block.outputs.release()
        self._free.append(block.buffer)

    def _look_at_beginning(self, seen: Seen) -> None:
        block = seen.block
        data = bytes(block.outputs)
        is_binary = b"\0" in data or data.startswith(UTF_16_MARKS)
        if is_binary and all(flags & MALFORMED for flags in seen.flags):
            raise _NotTextError
        lines = Lines(block)
        self._first_texts = [lines.text(index) for index in range(min(LINES_FOR_SHIFT, len(seen.flags)))]
        self._first_words = decode_lines(block.words)[: min(LINES_FOR_SHIFT, block.known)]
        name = self._target.header
        field = self._first_texts[0].split("\t")[0]
        if name is not None and not self._target.header_is_skipped and field.casefold() == name.casefold():
            message = f"the first line is the header's name, `{visible(name)}`, and is read as the first item"
            self._findings.add_file("W215", message, line=1, column=1, token=field)

    def _count_scales(self, combinations: Counter[int]) -> None:
        for flags, lines in combinations.items():
            if flags & (MALFORMED | ALL_ZERO | LOOKS_LIKE_PROBABILITIES | REST_ALONE):
                continue
            if flags & LOGARITHMS:
                self._logarithm_lines += lines
            else:
                self._probability_lines += lines

    def _apply(self, rule: FlagRule, combinations: Counter[int], seen: Seen, lines: Lines) -> None:
        holding = {flags for flags in combinations if flags & rule.has == rule.has and not flags & rule.lacks}
        if not holding:
            return
        self._findings.count(rule.code, sum(combinations[flags] for flags in holding))
        wanted = self._findings.wants_places(rule.code)
        for index, flags in enumerate(seen.flags):
            if not wanted:
                break
            if flags in holding:
                wanted -= 1
                self._show(rule.code, lines, index)

    def _show(self, code: str, lines: Lines, index: int) -> None:
        self._findings.show(code, lambda: place_of(code, lines.text(index), lines.number(index)))

    def _sort_out_errors(self, seen: Seen, lines: Lines) -> None:
        for index, flags in enumerate(seen.flags):
            if not flags & MALFORMED:
                continue
            if not lines.raw(index).strip(b"\r") and not self._findings.wants_places("E111"):
                self._findings.count("E111", 1)
            else:
                error = _error_of(lines.text(index), lines.number(index))
                self._findings.add(error_code(error), partial(error_place, error))

    def _look_at_characters(self, seen: Seen, combinations: Counter[int], lines: Lines) -> None:
        look = CONTROL * any(flags & CONTROL for flags in combinations)
        if any(flags & NOT_ASCII for flags in combinations):
            data = seen.block.outputs
            if not _is_utf8(data) or any(pattern.search(data) for pattern in _ODD_BYTES):
                look |= NOT_ASCII
        if not look:
            return
        for index, flags in enumerate(seen.flags):
            if flags & look and not flags & MALFORMED:
                if not _is_utf8(lines.raw(index)):
                    self._findings.count("W212", 1)
                    self._show("W212", lines, index)
                if odd_character_in(lines.text(index)):
                    self._findings.count("W208", 1)
                    self._show("W208", lines, index)

    def _compare_with_answers(self, seen: Seen, combinations: Counter[int], lines: Lines) -> None:
        if inf in seen.losses:
            words = decode_lines(seen.block.words)
            for index in range(seen.block.known):
                if seen.losses[index] == inf:
                    place = partial(impossible_word, lines.text(index), lines.number(index), words[index])
                    self._findings.add("W301", place)
        self._look_for_other_case(seen, lines)
        if not self._output_has_capitals and any(flags & (CAPITAL | NOT_ASCII) for flags in combinations):
            self._output_has_capitals = any(
                flags & (CAPITAL | NOT_ASCII) and has_capital_word(lines.text(index))
                for index, flags in enumerate(seen.flags)
            )

    def _look_for_other_case(self, seen: Seen, lines: Lines) -> None:
        words = decode_lines(seen.block.words)
        for index, word in enumerate(words):
            if word == word.lower() or seen.flags[index] & (MALFORMED | VECTOR):
                continue
            self._expected_capitals += 1
            place = partial(case_mismatch, lines.text(index), lines.number(index), word)
            if len(self._capital_places) < self._findings.wants_places("W302"):
                self._capital_places.append(place)
            if lists_in_other_case_only(lines.text(index), word):
                self._findings.add("W302", place)

    # ---- the whole file

    def _count_input(self) -> int | None:
        if self._target.input is None:
            return None
        with LineReader(self._target.input, header=self._target.in_header) as inputs:
            return inputs.count_rest()

    def _whole_file(self, items: int | None) -> None:
        findings = self._findings
        if self.lines == 0:
            findings.add_file("E102", "the output has no line")
        elif items is not None and self.lines != items:
            few = self.lines < items
            message = f"the output has {self.lines} lines, there are {items} items{self._causes(items)}"
            findings.add_file("E103" if few else "E104", message, line=min(self.lines, items) + 1, column=1)
        if self._logarithm_lines and self._probability_lines:
            message = f"{self._probability_lines} lines hold probabilities, {self._logarithm_lines} logarithms"
            findings.add_file("W213", message)
        if self._expected_capitals and self.lines and not self._output_has_capitals:
            findings.replace(
                "W302",
                self._expected_capitals,
                f"{self._expected_capitals} expected words have capitals, the output never has any",
                self._capital_places,
            )

    def _causes(self, items: int) -> str:
        causes = line_count_causes(
            self._findings, self.lines, items, self._first_texts, self._first_words, self._target.input
        )
        return "".join(f"; {cause}" for cause in causes)


def _error_of(text: str, line: int) -> MalformedLineError:
    """Parse a malformed line again, for its error."""
    try:
        line_loss(text, "", DEFAULT_BITS, line)
    except MalformedLineError as error:
        return error
    raise AssertionError(f"line {line} is malformed only to the native kernel")


def _is_utf8(data: Bytes) -> bool:
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
