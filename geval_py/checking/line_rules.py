"""The rules for the lines of an output, and for an output as a whole.

In this order: the rules for lines of word gaps; the rules for the whole output, about its beginning, its number of
lines, mixed scales and TABs; the rules for word gaps with answers. The rules for other metrics' outputs are in
:mod:`geval_py.checking.metric_rules`, those about the tokens of language models in :mod:`geval_py.checking.subwords`.

Most rules for lines of word gaps are patterns of the kernel's flags, so that lines are counted without being parsed.
A line is parsed in Python only to find the place of a problem, or odd characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import inf

from geval_py.checking import places, rules, targets
from geval_py.checking.findings import Findings, FlaggedBlock
from geval_py.reading.lines import LineReader, is_utf8
from geval_py.scoring import kernel
from geval_py.text import visible
from geval_py.values import NamedTuple

# Lines that do not show whether their author writes probabilities or logarithms; a vector always holds logarithms.
NO_CHOICE_OF_SCALE = (
    kernel.MALFORMED | kernel.ALL_ZERO | kernel.LOOKS_LIKE_PROBABILITIES | kernel.REST_ALONE | kernel.VECTOR
)
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
CASE_SHARE = 0.05  # of the lines: a model that is not lower-cased breaks W302 on fewer
LINES_FOR_SHIFT = 2000  # of the beginning, compared with the expected words one line up and down


class FlagRule(NamedTuple):
    """A rule that a line breaks if it has all flags of ``has`` and none of ``lacks``."""

    code: str
    has: int
    lacks: int


FLAG_RULES = (
    FlagRule("E111", kernel.EMPTY_LINE, 0),
    FlagRule("E112", kernel.STRAY_SPACE, 0),
    FlagRule("E113", kernel.NO_COLON, 0),
    FlagRule("E114", kernel.NOT_A_NUMBER, 0),
    FlagRule("E115", kernel.WRONG_LENGTH, 0),
    FlagRule("E116", kernel.NUMBER_TOO_LARGE, 0),
    FlagRule("W201", kernel.LOOKS_LIKE_PROBABILITIES, 0),
    FlagRule("W202", kernel.ABOVE_ONE, kernel.LOGARITHMS | kernel.ROUNDED | kernel.SEPARATOR),
    FlagRule("W203", kernel.HAS_REST | kernel.BELOW_ONE, kernel.LOGARITHMS | kernel.ROUNDED | kernel.SEPARATOR),
    FlagRule("W204", 0, kernel.HAS_REST | kernel.BELOW_ONE | kernel.MALFORMED | kernel.VECTOR | kernel.ALL_ZERO),
    FlagRule("W204", kernel.ZERO_REST, 0),
    FlagRule("W205", kernel.ALL_ZERO, 0),
    FlagRule("W206", kernel.REPEATED, 0),
    FlagRule("W207", kernel.ZERO_ENTRY, kernel.LOGARITHMS),
    FlagRule("W209", kernel.SEPARATOR, 0),
    FlagRule("W210", kernel.CARRIAGE_RETURN, 0),
    FlagRule("W214", kernel.REST_ALONE, 0),
)
_SPACE = re.compile(b" ")
# Odd characters beyond ASCII, as UTF-8. The patterns begin with fixed bytes, so that the search is fast.
_ODD_BYTES = (
    re.compile(rb"\xc2[\x80-\xa0]"),
    re.compile(rb"\xe2\x80[\x87\x8b-\x8f\xa8-\xaf]"),
    re.compile(rb"\xe2\x81[\xa6-\xa9]"),
    re.compile(rb"\xef\xbb\xbf"),
)


def check_lines(block: FlaggedBlock, findings: Findings) -> None:
    """Apply the rules of lines to a block."""
    for rule in FLAG_RULES:
        _apply(rule, block, findings)
    _check_characters(block, findings)


def _apply(rule: FlagRule, block: FlaggedBlock, findings: Findings) -> None:
    holding = {flags for flags in block.combinations if flags & rule.has == rule.has and not flags & rule.lacks}
    if not holding:
        return
    findings.count(rule.code, sum(block.combinations[flags] for flags in holding))
    wanted = findings.wants_places(rule.code)
    indices = (index for index, flags in enumerate(block.flags) if flags in holding)
    for index in islice(indices, wanted):
        findings.add_place(rule.code, partial(places.place_of, rule.code, block.text(index), block.number(index)))


def _check_characters(block: FlaggedBlock, findings: Findings) -> None:
    suspicious = kernel.CONTROL if block.has(kernel.CONTROL) else 0  # flags of lines that may have an odd character
    if block.has(kernel.NOT_ASCII):
        data = block.block.outputs
        if not is_utf8(data) or any(pattern.search(data) for pattern in _ODD_BYTES):
            suspicious |= kernel.NOT_ASCII
    for index, flags in enumerate(block.flags if suspicious else ()):
        if flags & suspicious and not flags & kernel.MALFORMED:
            text, line = block.text(index), block.number(index)
            if not is_utf8(block.raw(index)):
                findings.add("W212", partial(places.place_of, "W212", text, line))
            if places.odd_character_in(text):
                findings.add("W208", partial(places.place_of, "W208", text, line))


class NotTextError(Exception):
    """No line of the file can be read, because it is not text."""


class FileRules:
    """The rules of one output as a whole; ``lines`` counts the lines that were checked."""

    def __init__(self, target: targets.Target, findings: Findings) -> None:
        self._target, self._findings = target, findings
        self.lines = 0
        self._logarithm_lines = self._probability_lines = 0
        self._first_logarithm = self._first_probability = 0  # the numbers of the first such lines
        self._first_texts: list[str] = []
        self._first_words: list[str] = []
        self._tabs = Tabs(findings)

    def begin(self, block: FlaggedBlock) -> None:
        """Check the first block of the output; raises NotTextError."""
        data = bytes(block.block.outputs)
        is_binary = b"\0" in data or data.startswith(UTF_16_MARKS)
        if is_binary and all(flags & kernel.MALFORMED for flags in block.flags):
            raise NotTextError
        self._first_texts = [block.text(index) for index in range(min(LINES_FOR_SHIFT, block.block.lines))]
        self._first_words = block.words()[:LINES_FOR_SHIFT]
        name = self._target.header
        field = self._first_texts[0].split("\t")[0]
        if name is not None and not self._target.header_is_skipped and field.casefold() == name.casefold():
            message = f"the first line is the header's name, `{visible(name)}`, and is read as the first item"
            self._findings.add_file("W215", message, line=1, column=1, token=field)

    def check(self, block: FlaggedBlock) -> None:
        """Count the lines of the next block, and their scales."""
        self.lines += block.block.lines
        self._tabs.check(block)
        self._check_vectors(block)
        for flags, lines in block.combinations.items():
            if flags & NO_CHOICE_OF_SCALE:
                continue
            if flags & kernel.LOGARITHMS:
                self._logarithm_lines += lines
                first = block.number(block.flags.index(flags))
                self._first_logarithm = min(self._first_logarithm or first, first)
            else:
                self._probability_lines += lines
                first = block.number(block.flags.index(flags))
                self._first_probability = min(self._first_probability or first, first)

    def _check_vectors(self, block: FlaggedBlock) -> None:
        """Report vectors, if a metric cannot read them."""
        metric = self._target.reader
        if metric is None or not block.has(kernel.VECTOR):
            return
        for index, flags in enumerate(block.flags):
            if flags & kernel.VECTOR:
                place = partial(places.vector, block.text(index), block.number(index), metric.name)
                self._findings.add("E117", place)

    def for_later_lines(self, findings: Findings) -> FileRules:
        """Return the same rules for later lines."""
        later = FileRules(self._target, findings)
        later._tabs.has_spaces = self._tabs.has_spaces
        return later

    def extend(self, later: FileRules) -> None:
        """Add the counts of the next lines."""
        self.lines += later.lines
        self._logarithm_lines += later._logarithm_lines
        self._probability_lines += later._probability_lines
        self._first_logarithm = self._first_logarithm or later._first_logarithm
        self._first_probability = self._first_probability or later._first_probability
        self._tabs.extend(later._tabs)

    def finish(self, items: int | None) -> None:
        """Apply the rules that need all lines; ``items`` is the number of lines there should be, None if unknown."""
        findings = self._findings
        self._tabs.finish()
        if self.lines == 0:
            findings.add_file("E102", "the output has no line")
        elif items is not None and self.lines != items:
            few = self.lines < items
            causes = line_count_causes(
                findings, self.lines, items, self._first_texts, self._first_words, self._target.input
            )
            message = f"the output has {self.lines} lines, there are {items} items"
            message += "".join(f"; {cause}" for cause in causes)
            findings.add_file("E103" if few else "E104", message, line=self.lines if few else items + 1, column=1)
        if self._logarithm_lines and self._probability_lines:
            message = f"{self._probability_lines} lines hold probabilities, {self._logarithm_lines} logarithms"
            firsts = sorted((self._first_probability, self._first_logarithm), reverse=True)
            counts = {self._first_probability: self._probability_lines, self._first_logarithm: self._logarithm_lines}
            findings.add_file("W213", message, line=min(firsts, key=counts.__getitem__), column=1)


class Tabs:
    """The rule of an output whose entries TABs separate on all lines (E118, in the place of W209).

    ``has_spaces``: some line has a space, so that TABs are at most mistakes on single lines.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.has_spaces = False
        self._lines = self._others = 0  # with a TAB, and with another wrong separator alone
        self._places: list[Callable[[], rules.Place]] = []

    def check(self, block: FlaggedBlock) -> None:
        """Look for spaces and TABs in the next block."""
        if self.has_spaces or _SPACE.search(block.block.outputs):
            self.has_spaces = True
            return
        if not block.has(kernel.SEPARATOR):
            return
        for index, flags in enumerate(block.flags):
            if flags & kernel.SEPARATOR and b"\t" not in block.raw(index):
                self._others += 1
            elif flags & kernel.SEPARATOR:
                self._lines += 1
                if len(self._places) < self._findings.most_places("E118"):
                    place = partial(places.place_of, "E118", block.text(index), block.number(index))
                    self._places.append(place)

    def extend(self, later: Tabs) -> None:
        """Add what the next lines have."""
        self.has_spaces |= later.has_spaces
        self._lines += later._lines
        self._others += later._others
        self._places += later._places[: self._findings.most_places("E118") - len(self._places)]

    def finish(self) -> None:
        """Report the TABs, when all lines were checked."""
        if self.has_spaces or not self._lines:
            return
        self._findings.count("E118", self._lines)
        for place in self._places:
            self._findings.add_place("E118", place)
        if not self._others and self._findings.selects("E118"):
            self._findings.drop("W209")


