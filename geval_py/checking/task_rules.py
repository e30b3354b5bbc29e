"""The rules that need the answers of word gaps, and the rules of outputs that are no distributions over words."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from geval_py.checking import places
from geval_py.checking.findings import Findings, FlaggedBlock
from geval_py.checking.rules import Place
from geval_py.checking.targets import Target
from geval_py.errors import DataError, MalformedLineError
from geval_py.reading.lines import read_lines
from geval_py.scoring.kernel import CAPITAL, MALFORMED, NOT_ASCII, VECTOR
from geval_py.scoring.metrics.exact import best_guess
from geval_py.text import nearest, shorten, strip_spaces, visible

if TYPE_CHECKING:
    from geval_py.scoring.blocks import Block
    from geval_py.scoring.metrics import Metric


class AnswerRules:
    """The rules of word gaps with answers: words without mass (W301), words that differ only in case (W302)."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._output_has_capitals = False
        self._expected_capitals = 0
        self._capital_places: list[Callable[[], Place]] = []
        self._most_capital_places = findings.most_places("W302")

    def check(self, block: FlaggedBlock) -> None:
        """Compare the lines of a block with the expected words."""
        words = block.words()
        if inf in block.losses:
            for index, word in enumerate(words):
                if block.losses[index] == inf:
                    place = partial(places.impossible_word, block.text(index), block.number(index), word)
                    self._findings.add("W301", place)
        self._check_case(block, words)
        if not self._output_has_capitals and block.has(CAPITAL | NOT_ASCII):
            self._output_has_capitals = any(
                flags & (CAPITAL | NOT_ASCII) and places.has_capital_word(block.text(index))
                for index, flags in enumerate(block.flags)
            )

    def _check_case(self, block: FlaggedBlock, words: list[str]) -> None:
        for index, word in enumerate(words):
            if word == word.lower() or block.flags[index] & (MALFORMED | VECTOR):
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
        wanted = self._most_capital_places - len(self._capital_places)
        self._capital_places += later._capital_places[:wanted]

    def finish(self) -> None:
        """Report an output that never has capitals, when all lines were checked."""
        if self._expected_capitals and not self._output_has_capitals:
            self._findings.replace(
                "W302",
                self._expected_capitals,
                f"{self._expected_capitals} expected words have capitals, the output never has any",
                self._capital_places,
            )


class TextBlock(FlaggedBlock):
    """A block of lines that are no distributions; a line with a NUL is not text, and flagged as malformed."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.flags = array("q", (MALFORMED if b"\0" in line else 0 for line in self._raw[: block.lines]))


class MetricRules:
    """The rules of an output for a metric that is not of word gaps: translations, classes, labels, numbers, tags."""

    def __init__(
        self,
        metric: Metric | None,
        prepare: Callable[[str], str] | None,
        classes: frozenset[str],
        findings: Findings,
    ) -> None:
        self._metric, self._classes, self._findings = metric, classes, findings
        self._prepare: Callable[[str], str] = prepare or str

    @classmethod
    def of_target(cls, target: Target, findings: Findings) -> MetricRules:
        """Make the rules for the metric of a target and the classes of its training set."""
        return cls(target.metric, target.preparation, _classes_of(target), findings)

    def for_later_lines(self, findings: Findings) -> MetricRules:
        """Return the same rules for later lines."""
        return MetricRules(self._metric, self._prepare, self._classes, findings)

    def check(self, block: FlaggedBlock) -> None:
        """Check the lines of a block."""
        for index in range(block.block.lines):
            text, line = block.text(index), block.number(index)
            if b"\r" in block.raw(index):
                self._findings.add("W210", partial(places.carriage_return, text, line))
            if "\ufffd" in text and "\ufffd".encode() not in block.raw(index):
                self._findings.add("W212", partial(places.not_utf8, text, line))
            self._check_text(text, line)

    def _check_text(self, text: str, line: int) -> None:
        parse = None if self._metric is None else self._metric.parse
        try:
            if parse is not None:
                parse(self._prepare(text), line)
        except MalformedLineError as error:
            self._findings.add("E117", partial(_not_in_format, error, text))
            return
        if not strip_spaces(text):
            place = Place(line=line, column=1, token="", message="the line is empty", text=text)
            self._findings.add("W217", lambda: place)
        elif self._classes:
            self._check_class(text, line)

    def _check_class(self, text: str, line: int) -> None:
        stripped = strip_spaces(self._prepare(text))
        guess = best_guess(stripped)
        found = stripped if guess is None else guess
        if found and found not in self._classes:
            self._findings.add("W216", partial(_unknown_class, text, line, found, nearest(found, self._classes)))


def _classes_of(target: Target) -> frozenset[str]:
    """Read the classes of the training set; empty if the metric has no classes or the file cannot be read."""
    if target.training is None or target.metric is None or not target.metric.has_classes:
        return frozenset()
    try:
        lines = map(target.preparation or str, read_lines(target.training, header=target.output_header))
        return frozenset(map(strip_spaces, lines))
    except DataError:
        return frozenset()  # a training set that is broken is not the submission's fault


def _not_in_format(error: MalformedLineError, text: str) -> Place:
    if error.text != text:  # the metric's flags changed the line, so the error's column is not a column of the file
        return Place(line=error.line, column=1, token=error.token, message=error.hint, text=text)
    return Place(line=error.line, column=error.column, token=error.token, message=error.hint, text=error.text)


def _unknown_class(text: str, line: int, found: str, close: str | None) -> Place:
    advice = f"; did you mean `{visible(shorten(close))}`?" if close else ""
    message = f"the training set has no class `{visible(shorten(found))}`{advice}"
    return Place(line=line, column=1, token=found, message=message, text=text)
