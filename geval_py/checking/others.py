"""The rules of outputs that are no distributions over words: of translations, classes, labels, numbers, tags."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING

from geval_py.checking.findings import Findings
from geval_py.checking.places import carriage_return, not_utf8
from geval_py.checking.rules import Place
from geval_py.checking.seen import Seen
from geval_py.checking.targets import Target
from geval_py.errors import DataError, MalformedLineError
from geval_py.reading.lines import read_lines
from geval_py.scoring.kernel.flags import MALFORMED
from geval_py.scoring.metrics.exact import best_guess
from geval_py.text import nearest, shorten, strip_spaces, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from geval_py.scoring.blocks import Block
    from geval_py.scoring.metrics import Metric


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