def line_count_causes(
    findings: Findings, lines: int, items: int, texts: Sequence[str], words: Sequence[str], input_path: str | None
) -> Iterator[str]:
    """Yield likely causes of a wrong number of lines; ``texts`` and ``words`` begin the output and the answers."""
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
    """Return "up" or "down" if more expected words are listed one line away in that direction, else ""."""
    hits = {
        "": sum(map(places.lists_word, texts, words)),
        "up": sum(map(places.lists_word, texts[1:], words)),
        "down": sum(map(places.lists_word, texts, words[1:])),
    }
    best = max(hits, key=lambda way: hits[way])
    return best if hits[best] > max(3, 2 * hits[""]) else ""


class AnswerRules:
    """The rules of word gaps with answers: words without mass (W301), words that differ only in case (W302)."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._output_has_capitals = False
        self._expected_capitals = 0
        self._lines = 0
        self._capital_places: list[Callable[[], rules.Place]] = []
        self._most_capital_places = findings.most_places("W302")

    def check(self, block: FlaggedBlock) -> None:
        """Compare the lines of a block with the expected words."""
        words = block.words()
        self._lines += len(words)
        if inf in block.losses:
            for index, word in enumerate(words):
                if block.losses[index] == inf:
                    place = partial(places.impossible_word, block.text(index), block.number(index), word)
                    self._findings.add("W301", place)
        self._check_case(block, words)
        if not self._output_has_capitals and block.has(kernel.CAPITAL | kernel.NOT_ASCII):
            self._output_has_capitals = any(
                flags & (kernel.CAPITAL | kernel.NOT_ASCII) and places.has_capital_word(block.text(index))
                for index, flags in enumerate(block.flags)
            )

    def _check_case(self, block: FlaggedBlock, words: list[str]) -> None:
        for index, word in enumerate(words):
            if word == word.lower() or block.flags[index] & (kernel.MALFORMED | kernel.VECTOR):
                continue
            if not places.has_word(block.text(index)):
                continue
            self._expected_capitals += 1
            place = partial(places.case_mismatch, block.text(index), block.number(index), word)
            if len(self._capital_places) < self._most_capital_places:
                self._capital_places.append(place)
            if places.lists_in_other_case_only(block.text(index), word):
                self._findings.add("W302", place)

    def for_later_lines(self, findings: Findings) -> AnswerRules:
        """Return the same rules for later lines."""
        later = AnswerRules(findings)
        later._output_has_capitals = self._output_has_capitals
        later._most_capital_places = self._most_capital_places - len(self._capital_places)
        return later

    def extend(self, later: AnswerRules) -> None:
        """Add the findings of the next lines."""
        self._output_has_capitals |= later._output_has_capitals
        self._expected_capitals += later._expected_capitals
        self._lines += later._lines
        wanted = self._most_capital_places - len(self._capital_places)
        self._capital_places += later._capital_places[:wanted]

    def finish(self) -> None:
        """Report an output that never has capitals, or often has them otherwise, when all lines were checked."""
        least = CASE_SHARE * self._lines
        if self._expected_capitals and not self._output_has_capitals:
            lines = self._expected_capitals
            if lines < least:
                self._findings.drop("W302")
                return
            message = f"{lines} expected words have capitals, the output never has any"
            self._findings.replace("W302", lines, message, self._capital_places)
        elif self._findings.counted("W302") < least:
            self._findings.drop("W302")
        elif self._findings.counted("W302"):
            lines = self._findings.counted("W302")
            words = f"{self._expected_capitals} expected words with capitals"
            self._findings.summarize("W302", f"{lines} of {words} are listed only in another case")
