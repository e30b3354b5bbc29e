"""The rules that need the answers: words without mass, and words that differ from the expected one in case only."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from geval_py.checking.findings import Findings, Seen
from geval_py.checking.places import (
    carriage_return,
    case_mismatch,
    has_capital_word,
    impossible_word,
    lists_in_other_case_only,
    not_utf8,
)
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
    """Compares the lines of one output with the expected words."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._output_has_capitals = False
        self._expected_capitals = 0
        self._capital_places: list[Callable[[], Place]] = []
        self._most_capital_places = findings.most_places("W302")

    def see(self, seen: Seen) -> None:
        """Compare a block."""
        words = seen.words()
        if inf in seen.losses:
            self._look_for_impossible_words(seen, words)
        self._look_for_other_case(seen, words)
        if not self._output_has_capitals and seen.has(CAPITAL | NOT_ASCII):
            self._output_has_capitals = any(
                flags & (CAPITAL | NOT_ASCII) and has_capital_word(seen.text(index))
                for index, flags in enumerate(seen.flags)
            )

    def _look_for_impossible_words(self, seen: Seen, words: list[str]) -> None:
        for index, word in enumerate(words):
            if seen.losses[index] == inf:
                self._findings.add("W301", partial(impossible_word, seen.text(index), seen.number(index), word))

    def _look_for_other_case(self, seen: Seen, words: list[str]) -> None:
        for index, word in enumerate(words):
            if word == word.lower() or seen.flags[index] & (MALFORMED | VECTOR):
                continue
            self._expected_capitals += 1
            place = partial(case_mismatch, seen.text(index), seen.number(index), word)
            if len(self._capital_places) < self._most_capital_places:
                self._capital_places.append(place)
            if lists_in_other_case_only(seen.text(index), word):
                self._findings.add("W302", place)

    def later(self, findings: Findings) -> AnswerRules:
        """Give the same for later lines."""
        later = AnswerRules(findings)
        later._output_has_capitals = self._output_has_capitals
        later._most_capital_places = self._most_capital_places - len(self._capital_places)
        return later

    def extend(self, later: AnswerRules) -> None:
        """Add what was seen in the next lines."""
        self._output_has_capitals |= later._output_has_capitals
        self._expected_capitals += later._expected_capitals
        wanted = self._most_capital_places - len(self._capital_places)
        self._capital_places += later._capital_places[:wanted]

    def conclude(self) -> None:
        """Say what can be told when all lines are seen: that the output never has capitals."""
        if self._expected_capitals and not self._output_has_capitals:
            self._findings.replace(
                "W302",
                self._expected_capitals,
                f"{self._expected_capitals} expected words have capitals, the output never has any",
                self._capital_places,
            )


# The rules of outputs that are no distributions over words: of translations, classes, labels, numbers, tags.


class SeenTexts(Seen):
    """A block of lines that the kernel knows nothing of; those with a NUL are flagged as malformed, as no text."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.flags = array("q", (MALFORMED if b"\0" in line else 0 for line in self._raw[: block.lines]))


class OtherRules:
    """Looks at the lines of one output for a metric that is not of word gaps."""

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
    def of(cls, target: Target, findings: Findings) -> OtherRules:
        """Make those of a target's metric, and of the classes of its training set."""
        return cls(target.metric, target.preparation, _classes_of(target), findings)

    def later(self, findings: Findings) -> OtherRules:
        """Give the same for later lines."""
        return OtherRules(self._metric, self._prepare, self._classes, findings)

    def see(self, seen: Seen) -> None:
        """Look at a block."""
        for index in range(seen.block.lines):
            text, line = seen.text(index), seen.number(index)
            if b"\r" in seen.raw(index):
                self._findings.add("W210", partial(carriage_return, text, line))
            if "\ufffd" in text and "\ufffd".encode() not in seen.raw(index):
                self._findings.add("W212", partial(not_utf8, text, line))
            self._look_at(text, line)

    def _look_at(self, text: str, line: int) -> None:
        parse = None if self._metric is None else self._metric.parse
        try:
            if parse is not None:
                parse(self._prepare(text), line)
        except MalformedLineError as error:
            self._findings.add("E117", partial(_not_in_format, error, text))
            return
        if not strip_spaces(text):
            self._findings.add("W217", partial(_empty, text, line))
        elif self._classes:
            self._look_at_class(text, line)

    def _look_at_class(self, text: str, line: int) -> None:
        stripped = strip_spaces(self._prepare(text))
        guess = best_guess(stripped)
        found = stripped if guess is None else guess
        if found and found not in self._classes:
            self._findings.add("W216", partial(_unknown_class, text, line, found, nearest(found, self._classes)))


def _classes_of(target: Target) -> frozenset[str]:
    """Read the classes of the training set; none where the metric has none, or they cannot be read."""
    if target.training is None or target.metric is None or not target.metric.has_classes:
        return frozenset()
    try:
        lines = map(target.preparation or str, read_lines(target.training, header=target.output_header))
        return frozenset(map(strip_spaces, lines))
    except DataError:
        return frozenset()  # a training set that is broken is not the submission's fault


def _not_in_format(error: MalformedLineError, text: str) -> Place:
    """Give the place of an error; where the metric's flags changed the line, what stands where is not known."""
    if error.text != text:
        return Place(line=error.line, column=1, token=error.token, message=error.hint, text=text)
    return Place(line=error.line, column=error.column, token=error.token, message=error.hint, text=error.text)


def _empty(text: str, line: int) -> Place:
    return Place(line=line, column=1, token="", message="the line is empty", text=text)


def _unknown_class(text: str, line: int, found: str, close: str | None) -> Place:
    advice = f"; did you mean `{visible(shorten(close))}`?" if close else ""
    message = f"the training set has no class `{visible(shorten(found))}`{advice}"
    return Place(line=line, column=1, token=found, message=message, text=text)
